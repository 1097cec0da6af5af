"""What the studies of memory systems share: one agent over tasks with an external memory, or with none."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eirkit.agents.driver import drive, wait_for
from eirkit.agents.memory import MemorySystem
from eirkit.agents.model import close_model
from eirkit.agents.stores.memory_factory import reason_absent
from eirkit.agents.stores.pool import Memories
from eirkit.errors import InfrastructureError
from eirkit.findings.causes import RunScore, judge, score
from eirkit.findings.fates import look_up, memory_record
from eirkit.paper.studies.agents import Who, reference
from eirkit.runs.cells import Access
from eirkit.runs.sessions import make_session
from eirkit.tasks.generation import generate_many, prepare
from eirkit.tasks.task import TaskInstance, TaskSpec

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


def run_memories(cells: Sequence[Cell], seeds: Sequence[int], who: Who | None = None) -> list[list[MemoryRun]]:
    """Return the runs of each cell; a run that a memory system broke is left out, so that it is never a zero.

    Args:
        who: the recoverer unless given, which writes every answer and searches for what is missing.
    """
    return wait_for(_run(cells, seeds, who or reference("recoverer")))


async def _run(cells: Sequence[Cell], seeds: Sequence[int], who: Who) -> list[list[MemoryRun]]:
    memories, found = Memories(), []
    try:
        for spec, access in cells:
            tasks = generate_many(spec, seeds)
            tried = [await _run_one(task, access, memories, who) for task in tasks]
            found.append([run for run in tried if run is not None])
    finally:
        await memories.close()
    return found


async def _run_one(task: TaskInstance, access: Access, memories: Memories, who: Who) -> MemoryRun | None:
    plan = access.memory_plan
    if plan is None:
        return await _drive(task, access, None, who)
    try:
        async with memories.scope(plan, f"study-{task.spec.seed}", task) as memory:
            return await _drive(task, access, memory, who)
    except InfrastructureError as error:
        print(f"not scored: {access.memory}, {task.spec.workload}: {error}", file=sys.stderr)
        return None


async def _drive(task: TaskInstance, access: Access, memory: MemorySystem | None, who: Who) -> MemoryRun:
    workload = prepare(task.spec)
    model = who.make()
    try:
        trace = await drive(make_session(access, task, workload), model, memory)
    finally:
        await close_model(model)
    decisions = trace.decisions
    verdicts = judge(task, workload, decisions, trace.actions)
    scored = score(verdicts, decisions, max_turn=trace.ending == "action-limit")
    if memory is None:
        return MemoryRun(task.spec.seed, scored, {})
    lookups = look_up(decisions, verdicts, trace.consultations)
    return MemoryRun(task.spec.seed, scored, memory_record(await memory.usage(), trace.consultations, lookups))


def how_to_get(memory: str) -> str | None:
    """Return what stands in place of a figure where a system is not there; None if it is."""
    if (why := reason_absent(memory)) is None:
        return None
    return f"not installed: eirkit doctor --install {memory}" if "doctor --install" in why else why
