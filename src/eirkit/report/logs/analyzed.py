"""Reads a `vestige analyze` folder into what its page shows (outcomes, AUC, cohorts), and compares two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from msgspec import Struct, to_builtins

from eirkit.errors import InputFileError
from eirkit.records.analysis import AnalysisSummary, CohortStatistics, MeasuringOptions
from eirkit.report.comparison import Comparison, MeasuredPair, changes_between, comparers, difference_of
from eirkit.report.logs.sentences import GOAL_COLUMNS
from eirkit.report.table import Column
from eirkit.vestige.cohorts.cohort import ANALYSES, analyze_cohorts, folder_names
from eirkit.vestige.cohorts.finding import AnalysisPlan
from eirkit.vestige.cohorts.run_columns import Floats, RunColumns, read_runs
from eirkit.vestige.inference.auc import Auc, failure_auc
from eirkit.vestige.measures import COHORT_MEASURES
from eirkit.vestige.tables import read_analysis

MOST_TESTED = 20_000  # runs on which a page runs every test; beyond it the page names the command instead
MEASURES: Mapping[str, Callable[[RunColumns], Floats]] = {
    "failed": lambda runs: runs.failed,
    "peak_demand_tokens": lambda runs: runs.demand,
    "goal_accessed": lambda runs: runs.covered.astype(float),
    "later_used_peak": lambda runs: runs.later_used,
    "trajectory_tokens": lambda runs: runs.tokens,
    "tool_turns": lambda runs: runs.tool_turns,
    "rework": lambda runs: runs.rework.astype(float),
}
SIDE_COLUMNS = (
    Column("cohort", "folder"),
    Column("runs", "runs"),
    Column("resolved", "resolved"),
    *GOAL_COLUMNS,
    Column.of(COHORT_MEASURES["failure_auc"]),
    Column("auc_low", "from", 3, meaning="95% interval"),
    Column("auc_high", "to", 3),
)
_MEASURING = ("options.visibility", "options.goal_tests", "options.own_edits")


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The demand and the outcome of one run."""

    peak: float | None  # tokens; None in a domain without goal files
    later_used: float  # in the run's unit
    unit: str
    covered: bool  # a goal file was touched
    failed: bool | None  # None if unknown


@dataclass(frozen=True, slots=True)
class Analyzed:
    """The contents of an analysis that its page shows."""

    name: str
    summary: AnalysisSummary
    runs: tuple[RunOutcome, ...]
    auc: Auc | None  # of peak demand against failure over covered runs; None without runs of known outcome
    cohorts: CohortStatistics | None = None  # the result of `vestige cohort`; None if it was not run


def read_analyzed(folder: Path, *, tests: bool = True) -> Analyzed:
    """Read an analysis folder and compute its cohort statistics."""
    summary = read_analysis(folder)
    runs, _ = read_runs([folder])
    outcomes = tuple(
        RunOutcome(
            None if peak != peak else float(peak),  # NaN: unknown
            float(later),
            str(unit),
            bool(covered),
            None if failed != failed else bool(failed == 1),
        )
        for peak, later, unit, covered, failed in zip(
            runs.demand, runs.later_used, runs.unit, runs.covered, runs.failed, strict=True
        )
    )
    chosen = tuple(ANALYSES) if tests and len(runs) <= MOST_TESTED else ()
    cohorts = analyze_cohorts([folder], AnalysisPlan(), analyses=chosen) if len(runs) else None
    return Analyzed(folder.resolve().name, summary, outcomes, auc_of(outcomes), cohorts)


def auc_of(runs: Sequence[RunOutcome]) -> Auc | None:
    """Return the AUC of peak demand for failure, over runs that touched a goal file."""
    judged = [run for run in runs if run.peak is not None and run.covered and run.failed is not None]
    if not judged:
        return None
    return failure_auc(np.array([run.peak for run in judged]), np.array([float(bool(run.failed)) for run in judged]))


@comparers.add("vestige-analysis")
def compare_analyses(a: Path, b: Path, *, plugins: bool) -> Comparison:
    """Return the paired differences of two analysis folders, which never refer to plug-in code.

    Raises:
        InputFileError: they share neither a run nor a task.
    """
    runs, _ = read_runs([a, b])
    left, right = runs.at(runs.folder == 0), runs.at(runs.folder == 1)
    by_run = bool(set(left.identity) & set(right.identity))
    key = "identity" if by_run else "task"
    if not set(getattr(left, key)) & set(getattr(right, key)):
        raise InputFileError(f"{a} and {b} share neither runs nor tasks; analyze logs of the same tasks")
    overall = []
    for name, of in MEASURES.items():
        if pairs := list(_pairs(left, right, key, of)):
            overall.append(difference_of("", name, pairs))
    setups = (
        _Setup(found.eirkit, found.options, sorted(found.formats), sorted(found.goal_sources))
        for found in map(read_analysis, (a, b))
    )
    changes = changes_between(*map(to_builtins, setups))
    names = folder_names([a, b])
    sides = analyze_cohorts([a, b], AnalysisPlan(), by="folder", analyses=()).cohorts
    warnings = tuple(_warnings(left, right, [change.name for change in changes], by_run=by_run))
    return Comparison(
        "vestige-analysis",
        names[0],
        names[1],
        "runs" if by_run else "tasks",
        tuple(overall),
        (),
        changes,
        warnings,
        tuple(map(to_builtins, sides)),
        side_columns=SIDE_COLUMNS,
    )


class _Setup(Struct, frozen=True):
    """The settings of an analysis, without the run counts by format and goal, which are results."""

    eirkit: str
    options: MeasuringOptions
    formats: list[str]
    goal_sources: list[str]


def _pairs(left: RunColumns, right: RunColumns, key: str, of: Callable[[RunColumns], Floats]) -> Iterator[MeasuredPair]:
    """Yield one pair for each run or task: the mean over its runs on each side, where both are known."""
    sides = [_means(getattr(runs, key).tolist(), of(runs).tolist()) for runs in (left, right)]
    clusters = dict(zip(getattr(left, key).tolist(), left.task.tolist(), strict=True))
    for place, value in sides[0].items():
        if place in sides[1]:
            yield MeasuredPair(str(clusters[place]), value, sides[1][place])


def _means(keys: list[int], values: list[float]) -> dict[int, float]:
    gathered: dict[int, list[float]] = {}
    for key, value in zip(keys, values, strict=True):
        if value == value:
            gathered.setdefault(key, []).append(value)
    return {key: fmean(group) for key, group in gathered.items()}


def _warnings(left: RunColumns, right: RunColumns, changed: list[str], *, by_run: bool) -> Iterator[str]:
    for name in _MEASURING:
        if name in changed:
            yield f"{name.removeprefix('options.').replace('_', ' ')} is not the same: demand was not measured alike"
    units = {str(unit) for runs in (left, right) for unit in runs.unit}
    if len(units) > 1:
        yield f"runs in {' and '.join(sorted(units))} are never pooled; only what both have is compared"
    if not by_run:
        yield "no run is in both folders: means of each task's runs are paired"
    if any(name.startswith("goal_sources") for name in changed):
        yield "goals were known in different ways, so demand and goal access do not compare as they stand"
