"""Tables on which ours and other libraries must agree: pure functions of a name, so the reference numbers stay true."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from eirkit.seeds import words

_NORMAL = np.vectorize(NormalDist().inv_cdf, otypes=[float])


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of several models on tasks that differ in difficulty."""

    task: np.ndarray
    failed: np.ndarray
    demand: np.ndarray  # log2 tokens
    tokens: np.ndarray  # log2 tokens
    never: np.ndarray  # 0 or 1
    lines: np.ndarray  # one value per task
    model: np.ndarray  # 0, 1, 2

    @property
    def columns(self) -> dict[str, np.ndarray]:
        return {"demand": self.demand, "tokens": self.tokens, "model1": self.model == 1, "model2": self.model == 2}


@dataclass(frozen=True, slots=True)
class Cells:
    """Counts per run and bin of distance."""

    count: np.ndarray
    exposure: np.ndarray
    task: np.ndarray
    run: np.ndarray
    failed: np.ndarray
    distance: np.ndarray

    @property
    def columns(self) -> dict[str, np.ndarray]:
        return {"failed": self.failed, "distance": self.distance, "failed_distance": self.failed * self.distance}


def uniforms(count: int, *name: str | int) -> np.ndarray:
    """Return numbers in (0, 1) of the stream of that name."""
    return (words([7], count, "inference", *name)[0].astype(np.float64) + 0.5) / 2.0**64


def normals(count: int, *name: str | int) -> np.ndarray:
    return _NORMAL(uniforms(count, *name))


def runs(tasks: int = 60, per_task: int = 8, spread: float = 1.5) -> Runs:
    """Return runs whose failure depends on demand (0.3 a doubling), model and a task's own level."""
    n, task = tasks * per_task, np.repeat(np.arange(tasks), per_task)
    level, lines = spread * normals(tasks, "level"), 9 + 1.5 * normals(tasks, "lines")
    demand, tokens = 12 + 2 * normals(n, "demand"), 15 + normals(n, "tokens")
    model = (3 * uniforms(n, "model")).astype(int)
    never = (uniforms(n, "never") < 1 / (1 + np.exp(1 - 0.2 * (lines[task] - 9)))).astype(float)
    odds = -0.3 + level[task] + 0.3 * (demand - 12) + 0.4 * never + 0.2 * (lines[task] - 9) - 0.5 * (model == 2)
    failed = (uniforms(n, "failed") < 1 / (1 + np.exp(-odds))).astype(float)
    return Runs(task, failed, demand, tokens, never, lines[task], model)


def cells(tasks: int = 40, runs_per_task: int = 6, bins: int = 5) -> Cells:
    """Return counts whose rate falls with distance, by 0.1 a doubling more in failed runs; two tasks have none."""
    n = tasks * runs_per_task * bins
    run, distance = np.arange(n) // bins, np.arange(n) % bins
    task = run // runs_per_task
    failed = (uniforms(tasks * runs_per_task, "outcome") < 0.4)[run].astype(float)
    exposure = 1 + 5000 * uniforms(n, "exposure")
    rate = np.exp(0.7 * normals(tasks, "rate")[task] - 6.5 - 0.3 * distance - 0.1 * failed * distance)
    rate[task < 2] = 0
    return Cells(_poisson(rate * exposure, uniforms(n, "count")), exposure, task, run, failed, distance.astype(float))


def _poisson(mean: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return counts by inversion of the distribution function."""
    count, term = np.zeros(len(mean)), np.exp(-mean)
    below = term.copy()
    while (short := below < u).any():
        count += short
        term = term * mean / np.maximum(count, 1)
        below = np.where(short, below + term, below)
        if count.max() > 500:
            break
    return count
