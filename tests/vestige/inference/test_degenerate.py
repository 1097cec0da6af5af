"""Cohorts that cannot answer: every estimator says so in words, with no number, no NaN and no warning."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.vestige.inference.auc import failure_auc
from eirkit.vestige.inference.conditional import bootstrap_conditional_logit, conditional_logit
from eirkit.vestige.inference.logistic import logistic
from eirkit.vestige.inference.mediation import mediate
from eirkit.vestige.inference.mixed import mixed_logit, mixed_posterior
from eirkit.vestige.inference.poisson import poisson
from tests.vestige.inference import samples


def cohort(name):
    """Return outcome, column and task of a cohort."""
    runs = samples.runs(tasks=8)
    y, x, task = runs.failed, runs.demand, runs.task
    return {
        "empty": (y[:0], x[:0], task[:0]),
        "one run": (y[:1], x[:1], task[:1]),
        "all resolved": (0 * y, x, task),
        "all failed": (0 * y + 1, x, task),
        "one task": (y[:8], x[:8], task[:8]),
        "constant column": (y, 0 * x + 3, task),
        "separation": ((x > 12).astype(float), x, task),
        "a run per task": (y, x, np.arange(len(y))),
    }[name]


def rng():
    return np.random.default_rng(0)


ESTIMATORS = {
    "auc": lambda y, x, task: failure_auc(x, y),
    "logistic": lambda y, x, task: logistic(y, {"x": x}, task),
    "poisson": lambda y, x, task: poisson(y, {"x": x}, task, np.arange(len(y)), exposure=np.ones(len(y))),
    "conditional": lambda y, x, task: conditional_logit(y, {"x": x}, task),
    "resampled": lambda y, x, task: bootstrap_conditional_logit(y, {"x": x}, task, rng(), resamples=20),
    "mixed": lambda y, x, task: mixed_logit(y, {"x": x}, task),
    "posterior": lambda y, x, task: mixed_posterior(y, {"x": x}, task, rng(), draws=20),
    "mediation": lambda y, x, task: mediate(y, np.arange(len(y)) % 3 == 0, x, {}, task, rng(), resamples=20),
}
# What a degenerate cohort still lets an estimator say; everywhere else there is no estimate.
ANSWERED = {
    ("one task", "auc"),  # runs of one task can be compared with each other
    ("one task", "conditional"),
    ("one task", "resampled"),
    ("one task", "poisson"),  # clusters are runs there
    ("constant column", "auc"),  # all ties: one half
    ("separation", "auc"),  # the area is 1, without an error
    ("separation", "poisson"),  # rates of 0 and 1 are no separation for counts
    ("separation", "posterior"),  # the prior keeps it finite
    ("a run per task", "auc"),
    ("a run per task", "logistic"),
    ("a run per task", "mediation"),
}
COHORTS = [
    "empty",
    "one run",
    "all resolved",
    "all failed",
    "one task",
    "constant column",
    "separation",
    "a run per task",
]
ALWAYS_FITTED = {("all failed", "poisson")}  # a count of one in every cell is a rate like any other


def numbers(found):
    """Yield every number inside a result."""
    if is_dataclass(found):
        found = asdict(found)
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, (list, tuple)):
        for part in found:
            yield from numbers(part)
    elif isinstance(found, float):
        yield found


def focal(found):
    """Return the estimate that a caller would print."""
    if hasattr(found, "indirect"):
        return found.indirect.estimate
    return found.term("x").estimate if hasattr(found, "terms") else found.estimate


@pytest.mark.parametrize("name", COHORTS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_degenerate_cohort_gives_a_statement(name, estimator):
    found = ESTIMATORS[estimator](*cohort(name))
    assert not any(isnan(number) for number in numbers(found))
    if (name, estimator) in ANSWERED | ALWAYS_FITTED:
        assert focal(found) is not None
    else:
        assert focal(found) is None
        assert found.note


@st.composite
def small_cohorts(draw):
    rows = draw(
        st.lists(
            st.tuples(st.booleans(), st.sampled_from([-1e6, -1, 0, 0.5, 1, 3, 1e6]), st.integers(0, 3)), max_size=14
        )
    )
    return tuple(np.array([row[i] for row in rows], float) for i in range(3))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@settings(max_examples=25, deadline=None)
@given(small=small_cohorts())
def test_no_small_cohort_breaks_an_estimator(estimator, small):
    found = ESTIMATORS[estimator](*small)
    assert not any(isnan(number) for number in numbers(found))
    assert focal(found) is not None or found.note
