"""Splits analyzed runs into cohorts and computes for each a summary row and the chosen statistical tests.

Runs measured in tokens and in entities are never pooled. Tests planned in a suite file are corrected for multiple
testing; all others are marked as exploratory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
from msgspec import structs

from eirkit.errors import InputFileError
from eirkit.records.analysis import CohortKey, CohortRow, CohortStatistics, CohortTest, PlannedTest, PlanUsed
from eirkit.vestige.cohorts import demand_failure, gap_failure, recovery, reread_rate, size_failure, used_later
from eirkit.vestige.cohorts.covariates import with_base_lines
from eirkit.vestige.cohorts.finding import AnalysisPlan, Cohort, Finding, Settings, finite, holm
from eirkit.vestige.cohorts.run_columns import Floats, RereadCells, RunColumns, read_runs
from eirkit.vestige.inference.auc import Auc, failure_auc
from eirkit.vestige.inference.results import join_notes

NO_COVERAGE = "no run touched a goal file, so every measured demand is 0: missing coverage, not lack of need"


def cohort_row(cohort: Cohort) -> CohortRow:
    """Return the summary row of a cohort; a figure that does not exist is None and `note` says why."""
    runs, in_tokens = cohort.runs, cohort.in_tokens
    goals = Counter(str(source) for source in runs.goal_source if source is not None)
    score = runs.demand if in_tokens else runs.later_used
    judged = ~np.isnan(runs.failed) & ~np.isnan(score)
    whole = failure_auc(score[judged], runs.failed[judged])
    clustered = failure_auc(score[judged], runs.failed[judged], runs.task[judged])
    covered = failure_auc(score[judged & runs.covered], runs.failed[judged & runs.covered])
    return CohortRow(
        cohort=cohort.name,
        unit=runs.unit[0] if len(runs) else None,
        runs=len(runs),
        resolved=int((runs.failed == 0).sum()),
        failed=int((runs.failed == 1).sum()),
        unknown=int(np.isnan(runs.failed).sum()),
        tasks=len(np.unique(runs.task)),
        models=len(np.unique(runs.model.astype(str))),
        goal_access=_mean(runs.covered.astype(np.float64)) if in_tokens else None,
        goal_sources=dict(sorted(goals.items())),
        covered_runs=int(runs.covered.sum()),
        mean_peak_tokens=_mean(runs.demand) if in_tokens else None,
        mean_peak_covered_tokens=_mean(runs.demand[runs.covered]) if in_tokens else None,
        mean_peak_entities=None if in_tokens else _mean(runs.later_used),
        failure_auc=finite(whole.estimate),
        auc_low=finite(whole.low),
        auc_high=finite(whole.high),
        auc_p=finite(whole.p),
        auc_n=whole.n,
        auc_clustered_low=finite(clustered.low),
        auc_clustered_high=finite(clustered.high),
        covered_failure_auc=finite(covered.estimate) if in_tokens else None,
        covered_auc_low=finite(covered.low) if in_tokens else None,
        covered_auc_high=finite(covered.high) if in_tokens else None,
        covered_auc_n=covered.n if in_tokens else None,
        note=_note(cohort, whole, covered),
    )


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


BY: tuple[CohortKey, ...] = get_args(CohortKey)
Analyze = Callable[[Cohort], list[Finding]]
ANALYSES: Mapping[str, Analyze] = {
    "demand": demand_failure.analyze,
    "rereads": reread_rate.analyze,
    "gaps": gap_failure.analyze,
    "clipping": recovery.analyze,
    "mediation": size_failure.analyze,
    "later": used_later.analyze,
}
OF_ENTITIES = ("later",)  # the other analyses need files
TESTS: tuple[str, ...] = tuple(
    question.name
    for module in (demand_failure, reread_rate, gap_failure, recovery, size_failure, used_later)
    for question in module.QUESTIONS
)
ENTITY_TESTS = frozenset(question.name for question in used_later.OF_ENTITIES)


def analyze_cohorts(
    folders: Sequence[Path],
    plan: AnalysisPlan,
    *,
    by: CohortKey = "all",
    base_lines: Mapping[str, float] | None = None,
    disjoint: Sequence[Path] = (),
    analyses: Sequence[str] = tuple(ANALYSES),
) -> CohortStatistics:
    """Return the cohorts and tests of analyzed folders.

    Args:
        base_lines: source lines of the gold files by task.
        disjoint: analyzed folders whose runs are used only to estimate how hard tasks are.

    Raises:
        InputFileError: a folder holds no complete analysis, or none holds a run.
    """
    runs, cells = read_runs([*folders, *disjoint])
    runs = with_base_lines(runs, base_lines or {})
    is_own = runs.folder < len(folders)
    own, others = runs.at(is_own), runs.at(~is_own)
    if not len(own):
        raise InputFileError(f"{folders[0]} holds no runs; analyze a corpus that contains some")
    rows, tests = list[CohortRow](), list[CohortTest]()
    for cohort in split_cohorts(own, cells, others, by, plan.settings, folder_names(folders)):
        rows.append(cohort_row(cohort))
        tests += [found.on(cohort.name) for found in findings(cohort, analyses)]
    left_out = not_run(tests, plan, rows)
    return CohortStatistics(
        by,
        tuple(rows),
        mark_planned(tests, plan, left_out),
        len(own) - len(np.unique(own.identity)),
        PlanUsed(
            planned=plan.planned,
            recorded=plan.recorded,
            digest=plan.digest,
            **structs.asdict(plan.settings),
            not_run=left_out,
        ),
    )


def folder_names(folders: Sequence[Path]) -> list[str]:
    """Return the folders' own names, or their paths where two names are the same."""
    names = [folder.resolve().name for folder in folders]
    return names if len(set(names)) == len(names) else [str(folder) for folder in folders]


def split_cohorts(
    runs: RunColumns, cells: RereadCells, others: RunColumns, by: CohortKey, settings: Settings, folders: Sequence[str]
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


def not_run(tests: Sequence[CohortTest], plan: AnalysisPlan, cohorts: Sequence[CohortRow]) -> tuple[PlannedTest, ...]:
    """Return the planned tests without a result: not chosen, or meant for runs that are absent."""
    made = {(test.cohort, test.name) for test in tests}
    missing = list[PlannedTest]()
    for name in dict.fromkeys(plan.planned):
        apt: list[str | None] = [row.cohort for row in cohorts if (row.unit == "entities") == (name in ENTITY_TESTS)]
        missing += [PlannedTest(name, cohort) for cohort in apt or [None] if (cohort, name) not in made]
    return tuple(missing)


def mark_planned(
    tests: Sequence[CohortTest], plan: AnalysisPlan, left_out: Sequence[PlannedTest]
) -> tuple[CohortTest, ...]:
    """Return the tests, each marked as planned or not, with p values of planned ones corrected over all cohorts.

    A planned test that was not run counts as one without a p value; otherwise leaving tests out would sharpen the rest.
    """
    places = [place for place, test in enumerate(tests) if test.name in plan.planned]
    corrected = dict(
        zip(places, holm([*(tests[place].p for place in places), *(None for _ in left_out)]), strict=False)
    )
    return tuple(
        structs.replace(test, planned=place in corrected, p_holm=corrected.get(place))
        for place, test in enumerate(tests)
    )


def _labels(runs: RunColumns, by: CohortKey, folders: Sequence[str]) -> Any:
    if by == "all":
        labels = np.full(len(runs), "all", dtype=object)
    elif by == "folder":
        labels = np.array([folders[number] for number in runs.folder], dtype=object)
    else:
        labels = np.array([name or "unknown" for name in getattr(runs, by)], dtype=object)
    if len(set(runs.unit)) > 1:
        labels = labels + np.array([f" ({unit})" for unit in runs.unit], dtype=object)
    return labels.astype(str)
