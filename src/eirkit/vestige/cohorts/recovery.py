"""Tests whether runs that later saw a clipped line succeed more often than runs that never did.

The raw difference; a mixed model with a random intercept per task; the same with each task's share of never-recovered
runs; and a regression on how often other runs solve the task. Odds ratios are of success, never recovered against
recovered.
"""

from __future__ import annotations

from math import hypot, sqrt

import numpy as np

from eirkit.records.analysis import Excluded, FindingDetails
from eirkit.vestige.cohorts.covariates import patch_covariates, success_elsewhere
from eirkit.vestige.cohorts.demand_failure import EASE, NO_OTHERS, REMEDY
from eirkit.vestige.cohorts.finding import (
    CLUSTERED,
    Cohort,
    Finding,
    Question,
    at_tasks,
    finding_of_fit,
    finding_of_term,
    known,
    no_finding,
    with_note,
)
from eirkit.vestige.cohorts.run_columns import Codes, Floats, RunColumns
from eirkit.vestige.inference.design import Columns
from eirkit.vestige.inference.logistic import logistic
from eirkit.vestige.inference.mixed import ChainMixing, Posterior, mixed_posterior
from eirkit.vestige.inference.results import Term, Z, join_notes, wald

NEVER, TASK_SHARE = "never recovered", "task's share never recovered"
NEWCOMBE = "95% Newcombe, runs as independent"
CREDIBLE = "95% credible, equal tails of the posterior"
SCALE = "odds ratio of success: never recovered against recovered"
ROUNDING = 1e-12  # below it an error is rounding: the residuals cancel in every cluster
MIXED_R_HAT, MIXED_DRAWS = 1.01, 400.0
MORE_DRAWS = 4  # factor for the second attempt if the chains have not mixed
FEWEST_RUNS = 20  # smallest group for which a normal interval of a share is used
_LIMITS = "an effect of clipping: better runs are more likely to recover lines"
RAW = Question(
    "clipping-raw-difference",
    "difference in the share of resolved runs: never recovered minus recovered",
    "how much less often runs succeed that never saw a clipped line again, for whatever reason",
    "an effect net of the task: harder tasks have longer files and are clipped more",
)
MIXED = Question("clipping-mixed", SCALE, "the same for tasks of equal size, with an intercept per task", _LIMITS)
CRE = Question(
    "clipping-correlated-effects",
    SCALE,
    "the same where a task's share of never-recovered runs may depend on its difficulty",
    _LIMITS,
)
DISJOINT = Question(
    "clipping-disjoint-difficulty", SCALE, "the same among tasks that other runs solve equally often", _LIMITS
)
QUESTIONS = (RAW, MIXED, CRE, DISJOINT)


def analyze(cohort: Cohort) -> list[Finding]:
    """Return the four contrasts."""
    judged, excluded = cohort.judged()
    is_classified = np.isin(judged.group, ("recovered", "never"))
    runs, excluded = known(judged, is_classified, "not in one of the two clipping groups", excluded)
    never = (runs.group == "never").astype(np.float64)
    if not 0 < never.sum() < len(runs):
        note = "runs of both kinds, recovered and never recovered, are needed"
        return [no_finding(question, note, len(runs), excluded) for question in QUESTIONS]
    others = judged.at(~is_classified).with_more(cohort.elsewhere)
    return [
        _raw(runs, never, excluded),
        _mixed(cohort, MIXED, runs, {NEVER: never}, excluded),
        _mixed(cohort, CRE, runs, {NEVER: never, TASK_SHARE: at_tasks(never, runs.task)}, excluded),
        _disjoint(runs, never, others, excluded),
    ]


def risk_difference(outcome: Floats, exposed: Floats, clusters: Codes) -> Term:
    """Return the difference of two proportions with a cluster-robust error."""
    inside = exposed == 1
    shares = [float(outcome[rows].mean()) for rows in (inside, ~inside)]
    sizes = [int(rows.sum()) for rows in (inside, ~inside)]
    influence = np.where(inside, (outcome - shares[0]) / sizes[0], -(outcome - shares[1]) / sizes[1])
    sums = np.bincount(np.unique(clusters, return_inverse=True)[1], influence)
    count = len(sums)
    error = sqrt(float(sums @ sums) * count / (count - 1)) if count > 1 else 0.0
    return wald("difference", shares[0] - shares[1], error if error > ROUNDING else 0.0)


def independent_interval(first: float, n: int, second: float, m: int) -> tuple[float, float]:
    """Return Wald's 95% interval of a difference of proportions, with runs as independent."""
    half = Z * sqrt(first * (1 - first) / n + second * (1 - second) / m)
    return first - second - half, first - second + half


def newcombe_interval(first: float, n: int, second: float, m: int) -> tuple[float, float]:
    """Return Newcombe's 95% interval of a difference of proportions, which holds in small groups."""
    (a, b), (c, d) = _wilson(first, n), _wilson(second, m)
    apart = first - second
    return apart - hypot(first - a, d - second), apart + hypot(b - first, second - c)


def _wilson(share: float, n: int) -> tuple[float, float]:
    center, half = share + Z * Z / (2 * n), Z * sqrt(share * (1 - share) / n + (Z / (2 * n)) ** 2)
    return (center - half) / (1 + Z * Z / n), (center + half) / (1 + Z * Z / n)


def _raw(runs: RunColumns, never: Floats, excluded: tuple[Excluded, ...]) -> Finding:
    success, is_never = 1 - runs.failed, never == 1
    term = risk_difference(success, never, runs.task)
    sizes = int(is_never.sum()), int((~is_never).sum())
    shares = float(success[is_never].mean()), float(success[~is_never].mean())
    low, high = independent_interval(shares[0], sizes[0], shares[1], sizes[1])
    interval = CLUSTERED
    if min(sizes) < FEWEST_RUNS:
        score = newcombe_interval(shares[0], sizes[0], shares[1], sizes[1])
        interval, smaller = NEWCOMBE, f"the smaller group has n = {min(sizes)}"
        note = f"{smaller}: the interval treats runs as independent and there is no p value"
        term = Term("difference", shares[0] - shares[1], None, *score, note=note)
    return finding_of_term(
        RAW,
        term,
        len(runs),
        interval,
        ratio=False,
        excluded=excluded,
        details=FindingDetails(
            never_runs=sizes[0],
            recovered_runs=sizes[1],
            never_share=shares[0],
            recovered_share=shares[1],
            independent_low=low,
            independent_high=high,
        ),
    )


def _mixed(
    cohort: Cohort, question: Question, runs: RunColumns, own: dict[str, Floats], excluded: tuple[Excluded, ...]
) -> Finding:
    sizes = patch_covariates(runs)
    columns: Columns = {**own, **sizes.columns}
    found = _sampled(1 - runs.failed, columns, runs, cohort.rng(question.name), cohort.settings.draws)
    mixing = _own_mixing(found)
    return finding_of_term(
        question,
        found.term(NEVER),
        found.n,
        CREDIBLE,
        excluded=excluded,
        note=join_notes([found.note, sizes.note]),
        details=FindingDetails(
            tasks=found.groups,
            draws=found.draws,
            priors=found.priors,
            r_hat=None if mixing is None else mixing.r_hat,
            effective_draws=None if mixing is None else mixing.effective_draws,
        ),
    )


def _sampled(success: Floats, columns: Columns, runs: RunColumns, rng: np.random.Generator, draws: int) -> Posterior:
    """Return a posterior; if the chains disagree on the ratio in question, sample once more with more draws."""
    found = mixed_posterior(success, columns, runs.task, rng, draws=draws)
    own = _own_mixing(found)
    if own is None or (own.r_hat <= MIXED_R_HAT and own.effective_draws >= MIXED_DRAWS):
        return found
    return mixed_posterior(success, columns, runs.task, rng, draws=MORE_DRAWS * draws)


def _own_mixing(found: Posterior) -> ChainMixing | None:
    """Return the mixing of the ratio in question; None if it has no estimate."""
    own = next((mixing for mixing in found.mixing if mixing.name == NEVER), None)
    return own if own is not None and np.isfinite(own.r_hat) else None


def _disjoint(runs: RunColumns, never: Floats, others: RunColumns, excluded: tuple[Excluded, ...]) -> Finding:
    ease = success_elsewhere(runs, others)
    if not ease.known.any():
        note = join_notes([REMEDY, ease.note])
        return no_finding(DISJOINT, note, excluded=(*excluded, Excluded(NO_OTHERS, len(runs))))
    kept, left_out = known(runs, ease.known, NO_OTHERS, excluded)
    sizes = patch_covariates(kept)
    columns = {NEVER: never[ease.known], EASE: ease.success_logit[ease.known], **sizes.columns}
    found = finding_of_fit(DISJOINT, logistic(1 - kept.failed, columns, kept.task), NEVER, CLUSTERED, left_out)
    return with_note(found, join_notes([sizes.note, ease.note]))
