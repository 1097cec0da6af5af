"""The runs of one model, one after the other or a few at a time: cells come in, finished runs go to the store.

A lane ends early where the spend cap is reached or where the world keeps failing; what it left out is done on resume.
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

BATCH = 16  # runs of reference agents written together: about a twentieth of a second of work
FAILURES_IN_A_ROW = 16  # after so many a model is left alone

Work = tuple[CellContext, TaskInstance]


Report = Callable[[Sequence[Mapping[str, Any]]], None]  # is told the records of runs that ended, scored or not


class RunQueue:
    """The runs of one model.

    Args:
        work: the cells that are left, each with its seeds that are left.
        report: told about every run once it is written.
        make: makes the models of memory systems that ask one themselves.
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
        self.cap: SpendCapReached | None = None  # where that is why
        self.skipped: list[str] = []  # cells whose memory system kept failing
        self._failures_in_a_row = 0
        self._stream = self._tasks()

    async def in_order(self) -> None:
        """Run everything one after the other; several runs are written together."""
        memories, finished = MemoryPool(self.make), []
        try:
            for stage, task in self._stream:
                outcome = await self._attempt(stage, task, memories)
                if isinstance(outcome, FinishedRun):
                    finished.append(outcome)
                if len(finished) >= BATCH:
                    ready, finished = finished, []  # before writing: whatever is raised then, it is not written twice
                    self._commit(ready, durable=False)
                    await asyncio.sleep(0)  # the only moment at which an interrupt can arrive
        finally:
            self._commit(finished, durable=False)
            await memories.close()

    async def at_once(self, workers: int) -> None:
        """Run as many at a time as there are workers; each run is written as soon as it ends."""
        await run_concurrently([self._worker() for _ in range(workers)])

    async def _worker(self) -> None:
        memories = MemoryPool(self.make)
        try:
            for stage, task in self._stream:
                outcome = await self._attempt(stage, task, memories)
                if isinstance(outcome, FinishedRun):
                    self._commit([outcome], durable=True)
        finally:
            await memories.close()

    def _tasks(self) -> Iterator[Work]:
        for stage, seeds in self.work:
            for task in generate_many(stage.cell.task, seeds):
                if self.stopped is not None:
                    return
                if stage.cell.id in self.skipped:
                    break
                yield stage, task

    async def _attempt(self, stage: CellContext, task: TaskInstance, memories: MemoryPool) -> FinishedRun | None:
        try:
            outcome = await attempt(stage, task, memories)
        except SpendCapReached as reached:
            self.stopped, self.cap = str(reached), reached
            return None
        if isinstance(outcome, Failure):
            self._fail(stage, outcome)
            return None
        self._failures_in_a_row = 0
        return outcome

    def _fail(self, stage: CellContext, failure: Failure) -> None:
        self.store.fail(failure.record)
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= FAILURES_IN_A_ROW and failure.kind == "memory":
            self.skipped.append(stage.cell.id)  # other cells have other memory systems, or none
            self._failures_in_a_row = 0
        elif self._failures_in_a_row >= FAILURES_IN_A_ROW:
            self.stopped = (
                f"{self.name}: {FAILURES_IN_A_ROW} runs in a row failed ({failure.kind}), the rest was not tried; "
                "see failures.jsonl, put it right and resume"
            )
        self.report([failure.record])

    def _commit(self, finished: list[FinishedRun], *, durable: bool) -> None:
        if not finished:
            return
        self.store.commit(finished, durable=durable)
        self.report([run.record for run in finished])


async def run_concurrently(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for all; where one fails the others are cancelled and its error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None  # a full disk or wrong input is one error, however many met it
