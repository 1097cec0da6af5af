"""Tests of two counts of successes: how probable shares as far apart are if both have the same truth.

The first holds for independent trials. In the second, trials come in seeds, which may differ: the distance of the
shares is divided by the spread that our seeds show. Few seeds show it badly, so the spread of independent trials counts
beside it. A test that errs in 5% however far seeds differ has to use the spread of our seeds alone, and could hardly
tell 0.9 from 0.8 with three of them; one that takes trials as independent errs in up to half of the cases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TRUSTED = 128  # trials a seed with which independent trials are worth one degree of freedom beside our seeds
FEW = 10  # errors, or right answers, in a sample; with fewer, means are not normal and outcomes are counted
_PARTS = 32  # of the distribution of a spread, equally probable


@lru_cache(maxsize=200_000)
def pooled_mid_p(k1: int, n1: int, k2: int, n2: int) -> float:
    """Return how probable shares as far apart as these are if both have the pooled share; ties count half.

    Fisher's test, which holds the sum of both counts fixed, errs in 0 to 4% where errors are few. This one errs in 4 to
    5.5% as long as some eight errors are expected in all; with fewer, too few different outcomes are left for any test.
    """
    total = k1 + k2
    if total in (0, n1 + n2):
        return 1.0
    share = total / (n1 + n2)
    (first, chances1), (second, chances2) = _likely(n1, share), _likely(n2, share)
    chances = np.outer(chances1, chances2)
    apart, seen = _distance(first[:, None], n1, second[None, :], n2), _distance(np.array(k1), n1, np.array(k2), n2)
    near = np.abs(apart - seen) <= 1e-9
    return float(min(1.0, chances[(apart > seen) & ~near].sum() + 0.5 * chances[near].sum()))


def _likely(n: int, share: float) -> tuple[Floats, Floats]:
    """Return the counts of n trials that are not next to impossible, and their chances."""
    reach = 8 * math.sqrt(n * share * (1 - share)) + 8
    counts = np.arange(max(0, math.floor(n * share - reach)), min(n, math.ceil(n * share + reach)) + 1)
    log = np.array([math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in counts.tolist()])
    return counts.astype(float), np.exp(log + counts * math.log(share) + (n - counts) * math.log1p(-share))


def _distance(k1: Floats, n1: int, k2: Floats, n2: int) -> Floats:
    """Return the difference of two shares in standard errors, without the factor that is common to all."""
    pooled = (k1 + k2) / (n1 + n2)
    spread = np.sqrt(np.maximum(pooled * (1 - pooled), 1e-30))
    return np.asarray(np.abs(k1 / n1 - k2 / n2) / spread)


def shifted(share: float, shift: float) -> list[float]:
    """Return the shares that differ by so much; near a bound there is one."""
    others = (share - shift, share + shift)
    return [min(1.0, max(0.0, other)) for other in others if -1e-9 <= other <= 1 + 1e-9]


@lru_cache(maxsize=4096)
def missed_by_counts(share: float, n1: int, n2: int, shift: float, error: float) -> float:
    """Return the probability that the test of counts does not reject a difference, in the direction harder to see."""
    return max((_not_rejected(share, other, n1, n2, error) for other in shifted(share, shift)), default=0.0)


def _not_rejected(first: float, second: float, n1: int, n2: int, error: float) -> float:
    if max(n1, n2) > 60:  # counts are many: the difference of shares is nearly normal
        middle = (first * n1 + second * n2) / (n1 + n2)
        limit = 1.96 * math.sqrt(max(middle * (1 - middle) * (1 / n1 + 1 / n2), 1e-12))
        apart = math.sqrt(max(first * (1 - first) / n1 + second * (1 - second) / n2, 1e-12))
        found = NormalDist(abs(first - second), apart)
        return found.cdf(limit) - found.cdf(-limit)
    chances1, chances2 = binomial(n1, first), binomial(n2, second)
    return sum(
        a * b
        for k1, a in enumerate(chances1)
        for k2, b in enumerate(chances2)
        if a * b > 1e-9 and pooled_mid_p(k1, n1, k2, n2) >= error
    )


def binomial(n: int, share: float) -> list[float]:
    """Return the chances of 0 to n successes."""
    return [math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]


@dataclass(frozen=True, slots=True)
class Samples:
    """How much is known of two shares: trials of both, and our seeds."""

    n1: int  # published
    n2: int  # ours
    seeds: int
    freedom: int  # degrees of freedom of the variance over seeds

    @property
    def prior(self) -> float:
        """Degrees of freedom that independent trials are worth.

        Trials of a seed that go together inflate its variance in proportion to their number, so how far it may lie
        from that of independent trials grows with that number, and what these are worth falls with its square.
        """
        return (TRUSTED * self.seeds / self.n2) ** 2

    def inflation(self, spread: float) -> float:
        """Return by how much variances exceed those of independent trials, given the spread of seeds over theirs."""
        return (self.freedom * spread + self.prior) / (self.freedom + self.prior)

    def variance(self, share: float) -> float:
        """Return that of the difference of both shares if trials are independent."""
        return share * (1 - share) * (1 / self.n1 + 1 / self.n2)

    def spread(self, variance: float, share: float) -> float:
        """Return a variance over seeds as a multiple of that of independent trials."""
        return variance * self.n2 / (self.seeds * max(share * (1 - share), 1e-12))


@lru_cache(maxsize=50_000)
def seeds_mid_p(k1: float, k2: float, variance: float, of: Samples) -> float:
    """Return how probable shares as far apart, in standard errors by our seeds, are if both have the pooled share."""
    share = (k1 + k2) / (of.n1 + of.n2)
    if not 0 < share < 1:
        return 1.0
    error = math.sqrt(of.variance(share) * of.inflation(of.spread(variance, share)))
    seen = abs(k1 / of.n1 - k2 / of.n2) / error
    if min(share, 1 - share) * min(of.n1, of.n2) >= FEW:
        return _normal_p(seen, of)
    (first, chances1), (second, chances2) = _likely(of.n1, share), _likely(of.n2, share)
    apart = _apart(first[:, None], second[None, :], of)
    chances = np.outer(chances1, chances2)[:, :, None] / _PARTS
    near = np.abs(apart - seen) <= 1e-9
    return float(min(1.0, (chances * ((apart > seen) & ~near)).sum() + 0.5 * (chances * near).sum()))


def _apart(first: Floats, second: Floats, of: Samples) -> Floats:
    """Return the distances of pairs of counts, with each of the spreads that seeds of independent trials may show."""
    pooled = (first + second) / (of.n1 + of.n2)
    both = np.maximum(pooled * (1 - pooled), 1e-12)
    own = second / of.n2 * (1 - second / of.n2) / both
    rare = np.minimum(second, of.n2 - second)
    # Given how many errors seeds have in all, their spread varies as chi squared does, the less the fewer there are.
    freedom = (of.seeds - 1) / np.maximum(1 - 1 / np.maximum(rare, 1.0), 1e-9)
    shown = own[..., None] * _spreads(freedom[..., None])
    inflation = (of.freedom * shown + of.prior) / (of.freedom + of.prior)
    distance = np.abs(first / of.n1 - second / of.n2) / np.sqrt(both * (1 / of.n1 + 1 / of.n2))
    return np.asarray(distance[..., None] / np.sqrt(inflation))


def _spreads(freedom: Floats) -> Floats:
    """Return equally probable values of chi squared over its degrees of freedom (Wilson and Hilferty)."""
    return np.asarray(np.maximum(0.0, 1 - 2 / (9 * freedom) + _QUANTILES * np.sqrt(2 / (9 * freedom))) ** 3)


_QUANTILES = np.array([NormalDist().inv_cdf((part + 0.5) / _PARTS) for part in range(_PARTS)])


@lru_cache(maxsize=50_000)
def _normal_p(seen: float, of: Samples) -> float:
    spreads = _spreads(np.array(float(of.freedom))).tolist()
    return math.fsum(math.erfc(seen * math.sqrt(of.inflation(spread) / 2)) for spread in spreads) / _PARTS


@cache
def _reach(of: Samples, error: float) -> float:
    """Return the distance from which on the test of seeds rejects, where counts are many."""
    low, high = 0.0, 100.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if _normal_p(middle, of) > error else (low, middle)
    return high


def missed_by_seeds(first: float, second: float, of: Samples, inflation: float, error: float) -> float:
    """Return the probability that the test of seeds does not tell two true shares apart."""
    middle = min(1 - 1e-9, max(1e-9, (first * of.n1 + second * of.n2) / (of.n1 + of.n2)))
    both, own = middle * (1 - middle), second * (1 - second)
    width = math.sqrt(max(inflation * (first * (1 - first) / of.n1 + own / of.n2), 1e-12))
    kept, normal = 0.0, NormalDist(abs(first - second), width)
    for shown in (_spreads(np.array(float(of.seeds - 1))) * inflation * own / both).tolist():
        limit = _reach(of, error) * math.sqrt(of.variance(middle) * of.inflation(shown))
        kept += normal.cdf(limit) - normal.cdf(-limit)
    return kept / _PARTS
