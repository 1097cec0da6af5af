"""Compares policies over many seeds: one row of miss rates for each policy and capacity, and the measures in it.

Rates are means over seeds of the per-task rate. Memory does not grow with the number of seeds: tasks are drawn in
chunks, and only a tally of their counts is kept.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from eirkit.eir.demand import DemandCurve, pressure
from eirkit.errors import SpecError, UsageError
from eirkit.lacuna.tasks.generation import BATCH, needed_references, prepare
from eirkit.lacuna.tasks.policy import find_policy
from eirkit.lacuna.tasks.simulation.batch import Batch, Misses, count_misses
from eirkit.lacuna.tasks.simulation.plain import Recovery, first_failure, structure_of
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import OnlineBest, best_online
from eirkit.packages import hint_if_slow

FLOOR, CEILING = "fifo", "belady"  # the two ends of `gap_closed`
_CHUNK_REFERENCES = 1 << 22  # references drawn together
_LONGEST_DEMAND = 4096  # steps; beyond it EIR takes longer than the simulation


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One policy at one capacity."""

    workload: str
    policy: str
    h: int
    pressure: float  # m / h
    seeds: int  # how many
    miss_rate: float  # steps with a missing reference / steps with references
    miss_rate_sd: float  # over seeds, of the population
    reference_miss_rate: float  # missing references / references
    miss_regret: float  # missing references a task beyond Belady's
    gap_closed: float | None  # (FIFO − policy) / (FIFO − Belady) in miss rates; None where those two agree
    online_miss_rate: float | None  # the least of any policy that does not know the references; None if unknown
    online_retrievals: float | None  # the fewest missing references a task of any such policy
    hindsight: float | None  # (online − Belady) / (FIFO − Belady): what of the gap takes knowledge of the future
    eir_pressure: float | None  # largest EIR / capacity over the cuts; None where no closed form is certified

    hit_rate: float  # 1 − reference_miss_rate


@dataclass(slots=True)
class MissTally:
    """Exact counts of tasks by outcome; its size depends on the number of different outcomes only."""

    tasks: Counter[tuple[int, int]] = field(default_factory=Counter)  # (missed, possible) -> tasks

    def add(self, missed: NDArray[np.int64], possible: NDArray[np.int64]) -> None:
        pairs, counts = np.unique(np.stack((missed, possible), axis=1), axis=0, return_counts=True)
        for (few, many), count in zip(pairs.tolist(), counts.tolist(), strict=True):
            self.tasks[few, many] += count

    @property
    def mean(self) -> float:
        """The mean over tasks of missed / possible; 0 for a task in which nothing is possible."""
        return math.fsum(n * missed / max(1, possible) for (missed, possible), n in self.tasks.items()) / self.total

    @property
    def deviation(self) -> float:
        """The population standard deviation of that rate."""
        if len({missed / max(1, possible) for missed, possible in self.tasks}) <= 1:
            return 0.0  # a rounded mean would make the squares below nonzero
        center = self.mean
        squares = (n * (missed / max(1, possible) - center) ** 2 for (missed, possible), n in self.tasks.items())
        return math.sqrt(math.fsum(squares) / self.total)

    @property
    def mean_missed(self) -> float:
        return sum(n * missed for (missed, _), n in self.tasks.items()) / self.total

    @property
    def total(self) -> int:
        return self.tasks.total()


Cell = tuple[MissTally, MissTally]  # missed steps, missed references


@hint_if_slow()
def sweep(
    spec: TaskSpec,
    seeds: Sequence[int],
    names: Sequence[str],
    capacities: Sequence[int],
    *,
    recovery: Recovery = "off",
    advance: Callable[[int], object] = lambda tasks: None,
) -> tuple[PolicyRow, ...]:
    """Return a row for every capacity and policy; FIFO and Belady are simulated in any case, for comparison.

    Args:
        advance: called with the number of tasks after each chunk.
    """
    cells = {(name, h): (MissTally(), MissTally()) for name in (*names, FLOOR, CEILING) for h in capacities}
    distinct = list(dict.fromkeys(capacities))
    for batch in batches(spec, seeds):
        for name in dict.fromkeys(name for name, _ in cells):
            misses = count_misses(batch, find_policy(name), distinct, recovery=recovery)
            _add(cells, name, distinct, batch, misses)
        advance(len(batch.seeds))
    if not any(possible for steps, _ in cells.values() for _, possible in steps.tasks):
        raise SpecError(f"no step of {spec.workload} with n = {spec.n} refers to an earlier one; use a larger --n")
    demand = _demand(spec)
    record_bits = math.log2(prepare(spec).alphabet(spec))
    ratios = {h: None if demand is None else pressure(demand, h, record_bits).peak for h in distinct}
    best = {h: _best_online(spec, h, recovery) for h in distinct}
    return tuple(_row(spec, name, h, cells, ratios[h], best[h]) for h in distinct for name in dict.fromkeys(names))


def first_failures(
    spec: TaskSpec, seeds: Sequence[int], names: Sequence[str], *, recovery: Recovery = "off"
) -> dict[str, float | None]:
    """Return, by policy, the first pressure m/h over h = m, m − 2, … at which more than 5% of the steps miss."""
    grid = range(spec.m, 0, -2)
    rows = sweep(spec, seeds, names, grid, recovery=recovery)
    found = {}
    for name in names:
        mine = [row for row in rows if row.policy == name]
        found[name] = first_failure([row.pressure for row in mine], [row.miss_rate for row in mine])
    return found


def miss_rates(
    spec: TaskSpec, seeds: Sequence[int], name: str, capacities: Sequence[int], *, recovery: Recovery = "off"
) -> NDArray[np.float64]:
    """Return the miss rate of every task, shape (seeds, capacities)."""
    parts = []
    for batch in batches(spec, seeds):
        misses = count_misses(batch, find_policy(name), capacities, recovery=recovery)
        parts.append(misses.steps / np.maximum(1, batch.consuming_steps)[:, None])
    return np.concatenate(parts)


def batches(spec: TaskSpec, seeds: Sequence[int]) -> Iterator[Batch]:
    """Yield the request streams of all seeds, a bounded number at a time; no answer is computed."""
    workload, structure = prepare(spec), structure_of(spec)
    if not seeds:
        raise SpecError("no seeds are given; give at least one")
    size = min(BATCH, max(1, _CHUNK_REFERENCES // (spec.n * (spec.fan_in + 1))))
    for start in range(0, len(seeds), size):
        chosen = seeds[start : start + size]
        for seed in (min(chosen), max(chosen)):
            spec.with_seed(seed)  # raises SpecError for an invalid seed
        chunk = np.array(chosen, dtype=np.uint64)
        yield Batch.of(structure, chunk, needed_references(workload, spec, chunk))


def gap_closed(rate: float, floor: float, ceiling: float) -> float | None:
    """Return the share of the gap between FIFO and Belady that a policy closes; negative if it is worse than FIFO."""
    return None if floor == ceiling else (floor - rate) / (floor - ceiling)


def _add(
    cells: dict[tuple[str, int], Cell], name: str, capacities: Sequence[int], batch: Batch, misses: Misses
) -> None:
    for column, h in enumerate(capacities):
        steps, references = cells[name, h]
        steps.add(misses.steps[:, column], batch.consuming_steps)
        references.add(misses.references[:, column], batch.needed_references)


def _row(
    spec: TaskSpec,
    name: str,
    h: int,
    cells: dict[tuple[str, int], Cell],
    eir_pressure: float | None,
    best: OnlineBest | None,
) -> PolicyRow:
    steps, references = cells[name, h]
    floor, ceiling = cells[FLOOR, h][0].mean, cells[CEILING, h][0].mean
    return PolicyRow(
        workload=spec.workload,
        policy=name,
        h=h,
        pressure=spec.m / h,
        seeds=steps.total,
        miss_rate=steps.mean,
        miss_rate_sd=steps.deviation,
        reference_miss_rate=references.mean,
        hit_rate=1 - references.mean,
        miss_regret=references.mean_missed - cells[CEILING, h][1].mean_missed,
        gap_closed=gap_closed(steps.mean, floor, ceiling),
        online_miss_rate=None if best is None else best.miss_rate,
        online_retrievals=None if best is None else best.retrievals,
        hindsight=None if best is None else hindsight(floor, best.miss_rate, ceiling),
        eir_pressure=eir_pressure,
    )


def _best_online(spec: TaskSpec, h: int, recovery: Recovery) -> OnlineBest | None:
    """Return the bound on online policies; None where the workload does not say how it draws references."""
    if recovery == "off" and spec.queries == "zipf-shuffled":
        # What was dropped never returns, and it was dropped before any query told what is popular.
        spec = replace(spec, queries="uniform")
    try:
        return best_online(prepare(spec).draws(spec), h)
    except UsageError:
        return None


def _demand(spec: TaskSpec) -> DemandCurve | None:
    workload = prepare(spec)
    return workload.demand(spec, ()) if workload.closed_form and spec.n <= _LONGEST_DEMAND else None


def hindsight(fifo: float, online: float, belady: float) -> float | None:
    """Return the share of the gap between FIFO and Belady that takes knowledge of the future; None if there is no gap.

    FIFO and Belady are simulated, the bound is an expectation; what sampling puts outside 0 … 1 is cut off.
    """
    return None if fifo <= belady else min(1.0, max(0.0, (online - belady) / (fifo - belady)))
