"""Executes queued runs, in order, concurrently or on an engine; stops early at the cap or after failures in a row.

Workers do not write; the parent stores their runs, so that the records equal those of a sweep in one process, in
another order. Paid models stay in one process, where every call is checked against the budget first.

A queue stops early if the spend cap is reached or many runs fail in a row; the remaining runs are done on resume.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import sha256
from multiprocessing import parent_process
from typing import Any

from msgspec import structs

from eirkit.engine.interface import Engine, LostPiece
from eirkit.errors import SpendCapReached
from eirkit.lacuna.agents.prompt import renderer_of
from eirkit.lacuna.agents.reference import Reference
from eirkit.lacuna.memories.calls import wait_for
from eirkit.lacuna.memories.plan import MemoryPool, ModelMaker
from eirkit.lacuna.models.factory import make_model, split_model
from eirkit.lacuna.models.ledger import RunAccount
from eirkit.lacuna.models.model import Batching, Model, close_model
from eirkit.lacuna.models.scrubber import Scrubber
from eirkit.lacuna.runs.attempt import CellContext, attempt
from eirkit.lacuna.runs.budget import FREE, Budget, asks_paid_model
from eirkit.lacuna.runs.cells import Cell
from eirkit.lacuna.runs.estimate import DEARER_TIMES, SLACK, estimate_run
from eirkit.lacuna.runs.family import Unrecovered, family_of
from eirkit.lacuna.runs.ingestion import Ingestion
from eirkit.lacuna.runs.manifest import SystemMessages
from eirkit.lacuna.runs.store import RunStore
from eirkit.lacuna.tasks.generation import generate_many
from eirkit.lacuna.tasks.task import GeneratedTask
from eirkit.records.database import FinishedRun
from eirkit.records.money import NOTHING, exact_usd
from eirkit.records.runs import Failure, RunRecord, RunUsage

SHARES = {"reference": 64, "bundled": 64, "local": 4}  # runs of a piece; a local model is loaded once for each


@dataclass(frozen=True, slots=True)
class CellBatch:
    """A batch of runs of one cell."""

    cell: Cell
    seeds: Sequence[int]
    texts: bool
    unrecovered: Mapping[int, Unrecovered] = field(
        default_factory=dict
    )  # by seed, for a cell that depends on the runs of another
    others: Sequence[CellBatch] = ()  # of cells that differ from this one only in their budget


def is_free(cell: Cell) -> bool:
    """True if neither the agent nor its memory system costs money."""
    return split_model(cell.model)[0] in FREE and not asks_paid_model(cell)


def cell_context_of(work: CellBatch, model: Model, rules: SystemMessages, scrub: Scrubber) -> CellContext:
    """Return the context of the runs of a cell."""
    cell = work.cell
    return CellContext(
        cell=cell,
        family=family_of(cell.task),
        model=model,
        rules_sha256=sha256(rules.of(cell, work.seeds[0]).encode()).hexdigest(),
        texts=work.texts,
        scrub=scrub,
        unrecovered=work.unrecovered,
        renderer=renderer_of(cell.model, cell.options),
    )


CellRuns = tuple[CellContext, Sequence[int]]  # runs of a cell


@dataclass(frozen=True, slots=True)
class TaskRuns:
    """Runs of one task, of cells that differ only in their budget; mostly there is one."""

    task: GeneratedTask
    contexts: Sequence[CellContext]

    def ingestion(self) -> Ingestion | None:
        """Return what its runs share, if they can."""
        shares = len(self.contexts) > 1 and self.contexts[0].family.ingests_first(self.task)
        return Ingestion() if shares else None


def runs_of(cells: Sequence[CellRuns]) -> Iterator[TaskRuns]:
    """Yield the runs of some cells that differ only in their budget, task by task."""
    (first, seeds), *others = cells
    if not others:
        for task in generate_many(first.cell.task, seeds):
            yield TaskRuns(task, (first,))
        return
    every = dict.fromkeys(seed for _, seeds in cells for seed in seeds)
    wanted = [(context, frozenset(seeds)) for context, seeds in cells]
    for task in generate_many(first.cell.task, list(every)):
        yield TaskRuns(task, [context for context, seeds in wanted if task.spec.seed in seeds])


def split_batches(work: Iterable[CellBatch]) -> Iterator[CellBatch]:
    """Yield batches small enough for a worker."""
    for share in work:
        cell = share.cell
        if share.others:
            yield from _by_seed((replace(share, others=()), *share.others))
            continue
        size = SHARES.get(split_model(cell.model)[0], 1) if cell.access.memory is None else 1
        for start in range(0, len(share.seeds), size):
            yield replace(share, seeds=share.seeds[start : start + size])


def _by_seed(batches: Sequence[CellBatch]) -> Iterator[CellBatch]:
    """Yield a batch for each seed, with the other cells that have it."""
    for seed in dict.fromkeys(seed for batch in batches for seed in batch.seeds):
        first, *others = (replace(batch, seeds=[seed]) for batch in batches if seed in batch.seeds)
        yield replace(first, others=others)


def run_batch(share: CellBatch) -> list[FinishedRun | Failure]:
    """Run a batch; defined at module level for the workers."""
    return wait_for(_perform(share))


_memories = MemoryPool()  # of this worker: starting a process for each batch would take longer than its runs


async def _perform(share: CellBatch) -> list[FinishedRun | Failure]:
    model = make_model(share.cell.model, share.cell.options)
    rules, scrub = SystemMessages(), Scrubber.of_environment(os.environ)
    cells = [(cell_context_of(one, model, rules, scrub), one.seeds) for one in (share, *share.others)]
    try:
        units = map(_attempts, runs_of(cells))
        done = await asyncio.gather(*units) if isinstance(model, Batching) else [await unit for unit in units]
        return [outcome for outcomes in done for outcome in outcomes]
    finally:
        # A worker of Ray may outlive the sweep, and must not keep anything open.
        await _memories.close(keep_processes=parent_process() is not None)
        await close_model(model)


async def _attempts(unit: TaskRuns) -> list[FinishedRun | Failure]:
    ingestion = unit.ingestion()
    return [await attempt(context, unit.task, _memories, ingestion) for context in unit.contexts]


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
            lost = [(one.cell, seed) for one in (share, *share.others) for seed in one.seeds]
            yield [_lost(cell, seed, f"one of {len(lost)} runs in a batch {outcome.reason}") for cell, seed in lost]
        else:
            yield outcome.value


def _lost(cell: Cell, seed: int, reason: str) -> Failure:
    return Failure(
        run=cell.run_id(seed),
        cell=cell.id,
        seed=seed,
        workload=cell.task.workload,
        model=cell.model,
        condition=cell.access.memory or cell.access.condition,
        kind="worker",
        message=reason,
        steps=0,
        usage=RunUsage(),
    )


BATCH = 16  # runs of reference agents stored together: about 50 ms of work
LONGEST_UNSTORED = 0.25  # seconds; with a memory system one run can take minutes, which an interrupt must not cost
FAILURES_IN_A_ROW = 16  # failures in a row after which a model is skipped

Report = Callable[[Sequence[RunRecord | Failure]], None]  # receives the runs that ended, scored or not


class RunQueue:
    """The pending runs of one model.

    Args:
        work: the remaining cells with their remaining seeds; those that differ only in their budget together.
        report: called with every run once it is stored.
        make: makes the models of memory systems that call one.
        admission: lets runs start and keeps their accounts.
    """

    def __init__(
        self,
        name: str,
        work: Iterable[Sequence[CellRuns]],
        store: RunStore,
        report: Report,
        make: ModelMaker = make_model,
        admission: Admission | None = None,
    ) -> None:
        self.name, self.work, self.store, self.report, self.make = name, work, store, report, make
        self.admission = admission or Admission(Budget())
        self.stopped: str | None = None  # why runs were left out
        self.cap: SpendCapReached | None = None  # set if the spend cap is the reason
        self.skipped: list[str] = []  # cells whose memory system kept failing
        self._failures_in_a_row = 0  # for other reasons than a memory
        self._failing: Counter[str] = Counter()  # failures of a memory in a row, by cell
        self._stream = self._tasks()

    async def run_in_order(self) -> None:
        """Run everything in order, storing several runs at a time."""
        memories, finished, stored = MemoryPool(self.make), [], time.monotonic()
        try:
            for unit in self._stream:
                ingestion = unit.ingestion()
                for context in unit.contexts:
                    outcome = await self._attempt(context, unit.task, memories, ingestion)
                    if isinstance(outcome, FinishedRun):
                        finished.append(outcome)
                    if len(finished) >= BATCH or time.monotonic() - stored >= LONGEST_UNSTORED:
                        ready, finished = finished, []  # cleared before writing: an error cannot store them twice
                        self._commit(ready, durable=False)
                        stored = time.monotonic()
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
            for unit in self._stream:
                ingestion = unit.ingestion()
                for context in unit.contexts:
                    outcome = await self._attempt(context, unit.task, memories, ingestion)
                    if isinstance(outcome, FinishedRun):
                        self._commit([outcome], durable=True)
        finally:
            await memories.close()

    def _tasks(self) -> Iterator[TaskRuns]:
        for cells in self.work:
            for unit in runs_of(cells):
                if self.stopped is not None:
                    return
                if self.skipped and all(context.cell.id in self.skipped for context, _ in cells):
                    break
                yield unit

    async def _attempt(
        self, context: CellContext, task: GeneratedTask, memories: MemoryPool, ingestion: Ingestion | None
    ) -> FinishedRun | None:
        if self.stopped is not None or context.cell.id in self.skipped:  # since the first run of the task
            return None
        is_repeated = ingestion is not None and ingestion.error is not None  # it fails as a run before it did
        try:
            outcome = await self._paid(context, task, memories, ingestion)
        except SpendCapReached as reached:
            self.stopped, self.cap = str(reached), reached
            return None
        if isinstance(outcome, Failure):
            self._fail(context, outcome, is_repeated=is_repeated)
        if not isinstance(outcome, FinishedRun):
            return None
        self._failures_in_a_row = 0
        self._failing.pop(context.cell.id, None)
        return outcome

    async def _paid(
        self, context: CellContext, task: GeneratedTask, memories: MemoryPool, ingestion: Ingestion | None
    ) -> FinishedRun | Failure | None:
        """Attempt a run on its own account; its record names the attempt if the journal does."""
        if isinstance(context.model, Reference) and context.cell.memory_plan is None:
            return await attempt(context, task, memories)  # nobody is paid
        async with self.admission.admit(context, task.spec.seed) as account:
            if self.stopped is not None:  # while it waited
                return None
            outcome = await attempt(context, task, memories, ingestion)
        if isinstance(outcome, FinishedRun):
            self.admission.learn(context.cell, account)
        if not account.is_written:
            return outcome
        if isinstance(outcome, Failure):
            return structs.replace(outcome, usage=structs.replace(outcome.usage, attempt=account.attempt))
        usage = structs.replace(outcome.record.usage, attempt=account.attempt)
        return structs.replace(outcome, record=structs.replace(outcome.record, usage=usage))

    def _fail(self, context: CellContext, failure: Failure, *, is_repeated: bool) -> None:
        self.store.fail(failure)
        cell = context.cell.id
        if failure.kind == "memory":
            self._failing[cell] += 1
            if self._failing[cell] == FAILURES_IN_A_ROW:
                self.skipped.append(cell)  # only this cell, because others have other memory systems or none
            self.report([failure])
            return
        self._failures_in_a_row += not is_repeated
        if self._failures_in_a_row >= FAILURES_IN_A_ROW:
            self.stopped = (
                f"{self.name}: {FAILURES_IN_A_ROW} runs in a row failed ({failure.kind}), so the rest was skipped; "
                "fix the cause and resume"
            )
        self.report([failure])

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


@dataclass(frozen=True, slots=True)
class _Bound:
    """What a run may need."""

    run_usd: Decimal = NOTHING
    call_usd: Decimal = NOTHING
    expected_usd: Decimal = NOTHING  # of the run, as `--dry-run` estimates it
    is_known: bool = False


@dataclass(frozen=True, slots=True)
class _Range:
    """The cheapest and the dearest finished run, as shares of their bounds; in dollars where there is no bound."""

    least: Decimal
    most: Decimal


@dataclass(frozen=True, slots=True)
class PaidRuns:
    """What was paid for runs in earlier parts of a sweep."""

    dearest: Mapping[str, Decimal]  # finished run of each cell
    begun: Mapping[str, Decimal]  # for replies that a run which was cut short goes on with


class Admission:
    """Admits the runs of a plan to the ledger of its budget: when those before them keep enough to finish.

    None begins that is not likely to finish: what the cap leaves must pay for the dearest finished run of its cell,
    less what was paid for it before it was cut short. Where none of its cell has finished, it must pay for what the
    others of its model say of it, or else for what `--dry-run` estimates.

    What a run may need is bounded by simulating it with a reference agent: every byte a token, every reply as long as
    allowed. Once runs of the same model have finished, four times the dearest of them is enough. If a memory system has
    a model of its own, its calls cannot be foreseen, so the first such run has the rest of the cap to itself.
    """

    def __init__(self, budget: Budget, paid: PaidRuns | None = None) -> None:
        self.budget = budget
        paid = paid or PaidRuns({}, {})
        self._dearest, self._begun = dict(paid.dearest), paid.begun
        self._bounds: dict[str, _Bound] = {}  # by cell
        self._seen: dict[tuple[str, str | None], _Range] = {}  # by model and memory system

    @asynccontextmanager
    async def admit(self, context: CellContext, seed: int) -> AsyncIterator[RunAccount]:
        """Wait until a run may start, and keep its account while it runs.

        Raises:
            SpendCapReached: what is left would not pay for the run, as far as that can be told.
        """
        cell, ledger = context.cell, self.budget.ledger
        reserve = None if ledger.cap_usd is None else lambda: self._reserve_usd(context, seed)
        async with ledger.admit(cell.run_id(seed), reserve) as account:
            need = NOTHING if reserve is None else self._need_usd(context, seed)
            if need and ledger.left_usd() < need:
                raise ledger.reached("run needs about", need)
            yield account

    def learn(self, cell: Cell, account: RunAccount) -> None:
        """Take note of what a finished run has cost."""
        bound = self._bounds.get(cell.id)
        if bound is None:
            return
        self._dearest[cell.id] = max(self._dearest.get(cell.id, NOTHING), account.spent_usd)
        cost = account.spent_usd / bound.run_usd if bound.is_known else account.spent_usd
        seen = self._seen.get(_model_and_memory(cell), _Range(cost, cost))
        self._seen[_model_and_memory(cell)] = _Range(min(seen.least, cost), max(seen.most, cost))

    def _reserve_usd(self, context: CellContext, seed: int) -> Decimal:
        bound, seen = self._bound(context, seed), self._seen.get(_model_and_memory(context.cell))
        if not bound.is_known:
            return NOTHING if seen is None else DEARER_TIMES * seen.most
        most = bound.run_usd * self.budget.ledger.spending.calls_per_reply
        return most if seen is None else min(most, DEARER_TIMES * seen.most * bound.run_usd + 2 * bound.call_usd)

    def _need_usd(self, context: CellContext, seed: int) -> Decimal:
        cell = context.cell
        need = self._dearest.get(cell.id)
        if need is None:
            bound, seen = self._bound(context, seed), self._seen.get(_model_and_memory(cell))
            need = bound.expected_usd if seen is None else seen.most * (bound.run_usd if bound.is_known else 1)
        return max(NOTHING, need * SLACK - self._begun.get(cell.run_id(seed), NOTHING))

    def _bound(self, context: CellContext, seed: int) -> _Bound:
        cell = context.cell
        if (known := self._bounds.get(cell.id)) is not None:
            return known
        price = self.budget.price_of(cell.model, cell.options)
        expected = estimate_run(cell, seed, context.unrecovered.get(seed), price)
        bound = _Bound()
        if expected.most_usd and not asks_paid_model(cell):
            most = exact_usd(expected.most_usd)
            usd = exact_usd(expected.cost_usd or 0)
            bound = _Bound(most, most / max(1, expected.calls), usd, is_known=True)
        self._bounds[cell.id] = bound
        return bound


def _model_and_memory(cell: Cell) -> tuple[str, str | None]:
    return cell.model, cell.access.memory
