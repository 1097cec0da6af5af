"""Intervals for few observations: against printed tables, and their coverage by enumeration of every outcome."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.lacuna.findings.intervals import (
    FEWEST_CLUSTERS,
    beta_cdf,
    binomial_tail,
    clustered_share,
    half_width,
    mean_difference,
    mean_share,
    paired,
    proportion,
    student,
)

ROUNDING = 1e-9


def outcomes(n: int, p: float) -> list[float]:
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


@pytest.mark.parametrize("n", [1, 5, 30])
@pytest.mark.parametrize("p", [0.0001, 0.03, 0.5, 0.9])
def test_a_tail_is_the_sum_of_its_outcomes(n, p):
    for least in range(n + 1):
        assert binomial_tail(least, n, p) == pytest.approx(math.fsum(outcomes(n, p)[least:]), rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 7, 25])
def test_the_interval_of_a_share_covers_it_in_95_of_100_samples(n):
    found = [proportion(k, n) for k in range(n + 1)]
    assert all(one.high > one.low for one in found)
    for p in [i / 200 for i in range(1, 200)]:
        covered = math.fsum(
            weight for one, weight in zip(found, outcomes(n, p), strict=True) if one.low <= p <= one.high
        )
        assert covered >= 0.95 - ROUNDING


def test_nothing_is_known_without_trials():
    assert (proportion(0, 0).low, proportion(0, 0).high) == (0.0, 1.0)


# A printed table of Student's t at 97.5%.
@pytest.mark.parametrize(
    ("freedom", "t"), [(1, 12.706), (2, 4.303), (5, 2.571), (11, 2.201), (30, 2.042), (120, 1.980)]
)
def test_quantiles_are_those_of_the_table(freedom, t):
    assert student(freedom) == pytest.approx(t, abs=5e-4)


def test_the_beta_function_is_the_integral_of_its_density():
    a, b, steps = 2.5, 4.0, 200_000
    density = [(i / steps) ** (a - 1) * (1 - i / steps) ** (b - 1) for i in range(steps + 1)]
    whole = math.fsum(density)
    for x in (0.1, 0.4, 0.8):
        assert beta_cdf(x, a, b) == pytest.approx(math.fsum(density[: int(x * steps) + 1]) / whole, abs=1e-4)


def test_one_step_shows_nothing():
    found = paired([[(True, False)]])
    assert found.estimate == 1.0
    assert found.low < 0 < found.high


def test_a_paired_interval_covers_the_difference_in_95_of_100_samples():
    n = 5
    cases = [(True, False), (False, True), (True, True)]
    found = {counts: paired([[*[cases[0]] * counts[0], *[cases[1]] * counts[1], *[cases[2]] * (n - sum(counts))]])
             for counts in product(range(n + 1), repeat=2) if sum(counts) <= n}  # fmt: skip
    for up, down in product([i / 10 for i in range(11)], repeat=2):
        if up + down > 1:
            continue
        covered = 0.0
        for (a, b), one in found.items():
            ways = math.comb(n, a) * math.comb(n - a, b)
            weight = ways * up**a * down**b * (1 - up - down) ** (n - a - b)
            covered += weight * (one.low - ROUNDING <= up - down <= one.high + ROUNDING)
        assert covered >= 0.95 - ROUNDING


def test_trajectories_that_disagree_widen_the_interval():
    alike = paired([[(True, False), (False, False)]] * 6)
    apart = paired([[(True, False), (True, False)]] * 3 + [[(False, False), (False, False)]] * 3)
    assert alike.estimate == apart.estimate == 0.5
    assert apart.high - apart.low > alike.high - alike.low


def test_the_error_of_a_clustered_mean_by_hand():
    # Residuals −1, −1 | 1, 1: sums −2 and 2; √(2/1 · 8) / 4 = 1, times t with one degree of freedom.
    assert half_width([0.0, 0.0, 2.0, 2.0], "aabb") == pytest.approx(12.7062, rel=1e-5)


def test_a_mean_share_is_never_certain_and_no_surer_than_its_tasks():
    """Two, three and six perfect tasks: the interval of as many trials, however many steps each had."""
    for tasks in (1, 2, 3, 6, 20):
        found = mean_share([1.0] * tasks, range(tasks), 64 * tasks)
        assert (found.estimate, found.high, found.clusters) == (1.0, 1.0, tasks)
        assert found.low == pytest.approx(0.025 ** (1 / tasks))  # P(all right) = p^tasks
        assert mean_share([1.0] * tasks * 3, [*range(tasks)] * 3, 192 * tasks).low == pytest.approx(found.low)


@given(st.lists(st.integers(0, 24), min_size=1, max_size=20))
def test_a_share_of_clusters_of_one_size_has_one_interval_however_it_is_computed(right):
    asked = 24 * len(right)
    pooled = clustered_share([(part, 24) for part in right], proportion(sum(right), asked))
    meant = mean_share([part / 24 for part in right], range(len(right)), asked)
    ends = [(one.estimate, one.low, one.high) for one in (pooled, meant)]
    assert ends[0] == pytest.approx(ends[1], abs=1e-9)


def test_a_mean_share_of_tasks_that_differ_has_the_t_interval_over_them():
    values = [0.2, 0.4, 0.3, 0.5, 0.1, 0.3, 0.35, 0.25]
    found, half = mean_share(values, range(8), 8 * 10_000), half_width(values, range(8))
    assert (found.low, found.high) == (pytest.approx(0.3 - half), pytest.approx(0.3 + half))
    scipy = pytest.importorskip("scipy.stats")
    low, high = scipy.t.interval(0.95, 7, loc=0.3, scale=scipy.sem(values))
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize("tasks", [2, 3, 5, 8])
@pytest.mark.parametrize("chance", [0.3, 0.7, 0.95])
def test_a_mean_share_covers_where_every_task_is_all_right_or_all_wrong(tasks, chance):
    """The hardest case, by enumeration: what a task has many steps of, it has only once."""
    covered = 0.0
    for right in range(tasks + 1):
        found = mean_share([1.0] * right + [0.0] * (tasks - right), range(tasks), 32 * tasks)
        if found.low <= chance <= found.high:
            covered += math.comb(tasks, right) * chance**right * (1 - chance) ** (tasks - right)
    assert covered >= (0.95 if tasks < FEWEST_CLUSTERS else 0.9)  # t is approximate where they differ


@pytest.mark.parametrize("n", [6, 12, 30])
@pytest.mark.parametrize("rate", [0.01, 0.1, 0.22, 0.5])
def test_equal_differences_do_not_hide_a_rare_one(n, rate):
    """Tasks lose everything with this probability: the interval of a sample without a loss rarely misses the mean."""
    none_lost = (1 - rate) ** n
    found = mean_difference([0.0] * n, range(n))
    assert found.low < 0 < found.high
    assert none_lost <= 0.05 + ROUNDING or found.low <= -rate


def test_differing_differences_have_the_t_interval():
    values = [0.1, 0.2, 0.0, 0.3, 0.1, 0.2]
    found = mean_difference(values, range(6))
    assert found.high - found.estimate == pytest.approx(half_width(values, range(6)))
