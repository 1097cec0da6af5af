"""Decides the verdict on a published figure: tests of two samples for few seeds, at ceilings, for skewed costs.

A verdict asks whether both figures can come from the same truth. Its test errs in 5% of the cases in which they do, or
in fewer where figures are so near a ceiling that no test can reach 5%. Beside it stands how probable *agrees* would be
if the truth differed by 0.1 (of a figure that is no share: by a tenth of it). Where that is more than a half, *agrees*
would say nothing, and the verdict is *too wide to tell*.

The paper prints means over three task seeds. Its ± is over runs of several models on the same seeds, from which the
spread over seeds cannot be had, so both means are given the spread over seeds that ours has; the ± is used where ours
has none, and is compared by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from eirkit.lacuna.findings.intervals import beta_cdf, student
from eirkit_paper.count_tests import (
    FEW,
    Samples,
    binomial,
    missed_by_counts,
    missed_by_seeds,
    pooled_mid_p,
    seeds_mid_p,
    shifted,
)

AGREES = "agrees"
DIFFERS = "differs"
TOO_WIDE = "too wide to tell"
NOT_SAME = "not the same experiment"
FEWER_SEEDS = "not judged: fewer seeds"

ERROR = 0.05  # of a test where both figures have the same truth
SHIFT = 0.1
WIDE = 0.5  # from such a probability of *agrees* on, it says nothing
PAPER_SEEDS = 3
RARE_SHARE = 0.1  # of runs that one slip may spoil: with fewer that are spoiled, or are not, counts decide too
LEAST_INFLATION = 0.5  # of variances, for power: seeds that are alike by chance count little
FAR = 100.0  # the ± shows so many times our variance: ours happens to have missed what varies
MANY = 1000  # from so many repetitions on, tails are counted
BOUNDED = ("share", "difference", "share of gap")

Floats = NDArray[np.float64]


class Judgment(Struct, frozen=True):
    """A verdict and what it rests on."""

    verdict: str
    ours: float
    low: float  # published figures from here
    high: float  # to here agree
    p: float | None = None  # how often figures with the same truth lie as far apart; None: nothing is drawn
    missed: float | None = None  # probability of *agrees* if the truth differed by the shift
    shift: float | None = None
    basis: str = ""


@dataclass(frozen=True, slots=True)
class SeedMeans:
    """Our figure, seed by seed."""

    values: tuple[float, ...]
    trials: int  # steps, runs or probes in all
    runs: int
    carries: bool  # a wrong answer is used again, so that one slip may spoil a run

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.values)

    @property
    def variance(self) -> float:
        """Over seeds; rounding of sums is no variance."""
        found = float(np.var(self.values, ddof=1))
        return 0.0 if found < 1e-18 else found


def judge_exact(published: float, ours: float, rounding: float) -> Judgment:
    """Judge figures of which nothing is drawn: they are equal as printed, or differ."""
    near = rounding * (1 + 1e-9)  # a figure halfway between two printed ones may be either
    verdict = AGREES if abs(published - ours) <= near else DIFFERS
    return Judgment(verdict, ours, ours - near, ours + near, basis="equal as printed")


def judge_draws(published: float, repetitions: Sequence[float] | Floats, rounding: float, shift: float) -> Judgment:
    """Judge a published mean of three seeds as one more of our many means of three seeds.

    Tails are counted where there are enough repetitions; with fewer, a normal distribution takes their place.
    """
    values = np.asarray(repetitions, dtype=float)
    ours, near = float(values.mean()), rounding * (1 + 1e-9)
    if len(values) < 2 or not values.std():
        return judge_exact(published, ours, rounding)
    tail = ERROR / 2
    if len(values) >= MANY:
        low, high = (float(bound) for bound in np.quantile(values, (tail, 1 - tail)))
        below, above = float((values <= published + near).mean()), float((values >= published - near).mean())
        p = min(1.0, 2 * min(below, above))
        missed = max(_share_within(values + move, low - near, high + near) for move in (shift, -shift))
    else:
        spread = float(values.std(ddof=1)) * math.sqrt(1 + 1 / len(values))  # of a further one, less our mean
        freedom = len(values) - 1
        half = _student(freedom) * spread
        low, high = ours - half, ours + half
        p = student_p(max(0.0, abs(published - ours) - near) / spread, freedom)
        missed = _agrees_by_t(shift, spread, freedom)
    verdict = AGREES if low - near <= published <= high + near else DIFFERS
    return _weighed(Judgment(verdict, ours, low, high, p, missed, shift, "our means over three seeds"))


def _share_within(values: Floats, low: float, high: float) -> float:
    return float(((values >= low) & (values <= high)).mean())


def judge_counts(published: tuple[int, int], ours: tuple[int, int], shift: float = SHIFT) -> Judgment:
    """Judge two numbers of successes in independent trials, such as probes."""
    (k1, n1), (k2, n2) = published, ours
    p = pooled_mid_p(k1, n1, k2, n2)
    low, high = _agreeing(n1, k2 / n2, lambda count: pooled_mid_p(count, n1, k2, n2))
    missed = missed_by_counts(k1 / n1, n1, n2, shift, ERROR)
    verdict = AGREES if p >= ERROR else DIFFERS
    return _weighed(Judgment(verdict, k2 / n2, low / n1, high / n1, p, missed, shift, "counts, mid-p"))


def _agreeing(n: int, share: float, p_of: Callable[[int], float]) -> tuple[int, int]:
    """Return the least and the greatest of n counts with which a share of ours agrees, from the nearest outwards."""
    low = high = min(n, _near(share * n))
    while low > 0 and p_of(low - 1) >= ERROR:
        low -= 1
    while high < n and p_of(high + 1) >= ERROR:
        high += 1
    return low, high


def judge_rates(published: tuple[int, int], ours: tuple[int, int]) -> Judgment:
    """Judge two numbers of events, such as reads, in so many probes: given their sum, one of them is binomial.

    The difference that it should show is one more event in ten probes.
    """
    (k1, n1), (k2, n2) = published, ours
    own, p = k2 * n1 / n2, _rates_mid_p(k1, k2, n1, n2)
    agreeing = [k for k in range(10 + 4 * max(k1, math.ceil(own))) if _rates_mid_p(k, k2, n1, n2) >= ERROR]
    firsts, seconds = _poisson(k1), _poisson(k1 * n2 / n1 + SHIFT * n2)
    missed = sum(
        a * b
        for i, a in enumerate(firsts)
        for j, b in enumerate(seconds)
        if a * b > 1e-9 and _rates_mid_p(i, j, n1, n2) >= ERROR
    )
    verdict = AGREES if p >= ERROR else DIFFERS
    ends = (float(min(agreeing)), float(max(agreeing)))
    return _weighed(Judgment(verdict, own, *ends, p, missed, SHIFT * n1, "events, mid-p"))


@lru_cache(maxsize=50_000)
def _rates_mid_p(k1: int, k2: int, n1: int, n2: int) -> float:
    chances = binomial(k1 + k2, n1 / (n1 + n2))
    seen = chances[k1]
    return min(1.0, sum(chance for chance in chances if chance <= seen * (1 + 1e-7)) - 0.5 * seen)


def _poisson(mean: float) -> list[float]:
    return [math.exp(-mean + k * math.log(max(mean, 1e-12)) - math.lgamma(k + 1)) for k in range(int(4 * mean) + 12)]


def judge_means(
    published: float, rounding: float, ours: SeedMeans, *, sd: float | None, runs: int | None, unit: str
) -> Judgment:
    """Judge a published mean over three seeds against ours over any number of seeds.

    Args:
        sd: the printed ±, over `runs` runs.
        unit: of the figure; shares are bounded and have trials to count.
    """
    if len(ours.values) < PAPER_SEEDS:
        return Judgment(
            FEWER_SEEDS, ours.mean, ours.mean, ours.mean, basis=f"{len(ours.values)} of {PAPER_SEEDS} seeds"
        )
    # The difference that a verdict should show: 0.1 of a share, a tenth of anything else.
    shift, found = SHIFT if unit in BOUNDED else SHIFT * abs(published), []
    variance, freedom = _seed_variance(ours, sd, runs)
    is_rare = unit == "share" and runs is not None and (not variance or _is_rare(published, ours, runs))
    if variance and (ours.carries or not is_rare):
        of = _samples(ours, runs, freedom) if unit == "share" and runs and not ours.carries else None
        found.append(_by_t(published, ours, variance, freedom, shift, of))
    if is_rare and runs is not None:
        found.append(
            _by_runs(published, ours, runs) if ours.carries else _by_seeds(published, ours, runs, variance, freedom)
        )
    if not found:
        return judge_exact(published, ours.mean, rounding)
    strictest = max(found, key=lambda one: one.p or 0.0)  # both must reject
    low, high = min(one.low for one in found), max(one.high for one in found)
    missed = max(one.missed or 0.0 for one in found)
    verdict, p = strictest.verdict, strictest.p
    if abs(published - ours.mean) <= rounding * (1 + 1e-9):
        verdict, p = AGREES, 1.0
    return _weighed(_bounded(replace(strictest, verdict=verdict, low=low, high=high, p=p, missed=missed), unit))


def _seed_variance(ours: SeedMeans, sd: float | None, runs: int | None) -> tuple[float, int]:
    """Return the variance over seeds and its degrees of freedom: ours, or that of the ± where ours shows far less."""
    own, freedom = ours.variance, len(ours.values) - 1
    if sd and runs and runs > 1:
        printed = sd**2 * runs / (runs - 1) * PAPER_SEEDS / runs  # of a seed's mean, if runs are independent
        if printed > FAR * own:
            return printed, runs - 1
    return own, freedom


def _by_t(
    published: float, ours: SeedMeans, variance: float, freedom: int, shift: float, of: Samples | None
) -> Judgment:
    error = math.sqrt(variance * (1 / PAPER_SEEDS + 1 / len(ours.values)))
    half = _student(freedom) * error
    p = student_p(abs(published - ours.mean) / error, freedom)
    verdict = AGREES if p >= ERROR else DIFFERS
    # Three seeds may happen to be nearly equal; what independent steps would show makes the probability steadier.
    usual = error
    if of is not None:
        inflation = (freedom * of.spread(variance, ours.mean) + 1) / (freedom + 1)
        usual = math.sqrt(max(LEAST_INFLATION, inflation) * of.variance(ours.mean))
    missed = _agrees_by_t(shift, usual, freedom)
    return Judgment(verdict, ours.mean, ours.mean - half, ours.mean + half, p, missed, shift, "seeds, t test")


def _is_rare(published: float, ours: SeedMeans, runs: int) -> bool:
    """True if there are so few errors, or so few right answers, that means over seeds are not normal."""
    if ours.carries:
        share = (published * runs + ours.mean * ours.runs) / (runs + ours.runs)
        return min(share, 1 - share) < RARE_SHARE
    of = _samples(ours, runs, 1)
    return any(min(share, 1 - share) * n < FEW for share, n in ((published, of.n1), (ours.mean, of.n2)))


def _samples(ours: SeedMeans, runs: int, freedom: int) -> Samples:
    theirs = max(1, round(runs * ours.trials / ours.runs))  # published runs have as many steps as ours
    return Samples(theirs, ours.trials, len(ours.values), freedom)


def _by_runs(published: float, ours: SeedMeans, runs: int) -> Judgment:
    """Count whole runs, of which one slip may spoil each."""
    found = judge_counts((_near(published * runs), runs), (_near(ours.mean * ours.runs), ours.runs))
    return replace(found, ours=ours.mean, basis="runs, mid-p")


def _by_seeds(published: float, ours: SeedMeans, runs: int, variance: float, freedom: int) -> Judgment:
    """Judge a share of steps whose errors may come by seeds."""
    of = _samples(ours, runs, freedom)
    own, seen = _near(ours.mean * of.n2), _near(published * of.n1)

    def p_of(count: int) -> float:
        return seeds_mid_p(count, own, variance, of)

    low, high = _agreeing(of.n1, own / of.n2, p_of)
    share = own / of.n2 if 0 < own < of.n2 else (own + seen) / (of.n1 + of.n2)
    inflation = max(LEAST_INFLATION, of.inflation(of.spread(variance, share)))
    missed = max(missed_by_seeds(published, other, of, inflation, ERROR) for other in shifted(published, SHIFT))
    p = p_of(seen)
    verdict = AGREES if p >= ERROR else DIFFERS
    ends = (low / of.n1, high / of.n1)
    return Judgment(verdict, ours.mean, *ends, p, missed, SHIFT, "steps by seeds, mid-p")


def _near(value: float) -> int:
    return math.floor(value + 0.5)


def judge_deviations(published: float, runs: int, rounding: float, values: Sequence[float], of: Judgment) -> Judgment:
    """Judge a printed ± against the standard deviation of our runs by the ratio of variances.

    Degrees of freedom are those of a normal distribution, or fewer where our runs have longer tails. At a ceiling one
    of them is zero; there the ± says no more than the mean does, and has its verdict.
    """
    own = float(np.std(values)) if values else 0.0
    if published <= rounding or own <= rounding:
        found = replace(
            of, ours=own, low=min(own, published), high=max(own, published), basis="at a ceiling as its mean"
        )
        return found if abs(own - published) > rounding else replace(found, verdict=AGREES, p=1.0, missed=None)
    theirs, mine = (_freedom(values, n) for n in (runs, len(values)))
    ratio = (published**2 * runs / (runs - 1)) / (own**2 * len(values) / (len(values) - 1))
    upper = 1 - beta_cdf(theirs * ratio / (theirs * ratio + mine), theirs / 2, mine / 2)
    p = min(1.0, 2 * min(upper, 1 - upper))
    reach = 1.96 * math.sqrt(2 / theirs + 2 / mine) / 2  # of the logarithm of a deviation
    low, high = own * math.exp(-reach), own * math.exp(reach)
    off = math.log((published + SHIFT) / published) / (reach / 1.96)
    missed = _normal(1.96 - off) - _normal(-1.96 - off)
    verdict = AGREES if p >= ERROR else DIFFERS
    return _weighed(Judgment(verdict, own, low, high, p, missed, SHIFT, "ratio of variances"))


def _freedom(values: Sequence[float], n: int) -> float:
    """Return the degrees of freedom that a variance over n runs has, given how long the tails of ours are."""
    centered = np.asarray(values) - np.mean(values)
    kurtosis = float((centered**4).mean() / (centered**2).mean() ** 2)
    return float(max(1.0, min(n - 1, 2 * n / max(kurtosis - 1, 1e-9))))


def judge_estimates(
    published: tuple[float, float | None, float | None],
    ours: tuple[float, float, float],
    rounding: float,
    *,
    ratio: bool,
) -> Judgment:
    """Judge two estimates by their 95% intervals, on a logarithmic scale for ratios.

    Over the same runs they are not independent, and the test errs less often than it says.
    """
    scale = math.log if ratio else float
    value, low, high = published
    mine, least, most = (scale(bound) for bound in ours)
    error = (most - least) / (2 * 1.96)
    theirs = error if low is None or high is None else (scale(high) - scale(low)) / (2 * 1.96)
    both = math.hypot(error, theirs)
    gap = max(0.0, abs(value - ours[0]) - rounding) and abs(scale(value) - mine)
    p = 1.0 if not gap else 2 * (1 - _normal(gap / both)) if both else 0.0
    shift = math.log1p(SHIFT) if ratio else SHIFT
    missed = _normal(1.96 - shift / both) - _normal(-1.96 - shift / both) if both else 0.0
    ends = [mine - 1.96 * both, mine + 1.96 * both]
    bounds = [math.exp(end) for end in ends] if ratio else ends
    verdict = AGREES if p >= ERROR else DIFFERS
    return _weighed(Judgment(verdict, ours[0], bounds[0], bounds[1], p, missed, SHIFT, "both 95% intervals"))


def judge_bound(published: float, ours: float, rounding: float, *, upper: bool) -> Judgment:
    """Judge a figure of which the paper prints only a bound: ours keeps it or does not."""
    keeps = ours <= published + rounding if upper else ours >= published - rounding
    ends = (ours, math.inf) if upper else (-math.inf, ours)
    return Judgment(AGREES if keeps else DIFFERS, ours, *ends, basis="a bound")


def _weighed(found: Judgment) -> Judgment:
    """Return a judgment in which agreement that would be likely anyway is not called so."""
    is_empty = found.verdict == AGREES and found.missed is not None and found.missed > WIDE
    return replace(found, verdict=TOO_WIDE) if is_empty else found


def _bounded(found: Judgment, unit: str) -> Judgment:
    least, most = {"share": (0.0, 1.0), "difference": (-1.0, 1.0)}.get(unit, (-math.inf, math.inf))
    return replace(found, low=max(least, found.low), high=min(most, found.high))


def student_p(t: float, freedom: float) -> float:
    """Return the two-sided p-value of Student's t."""
    return beta_cdf(freedom / (freedom + t * t), freedom / 2, 0.5)


_student = lru_cache(student)


def _normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


@lru_cache(maxsize=4096)
def _agrees_by_t(shift: float, error: float, freedom: int) -> float:
    """Return the probability that a t test does not reject a difference: the mean over the spread it may estimate."""
    reach = 10 / math.sqrt(freedom)
    ratios = np.linspace(1e-4, 1 + reach, 80)  # estimated over true standard error
    log = (freedom - 1) * np.log(ratios) - freedom * ratios**2 / 2
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    limits = _student(freedom) * ratios
    kept = [_normal(limit - shift / error) - _normal(-limit - shift / error) for limit in limits]
    return float(np.dot(weights, kept))
