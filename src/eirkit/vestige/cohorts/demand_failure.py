"""Tests whether runs with a larger peak demand fail more often: odds ratios per doubling, raw and adjusted.

Over all runs of a cohort, and over runs whose clipped views hid lines that mattered. Difficulty is estimated from runs
outside the analyzed set: for the second group these are the cohort's other runs, for the first only other cohorts.
"""

from __future__ import annotations

import numpy as np

from eirkit.records.analysis import Excluded, FindingDetails
from eirkit.vestige.cohorts.covariates import success_elsewhere
from eirkit.vestige.cohorts.finding import (
    CLUSTERED,
    Cohort,
    Finding,
    Question,
    finding_of_fit,
    known,
    log2_1p,
    no_finding,
    with_note,
)
from eirkit.vestige.cohorts.run_columns import Floats, RunColumns
from eirkit.vestige.inference.logistic import logistic
from eirkit.vestige.inference.results import join_notes

DEMAND, LENGTH, EASE = "log2 demand", "log2 tokens", "success of others"
SCALE = "odds ratio of failure per doubling of peak demand"
NO_OTHERS = "their tasks have no other runs from which to estimate difficulty"
REMEDY = "no other runs of these tasks; name analyzed ones in the suite (disjoint), or split the cohort with --by"
_SHOWS = "whether runs that needed more at their peak failed more often"
_LIMITS = (
    "that demand causes failure: it is measured on the finished run, and the extra work of a failing run raises it"
)


BARE = Question("demand-failure", SCALE, _SHOWS, _LIMITS)
LONG = Question("demand-failure-tokens", SCALE, f"{_SHOWS}, among runs of equal length", _LIMITS)
HARD = Question(
    "demand-failure-difficulty",
    SCALE,
    f"{_SHOWS}, among runs of equal length on tasks that others solve equally often",
    _LIMITS,
)
CLIPPED = tuple(
    Question(f"clipped-{asked.name}", SCALE, f"{asked.shows}; runs with clipped lines only", _LIMITS)
    for asked in (BARE, LONG, HARD)
)


COVERED = Question(
    "demand-failure-covered",
    SCALE,
    f"{_SHOWS}, among runs of equal length that touched a goal file; if it differs, runs without coverage drive it",
    _LIMITS,
)
QUESTIONS = (BARE, LONG, HARD, COVERED, *CLIPPED)


def analyze(cohort: Cohort) -> list[Finding]:
    """Return the seven odds ratios."""
    judged, excluded = cohort.judged()
    everywhere = _three((BARE, LONG, HARD), judged, cohort.elsewhere, excluded)
    covered, no_goal = known(judged, judged.covered, "no goal file touched", excluded)
    everywhere.append(
        _ratio(COVERED, covered, {DEMAND: log2_1p(covered.demand), LENGTH: log2_1p(covered.tokens)}, no_goal)
        if len(covered)
        else no_finding(COVERED, "no run with a known outcome touched a goal file", excluded=no_goal)
    )
    is_clipped = np.isin(judged.group, ("recovered", "never"))
    clipped, left_out = known(judged, is_clipped, "not in one of the two clipping groups", excluded)
    return [*everywhere, *_three(CLIPPED, clipped, judged.at(~is_clipped).with_more(cohort.elsewhere), left_out)]


def _three(
    asked: tuple[Question, ...], runs: RunColumns, others: RunColumns, excluded: tuple[Excluded, ...]
) -> list[Finding]:
    bare, long, hard = asked
    if not len(runs):
        return [no_finding(question, "no such runs with a known outcome", excluded=excluded) for question in asked]
    demand, length = log2_1p(runs.demand), log2_1p(runs.tokens)
    found = [
        _ratio(bare, runs, {DEMAND: demand}, excluded),
        _ratio(long, runs, {DEMAND: demand, LENGTH: length}, excluded),
    ]
    ease = success_elsewhere(runs, others)
    if not ease.known.any():
        left_out = (*excluded, Excluded(NO_OTHERS, len(runs)))
        return [*found, no_finding(hard, join_notes([REMEDY, ease.note]), excluded=left_out)]
    left, left_out = known(runs, ease.known, NO_OTHERS, excluded)
    columns = {DEMAND: demand, LENGTH: length, EASE: ease.success_logit}
    kept = {name: values[ease.known] for name, values in columns.items()}
    return [*found, with_note(_ratio(hard, left, kept, left_out), ease.note)]


def _ratio(question: Question, runs: RunColumns, columns: dict[str, Floats], excluded: tuple[Excluded, ...]) -> Finding:
    fit = logistic(runs.failed, columns, runs.task)
    return finding_of_fit(
        question, fit, DEMAND, CLUSTERED, excluded, details=FindingDetails(uncovered=int((~runs.covered).sum()))
    )
