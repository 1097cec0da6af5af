"""Draws the charts of `--figures` with matplotlib as PNG, SVG or PDF; web/src/charts draws those of pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from eirkit.errors import MissingExtraError, UsageError
from eirkit.report.colors import color_of, number_of
from eirkit.report.document import Axis, Chart, Figure, Series, Value

# Metadata that would otherwise contain the time of creation.
METADATA: dict[str, dict[str, None]] = {
    ".svg": {"Date": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None},
}
MARKERS = ("o", "s", "^", "D", "*", "P", "v", "X")
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "eirkit",
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "pdf.fonttype": 42,
}
WIDTH, HEIGHT = 5.2, 3.0  # inches of one panel
NARROWEST = 2.2  # inches of a panel in a drawing of given width
LETTER = 0.075  # inches
LONG_TITLE = 28  # letters that fit beside a panel
LONG_NAME = 9  # letters that fit under a column
MOST_LETTERS = 66  # that fit under a panel on one line
MOST_INSIDE = 4  # series whose names leave room for the lines
MOST_COLUMNS = 3
MOST_NUMBERS = 16  # that stand beside one another under a panel
STRIDES = (1, 2, 4, 5, 8, 10)  # between numbers that are written, and ten, a hundred … times as many
PALE = 0.6  # opacity
FEW_POINTS = 24  # that are marked one by one on a line


Shades = tuple[float, float]


def save(item: Chart | Figure, path: Path, width: float | None = None) -> Path:
    """Draw a chart or figure into a file in the format of its extension, and return its path.

    Args:
        width: of the whole drawing in inches; by default as wide as its panels are best read.

    Raises:
        UsageError: the extension is not a supported format.
        MissingExtraError: matplotlib is not installed.
    """
    if path.suffix not in METADATA:
        raise UsageError(f"cannot draw {path.name!r}; end the name in {', '.join(METADATA)}")
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise MissingExtraError("drawing figures", "plot") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context(STYLE):
        canvas = Canvas(layout="constrained")
        if isinstance(item, Figure):
            _draw_panels(canvas, item.panels, item.title, width)
        else:
            _draw_panels(canvas, (item,), "", width)
        canvas.savefig(path, metadata=METADATA[path.suffix], dpi=200)
    return path


def _draw_panels(canvas: Any, charts: Sequence[Chart], title: str, width: float | None = None) -> None:
    columns = min(len(charts), MOST_COLUMNS if width is None else max(1, int(width / NARROWEST)))
    rows = -(-len(charts) // columns)
    heights = [0.9 + 0.24 * len(_places(chart)) * _slots(chart) for chart in charts if _is_flipped(chart)]
    natural, height = max(map(_width, charts)) * columns, max([HEIGHT, *heights]) * rows
    canvas.set_size_inches(width or natural, height if width is None else height * max(0.8, min(1.0, width / natural)))
    places = list(canvas.subplots(rows, columns, squeeze=False).flat)
    shades = shades_of(charts)
    is_shared = len({chart.y.title for chart in charts}) == 1  # then the panels of a row need it once
    for number, (place, chart) in enumerate(zip(places, charts, strict=False)):
        draw(place, chart, shades, narrow=width is not None)
        if is_shared and number % columns and not _is_flipped(chart):
            place.set_ylabel("")
    for place in places[len(charts) :]:
        place.set_visible(False)
    if title:
        canvas.suptitle(title)


def _width(chart: Chart) -> float:
    """Return the width of a panel, with room beside the axes for long names or a legend."""
    beside = max((len(str(place)) for place in _places(chart)), default=0) if _is_flipped(chart) else 0
    beside += max(len(series.name) for series in chart.series) + 4 if _has_legend_beside(chart) else 0
    return WIDTH + LETTER * max(0, beside - LONG_NAME)


def _has_legend_beside(chart: Chart) -> bool:
    return len(chart.series) > MOST_INSIDE and not _has(chart, "cells")


def shades_of(charts: Sequence[Chart]) -> Shades:
    """Return the smallest and largest cell value of all panels, so that they share one color scale."""
    values = [value for chart in charts for series in chart.series for value in series.value if value is not None]
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (low, high) if low < high else (min(0.0, low), max(1.0, high))


def draw(place: Any, chart: Chart, shades: Shades | None = None, *, narrow: bool = False) -> None:
    """Draw a chart into matplotlib axes.

    Args:
        shades: values of the lightest and the darkest color; by default the chart's own extremes.
        narrow: there is no room beside the axes, so a long legend stands below them.
    """
    flipped = _is_flipped(chart)
    stacks: dict[Value, float] = {}
    # Dashed lines last: what is below them shows through their gaps.
    for index, series in sorted(
        enumerate(chart.series), key=lambda one: one[1].dashed and one[1].mark in ("line", "step")
    ):
        if series.mark == "cells":
            _draw_cells(place, chart, series, shades or shades_of([chart]))
        else:
            _MARKS[series.mark](place, chart, series, index, stacks)
    along, across = (place.yaxis, place.xaxis) if flipped else (place.xaxis, place.yaxis)
    _set_axis(place, along, chart.x, "y" if flipped else "x", chart)
    _set_axis(place, across, chart.y, "x" if flipped else "y", chart)
    place.set_title(chart.title)
    if _has_legend_beside(chart) and narrow:
        place.legend(loc="upper center", bbox_to_anchor=(0.4, -0.32), ncols=2, fontsize=7)
    elif _has_legend_beside(chart):
        place.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    elif len(chart.series) > 1 and not _has(chart, "cells"):
        place.legend()


def _has(chart: Chart, *marks: str) -> bool:
    return any(series.mark in marks for series in chart.series)


def _is_banded(chart: Chart) -> bool:
    return chart.x.scale == "category" or _has(chart, "bars", "cells")


def _is_flipped(chart: Chart) -> bool:
    """Return True if categories are listed on the left, because their names are too long to fit below columns."""
    longest = max((len(str(place)) for place in _places(chart)), default=0)
    return _is_banded(chart) and not _has(chart, "line", "step", "cells") and longest > LONG_NAME


def _places(chart: Chart) -> list[Value]:
    found = list(dict.fromkeys(x for series in chart.series if series.mark != "rule" for x in series.x))
    numeric = all(isinstance(place, (int, float)) for place in found)
    return sorted(found, key=lambda place: float(place or 0)) if numeric else found


def _slots(chart: Chart) -> int:
    """Return how many series are drawn side by side at each category."""
    return 1 if chart.stacked else max(1, sum(series.mark in ("bars", "points") for series in chart.series))


def _along(chart: Chart, series: Series, index: int) -> list[float]:
    """Return the positions of a series along the x axis: its numbers, or the centers of its slots."""
    if not _is_banded(chart):
        return [float("nan") if x is None else float(x) for x in series.x]
    order = {place: position for position, place in enumerate(_places(chart))}
    slots = _slots(chart)
    offset = (index - (slots - 1) / 2) * 0.8 / slots if slots > 1 and series.mark in ("bars", "points") else 0.0
    return [order[x] + offset for x in series.x]


def _numbers(values: Sequence[Value]) -> list[float]:
    return [float("nan") if value is None else float(value) for value in values]


def _draw_line(place: Any, chart: Chart, series: Series, index: int, stacks: dict[Value, float]) -> None:
    x, y = _along(chart, series, index), _numbers(series.y)
    step, wider = "post" if series.mark == "step" else None, chart.overlaps[index]
    if series.low:
        place.fill_between(
            x, _numbers(series.low), _numbers(series.high), step=step, alpha=0.18, color=color_of(series, index), lw=0
        )
    drawn = {
        "color": color_of(series, index),
        "ls": "--" if series.dashed else "-",
        "lw": 1.5 + 2.5 * wider,  # lines on top of it leave its edges in sight
        "alpha": 0.55 if wider else 1.0,
        "label": series.name,
    }
    if step:
        place.step(x, y, where="post", **drawn)
    else:
        marker = MARKERS[number_of(series, index) % len(MARKERS)] if 2 < len(x) <= FEW_POINTS else None
        place.plot(x, y, marker=marker, ms=4 + 3 * wider, clip_on=not _fits(chart, y), **drawn)


def _fits(chart: Chart, values: Sequence[float]) -> bool:
    """Return whether all values lie within the bounds of the axis, so that nothing is drawn far outside."""
    low, high = chart.y.low, chart.y.high
    known = [value for value in values if not math.isnan(value)]
    return low is not None and high is not None and all(low <= value <= high for value in known)


def _draw_points(place: Any, chart: Chart, series: Series, index: int, stacks: dict[Value, float]) -> None:
    flipped, x, y = _is_flipped(chart), _along(chart, series, index), _numbers(series.y)
    face = "none" if series.dashed or series.pale else color_of(series, index)
    paler = PALE if series.pale else 1.0
    drawn = {
        "ls": "none",
        "marker": MARKERS[number_of(series, index) % len(MARKERS)],
        "mfc": face,
        "mec": color_of(series, index),
        "ms": 5,
        "alpha": paler,
        "label": series.name,
        "clip_on": not _fits(chart, y),  # a mark at 0% or 100% is drawn whole
    }
    place.plot(y if flipped else x, x if flipped else y, **drawn)
    if series.low:
        (place.hlines if flipped else place.vlines)(
            x, _numbers(series.low), _numbers(series.high), color=color_of(series, index), alpha=paler
        )


def _draw_bars(place: Any, chart: Chart, series: Series, index: int, stacks: dict[Value, float]) -> None:
    flipped, x, y = _is_flipped(chart), _along(chart, series, index), _numbers(series.y)
    below = [stacks.get(at, 0.0) if chart.stacked else 0.0 for at in series.x]
    size = 0.8 / _slots(chart)
    drawn = {"color": color_of(series, index), "alpha": 0.4 if series.dashed else 1.0, "label": series.name}
    if flipped:
        place.barh(x, y, height=size, left=below, **drawn)
    else:
        place.bar(x, y, width=size, bottom=below, **drawn)
    for at, value in zip(series.x, series.y, strict=True):
        stacks[at] = stacks.get(at, 0.0) + float(value or 0.0)
    if series.low and not chart.stacked:
        (place.hlines if flipped else place.vlines)(x, _numbers(series.low), _numbers(series.high), color="black", lw=1)


def _draw_cells(place: Any, chart: Chart, series: Series, shades: Shades) -> None:
    columns, rows = _places(chart), list(dict.fromkeys(series.y))
    grid = [[float("nan")] * len(columns) for _ in rows]
    for x, y, value in zip(series.x, series.y, series.value, strict=True):
        grid[rows.index(y)][columns.index(x)] = float("nan") if value is None else value
    drawn = place.imshow(grid, aspect="auto", cmap="Blues", vmin=shades[0], vmax=shades[1])
    steps = range(int(shades[0]), int(shades[1]) + 1)
    is_counted = len(steps) <= MOST_NUMBERS and all(value in steps for value in series.value if value is not None)
    place.figure.colorbar(drawn, ax=place, label=series.name, ticks=list(steps) if is_counted else None)
    place.set_yticks(range(len(rows)), [str(row) for row in rows])
    place.grid(visible=False)


def _draw_rules(place: Any, chart: Chart, series: Series, index: int, stacks: dict[Value, float]) -> None:
    drawn = {"color": color_of(series, index), "ls": "--" if series.dashed else "-", "lw": 1.2}
    for position, x in enumerate(series.x):
        y = series.y[position] if series.y else None
        label = series.name if position == 0 else None
        if y is None:
            place.axvline(float(x or 0), label=label, **drawn)
        elif _is_flipped(chart):
            place.axvline(float(y), label=label, **drawn)
        else:
            place.axhline(float(y), label=label, **drawn)


_MARKS = {
    "line": _draw_line,
    "step": _draw_line,
    "points": _draw_points,
    "bars": _draw_bars,
    "rule": _draw_rules,
}


def _set_axis(place: Any, side: Any, axis: Axis, letter: str, chart: Chart) -> None:
    from matplotlib.ticker import FuncFormatter, LogFormatter, PercentFormatter

    is_long = letter == "y" and len(axis.title) > LONG_TITLE
    getattr(place, f"set_{letter}label")(axis.title.replace(", ", ",\n", 1) if is_long else axis.title)
    if axis is chart.x and _is_banded(chart):
        named = named_places(_places(chart)) if letter == "x" else dict(enumerate(map(str, _places(chart))))
        is_crowded = letter == "x" and sum(len(name) + 2 for name in named.values()) > MOST_LETTERS
        turned = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if is_crowded else {}
        getattr(place, f"set_{letter}ticks")(list(named), list(named.values()), **turned)
        if letter == "y":
            place.invert_yaxis()
        return
    if axis.scale == "log":
        getattr(place, f"set_{letter}scale")("log")
        side.set_major_formatter(FuncFormatter(lambda value, _: power(value)))
        side.set_minor_formatter(LogFormatter())  # as matplotlib labels them, but in plain text
    if axis.percent:
        side.set_major_formatter(PercentFormatter(1.0))
    if not _has(chart, "cells"):
        getattr(place, f"set_{letter}lim")(axis.low, axis.high)


def named_places(places: Sequence[Value]) -> dict[int, str]:
    """Return which categories are labeled, by position: evenly spaced ones if there are many numbers, else all."""
    if len(places) <= MOST_NUMBERS or not all(isinstance(place, (int, float)) for place in places):
        return dict(enumerate(map(str, places)))
    strides = (stride * 10**tens for tens in count() for stride in STRIDES)
    stride = next(stride for stride in strides if len(places) <= MOST_NUMBERS * stride)
    return {position: str(place) for position, place in enumerate(places) if float(place or 0) % stride == 0}


def power(value: float) -> str:
    """Return the label of a tick on a logarithmic axis: 0.01, 1,000, 10⁶."""
    exponent = round(math.log10(value))
    if -4 < exponent < 4 or not math.isclose(value, 10.0**exponent):
        return f"{value:,.0f}" if value >= 1 else f"{value:g}"
    return "10" + str(exponent).translate(RAISED)


RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
