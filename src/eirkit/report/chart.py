"""A chart as data: axes and series in, JSON for pages and CSV for readers out. Who draws it is another matter."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass
from typing import Any, Literal

Value = float | str | None
Scale = Literal["linear", "log", "category"]
Mark = Literal["line", "step", "points", "bars", "cells", "rule"]


@dataclass(frozen=True, slots=True)
class Axis:
    """What is laid out along one direction; a bound that is None follows the data."""

    title: str
    scale: Scale = "linear"
    low: float | None = None
    high: float | None = None
    percent: bool = False  # shares, shown as 40% rather than 0.4


@dataclass(frozen=True, slots=True)
class Series:
    """Points that belong together, with an interval for each where there is one.

    `cells` colours a place by `value`; a `rule` is a vertical line at each x where y is empty, else a horizontal one.
    """

    name: str
    mark: Mark
    x: tuple[Value, ...]
    y: tuple[Value, ...] = ()
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    value: tuple[float | None, ...] = ()
    dashed: bool = False  # published figures, bounds, references: whatever is not a measurement of ours

    def __post_init__(self) -> None:
        for other in (self.y, self.low, self.high, self.value):
            if other and len(other) != len(self.x):
                raise ValueError(f"series {self.name!r} has {len(self.x)} places and {len(other)} figures")


@dataclass(frozen=True, slots=True)
class Chart:
    """One picture with the words that stand for it where it cannot be seen."""

    id: str  # words joined by hyphens: an anchor in a page, a file name
    title: str
    alt: str  # what a reader should take from it, figures included
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def csv(self) -> str:
        """Return the data behind the picture, one line a point."""
        written = io.StringIO()
        lines = csv.writer(written, lineterminator="\n")
        lines.writerow(["series", self.x.title, self.y.title, "low", "high", "value"])
        for one in self.series:
            empty = (None,) * len(one.x)
            columns = (one.x, one.y or empty, one.low or empty, one.high or empty, one.value or empty)
            lines.writerows([one.name, *point] for point in zip(*columns, strict=True))
        return written.getvalue()


@dataclass(frozen=True, slots=True)
class Figure:
    """Charts shown side by side under one title: small multiples, or the panels of a published figure."""

    id: str
    title: str
    panels: tuple[Chart, ...]
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
