"""What memories of C bits can reach on a task: the mean over its scored steps that refer to earlier ones.

A memory is judged as if it were told the right answer after each step. One that has to live with its own wrong answers
can only do worse, so the ceiling holds for both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from eirkit.eir.demand import StepBound
from eirkit.errors import SpecError
from eirkit.lacuna.tasks.generation import graph_of, prepare
from eirkit.lacuna.tasks.task import TaskInstance

PRECISION = 1e-6  # bits


@dataclass(frozen=True, slots=True)
class TaskPoint:
    """Right answers, as a share of the steps that refer to earlier ones."""

    bits: float
    upper: float  # no memory exceeds it
    exists: float  # some memory reaches it
    kept: float  # reached by keeping whole records, or the largest values of a chain


@dataclass(frozen=True, slots=True)
class TaskFrontier:
    """The bounds of all steps of a task that are scored and refer to earlier ones, equal ones counted."""

    steps: tuple[tuple[StepBound, int], ...]
    free: int  # scored steps that refer to nothing, and can be right without memory
    record_bits: float
    records: int  # so many, kept whole, are always enough
    builds_on_answers: bool = False  # True if answers that are referred to depend on earlier ones

    @property
    def asking(self) -> int:
        return sum(count for _, count in self.steps)

    @property
    def method(self) -> str:
        """How the ceiling is found, in words."""
        return "; ".join(dict.fromkeys(step.how for step, _ in self.steps))

    @property
    def enough_bits(self) -> float:
        return self.records * self.record_bits

    def point(self, bits: float) -> TaskPoint:
        """Return what a memory of this many bits can reach."""
        upper = self._mean(lambda step: step.upper(bits))
        kept = self._mean(lambda step: step.kept(bits))
        exists = max(kept, self._mean(lambda step: step.exists(bits)))
        return TaskPoint(bits, upper, min(exists, upper), min(kept, upper))

    def bits_for(self, error: float) -> tuple[float, float]:
        """Return bits below which no memory is wrong so rarely, and bits that are enough for one that can be run."""
        if not 0 <= error < 1:
            raise SpecError(f"an error of {error} is no share; give at least 0 and less than 1")
        enough = 1 - error - 1e-9
        return self._least(lambda bits: self.point(bits).upper >= enough)[0], self._least(
            lambda bits: self.point(bits).kept >= enough
        )[1]

    def _mean(self, share: Callable[[StepBound], float]) -> float:
        return math.fsum(share(step) * count for step, count in self.steps) / self.asking

    def _least(self, reaches: Callable[[float], bool]) -> tuple[float, float]:
        low, high = 0.0, self.enough_bits
        if reaches(low):
            return low, low
        while high - low > PRECISION:
            middle = (low + high) / 2
            low, high = (low, middle) if reaches(middle) else (middle, high)
        return low, high


def frontier_of(*tasks: TaskInstance) -> TaskFrontier:
    """Return what memories can reach on a task, or in the mean over tasks that differ in their seeds.

    Inputs are uniform, and references are drawn as the workload says.
    """
    spec, workload = tasks[0].spec, prepare(tasks[0].spec)
    bounds = [bound for task in tasks for bound in list(workload.bounds(task.spec, graph_of(task)))[spec.warm_up :]]
    asking = Counter(bound for bound in bounds if bound is not None)
    if not asking:
        raise SpecError(f"no scored step of {spec.workload} refers to an earlier one; use a larger --n")
    record_bits = math.log2(workload.alphabet(spec))
    records = next(h for h in range(spec.n + 1) if all(step.kept(h * record_bits) >= 1 for step in asking))
    graphs = [graph_of(task) for task in tasks]
    builds = any(graph[r - 1] for graph in graphs for refs in graph for r in refs)
    return TaskFrontier(tuple(asking.items()), len(bounds) - asking.total(), record_bits, records, builds)
