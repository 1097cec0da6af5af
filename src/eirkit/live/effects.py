"""Compares the arms of a trial by the randomness of its own draws: effects, exact intervals and the power there is.

Of two arms, the compactions of the third are set aside. In what is left of a block the two arms could as well have been
exchanged, whatever happened in other blocks: no two compactions of a block belong to one session. So under the
hypothesis that one arm changes every outcome by t, each block's difference could have had either sign. An effect t is
in the interval unless the sum of the differences is extreme among all choices of signs. Solved for t, the bounds are
quantiles of the means over all subsets of blocks (Hartigan's typical values).

Nothing is assumed about the distribution of outcomes or their dependence within a session. If an arm also changes what
happens after later compactions, or changes some outcomes more than others, the interval holds for the mean effect, but
no longer exactly. docs/design/guard-trial.md says why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.live.trial import Arm
from eirkit.seeds import words

Values = NDArray[np.float64]

LEVEL = 0.95
POWER = 0.8
SUBSETS = 4_999  # of blocks, beyond which they are drawn; with the observed signs a round number
FEWEST = 10  # values other than the most frequent one, without which nothing is said about an effect
_SHRINKS = 2.0  # compactions of all projects that are added to the mean of each
_ROUNDING = 1e-9  # of values; equal ones must not differ by how they were computed
_NORMAL = NormalDist()


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
        told = [None if one is None else float(one) for one in row]
        if _varying(values[:, place]) < FEWEST:
            told = [None] * len(told)
        found.append(Effect(arm, other, len(chosen), float(means[place]), float(others[place]), *told))
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
    centre = (_sums(both, projects)[projects] + _SHRINKS * both.mean(0)) / alone[:, None]
    signed = np.where(is_arm, 1.0, -1.0)[:, None] * (both - centre)
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
