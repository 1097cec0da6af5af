"""Runs free agents on the workers of an engine, in batches of runs of one cell.

Workers do not write; the parent stores their runs, so that the records equal those of a sweep in one process, in
another order. Paid models stay in one process, where every call is checked against the budget first.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from eirkit.agents.driver import wait_for
from eirkit.agents.model import Batching, Model, close_model
from eirkit.agents.serving.model_factory import make_model, renderer_of, split_model
from eirkit.agents.serving.scrubber import Scrubber
from eirkit.agents.stores.memory_factory import EXTRACTOR, MODEL
from eirkit.agents.stores.memory_pool import MemoryPool
from eirkit.engine.interface import Engine, LostPiece
from eirkit.runs.attempt import CellContext, Failure, attempt
from eirkit.runs.cells import Cell
from eirkit.runs.manifest import SystemMessages
from eirkit.runs.restoration import Unrecovered
from eirkit.runs.store import FinishedRun
from eirkit.tasks.generation import generate_many, prepare
from eirkit.tasks.simulation.plain import structure_of

FREE = ("reference", "scripted", "local", "bundled")  # providers whose models cost nothing
TOGETHER = ("reference", "bundled")  # providers whose runs are batched; others get one run per piece
SHARE = 64


@dataclass(frozen=True, slots=True)
class CellBatch:
    """A batch of runs of one cell."""

    cell: Cell
    seeds: Sequence[int]
    texts: bool
    unrecovered: Mapping[int, Unrecovered] = field(
        default_factory=dict
    )  # by seed, for a cell that depends on the runs of another


def is_free(cell: Cell) -> bool:
    """True if neither the agent nor its memory system costs money."""
    plan = cell.memory_plan
    asked = [cell.model] if plan is None else [cell.model, str(plan.settings.get(MODEL, EXTRACTOR))]
    return all(split_model(string)[0] in FREE for string in asked)


def cell_context_of(work: CellBatch, model: Model, rules: SystemMessages, scrub: Scrubber) -> CellContext:
    """Return the context of the runs of a cell."""
    cell = work.cell
    told = sha256(rules.of(cell, work.seeds[0]).encode()).hexdigest()
    facts = (told, work.texts, scrub, cell.as_json(), work.unrecovered, renderer_of(cell.model, cell.options))
    return CellContext(cell, prepare(cell.task), structure_of(cell.task), model, *facts)


def split_batches(work: Iterable[CellBatch]) -> Iterator[CellBatch]:
    """Yield batches small enough for a worker."""
    for share in work:
        cell = share.cell
        size = SHARE if split_model(cell.model)[0] in TOGETHER and cell.access.memory is None else 1
        for start in range(0, len(share.seeds), size):
            yield replace(share, seeds=share.seeds[start : start + size])


def run_batch(share: CellBatch) -> list[FinishedRun | Failure]:
    """Run a batch; defined at module level for the workers."""
    return wait_for(_perform(share))


async def _perform(share: CellBatch) -> list[FinishedRun | Failure]:
    model = make_model(share.cell.model, share.cell.options)
    context = cell_context_of(share, model, SystemMessages(), Scrubber.of_environment(os.environ))
    memories = MemoryPool()
    try:
        runs = (attempt(context, task, memories) for task in generate_many(share.cell.task, share.seeds))
        return await asyncio.gather(*runs) if isinstance(model, Batching) else [await run for run in runs]
    finally:
        await memories.close()
        await close_model(model)


def run_on_engine(engine: Engine, work: Iterable[CellBatch]) -> Iterator[list[FinishedRun | Failure]]:
    """Yield the outcomes of each batch; runs whose worker died are failures of kind `harness`."""
    given: list[CellBatch] = []

    def noted() -> Iterator[CellBatch]:
        for share in split_batches(work):
            given.append(share)
            yield share

    for outcome in engine.map(run_batch, noted()):
        if isinstance(outcome, LostPiece):
            share = given[outcome.number]
            yield [Failure(_lost(share, seed, outcome.reason)) for seed in share.seeds]
        else:
            yield outcome.value


def _lost(share: CellBatch, seed: int, reason: str) -> dict[str, Any]:
    cell = share.cell
    return {
        "run": cell.run_id(seed),
        "cell": cell.id,
        "seed": seed,
        "workload": cell.task.workload,
        "model": cell.model,
        "condition": cell.access.memory or cell.access.condition,
        "kind": "worker",
        "message": f"one of {len(share.seeds)} runs in a batch {reason}",
        "steps": 0,
        "usage": {},
    }
