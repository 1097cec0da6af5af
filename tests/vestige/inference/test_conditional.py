"""Conditional logit: enumeration of subsets, the two kernels, separation, and both ways of resampling."""

from __future__ import annotations

from itertools import combinations
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.errors import SpecError, TooLargeError
from eirkit.vestige.inference.conditional import (
    ROWS_NOTE,
    arrange,
    bootstrap_conditional_logit,
    conditional_logit,
    kernel,
    log_likelihood,
    with_loops,
    with_numpy,
)
from tests.vestige.inference import samples

ROUNDING = 1e-10  # sums over at most a few hundred subsets
BY_DIFFERENCES = 1e-5  # what central differences at 1e-5 can show
RELATIVE = 1e-6
RESAMPLED = 0.15  # relative: the error of a standard deviation from 300 resamples, and of the bootstrap itself
KERNELS = {"loops": with_loops, "numpy": with_numpy, "fastest": kernel()}


def by_enumeration(y, x, strata, beta):
    """Return the conditional log-likelihood from all subsets of the observed size."""
    total = 0.0
    for s in np.unique(strata):
        rows = np.flatnonzero(strata == s)
        scores = x[rows] @ beta
        subsets = combinations(range(len(rows)), int(y[rows].sum()))
        total += y[rows] @ scores - log(sum(np.exp(sum(scores[i] for i in subset)) for subset in subsets))
    return total


@st.composite
def tables(draw):
    sizes = draw(st.lists(st.integers(2, 7), min_size=1, max_size=4))
    strata = np.repeat(np.arange(len(sizes)), sizes)
    number = st.floats(-2, 2).map(lambda v: round(v, 3))
    x = np.array(draw(st.lists(st.tuples(number, number), min_size=len(strata), max_size=len(strata))))
    y = np.array(draw(st.lists(st.booleans(), min_size=len(strata), max_size=len(strata))), float)
    beta = np.array([draw(number), draw(number)])
    return y, x, strata, beta


@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=40, deadline=None)
@given(table=tables())
def test_the_recursion_sums_over_all_subsets(name, table):
    y, x, strata, beta = table
    arranged = arrange(y, x, strata)
    if len(arranged.cases):
        found = log_likelihood(arranged, beta, np.ones(len(arranged.cases)), KERNELS[name])
        assert found.value == pytest.approx(by_enumeration(y, x, strata, beta), abs=ROUNDING)


@pytest.mark.parametrize("name", KERNELS)
def test_derivatives_are_those_of_the_likelihood(name):
    runs = samples.runs(tasks=8)
    x = np.column_stack([runs.demand - 12, runs.never, runs.tokens - 15])
    arranged, beta, step = arrange(runs.failed, x, runs.task), np.array([0.2, -0.1, 0.3]), 1e-5
    weights = 1.0 + np.arange(len(arranged.cases)) % 3

    def at(where):
        return log_likelihood(arranged, where, weights, KERNELS[name])

    for j in range(3):
        ahead, behind = at(beta + step * np.eye(3)[j]), at(beta - step * np.eye(3)[j])
        assert (ahead.value - behind.value) / (2 * step) == pytest.approx(at(beta).gradient[j], rel=BY_DIFFERENCES)
        slope = (ahead.gradient - behind.gradient) / (2 * step)
        assert -slope == pytest.approx(at(beta).information[j], rel=BY_DIFFERENCES, abs=1e-4)


def test_the_kernels_agree_on_a_cohort():
    runs = samples.runs()
    x = np.column_stack([runs.demand - 12, runs.never])
    arranged = arrange(runs.failed, x, runs.task)
    weights = np.arange(len(arranged.cases)) % 4.0  # some strata do not count at all
    loops, fast = (log_likelihood(arranged, np.array([0.3, 0.1]), weights, k) for k in (with_numpy, kernel()))
    assert fast.value == pytest.approx(loops.value, rel=1e-12)
    assert fast.gradient == pytest.approx(loops.gradient, rel=1e-9)
    assert fast.information == pytest.approx(loops.information, rel=1e-9)


def test_matched_pairs_by_hand():
    # One case and one control a pair: 9 pairs where only the case was exposed, 3 where only the control was.
    exposed, case = np.array([1, 0] * 9 + [0, 1] * 3 + [1, 1] * 5), np.tile([1, 0], 17)
    fit = conditional_logit(case, {"x": exposed}, np.repeat(np.arange(17), 2))
    assert fit.term("x").estimate == pytest.approx(log(9 / 3), abs=RELATIVE)
    assert fit.term("x").standard_error == pytest.approx((1 / 9 + 1 / 3) ** 0.5, rel=RELATIVE)


def test_large_strata_stay_in_floats():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=900), (rng.random(900) < 0.5).astype(float)
    fit = conditional_logit(y, {"x": x}, np.zeros(900))
    assert fit.converged
    with pytest.raises(TooLargeError, match="finer strata"):
        conditional_logit(np.append(y, [0, 1]), {"x": np.append(x, [0, 0])}, np.zeros(902))


def test_levels_of_strata_do_not_count():
    runs = samples.runs(tasks=25)
    plain = conditional_logit(runs.failed, {"demand": runs.demand, "tokens": runs.tokens}, runs.task)
    moved = {"demand": 4 * runs.demand + 100 * runs.task, "tokens": runs.tokens - 7 * runs.task}
    found = conditional_logit(runs.failed, moved, runs.task)
    assert 4 * found.term("demand").estimate == pytest.approx(plain.term("demand").estimate, rel=1e-5)
    assert found.term("tokens").standard_error == pytest.approx(plain.term("tokens").standard_error, rel=1e-5)


def test_failure_and_success_are_mirror_images():
    runs = samples.runs(tasks=25)
    fit, mirror = (conditional_logit(y, runs.columns, runs.task) for y in (runs.failed, 1 - runs.failed))
    assert mirror.term("demand").estimate == pytest.approx(-fit.term("demand").estimate, rel=RELATIVE)
    assert mirror.log_likelihood == pytest.approx(fit.log_likelihood, rel=RELATIVE)


def test_a_model_that_never_fails_is_separated_and_the_rest_is_fitted_without_it():
    runs = samples.runs()
    failed, others = np.where(runs.model == 2, 0, runs.failed), runs.model != 2
    fit = conditional_logit(failed, runs.columns, runs.task)
    rest = {name: values[others] for name, values in runs.columns.items() if name != "model2"}
    expected = conditional_logit(failed[others], rest, runs.task[others])
    assert fit.term("model2").estimate is None
    assert "predicted perfectly by model2" in fit.note
    for name in rest:
        assert fit.term(name).estimate == pytest.approx(expected.term(name).estimate, rel=RELATIVE)
        assert fit.term(name).standard_error == pytest.approx(expected.term(name).standard_error, rel=RELATIVE)


def test_a_column_that_decides_every_stratum_gives_words_only():
    strata = np.repeat(np.arange(6), 4)
    x = np.tile(np.arange(4.0), 6)
    fit = conditional_logit(x > 1.5, {"x": x}, strata)
    assert fit.term("x").estimate is None
    assert "separation" in fit.note


def test_resampled_strata_agree_with_the_information():
    runs = samples.runs(tasks=120, spread=1.0)
    columns = {"demand": runs.demand, "never": runs.never}
    model = conditional_logit(runs.failed, columns, runs.task).term("demand")
    fit = bootstrap_conditional_logit(runs.failed, columns, runs.task, np.random.default_rng(1), resamples=300)
    found = fit.term("demand")
    assert found.estimate == model.estimate
    assert found.standard_error == pytest.approx(model.standard_error, rel=RESAMPLED)
    assert found.low < found.estimate < found.high


def test_resampled_rows_are_biased_away_from_zero_and_the_note_says_so():
    runs = samples.runs(tasks=120, spread=1.0)
    columns = {"demand": runs.demand}
    make = {"resamples": 200, "unit": "rows"}
    fit = bootstrap_conditional_logit(runs.failed, columns, runs.task, np.random.default_rng(1), **make)
    found = fit.term("demand")
    assert ROWS_NOTE in fit.note
    assert (found.low + found.high) / 2 > 1.05 * found.estimate


@pytest.mark.parametrize("unit", ["strata", "rows"])
def test_the_same_generator_gives_the_same_numbers(unit):
    runs = samples.runs(tasks=15)
    once, twice = (
        bootstrap_conditional_logit(
            runs.failed, {"demand": runs.demand}, runs.task, np.random.default_rng(9), resamples=30, unit=unit
        )
        for _ in range(2)
    )
    assert once == twice


def test_an_unknown_unit_is_refused():
    with pytest.raises(SpecError, match="'strata' or 'rows'"):
        bootstrap_conditional_logit([0, 1], {"x": [0, 1]}, [0, 0], np.random.default_rng(0), unit="tasks")
