"""Columns that regressions need: difficulty from disjoint runs, imputed medians, standardized designs."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import SpecError
from eirkit.vestige.cohorts.covariates import disjoint_difficulty
from eirkit.vestige.inference.design import impute_median, standardize


def test_difficulty_by_hand():
    tasks = ["a", "a", "a", "a", "b", "b", "c"]
    resolved = [1, 1, 0, 0, 0, 0, 1]
    analyzed = [0, 0, 0, 1, 1, 0, 1]
    found = disjoint_difficulty(tasks, resolved, analyzed)
    # a: 2 of 3 outside, logit(2.5/4) = log(2.5/1.5); b: 0 of 1, log(0.5/1.5); c: none.
    assert list(found.success_logit) == pytest.approx([log(2.5 / 1.5), log(0.5 / 1.5), 0])
    assert list(found.known) == [True, True, False]
    assert (found.n, found.excluded, found.tasks) == (2, 1, 3)
    assert found.note == "1 of 3 analyzed runs belong to tasks without other runs"


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=40))
def test_the_analyzed_outcomes_cannot_leak_into_difficulty(rows):
    tasks, resolved, analyzed = (np.array([row[i] for row in rows], int) for i in range(3))
    turned = np.where(analyzed == 1, 1 - resolved, resolved)
    one, other = (disjoint_difficulty(tasks, outcome, analyzed) for outcome in (resolved, turned))
    assert np.array_equal(one.success_logit, other.success_logit)


def test_imputation_by_hand():
    found = impute_median([1, np.nan, 3, 8])
    assert list(found.values) == [1, 3, 3, 8]
    assert list(found.missing) == [0, 1, 0, 0]
    assert found.note == "1 of 4 values imputed by the median 3"


def test_imputation_by_groups_counts_each_once():
    found = impute_median([1, 1, 1, 5, np.nan, 9], groups=["a", "a", "a", "b", "c", "d"])
    assert found.median == 5


def test_nothing_known_gives_words():
    assert impute_median([np.nan, np.nan]).values is None
    assert "no value is known" in impute_median([np.nan]).note
    assert impute_median([]).note == "no rows"
    assert disjoint_difficulty([], [], []).note == "no runs to analyze"


def test_infinite_values_are_refused():
    with pytest.raises(SpecError, match="infinities"):
        impute_median([1, np.inf])


@given(st.floats(1e-6, 1e6), st.floats(-1e3, 1e3))
def test_redundancy_does_not_depend_on_units(scale, shift):
    x = np.array([0.0, 1, 2, 5, 7])
    raw = np.column_stack([x, scale * x + shift, x**2])
    design = standardize(("x", "again", "square"), raw)
    assert design.names == ("x", "square")
    assert set(design.dropped) == {"again"}


def test_the_way_back_gives_the_callers_coefficients():
    raw = np.array([[1.0, 10], [2, 30], [4, 20], [8, 70]])
    design = standardize(("a", "b"), raw)
    theta = np.array([0.5, -1, 2])
    own = design.back(intercept=True) @ theta
    assert own[0] + raw @ own[1:] == pytest.approx(design.with_intercept() @ theta)
