"""95% intervals for few observations: exact for counts, Student's t over clusters, never of zero width.

All are two-sided with 95% coverage, which `tests/lacuna/findings/test_intervals.py` computes by enumeration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import cache

from eirkit.records.evidence import Interval

LEVEL = 0.95
# Figures that differ by rounding alone are equal: the sums here have a few thousand terms of size one.
ROUNDING = 1e-12
FEWEST_CLUSTERS = 6  # with fewer, sign flips cannot reach p = 0.05, and t intervals depend on normality alone


def binomial_tail(least: int, n: int, chance: float) -> float:
    """Return the probability of `least` or more successes in n trials."""
    return 1.0 if least <= 0 else beta_cdf(chance, least, n - least + 1)


def proportion(successes: int, n: int, level: float = LEVEL) -> Interval:
    """Return the exact interval of Clopper and Pearson; 0 to 1 without trials."""
    tail = (1 - level) / 2
    low = 0.0 if not successes else _root(lambda p: beta_cdf(p, successes, n - successes + 1) - tail)
    high = 1.0 if successes == n else _root(lambda p: beta_cdf(p, successes + 1, n - successes) - (1 - tail))
    return Interval(successes / n if n else 0.0, low, high, level, n)


def paired(trajectories: Sequence[Sequence[tuple[bool, bool]]]) -> Interval:
    """Return the interval of the difference of two rates over paired outcomes, first − second.

    It holds two intervals: the exact one of the pairs that differ, which is valid if pairs are independent (Bonferroni
    over both directions), and the t interval over trajectories, whose pairs may not be.
    """
    pairs = [pair for trajectory in trajectories for pair in trajectory]
    gained = proportion(sum(a and not b for a, b in pairs), len(pairs), (1 + LEVEL) / 2)
    lost = proportion(sum(b and not a for a, b in pairs), len(pairs), (1 + LEVEL) / 2)
    low, high = gained.low - lost.high, gained.high - lost.low
    middle = gained.estimate - lost.estimate
    if len(trajectories) > 1:
        flat = [(float(a) - float(b), i) for i, trajectory in enumerate(trajectories) for a, b in trajectory]
        half = half_width([value for value, _ in flat], [i for _, i in flat])
        low, high = min(low, middle - half), max(high, middle + half)
    return Interval(middle, max(-1.0, low), min(1.0, high), LEVEL, len(trajectories))


def mean_share(values: Sequence[float], clusters: Sequence[Hashable], trials: int) -> Interval:
    """Return the interval of a mean of shares of which only clusters are independent, such as tasks.

    It holds the t interval over clusters and the exact one over all trials, and where these do not show how much
    clusters differ that of `_clusters_as_trials`.

    Args:
        trials: in all, such as scored steps.
    """
    middle = math.fsum(values) / len(values)
    groups: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        groups.setdefault(cluster, []).append(value)
    means = [math.fsum(group) / len(group) for group in groups.values()]
    found = [_beta_interval(middle * trials, trials)]
    if len(groups) > 1:
        half = half_width(values, clusters)
        found.append((middle - half, middle + half))
    found += _clusters_as_trials(middle, means)
    low, high = min(low for low, _ in found), max(high for _, high in found)
    return Interval(middle, max(0.0, low), min(1.0, high), LEVEL, len(groups))


def _clusters_as_trials(share: float, shares: Sequence[float]) -> list[tuple[float, float]]:
    """Return the exact interval in which each cluster counts as one trial, for few clusters or equal shares.

    Nothing shows then how much clusters differ, and this one is valid however alike the trials of a cluster are.
    """
    is_needed = len(shares) < FEWEST_CLUSTERS or max(shares) - min(shares) <= ROUNDING
    return [_beta_interval(share * len(shares), len(shares))] if is_needed else []


def clustered_share(clusters: Sequence[tuple[float, float]], exact: Interval) -> Interval:
    """Return the share of a total, between 0 and 1, with the interval of `mean_share`.

    Args:
        clusters: of each its part and its total.
        exact: over all clusters, as if nothing in a cluster depended on the rest of it.
    """
    counted = [(part, total) for part, total in clusters if total]
    whole = math.fsum(total for _, total in counted)  # the same in whatever order the clusters come
    rate = math.fsum(part for part, _ in counted) / whole
    found = [(exact.low, exact.high), *_clusters_as_trials(rate, [part / total for part, total in counted])]
    if len(counted) > 1:
        spread = math.fsum((part - rate * total) ** 2 for part, total in counted) * len(counted) / (len(counted) - 1)
        half = student(len(counted) - 1) * spread**0.5 / whole
        found.append((max(0.0, rate - half), min(1.0, rate + half)))
    return Interval(rate, min(low for low, _ in found), max(high for _, high in found), exact.level, len(counted))


def mean_difference(values: Sequence[float], clusters: Sequence[Hashable], level: float = LEVEL) -> Interval:
    """Return the interval of a mean of paired differences of shares: t over clusters; exact where all are equal.

    Where no two differ, nothing shows how much they vary. Then it excludes what would rarely go unseen: if other
    differences had a probability above `unseen`, seeing none in this many clusters would be rarer than the level.
    """
    middle, groups = math.fsum(values) / len(values), len(set(clusters))
    if max(values) - min(values) > ROUNDING:
        half = half_width(values, clusters, level)
        return Interval(middle, middle - half, middle + half, level, groups)
    unseen = 1 - (1 - level) ** (1 / groups)
    return Interval(middle, middle - unseen * (1 + middle), middle + unseen * (1 - middle), level, groups)


def _beta_interval(successes: float, n: int) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson, also for successes between whole numbers."""
    tail = (1 - LEVEL) / 2
    low = 0.0 if successes <= 0 else _root(lambda p: beta_cdf(p, successes, n - successes + 1) - tail)
    high = 1.0 if successes >= n else _root(lambda p: beta_cdf(p, successes + 1, n - successes) - (1 - tail))
    return low, high


def half_width(values: Sequence[float], clusters: Sequence[Hashable], level: float = LEVEL) -> float:
    """Return half the t interval of a mean of which only clusters are independent: residuals are summed by cluster."""
    middle = math.fsum(values) / len(values)
    sums: dict[Hashable, float] = {}
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + (value - middle)
    groups = len(sums)
    error = math.sqrt(groups / (groups - 1) * math.fsum(total * total for total in sums.values())) / len(values)
    return student(groups - 1, level) * error


@cache
def student(freedom: float, level: float = LEVEL) -> float:
    """Return the quantile t for which |T| ≤ t has this probability."""
    outside = 1 - level
    # P(|T| > t) is the incomplete beta function at freedom / (freedom + t²), which falls with t.
    x = _root(lambda x: beta_cdf(x, freedom / 2, 0.5) - outside)
    return math.sqrt(freedom * (1 - x) / x)


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction converges quickly below the mean
        return 1 - beta_cdf(1 - x, b, a)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x) - math.log(a)
    )
    tiny, c, d = 1e-300, 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d or tiny)
    found = d
    for m in range(1, 10_000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / ((1 + numerator * d) or tiny)
            c = (1 + numerator / c) or tiny
            found *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * found


def _root(rising: Callable[[float], float]) -> float:
    """Return where a rising function on 0 … 1 is zero."""
    low, high = 0.0, 1.0
    while high - low > 1e-15 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2
