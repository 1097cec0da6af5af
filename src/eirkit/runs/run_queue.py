"""Executes the queued runs of one model, in order or concurrently, and stores each result.

A queue stops early if the spend cap is reached or many runs fail in a row; the remaining runs are done on resume.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any

from eirkit.agents.stores.memory_factory import ModelMaker, make_free_model
from eirkit.agents.stores.memory_pool import MemoryPool
from eirkit.errors import SpendCapReached
from eirkit.runs.attempt import CellContext, Failure, attempt
from eirkit.runs.store import FinishedRun, RunStore
from eirkit.tasks.generation import generate_many
from eirkit.tasks.task import TaskInstance

BATCH = 16  # runs of reference agents stored together: about 50 ms of work
FAILURES_IN_A_ROW = 16  # failures in a row after which a model is skipped

Work = tuple[CellContext, TaskInstance]


Report = Callable[[Sequence[Mapping[str, Any]]], None]  # receives the records of runs that ended, scored or not


class RunQueue:
    """The pending runs of one model.

    Args:
        work: the remaining cells with their remaining seeds.
        report: called with every run once it is stored.
        make: makes the models of memory systems that call one.
    """

    def __init__(
        self,
        name: str,
        work: Iterable[tuple[CellContext, Sequence[int]]],
        store: RunStore,
        report: Report,
        make: ModelMaker = make_free_model,
    ) -> None:
        self.name, self.work, self.store, self.report, self.make = name, work, store, report, make
        self.stopped: str | None = None  # why runs were left out
        self.cap: SpendCapReached | None = None  # set if the spend cap is the reason
        self.skipped: list[str] = []  # cells whose memory system kept failing
        self._failures_in_a_row = 0
        self._stream = self._tasks()

    async def run_in_order(self) -> None:
        """Run everything in order, storing several runs at a time."""
        memories, finished = MemoryPool(self.make), []
        try:
            for context, task in self._stream:
                outcome = await self._attempt(context, task, memories)
                if isinstance(outcome, FinishedRun):
                    finished.append(outcome)
                if len(finished) >= BATCH:
                    ready, finished = finished, []  # cleared before writing, so that an error cannot store them twice
                    self._commit(ready, durable=False)
                    await asyncio.sleep(0)  # the only moment at which an interrupt can arrive
        finally:
            self._commit(finished, durable=False)
            await memories.close()

    async def run_at_once(self, workers: int) -> None:
        """Run with this many workers; each run is stored as soon as it ends."""
        await run_concurrently([self._worker() for _ in range(workers)])

    async def _worker(self) -> None:
        memories = MemoryPool(self.make)
        try:
            for context, task in self._stream:
                outcome = await self._attempt(context, task, memories)
                if isinstance(outcome, FinishedRun):
                    self._commit([outcome], durable=True)
        finally:
            await memories.close()

    def _tasks(self) -> Iterator[Work]:
        for context, seeds in self.work:
            for task in generate_many(context.cell.task, seeds):
                if self.stopped is not None:
                    return
                if context.cell.id in self.skipped:
                    break
                yield context, task

    async def _attempt(self, context: CellContext, task: TaskInstance, memories: MemoryPool) -> FinishedRun | None:
        try:
            outcome = await attempt(context, task, memories)
        except SpendCapReached as reached:
            self.stopped, self.cap = str(reached), reached
            return None
        if isinstance(outcome, Failure):
            self._fail(context, outcome)
            return None
        self._failures_in_a_row = 0
        return outcome

    def _fail(self, context: CellContext, failure: Failure) -> None:
        self.store.fail(failure.record)
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= FAILURES_IN_A_ROW and failure.kind == "memory":
            self.skipped.append(context.cell.id)  # only this cell, because others have other memory systems or none
            self._failures_in_a_row = 0
        elif self._failures_in_a_row >= FAILURES_IN_A_ROW:
            self.stopped = (
                f"{self.name}: {FAILURES_IN_A_ROW} runs in a row failed ({failure.kind}), so the rest was skipped; "
                "see failures.jsonl, fix the cause and resume"
            )
        self.report([failure.record])

    def _commit(self, finished: list[FinishedRun], *, durable: bool) -> None:
        if not finished:
            return
        self.store.commit(finished, durable=durable)
        self.report([run.record for run in finished])


async def run_concurrently(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Await all; if one fails, the others are cancelled and its error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as several:
        raise several.exceptions[
            0
        ] from None  # several workers may fail for the same reason, such as a full disk; raise one error
