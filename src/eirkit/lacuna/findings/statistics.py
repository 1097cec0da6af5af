"""McNemar, sign-flip, permutation and rank tests, bootstrap intervals, and the pooled scores of a cell.

A small null distribution is enumerated and the p-value is exact; a larger one is sampled from a named stream of
`eirkit.seeds`, so that equal input gives equal output, and one over thousands of observations is replaced by its normal
limit with its exact variance. All tests are two-sided. Memory is bounded whatever the number of observations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eirkit.errors import SpecError
from eirkit.lacuna.findings.intervals import LEVEL, ROUNDING, half_width, proportion
from eirkit.records.events import Kind
from eirkit.records.evidence import Interval
from eirkit.records.runs import CAUSES, RunScore
from eirkit.records.sweeps import CellScore
from eirkit.seeds import Words, below, words

Method = Literal["exact", "sampled", "normal"]

LARGEST_EXACT_SIGNS = 16  # pairs; 65,536 sign patterns
LARGEST_EXACT_ORDERS = 8  # observations; 40,320 orders
DRAWS = 9_999  # with the observed order 10,000, so that p is a round number
LARGEST_SAMPLED = 5_000  # observations; beyond, the normal limit is closer than 9,999 draws are
RESAMPLES = 2_000
BLOCK_WORDS = 1 << 21  # random words held at once, 16 MB

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TestResult:
    """One hypothesis test."""

    __test__ = False  # not a test case for pytest

    estimate: float  # the statistic, in the unit that the function says
    p: float
    n: int  # observations or pairs that carry information
    method: Method


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> TestResult:
    """Return the exact McNemar test of paired outcomes: is either condition right more often where they differ?

    `estimate` is the difference of the two rates, first − second, over all pairs; `n` the pairs that differ.
    """
    pairs = list(zip(first, second, strict=True))
    gained = sum(a and not b for a, b in pairs)
    lost = sum(b and not a for a, b in pairs)
    differ = gained + lost
    # Under the null each differing pair falls either way with probability 1/2.
    tail = sum(math.comb(differ, k) for k in range(min(gained, lost) + 1))
    p = min(1.0, 2 * tail / 2**differ)
    return TestResult((gained - lost) / len(pairs) if pairs else 0.0, p, differ, "exact")


def sign_flip(differences: Sequence[float], *, seed: int = 0) -> TestResult:
    """Return the paired permutation test that the mean difference is zero: under the null each sign is a coin toss.

    `estimate` is the mean difference; `n` the pairs.
    """
    given = np.asarray(differences, dtype=float)
    n = len(given)
    if n == 0:
        return TestResult(0.0, 1.0, 0, "exact")
    observed = abs(float(given.sum()))
    if n <= LARGEST_EXACT_SIGNS:
        patterns = np.arange(1 << n)[:, None] >> np.arange(n) & 1
        p = _share_at_least((1 - 2 * patterns) @ given, observed)
        return TestResult(float(given.mean()), p, n, "exact")
    if n > LARGEST_SAMPLED:
        return TestResult(float(given.mean()), _normal_p(observed, float(given @ given)), n, "normal")
    found = np.concatenate([(1 - 2 * below(block, 2)) @ given for block in _drawn(seed, DRAWS, n, "sign flip")])
    return TestResult(float(given.mean()), _sampled_p(found, observed), n, "sampled")


def permuted_difference(first: Sequence[float], second: Sequence[float], *, seed: int = 0) -> TestResult:
    """Return the permutation test that two independent groups have one mean.

    `estimate` is mean(first) − mean(second); `n` the observations of both.
    """
    if not first or not second:
        return TestResult(0.0, 1.0, len(first) + len(second), "exact")
    together = np.asarray([*first, *second], dtype=float)
    size, n = len(first), len(together)

    def difference(orders: NDArray[Any]) -> Floats:
        shuffled: Floats = together[orders]
        found: Floats = shuffled[:, :size].mean(axis=1) - shuffled[:, size:].mean(axis=1)
        return found

    # The variance of the difference of means when n values are dealt at random into the two groups.
    variance = float(together.var(ddof=1)) * n / (size * (n - size)) if n > 1 else 0.0
    return _over_orders(difference, n, seed, "difference", variance)


def spearman(first: Sequence[float], second: Sequence[float], *, seed: int = 0) -> TestResult:
    """Return Spearman's rank correlation, ties at their mean rank, with a permutation p-value.

    `estimate` is ρ, and 0 where one side is constant; `n` the observations.
    """
    a, b = _centered_ranks(first), _centered_ranks(second)
    scale = math.sqrt(float(a @ a) * float(b @ b))
    if scale == 0:
        return TestResult(0.0, 1.0, len(a), "exact")

    def correlation(orders: NDArray[Any]) -> Floats:
        found: Floats = (b[orders] @ a) / scale
        return found

    return _over_orders(correlation, len(a), seed, "spearman", 1 / (len(a) - 1))


def bootstrap(
    statistic: Callable[[Sequence[int]], float], trajectories: int, *, seed: int = 0, level: float = 0.95
) -> Interval:
    """Return a percentile interval of a statistic of trajectories, resampled as a whole with replacement.

    Args:
        statistic: takes positions of trajectories, some more than once, and returns one number.
    """
    if trajectories < 1:
        raise SpecError("no trajectory to resample; give at least one")
    blocks = _drawn(seed, RESAMPLES, trajectories, "bootstrap")
    resampled = np.array([statistic(row) for block in blocks for row in below(block, trajectories).tolist()])
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return Interval(statistic(range(trajectories)), float(low), float(high), level, trajectories)


def bootstrap_mean(
    values: Sequence[float], clusters: Sequence[Hashable], *, seed: int = 0, level: float = 0.95
) -> Interval:
    """Return the mean of values with an interval over their clusters, such as the trajectories they come from."""
    order = {cluster: position for position, cluster in enumerate(dict.fromkeys(clusters))}
    sums, counts = np.zeros(len(order)), np.zeros(len(order))
    for value, cluster in zip(values, clusters, strict=True):
        sums[order[cluster]] += value
        counts[order[cluster]] += 1

    def pooled(rows: Sequence[int]) -> float:
        chosen = np.asarray(rows)
        return float(sums[chosen].sum() / counts[chosen].sum())

    return bootstrap(pooled, len(order), seed=seed, level=level)


def ranks(values: Sequence[float]) -> Floats:
    """Return ranks from 1; equal values share the mean of their ranks."""
    _, which, equal = np.unique(np.asarray(values, dtype=float), return_inverse=True, return_counts=True)
    shared: Floats = (np.cumsum(equal) - (equal - 1) / 2)[which]
    return shared


def _centered_ranks(values: Sequence[float]) -> Floats:
    ranked = ranks(values)
    centered: Floats = ranked - ranked.mean() if len(ranked) else ranked
    return centered


def _over_orders(
    statistic: Callable[[NDArray[Any]], Floats], n: int, seed: int, name: str, variance: float
) -> TestResult:
    """Compare a statistic of the given order with all orders, with many drawn ones, or with their normal limit.

    Args:
        variance: of the statistic over all orders.
    """
    observed = float(statistic(np.arange(n)[None, :])[0])
    if n <= LARGEST_EXACT_ORDERS:
        everyone = statistic(np.array(list(permutations(range(n)))))
        return TestResult(observed, _share_at_least(everyone, abs(observed)), n, "exact")
    if n > LARGEST_SAMPLED:
        return TestResult(observed, _normal_p(abs(observed), variance), n, "normal")
    # Sorting random words gives a uniform order; ties between 64-bit words are negligible.
    found = np.concatenate([statistic(np.argsort(block, axis=1)) for block in _drawn(seed, DRAWS, n, "order", name)])
    return TestResult(observed, _sampled_p(found, abs(observed)), n, "sampled")


def _drawn(seed: int, rows: int, n: int, *names: str) -> Iterator[Words]:
    """Yield blocks of rows of n random words; together they are the first rows × n words of the stream."""
    step = max(1, BLOCK_WORDS // n)
    for row in range(0, rows, step):
        some = min(step, rows - row)
        yield words([seed], some * n, *names, start=row * n).reshape(some, n)


def _normal_p(observed: float, variance: float) -> float:
    return math.erfc(observed / math.sqrt(2 * variance)) if variance else 1.0


def _share_at_least(found: Floats, observed: float) -> float:
    return float((np.abs(found) >= observed - ROUNDING).mean())


def _sampled_p(found: Floats, observed: float) -> float:
    """Return (1 + extreme draws) / (1 + draws): the observed order is one of those that count."""
    return (1 + int((np.abs(found) >= observed - ROUNDING).sum())) / (1 + len(found))


def pool(scores: Sequence[RunScore]) -> CellScore:
    """Return the row of a cell from the scores of its finished runs."""
    accuracies, informed = [run.accuracy for run in scores], informed_accuracy(scores)
    kinds: Counter[Kind] = Counter()
    for run in scores:
        kinds.update(run.kinds)
    return CellScore(
        scored=len(scores),
        accuracy=mean(accuracies),
        accuracy_sd=deviation(accuracies),
        informed_accuracy=informed.estimate if informed.clusters else None,
        informed_low=informed.low,
        informed_high=informed.high,
        informed=informed.clusters,
        step_accuracy=mean(run.step_accuracy for run in scores),
        self_consistent_accuracy=mean(run.self_consistent_accuracy for run in scores),
        final_accuracy=mean(float(run.final_correct) for run in scores),
        answered_fraction=mean(run.answered_fraction for run in scores),
        miss_rate=mean(run.miss_rate for run in scores),
        missed_steps=mean(float(run.missed) for run in scores),
        first_error_at_first_miss=mean(None if run.aligned is None else float(run.aligned) for run in scores),
        steps=sum(run.steps for run in scores),
        errors={cause: sum(run.errors[cause] for run in scores) for cause in CAUSES},
        error_shares={cause: mean(run.errors[cause] / max(1, run.steps) for run in scores) for cause in CAUSES},
        kinds=dict(sorted(kinds.items())),
        unsure=sum(run.unsure for run in scores),
        blind=sum(run.blind for run in scores),
        unexplained=sum(run.unexplained for run in scores),
        max_turn=sum(run.max_turn for run in scores),
        reads=mean(float(run.reads) for run in scores),
        recomputations=mean(float(run.recomputations) for run in scores),
    )


def informed_accuracy(scores: Iterable[RunScore]) -> Interval:
    """Return the share of right answers where all inputs were at hand and right, with its exact interval over steps."""
    runs = list(scores)
    return proportion(sum(run.informed_correct for run in runs), sum(run.informed for run in runs))


def end_to_end_accuracy(scores: Iterable[RunScore]) -> Interval:
    """Return the mean accuracy of runs: its t interval over runs, and at least the exact one over their steps.

    Where all runs are equal only the exact one is left. One run does not show how much runs differ: 0 to 1.
    """
    runs = list(scores)
    if len(runs) < 2:
        return Interval(runs[0].accuracy if runs else 0.0, 0.0, 1.0, LEVEL, len(runs))
    accuracies = [run.accuracy for run in runs]
    middle, half = math.fsum(accuracies) / len(runs), half_width(accuracies, range(len(runs)))
    exact = proportion(sum(run.correct for run in runs), sum(run.steps for run in runs))
    low, high = min(exact.low, middle - half), max(exact.high, middle + half)
    return Interval(middle, max(0.0, low), min(1.0, high), LEVEL, len(runs))


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if there are none."""
    present = [value for value in values if value is not None]
    return math.fsum(present) / len(present) if present else None


def deviation(values: Sequence[float]) -> float | None:
    """Return the population standard deviation."""
    middle = mean(values)
    if middle is None:
        return None
    if min(values) == max(values):
        return 0.0  # a rounded mean would make the squares below nonzero
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / len(values))
