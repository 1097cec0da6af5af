"""The area under the curve and its interval, by definition and by property."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.vestige.inference.auc import failure_auc
from tests.vestige.inference import samples

ROUNDING = 1e-12  # sums of a few hundred fractions
REPEATED = 0.06  # relative: the spread of 400 replicates' standard deviation is about 1/sqrt(800)

cohorts = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=4, max_size=30).filter(
    lambda rows: 2 <= sum(failed for _, failed in rows) <= len(rows) - 2
)


def by_pairs(scores, failed):
    """Return area and DeLong's variance from the matrix of all pairs: 1 for a win, ½ for a tie."""
    high, low = scores[failed == 1], scores[failed == 0]
    wins = (high[:, None] > low) + 0.5 * (high[:, None] == low)
    own = wins.mean(axis=1).var(ddof=1) / len(high) + wins.mean(axis=0).var(ddof=1) / len(low)
    return wins.mean(), own


@given(cohorts)
def test_area_and_variance_are_those_of_all_pairs(rows):
    scores, failed = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows], float)
    found, (area, variance) = failure_auc(scores, failed), by_pairs(scores, failed)
    assert found.estimate == pytest.approx(area, abs=ROUNDING)
    if found.standard_error is None:
        assert variance < ROUNDING or area in (0, 1)
    else:
        assert found.standard_error**2 == pytest.approx(variance, abs=ROUNDING)
        assert 0 <= found.low <= found.estimate <= found.high <= 1


def test_a_case_by_hand():
    # Failed 2, 3; resolved 1, 2. Wins: 2>1, 2=2 (½), 3>1, 3>2, so 3.5 of 4.
    found = failure_auc([2, 3, 1, 2], [1, 1, 0, 0])
    assert found.estimate == 3.5 / 4
    # Placements of the failed: ¾, 1 (variance 1/32); of the resolved: 1, ¾ (1/32). Each is halved and both are added.
    assert found.standard_error**2 == pytest.approx(1 / 32, abs=ROUNDING)


@given(cohorts, st.floats(0.01, 100), st.floats(-50, 50))
def test_only_the_order_of_scores_counts(rows, scale, shift):
    scores, failed = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows], float)
    assert failure_auc(scores * scale + shift, failed) == failure_auc(scores, failed)


@given(cohorts)
def test_turning_the_score_round_turns_the_area_round(rows):
    scores, failed = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows], float)
    assert failure_auc(-scores, failed).estimate == pytest.approx(
        1 - failure_auc(scores, failed).estimate, abs=ROUNDING
    )


def test_singletons_as_clusters_change_nothing():
    runs = samples.runs(tasks=20)
    alone = failure_auc(runs.demand, runs.failed)
    clustered = failure_auc(runs.demand, runs.failed, np.arange(len(runs.failed)))
    assert clustered == alone


def test_doubled_runs_carry_no_more_information_once_clustered():
    runs = samples.runs(tasks=30)
    once = failure_auc(runs.demand, runs.failed)
    twice = np.tile(runs.demand, 2), np.tile(runs.failed, 2)
    naive, honest = failure_auc(*twice), failure_auc(*twice, np.tile(np.arange(len(runs.failed)), 2))
    assert honest.standard_error == pytest.approx(once.standard_error, rel=0.01)  # but for the factors n/(n−1)
    assert naive.standard_error < 0.75 * once.standard_error


def test_the_clustered_error_is_that_of_repeated_cohorts():
    rng = np.random.default_rng(11)
    areas, errors = [], []
    for _ in range(400):
        level = rng.normal(size=60)
        task = np.repeat(np.arange(60), 5)
        scores = level[task] + rng.normal(size=300)
        failed = (rng.random(300) < 1 / (1 + np.exp(-level[task]))).astype(float)
        found = failure_auc(scores, failed, task)
        areas.append(found.estimate)
        errors.append(found.standard_error)
    assert np.mean(errors) == pytest.approx(np.std(areas), rel=2 * REPEATED)


@pytest.mark.parametrize(
    ("scores", "failed", "words"),
    [
        ([], [], "no runs"),
        ([1, 2], [0, 0], "no failed runs"),
        ([1, 2], [1, 1], "no resolved runs"),
    ],
)
def test_without_both_classes_there_is_a_statement(scores, failed, words):
    found = failure_auc(scores, failed)
    assert found.estimate is None
    assert found.note.startswith(words)


def test_a_perfect_score_has_an_area_but_no_error():
    found = failure_auc([1, 2, 3, 4], [0, 0, 1, 1])
    assert (found.estimate, found.low, found.p) == (1.0, None, None)
    assert "perfectly" in found.note


def test_equal_scores_order_nothing():
    found = failure_auc([7, 7, 7, 7], [0, 0, 1, 1])
    assert (found.estimate, found.low, found.p) == (0.5, None, None)
    assert found.note == "all scores are equal, so no error can be estimated"


def test_pairs_that_cancel_have_no_clustered_error_and_it_is_not_called_perfect():
    # Failed 3 and 2, resolved 2 and 1: shares 1 and 3/4, and 3/4 and 1; area 7/8, excesses ±1/8, opposite in a pair.
    # Obuchowski: 2·(2/64)/4 + 2·(2/64)/4 − 2·2·(2/64)/4 = 0.
    scores, failed, pairs = [3, 2, 2, 1], [1, 0, 1, 0], [0, 0, 1, 1]
    found = failure_auc(scores, failed, pairs)
    assert found.standard_error is None
    assert 0 < found.estimate < 1
    assert found.note == "the estimate of the clustered variance is not positive, so no error can be estimated"
    assert failure_auc(scores, failed).standard_error is not None


def test_one_run_of_a_class_has_no_error():
    found = failure_auc([1, 2, 3, 4], [0, 0, 1, 0])
    assert found.estimate == 2 / 3
    assert "single cluster" in found.note
