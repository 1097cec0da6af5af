"""What `eirkit compare` shows of any two folders: differences with intervals, changed settings, its sentences.

Only runs of the same task are paired; whatever cannot be paired is refused or reported.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Protocol

from msgspec import UNSET, Struct, UnsetType

from eirkit.errors import InputFileError
from eirkit.lacuna.findings.intervals import FEWEST_CLUSTERS, ROUNDING, mean_difference
from eirkit.lacuna.findings.measures import (
    CAUSE_MEASURES,
    MEMORY_MEASURES,
    OUTCOME_MEASURES,
    RUN_MEASURES,
    SPENDING_MEASURES,
)
from eirkit.lacuna.findings.statistics import sign_flip
from eirkit.lacuna.tasks.workload import Units
from eirkit.measures import Glossary, Measure, MeasureGroup
from eirkit.registry import Registry
from eirkit.report.document import Axis, Chart, Headline, Listing, Page, Section, Series
from eirkit.report.folders import kind_of, maker_of, records_of
from eirkit.report.table import Cell, Column, Table, counted, number, points, share
from eirkit.vestige.measures import LOG_MEASURES

COMPARED = Glossary((RUN_MEASURES, CAUSE_MEASURES, OUTCOME_MEASURES, MEMORY_MEASURES, SPENDING_MEASURES, LOG_MEASURES))
COSTS = (MEMORY_MEASURES, SPENDING_MEASURES)
USED = OUTCOME_MEASURES["used"]
DIGITS: Mapping[str, int] = {"milliseconds": 2, "dollars": 4}


def measure_of(key: str) -> Measure:
    """Return the declaration of a compared measure."""
    return COMPARED[key]


def group_of(key: str) -> MeasureGroup:
    """Return the table that a compared measure belongs to."""
    return COMPARED.group_of(key)


def title_of(group: MeasureGroup) -> str:
    """Return the title of a table of differences; if all its shares have one denominator, the title names it."""
    wholes = {measure.of for measure in group}
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
    label: str  # of the measure

    @property
    def is_shown(self) -> bool:
        """True if the interval excludes zero and the sign-flip test agrees."""
        apart = self.low is not None and self.high is not None and not self.low <= 0 <= self.high
        return apart and self.p is not None and self.p <= SIGNIFICANT


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
    sides: tuple[Mapping[str, Cell], ...] = ()  # figures of each side that are not paired
    contrast: tuple[SettingChange, ...] = ()  # settings in which the whole folders differ
    units: Units = field(default_factory=Units)  # what tasks and steps are called
    side_columns: tuple[Column, ...] = ()  # what a page shows of each side

    def document(self) -> ComparisonDocument:
        """Return the comparison as scripts read it."""
        names = ("kind", "a", "b", "unit", "overall", "changes", "warnings", "sides", "contrast")
        return ComparisonDocument(rows=self.parts, **{name: getattr(self, name) for name in names})


class ComparisonDocument(Struct, frozen=True, kw_only=True):
    """A comparison as scripts read it; see `Comparison`."""

    kind: str
    a: str
    b: str
    unit: str
    overall: tuple[Difference, ...]
    rows: tuple[Difference, ...]
    changes: tuple[SettingChange, ...]
    warnings: tuple[str, ...]
    sides: tuple[Mapping[str, Cell], ...]
    contrast: tuple[SettingChange, ...]
    verdict: str | UnsetType = UNSET
    out: str | UnsetType | None = UNSET  # the page that was written


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
    by_cluster: dict[str, list[float]] = {}
    for cluster, difference in zip(clusters, found, strict=True):
        by_cluster.setdefault(cluster, []).append(difference)
    means = [fmean(group) for group in by_cluster.values()]
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
        label=measure_of(measure).label if measure in COMPARED else measure,
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


def sides_of(found: Comparison) -> tuple[str, str]:
    """Return the names of both sides: the value of the only setting that differs, else the folder names."""
    if len(found.contrast) == 1:
        (only,) = found.contrast
        axis = "" if only.name in ("memory", "model", "workload") else f"{only.name} = "  # their values need no name
        return f"{axis}{only.a}", f"{axis}{only.b}"
    return found.a, found.b


def verdict_of(found: Comparison) -> str:
    """Return one sentence: the difference in the first measure with its interval, and over how many pairs."""
    first = found.overall[0]
    a, b = sides_of(found)
    over = f"over {counted(first.pairs, 'pair')} of {found.unit} of {counted(first.clusters, found.units.task)}"
    both = f"{shown(first, first.b)} against {shown(first, first.a)}"
    amount, said = shown_difference(first), measure_of(first.measure).label
    if first.low is None or first.high is None:
        if first.clusters >= FEWEST_CLUSTERS and not first.difference:
            return f"{b} and {a} have the same {said} in every pair: {shown(first, first.a)}, {over}."
        few = f"too few {found.units.task}s ({first.clusters}) for an interval; use {FEWEST_CLUSTERS} or more seeds"
        return f"{b} − {a} in {said}: {amount} ({both}); {few}."
    ends = f"95% interval {shown_difference(first, first.low, bare=True)} to {shown_difference(first, first.high)}"
    if not first.is_shown:
        return f"{b} and {a} have no significant difference in {said}: {amount} ({ends}), {both}, {over}."
    return f"{b} {_comparative(first)} {a} in {said}: {amount} ({ends}), {both}, {over}."


def _comparative(one: Difference) -> str:
    better = measure_of(one.measure).better
    if better is None:
        return "is above" if one.difference > 0 else "is below"
    return "is better than" if (one.difference > 0) == (better == "more") else "is worse than"


def fates_sentence(found: Comparison) -> str:
    """Return the share of needed records that were used, and the most frequent other fate; empty without fates."""
    outcomes = {each.measure: each for each in found.overall if group_of(each.measure) is OUTCOME_MEASURES}
    used = outcomes.pop(USED.id, None)
    if used is None:
        return ""
    a, b = sides_of(found)
    first = f"{share(used.b)} with {b}{_most((each.b, name) for name, each in outcomes.items())}"
    second = f"{share(used.a)} with {a}{_most((each.a, name) for name, each in outcomes.items())}"
    return f"Of {USED.of}, {USED.label}: {first}, {second}."


def _most(others: Iterable[tuple[float, str]]) -> str:
    """Return the most frequent other outcome in brackets; empty if there was none."""
    value, name = max(others, default=(0.0, ""))
    return f" ({measure_of(name).label}: {share(value)})" if value > 0 else ""


def shown(one: Difference, value: float, *, exact: bool = False) -> str:
    """Return a value of a measure, formatted for readers.

    Args:
        exact: print shares with one decimal, for a table.
    """
    unit = measure_of(one.measure).unit
    if unit == "share":
        return f"{value:.1%}" if exact else share(value)
    return number(value, DIGITS.get(unit, 1)).replace("-", "−")


def shown_difference(one: Difference, value: float | None = None, *, bare: bool = False) -> str:
    """Return a difference (the mean difference by default) with its sign; shares are in percentage points.

    Args:
        bare: omit the unit, because the table heading has it.
    """
    value = one.difference if value is None else value
    if measure_of(one.measure).unit == "share":
        return points(value) if bare else f"{points(value)} points"
    text = shown(one, value)
    return f"+{text}" if value > 0 else text


MOST_ROWS = 40  # of a chart


def comparison_page(found: Comparison, a: Path, b: Path) -> Page:
    """Return the page of a comparison."""
    title, sections = f"{found.b} against {found.a}", tuple(_sections(found, a, b))
    return Page(title, headline_of(found), sections, "a comparison, paired", found.document(), "comparison")


def headline_of(found: Comparison) -> Headline:
    """Return the headline: the difference in the first measure, and whether chance could explain it."""
    first = found.overall[0]
    sentences = [verdict_of(found), *filter(None, [fates_sentence(found)])]
    sentences += [f"Mind: {warning}." for warning in found.warnings]
    label = measure_of(first.measure).label
    return Headline(shown_difference(first), f"{label}, {found.b} − {found.a}", tuple(sentences))


def _sections(found: Comparison, a: Path, b: Path) -> Iterator[Section]:
    how = f"with a 95% interval: whole {found.units.task}s are drawn again, and their signs flipped for p"
    told = f"Every difference is B − A, {found.b} − {found.a}, {how}."
    yield Section("Differences over all pairs", (told,), tuple(comparison_tables(found)))
    if found.parts:
        measure = found.overall[0].measure
        rows = [part for part in found.parts if part.measure == measure]
        table = difference_table("by-cell", "By setting", found.parts, by_cell=True).reworded(found.units.tell)
        items = (_chart(rows, measure), table)
        yield Section("Differences by setting", (), items if len(rows) > 1 else items[1:])
    if found.sides:
        yield Section("Each side by itself", (), (Table("sides", "Cohorts", found.side_columns, found.sides),))
    words = () if found.changes else ("Nothing that the manifests record.",)
    yield Section("What changed", words, (change_table(found.changes),) if found.changes else ())
    command = shlex.join(["eirkit", "compare", str(a), str(b), "--out", "comparison.html"])
    yield Section("How to make this again", (), (Listing("command", "The command", command),))


def comparison_tables(found: Comparison) -> Iterator[Table]:
    """Yield the differences over all pairs, a table for each kind of measure."""
    groups: dict[str, list[Difference]] = {}
    for each in found.overall:
        if each.a or each.b or group_of(each.measure) is not OUTCOME_MEASURES:  # no outcome that no record had
            groups.setdefault(group_of(each.measure).id, []).append(each)
    for rows in groups.values():
        group = group_of(rows[0].measure)
        yield difference_table(group.id, title_of(group), rows).reworded(found.units.tell)


def difference_table(name: str, title: str, rows: Sequence[Difference], *, by_cell: bool = False) -> Table:
    """Return differences B − A as a table, each figure in the unit of its measure."""
    points = all(measure_of(row.measure).unit == "share" for row in rows)
    several = len({row.measure for row in rows}) > 1
    columns = (
        *((Column("where", "setting", role="name"),) if by_cell else ()),
        *((Column("label", "measure", role="name"),) if several or not by_cell else ()),
        Column("pairs", "pairs"),
        Column("clusters", "tasks", priority=1),
        Column("a_text", "A", figures=True, raw="a"),
        Column("b_text", "B", figures=True, raw="b"),
        Column("difference_text", "B − A, points" if points else "B − A", figures=True, raw="difference"),
        Column("low_text", "from", figures=True, raw="low"),
        Column("high_text", "to", figures=True, raw="high"),
        Column("p", "p", 3, least=0.001),
    )
    return Table(name, title, columns, tuple(_row(row, bare=points) for row in rows), _meanings(rows))


def _row(one: Difference, *, bare: bool) -> dict[str, Cell]:
    """Return the row of a difference, with formatted figures beside the raw ones."""
    ends = {"low": one.low, "high": one.high}
    texts = {f"{end}_text": None if v is None else shown_difference(one, v, bare=True) for end, v in ends.items()}
    sides = {"a_text": shown(one, one.a, exact=True), "b_text": shown(one, one.b, exact=True)}
    return {
        **asdict(one),
        "label": measure_of(one.measure).heading,
        **sides,
        **texts,
        "difference_text": shown_difference(one, bare=bare),
    }


def _meanings(rows: Sequence[Difference]) -> str:
    """Return a note that explains short names, and that times were measured on one machine."""
    measures = [measure_of(row.measure) for row in rows]
    told = {measure.heading: measure.description for measure in measures if measure.unit == "share"}
    if any(measure.unit == "milliseconds" for measure in measures):
        told["ms"] = "as measured while each folder was made, so compare only folders made on one machine"
    return "; ".join(f"{name}: {meaning}" for name, meaning in told.items())


def cell_table(found: Comparison) -> Table | None:
    """Return the differences in the first measure by cell; None if there is only one cell."""
    first = measure_of(found.overall[0].measure)
    rows = [part for part in found.parts if part.measure == first.id]
    if len(rows) < 2:
        return None
    return difference_table("cells", f"{first.label}, by cell", rows, by_cell=True).reworded(found.units.tell)


def change_table(changes: Sequence[SettingChange]) -> Table:
    """Return the settings that differ as a table."""
    columns = (Column("name", "setting", role="name"), Column("a", "A", role="name"), Column("b", "B", role="name"))
    return Table("changes", "Settings that differ", columns, tuple(asdict(change) for change in changes))


def _chart(rows: Sequence[Difference], measure: str) -> Chart:
    chosen = sorted(rows, key=lambda row: row.difference)[:MOST_ROWS]
    series = Series(
        "difference",
        "points",
        tuple(row.where for row in chosen),
        tuple(row.difference for row in chosen),
        tuple(row.low for row in chosen),
        tuple(row.high for row in chosen),
    )
    none = Series("no difference", "rule", (chosen[0].where,), (0.0,), dashed=True)
    apart = sum(row.is_shown for row in chosen)
    told = f"In {apart} of {counted(len(chosen), 'setting')} the interval excludes zero and p is at most {SIGNIFICANT}."
    one = measure_of(measure)
    axes = Axis("setting", "category"), Axis(f"difference in {one.heading}", percent=one.unit == "share")
    return Chart("differences", f"Difference in {one.label}, with 95% intervals", told, *axes, (series, none))


class Comparer(Protocol):
    """A function that compares two folders of one kind."""

    def __call__(self, a: Path, b: Path, *, plugins: bool) -> Comparison: ...


comparers: Registry[Comparer] = Registry(
    "comparison", group="eirkit.comparisons", package="eirkit.report", table="COMPARERS"
)


def compare_folders(a: Path, b: Path, *, plugins: bool = False) -> Comparison:
    """Return the comparison of two folders of the same kind.

    Raises:
        InputFileError: the folders are of different kinds, or of a kind that cannot be compared.
    """
    kinds = kind_of(a), kind_of(b)
    if kinds[0] != kinds[1] or kinds[0] not in comparers:
        made = [f"{folder} is of `{maker_of(folder)}`" for folder in dict.fromkeys((a, b))]
        raise InputFileError(f"{' and '.join(made)}; compare two of `lacuna run` or two of `vestige analyze`")
    with records_of(a, b, plugins=plugins):
        return comparers.get(kinds[0])(a, b, plugins=plugins)


def changes_between(a: object, b: object) -> tuple[SettingChange, ...]:
    """Return every setting in which two documents of plain values differ, in the order of the first."""
    first, second = dict(_flat(a)), dict(_flat(b))
    names = [*first, *(name for name in second if name not in first)]
    return tuple(
        SettingChange(name, first.get(name), second.get(name)) for name in names if first.get(name) != second.get(name)
    )


def _flat(value: object, name: str = "") -> Iterator[tuple[str, str]]:
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
