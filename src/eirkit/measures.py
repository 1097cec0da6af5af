"""The type `Measure` (identifier, label, meaning, unit, color); the measures are declared in other `measures.py`.

A measure is declared beside the type that computes it, in a group of measures that are shown together. Terminal tables,
pages, comparisons, the viewer and exports take their words and colors from these declarations;
`eirkit.report.glossary` collects all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Unit = Literal["share", "count", "tokens", "amount", "bytes", "bits", "milliseconds", "dollars", "step", "probability"]
Better = Literal["more", "less"]
Pooling = Literal["mean", "steps", "sum", "largest", "per_call", "quantiles", "cohort", "none"]

UNITS: dict[Unit, str] = {
    "share": "share",
    "count": "count",
    "tokens": "tokens",
    "amount": "tokens, or entities in runs without files",
    "bytes": "bytes",
    "bits": "bits",
    "milliseconds": "ms",
    "dollars": "$",
    "step": "step number",
    "probability": "probability",
}
POOLED: dict[Pooling, str] = {
    "mean": "mean over runs",
    "steps": "share of the steps of all runs; mean over runs in comparisons",
    "sum": "sum over runs; per run in comparisons",
    "largest": "largest of the runs; per run in comparisons",
    "per_call": "mean over calls",
    "quantiles": "quantiles over runs",
    "cohort": "one figure for each cohort",
    "none": "not pooled",
}
_NAMED_IN_HEADINGS: frozenset[Unit] = frozenset({"milliseconds", "dollars"})
_ID = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Measure:
    """One quantity, cause or outcome that is counted."""

    id: str  # its key in JSON documents and CSV files
    label: str  # its name on every surface
    meaning: str  # one sentence without capital letter and full stop, because lists show it after a colon
    unit: Unit = "count"
    of: str = ""  # of a share: what it is a share of
    better: Better | None = None  # None: neither direction is better
    pooled: Pooling = "mean"
    color: str = ""  # a token of `eirkit.report.colors`; empty: it takes the next color of a chart

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise ValueError(f"measure {self.id!r}: use lower-case letters, digits and underscores")
        if not self.label or not self.meaning or self.meaning.endswith(".") or ";" in self.meaning:
            raise ValueError(f"measure {self.id!r}: give a label, and a meaning without full stop and semicolon")
        if (self.unit == "share") != bool(self.of):
            raise ValueError(f"measure {self.id!r}: a share needs a denominator (`of`), and other units take none")

    @property
    def heading(self) -> str:
        """The label, with the unit if a bare number would be ambiguous."""
        return f"{self.label}, {UNITS[self.unit]}" if self.unit in _NAMED_IN_HEADINGS else self.label

    @property
    def description(self) -> str:
        """The meaning and, for a share, its denominator."""
        return f"{self.meaning} (share of {self.of})" if self.of else self.meaning


_DECLARED: dict[str, Measure] = {}  # those of the modules that are imported, which every page that shows one has done


def find_measure(key: str) -> Measure | None:
    """Return the measure with an identifier, None if no imported module declares it."""
    return _DECLARED.get(key)


@dataclass(frozen=True, slots=True)
class MeasureGroup:
    """Measures that are shown together, in their order."""

    id: str
    title: str
    measures: tuple[Measure, ...]

    def __post_init__(self) -> None:
        _DECLARED.update((one.id, one) for one in self.measures)

    def __iter__(self) -> Iterator[Measure]:
        return iter(self.measures)

    def __getitem__(self, key: str) -> Measure:
        for one in self.measures:
            if one.id == key:
                return one
        raise KeyError(f"no measure {key!r} in {self.id}; known: {', '.join(one.id for one in self.measures)}")


class Glossary:
    """Groups of measures in which every identifier and every label occurs once."""

    def __init__(self, groups: Iterable[MeasureGroup]) -> None:
        self.groups = tuple(groups)
        self._places: dict[str, tuple[MeasureGroup, Measure]] = {}
        labels: dict[str, str] = {}
        for group in self.groups:
            for one in group:
                if one.id in self._places:
                    raise ValueError(f"two measures have the identifier {one.id!r}; rename one")
                if (other := labels.setdefault(one.label.casefold(), one.id)) != one.id:
                    raise ValueError(f"measures {other!r} and {one.id!r} share the label {one.label!r}; rename one")
                self._places[one.id] = group, one

    def __iter__(self) -> Iterator[Measure]:
        return (one for _, one in self._places.values())

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __getitem__(self, key: str) -> Measure:
        return self._places[key][1]

    def group_of(self, key: str) -> MeasureGroup:
        """Return the group in which a measure is declared."""
        return self._places[key][0]
