"""A small bar chart for terminals, and the same curve as a figure file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eirkit.show.chart import Axis, Chart, Series
from eirkit.show.drawing import save

EIGHTHS = " ▁▂▃▄▅▆▇█"


def bars(values: Sequence[float | None], height: int = 8) -> list[str]:
    """Return lines of a bar chart, one column a value, with the top and bottom of the scale on the left."""
    top = max((value for value in values if value is not None), default=0.0) or 1.0
    label = f"{top:.1f}"
    lines = []
    for row in range(height - 1, -1, -1):
        cells = (" " if value is None else EIGHTHS[_eighths(value / top * height - row)] for value in values)
        edge = label if row == height - 1 else "0" if row == 0 else ""
        lines.append(f"{edge:>{len(label)}} │{''.join(cells)}")
    return lines


def _eighths(share: float) -> int:
    # A value above zero always shows, so that "nothing" and "little" look different.
    return min(8, max(round(share * 8), 0))


def save_curve(path: Path, lower: Sequence[float | None], upper: Sequence[float | None], title: str) -> None:
    """Draw bits over cuts; a band where lower and upper bounds differ."""
    known = [(float(t), low, high) for t, (low, high) in enumerate(zip(lower, upper, strict=True)) if low is not None]
    cuts, low, high = (tuple(column) for column in zip(*known, strict=True))
    curve = Series("bits", "step", cuts, high, low, high)
    axes = Axis("cut after step t"), Axis("bits that must survive", low=0.0)
    peak = max((bits for bits in high if bits is not None), default=0.0)
    save(Chart("curve", title, f"At most {peak:.1f} bits must survive.", *axes, (curve,)), path)
