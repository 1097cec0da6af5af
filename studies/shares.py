"""Exact (Clopper–Pearson) confidence bounds of a share."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray


def exact_share(part: int, whole: int, level: float = 0.95) -> tuple[float, float]:
    """Return the bounds of Clopper and Pearson."""
    tail = (1 - level) / 2
    low = 0.0 if part == 0 else _where(lambda p: 1 - _at_most(part - 1, whole, p) - tail)
    high = 1.0 if part == whole else _where(lambda p: tail - _at_most(part, whole, p))
    return low, high


def _at_most(k: int, n: int, p: float) -> float:
    """Return the probability of at most k successes in n trials, 0 < p < 1."""
    i = np.arange(k + 1)
    return float(np.exp(_log_choices(n)[: k + 1] + i * math.log(p) + (n - i) * math.log1p(-p)).sum())


@cache
def _log_choices(n: int) -> NDArray[np.float64]:
    return np.array([math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(n + 1)])


def _where(rising: Callable[[float], float]) -> float:
    """Return where a function that rises over 0 … 1 is zero."""
    low, high = 0.0, 1.0
    for _ in range(60):  # to the last bit of a share
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return (low + high) / 2
