"""What the figures of studies share: series with the range of three-seed means around them."""

from __future__ import annotations

from collections.abc import Sequence

from eirkit.report.chart import Mark, Series, Value

Level = tuple[float, float, float] | None  # ours, low, high; None: nothing to show


def banded(name: str, mark: Mark, x: Sequence[Value], levels: Sequence[Level], *, is_share: bool = False) -> Series:
    """Return levels with their ranges; those of a share stay between 0 and 1."""
    shown = [(place, level) for place, level in zip(x, levels, strict=True) if level is not None]
    ours, low, high = ([level[part] for _, level in shown] for part in range(3))
    if is_share:
        low, high = [max(0.0, value) for value in low], [min(1.0, value) for value in high]
    return Series(name, mark, tuple(place for place, _ in shown), tuple(ours), tuple(low), tuple(high))


def numbers(series: Series) -> list[float]:
    """Return the heights of a series."""
    return [float(value) for value in series.y if isinstance(value, (int, float))]
