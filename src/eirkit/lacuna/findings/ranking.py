"""Ranks candidates that were tried on the same tasks, with intervals that hold for all pairs of them at once.

Only tasks are independent: values of one task are paired, and those of one task in several cells form a cluster. All
pairs share the level (Bonferroni), so that with the stated probability no order that is called shown is wrong.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache
from statistics import NormalDist, fmean

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict
from numpy.typing import NDArray

from eirkit.lacuna.findings.intervals import (
    FEWEST_CLUSTERS,
    LEVEL,
    ROUNDING,
    clusters_for,
    constant_difference,
    mean_difference,
    student,
)

POWER = 0.8  # with which a difference is wanted to be shown
MOST_TASKS = 100_000  # beyond, it is only said that more would be needed


class Lead(Struct, frozen=True):
    """How much better the candidate that ranks higher is than another."""

    better: str
    worse: str
    difference: float  # in favor of `better`, mean over cases
    low: float | None  # simultaneous with all other contrasts; None below six tasks
    high: float | None
    equal: bool  # the same value in every case
    wanted: int | None  # tasks that would show a true difference of this size with probability 0.8; None: unknown
    constant: bool = False  # the same difference in every case; `wanted` tasks with that difference would show it

    @property
    def is_shown(self) -> bool:
        """True if the interval excludes zero."""
        return self.low is not None and self.low > 0


class Standing(Struct, frozen=True):
    """The place of one candidate: the ranks that the intervals leave open."""

    name: str
    value: float  # mean over cases
    first: int
    last: int

    @property
    def ranks(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


class ShownLead(Lead, frozen=True):
    """A lead, and whether its interval excludes zero."""

    shown: bool = False


class RankingFigures(Struct, frozen=True, kw_only=True):
    """A ranking as scripts receive it."""

    cases: int
    tasks: int
    level: float
    leaders: tuple[str, ...]
    standings: tuple[Standing, ...]
    contrasts: tuple[ShownLead, ...]


class Ranking(Struct, frozen=True):
    """Candidates from best to worst by their means, and what is shown about each pair."""

    standings: tuple[Standing, ...]
    contrasts: tuple[Lead, ...]
    cases: int
    tasks: int
    level: float  # that all contrasts hold together

    @property
    def leaders(self) -> tuple[str, ...]:
        """The candidates that nothing is shown to surpass, from best to worst."""
        return tuple(one.name for one in self.standings if one.first == 1)

    def contrast(self, one: str, other: str) -> Lead:
        """Return the contrast of two candidates."""
        return next(each for each in self.contrasts if {each.better, each.worse} == {one, other})

    def figures(self) -> RankingFigures:
        """Return everything that scripts receive."""
        return RankingFigures(
            cases=self.cases,
            tasks=self.tasks,
            level=self.level,
            leaders=self.leaders,
            standings=self.standings,
            contrasts=tuple(ShownLead(**asdict(lead), shown=lead.is_shown) for lead in self.contrasts),
        )


def rank(
    values: Mapping[str, Sequence[float]],
    tasks: Sequence[Hashable],
    *,
    less_is_better: bool = False,
    share: bool = True,
    rankings: int = 1,
    weights: Sequence[float] | None = None,
) -> Ranking:
    """Return the ranking of candidates by the mean of a measure.

    Args:
        values: of each candidate, one value for each case.
        tasks: the task of each case.
        share: the measure lies between 0 and 1.
        rankings: how many rankings share the level, such as one for each h.
        weights: of each case in all means, such as the number of its questions; None: all count alike.
    """
    sign = -1.0 if less_is_better else 1.0
    counts = np.ones(len(tasks)) if weights is None else np.asarray(weights, dtype=np.float64)
    means = {name: fmean(found, counts.tolist()) for name, found in values.items()}
    order = sorted(means, key=lambda name: -sign * means[name])  # ties keep the order in which they were given
    pairs = len(order) * (len(order) - 1) // 2
    outside = (1 - LEVEL) / max(1, pairs * rankings)
    table = np.array([[sign * value for value in values[name]] for name in order])
    contrasts = tuple(_contrasts(order, table, tasks, counts, outside, share))
    beaten, beats = Counter[str](), Counter[str]()
    for one in contrasts:
        beaten[one.worse] += one.is_shown
        beats[one.better] += one.is_shown
    standings = tuple(
        Standing(
            name,
            means[name],
            1 + beaten[name],
            len(order) - beats[name],
        )
        for name in order
    )
    return Ranking(standings, contrasts, len(tasks), len(set(tasks)), LEVEL)


def _contrasts(
    order: Sequence[str],
    table: NDArray[np.float64],
    tasks: Sequence[Hashable],
    counts: NDArray[np.float64],
    outside: float,
    share: bool,
) -> Iterator[Lead]:
    """Yield the contrasts of all pairs, each candidate with those that rank lower.

    The residuals of a difference, summed by task, are the differences of the two candidates' own sums, so a board of a
    thousand takes a second.
    """
    places = {task: place for place, task in enumerate(dict.fromkeys(tasks))}
    groups = len(places)
    place_of = np.array([places[task] for task in tasks], dtype=np.intp)
    total, weights = float(counts.sum()), counts.tolist()
    residuals = (table - (table @ counts / total)[:, None]) * counts
    sums = np.array([np.bincount(place_of, row, groups) for row in residuals])
    enough = groups >= FEWEST_CLUSTERS
    quantile = student(groups - 1, 1 - outside) if enough else 0.0
    for place, name in enumerate(order):
        rest = table[place] - table[place + 1 :]
        spread = np.ptp(rest, axis=1)
        squares = ((sums[place] - sums[place + 1 :]) ** 2).sum(axis=1)
        errors = np.sqrt(groups / max(1, groups - 1) * squares) / total
        for other, found, apart, error in zip(order[place + 1 :], rest, spread.tolist(), errors.tolist(), strict=True):
            middle = fmean(found.tolist(), weights)
            same, furthest = apart <= ROUNDING, 1.0 if share else math.inf  # two shares differ by no more than 1
            if not enough:
                yield Lead(name, other, middle, None, None, same and abs(middle) <= ROUNDING, None)
            elif same and abs(middle) <= ROUNDING:  # a share is bounded, so that seeing no difference bounds the mean
                bounds = mean_difference(found.tolist(), tasks, 1 - outside) if share else None
                low, high = (bounds.low, bounds.high) if bounds else (None, None)
                yield Lead(name, other, middle, low, high, True, None)
            else:
                half = quantile * error
                ends = constant_difference(middle, groups, 1 - outside) if same else (middle - half, middle + half)
                wanted = clusters_for(1 - outside) if same else _wanted(middle, error, groups, outside)
                low, high = max(ends[0], -furthest), min(ends[1], furthest)
                yield Lead(name, other, middle, low, high, False, wanted, same)


def _wanted(difference: float, error: float, groups: int, outside: float) -> int | None:
    """Return how many tasks would show a difference of this size, by the normal approximation."""
    if abs(difference) <= ROUNDING:
        return None
    ratio = _normal_sum(outside) * error / abs(difference)
    return max(FEWEST_CLUSTERS, math.ceil(groups * ratio * ratio))


@cache
def _normal_sum(outside: float) -> float:
    normal = NormalDist()
    return normal.inv_cdf(1 - outside / 2) + normal.inv_cdf(POWER)
