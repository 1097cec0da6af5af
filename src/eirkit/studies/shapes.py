"""Shapes of published tables: a sign, an order or a place, and in how many repetitions of the experiment ours has it.

A repetition is a mean over three seeds, as many as the paper has. A shape is reproduced if most repetitions have it,
and within seed spread if only the mean over all of them has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Any

from eirkit.lacuna.evidence.behaviour import Valley, valley
from eirkit.report.table import Column, Table
from eirkit.report.verdict import DIFFERS, REPRODUCED, SPREAD

EQUAL = 1e-9  # figures are shares of 64 steps: what is nearer than this differs by rounding

Threes = Sequence[float]  # one mean for each three of seeds


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether ours has a shape."""

    ours: str
    holds: int  # repetitions that have it
    repetitions: int
    in_mean: bool  # the means over all seeds have it

    @property
    def verdict(self) -> str:
        if not self.in_mean:
            return DIFFERS
        return REPRODUCED if 2 * self.holds > self.repetitions else SPREAD


def above(high: Threes, low: Threes) -> Judged:
    """Judge that one condition is better than another."""
    apart = [a - b for a, b in zip(high, low, strict=True)]
    return _judged([apart], f"{_signed(fmean(apart))} ± {pstdev(apart):.3f}", lambda levels: levels[0] > EQUAL)


def below(low: Threes, high: Threes) -> Judged:
    """Judge that one condition is worse than another."""
    apart = [a - b for a, b in zip(low, high, strict=True)]
    return _judged([apart], f"{_signed(fmean(apart))} ± {pstdev(apart):.3f}", lambda levels: levels[0] < -EQUAL)


def ordered(curves: Mapping[str, Threes], least: float = EQUAL) -> Judged:
    """Judge that conditions fall in the order in which they are given, from one to the next by more than `least`."""
    shown = ", ".join(f"{name} {fmean(values):.3f} ± {pstdev(values):.3f}" for name, values in curves.items())
    return _judged(list(curves.values()), shown, lambda levels: all(a - b > least for a, b in pairwise(levels)))


def never_rises(curves: Mapping[str, Threes]) -> Judged:
    """Judge that conditions fall or stay in the order in which they are given."""
    return ordered(curves, least=-EQUAL)


def lowest_at(h: int, curve: Mapping[int, Threes], floor: Mapping[int, Threes]) -> Judged:
    """Judge that accuracy lies below the floor, and furthest below it at this capacity."""
    sizes = tuple(curve)

    def lowest(levels: Sequence[float]) -> Valley:
        half = len(sizes)
        return valley(dict(zip(sizes, levels[:half], strict=True)), dict(zip(sizes, levels[half:], strict=True)))

    def is_there(levels: Sequence[float]) -> bool:
        return lowest(levels).depth < -EQUAL and lowest(levels).h == h

    threes = [*curve.values(), *(floor[size] for size in sizes)]
    depths = [lowest(levels).depth for levels in zip(*threes, strict=True)]
    place = lowest([fmean(values) for values in threes]).h
    return _judged(threes, f"{_signed(fmean(depths))} ± {pstdev(depths):.3f} at h = {place}", is_there)


def _judged(threes: Sequence[Threes], ours: str, holds: Callable[[Sequence[float]], bool]) -> Judged:
    each = [holds(levels) for levels in zip(*threes, strict=True)]
    return Judged(ours, sum(each), len(each), holds([fmean(values) for values in threes]))


def _signed(value: float) -> str:
    return f"{value:+.3f}" if abs(value) >= EQUAL else "0.000"


BUDGETS = ("no reads", "reads")


def shape(
    claim: str, published: str, found: Mapping[str, Judged], why: str, columns: Sequence[str] = BUDGETS, **more: str
) -> dict[str, str]:
    """Return one line: what the paper says and who there, then what came out here.

    Args:
        found: by column; one may be left out.
        why: what is known where the shape does not come out.
        more: further columns, before those of what came out.
    """
    shown = {name: f"{judged.ours} ({judged.holds} of {judged.repetitions})" for name, judged in found.items()}
    verdicts = [found[name].verdict for name in columns if name in found]
    return {
        "shape": claim,
        "published": published,
        **more,
        **{name: shown.get(name, "–") for name in columns},
        "verdict": verdicts[0] if len(set(verdicts)) == 1 else " / ".join(verdicts),
        "why not": "" if set(verdicts) == {REPRODUCED} else why,
    }


def listed(identity: str, title: str, lines: Iterable[Mapping[str, Any]], note: str = "") -> Table:
    """Return lines that share their keys as a table."""
    rows = tuple(lines)
    keys = tuple(dict.fromkeys(key for row in rows for key in row))
    return Table(identity, title, tuple(Column(key, key) for key in keys), rows, note)
