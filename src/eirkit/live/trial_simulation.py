"""Simulates trials with known effects: how often the intervals of `guard results` hold the truth.

Each simulated compaction has its outcomes under all arms; which one is seen is drawn as in a real trial. Sessions have
one to many compactions in projects of unequal size. In dependent histories a session shares its pace, and an arm also
changes what happens after the next compaction. The truth is the mean effect over the compactions of that trial, with
earlier arms as they were drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from eirkit.live.effects import TrialUnit, Values, effects
from eirkit.live.trial import ARMS, PLANNED, Arm, arm_at

Kind = Literal["none", "constant", "varying"]

KINDS: tuple[Kind, ...] = ("none", "constant", "varying")
TRIALS = 1_000
_SUBSETS = 999  # with the observed signs, a round number
_PROJECTS = (0.5, 0.25, 0.15, 0.1)  # shares of sessions
_ENDS = 0.35  # the probability that a session ends before its next compaction
_CARRIED: dict[Arm, float] = {"restore": -0.15, "sham": 0.0, "nothing": 0.3}  # on the logarithm of the next pace
_SHIFT = np.array([-400.0, -1_500.0, -2.0, -0.3, -0.05])  # of every compaction, in the order of the measures


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
    found = effects(made.units, "restore", "nothing", seed=seed, subsets=_SUBSETS)
    counts = np.zeros((4, len(found)))
    for place, (one, truth) in enumerate(zip(found, made.truth, strict=True)):
        if one.estimate is not None and one.p is not None:
            is_in = (one.low is None or one.low <= truth) and (one.high is None or truth <= one.high)
            counts[:, place] = (1, is_in, one.p <= 0.05, one.power(float(truth)) or 0.0)
    return counts


def simulated_trial(kind: Kind, *, is_dependent: bool, compactions: int, seed: int) -> _Simulated:
    """Return one trial with what is seen of it, and its true effects."""
    random = np.random.Generator(np.random.Philox(key=seed))
    paces = random.normal(0.0, 0.4, len(_PROJECTS))
    places: Counter[tuple[int, int]] = Counter()
    units: list[TrialUnit] = []
    differences = []
    while len(units) < compactions:
        project = int(random.choice(len(_PROJECTS), p=_PROJECTS))
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
