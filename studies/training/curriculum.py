"""Defines the two training phases and the evaluations logged during training.

The first phase has typical tasks; the second adds more references and wider records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from eirkit.lacuna.models.network import layout as f
from studies.training.examples import Focus, Shape


@dataclass(frozen=True, slots=True)
class Kind:
    """One sort of batch."""

    shape: Shape
    rows: int
    share: float


@dataclass(frozen=True, slots=True)
class Phase:
    """Some batches under one course of the learning rate."""

    begin: int
    end: int
    rate: float  # at its highest
    warm_up: int
    kinds: tuple[Kind, ...]

    def rate_at(self, batch: int) -> float:
        """Return the learning rate: a linear rise, then half a cosine down to a hundredth."""
        risen = batch - self.begin
        done = (risen - self.warm_up) / max(1, self.end - self.begin - self.warm_up)
        fall = 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, max(0.0, done))))
        return self.rate * min(1.0, (risen + 1) / self.warm_up) * fall


NARROW = Shape(1, 2, (0.40, 0.34, 0.20, 0.06))
PAIRS = Shape(2, 2, (0.10, 0.10, 0.10, 0.70))
WIDE = Shape(4, 4, (0.15, 0.15, 0.15, 0.55), 20)
MANY = Shape(1, 4, (0.55, 0.35, 0.05, 0.05))
PAIRED_SUMS = Shape(2, 2, (0.30, 0.15, 0.10, 0.45))
WIDE_SUMS = Shape(4, 4, (0.35, 0.15, 0.10, 0.40), 20)

PHASES = (
    Phase(0, 18_000, 3e-3, 1_000, (Kind(NARROW, 4096, 0.72), Kind(PAIRS, 2048, 0.20), Kind(WIDE, 768, 0.08))),
    Phase(
        18_000,
        34_500,
        1.5e-3,
        300,
        (
            Kind(NARROW, 4096, 0.40),
            Kind(MANY, 3072, 0.20),
            Kind(PAIRED_SUMS, 2048, 0.22),
            Kind(WIDE_SUMS, 768, 0.18),
        ),
    ),
)

_COUNTS = (4, 8, 16)
EXAMS = {
    **{
        f"{f.OPERATORS[which]}-{records}": (NARROW, Focus(which, records, 1 if which == f.COPY else 2, 4))
        for which in (f.SUM, f.MAX, f.COPY)
        for records in _COUNTS
    },
    **{f"top2-{records}": (PAIRS, Focus(f.TOP, records, 2, 4)) for records in _COUNTS},
    "top4-16": (WIDE, Focus(f.TOP, 16, 2, 4, 4)),
    "sum-16-fan3": (MANY, Focus(f.SUM, 16, 3, 4)),
    "sum-16-fan4": (MANY, Focus(f.SUM, 16, 4, 4)),
    "sum-16-wide2": (PAIRS, Focus(f.SUM, 16, 2, 4)),
    "sum-16-wide3": (WIDE, Focus(f.SUM, 16, 2, 4, 3)),
    "sum-16-3digits": (NARROW, Focus(f.SUM, 16, 2, 3)),
}
