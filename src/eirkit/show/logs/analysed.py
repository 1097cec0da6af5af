"""Reads a `vestige analyze` folder into the run outcomes, failure AUC and cohort statistics that its page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eirkit.logs.cohorts.cohort import ANALYSES, analyse_cohorts
from eirkit.logs.cohorts.finding import AnalysisPlan
from eirkit.logs.cohorts.run_columns import read_runs
from eirkit.logs.corpus.analysis import Analysis
from eirkit.logs.corpus.summary import AnalysisSummary
from eirkit.logs.inference.auc import Auc, failure_auc
from eirkit.logs.tables import read_analysis

MOST_TESTED = 20_000  # runs on which a page runs every test; beyond it the page names the command instead


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The demand and the outcome of one run."""

    peak: float | None  # tokens; None in a domain without goal files
    later_used: float  # in the run's unit
    unit: str
    covered: bool  # a goal file was touched
    failed: bool | None  # None if unknown


@dataclass(frozen=True, slots=True)
class Analysed:
    """The contents of an analysis that its page shows."""

    name: str
    document: Mapping[str, Any]  # the summary of `vestige analyze`
    runs: tuple[RunOutcome, ...]
    auc: Auc | None  # of peak demand against failure over covered runs; None without runs of known outcome
    cohorts: Mapping[str, Any] | None  # the result of `vestige cohort`; None if it was not run
    options: Mapping[str, Any]


def read_analysed(folder: Path, *, tests: bool = True) -> Analysed:
    """Read an analysis folder and compute its cohort statistics."""
    document = read_analysis(folder)
    runs, _ = read_runs([folder])
    outcomes = tuple(
        RunOutcome(_known(peak), float(later), str(unit), bool(covered), _failed(failed))
        for peak, later, unit, covered, failed in zip(
            runs.demand, runs.later_used, runs.unit, runs.covered, runs.failed, strict=True
        )
    )
    chosen = tuple(ANALYSES) if tests and len(runs) <= MOST_TESTED else ()
    cohorts = analyse_cohorts([folder], AnalysisPlan(), analyses=chosen) if len(runs) else None
    options = document.get("options", {})
    return Analysed(folder.resolve().name, document, outcomes, auc_of(outcomes), cohorts, options)


def auc_of(runs: Sequence[RunOutcome]) -> Auc | None:
    """Return the AUC of peak demand for failure, over runs that touched a goal file."""
    judged = [run for run in runs if run.peak is not None and run.covered and run.failed is not None]
    if not judged:
        return None
    return failure_auc(np.array([run.peak for run in judged]), np.array([float(bool(run.failed)) for run in judged]))


def _failed(value: float) -> bool | None:
    return None if value != value else bool(value == 1)


def _known(value: float) -> float | None:
    return None if value != value else float(value)


def analysed_here(name: str, analyses: Sequence[Analysis], options: Mapping[str, Any]) -> Analysed:
    """Return the same for runs analysed in this process, without writing tables."""
    summary = AnalysisSummary()
    for analysis in analyses:
        summary.add(analysis)
    outcomes = tuple(
        RunOutcome(
            None if one.run.peak_demand_tokens is None else float(one.run.peak_demand_tokens),
            float(one.run.later_used_peak),
            one.run.unit,
            one.run.goal_accessed,
            None if one.run.resolved is None else not one.run.resolved,
        )
        for one in analyses
    )
    return Analysed(name, summary.as_json(), outcomes, auc_of(outcomes), None, options)
