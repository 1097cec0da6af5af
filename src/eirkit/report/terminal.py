"""Prints documents, tables and charts in a terminal: what is folded, shortened or left out if it is narrow.

A table that is too wide first folds its headings, then shortens long names in their middle, then leaves out columns by
their declared priority, then continues below itself, and as a last resort prints each row as lines of `column  value`.
No row is cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal, NamedTuple

from rich.cells import cell_len

from eirkit.report.document import Chart, Document, Item, Listing, Section, Series, charts_of
from eirkit.report.table import Column, Table, clean, one_line

Style = Literal["", "bold", "dim"]

GAP = "  "  # between columns
ELLIPSIS = "…"
LONG_NAME, SHORTEST_NAME = 20, 12  # cells that a shortened name keeps, before and after columns are left out
NARROWEST_TEXT = 24  # cells of a wrapped column
MOST_PARTS = 3  # tables below each other, before rows are printed as records
CHART_COLUMNS, CHART_LINES = 100, 8
_JOINED = "\xa0=\xa0"  # keeps `h = 4` on one line
EIGHTHS = " ▁▂▃▄▅▆▇█"


class Line(NamedTuple):
    """A line of output without control characters."""

    text: str
    style: Style = ""


def document_lines(document: Document, width: int, *, explain: bool = False) -> Iterator[Line]:
    """Yield the lines of a document: its answer, its sections, and last the next command.

    Args:
        explain: below each table also say what its headings mean, and give notes that are longer than a line.
    """
    said = document.said()
    for place, sentence in enumerate(said):
        yield from (Line(line, "" if place else "bold") for line in wrapped(sentence, width))
    for place, section in enumerate(document.sections):
        yield from [Line("")] if said or place else []
        yield from _section_lines(section, width, explain=explain)
    if document.next:
        yield Line("")
        yield Line(f"next: {clean(document.next)}")  # never wrapped, so that it can be copied


def _section_lines(section: Section, width: int, *, explain: bool) -> Iterator[Line]:
    if section.title:
        yield from (Line(line, "bold") for line in wrapped(section.title, width))
    for paragraph in section.words:
        yield from map(Line, wrapped(paragraph, width))
    for place, item in enumerate(section.items):
        if place or section.words or section.title:
            yield Line("")
        yield from item_lines(item, width, explain=explain)


def item_lines(item: Item, width: int, *, explain: bool = False) -> Iterator[Line]:
    """Yield the lines of a table, chart, figure or listing."""
    if isinstance(item, Table):
        yield from table_lines(item, width, explain=explain)
    elif isinstance(item, Listing):
        yield from ([Line(plain(item.title), "bold")] if item.title else [])
        yield from (Line(clean(line)) for line in item.text.splitlines())
    else:
        for chart in charts_of(item):
            yield from chart_lines(chart, width)


# --- tables -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Grid:
    """Some columns of a table with their cells as text."""

    columns: tuple[Column, ...]
    cells: tuple[tuple[str, ...], ...]  # by column
    right: tuple[bool, ...]
    folded: bool = False  # headings may take several lines

    def take(self, places: Sequence[int]) -> _Grid:
        return _Grid(
            tuple(self.columns[place] for place in places),
            tuple(self.cells[place] for place in places),
            tuple(self.right[place] for place in places),
            self.folded,
        )

    def widths(self) -> list[int]:
        both = zip(self.columns, self.cells, strict=True)
        return [max(cell_len(text) for text in (*self._head(column), *cells)) for column, cells in both]

    def _head(self, column: Column) -> Sequence[str]:
        title = plain(column.title)
        return title.split(" ") if self.folded else (title,)


def table_lines(table: Table, width: int, *, explain: bool = False) -> Iterator[Line]:
    """Yield the lines of a table, with its title above and a note of one line below, or all that explains it."""
    yield from (Line(line, "bold") for line in wrapped(table.title, width))
    lines = [[plain(cell) for cell in line] for line in table.lines()]
    by_column = tuple(tuple(line[place] for line in lines) for place in range(len(table.columns)))
    whole = _Grid(table.columns, by_column, tuple(map(table.is_numeric, table.columns)))
    if _fit(whole, width, LONG_NAME) is None:
        whole = replace(whole, folded=True)
    shown, left_out = _fewer_columns(whole, width)
    parts = _parts(shown, width)
    if len(parts) > MOST_PARTS or any(_fit(part, width, SHORTEST_NAME) is None for part in parts):
        yield from _records(whole, width)
        left_out = []
    else:
        for place, part in enumerate(parts):
            yield from [Line("")] if place else []
            yield from _grid_lines(part, _fit(part, width, LONG_NAME) or _fit(part, width, SHORTEST_NAME) or [])
    yield from _below(table, left_out, width, explain=explain)


def _fewer_columns(grid: _Grid, width: int) -> tuple[_Grid, list[str]]:
    """Return the columns that fit, and the titles of those left out."""
    places, left_out = list(range(len(grid.columns))), list[int]()
    while _fit(grid.take(places), width, LONG_NAME) is None:
        if not (optional := [place for place in places if grid.columns[place].priority]):
            break
        least = max(optional, key=lambda place: (grid.columns[place].priority, place))
        places.remove(least)
        left_out.append(least)
    return grid.take(places), [grid.columns[place].title for place in sorted(left_out)]


def _parts(grid: _Grid, width: int) -> list[_Grid]:
    """Split a table into parts that fit, each with the columns that identify a row: the first, and those of names."""
    if _fit(grid, width, SHORTEST_NAME) is not None:
        return [grid]
    names = [place for place, column in enumerate(grid.columns) if not place or column.role == "name"]
    parts: list[list[int]] = [[]]
    for place in range(len(grid.columns)):
        if place not in names:
            if parts[-1] and _fit(grid.take([*names, *parts[-1], place]), width, SHORTEST_NAME) is None:
                parts.append([])
            parts[-1].append(place)
    return [grid.take(sorted([*names, *part])) for part in parts]


def _fit(grid: _Grid, width: int, shortest_name: int) -> list[int] | None:
    """Return column widths that fit; None if there are none."""
    found = grid.widths()
    least = [
        min(natural, NARROWEST_TEXT if column.role == "text" else max(shortest_name, cell_len(column.title)))
        if column.role != "value"
        else natural
        for column, natural in zip(grid.columns, found, strict=True)
    ]
    excess = sum(found) + len(GAP) * (len(found) - 1) - width
    for role in ("text", "name"):
        for place in sorted(range(len(found)), key=lambda place: least[place] - found[place]):
            if excess > 0 and grid.columns[place].role == role:
                saved = min(excess, found[place] - least[place])
                found[place] -= saved
                excess -= saved
    return None if excess > 0 else found


def _grid_lines(grid: _Grid, widths: Sequence[int]) -> Iterator[Line]:
    folded = [
        [shortened(line, wide) for line in wrapped(column.title, wide)]
        for column, wide in zip(grid.columns, widths, strict=True)
    ]
    lines = max(map(len, folded))
    heads = [[*[""] * (lines - len(head)), *head] for head in folded]  # at the bottom, beside the figures
    yield from (Line(line, "bold") for line in _row(heads, grid, widths))
    yield Line("─" * (sum(widths) + len(GAP) * (len(widths) - 1)))
    for row in zip(*grid.cells, strict=True):
        cells = [
            (wrapped(cell, wide, cut=True) or [""]) if column.role == "text" else [shortened(cell, wide)]
            for column, cell, wide in zip(grid.columns, row, widths, strict=True)
        ]
        yield from map(Line, _row(cells, grid, widths))


def _row(cells: Sequence[Sequence[str]], grid: _Grid, widths: Sequence[int]) -> Iterator[str]:
    for line in zip_longest(*cells, fillvalue=""):
        padded = (_padded(cell, wide, right=right) for cell, wide, right in zip(line, widths, grid.right, strict=True))
        yield GAP.join(padded).rstrip()


def _records(grid: _Grid, width: int) -> Iterator[Line]:
    titles = [plain(column.title) for column in grid.columns]
    longest = max(map(cell_len, titles), default=0)
    for number, row in enumerate(zip(*grid.cells, strict=True), 1):
        yield Line(f"row {number:,}")
        for title, cell in zip(titles, row, strict=True):
            head = f"  {_padded(title, longest, right=False)}  "
            first, *more = wrapped(cell, max(NARROWEST_TEXT, width - cell_len(head)), cut=True) or [""]
            yield Line(f"{head}{first}".rstrip())
            yield from (Line(f"{' ' * cell_len(head)}{part}") for part in more)


def _below(table: Table, left_out: Sequence[str], width: int, *, explain: bool) -> Iterator[Line]:
    meanings = table.meanings(left_out) if explain else ""
    note = table.note if explain or len(wrapped(table.note, width)) <= 1 else ""
    hidden = f"not shown at this width: {', '.join(left_out)} (--format csv has every column)" if left_out else ""
    for text in filter(None, (meanings, hidden, note)):
        yield from (Line(line, "dim") for line in wrapped(text, width))


# --- charts -----------------------------------------------------------------------------------------------------------


def chart_lines(chart: Chart, width: int) -> Iterator[Line]:
    """Yield a chart as bars of its first curve; a chart without a numeric curve is described in words."""
    yield from ([Line(plain(chart.title), "bold")] if chart.title else [])
    curves = [
        series
        for series in chart.series
        if series.mark in ("step", "line", "bars")
        and all(isinstance(value, (int, float)) or value is None for value in series.y)
        and any(series.y)
    ]
    if not curves or chart.x.scale == "category":
        yield from map(Line, wrapped(chart.alt, width))
        return
    yield from map(Line, _curve(chart, curves[0], width))


def _curve(chart: Chart, series: Series, width: int) -> Iterator[str]:
    values = [value if isinstance(value, (int, float)) else None for value in series.y]
    peak = max(value for value in values if value is not None)
    top = f"{peak:,}" if isinstance(peak, int) else f"{peak:,.1f}"
    room = min(CHART_COLUMNS, width - len(top) - len(" │  ") - cell_len(chart.x.title))
    several = -(-len(values) // max(1, room))
    groups = (values[at : at + several] for at in range(0, len(values), several))
    columns = [max((value for value in group if value is not None), default=None) for group in groups]
    edges = [top, *[""] * (CHART_LINES - 2), "0"]
    for edge, line in zip(edges, bars(columns, CHART_LINES), strict=True):
        yield f"{edge:>{len(top)}} │{line}".rstrip()
    margin = " " * (len(top) + 1)
    first, last = (f"{value:g}" if isinstance(value, float) else str(value) for value in (series.x[0], series.x[-1]))
    ticks = first + last.rjust(len(columns) - len(first)) if len(columns) > len(first + last) else first
    yield f"{margin}└{'─' * len(columns)}"
    yield f"{margin} {ticks}  {plain(chart.x.title)}"
    if several > 1:
        yield f"{margin} (each column shows the largest of {several} values)"


def bars(values: Sequence[float | None], height: int = CHART_LINES) -> list[str]:
    """Return the lines of a bar chart, one column for each value."""
    top = max((value for value in values if value is not None), default=0.0) or 1.0
    return [
        "".join(
            " " if value is None else EIGHTHS[min(8, max(round((value / top * height - row) * 8), 0))]
            for value in values
        )
        for row in range(height - 1, -1, -1)
    ]


def spark(values: Sequence[float]) -> str:
    """Return a bar chart that is one line high."""
    top = max(values, default=0.0) or 1.0
    return "".join(EIGHTHS[round(8 * value / top)] for value in values)


# --- text -------------------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Return a text on one line without terminal control characters."""
    return one_line(clean(text))


def wrapped(text: str, width: int, *, cut: bool = False) -> list[str]:
    """Return a text as lines of at most `width` cells, broken between words.

    Args:
        cut: also break a word that is longer than a line; without it such a word has a line of its own.
    """
    lines: list[str] = []
    for word in _words(plain(text).replace(" = ", _JOINED), width if cut else None):
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return [line.replace(_JOINED, " = ") for line in lines]


def _words(text: str, longest: int | None) -> Iterable[str]:
    for word in text.split(" ") if text else ():
        while longest is not None and cell_len(word) > longest:
            head = _head(word, longest)
            yield head
            word = word[len(head) :]
        yield word


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` cells by cutting its middle, since names differ at their ends."""
    if cell_len(text) <= most:
        return text
    tail = (most - 1) * 2 // 3
    return f"{_head(text, most - 1 - tail)}{ELLIPSIS}{_head(text[::-1], tail)[::-1]}"


def may_be(shown: str, name: str) -> bool:
    """Return True if `shown` may be a shortened form of a name."""
    head, gap, tail = shown.partition(ELLIPSIS)
    return bool(gap) and len(name) > len(head) + len(tail) and name.startswith(head) and name.endswith(tail)


def _head(text: str, cells: int) -> str:
    """Return the longest prefix that fits, at least one character."""
    end = min(len(text), cells)
    while end > 1 and cell_len(text[:end]) > cells:
        end -= 1
    return text[: max(1, end)]


def _padded(text: str, width: int, *, right: bool) -> str:
    space = " " * max(0, width - cell_len(text))
    return space + text if right else text + space
