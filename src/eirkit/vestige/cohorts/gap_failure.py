"""Tests whether runs that leave a needed file alone for longer fail more often: conditional logits within tasks.

The exposure is each run's longest gap under three clocks, adjusted for model and log2 run length. The fair clock is the
main analysis, the other two bracket it, and gaps of the other files are a placebo.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from eirkit.records.analysis import Excluded, FindingDetails
from eirkit.vestige.cohorts.finding import (
    Cohort,
    Finding,
    Question,
    finding_of_fit,
    known,
    log2_1p,
    model_columns,
    model_note,
    no_finding,
    with_note,
)
from eirkit.vestige.cohorts.run_columns import Floats, RunColumns
from eirkit.vestige.inference.conditional import Unit, bootstrap_conditional_logit, conditional_logit

GAP, OTHER_GAP, LENGTH = "log2 gap", "log2 other gap", "log2 tokens"
SCALE = "odds ratio of failure per doubling of the longest gap over needed files"
WALD = "95% Wald, from the conditional likelihood"
_LIMITS = "why the file was left alone: it may be in the context, lost from it, or not on the run's path"
FAIR = Question(
    "fair-clock-gap",
    SCALE,
    "whether, on the same task, runs with a longer gap over a needed file before their last edit failed more often",
    _LIMITS,
)
FAIR_BARE = Question(
    "fair-clock-gap-without-length",
    SCALE,
    "the same without adjusting for run length, through which the gap may act",
    _LIMITS,
)
END = Question(
    "end-censored-gap",
    SCALE,
    "the same with gaps that extend to the end of the run",
    "a confirmation: failed runs that continue after their useful work lengthen every gap",
)
CLOSED = Question(
    "closed-gap",
    SCALE,
    "the same over gaps that ended in a read or edit",
    "anything about runs that never returned to the file: it conditions on the return",
)
PLACEBO_NEEDED = Question(
    "placebo-needed-gap",
    SCALE,
    "the association of closed gaps over needed files, adjusted for those over other files",
    "more than the closed gap alone does",
)
PLACEBO_OTHER = Question(
    "placebo-other-gap",
    "odds ratio of failure per doubling of the longest gap over other files",
    "the placebo: if it is associated with failure as strongly, the gap over needed files is not specific to them",
    "anything by itself; compare it with the ratio for needed files",
)
QUESTIONS = (FAIR, FAIR_BARE, END, CLOSED, PLACEBO_NEEDED, PLACEBO_OTHER)
_UNITS: dict[Literal["tasks", "runs"], tuple[Unit, str]] = {
    "tasks": ("strata", "95% percentile, bootstrap of whole tasks"),
    "runs": ("rows", "95% percentile, bootstrap of runs within tasks"),
}


def analyze(cohort: Cohort) -> list[Finding]:
    """Return the fair clock with and without run length, two sensitivity analyses and the joint placebo."""
    judged, excluded = cohort.judged()
    fair, left_out = known(judged, ~np.isnan(judged.gap_fair), "no needed file read before a last edit", excluded)
    main = [
        _resampled(cohort, FAIR, fair, left_out, {GAP: log2_1p(fair.gap_fair), LENGTH: log2_1p(fair.tokens)}),
        _plain(FAIR_BARE, fair, left_out, {GAP: log2_1p(fair.gap_fair)}),
    ]
    end, left_out = known(judged, ~np.isnan(judged.gap_end), "no needed file read", excluded)
    main.append(_plain(END, end, left_out, {GAP: log2_1p(end.gap_end), LENGTH: log2_1p(end.tokens)}))
    closed, left_out = known(judged, ~np.isnan(judged.gap_closed), "no needed file read or edited again", excluded)
    main.append(_plain(CLOSED, closed, left_out, {GAP: log2_1p(closed.gap_closed), LENGTH: log2_1p(closed.tokens)}))
    return main + _placebo(closed, left_out)


def _placebo(closed: RunColumns, excluded: tuple[Excluded, ...]) -> list[Finding]:
    both, left_out = known(closed, ~np.isnan(closed.other_gap_closed), "no other file read or edited again", excluded)
    columns = {
        GAP: log2_1p(both.gap_closed),
        OTHER_GAP: log2_1p(both.other_gap_closed),
        LENGTH: log2_1p(both.tokens),
    }
    asked = {PLACEBO_NEEDED: GAP, PLACEBO_OTHER: OTHER_GAP}
    if not len(both):
        return [no_finding(question, "no runs with both kinds of gap", 0, left_out) for question in asked]
    fit = conditional_logit(both.failed, {**columns, **model_columns(both.model)}, both.task)
    found = [finding_of_fit(question, fit, term, WALD, left_out) for question, term in asked.items()]
    return [with_note(finding, model_note(both.model)) for finding in found]


def _resampled(
    cohort: Cohort, question: Question, runs: RunColumns, excluded: tuple[Excluded, ...], columns: dict[str, Floats]
) -> Finding:
    if not len(runs):
        return no_finding(question, "no runs with such a gap and a known outcome", 0, excluded)
    unit, words = _UNITS[cohort.settings.resampled]
    fit = bootstrap_conditional_logit(
        runs.failed,
        {**columns, **model_columns(runs.model)},
        runs.task,
        cohort.rng(question.name),
        resamples=cohort.settings.resamples,
        unit=unit,
    )
    details = FindingDetails(
        resamples=cohort.settings.resamples,
        median_resolved_tokens=_median(runs.gap_fair[runs.failed == 0]),
        median_failed_tokens=_median(runs.gap_fair[runs.failed == 1]),
    )
    found = finding_of_fit(question, fit, GAP, words, excluded, details)
    return with_note(found, model_note(runs.model))


def _plain(question: Question, runs: RunColumns, excluded: tuple[Excluded, ...], columns: dict[str, Floats]) -> Finding:
    if not len(runs):
        return no_finding(question, "no runs with such a gap and a known outcome", 0, excluded)
    fit = conditional_logit(runs.failed, {**columns, **model_columns(runs.model)}, runs.task)
    return with_note(finding_of_fit(question, fit, GAP, WALD, excluded), model_note(runs.model))


def _median(gaps: Floats) -> float | None:
    return float(np.median(gaps)) if len(gaps) else None
