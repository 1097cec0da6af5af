"""The heat map of the viewer: a figure by columns of a table, or the most frequent value of a column of texts.

Each cell is the mean over runs of each run's own value, as in the summary of a sweep. Unless asked otherwise, a row is
one combination of settings, so that only seeds, repeats and tasks are pooled; every cell says what it pools.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eirkit.errors import UsageError
from eirkit.lacuna.findings.statistics import mean
from eirkit.report.document import Axis, Chart, Series
from eirkit.report.table import counted, listed
from eirkit.report.viewer.documents import Grid, GridLayout
from eirkit.report.viewer.tables import NOTHING, Coded, Field, Places, Query, RowTable

MOST_PLACES = 40  # on an axis; beyond it names cannot be read
MOST_NAMED = 4  # values of a setting that a cell pools
FAILURE = "failure"
VALUES = ("accuracy", "kept_share", "resolved", "peak_demand_tokens", "later_used_peak")  # what is shown first
ACROSS = ("arm", "h", "clipping_group", "resolved")  # what stands across, if it varies


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a heat map."""

    x: str
    y: tuple[str, ...]
    value: str

    @property
    def keys(self) -> tuple[str, ...]:
        return self.x, *self.y


def layout_of(table: RowTable, query: Query, asked: Mapping[str, str]) -> Layout | None:
    """Return the asked columns, completed by those that say most; None if there is nothing to lay out."""
    figures = [
        field.key for field in table.fields if field.key == FAILURE or (field.kind != "text" and field.part == "result")
    ]
    value = next((key for key in (asked.get("value", ""), *VALUES, *figures) if key in figures), "")
    settings = _needed(
        table, query, [field.key for field in table.fields if field.part == "setting" and field.key != value]
    )
    facets = [field.key for field in table.fields if field.facet and field.key not in (value, FAILURE)]
    chosen = table.choose(query)
    varying = [key for key in facets if len(np.unique(table.columns.coded(key).codes[chosen])) > 1]
    ranked = [*(key for key in ACROSS if key in varying), *settings, *varying, *facets]
    x = next((key for key in (asked.get("x", ""), *ranked) if key in facets), "")
    others = [key for key in settings if key != x] or [key for key in (*varying, *facets) if key != x][:1]
    y = tuple(key for key in asked.get("y", "").split(",") if key in facets and key != x) or tuple(others)
    return Layout(x, y, value) if value and x and y else None


def _needed(table: RowTable, query: Query, keys: Sequence[str]) -> list[str]:
    """Return the settings without which runs of different settings would be pooled; one that follows is left out."""
    kept = list(keys)
    whole = table.count_groups(query, kept)
    for key in reversed(keys):  # what follows from others, such as a profile from its memory, stands after them
        fewer = [one for one in kept if one != key]
        if table.count_groups(query, fewer) == whole:
            kept = fewer
    return kept


def heat(table: RowTable, query: Query, layout: Layout) -> Grid:
    """Return the heat map; every cell with its number of runs, what it pools and the filters that choose its runs."""
    across, *down = (table.field(key) for key in layout.keys)
    figure = table.field(layout.value)
    if figure.kind == "text" and not figure.facet:
        raise UsageError(f"{layout.value} is no figure; choose a column of numbers")
    groups = table.groups(query, layout.keys)
    shown_x, shown_y = _kept({key[:1] for key in groups}, [across]), _kept({key[1:] for key in groups}, down)
    cells = [(key, rows) for key, rows in groups.items() if key[:1] in shown_x and key[1:] in shown_y]
    labels, values = _figures(table, figure, [rows for _, rows in cells])
    places = [(key[0], _name(key[1:], down)) for key, _ in cells]
    series = Series(
        figure.title, "cells", tuple(x for x, _ in places), tuple(y for _, y in places), value=tuple(values)
    )
    told = [(place, value) for place, value in zip(places, values, strict=True) if value is not None]
    titles = across.title, " and ".join(field.title for field in down)
    chart = Chart(
        "heat",
        f"{figure.title} by {titles[0]} and {titles[1]}",
        _words(figure, told, labels),
        Axis(titles[0], "category"),
        Axis(titles[1], "category"),
        (series,),
    )
    pools = _Pools(table, query, layout)
    return Grid(
        chart=chart,
        runs=tuple(len(rows) for _, rows in cells),
        noun=table.noun,
        over=tuple(pools.words(rows) for _, rows in cells),
        filters=tuple(dict(zip(layout.keys, key, strict=True)) for key, _ in cells),
        mixed=tuple(pools.mixed([rows for _, rows in cells])),
        left_out=len(groups) - len(cells),
        x=tuple(key[0] for key in shown_x),
        y=tuple(_name(key, down) for key in shown_y),
        layout=GridLayout(layout.x, ",".join(layout.y), layout.value),
        kind=figure.kind,
        labels=tuple(labels),
    )


def _figures(table: RowTable, figure: Field, parts: Sequence[Places]) -> tuple[list[str], list[float | None]]:
    """Return the mean of each cell, or of a column of texts the most frequent label and its share."""
    if figure.kind != "text":
        numbers = table.columns.numbers(figure.key)
        return [], [mean(cell[~np.isnan(cell)].tolist()) for cell in (numbers[rows] for rows in parts)]
    usual = [_usual(table.columns.coded(figure.key), rows) for rows in parts]
    return [name for name, _ in usual], [share for _, share in usual]


class _Pools:
    """Says over which settings and replicates the runs of a cell differ."""

    def __init__(self, table: RowTable, query: Query, layout: Layout) -> None:
        self._noun = table.noun
        free = [field.key for field in table.fields if field.part == "setting" and field.key not in layout.keys]
        needed = _needed(table, query, [*layout.keys, *free])
        named = [field for field in table.fields if field.key in needed and field.key not in layout.keys]
        again = [field for field in table.fields if field.part == "replicate"]
        self._columns = [(one, table.columns.coded(one.key)) for one in (*named, *again)]

    def mixed(self, parts: Sequence[Places]) -> list[str]:
        """Return the titles of the settings that some cell pools."""
        settings = [(one.title, coded) for one, coded in self._columns if one.part == "setting"]
        return [title for title, coded in settings if any(len(np.unique(coded.codes[rows])) > 1 for rows in parts)]

    def words(self, rows: Places) -> str:
        """Return the number of runs of a cell and what they differ in, such as `6 runs over 3 seeds`."""
        parts = []
        for one, coded in self._columns:
            found = np.unique(coded.codes[rows])
            if len(found) > 1 and one.part == "setting":
                parts.append(f"{one.title} {listed(sorted((coded.labels[c] for c in found), key=_rank), MOST_NAMED)}")
            elif len(found) > 1:
                parts.append(counted(len(found), one.title))
        return counted(len(rows), self._noun) + (f" over {', '.join(parts)}" if parts else "")


def _name(key: Sequence[str], fields: Sequence[Field]) -> str:
    """Return the name of a row: its settings, each number with the name of its column."""
    return " · ".join(
        f"no {one.title}" if name == NOTHING else f"{one.title} = {name}" if one.kind == "number" else name
        for name, one in zip(key, fields, strict=True)
    )


def _usual(coded: Coded, rows: Places) -> tuple[str, float]:
    """Return the most frequent label of some rows, the first of several, and its share of them."""
    counts = np.bincount(coded.codes[rows], minlength=len(coded.labels))
    most = int(counts.argmax())
    return coded.labels[most], float(counts[most]) / len(rows)


def _kept(keys: set[tuple[str, ...]], fields: Sequence[Field]) -> list[tuple[str, ...]]:
    """Return the first places of an axis, in the order of its columns."""

    def order(field: Field, name: str) -> tuple[int, int, float, str]:
        known = field.order.index(name) if name in field.order else len(field.order)
        return known, *_rank(name)

    places = sorted(keys, key=lambda key: [order(field, name) for field, name in zip(fields, key, strict=True)])
    return places[:MOST_PLACES]


def _rank(label: str) -> tuple[int, float, str]:
    """Return a sort key that orders numbers by value and puts words after them."""
    try:
        return 0, float(label), label
    except ValueError:
        return 1, 0.0, label


def _words(figure: Field, found: Sequence[tuple[tuple[str, str], float]], labels: Sequence[str]) -> str:
    if labels:
        counts = ", ".join(f"{name} in {count}" for name, count in Counter(labels).most_common())
        return f"{len(labels)} cells by the most frequent {figure.title}: {counts}."
    if not found:
        return f"No run has a value of {figure.title}."
    low, high = min(found, key=lambda one: one[1]), max(found, key=lambda one: one[1])
    shown = [f"{value:.1%}" if figure.kind in ("share", "flag") else f"{value:,.4g}" for _, value in (low, high)]
    return (
        f"{len(found)} cells; {figure.title} from {shown[0]} at {' / '.join(low[0])} to {shown[1]} at "
        f"{' / '.join(high[0])}."
    )
