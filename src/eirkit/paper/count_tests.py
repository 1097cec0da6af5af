"""The test of two counts of successes: how probable shares as far apart are if both have the same truth."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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
    log = np.array([_choose(n, k) for k in counts.tolist()])
    return counts.astype(float), np.exp(log + counts * math.log(share) + (n - counts) * math.log1p(-share))


def _distance(k1: Floats, n1: int, k2: Floats, n2: int) -> Floats:
    """Return the difference of two shares in standard errors, without the factor that is common to all."""
    pooled = (k1 + k2) / (n1 + n2)
    spread = np.sqrt(np.maximum(pooled * (1 - pooled), 1e-30))
    return np.asarray(np.abs(k1 / n1 - k2 / n2) / spread)


def _choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
