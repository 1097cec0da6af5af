"""One cohort in one line: its size, goal access, what it needed, and how well demand tells failed runs apart."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from eirkit.vestige.analyses.cohort_runs import Floats, Runs
from eirkit.vestige.analyses.finding import finite
from eirkit.vestige.analyses.setting import Cohort
from eirkit.vestige.inference.auc import Auc, failure_auc
from eirkit.vestige.inference.results import join_notes

NO_COVERAGE = "no run touched a goal file, so every measured demand is 0: missing coverage, not lack of need"


def cohort_row(cohort: Cohort) -> dict[str, Any]:
    """Return the line; a figure that does not exist is None and `note` says why."""
    runs = cohort.runs
    return {
        "cohort": cohort.name,
        "unit": runs.unit[0] if len(runs) else None,
        "runs": len(runs),
        "resolved": int((runs.failed == 0).sum()),
        "failed": int((runs.failed == 1).sum()),
        "unknown": int(np.isnan(runs.failed).sum()),
        "tasks": len(np.unique(runs.task)),
        "models": len(np.unique(runs.model.astype(str))),
        **_demand(runs, in_tokens=cohort.in_tokens),
        **_areas(cohort),
    }


def _demand(runs: Runs, *, in_tokens: bool) -> dict[str, Any]:
    goals = Counter(str(source) for source in runs.goal_source if source is not None)
    return {
        "goal_access": _mean(runs.covered.astype(np.float64)) if in_tokens else None,
        "goal_sources": dict(sorted(goals.items())),
        "covered_runs": int(runs.covered.sum()),
        "mean_peak_tokens": _mean(runs.demand) if in_tokens else None,
        "mean_peak_covered_tokens": _mean(runs.demand[runs.covered]) if in_tokens else None,
        "mean_peak_entities": None if in_tokens else _mean(runs.later_used),
    }


def _areas(cohort: Cohort) -> dict[str, Any]:
    """Return the failure AUC over all runs, no coverage as 0, and over covered runs alone."""
    runs = cohort.runs
    score = runs.demand if cohort.in_tokens else runs.later_used
    judged = ~np.isnan(runs.failed) & ~np.isnan(score)
    whole = failure_auc(score[judged], runs.failed[judged])
    clustered = failure_auc(score[judged], runs.failed[judged], runs.task[judged])
    covered = failure_auc(score[judged & runs.covered], runs.failed[judged & runs.covered])
    return {
        "failure_auc": finite(whole.estimate),
        "auc_low": finite(whole.low),
        "auc_high": finite(whole.high),
        "auc_p": finite(whole.p),
        "auc_n": whole.n,
        "auc_clustered_low": finite(clustered.low),
        "auc_clustered_high": finite(clustered.high),
        **_covered_area(covered, in_tokens=cohort.in_tokens),
        "note": _note(cohort, whole, covered),
    }


def _covered_area(found: Auc, *, in_tokens: bool) -> dict[str, Any]:
    names = ("covered_failure_auc", "covered_auc_low", "covered_auc_high", "covered_auc_n")
    if not in_tokens:
        return dict.fromkeys(names)
    return dict(zip(names, (finite(found.estimate), finite(found.low), finite(found.high), found.n), strict=True))


def _note(cohort: Cohort, whole: Auc, covered: Auc) -> str:
    """Return why the area that is shown, over covered runs where there are goals, or its interval is missing."""
    if not cohort.in_tokens or covered.n == whole.n:
        return whole.note
    none = "" if whole.estimate is not None else whole.note  # then nothing is to be said of a part
    if not cohort.runs.covered.any():
        return join_notes([none, NO_COVERAGE])
    return none or (covered.note and f"of runs that touched a goal file: {covered.note}")


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None
