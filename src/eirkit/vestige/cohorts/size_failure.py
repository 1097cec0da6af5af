"""Tests whether large files lead to failure through lines never recovered or through rework (mediation analysis).

Over runs in one of the two clipping groups. The exposure is log2 of the base lines of the gold files; where they are
unknown the run's own peak demand replaces them, and the note says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eirkit.records.analysis import Excluded, FindingDetails
from eirkit.vestige.cohorts.covariates import success_elsewhere
from eirkit.vestige.cohorts.demand_failure import EASE, LENGTH, NO_OTHERS, REMEDY
from eirkit.vestige.cohorts.finding import (
    CLUSTERED,
    Cohort,
    Finding,
    Question,
    finding_of_fit,
    finding_of_term,
    known,
    log2_1p,
    no_finding,
    with_note,
)
from eirkit.vestige.cohorts.run_columns import Floats, RunColumns
from eirkit.vestige.inference.design import Columns, impute_median
from eirkit.vestige.inference.logistic import logistic
from eirkit.vestige.inference.mediation import mediate
from eirkit.vestige.inference.results import join_notes

SIZE, IMPUTED, MEDIATOR = "log2 size", "size imputed", "mediator"
STANDARDIZED = "95% percentile, bootstrap of whole tasks"
_NO_CAUSE = "a causal path: it includes whatever drives both the mediator and failure"
SIZE_LENGTH = Question(
    "size-failure-tokens",
    "odds ratio of failure per doubling of size: base lines of the gold files, or peak demand where they are unknown",
    "whether larger gold files are associated with failure, among runs of equal length",
    "a cause: large files belong to different projects and bugs",
)
SIZE_HARD = Question(
    "size-failure-difficulty",
    SIZE_LENGTH.scale,
    "the same among tasks that other runs solve equally often",
    SIZE_LENGTH.does_not_show,
)
TO_NEVER = Question(
    "size-never-recovered",
    "odds ratio of never recovering a clipped line per doubling of size",
    "whether lines of larger files stay unseen more often",
    _NO_CAUSE,
)
NEVER_FAILS = Question(
    "never-recovered-failure",
    "odds ratio of failure: never recovered against recovered, at equal size",
    "whether not recovering is associated with failure, adjusted for the files' size",
    _NO_CAUSE,
)
INDIRECT = Question(
    "mediation-never-recovered",
    "difference in the risk of failure through the mediator, from the 25th to the 75th percentile of size",
    "how much of the association between size and failure runs through lines never recovered, if both models are right",
    _NO_CAUSE,
)
REWORK_FAILS = Question(
    "rework-failure",
    "odds ratio of failure: any of four rework signatures against none, at equal size",
    "whether repeated commands, failed or repeated edits or ignored failing tests are associated with failure",
    _NO_CAUSE,
)
REWORK_INDIRECT = Question(
    "mediation-rework", INDIRECT.scale, "the same through rework instead of lines never recovered", _NO_CAUSE
)
DEMAND_AS_SIZE = (
    "size is the run's own peak demand, not known before the run; base-lines in the suite give the files' size"
)
QUESTIONS = (SIZE_LENGTH, SIZE_HARD, TO_NEVER, NEVER_FAILS, INDIRECT, REWORK_FAILS, REWORK_INDIRECT)


@dataclass(frozen=True, slots=True)
class _Sample:
    runs: RunColumns
    columns: Columns  # the exposure first, then length
    excluded: tuple[Excluded, ...]
    note: str


def analyze(cohort: Cohort) -> list[Finding]:
    """Return the paths and the two indirect differences."""
    judged, excluded = cohort.judged()
    is_classified = np.isin(judged.group, ("recovered", "never"))
    runs, excluded = known(judged, is_classified, "not in one of the two clipping groups", excluded)
    if not len(runs):
        return [
            no_finding(question, "no runs in one of the two clipping groups", 0, excluded) for question in QUESTIONS
        ]
    sample = _sample(runs, excluded)
    others = judged.at(~is_classified).with_more(cohort.elsewhere)
    never, rework = (runs.group == "never").astype(np.float64), runs.rework.astype(np.float64)
    found = [
        _ratio(SIZE_LENGTH, sample, SIZE),
        _given_difficulty(sample, others),
        finding_of_fit(TO_NEVER, logistic(never, sample.columns, runs.task), SIZE, CLUSTERED, excluded),
        _ratio(NEVER_FAILS, sample, MEDIATOR, never),
        _indirect(cohort, INDIRECT, sample, never),
        _ratio(REWORK_FAILS, sample, MEDIATOR, rework),
        _indirect(cohort, REWORK_INDIRECT, sample, rework),
    ]
    return [replace(one, note=join_notes([one.note, sample.note])) for one in found]


def _sample(runs: RunColumns, excluded: tuple[Excluded, ...]) -> _Sample:
    made = impute_median(log2_1p(runs.base_lines), runs.task)
    length = {LENGTH: log2_1p(runs.tokens)}
    if made.values is None:
        return _Sample(runs, {SIZE: log2_1p(runs.demand), **length}, excluded, DEMAND_AS_SIZE)
    flag = {IMPUTED: made.missing} if made.imputed else {}
    return _Sample(runs, {SIZE: made.values, **length, **flag}, excluded, made.note)


def _ratio(question: Question, sample: _Sample, term: str, mediator: Floats | None = None) -> Finding:
    columns = sample.columns if mediator is None else {**sample.columns, MEDIATOR: mediator}
    fit = logistic(sample.runs.failed, columns, sample.runs.task)
    return finding_of_fit(question, fit, term, CLUSTERED, sample.excluded)


def _given_difficulty(sample: _Sample, others: RunColumns) -> Finding:
    ease = success_elsewhere(sample.runs, others)
    if not ease.known.any():
        left_out = (*sample.excluded, Excluded(NO_OTHERS, len(sample.runs)))
        return no_finding(SIZE_HARD, join_notes([REMEDY, ease.note]), excluded=left_out)
    kept, left_out = known(sample.runs, ease.known, NO_OTHERS, sample.excluded)
    columns = {name: np.asarray(values)[ease.known] for name, values in sample.columns.items()}
    fit = logistic(kept.failed, {**columns, EASE: ease.success_logit[ease.known]}, kept.task)
    return with_note(finding_of_fit(SIZE_HARD, fit, SIZE, CLUSTERED, left_out), ease.note)


def _indirect(cohort: Cohort, question: Question, sample: _Sample, mediator: Floats) -> Finding:
    covariates = {name: values for name, values in sample.columns.items() if name != SIZE}
    found = mediate(
        sample.runs.failed,
        mediator,
        sample.columns[SIZE],
        covariates,
        sample.runs.task,
        cohort.rng(question.name),
        resamples=cohort.settings.mediation_resamples,
    )
    return finding_of_term(
        question,
        found.indirect,
        found.n,
        STANDARDIZED,
        ratio=False,
        excluded=sample.excluded,
        note=found.note,
        details=FindingDetails(tasks=found.clusters, resamples=found.resamples, total=found.total.estimate),
    )
