"""Exact tests by hand and by enumeration, sampled ones against exact ones, intervals against what must cover them."""

from __future__ import annotations

import math
import tracemalloc
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.errors import SpecError
from eirkit.lacuna.findings import statistics
from eirkit.lacuna.findings.statistics import (
    bootstrap,
    bootstrap_mean,
    mcnemar,
    permuted_difference,
    ranks,
    sign_flip,
    spearman,
)

# Five standard errors of a proportion from 9,999 draws: √(0.25 / 9999) = 0.005 at most.
SAMPLING = 5 * 0.005
ROUNDING = 1e-12  # sums of a few dozen terms of size one

group = st.lists(st.integers(0, 3).map(float), min_size=1, max_size=3)
small = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=7)


def test_mcnemar_by_hand():
    # Six pairs differ, five of them for the first: p = 2 · (C(6,0) + C(6,1)) / 2^6 = 14/64.
    first = [True] * 5 + [False] + [True, False]
    second = [False] * 5 + [True] + [True, False]
    found = mcnemar(first, second)
    assert (found.p, found.n, found.estimate, found.method) == (14 / 64, 6, 4 / 8, "exact")
    assert mcnemar([True], [True]).p == 1.0
    assert mcnemar([], []).p == 1.0
    assert mcnemar([True] * 151, [False] * 151).p == 2 / 2**151


def test_mcnemar_is_symmetric_and_a_probability():
    for gained, lost in product(range(8), repeat=2):
        first, second = [True] * gained + [False] * lost, [False] * gained + [True] * lost
        assert mcnemar(first, second).p == mcnemar(second, first).p <= 1.0


def test_sign_flips_by_hand():
    # Of eight sign patterns of (1, 2, 3) only +++ and −−− reach a sum of 6.
    found = sign_flip([1.0, 2.0, 3.0])
    assert (found.p, found.estimate, found.n, found.method) == (2 / 8, 2.0, 3, "exact")
    assert sign_flip([]).p == 1.0
    assert sign_flip([0.0, 0.0]).p == 1.0


@given(small)
def test_sign_flips_equal_a_plain_enumeration(differences):
    observed = abs(sum(differences))
    flips = product((1, -1), repeat=len(differences))
    sums = [abs(sum(sign * d for sign, d in zip(signs, differences, strict=True))) for signs in flips]
    expected = sum(total >= observed - ROUNDING for total in sums) / len(sums)
    assert sign_flip(differences).p == pytest.approx(expected, abs=ROUNDING)


def test_sampled_sign_flips_are_near_the_exact_ones():
    differences = [1.0, -0.5, 2.0, 0.3, -0.2, 0.9, 1.1, -0.4] * 2
    exact = sign_flip(differences)
    longer = sign_flip([*differences, 0.0])  # a zero changes no sum, and makes it too long to enumerate
    assert (exact.method, longer.method) == ("exact", "sampled")
    assert abs(exact.p - longer.p) < SAMPLING
    assert longer == sign_flip([*differences, 0.0])
    assert longer.p != sign_flip([*differences, 0.0], seed=1).p


@pytest.mark.parametrize("test", ["sign flip", "difference", "spearman"])
def test_the_normal_limit_is_near_the_sampled_p(test, monkeypatch):
    def measured():
        drawn = np.random.default_rng(3)
        one, other = drawn.gamma(2, size=400), drawn.gamma(2.2, size=300)
        if test == "sign flip":
            return sign_flip((one[:300] - other).tolist())
        if test == "difference":
            return permuted_difference(one.tolist(), other.tolist())
        return spearman(one[:300].tolist(), (other + 0.1 * one[:300]).tolist())

    sampled = measured()
    monkeypatch.setattr(statistics, "LARGEST_SAMPLED", 100)
    limit = measured()
    assert (sampled.method, limit.method) == ("sampled", "normal")
    assert limit.estimate == sampled.estimate
    assert abs(limit.p - sampled.p) < SAMPLING


def test_blocks_change_no_result(monkeypatch):
    values = np.random.default_rng(4).normal(0.1, size=37).tolist()

    def measured():
        return sign_flip(values), spearman(values, values[::-1]), bootstrap_mean(values, range(37))

    whole = measured()
    monkeypatch.setattr(statistics, "BLOCK_WORDS", 100)
    assert measured() == whole


def test_memory_is_bounded_however_many_observations(monkeypatch):
    monkeypatch.setattr(statistics, "BLOCK_WORDS", statistics.BLOCK_WORDS // 40)
    values = np.random.default_rng(5).normal(size=1_000).tolist()
    tracemalloc.start()
    try:
        bootstrap_mean(values, range(len(values)))
        sign_flip(values), spearman(values, values[::-1]), permuted_difference(values, values[:300])
        # 2,000 resamples of 1,000 values at once are 16 MB; a block of words and what is made of it are 0.4 MB each.
        assert tracemalloc.get_traced_memory()[1] < 6e6
    finally:
        tracemalloc.stop()


@settings(max_examples=40)
@given(group, group)
def test_the_difference_of_groups_equals_a_plain_enumeration(first, second):
    together, size = [*first, *second], len(first)

    def gap(values):
        return sum(values[:size]) / size - sum(values[size:]) / (len(values) - size)

    observed = gap(together)
    orders = list(permutations(together))
    expected = sum(abs(gap(order)) >= abs(observed) - ROUNDING for order in orders) / len(orders)
    found = permuted_difference(first, second)
    assert (found.estimate, found.p) == (pytest.approx(observed), pytest.approx(expected, abs=ROUNDING))


def test_groups_without_members_say_nothing():
    assert permuted_difference([], [1.0]).p == 1.0


def test_ranks_share_their_mean_where_values_are_equal():
    assert ranks([10.0, 20.0, 10.0, 30.0]).tolist() == [1.5, 3.0, 1.5, 4.0]


def test_spearman_by_hand():
    # Perfectly opposed: of 4! orders only the given one and its mirror reach |ρ| = 1.
    found = spearman([1, 2, 3, 4], [9.0, 7.0, 5.0, 1.0])
    assert (found.estimate, found.p, found.method) == (pytest.approx(-1.0), 2 / 24, "exact")
    # Σ d² = 0 + 1 + 1 + 0 = 2, so ρ = 1 − 6·2 / (4·15) = 0.8 without ties.
    assert spearman([1, 2, 3, 4], [1, 3, 2, 4]).estimate == pytest.approx(0.8)
    assert spearman([1, 1, 1], [1, 2, 3]).p == 1.0
    assert spearman([], []).p == 1.0


def test_spearman_of_many_observations_is_sampled():
    pressure = [1.0, 4 / 3, 2.0, 4.0] * 9
    accuracy = [1.0 / p + 0.01 * i for i, p in enumerate(pressure)]
    found = spearman(pressure, accuracy)
    assert (found.method, found.p) == ("sampled", 1 / 10_000)
    assert found.estimate < -0.8


def test_tests_agree_with_scipy_where_it_is_installed():
    stats = pytest.importorskip("scipy.stats")
    first, second = [3.0, 1.0, 4.0, 1.5, 5.0], [2.0, 7.0, 1.0, 8.0, 2.5]
    assert spearman(first, second).estimate == pytest.approx(stats.spearmanr(first, second).statistic)
    assert mcnemar([True] * 5 + [False], [False] * 5 + [True]).p == pytest.approx(stats.binomtest(1, 6).pvalue)


def test_the_bootstrap_by_hand():
    # Two trajectories with means 0 and 1: a resample has mean 0, 1/2 or 1 with probabilities 1/4, 1/2, 1/4.
    found = bootstrap_mean([0.0, 0.0, 1.0, 1.0], ["a", "a", "b", "b"])
    assert (found.estimate, found.low, found.high, found.clusters) == (0.5, 0.0, 1.0, 2)
    single = bootstrap_mean([0.25, 0.75], ["a", "a"])
    assert (single.low, single.estimate, single.high) == (0.5, 0.5, 0.5)
    with pytest.raises(SpecError, match="at least one"):
        bootstrap(lambda rows: 0.0, 0)


def test_clusters_widen_the_interval():
    values = [float(i % 2) for i in range(200)]
    alone = bootstrap_mean(values, range(200))
    # The same values in ten clusters that are constant inside carry the information of ten.
    together = bootstrap_mean(sorted(values), [i // 20 for i in range(200)])
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_the_bootstrap_of_a_mean_has_the_width_that_theory_gives():
    values = [float(i % 2) for i in range(100)]
    found = bootstrap_mean(values, range(100))
    expected = 2 * 1.96 * 0.5 / math.sqrt(100)
    # Ends of 2,000 resamples of a mean of 100 coins move in steps of 0.01, and by about one of them.
    assert found.high - found.low == pytest.approx(expected, abs=0.02)


def test_results_do_not_depend_on_the_global_state():
    before = spearman(range(12), [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])
    np.random.seed(7)
    assert spearman(range(12), [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]) == before
    assert statistics.DRAWS == 9_999
