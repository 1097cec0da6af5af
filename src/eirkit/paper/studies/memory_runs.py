"""What the studies of memory systems share: one agent over tasks with an external memory, or with none."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eirkit.agents.stores.memory_factory import reason_absent
from eirkit.findings.causes import RunScore, read_score
from eirkit.paper.studies.agents import Who, reference, study_plan
from eirkit.runs.cells import Access
from eirkit.runs.runner import running
from eirkit.tasks.task import TaskSpec

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
    who = who or reference("recoverer")
    planned = [(who.cell(spec, access), seeds) for spec, access in cells]
    with running(who.runner) as runner:
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
    """Return what stands in place of a figure where a system is not there; None if it is."""
    if (why := reason_absent(memory)) is None:
        return None
    return f"not installed: eirkit doctor --install {memory}" if "doctor --install" in why else why
