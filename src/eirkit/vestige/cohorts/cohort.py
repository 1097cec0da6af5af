"""Splits analysed runs into cohorts and computes for each a summary row and the chosen statistical tests.

Runs measured in tokens and in entities are never pooled. Tests planned in a suite file are corrected for multiple
testing; all others are marked as exploratory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from eirkit.errors import InputFileError
from eirkit.vestige.cohorts import demand_failure, gap_failure, recovery, reread_rate, size_failure, used_later
from eirkit.vestige.cohorts.covariates import with_base_lines
from eirkit.vestige.cohorts.finding import AnalysisPlan, Cohort, Finding, Settings, finite, holm
from eirkit.vestige.cohorts.run_columns import By, Floats, RereadCells, RunColumns, read_runs
from eirkit.vestige.inference.auc import Auc, failure_auc
from eirkit.vestige.inference.results import join_notes

NO_COVERAGE = "no run touched a goal file, so every measured demand is 0: missing coverage, not lack of need"


def cohort_row(cohort: Cohort) -> dict[str, Any]:
    """Return the summary row of a cohort; a figure that does not exist is None and `note` says why."""
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


def _demand(runs: RunColumns, *, in_tokens: bool) -> dict[str, Any]:
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
    """Return the failure AUC over all runs, with demand 0 where no goal file was touched, and over covered runs."""
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
    """Return why the AUC that is shown (over covered runs where there are goals) or its interval is missing."""
    if not cohort.in_tokens or covered.n == whole.n:
        return whole.note
    none = "" if whole.estimate is not None else whole.note  # the reason for the whole cohort is enough
    if not cohort.runs.covered.any():
        return join_notes([none, NO_COVERAGE])
    return none or (covered.note and f"of runs that touched a goal file: {covered.note}")


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


BY: tuple[By, ...] = get_args(By)
Analyse = Callable[[Cohort], list[Finding]]
ANALYSES: Mapping[str, Analyse] = {
    "demand": demand_failure.analyse,
    "rereads": reread_rate.analyse,
    "gaps": gap_failure.analyse,
    "clipping": recovery.analyse,
    "mediation": size_failure.analyse,
    "later": used_later.analyse,
}
OF_ENTITIES = ("later",)  # the other analyses need files
TESTS: tuple[str, ...] = tuple(
    question.name
    for module in (demand_failure, reread_rate, gap_failure, recovery, size_failure, used_later)
    for question in module.QUESTIONS
)
ENTITY_TESTS = frozenset(question.name for question in used_later.OF_ENTITIES)


def analyse_cohorts(
    folders: Sequence[Path],
    plan: AnalysisPlan,
    *,
    by: By = "all",
    base_lines: Mapping[str, float] | None = None,
    disjoint: Sequence[Path] = (),
    analyses: Sequence[str] = tuple(ANALYSES),
) -> dict[str, Any]:
    """Return the cohorts and tests of analysed folders.

    Args:
        base_lines: source lines of the gold files by task.
        disjoint: analysed folders whose runs are used only to estimate how hard tasks are.

    Raises:
        InputFileError: a folder holds no complete analysis, or none holds a run.
    """
    runs, cells = read_runs([*folders, *disjoint])
    runs = with_base_lines(runs, base_lines or {})
    is_own = runs.folder < len(folders)
    own, others = runs.at(is_own), runs.at(~is_own)
    if not len(own):
        raise InputFileError(f"{folders[0]} holds no runs; analyse a corpus that contains some")
    rows, tests = [], []
    for cohort in split_cohorts(own, cells, others, by, plan.settings, folder_names(folders)):
        rows.append(cohort_row(cohort))
        tests += [{"cohort": cohort.name, **one.as_json()} for one in findings(cohort, analyses)]
    units = {row["cohort"]: row["unit"] for row in rows}
    return {
        "by": by,
        "cohorts": rows,
        "tests": mark_planned(tests, plan, units),
        "repeated_runs": len(own) - len(np.unique(own.identity)),
        "plan": {**_as_json(plan), "not_run": not_run(tests, plan, units)},
    }


def folder_names(folders: Sequence[Path]) -> list[str]:
    """Return the folders' own names, or their paths where two names are the same."""
    names = [folder.resolve().name for folder in folders]
    return names if len(set(names)) == len(names) else [str(folder) for folder in folders]


def split_cohorts(
    runs: RunColumns, cells: RereadCells, others: RunColumns, by: By, settings: Settings, folders: Sequence[str]
) -> Iterator[Cohort]:
    """Yield the cohorts, the largest first; runs of the other cohorts serve to estimate difficulty."""
    labels = _labels(runs, by, folders)
    names, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    for place in np.argsort(-counts, kind="stable"):
        inside = places == place
        chosen = runs.at(inside)
        elsewhere = runs.at(~inside & (runs.unit == chosen.unit[0])).with_more(others)
        own_cells = cells.at(np.isin(cells.run, chosen.number))
        yield Cohort(str(names[place]), chosen, own_cells, elsewhere, settings)


def findings(cohort: Cohort, analyses: Sequence[str] = tuple(ANALYSES)) -> list[Finding]:
    """Return the results of the chosen analyses for a cohort."""
    apt = [name for name in analyses if cohort.in_tokens or name in OF_ENTITIES]
    return [found for name in apt for found in ANALYSES[name](cohort)]


def not_run(tests: Sequence[Mapping[str, Any]], plan: AnalysisPlan, units: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the planned tests without a row: not chosen, or meant for runs that are absent.

    Args:
        units: the unit of every cohort.
    """
    made = {(test["cohort"], test["name"]) for test in tests}
    missing = []
    for name in dict.fromkeys(plan.planned):
        apt: list[str | None] = [
            cohort for cohort, unit in units.items() if (unit == "entities") == (name in ENTITY_TESTS)
        ]
        missing += [{"name": name, "cohort": cohort} for cohort in apt or [None] if (cohort, name) not in made]
    return missing


def mark_planned(tests: list[dict[str, Any]], plan: AnalysisPlan, units: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the tests, each marked as planned or not, with p values of planned ones corrected over all cohorts.

    A planned test that was not run counts as one without a p value; otherwise leaving tests out would sharpen the rest.
    """
    places = [place for place, test in enumerate(tests) if test["name"] in plan.planned]
    values = [tests[place]["p"] for place in places] + [None] * len(not_run(tests, plan, units))
    corrected = dict(zip(places, holm(values), strict=False))
    return [{**test, "planned": place in corrected, "p_holm": corrected.get(place)} for place, test in enumerate(tests)]


def _labels(runs: RunColumns, by: By, folders: Sequence[str]) -> Any:
    if by == "all":
        labels = np.full(len(runs), "all", dtype=object)
    elif by == "folder":
        labels = np.array([folders[number] for number in runs.folder], dtype=object)
    else:
        labels = np.array([name or "unknown" for name in getattr(runs, by)], dtype=object)
    if len(set(runs.unit)) > 1:
        labels = labels + np.array([f" ({unit})" for unit in runs.unit], dtype=object)
    return labels.astype(str)


def _as_json(plan: AnalysisPlan) -> dict[str, Any]:
    settings = plan.settings
    return {
        "planned": list(plan.planned),
        "recorded": plan.recorded,
        "digest": plan.digest,
        "seed": settings.seed,
        "resamples": settings.resamples,
        "mediation_resamples": settings.mediation_resamples,
        "draws": settings.draws,
        "resampled": settings.resampled,
    }
