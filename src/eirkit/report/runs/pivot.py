"""Measures of a sweep for a paper: one setting across, the others down, and the same as small multiples.

A cell of the table is the mean over the runs of one setting ± their standard deviation; the figure has the 95%
interval of the mean. Settings are never pooled: what is neither across nor a panel is a row and a line of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from eirkit.errors import UsageError
from eirkit.lacuna.findings.intervals import half_width, mean_share
from eirkit.lacuna.findings.statistics import deviation
from eirkit.measures import UNITS, Measure
from eirkit.records.evidence import CapabilitySettings, RescueSettings
from eirkit.records.settings import EXTERNAL, NATIVE, Access
from eirkit.records.sweeps import CellRow, FailureGroup
from eirkit.report.document import Axis, Chart, Figure, Section, Series, anchor
from eirkit.report.runs.folder import (
    FIGURES,
    Coordinates,
    Evidence,
    ScoredRun,
    SweepFolder,
    condition_of,
    in_order,
    measure_of,
)
from eirkit.report.table import Cell, Column, Table, counted, listed

Known = Mapping[str, Sequence[tuple[int, float]]]  # of each cell its runs that have a value: seed and value
FEWEST_PANELS, MOST_PANELS = 2, 12
MOST_ACROSS = 12  # columns of a table that fits a page
_SIZES = ("n", "m", "lookback", "fan_in")
CAPABILITY = "capability"  # the condition of failures of the control


@dataclass(frozen=True, slots=True)
class Pivot:
    """What to lay out, and how; empty fields are chosen by what varies."""

    measures: tuple[str, ...] = ("accuracy",)
    across: str = ""  # the setting in the columns of tables, and on the x axis
    panels: str = ""  # the setting that has a panel for each value
    only: Mapping[str, frozenset[str]] = field(default_factory=dict)  # values of settings; other cells are left out
    is_asked: bool = False  # by an option, so that it is an error if there is nothing to lay out


def read_pivot(measures: Sequence[str], across: str, panels: str, only: Iterable[str]) -> Pivot:
    """Return the layout that options ask for, `only` as SETTING=VALUE,VALUE.

    Raises:
        UsageError: a measure is not known, or a choice is not of this form.
    """
    for name in measures:
        if name not in FIGURES:
            raise UsageError(f"no measure named {name!r}; known: {listed(sorted(FIGURES), len(FIGURES))}")
    chosen: dict[str, frozenset[str]] = {}
    for text in only:
        name, found, values = text.partition("=")
        if not found or not name or not values:
            raise UsageError(f"--only {text} is not SETTING=VALUE,VALUE; write for example --only h=2,4")
        chosen[name] = chosen.get(name, frozenset()) | frozenset(values.split(","))
    if across and across == panels:
        raise UsageError(f"--by names {across} twice; choose two settings")
    is_asked = bool(measures or across or panels)
    return Pivot(tuple(dict.fromkeys(measures)) or ("accuracy",), across, panels, chosen, is_asked)


def chosen_cells(sweep: SweepFolder, pivot: Pivot) -> SweepFolder:
    """Return a sweep with the chosen cells alone.

    Raises:
        UsageError: a setting or a value is not in the sweep, or nothing is left.
    """
    if not pivot.only:
        return sweep
    named = Coordinates(sweep.rows)
    for name, values in pivot.only.items():
        known = {str(named.value(name, row)) for row in sweep.rows}
        if unknown := sorted(values - known):
            raise UsageError(f"no setting has {name} = {unknown[0]}; there are {listed(sorted(known), 12)}")
    rows = tuple(
        row for row in sweep.rows if all(str(named.value(name, row)) in values for name, values in pivot.only.items())
    )
    if not rows:
        raise UsageError("no setting has all values of --only; choose fewer")
    kept, asked = {row.cell for row in rows}, {(row.model, row.workload) for row in rows}
    return replace(
        sweep,
        rows=rows,
        runs=tuple(run for run in sweep.runs if run.cell in kept),
        failures=tuple(_failures_of(rows, sweep.failures)),
        excluded=tuple(judged for judged in sweep.excluded if (judged.model, judged.workload) in asked),
        scored=sum(row.scored for row in rows),
        planned=sum(row.seeds * row.repeats for row in rows),
        evidence=tuple(experiment for experiment in sweep.evidence if _concerns(experiment, rows, pivot.only)),
    )


def _failures_of(rows: Sequence[CellRow], groups: Sequence[FailureGroup]) -> Iterator[FailureGroup]:
    """Yield the failures of some cells; a summary counts them by kind and keeps messages for all cells together."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for row in rows:
        for kind, count in row.failures.items():
            counts[(row.workload, row.model, row.memory or row.condition, kind)] += count
    for place, count in counts.items():
        same = [group for group in groups if (group.workload, group.model, group.condition, group.kind) == place]
        messages = "; or ".join(group.message for group in same)
        yield FailureGroup(*place, messages, count, same[0].first if same else "")
    asked = {(row.model, row.workload) for row in rows}
    yield from (group for group in groups if group.condition == CAPABILITY and (group.model, group.workload) in asked)


def _concerns(found: Evidence, rows: Sequence[CellRow], only: Mapping[str, frozenset[str]]) -> bool:
    """Return whether an experiment was made with the model, the workload and, where it has one, the h of a cell.

    If memories are chosen, the one of a rescue, or its condition and policy, must be among them; probes have none. If
    sizes of tasks are chosen, those of a rescue or a probe must be; a model's capability is measured at its own.
    """
    asked = found.settings
    tasks = (asked.task,) if isinstance(asked, RescueSettings) else asked.tasks
    if not isinstance(asked, CapabilitySettings):
        sizes = [name for name in _SIZES if name in only]
        tasks = tuple(task for task in tasks if all(str(getattr(task, name, None)) in only[name] for name in sizes))
    workloads = {task.workload for task in tasks}
    if not isinstance(asked, RescueSettings):
        return any(row.model in asked.models and row.workload in workloads for row in rows)
    alike = [row for row in rows if row.model in asked.models and row.workload in workloads and row.h == asked.h]
    return bool(alike) and ("memory" not in only or _access_of(asked) in only["memory"])


def _access_of(asked: RescueSettings) -> str:
    """Return the name of what the agents of a rescue had of earlier results, as `condition_of` makes it."""
    if asked.memory is not None:
        return condition_of(Access(EXTERNAL, None, asked.memory, panel=asked.panel or NATIVE))
    if asked.h is None:  # conversations
        return "truncated"
    return asked.policy if asked.managed else condition_of(Access(policy=asked.policy))


def chosen_words(pivot: Pivot, cells: int, whole: int) -> tuple[str, ...]:
    """Return which cells are shown, as a sentence; nothing if all are."""
    if not pivot.only:
        return ()
    numbers = {name: [int(one) if one.isdecimal() else one for one in values] for name, values in pivot.only.items()}
    named = " and ".join(f"{name} = {', '.join(map(str, sorted(of, key=in_order)))}" for name, of in numbers.items())
    return (f"Only settings with {named}: {cells:,} of {whole:,}.",)


def pivot_section(sweep: SweepFolder, pivot: Pivot) -> Section | None:
    """Return a table and small multiples of each measure; None if fewer than two settings vary."""
    rows = [row for row in sweep.rows if row.scored]
    named = Coordinates(rows)
    for name in filter(None, (pivot.across, pivot.panels)):
        if name not in named.varying:
            raise UsageError(f"{name} does not vary here; choose one of {listed(list(named.varying)) or 'none'}")
    across = pivot.across or ("h" if "h" in named.varying else next(reversed(named.varying), ""))
    others = [name for name in named.varying if name != across]
    columns = sorted({named.value(across, row) for row in rows}, key=in_order) if across else []
    if not others or len(columns) > MOST_ACROSS:
        if pivot.is_asked:
            said = f"{across} has {len(columns)} values" if others else "fewer than two settings vary"
            raise UsageError(f"{said}; leave --measure and --by out, or choose cells with --only")
        return None
    counts = {name: len({named.value(name, row) for row in rows}) for name in others}
    panels = pivot.panels or next((name for name in others if counts[name] >= FEWEST_PANELS), "")
    layout = _Layout(named, named.ordered(rows), across, others, panels, sweep.by_cell())
    found = {name: list(layout.items(measure_of(name))) for name in pivot.measures}
    if pivot.is_asked and (absent := [name for name in found if not found[name]]):
        raise UsageError(f"no run here has {absent[0]}; choose another --measure")
    items = [item for of_one in found.values() for item in of_one]
    words = "Each cell of a table is the mean over the runs of one setting ± their standard deviation."
    return Section("For a paper", (words,), tuple(items)) if items else None


@dataclass(frozen=True, slots=True)
class _Layout:
    named: Coordinates
    rows: Sequence[CellRow]  # in their order
    across: str
    others: Sequence[str]
    panels: str
    runs: Mapping[str, Sequence[ScoredRun]]

    def place(self, row: CellRow) -> int | str:
        return self.named.value(self.across, row)

    def items(self, measure: Measure) -> list[Table | Figure]:
        """Return the table of a measure and its figure; nothing if no run has a value."""
        of = FIGURES[measure.id]
        known = {
            row.cell: [
                (run.seed, float(value)) for run in self.runs.get(row.cell, ()) if (value := of(run)) is not None
            ]
            for row in self.rows
        }
        if not any(known.values()):
            return []
        return [self._table(measure, known), *([self._figure(measure, known)] if self.panels else [])]

    def _named(self, measure: Measure) -> tuple[str, str]:
        by = listed([*self.others, self.across])
        title = f"{measure.label} by {by}"
        return title[0].upper() + title[1:], anchor(f"{measure.id} by {by}")

    def _table(self, measure: Measure, known: Known) -> Table:
        (title, id), name = self._named(measure), self.across
        places = sorted({self.place(row) for row in self.rows}, key=in_order)
        lines: dict[tuple[int | str, ...], dict[str, Cell]] = {}
        for row in self.rows:
            key = tuple(self.named.value(name, row) for name in self.others)
            line = lines.setdefault(key, dict(zip(self.others, key, strict=True)))
            place, found = self.place(row), [value for _, value in known[row.cell]]
            line[f"{self.across}={place}"] = _spread(measure, found)
            line[f"mean {self.across}={place}"] = fmean(found) if found else None
        columns = (
            *(Column(other, other) for other in self.others),
            *(
                Column(f"{name}={place}", f"{name} = {place}", figures=True, raw=f"mean {name}={place}")
                for place in places
            ),
        )
        sizes = sorted({len(values) for values in known.values()})
        over = f"{sizes[0]:,} to {sizes[-1]:,} runs, those with a value" if len(sizes) > 1 else counted(sizes[0], "run")
        shown = f"Share of {measure.of} in percent" if measure.of else f"In {UNITS[measure.unit]}"
        note = f"{shown}: mean ± standard deviation over {over}"
        return Table(f"paper-{id}", title, columns, tuple(lines.values()), note)

    def _figure(self, measure: Measure, known: Known) -> Figure:
        title, id = self._named(measure)
        panels: dict[int | str, dict[str, list[CellRow]]] = {}
        apart = (self.across, self.panels)
        for row in self.rows:
            lines = panels.setdefault(self.named.value(self.panels, row), {})
            lines.setdefault(self.named.label(row, without=apart), []).append(row)
        numbers = all(not isinstance(self.place(row), str) for row in self.rows)
        x = Axis(self.across, "linear" if numbers else "category")
        # All panels have one scale, so that they can be compared.
        highest = max((value for found in known.values() for _, value in found), default=0.0)
        y = Axis.of(measure) if measure.unit == "share" else replace(Axis.of(measure), high=highest * 1.05 or 1.0)
        charts = [
            Chart(
                f"{id}-{anchor(str(value))}",
                str(value) if self.panels in ("model", "memory", "workload") else f"{self.panels} = {value}",
                _alt([row for rows in lines.values() for row in rows], self, known, measure),
                x,
                y,
                tuple(_line(name, rows, self, known, measure) for name, rows in lines.items()),
            )
            for value, lines in list(panels.items())[:MOST_PANELS]
        ]
        note = "With 95% intervals of the mean." + ("" if len(panels) <= MOST_PANELS else f" The first {MOST_PANELS}.")
        return Figure(f"paper-{id}-panels", title, tuple(charts), note)


def _spread(measure: Measure, values: Sequence[float]) -> str | None:
    if not values:
        return None
    wide = deviation(values)
    times, digits = (100.0, 1) if measure.unit == "share" else (1.0, 2)
    spread = "" if wide is None else f" ± {times * wide:,.{digits}f}"
    return f"{times * fmean(values):,.{digits}f}{spread}"


def _line(name: str, rows: Sequence[CellRow], layout: _Layout, known: Known, measure: Measure) -> Series:
    found = [(layout.place(row), known[row.cell], row) for row in rows if known[row.cell]]
    ends = [
        _ends([value for _, value in values], [seed for seed, _ in values], measure, row) for _, values, row in found
    ]
    return Series(
        name,
        "line",
        tuple(place for place, _, _ in found),
        tuple(fmean(value for _, value in values) for _, values, _ in found),
        tuple(low for low, _ in ends),
        tuple(high for _, high in ends),
    )


def _ends(
    values: Sequence[float], seeds: Sequence[int], measure: Measure, row: CellRow
) -> tuple[float | None, float | None]:
    """Return the 95% interval of a mean; None if one task alone says nothing of others."""
    if measure.id == "accuracy":
        found = mean_share(values, seeds, row.steps)
        return found.low, found.high
    if len(set(seeds)) < 2:
        return None, None
    half, middle = half_width(values, seeds), fmean(values)
    if measure.unit == "share":
        return max(0.0, middle - half), min(1.0, middle + half)
    return middle - half, middle + half


def _alt(rows: Sequence[CellRow], layout: _Layout, known: Known, measure: Measure) -> str:
    means = [(fmean(value for _, value in known[row.cell]), row) for row in rows if known[row.cell]]
    if not means:
        return f"No run has a value of {measure.label}."
    (low, worst), (high, best) = min(means, key=lambda one: one[0]), max(means, key=lambda one: one[0])
    said = [f"{value:.0%}" if measure.unit == "share" else f"{value:,.3g}" for value in (low, high)]
    where = [f"{layout.across} = {layout.place(row)}" for row in (worst, best)]
    return f"{measure.label} from {said[0]} ({where[0]}) to {said[1]} ({where[1]})."
