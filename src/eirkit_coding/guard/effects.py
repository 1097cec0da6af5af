"""The test of a trial of the guard: differences between arms with intervals and power; simulated trials.

Of two arms, the compactions of the third are set aside. In what is left of a block the two arms could as well have been
exchanged, whatever happened in other blocks: no two compactions of a block belong to one session. So under the
hypothesis that one arm changes every outcome by t, each block's difference could have had either sign. An effect t is
in the interval unless the sum of the differences is extreme among all choices of signs. Solved for t, the bounds are
quantiles of the means over all subsets of blocks (Hartigan's typical values).

Nothing is assumed about the distribution of outcomes or their dependence within a session. If an arm also changes what
happens after later compactions, or changes some outcomes more than others, the interval holds for the mean effect, but
no longer exactly. docs/design/trust.md says why.

Each simulated compaction has its outcomes under all arms; which one is seen is drawn as in a real trial. Sessions have
one to many compactions in projects of unequal size. In dependent histories a session shares its pace, and an arm also
changes what happens after the next compaction. The truth is the mean effect over the compactions of that trial, with
earlier arms as they were drawn.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eirkit.seeds import words
from eirkit_coding.guard.trial import ARMS, PLANNED, Arm, arm_at

Values = NDArray[np.float64]

LEVEL = 0.95
POWER = 0.8
SUBSETS = 4_999  # of blocks, beyond which they are drawn; with the observed signs a round number
FEWEST = 10  # values other than the most frequent one, without which nothing is said about an effect
_SHRINKS = 2.0  # compactions of all projects that are added to the mean of each
_ROUNDING = 1e-9  # of values; equal ones must not differ by how they were computed
_NORMAL = NormalDist()
Kind = Literal["none", "constant", "varying"]

KINDS: tuple[Kind, ...] = ("none", "constant", "varying")
TRIALS = 1_000
_SIMULATED_SUBSETS = 999  # with the observed signs, a round number
_PROJECT_SHARES = (0.5, 0.25, 0.15, 0.1)  # shares of sessions
_ENDS = 0.35  # the probability that a session ends before its next compaction
_CARRIED: dict[Arm, float] = {"restore": -0.15, "sham": 0.0, "nothing": 0.3}  # on the logarithm of the next pace
_SHIFT = np.array([-400.0, -1_500.0, -2.0, -0.3, -0.05])  # of every compaction, in the order of the measures


@dataclass(frozen=True, slots=True)
class TrialUnit:
    """One measured compaction."""

    block: tuple[str, int, int]  # its project first
    arm: Arm
    values: tuple[float, ...]  # of the measures, in their order


@dataclass(frozen=True, slots=True)
class Effect:
    """What one arm changes in one measure, against another."""

    arm: Arm
    other: Arm
    compactions: int  # of both
    mean: float | None
    other_mean: float | None
    estimate: float | None  # None: too few compactions, or nearly all have the same value
    low: float | None  # None: no bound
    high: float | None
    p: float | None
    error: float | None  # standard

    def detectable(self) -> float | None:
        """Return the smallest effect that compactions like these show with a power of 80 %."""
        return None if self.error is None else (_NORMAL.inv_cdf((1 + LEVEL) / 2) + _NORMAL.inv_cdf(POWER)) * self.error

    def power(self, effect: float) -> float | None:
        """Return how likely compactions like these show an effect."""
        if not self.error:
            return None
        limit, shift = _NORMAL.inv_cdf((1 + LEVEL) / 2), abs(effect) / self.error
        return _NORMAL.cdf(shift - limit) + _NORMAL.cdf(-shift - limit)

    def wanted(self, effect: float, measured: int) -> int | None:
        """Return how many compactions of all arms show an effect with a power of 80 %, if this many were measured."""
        least = self.detectable()
        return math.ceil(measured * (least / effect) ** 2) if least and effect else None


@dataclass(frozen=True, slots=True)
class _Blocks:
    """By block: what its difference is without an effect, and how much an effect of one changes it."""

    sums: Values  # blocks × measures
    slopes: Values


def effects(units: Sequence[TrialUnit], arm: Arm, other: Arm, *, seed: int, subsets: int = SUBSETS) -> list[Effect]:
    """Return the effect of an arm against another on every measure; `seed` chooses subsets of blocks."""
    chosen = [unit for unit in units if unit.arm in (arm, other)]
    is_arm = np.array([unit.arm == arm for unit in chosen], dtype=bool)
    count = len(units[0].values) if units else 0
    if not is_arm.any() or is_arm.all():
        return [Effect(arm, other, len(chosen), *[None] * 7) for _ in range(count)]
    values = np.array([unit.values for unit in chosen], dtype=np.float64)
    blocks = _blocks(chosen, values, is_arm)
    low, high, p = _interval(blocks, seed, subsets)
    estimates = blocks.sums.sum(0) / blocks.slopes.sum()
    errors = np.sqrt(((blocks.sums - blocks.slopes[:, None] * estimates) ** 2).sum(0)) / blocks.slopes.sum()
    means, others = values[is_arm].mean(0), values[~is_arm].mean(0)
    found = []
    for place in range(count):
        row = (estimates[place], _bound(low[place]), _bound(high[place]), p[place], errors[place])
        numbers = [None if value is None else float(value) for value in row]
        if _varying(values[:, place]) < FEWEST:
            numbers = [None] * len(numbers)
        found.append(Effect(arm, other, len(chosen), float(means[place]), float(others[place]), *numbers))
    return found


def _bound(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _varying(values: Values) -> int:
    """Return how many values differ from the most frequent one."""
    return len(values) - int(np.unique(values, return_counts=True)[1].max())


def _blocks(chosen: Sequence[TrialUnit], values: Values, is_arm: NDArray[np.bool_]) -> _Blocks:
    """Return the differences of blocks; a compaction that is alone in its block is compared with its project's mean.

    Under the hypothesis of an effect t, outcomes less t in the one arm are fixed, and so are their means, whatever the
    signs: hence the slopes.
    """
    projects = _numbers([unit.block[0] for unit in chosen])
    inside = _numbers([unit.block for unit in chosen])
    alone = np.bincount(projects)[projects] + _SHRINKS
    both = np.column_stack([values, is_arm])
    center = (_sums(both, projects)[projects] + _SHRINKS * both.mean(0)) / alone[:, None]
    signed = np.where(is_arm, 1.0, -1.0)[:, None] * (both - center)
    summed = _sums(signed, inside)
    return _Blocks(summed[:, :-1], summed[:, -1])


def _numbers(keys: Sequence[Any]) -> NDArray[np.int64]:
    known: dict[Any, int] = {}
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)


def _sums(values: Values, groups: NDArray[np.int64]) -> Values:
    summed = np.zeros((int(groups.max()) + 1, values.shape[1]))
    np.add.at(summed, groups, values)
    return summed


def _interval(blocks: _Blocks, seed: int, subsets: int) -> tuple[Values, Values, Values]:
    """Return the bounds of the effects and the p values of no effect."""
    chosen = _subsets(len(blocks.slopes), seed, subsets)
    total = len(chosen) + 1  # with the observed signs
    sums, slopes = chosen @ blocks.sums, (chosen @ blocks.slopes)[:, None]
    unit = _ROUNDING * np.abs(blocks.sums).sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(slopes > _ROUNDING, sums / slopes, np.where(sums <= unit, -np.inf, np.inf))
    ratios.sort(axis=0)
    out = math.floor((1 - LEVEL) / 2 * total + _ROUNDING)  # subsets beyond a bound
    endless = np.full(ratios.shape[1], np.inf)
    low, high = (ratios[out - 1] - unit, ratios[-out] + unit) if out else (-endless, endless)
    above, below = (1 + (sums <= unit).sum(0)) / total, (1 + (sums >= -unit).sum(0)) / total
    return low, high, np.minimum(1.0, 2 * np.minimum(above, below))


def _subsets(blocks: int, seed: int, most: int) -> Values:
    """Return subsets as rows of ones and zeros: every one that is not empty, or so many drawn ones."""
    if blocks < 63 and (1 << blocks) <= most + 1:
        numbers = np.arange(1, 1 << blocks, dtype=np.uint64)[:, None]
        return ((numbers >> np.arange(blocks, dtype=np.uint64)) & np.uint64(1)).astype(np.float64)
    wide = -(-blocks // 64)
    drawn = words([seed], most * wide, "guard", "subsets").reshape(most, wide)
    bits = np.unpackbits(drawn.astype("<u8").view(np.uint8), axis=1, bitorder="little")
    return bits[:, :blocks].astype(np.float64)


@dataclass(frozen=True, slots=True)
class SimulatedCoverage:
    """What simulated trials of one kind gave for one measure."""

    kind: Kind
    is_dependent: bool
    measure: str
    trials: int  # in which the effect could be estimated
    covered: int  # by the interval
    decided: int  # in which p was at most 0.05
    expected: float  # of these, by the power that each trial states for the true effect


@dataclass(frozen=True, slots=True)
class _Simulated:
    units: list[TrialUnit]
    truth: Values


def calibrate(
    measures: tuple[str, ...], trials: int = TRIALS, compactions: int = PLANNED, seed: int = 0
) -> Iterator[SimulatedCoverage]:
    """Yield the calibration of every measure under each kind of effect and history."""
    for kind in KINDS:
        for is_dependent in (False, True):
            counts = np.zeros((4, len(measures)))
            for trial in range(trials):
                made = simulated_trial(kind, is_dependent=is_dependent, compactions=compactions, seed=seed + trial)
                counts += _judged(made, seed + trial)
            for name, (told, covered, decided, expected) in zip(measures, counts.T, strict=True):
                yield SimulatedCoverage(
                    kind, is_dependent, name, int(told), int(covered), int(decided), float(expected)
                )


def _judged(made: _Simulated, seed: int) -> Values:
    found = effects(made.units, "restore", "nothing", seed=seed, subsets=_SIMULATED_SUBSETS)
    counts = np.zeros((4, len(found)))
    for place, (one, truth) in enumerate(zip(found, made.truth, strict=True)):
        if one.estimate is not None and one.p is not None:
            is_in = (one.low is None or one.low <= truth) and (one.high is None or truth <= one.high)
            counts[:, place] = (1, is_in, one.p <= 0.05, one.power(float(truth)) or 0.0)
    return counts


def simulated_trial(kind: Kind, *, is_dependent: bool, compactions: int, seed: int) -> _Simulated:
    """Return one trial with what is seen of it, and its true effects."""
    random = np.random.Generator(np.random.Philox(key=seed))
    paces = random.normal(0.0, 0.4, len(_PROJECT_SHARES))
    places: Counter[tuple[int, int]] = Counter()
    units: list[TrialUnit] = []
    differences = []
    while len(units) < compactions:
        project = int(random.choice(len(_PROJECT_SHARES), p=_PROJECT_SHARES))
        own = paces[project] + (random.normal(0.0, 0.6) if is_dependent else 0.0)
        carried = 0.0
        for ordinal in range(int(random.geometric(_ENDS))):
            place = places[project, ordinal]
            places[project, ordinal] += 1
            arm = arm_at(seed, str(project), ordinal, place)
            plain = _outcomes(random, float(np.exp(own + carried)))
            helped = _helped(random, plain, kind)
            seen = {"restore": helped, "sham": plain, "nothing": plain}[arm]
            units.append(TrialUnit((str(project), ordinal, place // len(ARMS)), arm, tuple(map(float, seen))))
            differences.append(helped - plain)
            carried = _CARRIED[arm] if is_dependent else 0.0
    return _Simulated(units[:compactions], np.mean(differences[:compactions], axis=0))


def _outcomes(random: np.random.Generator, pace: float) -> Values:
    """Return tokens read again, tokens and turns to the next edit, failed edits, broken instructions."""
    turns = 1 + random.poisson(6 * pace * random.gamma(2.0, 0.5))
    again = random.poisson(2 * pace) * random.lognormal(6.0, 0.9)
    rules = random.binomial(3, min(0.5, 0.06 * pace))
    return np.array([again, turns * random.lognormal(6.5, 0.6), turns, random.poisson(0.5 * pace), rules], dtype=float)


def _helped(random: np.random.Generator, plain: Values, kind: Kind) -> Values:
    """Return the outcomes with what was restored: the same, shifted alike, or thinned by chance."""
    if kind == "none":
        return plain
    if kind == "constant":
        shifted: Values = plain + _SHIFT
        return shifted
    again, tokens, turns, failed, broken = plain
    left = 1 + random.binomial(int(turns) - 1, 0.6)
    thinned = (random.binomial(int(failed), 0.5), random.binomial(int(broken), 0.5))
    return np.array([again * random.beta(3.0, 2.0), tokens * left / turns, left, *thinned], dtype=float)
