"""Compares candidates that were tried on the same tasks with the best of them.

Only tasks are independent: values of one task are paired, and those of one task in several cells form a cluster. The
procedure is one step-down test of "nobody is better than y" for all y at once, with Student's t over tasks:

- The error of a difference is that of the mean of two variances: the pair's own, and that of all pairs.
- A share may hide a fault that is rare and costs a whole task. Its greatest rate that would have gone unseen, at most
  `RAREST`, is added in quadrature, times what such a task costs.
- The intervals of all differences hold together (Bonferroni), so they bound how far each is behind the best, whoever it
  is; who is shown to be worse is decided with Holm's steps, so that candidates already known to be worse cost nothing.

`studies/choose_power.py` measures its level and its power.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from eirkit.lacuna.findings.intervals import FEWEST_CLUSTERS, LEVEL, ROUNDING, beta_cdf, student

Floats = NDArray[np.float64]
Place = Literal["best", "may be best", "worse", "not ranked"]

OUTSIDE = 1 - LEVEL  # the chance that any order that is stated is wrong
LOOKS = (0.04, 0.005, 0.005)  # of it, spent at each look where more worlds may follow; there are no more looks
RAREST = 0.03  # of tasks: the greatest rate of faults on whole tasks that is allowed for
POWER = 0.8  # with which a difference is wanted to be shown
MOST_TASKS = 100_000  # beyond, it is only said that more would be needed
MARGIN = 0.02  # of a share, or of the value of the best: a difference that nobody cares about


class Standing(Struct, frozen=True):
    """How one candidate compares with the best."""

    name: str
    tasks: int  # on which it was compared
    value: float  # mean over cases; over strata, the mean of their means
    place: Place
    behind: float  # the one with the best mean
    low: float | None  # at least and at most so far behind the best, whoever it is; None below six tasks
    high: float | None
    equal: bool  # to the first, in every case
    close: bool  # shown to be no more than the margin behind the best


class Ranking(Struct, frozen=True):
    """Candidates from best to worst by their means, and what is shown of each against the best."""

    standings: tuple[Standing, ...]
    cases: int
    tasks: int
    level: float  # with which all statements hold together, also those of rankings that share it
    leaders: tuple[str, ...]  # who may be best, from best to worst
    margin: float  # in the unit of the measure
    lead: float | None  # of the first leader over the second; None with fewer than two, or below six tasks
    spread: float | None  # the standard deviation of this difference over tasks

    def __getitem__(self, name: str) -> Standing:
        return next(standing for standing in self.standings if standing.name == name)

    @property
    def is_settled(self) -> bool:
        """True if one is best, or nobody who may be best is further behind than the margin."""
        return len(self.leaders) == 1 or (self.lead is not None and all(self[name].close for name in self.leaders))


def rank(
    values: Mapping[str, Sequence[float]],
    tasks: Sequence[Hashable],
    *,
    strata: Sequence[Hashable] | None = None,
    less_is_better: bool = False,
    share: bool = True,
    outside: float = OUTSIDE,
    weights: Sequence[float] | None = None,
    margin: float = MARGIN,
) -> Ranking:
    """Return candidates compared with the best of them by the mean of a measure.

    Args:
        values: of each candidate, one value for each case.
        tasks: the task of each case.
        strata: of each case, such as its workload; means over strata count alike, and their variances are added.
        share: the measure lies between 0 and 1.
        outside: the chance that any order is wrong, divided by the number of rankings that share it.
        weights: of each case in the mean of its stratum, such as its number of questions; None: all count alike.
        margin: of a share in its unit; of other measures relative to the value of the best.
    """
    sign = -1.0 if less_is_better else 1.0
    table = np.array([values[name] for name in values], dtype=np.float64)
    sample = _sample(table, tasks, strata, weights)
    order = np.argsort(-sign * sample.means, kind="stable")  # ties keep the order in which they were given
    names, count = [list(values)[place] for place in order], len(order)
    means, table = sample.means[order], table[order]
    size = margin if share else margin * abs(float(means[0]))
    equal = np.abs(table - table[0]).max(axis=1) <= ROUNDING
    behind = sign * (means[0] - means)
    if sample.tasks < FEWEST_CLUSTERS or count < 2:
        standings = tuple(
            Standing(name, sample.tasks, float(value), "not ranked", float(gap), None, None, bool(same), close=False)
            for name, value, gap, same in zip(names, means, behind, equal, strict=True)
        )
        return Ranking(standings, len(tasks), sample.tasks, LEVEL, tuple(names), size, None, None)
    worst = 0.0 if sign > 0 else -1.0  # what a lost task counts, where the measure is a share
    losses = sign * means - worst if share else np.zeros(count)
    test = _Test(sign * means, sample.errors(order), sample.freedom(count), losses, sample.tasks, outside)
    is_worse, (low, high), near = test.worse, test.bounds, test.distances(unseen(sample.tasks))[1]
    alone = int(count - is_worse.sum()) == 1
    standings = tuple(
        Standing(
            names[place],
            sample.tasks,
            float(means[place]),
            "worse" if is_worse[place] else "best" if alone else "may be best",
            float(behind[place]),
            min(float(low[place]), 1.0) if share else float(low[place]),
            min(float(high[place]), 1.0) if share else float(high[place]),
            bool(equal[place]),
            close=bool(near[place] <= size),
        )
        for place in range(count)
    )
    leaders = [place for place in range(count) if not is_worse[place]]
    lead = float(behind[leaders[1]] - behind[leaders[0]]) if not alone else None
    spread = None if alone else float(test.errors[leaders[0], leaders[1]]) * math.sqrt(sample.tasks)
    return Ranking(
        standings,
        len(tasks),
        sample.tasks,
        LEVEL,
        tuple(names[place] for place in leaders),
        size,
        lead,
        spread,
    )


def unseen(tasks: int) -> float:
    """Return the greatest rate of a fault on whole tasks that goes unseen in so many with probability 0.05."""
    return float(1 - OUTSIDE ** (1 / tasks))


def tasks_to_separate(
    difference: float, spread: float, candidates: int, *, share: bool = True, outside: float = OUTSIDE
) -> int | None:
    """Return how many tasks in all show a difference between two of some candidates with probability `POWER`.

    Args:
        spread: the standard deviation of the difference over tasks.
        candidates: that are tried on them.

    Returns:
        None if more than `MOST_TASKS` are needed.
    """
    power, comparisons = NormalDist().inv_cdf(POWER), candidates * (candidates - 1)

    def is_enough(tasks: int) -> bool:
        error = spread / math.sqrt(tasks)
        quantile = student(tasks - 1, 1 - 2 * outside / comparisons)
        fault = min(RAREST, unseen(tasks)) if share else 0.0
        return difference >= math.hypot(quantile * error, fault) + power * error

    low, high = FEWEST_CLUSTERS - 1, FEWEST_CLUSTERS
    while not is_enough(high):
        low, high = high, 2 * high
        if low > MOST_TASKS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class _Sample:
    """The means of candidates, and what each task adds to them; tasks are scaled so that squares add to variances."""

    means: Floats
    parts: Floats  # one row for each candidate, one column for each task
    tasks: int
    blocks: int  # sets of tasks that were drawn apart

    def errors(self, order: NDArray[np.intp]) -> Floats:
        """Return the standard errors of all differences; each variance is the mean of the pair's and of all pairs'."""
        products = self.parts @ self.parts.T
        products = products[np.ix_(order, order)]
        own = np.diag(products)
        variances = np.maximum(own[:, None] + own[None, :] - 2 * products, 0.0)
        count = len(own)
        pooled = variances.sum() / (count * (count - 1))
        # The same difference in every task has no variance, although another task can differ: the error is at least
        # that of these tasks and one more without any difference.
        means = self.means[order]
        least = np.abs(means[:, None] - means[None, :]) / (self.tasks + 1)
        return np.asarray(np.maximum(np.sqrt((variances + pooled) / 2), least))

    def freedom(self, count: int) -> float:
        """Return the degrees of freedom of the mean of the two variances, if all candidates vary alike.

        The pooled one has `count - 1` times those of a pair, and is its conditional mean, so that their covariance is
        its variance: (1/4 + 3/4 / (count - 1)) times the variance of a pair's.
        """
        return (self.tasks - self.blocks) * 4 * (count - 1) / (count + 2)


def _sample(
    table: Floats, tasks: Sequence[Hashable], strata: Sequence[Hashable] | None, weights: Sequence[float] | None
) -> _Sample:
    """Return means and parts. Memory is linear in cases and tasks."""
    task_of, groups = _places(tasks)
    stratum_of, layers = _places(strata if strata is not None else [0] * len(tasks))
    counts = np.ones(len(tasks)) if weights is None else np.asarray(weights, dtype=np.float64)
    scale = counts / np.bincount(stratum_of, counts, layers)[stratum_of]
    by_stratum = np.array([np.bincount(stratum_of, row, layers) for row in table * scale])
    residuals = (table - by_stratum[:, stratum_of]) * scale / layers
    parts = np.array([np.bincount(task_of, row, groups) for row in residuals])
    block_of, blocks = _blocks(task_of, stratum_of, groups, layers)
    sizes = np.bincount(block_of, minlength=blocks)
    middle = np.array([np.bincount(block_of, row, blocks) for row in parts]) / sizes
    parts = (parts - middle[:, block_of]) * np.sqrt(sizes / np.maximum(sizes - 1, 1))[block_of]
    return _Sample(by_stratum.mean(axis=1), parts, groups, blocks)


def _places(labels: Sequence[Hashable]) -> tuple[NDArray[np.intp], int]:
    places: dict[Hashable, int] = {}
    found = [places.setdefault(label, len(places)) for label in labels]
    return np.array(found, dtype=np.intp), len(places)


def _blocks(
    task_of: NDArray[np.intp], stratum_of: NDArray[np.intp], groups: int, layers: int
) -> tuple[NDArray[np.intp], int]:
    """Return the block of each task: those in the same strata. Blocks of one task, which show no spread, are joined."""
    if layers == 1:
        return np.zeros(groups, dtype=np.intp), 1
    sets: list[set[int]] = [set() for _ in range(groups)]
    for task, stratum in zip(task_of.tolist(), stratum_of.tolist(), strict=True):
        sets[task].add(stratum)
    block_of, blocks = _places([frozenset(of) for of in sets])
    sizes = np.bincount(block_of, minlength=blocks)
    if (sizes == 1).any():
        joined = sizes == 1
        if joined.sum() == 1:
            joined[np.argsort(sizes, kind="stable")[:2]] = True
        block_of, blocks = _places([-1 if joined[block] else block for block in block_of.tolist()])
    return block_of, blocks


@dataclass(frozen=True)
class _Test:
    """What the differences of candidates show; those with the best means come first, and more is better."""

    means: Floats
    errors: Floats  # standard errors of all differences
    freedom: float
    losses: Floats  # what a task costs on which the candidate fails wholly
    tasks: int
    outside: float

    @cached_property
    def gaps(self) -> Floats:
        """By how much the candidate of the row is ahead of that of the column."""
        return np.asarray(self.means[:, None] - self.means[None, :])

    @cached_property
    def rate(self) -> float:
        return min(RAREST, unseen(self.tasks))

    @cached_property
    def worse(self) -> NDArray[np.bool_]:
        """Whom somebody is shown to surpass, by Holm's steps over candidates and Bonferroni over those ahead of them.

        With m left, m tests of "nobody is better than y" are compared with all others each. Where none of the m is
        surpassed, one is found to be with probability `outside` at most.
        """
        gaps, count = self.gaps, len(self.means)
        surplus = np.maximum(gaps, 0.0) ** 2 - (self.rate * self.losses)[:, None] ** 2
        ratios = np.sqrt(np.maximum(surplus, 0.0)) / np.where(self.errors > 0, self.errors, math.inf)
        ratios[(self.errors == 0) & (surplus > 0)] = math.inf
        furthest = ratios.max(axis=0)
        found = np.zeros(count, dtype=bool)
        for left, place in zip(range(count, 0, -1), np.argsort(-furthest, kind="stable"), strict=True):
            if left * (count - 1) * _tail(float(furthest[place]), self.freedom) > self.outside:
                break
            found[place] = True
        return found

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """How far each is behind the best, at least and at most."""
        return self.distances(self.rate)

    def distances(self, rate: float) -> tuple[Floats, Floats]:
        """Return these bounds where faults on whole tasks have at most this rate.

        All differences lie in their intervals at once, whoever is best: it is ahead by at least the largest of the
        lower ends, and those who may be best by at most the largest of the upper ones.
        """
        count = len(self.means)
        half = student(self.freedom, 1 - 2 * self.outside / (count * (count - 1))) * self.errors
        low = (self.gaps - np.hypot(half, (rate * self.losses)[:, None])).max(axis=0)
        high = self.gaps + np.hypot(half, (rate * self.losses)[None, :])
        np.fill_diagonal(high, 0.0)
        return np.maximum(low, 0.0), np.maximum(high[~self.worse].max(axis=0), 0.0)


def _tail(ratio: float, freedom: float) -> float:
    """Return the probability that Student's t exceeds a ratio."""
    if math.isinf(ratio):
        return 0.0
    return beta_cdf(freedom / (freedom + ratio * ratio), freedom / 2, 0.5) / 2 if ratio > 0 else 0.5
