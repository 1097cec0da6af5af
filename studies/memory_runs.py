"""What the studies of memory systems share: one agent over tasks with an external memory, or with none."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.errors import InfrastructureError
from eirkit.lacuna.conditions import make_session
from eirkit.lacuna.driver import drive, wait_for
from eirkit.lacuna.evidence.attribution import RunScore, judge, score
from eirkit.lacuna.evidence.lookups import look_up, memory_record
from eirkit.lacuna.generation import generate_many, prepare
from eirkit.lacuna.memory import MemorySystem
from eirkit.lacuna.model import ModelOptions
from eirkit.lacuna.models.reference import make_reference
from eirkit.lacuna.stores.making import reason_absent
from eirkit.lacuna.stores.pool import Memories
from eirkit.lacuna.sweeps.cells import Access
from eirkit.lacuna.task import TaskInstance, TaskSpec

AGENT = "recoverer"
MANY_ACTIONS = 10_000  # so that the memory is measured and not the limit of actions


@dataclass(frozen=True, slots=True)
class MemoryRun:
    """One run and what its memory did."""

    seed: int
    score: RunScore
    memory: Mapping[str, Any]  # as in a run record; empty without an external memory


Cell = tuple[TaskSpec, Access]


def external(memory: str, h: int, panel: str = "native", actions: int = MANY_ACTIONS, **settings: Any) -> Access:
    """Return the access to a memory system beside the last h records; in the strict panel it has h records alone."""
    return Access("external", None, memory, settings, panel, h=h, actions=actions)


def run_memories(cells: Sequence[Cell], seeds: Sequence[int], agent: str = AGENT) -> list[list[MemoryRun]]:
    """Return the runs of each cell; a run that a memory system broke is left out, so that it is never a zero."""
    return wait_for(_run(cells, seeds, agent))


async def _run(cells: Sequence[Cell], seeds: Sequence[int], agent: str) -> list[list[MemoryRun]]:
    memories, found = Memories(), []
    try:
        for spec, access in cells:
            tasks = generate_many(spec, seeds)
            tried = [await _run_one(task, access, memories, agent) for task in tasks]
            found.append([run for run in tried if run is not None])
    finally:
        await memories.close()
    return found


async def _run_one(task: TaskInstance, access: Access, memories: Memories, agent: str) -> MemoryRun | None:
    plan = access.memory_plan
    if plan is None:
        return await _drive(task, access, None, agent)
    try:
        async with memories.scope(plan, f"study-{task.spec.seed}", task) as memory:
            return await _drive(task, access, memory, agent)
    except InfrastructureError as error:
        print(f"not scored: {access.memory}, {task.spec.workload}: {error}", file=sys.stderr)
        return None


async def _drive(task: TaskInstance, access: Access, memory: MemorySystem | None, agent: str) -> MemoryRun:
    workload = prepare(task.spec)
    model = make_reference(agent, ModelOptions())
    trace = await drive(make_session(access, task, workload), model, memory)
    decisions = trace.decisions
    verdicts = judge(task, workload, decisions, trace.actions)
    scored = score(verdicts, decisions, max_turn=trace.ending == "action-limit")
    if memory is None:
        return MemoryRun(task.spec.seed, scored, {})
    lookups = look_up(decisions, verdicts, trace.consultations)
    return MemoryRun(task.spec.seed, scored, memory_record(await memory.usage(), trace.consultations, lookups))


def exact_share(part: int, whole: int, level: float = 0.95) -> tuple[float, float]:
    """Return the bounds of Clopper and Pearson for a share: how far it can lie from what was seen, by the binomial."""
    tail = (1 - level) / 2
    low = 0.0 if part == 0 else _where(lambda p: 1 - _at_most(part - 1, whole, p) - tail)
    high = 1.0 if part == whole else _where(lambda p: tail - _at_most(part, whole, p))
    return low, high


def _at_most(k: int, n: int, p: float) -> float:
    """Return the probability of at most k successes in n trials, 0 < p < 1."""
    i = np.arange(k + 1)
    return float(np.exp(_log_choices(n)[: k + 1] + i * math.log(p) + (n - i) * math.log1p(-p)).sum())


@cache
def _log_choices(n: int) -> NDArray[np.float64]:
    return np.array([math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(n + 1)])


def _where(rising: Callable[[float], float]) -> float:
    """Return where a function that rises over 0 … 1 is zero."""
    low, high = 0.0, 1.0
    for _ in range(60):  # to the last bit of a share
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return (low + high) / 2


def how_to_get(memory: str) -> str | None:
    """Return what stands in place of a figure where a system is not there; None if it is."""
    if (why := reason_absent(memory)) is None:
        return None
    return f"not installed: eirkit doctor --install {memory}" if "doctor --install" in why else why
