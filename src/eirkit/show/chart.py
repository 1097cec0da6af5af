"""Chart data types: Axis, Series, Chart and Figure, with their JSON and CSV forms."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from eirkit.measures import Measure
from eirkit.show.table import Cell, Column, Table, csv_cell

Value = float | str | None
Scale = Literal["linear", "log", "category"]
Mark = Literal["line", "step", "points", "bars", "cells", "rule"]
_KEYS = ("series", "x", "y", "low", "high", "value")


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a chart; a bound of None is derived from the data."""

    title: str
    scale: Scale = "linear"
    low: float | None = None
    high: float | None = None
    percent: bool = False  # shares, shown as 40% rather than 0.4

    @classmethod
    def of(cls, measure: Measure) -> Self:
        """Return the axis for a measure; an axis of shares goes from 0 to 1."""
        if measure.unit == "share":
            return cls(f"{measure.label}, share of {measure.of}", low=0.0, high=1.0, percent=True)
        return cls(measure.heading, low=0.0)


@dataclass(frozen=True, slots=True)
class Series:
    """One series of points, each with an optional interval.

    `cells` colours a place by `value`; a `rule` is a vertical line at each x where y is empty, else a horizontal one.
    """

    name: str
    mark: Mark
    x: tuple[Value, ...]
    y: tuple[Value, ...] = ()
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    value: tuple[float | None, ...] = ()
    dashed: bool = False  # published figures, bounds, references: anything that eirkit did not measure
    measure: str = ""  # the identifier of the measure whose label is the name
    colour: str = ""  # a token of `eirkit.show.colours`; empty: the next colour of the chart

    @classmethod
    def of(cls, measure: Measure, mark: Mark, x: tuple[Value, ...], y: tuple[Value, ...]) -> Self:
        """Return the values of a measure under its label, in its colour."""
        return cls(measure.label, mark, x, y, measure=measure.id, colour=measure.colour)

    def __post_init__(self) -> None:
        for other in (self.y, self.low, self.high, self.value):
            if other and len(other) != len(self.x):
                raise ValueError(f"series {self.name!r} has {len(self.x)} places and {len(other)} figures")


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart, with a description in words for readers who cannot see it."""

    id: str  # words joined by hyphens: an anchor in a page, a file name
    title: str
    alt: str  # what a reader should take from it, figures included
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    note: str = ""
    stacked: bool = False  # bars of one place stand on each other, not side by side

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def csv(self) -> str:
        """Return the data of the chart as CSV, one line for each point."""
        written = io.StringIO()
        lines = csv.writer(written, lineterminator="\n")
        lines.writerow(map(csv_cell, ["series", self.x.title, self.y.title, "low", "high", "value"]))
        for row in self._rows():
            lines.writerow(map(csv_cell, row.values()))
        return written.getvalue()

    def data(self) -> Table:
        """Return the data of the chart as a table; columns that no series uses are left out."""
        titles = ("series", self.x.title, self.y.title, "low", "high", "value")
        axes = (None, self.x, self.y, self.y, self.y, None)
        rows = self._rows()
        shown = [
            Column(key, title, digits=3, percent=axis is not None and axis.percent)
            for key, title, axis in zip(_KEYS, titles, axes, strict=True)
            if any(row[key] is not None for row in rows) and (key != "series" or len(self.series) > 1)
        ]
        return Table(f"{self.id}-data", f"Data behind “{self.title}”", tuple(shown), tuple(rows))

    def _rows(self) -> list[dict[str, Cell]]:
        rows: list[dict[str, Cell]] = []
        for one in self.series:
            empty = (None,) * len(one.x)
            columns = (one.x, one.y or empty, one.low or empty, one.high or empty, one.value or empty)
            rows += [dict(zip(_KEYS, (one.name, *point), strict=True)) for point in zip(*columns, strict=True)]
        return rows


@dataclass(frozen=True, slots=True)
class Figure:
    """Charts shown side by side under one title: small multiples, or the panels of a published figure."""

    id: str
    title: str
    panels: tuple[Chart, ...]
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
