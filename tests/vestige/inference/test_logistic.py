"""Logistic regression: closed forms, properties, separation and its remedy."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.errors import SpecError, UnknownNameError
from eirkit.vestige.inference.logistic import logistic
from tests.vestige.inference import samples

SOLVED = 1e-7  # the last Newton step is below 1e-9 standard deviations
RELATIVE = 1e-6


def table(a, b, c, d):
    """Return rows of a 2×2 table: a failed and b resolved with the exposure, c and d without."""
    exposed = np.repeat([1, 1, 0, 0], [a, b, c, d])
    return np.repeat([1, 0, 1, 0], [a, b, c, d]), exposed


def test_a_two_by_two_table_by_hand():
    outcome, exposed = table(12, 8, 5, 15)
    fit = logistic(outcome, {"x": exposed}, np.arange(40))
    assert fit.term("x").estimate == pytest.approx(log(12 * 15 / (8 * 5)), abs=SOLVED)
    # Robust errors of single rows: each arm's p(1−p)n over its square, as 1/a + 1/b + 1/c + 1/d, times n/(n−2).
    robust = (1 / 12 + 1 / 8 + 1 / 5 + 1 / 15) * 40 / 38
    assert fit.term("x").standard_error == pytest.approx(sqrt(robust), rel=RELATIVE)


@settings(max_examples=25, deadline=None)
@given(st.floats(1e-3, 1e3), st.floats(-100, 100))
def test_units_of_a_column_scale_its_term_and_nothing_else(scale, shift):
    runs = samples.runs(tasks=20)
    plain = logistic(runs.failed, {"demand": runs.demand, "tokens": runs.tokens}, runs.task)
    moved = logistic(runs.failed, {"demand": runs.demand * scale + shift, "tokens": runs.tokens}, runs.task)
    assert moved.term("demand").estimate * scale == pytest.approx(plain.term("demand").estimate, rel=RELATIVE)
    assert moved.term("demand").p == pytest.approx(plain.term("demand").p, rel=1e-4)
    assert moved.term("tokens").estimate == pytest.approx(plain.term("tokens").estimate, rel=RELATIVE)


def test_the_order_of_rows_and_columns_and_the_names_of_clusters_do_not_count():
    runs = samples.runs(tasks=20)
    order = np.random.default_rng(0).permutation(len(runs.task))
    plain = logistic(runs.failed, runs.columns, runs.task)
    mixed = {name: values[order] for name, values in reversed(runs.columns.items())}
    moved = logistic(runs.failed[order], mixed, [f"task {t}" for t in runs.task[order]])
    for name in runs.columns:
        assert moved.term(name).estimate == pytest.approx(plain.term(name).estimate, rel=RELATIVE)
        assert moved.term(name).standard_error == pytest.approx(plain.term(name).standard_error, rel=RELATIVE)


def test_failure_and_success_are_mirror_images():
    runs = samples.runs(tasks=20)
    fit, mirror = (logistic(y, runs.columns, runs.task) for y in (runs.failed, 1 - runs.failed))
    assert mirror.term("demand").estimate == pytest.approx(-fit.term("demand").estimate, rel=RELATIVE)
    assert mirror.log_likelihood == pytest.approx(fit.log_likelihood, rel=RELATIVE)


def test_odds_ratios_are_exponentials_of_the_ends():
    runs = samples.runs()
    term = logistic(runs.failed, runs.columns, runs.task).term("demand")
    ratio = term.ratio()
    assert (log(ratio.estimate), log(ratio.low), log(ratio.high)) == pytest.approx((term.estimate, term.low, term.high))
    assert ratio.p == term.p


def test_a_model_that_never_fails_is_separated_and_the_rest_is_fitted_without_it():
    runs = samples.runs()
    failed = np.where(runs.model == 2, 0, runs.failed)
    fit = logistic(failed, runs.columns, runs.task)
    others = runs.model != 2
    rest = {name: values[others] for name, values in runs.columns.items() if name != "model2"}
    expected = logistic(failed[others], rest, runs.task[others])
    assert fit.term("model2").estimate is None
    assert "separated" in fit.term("model2").note
    assert fit.excluded[0].rows == int((~others).sum())
    for name in rest:
        assert fit.term(name).estimate == pytest.approx(expected.term(name).estimate, rel=RELATIVE)
        assert fit.term(name).standard_error == pytest.approx(expected.term(name).standard_error, rel=RELATIVE)


def test_a_threshold_that_explains_everything_gives_words_only():
    x = np.arange(20.0)
    fit = logistic(x > 9.5, {"x": x}, np.arange(20))
    assert not fit.converged
    assert all(term.estimate is None for term in fit.terms)
    assert "separation" in fit.note


def test_overlap_in_one_pair_alone_is_not_separation():
    x = np.array([0.0, 1, 2, 3, 3, 4, 5, 6])
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])  # both outcomes at 3: quasi-complete separation
    fit = logistic(y, {"x": x}, np.arange(8))
    assert [term.estimate for term in fit.terms] == [None, None]
    assert "6 rows left out: predicted perfectly by intercept, x" in fit.note
    y = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    x = np.array([0.0, 1, 2, 3, 3.001, 4, 5, 6])  # by a hair not separated: a steep but finite slope
    fit = logistic(y, {"x": x}, np.arange(8))
    assert fit.converged
    assert fit.term("x").estimate > 1


def test_columns_that_say_nothing_new_are_named():
    runs = samples.runs(tasks=20)
    columns = {"demand": runs.demand, "ones": np.ones(160), "again": 3 * runs.demand - 7, "tokens": runs.tokens}
    fit = logistic(runs.failed, columns, runs.task)
    plain = logistic(runs.failed, {"demand": runs.demand, "tokens": runs.tokens}, runs.task)
    assert fit.term("ones").note == "does not vary"
    assert "combination" in fit.term("again").note
    assert fit.term("tokens").estimate == pytest.approx(plain.term("tokens").estimate, rel=RELATIVE)


def test_few_clusters_are_named():
    runs = samples.runs(tasks=5)
    assert "only 5 clusters" in logistic(runs.failed, {"demand": runs.demand}, runs.task).note


@pytest.mark.parametrize(
    ("outcome", "column", "words"),
    [([0, 1], [1.0], "one value per row"), ([0, 1], [1.0, np.nan], "impute"), ([0, 2], [1.0, 2.0], "0 or 1")],
)
def test_what_no_regression_can_take_is_refused_with_a_remedy(outcome, column, words):
    with pytest.raises(SpecError, match=words):
        logistic(outcome, {"x": column}, [0, 1])


def test_an_unknown_term_is_named():
    with pytest.raises(UnknownNameError, match="known: intercept, x"):
        logistic([0, 1, 1], {"x": [1, 2, 1]}, [0, 1, 2]).term("y")
