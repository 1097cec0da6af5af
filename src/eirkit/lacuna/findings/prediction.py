"""Predicts accuracy from misses alone and tests the predictions: residuals, pressure and recovery cones."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from eirkit.lacuna.findings.causes import Verdict
from eirkit.lacuna.findings.intervals import ROUNDING
from eirkit.lacuna.findings.statistics import DRAWS, TestResult, permuted_difference, spearman
from eirkit.records.events import Cause
from eirkit.records.runs import CAUSES
from eirkit.seeds import words


@dataclass(frozen=True, slots=True)
class NoCascade:
    """The accuracy of an agent that errs exactly at the steps with a missing input, and whose errors stay local."""

    of_all: float  # 1 − steps with a miss / n
    of_consuming: float  # 1 − steps with a miss / steps with references


def no_cascade(missed_steps: float, n: int, consuming_steps: int) -> NoCascade:
    """Return the accuracy that independent misses alone would leave."""
    return NoCascade(1 - missed_steps / max(1, n), 1 - missed_steps / max(1, consuming_steps))


def store_recall_accuracy(miss_per_recall: float) -> float:
    """Return 0.5 + 0.5 · (1 − misses per RECALL): STOREs are right, a missed RECALL is wrong, guesses never succeed."""
    return 0.5 + 0.5 * (1 - miss_per_recall)


@dataclass(frozen=True, slots=True)
class Residuals:
    """Observed − predicted, cell by cell."""

    values: tuple[float, ...]
    mean: float
    mean_absolute: float


def residuals(observed: Sequence[float], predicted: Sequence[float]) -> Residuals:
    """Return the paired residuals of a prediction and their mean absolute error."""
    found = tuple(o - p for o, p in zip(observed, predicted, strict=True))
    size = max(1, len(found))
    return Residuals(found, math.fsum(found) / size, math.fsum(map(abs, found)) / size)


@dataclass(frozen=True, slots=True)
class StepProfile:
    """Errors, misses and causes at one step over many trials."""

    t: int
    trials: int
    wrong: int
    missed: int  # trials with a direct miss at t
    causes: dict[Cause, int]

    @property
    def excess(self) -> float:
        """P(wrong) − P(missed): positive where errors spread beyond direct misses."""
        return (self.wrong - self.missed) / max(1, self.trials)


def decompose(trials: Sequence[Sequence[Verdict]]) -> tuple[StepProfile, ...]:
    """Return, for each step, how many trials were wrong there, how many missed, and why those were wrong."""
    profiles = []
    for verdicts in zip(*trials, strict=True):
        causes = Counter(verdict.cause for verdict in verdicts if verdict.cause is not None)
        wrong, missed = sum(not v.correct for v in verdicts), sum(v.missed for v in verdicts)
        profiles.append(
            StepProfile(verdicts[0].t, len(verdicts), wrong, missed, {cause: causes[cause] for cause in CAUSES})
        )
    return tuple(profiles)


@dataclass(frozen=True, slots=True)
class PressureRun:
    """Length, pressure and accuracy of one run."""

    n: int
    pressure: float  # m / h
    accuracy: float


def pressure_correlation(trials: Sequence[PressureRun]) -> TestResult:
    """Return Spearman's correlation of pressure with accuracy over trials; the prediction is that it is negative."""
    return spearman([trial.pressure for trial in trials], [trial.accuracy for trial in trials])


@dataclass(frozen=True, slots=True)
class EqualPressure:
    """Two lengths at one pressure: the prediction is that they agree."""

    pressure: float
    lengths: tuple[int, int]
    difference: TestResult  # mean accuracy of the first length − of the second


def equal_pressure_cells(trials: Iterable[PressureRun]) -> tuple[EqualPressure, ...]:
    """Return a permutation test for every pair of neighboring lengths that share a pressure."""
    cells: dict[float, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for trial in trials:
        cells[trial.pressure][trial.n].append(trial.accuracy)
    found = []
    for pressure, by_length in sorted(cells.items()):
        lengths = sorted(by_length)
        for short, long in pairwise(lengths):
            test = permuted_difference(by_length[short], by_length[long])
            found.append(EqualPressure(pressure, (short, long), test))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Recovery:
    """One recovery: the size of its cone, the pressure, and the reads it took."""

    cone: int  # minimal reads
    pressure: float
    reads: int


def reads_given_cone(recoveries: Sequence[Recovery]) -> TestResult:
    """Return the test that reads do not depend on pressure among recoveries with equal cones.

    `estimate` is the slope of reads on pressure within cones of one size; pressures are permuted inside those strata.
    `n` counts the recoveries in strata in which the pressure varies; 0 of them leave nothing to test, and p is 1.
    """
    strata: dict[int, list[Recovery]] = defaultdict(list)
    for recovery in recoveries:
        strata[recovery.cone].append(recovery)
    informative = [group for group in strata.values() if len({item.pressure for item in group}) > 1]
    n = sum(map(len, informative))
    if n == 0:
        return TestResult(0.0, 1.0, 0, "exact")
    products, spread = np.zeros(DRAWS + 1), 0.0  # row 0: the observed order
    for position, group in enumerate(informative):
        pressure = np.array([item.pressure for item in group])
        reads = np.array([float(item.reads) for item in group])
        pressure, reads = pressure - pressure.mean(), reads - reads.mean()
        drawn = words([0], DRAWS * len(group), "reads given cone", position).reshape(DRAWS, len(group))
        orders = np.concatenate([np.arange(len(group))[None, :], np.argsort(drawn, axis=1)])
        products += pressure[orders] @ reads
        spread += float(pressure @ pressure)
    extreme = int((np.abs(products[1:]) >= abs(products[0]) - ROUNDING).sum())
    return TestResult(float(products[0]) / spread, (1 + extreme) / (1 + DRAWS), n, "sampled")
