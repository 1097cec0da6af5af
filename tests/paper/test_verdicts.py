"""The verdicts: calibrated under a planted truth, at their printed power beside it, and right by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from eirkit_paper.count_tests import Samples, pooled_mid_p, seeds_mid_p
from eirkit_paper.verdicts import (
    AGREES,
    DIFFERS,
    FEWER_SEEDS,
    TOO_WIDE,
    SeedMeans,
    judge_bound,
    judge_counts,
    judge_deviations,
    judge_draws,
    judge_estimates,
    judge_exact,
    judge_means,
    student_p,
)

DRAWS, STEPS = 500, 64


def means_of(right: np.ndarray, *, carries: bool = False) -> SeedMeans:
    """Return seed means of counts of right steps, seeds by models."""
    values = tuple((right.mean(axis=1) / STEPS).tolist())
    return SeedMeans(values, right.size * STEPS, right.size, carries)


def drawn(seed: int, share: float, seeds: int, models: int, spread: float = 0.05, shift: float = 0.0):
    """Yield judgments of published experiments and ours, both drawn anew from one truth, or from two that differ."""
    rng = np.random.default_rng([seed, seeds, models, round(1000 * share)])
    for _ in range(DRAWS):
        theirs, mine = (
            rng.binomial(STEPS, np.clip(truth + rng.normal(0, spread, (n, 1)) * np.ones(models), 0, 1))
            for truth, n in ((share, 3), (share + shift, seeds))
        )
        published = round(float(theirs.mean()) / STEPS, 3)
        yield judge_means(published, 0.0005, means_of(mine), sd=None, runs=3 * models, unit="share")


def rejected(judgments) -> float:
    return sum(one.verdict == DIFFERS for one in judgments) / DRAWS


@pytest.mark.parametrize("seeds", [3, 12])
@pytest.mark.parametrize("models", [1, 3])
def test_a_model_as_good_as_published_agrees_in_95_percent(seeds, models):
    """500 draws of a true 95% have a standard error of 1%; four settings together 0.5%, so 94 to 96 is two of them."""
    kept = 1 - np.mean([rejected(drawn(seed, 0.6, seeds, models)) for seed in range(4)])
    assert 0.94 <= kept <= 0.96


CEILINGS = [(0.97, 1), (0.98, 1), (0.98, 3), (0.99, 1), (0.99, 3), (0.995, 3), (0.997, 3)]


@pytest.mark.parametrize(("share", "models"), CEILINGS)
def test_at_a_ceiling_a_model_as_good_as_published_agrees_in_95_percent_too(share, models):
    """As long as some four errors are expected in both samples together; 2,000 draws have a standard error of 0.5%."""
    kept = 1 - np.mean([rejected(drawn(seed, share, 3, models, spread=0.0)) for seed in range(4)])
    assert 0.94 <= kept <= 0.96


@pytest.mark.parametrize(("share", "least", "most"), [(0.995, 0.96, 0.98), (0.997, 0.975, 0.99), (1.0, 1.0, 1.0)])
def test_where_hardly_anything_can_differ_it_agrees_more_often(share, least, most):
    """192 steps at 0.995 have two errors in both samples together, and no errors are one outcome in five."""
    kept = 1 - np.mean([rejected(drawn(seed, share, 3, 1, spread=0.0)) for seed in range(4)])
    assert least <= kept <= most


@pytest.mark.parametrize(("share", "models"), [(1.0, 1), (1.0, 3), (0.97, 1), (0.97, 3), (0.5, 1), (0.5, 3)])
def test_a_tenth_lower_differs_at_the_printed_power(share, models):
    """Printed from three seeds; the mean over 500 draws is within 0.08 of how often it differs."""
    judged = list(drawn(4, share, 3, models, spread=0.0, shift=-0.1))
    printed = np.mean([1 - (one.missed or 0.0) for one in judged])
    assert rejected(judged) == pytest.approx(printed, abs=0.08)


# Share, spread of the truth over seeds → how often it may wrongly differ with one model, and with three; two standard
# errors above what 2,000 draws gave. Away from ceilings it is 5%. Near them three seeds show a spread in part:
# Student's t, which uses nothing else, errs in 5 to 24% there, and a test that takes steps as independent in 6 to 22%.
CLUSTERED = [
    (0.5, 0.03, 0.07, 0.07),
    (0.9, 0.03, 0.07, 0.07),
    (0.98, 0.01, 0.095, 0.11),
    (0.995, 0.01, 0.085, 0.135),
]


@pytest.mark.parametrize(("share", "spread", "one", "three"), CLUSTERED)
def test_errors_that_come_by_seeds_make_it_err_more_often_near_ceilings(share, spread, one, three):
    """1,000 draws of 5% have a standard error of 0.7%."""
    for models, most in ((1, one), (3, three)):
        assert np.mean([rejected(drawn(seed, share, 3, models, spread)) for seed in (5, 6)]) <= most


def test_the_test_of_seeds_by_counting_all_outcomes():
    """Every way in which errors fall on seeds, with exact chances, where the test takes the spread as chi squared."""
    steps, seeds, paper = 12, 3, 36
    of = Samples(paper, steps * seeds, seeds, seeds - 1)

    def apart(k1: int, own: Sequence[int]) -> float:
        pooled = (k1 + sum(own)) / (of.n1 + of.n2)
        if not 0 < pooled < 1:
            return 0.0
        inflation = of.inflation(of.spread(float(np.var(np.array(own) / steps, ddof=1)), pooled))
        return abs(k1 / paper - sum(own) / of.n2) / math.sqrt(of.variance(pooled) * inflation)

    for k1, own in ((0, (3, 2, 2)), (1, (2, 3, 3)), (5, (0, 1, 0)), (2, (4, 0, 1)), (0, (4, 4, 3))):
        share, seen, p = (k1 + sum(own)) / (of.n1 + of.n2), apart(k1, own), 0.0
        likely = {k: math.comb(steps, k) * share**k * (1 - share) ** (steps - k) for k in range(9)}
        for ks in itertools.product(likely, repeat=seeds):
            chance = math.prod(likely[k] for k in ks)
            for k in range(22):
                here = apart(k, ks)
                weight = 1.0 if here > seen + 1e-9 else 0.5 if here > seen - 1e-9 else 0.0
                p += weight and weight * chance * math.comb(paper, k) * share**k * (1 - share) ** (paper - k)
        variance = float(np.var(np.array(own) / steps, ddof=1))
        assert seeds_mid_p(k1, sum(own), variance, of) == pytest.approx(p, abs=0.02)  # chi squared, not its own spread


@pytest.mark.parametrize("spoiled", [0.05, 0.2])
def test_runs_that_one_slip_spoils_do_not_make_it_err_more_often(spoiled):
    rng, wrong = np.random.default_rng(7), 0
    for _ in range(DRAWS):
        lost = [(rng.random((3, 3)) < spoiled) * rng.integers(STEPS // 3, STEPS, (3, 3)) for _ in range(2)]
        theirs, mine = (STEPS - part for part in lost)
        published = round(float(theirs.mean()) / STEPS, 3)
        judged = judge_means(published, 0.0005, means_of(mine, carries=True), sd=None, runs=9, unit="share")
        wrong += judged.verdict == DIFFERS
    assert wrong / DRAWS <= 0.06


@pytest.mark.parametrize(("seeds", "models", "spread"), [(12, 3, 0.05), (30, 1, 0.05), (12, 1, 0.1)])
def test_a_model_that_differs_by_a_tenth_differs_at_the_printed_power(seeds, models, spread):
    """The printed probability uses an estimated spread; means over draws agree within 3 errors of 2.2%."""
    judged = list(drawn(3, 0.5, seeds, models, spread, shift=0.1))
    printed = np.mean([1 - (one.missed or 0.0) for one in judged])
    assert rejected(judged) == pytest.approx(printed, abs=0.067)


@pytest.mark.parametrize(("share", "n"), [(0.75, 24), (0.5, 40), (1.0, 16), (0.95, 40)])
def test_counts_are_calibrated_and_have_their_printed_power(share, n):
    rng = np.random.default_rng([round(100 * share), n])
    same = [judge_counts((int(a), n), (int(b), n)) for a, b in rng.binomial(n, share, (DRAWS, 2))]
    assert sum(one.verdict != DIFFERS for one in same) / DRAWS >= 0.935  # mid-p may exceed 5% by a little
    off = [
        judge_counts((int(a), n), (int(b), n))
        for a, b in zip(rng.binomial(n, share, DRAWS), rng.binomial(n, share - 0.1, DRAWS), strict=True)
    ]
    printed = np.mean([1 - (one.missed or 0.0) for one in off])
    assert sum(one.verdict == DIFFERS for one in off) / DRAWS == pytest.approx(printed, abs=0.1)


def test_mid_p_by_hand():
    """Three of three against none of three: 1 of 64 outcomes either way, each half; equal shares are the nearest."""
    assert pooled_mid_p(3, 3, 0, 3) == pytest.approx(1 / 64)
    same = sum(math.comb(4, k) ** 2 for k in range(5)) / 256
    assert pooled_mid_p(2, 4, 2, 4) == pytest.approx(1 - same / 2)
    assert pooled_mid_p(7, 7, 9, 9) == 1.0


def test_mid_p_by_exact_fractions():
    """The same sum in another way: all outcomes, exact chances, squared distances as fractions."""

    def distance(a: int, n: int, b: int, m: int) -> Fraction:
        pooled = Fraction(a + b, n + m)
        return Fraction(0) if pooled in (0, 1) else Fraction(a * m - b * n, n * m) ** 2 / (pooled * (1 - pooled))

    for k1, n1, k2, n2 in ((1, 5, 4, 6), (11, 12, 7, 9), (3, 16, 0, 4), (20, 20, 17, 20)):
        share, seen, p = Fraction(k1 + k2, n1 + n2), distance(k1, n1, k2, n2), Fraction(0)
        for a, b in itertools.product(range(n1 + 1), range(n2 + 1)):
            chance = math.comb(n1, a) * math.comb(n2, b) * share ** (a + b) * (1 - share) ** (n1 + n2 - a - b)
            here = distance(a, n1, b, n2)
            p += chance if here > seen else chance / 2 if here == seen else 0
        assert pooled_mid_p(k1, n1, k2, n2) == pytest.approx(float(p), abs=1e-9)


def test_students_p_by_the_tables():
    assert student_p(4.303, 2) == pytest.approx(0.05, abs=1e-4)
    assert student_p(2.045, 29) == pytest.approx(0.05, abs=1e-4)


def test_the_cases_that_used_to_be_judged_wrongly():
    """144 of 144 against 0.997 of 576 agrees; a range from 0.34 to 1.23 is too wide to tell, and bounded."""
    full = SeedMeans((1.0, 1.0, 1.0), 144, 3, False)
    found = judge_means(0.997, 0.0005, full, sd=None, runs=12, unit="share")
    assert found.verdict == AGREES
    assert found.p > 0.05
    wide = SeedMeans((0.6, 0.8, 0.95), 192, 3, True)
    found = judge_means(0.7, 0.0005, wide, sd=None, runs=9, unit="share")
    assert found.verdict == TOO_WIDE
    assert 0 <= found.low < found.high <= 1
    few = SeedMeans((1.0, 0.9), 128, 2, False)
    assert judge_means(0.9, 0.0005, few, sd=None, runs=9, unit="share").verdict == FEWER_SEEDS


def test_a_plus_minus_is_used_where_ours_shows_no_spread():
    """0.934 ± 0.187 over nine runs may come from where ours, never slipping, is 1.000; 0.934 ± 0.010 may not."""
    ours = SeedMeans((1.0, 1.0, 1.0), 576, 9, True)
    assert judge_means(0.934, 0.0005, ours, sd=0.187, runs=9, unit="share").verdict != DIFFERS
    steady = SeedMeans((1.0, 1.0, 1.0), 576, 9, False)
    assert judge_means(0.934, 0.0005, steady, sd=0.010, runs=9, unit="share").verdict == DIFFERS


def test_deviations():
    rng = np.random.default_rng(5)
    mean = judge_exact(0.5, 0.5, 0.0005)
    kept = 0
    for _ in range(DRAWS):
        theirs, mine = rng.normal(0.5, 0.06, (2, 9))
        kept += judge_deviations(float(theirs.std()), 9, 0.0005, mine.tolist(), mean).verdict != DIFFERS
    assert 0.93 <= kept / DRAWS <= 0.99  # fewer degrees of freedom where nine draws happen to have long tails
    assert judge_deviations(0.0, 9, 0.0005, [1.0] * 9, mean).verdict == AGREES
    assert judge_deviations(0.4, 9, 0.0005, [0.5 + 0.01 * i for i in range(9)], mean).verdict == DIFFERS


def test_one_mean_among_many():
    rng = np.random.default_rng(6)
    many = rng.normal(0.5, 0.01, 4000)
    assert judge_draws(0.515, many, 0.0005, 0.1).verdict == AGREES
    assert judge_draws(0.525, many, 0.0005, 0.1).verdict == DIFFERS
    assert judge_draws(0.5, rng.normal(0.5, 0.2, 4000), 0.0005, 0.1).verdict == TOO_WIDE
    few = [judge_draws(float(x), rng.normal(0, 1, 12), 0.0, 9.0).verdict for x in rng.normal(0, 1, DRAWS)]
    assert 0.92 <= few.count(AGREES) / DRAWS <= 0.98
    assert judge_draws(13.0, [13.0, 13.0], 0.05, 1.3).verdict == AGREES


def test_estimates_and_bounds():
    assert judge_estimates((0.951, 0.911, 0.992), (0.96, 0.92, 1.0), 0.0005, ratio=True).verdict == AGREES
    assert judge_estimates((0.951, 0.911, 0.992), (1.2, 1.15, 1.25), 0.0005, ratio=True).verdict == DIFFERS
    assert judge_estimates((1.27, 0.82, 1.98), (1.0, 0.6, 1.7), 0.005, ratio=True).verdict == TOO_WIDE
    assert judge_bound(0.023, 0.02, 0.0005, upper=True).verdict == AGREES
    assert judge_bound(0.998, 0.9, 0.0005, upper=False).verdict == DIFFERS
