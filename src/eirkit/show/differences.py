"""Comparison as data: measures, paired differences with intervals over tasks, and changed settings.

Only runs of the same task are paired; whatever cannot be paired is refused or reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from eirkit.findings.intervals import FEWEST_CLUSTERS, mean_difference
from eirkit.findings.measures import CAUSE_MEASURES, FATE_MEASURES, MEMORY_MEASURES, RUN_MEASURES, SPENDING_MEASURES
from eirkit.findings.statistics import ROUNDING, sign_flip
from eirkit.logs.measures import LOG_MEASURES
from eirkit.measures import Glossary, Measure, MeasureGroup
from eirkit.tasks.workload import Units

COMPARED = Glossary((RUN_MEASURES, CAUSE_MEASURES, FATE_MEASURES, MEMORY_MEASURES, SPENDING_MEASURES, LOG_MEASURES))
COSTS = (MEMORY_MEASURES, SPENDING_MEASURES)


def measure_of(key: str) -> Measure:
    """Return the declaration of a compared measure."""
    return COMPARED[key]


def group_of(key: str) -> MeasureGroup:
    """Return the table that a compared measure belongs to."""
    return COMPARED.group_of(key)


def title_of(group: MeasureGroup) -> str:
    """Return the title of a table of differences; if all its shares have one denominator, the title names it."""
    wholes = {one.of for one in group}
    (whole,) = wholes if len(wholes) == 1 else ("",)
    return f"{group.title}, share of {whole}" if whole and whole not in group.title else group.title


SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference in one measure over a set of pairs, with the means of both sides."""

    where: str  # the cell; empty for all pairs together
    measure: str  # its identifier
    pairs: int
    clusters: int  # tasks, of which alone pairs are independent
    a: float
    b: float
    difference: float  # b − a, mean over pairs
    low: float | None  # 95%; None below six tasks, and where nothing differs
    high: float | None
    p: float | None  # sign flips of the clusters' mean differences
    method: str  # how the interval was computed

    @property
    def is_shown(self) -> bool:
        """True if the interval excludes zero and the sign-flip test agrees."""
        apart = self.low is not None and self.high is not None and not self.low <= 0 <= self.high
        return apart and self.p is not None and self.p <= SIGNIFICANT

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "label": measure_of(self.measure).label}


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One setting that differs between the two sides; None if a side does not have it."""

    name: str
    a: str | None
    b: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing two folders."""

    kind: str  # lacuna-run or vestige-analysis
    a: str
    b: str
    unit: str  # what is paired
    overall: tuple[Difference, ...]
    parts: tuple[Difference, ...]
    changes: tuple[SettingChange, ...]
    warnings: tuple[str, ...]
    sides: tuple[Mapping[str, Any], ...] = ()  # figures of each side that are not paired
    contrast: tuple[SettingChange, ...] = ()  # settings in which the whole folders differ
    units: Units = field(default_factory=Units)  # what tasks and steps are called

    def as_json(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("kind", "a", "b", "unit")},
            "overall": [one.as_json() for one in self.overall],
            "rows": [one.as_json() for one in self.parts],
            "changes": [asdict(one) for one in self.changes],
            "warnings": list(self.warnings),
            "sides": [dict(side) for side in self.sides],
            "contrast": [asdict(one) for one in self.contrast],
        }


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """The values of one measure for the same task on both sides."""

    cluster: str  # the task: pairs of one task are not independent
    a: float
    b: float


def difference_of(where: str, measure: str, pairs: Sequence[MeasuredPair]) -> Difference:
    """Return the mean difference over pairs, with an interval over tasks."""
    found = [pair.b - pair.a for pair in pairs]
    clusters = [pair.cluster for pair in pairs]
    means = _means(found, clusters)
    low, high, method = _interval(found, clusters, means, measure in COMPARED and measure_of(measure).unit == "share")
    return Difference(
        where=where,
        measure=measure,
        pairs=len(pairs),
        clusters=len(means),
        a=fmean(pair.a for pair in pairs),
        b=fmean(pair.b for pair in pairs),
        difference=fmean(found),
        low=low,
        high=high,
        p=sign_flip(means).p if len(means) > 1 else None,
        method=method,
    )


def _interval(
    found: Sequence[float], clusters: Sequence[str], means: Sequence[float], share: bool
) -> tuple[float | None, float | None, str]:
    """Return the t interval over tasks; an exact one for shares that differ equally in every pair."""
    tasks, middle = len(means), fmean(found)
    if tasks < 2:
        return None, None, "one task: no interval"
    if tasks < FEWEST_CLUSTERS:
        return None, None, f"too few tasks: no interval below {FEWEST_CLUSTERS}"
    equal = max(found) - min(found) <= ROUNDING
    if equal and (not share or abs(middle) <= ROUNDING):
        return None, None, "the same in every pair"
    bounds = mean_difference(found, clusters)
    return bounds.low, bounds.high, "exact, equal differences" if equal else "t, over tasks"


def _means(values: Sequence[float], clusters: Sequence[str]) -> list[float]:
    gathered: dict[str, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        gathered.setdefault(cluster, []).append(value)
    return [fmean(group) for group in gathered.values()]


def changes_between(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[SettingChange, ...]:
    """Return every setting in which two documents differ, in the order of the first document."""
    first, second = dict(_flat(a)), dict(_flat(b))
    names = [*first, *(name for name in second if name not in first)]
    return tuple(
        SettingChange(name, first.get(name), second.get(name)) for name in names if first.get(name) != second.get(name)
    )


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the leaves of a document under names like `suite.grid.0.h`; a list of plain values is one leaf."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _flat(part, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)) and any(isinstance(part, (Mapping, list)) for part in value):
        for position, part in enumerate(value):
            yield from _flat(part, f"{name}.{position}")
    elif isinstance(value, (list, tuple)):
        yield name, ", ".join(map(str, value))
    elif value is not None:
        yield name, str(value)
