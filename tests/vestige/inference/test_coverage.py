"""How often 95% intervals hold the truth in simulated cohorts of 120 tasks of 8 runs; the documentation quotes it."""

from __future__ import annotations

import numpy as np
import pytest

from eirkit.vestige.inference.auc import failure_auc
from eirkit.vestige.inference.conditional import bootstrap_conditional_logit, conditional_logit
from eirkit.vestige.inference.logistic import logistic
from eirkit.vestige.inference.mixed import mixed_logit
from eirkit.vestige.inference.poisson import poisson

TASKS, RUNS, SLOPE = 120, 8, 0.3
LEAST = 0.90  # of 200 intervals at 95%: three standard errors of 0.015 below
TASK = np.repeat(np.arange(TASKS), RUNS)


def holds(term, truth):
    return term.low <= truth <= term.high


def cohort(seed, slope):
    """Return generator, a column and outcomes that depend on it and on the task."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=len(TASK)) + 0.5 * rng.normal(size=TASKS)[TASK]
    odds = 1.5 * rng.normal(size=TASKS)[TASK] + slope * x
    return rng, x, (rng.random(len(TASK)) < 1 / (1 + np.exp(-odds))).astype(float)


def test_a_score_per_task_needs_clustered_intervals():
    naive, honest, slopes = [], [], []
    for seed in range(200):
        rng, _, failed = cohort(seed, 0)
        score = rng.normal(size=TASKS)[TASK]
        naive.append(holds(failure_auc(score, failed), 0.5))
        honest.append(holds(failure_auc(score, failed, TASK), 0.5))
        slopes.append(holds(logistic(failed, {"score": score}, TASK).term("score"), 0))
    assert np.mean(naive) < 0.8
    assert np.mean(honest) > LEAST
    assert np.mean(slopes) > LEAST


def test_rates_in_runs_that_differ():
    held = []
    for seed in range(200):
        rng, x, _ = cohort(seed, 0)
        run, exposure = np.arange(len(TASK)) // 2, 1 + rng.exponential(1000, len(TASK))
        rate = np.exp(-6 + 0.2 * x) * rng.gamma(8, 1 / 8, len(TASK))[run]
        held.append(holds(poisson(rng.poisson(rate * exposure), {"x": x}, TASK, run, exposure=exposure).term("x"), 0.2))
    assert np.mean(held) > LEAST


@pytest.mark.slow
def test_slopes_inside_tasks():
    mixed, conditional = [], []
    for seed in range(200):
        _, x, failed = cohort(seed, SLOPE)
        mixed.append(holds(mixed_logit(failed, {"x": x}, TASK).term("x"), SLOPE))
        conditional.append(holds(conditional_logit(failed, {"x": x}, TASK).term("x"), SLOPE))
    assert np.mean(mixed) > LEAST
    assert np.mean(conditional) > LEAST


@pytest.mark.slow
def test_resampled_strata_hold_the_truth_and_rows_do_so_less_often():
    held = {"strata": [], "rows": []}
    for seed in range(100):
        rng, x, failed = cohort(seed, SLOPE)
        for unit, found in held.items():
            fit = bootstrap_conditional_logit(failed, {"x": x}, TASK, rng, resamples=200, unit=unit)
            found.append(holds(fit.term("x"), SLOPE))
    assert np.mean(held["strata"]) > 0.88  # three standard errors of 100 intervals
    assert np.mean(held["rows"]) < np.mean(held["strata"])
