"""Runs one agent with external memory systems or without, for the studies of memory systems."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eirkit.agents.stores.memory_factory import reason_absent
from eirkit.findings.causes import RunScore, read_score
from eirkit.paper.studies.agents import StudyAgent, reference, study_plan
from eirkit.runs.cells import Access
from eirkit.runs.runner import runner_or_temporary
from eirkit.tasks.task import TaskSpec

MANY_ACTIONS = 10_000  # so that the action limit does not affect the results


@dataclass(frozen=True, slots=True)
class MemoryRun:
    """One run and the statistics of its memory."""

    seed: int
    score: RunScore
    memory: Mapping[str, Any]  # as in a run record; empty without an external memory


Cell = tuple[TaskSpec, Access]


def external(memory: str, h: int, panel: str = "native", actions: int = MANY_ACTIONS, **settings: Any) -> Access:
    """Return access to a memory system beside the last h records; in the strict panel it holds only h records."""
    return Access("external", None, memory, settings, panel, h=h, actions=actions)


def run_memories(cells: Sequence[Cell], seeds: Sequence[int], agent: StudyAgent | None = None) -> list[list[MemoryRun]]:
    """Return the runs of each cell, without failed runs, which must not count as zero.

    Args:
        agent: the recoverer unless given, which writes every answer and searches for what is missing.
    """
    agent = agent or reference("recoverer")
    planned = [(agent.cell(spec, access), seeds) for spec, access in cells]
    with runner_or_temporary(agent.runner) as runner:
        results = runner.complete(study_plan(*planned))
        for cell, own in planned:
            for why in results.losses([(cell, own)]).values():
                print(f"not scored: {cell.access.memory}, {cell.task.workload}: {why}", file=sys.stderr)
        records = [[(seed, results.record(cell, seed)) for seed in own] for cell, own in planned]
    return [
        [
            MemoryRun(seed, read_score(record["score"]), record.get("memory", {}))
            for seed, record in found
            if record is not None
        ]
        for found in records
    ]


def how_to_get(memory: str) -> str | None:
    """Return why a memory system cannot be run and how to install it; None if it can."""
    if (why := reason_absent(memory)) is None:
        return None
    return f"not installed: eirkit doctor --install {memory}" if "doctor --install" in why else why
