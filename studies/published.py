"""One published figure beside ours: what every study's rows have in common."""

from __future__ import annotations

from dataclasses import dataclass

THREE = 3  # seeds behind a published mean
TOLERANCE = 3.0  # standard deviations of three-seed means


@dataclass(frozen=True, slots=True)
class Row:
    """One published figure, ours, and the range in which means over three of our seeds lie."""

    label: str
    published: float
    ours: float
    low: float
    high: float
    verdict: str  # inside | outside: arithmetic alone

    @property
    def distance(self) -> float:
        """How far the published figure is from ours, in standard deviations of three-seed means."""
        spread = (self.high - self.low) / (2 * TOLERANCE)
        return (self.published - self.ours) / spread if spread else 0.0
