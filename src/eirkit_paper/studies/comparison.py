"""Compares published figures and shapes of curves with ours over repeated draws of three seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, pstdev

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from eirkit.lacuna.findings.behavior import Valley, valley
from eirkit.records.sweeps import Standing
from eirkit.report.document import Mark, Series, Value
from eirkit.report.table import Cell, Column, Table
from eirkit_paper.published import Printed
from eirkit_paper.study import NO_REASON, StudyRow
from eirkit_paper.verdicts import AGREES, DIFFERS, NOT_SAME, SHIFT, TOO_WIDE, Judgment, judge_draws, judge_exact

Level = tuple[float, float, float] | None  # ours, low, high; None: no value


def banded(name: str, mark: Mark, x: Sequence[Value], levels: Sequence[Level], *, is_share: bool = False) -> Series:
    """Return levels with their ranges; those of a share stay between 0 and 1."""
    shown = [(place, level) for place, level in zip(x, levels, strict=True) if level is not None]
    ours, low, high = ([level[part] for _, level in shown] for part in range(3))
    if is_share:
        low, high = [max(0.0, value) for value in low], [min(1.0, value) for value in high]
    return Series(name, mark, tuple(place for place, _ in shown), tuple(ours), tuple(low), tuple(high))


def numbers(series: Series) -> list[float]:
    """Return the heights of a series."""
    return [float(value) for value in series.y if isinstance(value, (int, float))]


THREE = 3  # seeds behind a published mean
NOTHING = "none of our runs has this figure, which the paper prints; more seeds may have it"

Repetitions = Sequence[float] | NDArray[np.float64]
By = tuple[str, str]  # models behind the published figure, agent behind ours


def compare(
    label: str, published: float, repetitions: Repetitions, by: By = ("", ""), why: str = "", digits: int = 3
) -> StudyRow:
    """Return a judged row.

    Args:
        repetitions: ours, once for each repetition of the published experiment: a mean over three seeds, mostly.
        why: computed reason of a difference, shown only if there is one; it never changes the verdict.
        digits: printed digits of the published figure.
    """
    if not len(repetitions):
        return replace(absent(label, published, DIFFERS, NOTHING, by[0]), ours_by=by[1])
    is_share = abs(published) <= 1 and digits > 1
    off = SHIFT if is_share else SHIFT * abs(published)
    judged = judge_draws(published, repetitions, 0.5 * 10.0**-digits, off)
    return row_from(label, published, judged, by, why, float(np.std(repetitions)))


def exact(label: str, published: float, ours: float, why: str = "", digits: int = 3, by: By = ("", "")) -> StudyRow:
    """Return a judged row of a figure that has no spread."""
    return row_from(label, published, judge_exact(published, ours, 0.5 * 10.0**-digits), by, why)


def row_from(
    label: str, published: float, judged: Judgment, by: By = ("", ""), why: str = "", spread: float | None = None
) -> StudyRow:
    """Return a row of a judgment, with the reason if it differs; our own check if the paper prints no such number."""
    reason = (why or NO_REASON) if judged.verdict == DIFFERS else ""
    return replace(
        absent(label, published, judged.verdict, reason, by[0]),
        ours=judged.ours,
        low=judged.low,
        high=judged.high,
        ours_by=by[1],
        basis=judged.basis,
        p=judged.p,
        agrees_if_off=judged.missed,
        off_by=judged.shift,
        spread=spread,
    )


def stand_in(label: str, published: float, repetitions: Repetitions, by: By, why: str, reason: str = "") -> StudyRow:
    """Return a row that is shown and never judged, because a reference agent stands in for the published models.

    Args:
        why: why it is not judged.
        reason: computed reason of a difference, shown if the test would see one.
    """
    row = compare(label, published, repetitions, by, reason)
    differs = row.why if row.ours is None or not row.why else f"it differs: {row.why}"
    return replace(row, verdict=NOT_SAME, why="; ".join(filter(None, (why, differs))))


def absent(label: str, published: float, verdict: str, why: str, published_by: str = "") -> StudyRow:
    """Return a row without a figure of ours, because its inputs are missing."""
    row = StudyRow(label, None, None, None, None, verdict, why, published_by=published_by)
    if isinstance(published, Printed):
        return replace(row, published=float(published), figure=published.figure)
    return replace(row, expected=published)


def spread(repetitions: Repetitions) -> tuple[float, float, float] | None:
    """Return the mean and the range in which 95% of repetitions lie; None where there is no repetition."""
    if not len(repetitions):
        return None
    judged = judge_draws(float(np.mean(repetitions)), repetitions, 0.0, 0.0)
    return judged.ours, judged.low, judged.high


def in_section(title: str, rows: Iterable[StudyRow], source: str = "") -> tuple[StudyRow, ...]:
    """Return rows under the title of their table, with the place of their figures in the paper."""
    return tuple(replace(row, section=title, source=source or row.source) for row in rows)


def sectioned(sections: Mapping[str, Iterable[StudyRow]]) -> tuple[StudyRow, ...]:
    return tuple(row for title, rows in sections.items() for row in in_section(title, rows))


EQUAL = 1e-9  # figures are shares of 64 steps: smaller differences are rounding

Threes = Sequence[float]  # one mean per group of three seeds


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether our figures have a claimed shape."""

    ours: str
    holds: int  # repetitions that have the shape
    repetitions: int
    in_mean: bool  # the means over all seeds have it

    @property
    def verdict(self) -> str:
        if not self.in_mean:
            return DIFFERS
        return AGREES if 2 * self.holds > self.repetitions else TOO_WIDE


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
TOO_FEW = "not in more than half of the repetitions"


def shape(
    claim: str, published: str, found: Mapping[str, Judged], columns: Sequence[str] = BUDGETS, **more: str
) -> dict[str, str]:
    """Return one line of a table of shapes: the claim of the paper, then our results.

    Args:
        found: results by column; columns may be missing.
        more: further columns, before those of the results.
    """
    shown = {name: f"{judged.ours} ({judged.holds} of {judged.repetitions})" for name, judged in found.items()}
    verdicts = [found[name].verdict for name in columns if name in found]
    return {
        "shape": claim,
        "published": published,
        **more,
        **{name: shown.get(name, "–") for name in columns},
        "verdict": verdicts[0] if len(set(verdicts)) == 1 else " / ".join(verdicts),
        "why not": "" if set(verdicts) == {AGREES} else NO_REASON if DIFFERS in verdicts else TOO_FEW,
    }


def gate_figures(standing: Standing) -> dict[str, Cell]:
    """Return both gates of a capability control as cells of a line."""
    ours, papers = standing.gates
    return {
        "given right inputs": ours.estimate,
        "from": ours.low,
        "to": ours.high,
        f"at least {ours.threshold}": ours.verdict,
        "end to end": papers.estimate,
        "end to end, from": papers.low,
        "end to end, to": papers.high,
        f"the paper's {papers.threshold}": papers.verdict,
    }


def listed(identity: str, title: str, lines: Iterable[Mapping[str, Cell]], note: str = "") -> Table:
    """Return lines with the same keys as a table."""
    rows = tuple(lines)
    keys = tuple(dict.fromkeys(key for row in rows for key in row))
    return Table(identity, title, tuple(Column(key, key) for key in keys), rows, note)
