"""A small bar chart for terminals, and the same curve as a figure file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eirkit.errors import MissingExtraError, UsageError

EIGHTHS = " ▁▂▃▄▅▆▇█"
METADATA: dict[str, dict[str, None]] = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}


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
    if path.suffix not in METADATA:
        raise UsageError(f"cannot draw {path.name!r}; end the name in {', '.join(METADATA)}")
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("--plot", "plot") from None
    cuts = [t for t, bits in enumerate(lower) if bits is not None]
    low = [bits for bits in lower if bits is not None]
    high = [bits for bits in upper if bits is not None]
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.fill_between(cuts, low, high, step="post", alpha=0.3, linewidth=0)
    axes.step(cuts, high, where="post", linewidth=1.5)
    axes.set(title=title, xlabel="cut after step t", ylabel="bits that must survive", ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "eirkit"}):  # equal curves give equal files
        figure.savefig(path, metadata=METADATA[path.suffix])
