"""The types of a result: Document, Page, Section, Chart, Figure, Listing, and their JSON.

`showing.py` renders a document, `html.py` a page as one file; `exports.py` writes tables and charts for papers.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

import msgspec

from eirkit.measures import Measure
from eirkit.report.table import Cell, Column, Table, csv_cell

Value = float | int | str | None
Scale = Literal["linear", "log", "category"]
Mark = Literal["line", "step", "points", "bars", "cells", "rule"]
MOST_COINCIDENT = 4  # pairs of lines that a note names
LEAST_COINCIDENT = 0.2  # of the pieces of a line: if less of it is covered, it can be seen without being drawn wider
_KEYS = ("series", "x", "y", "low", "high", "value")


def plain_data(data: object) -> Any:
    """Return structs and all that they contain as plain dicts, lists, texts and numbers; those of NumPy included."""
    return msgspec.to_builtins(data, str_keys=True, enc_hook=float)


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a chart; a bound of None is derived from the data."""

    title: str
    scale: Scale = "linear"
    low: float | int | None = None
    high: float | int | None = None
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

    `cells` colors a place by `value`; a `rule` is a vertical line at each x where y is empty, else a horizontal one.
    """

    name: str
    mark: Mark
    x: tuple[Value, ...]
    y: tuple[Value, ...] = ()
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    value: tuple[float | None, ...] = ()
    dashed: bool = False  # published figures, bounds, references: anything that eirkit did not measure
    pale: bool = False  # a companion of the series before it: its color, paler
    measure: str = ""  # the identifier of the measure whose label is the name
    color: str = ""  # a token of `eirkit.report.colors`; empty: the next color of the chart

    @classmethod
    def of(cls, measure: Measure, mark: Mark, x: tuple[Value, ...], y: tuple[Value, ...]) -> Self:
        """Return the values of a measure under its label, in its color."""
        return cls(measure.label, mark, x, y, measure=measure.id, color=measure.color)

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
    kind: Literal["chart"] = "chart"

    @property
    def overlaps(self) -> list[int]:
        """For each series, how many later ones run along much of it; it is drawn wider, so that all can be seen."""
        return [len(others) for others in self._along()]

    @property
    def coincident(self) -> str:
        """Which lines run along each other, in a sentence; empty if none do."""
        pairs = [
            (self.series[place], self.series[other]) for place, found in enumerate(self._along()) for other in found
        ]
        told = [f"{a.name} and {b.name}{'' if (a.x, a.y) == (b.x, b.y) else ' in part'}" for a, b in pairs]
        more = f" and {len(told) - MOST_COINCIDENT} more pairs" if len(told) > MOST_COINCIDENT else ""
        return f"On top of each other: {'; '.join(told[:MOST_COINCIDENT])}{more}." if told else ""

    def _along(self) -> list[list[int]]:
        # Dashed lines are drawn on top, and what is below them shows through their gaps.
        parts = [(series.dashed, _stretches(series)) for series in self.series]
        return [
            [
                at
                for at, (dashed, other) in enumerate(parts)
                if at > place and dashed == own_dashed and own and len(own & other) >= LEAST_COINCIDENT * len(own)
            ]
            for place, (own_dashed, own) in enumerate(parts)
        ]

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
        for series in self.series:
            empty = (None,) * len(series.x)
            columns = (series.x, series.y or empty, series.low or empty, series.high or empty, series.value or empty)
            rows += [dict(zip(_KEYS, (series.name, *point), strict=True)) for point in zip(*columns, strict=True)]
        return rows


def _stretches(series: Series) -> frozenset[tuple[Value, Value, Value, Value]]:
    """Return the pieces of a line between neighboring points, or its only point; empty for other marks."""
    if series.mark not in ("line", "step"):
        return frozenset()
    known = [(x, y) for x, y in zip(series.x, series.y, strict=False) if y is not None]
    ends = zip(known, known[1:] if len(known) > 1 else known, strict=False)
    return frozenset((*a, *b) for a, b in ends)


@dataclass(frozen=True, slots=True)
class Figure:
    """Charts shown side by side under one title: small multiples, or the panels of a published figure."""

    id: str
    title: str
    panels: tuple[Chart, ...]
    note: str = ""
    kind: Literal["figure"] = "figure"


@dataclass(frozen=True, slots=True)
class Listing:
    """Text shown verbatim in a fixed-width font, such as a command, a manifest or a log line."""

    id: str
    title: str
    text: str
    kind: Literal["listing"] = "listing"


@dataclass(frozen=True, slots=True)
class Headline:
    """The top of a page: one number with its caption, and the answer in sentences.

    In sentences and in the text of sections, `backticks` mark commands and names; there is no other markup.
    """

    number: str  # formatted, such as 31% or 190.2 bits; a dash if nothing was measured
    caption: str
    sentences: tuple[str, ...]


Item = Table | Chart | Figure | Listing


def charts_of(item: Chart | Figure) -> tuple[Chart, ...]:
    """Return a chart, or the panels of a figure."""
    return item.panels if isinstance(item, Figure) else (item,)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading followed by paragraphs and then items (tables, charts and listings)."""

    title: str
    words: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()
    id: str = ""  # the anchor; derived from the title if empty

    @property
    def anchor(self) -> str:
        return self.id or anchor(self.title)


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report: headline, sections and data."""

    title: str
    headline: Headline
    sections: tuple[Section, ...]
    subtitle: str = ""  # what was read: a folder's name, never a whole path
    answers: object = None  # the page's figures, for scripts: anything that msgspec encodes
    kind: str = "report"  # lacuna-run, vestige-analysis, comparison, study, demo …

    def items(self) -> Iterator[Item]:
        for section in self.sections:
            yield from section.items

    def tables(self) -> list[Table]:
        return [item for item in self.items() if isinstance(item, Table)]

    def charts(self) -> list[Chart | Figure]:
        return [item for item in self.items() if isinstance(item, (Chart, Figure))]

    def anchored(self) -> Page:
        """Return the page with the anchor of every section as its id, as its JSON has them."""
        return replace(self, sections=tuple(replace(section, id=section.anchor) for section in self.sections))


def anchor(title: str) -> str:
    """Return the anchor of a title, its words joined by hyphens, such as `errors-by-cause`."""
    kept = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in title.lower())
    return "-".join(kept.split()) or "section"


@dataclass(frozen=True, slots=True)
class DrawnChart(Chart):
    """A chart for the script that draws it, with what follows from its series."""

    behind: tuple[int, ...] = ()  # see `Chart.overlaps`

    @classmethod
    def of(cls, chart: Chart) -> Self:
        return cls(**{field.name: getattr(chart, field.name) for field in fields(chart)}, behind=tuple(chart.overlaps))


def drawn(item: Chart | Figure) -> DrawnChart | Figure:
    """Return a chart or figure for the script that draws it."""
    if isinstance(item, Figure):
        return replace(item, panels=tuple(map(DrawnChart.of, item.panels)))
    return DrawnChart.of(item)


@dataclass(frozen=True, slots=True)
class Document:
    """The result of one command."""

    kind: str  # the command, as words joined by hyphens: eir-curve
    title: str
    answer: tuple[str, ...]  # one or two sentences, the result first
    data: object  # what --json prints: a struct, or anything else that msgspec encodes
    sections: tuple[Section, ...] = ()
    details: tuple[Section, ...] = ()  # too long for a terminal; in every other form they follow the sections
    next: str = ""  # a command to type next
    number: str = ""  # the main result as one figure, shown above the sentences
    caption: str = ""  # what the number counts

    def said(self) -> tuple[str, ...]:
        """Return the number with its caption, if any, followed by the answer."""
        return (f"{self.number} {self.caption}", *self.answer) if self.number else self.answer

    def page(self) -> Page:
        """Return the document as a page."""
        every = (*self.sections, *self.details)
        untitled = [section for section in every if not section.title]
        words = tuple(word for section in untitled for word in section.words)
        details = Section("Details", words, tuple(item for section in untitled for item in section.items))
        sections = tuple(
            section if section.title else details for section in every if section.title or section is untitled[0]
        )
        if self.next:
            sections = (*sections, Section("What to do next", (), (Listing("next", "A command", self.next),)))
        headline = Headline(self.number, self.caption, self.answer)
        return Page(self.title, headline, sections, answers=self.data, kind=self.kind)

    def items(self) -> Iterator[Item]:
        for section in (*self.sections, *self.details):
            yield from section.items

    def tables(self) -> list[Table]:
        """Return every table; without any, the plain figures of the data as one table."""
        found = [item for item in self.items() if isinstance(item, Table)]
        if found:
            return found
        data = plain_data(self.data)
        plain = {key: value for key, value in data.items() if isinstance(value, (str, int, float, bool))}
        return [facts(self.kind, self.title, plain)]


def facts(
    id: str, title: str, found: Mapping[str, Cell] | Iterable[tuple[str, Cell]], *, heading: str = "figure"
) -> Table:
    """Return named figures as a two-column table; names may repeat."""
    columns = (Column("name", heading), Column("value", "value", role="text"))
    pairs = found.items() if isinstance(found, Mapping) else found
    return Table(id, title, columns, tuple({"name": name, "value": value} for name, value in pairs))
