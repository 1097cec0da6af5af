"""Runs plans into a folder: skips finished runs, schedules the rest, stores each completely or not at all.

Reference agents answer immediately and run in the order of the plan. Other models have as many concurrent runs as
connections. Free models may run on the workers of an engine. Only this process writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

import msgspec

from eirkit.engine.interface import Engine
from eirkit.errors import InputFileError, SpendCapReached
from eirkit.lacuna.agents.telemetry import Trace, trace_of
from eirkit.lacuna.memories.calls import wait_for
from eirkit.lacuna.models.factory import protocol_of
from eirkit.lacuna.models.metered import Metered
from eirkit.lacuna.models.model import Model
from eirkit.lacuna.models.scrubber import Scrubber
from eirkit.lacuna.runs.attempt import cause_of
from eirkit.lacuna.runs.budget import Budget, ModelPool, is_scripted
from eirkit.lacuna.runs.cells import Cell, Planned, RunPlan, unrecovered_in
from eirkit.lacuna.runs.family import Unrecovered
from eirkit.lacuna.runs.ingestion import cells_that_share
from eirkit.lacuna.runs.manifest import SystemMessages
from eirkit.lacuna.runs.store import RunStore
from eirkit.lacuna.runs.workers import (
    Admission,
    CellBatch,
    CellRuns,
    PaidRuns,
    RunQueue,
    cell_context_of,
    is_free,
    run_concurrently,
    run_on_engine,
)
from eirkit.records.database import FinishedRun, SweepDatabase, SweepWriter
from eirkit.records.money import AGENT, NOTHING, journal_of
from eirkit.records.runs import Failure, RunRecord, RunScore

PLUG_INS = ("memory", "model", "policy", "workload", "harness")  # kinds of failures that name the code that raised
NOT_RUN = "not run: pending, or skipped after other runs failed; run the command again to finish"


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a plan."""

    runs: int  # ended, scored or not, including earlier parts
    planned_runs: int
    cells: int  # without remaining runs
    planned_cells: int
    failed: int  # in this part
    steps: int  # in this part
    spent_usd: Decimal  # billed so far, by this part and those before it
    control: str = ""  # progress of the control of a sweep, while it runs


Observer = Callable[[Progress], None]


def ignore_progress(progress: Progress) -> None:
    """The default observer, which does nothing."""


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """How the execution of a plan ended; without reasons, all runs are done."""

    stopped: tuple[str, ...] = ()  # why runs were left out
    cap: SpendCapReached | None = None  # set if the spend cap is among the reasons


class Runner:
    """Runs plans into one folder, never repeating a finished run; use it in a with statement.

    Args:
        folder: where runs are stored; by default a temporary directory that is removed on exit.
        budget: makes all models and counts their spending.
        engine: runs free models; by default they run in this process.
        is_new: begin the folder anew, whatever a sweep left there that was killed before its manifest was written.

    Raises:
        UsageError: on entry, if another process writes to the folder.
    """

    def __init__(
        self,
        folder: Path | None = None,
        budget: Budget | None = None,
        observe: Observer = ignore_progress,
        engine: Engine | None = None,
        *,
        is_new: bool = False,
    ) -> None:
        self.folder, self.budget, self.observe, self.engine = folder, budget or Budget(), observe, engine
        self.is_new = is_new
        self._inside = ExitStack()
        self._store: RunStore | None = None
        self._done: dict[str, set[int]] | None = None  # seeds by cell

    def __enter__(self) -> Runner:
        folder = self.folder or Path(self._inside.enter_context(TemporaryDirectory(prefix="eirkit-runs-")))
        try:
            database = SweepWriter(folder, is_new=self.is_new, is_temporary=self.folder is None)
            self._store = RunStore(self._inside.enter_context(database))
            self.budget.open(database)
        except BaseException:
            self._inside.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.budget.close()
        self._inside.close()

    def control(self, observe: Observer) -> Runner:
        """Return a runner for the capability control of the sweep, in the same folder and on the same budget."""
        runner = Runner(self.folder, self.budget, observe, self.engine)
        runner._store = RunStore(self.store.database, control=True)
        return runner

    @property
    def store(self) -> RunStore:
        if self._store is None:
            raise ValueError("the runner is not open; use it in a with statement")
        return self._store

    def run(self, plan: RunPlan, models: ModelPool | None = None) -> PlanOutcome:
        """Run the rest of a plan.

        Args:
            models: the models of the plan, if they exist already.
        """
        if not self.store.control:
            self.plan(plan)
        execution = Execution(plan, models or ModelPool(plan, self.budget), self)
        execution.run()
        return PlanOutcome(execution.stopped, execution.cap)

    def plan(self, plan: RunPlan) -> None:
        """Store which runs are planned; the order of cells is that in which they were first stored."""
        self.store.database.plan((cell.setting, len(seeds)) for cell, seeds in plan.plan())

    def progress(self, plan: RunPlan) -> Progress:
        """Return the progress of a plan before it continues."""
        done = self.recover()
        left = [sum(seed not in done.get(cell.id, ()) for seed in seeds) for cell, seeds in plan.plan()]
        return Progress(
            runs=len(plan) - sum(left),
            planned_runs=len(plan),
            cells=left.count(0),
            planned_cells=len(left),
            failed=0,
            steps=0,
            spent_usd=self.budget.ledger.spending.billed_usd,
        )

    def complete(self, plan: RunPlan) -> Results:
        """Run the rest of a plan and return its runs; failed ones are missing.

        Raises:
            SpendCapReached: finished runs are kept.
        """
        ended = self.run(plan)
        if ended.cap is not None:
            raise ended.cap
        return self.results

    @property
    def results(self) -> Results:
        """All runs of the folder, including earlier plans."""
        return Results(self.store.database, control=self.store.control)

    def recover(self) -> dict[str, set[int]]:
        """Return the seeds of finished runs by cell."""
        if self._done is None:
            self._done = self.store.finished()
        return self._done

    def refuse_unplanned(self, plan: RunPlan) -> None:
        """Raise InputFileError if the folder contains a run of another plan."""
        left = {cell: set(seeds) for cell, seeds in self.recover().items()}
        for cell, seeds in plan.plan():
            left.get(cell.id, set()).difference_update(seeds)
        if wrong := [f"{cell}-{min(seeds)}" for cell, seeds in left.items() if seeds]:
            raise InputFileError(f"{self.store.folder}: run {wrong[0]} is not planned; restore the folder")


@contextmanager
def runner_or_temporary(runner: Runner | None) -> Iterator[Runner]:
    """Yield the given runner, or open one with a temporary folder."""
    with Runner() if runner is None else nullcontext(runner) as chosen:
        yield chosen


class Execution:
    """The remaining runs of one plan and the queues that execute them."""

    def __init__(self, plan: RunPlan, pool: ModelPool, runner: Runner) -> None:
        self.plan, self.pool, self.runner, self.store = plan, pool, runner, runner.store
        self.stopped: tuple[str, ...] = ()  # why runs were left out
        self.cap: SpendCapReached | None = None
        self._done = runner.recover()
        self._admission = Admission(pool.budget, self._paid())
        self._tried: dict[str, set[int]] = {}  # attempted by an engine and lost
        self._left = {cell.id: len(self._seeds_left(cell, seeds)) for cell, seeds in plan.plan()}
        self._runs, self._failed, self._steps = len(plan) - sum(self._left.values()), 0, 0
        self._cells = sum(not left for left in self._left.values())
        self._alike = cells_that_share(plan.plan())
        # Cells that depend on others, such as the arms of a rescue, run after those have ended.
        self._rounds = (False, True) if any(cell.follows for cell, _ in plan.plan()) else (False,)

    def _paid(self) -> PaidRuns:
        """Return what was paid for runs before; it is needed under a cap alone."""
        journal = None if self.pool.budget.ledger.cap_usd is None else journal_of(self.store.database)
        dearest: dict[str, Decimal] = {}
        begun: dict[str, Decimal] = {}
        for run, attempts in ({} if journal is None else journal.by_run()).items():
            usd = sum((paid for attempt in attempts for paid in attempt.usd.values()), NOTHING)
            cell, _, seed = run.rpartition("-")
            if int(seed) in self._done.get(cell, ()):
                dearest[cell] = max(dearest.get(cell, NOTHING), usd)
            elif self.pool.budget.keeps_replies:
                begun[run] = sum((attempt.usd.get(AGENT, NOTHING) for attempt in attempts), NOTHING)
        return PaidRuns(dearest, begun)

    def run(self) -> None:
        """Run everything that remains: free models on the engine, then the rest.

        The engine is not used inside an event loop, which would delay an interrupt until the engine is done.
        """
        self._show()
        if (engine := self.runner.engine) is not None:
            for following in self._rounds:
                for outcomes in run_on_engine(engine, self._shares(following, is_free)):
                    self._take(outcomes)
        wait_for(self._run_queues())

    def _take(self, outcomes: Sequence[FinishedRun | Failure]) -> None:
        """Store the results of an engine's worker."""
        finished = [outcome for outcome in outcomes if isinstance(outcome, FinishedRun)]
        self.store.commit(finished, durable=False)
        for outcome in outcomes:
            if isinstance(outcome, Failure):
                self.store.fail(outcome)
                self._tried.setdefault(outcome.cell, set()).add(outcome.seed)
        self._report([outcome if isinstance(outcome, Failure) else outcome.record for outcome in outcomes])

    async def _run_queues(self) -> None:
        """Run reference agents, then all other models concurrently."""
        stopped: set[str] = set()
        try:
            for following in self._rounds:
                queues = [(queue, workers) for queue, workers in self._queues(following) if queue.name not in stopped]
                try:
                    for queue in [queue for queue, workers in queues if not workers]:
                        await queue.run_in_order()
                    await run_concurrently([queue.run_at_once(workers) for queue, workers in queues if workers])
                finally:
                    self._note([queue for queue, _ in queues])
                stopped |= {queue.name for queue, _ in queues if queue.stopped}
        finally:
            await self.pool.close()

    def _queues(self, following: bool) -> list[tuple[RunQueue, int]]:
        """Return the queues, each with its number of concurrent runs; 0 for reference agents, which never wait."""
        models = self.pool.all()
        scripted = [model for model in models if is_scripted(model)]
        shared: dict[bytes, list[Metered]] = {}  # models that differ in their seed alone share their connections
        for model in models:
            if isinstance(model, Metered):
                given = replace(model.options, seed=0).asked(protocol_of(model.name, model.options))
                shared.setdefault(msgspec.json.encode((model.name, given)), []).append(model)

        def queue(name: str, asked: Sequence[Model]) -> RunQueue:
            work = self._work(asked, following)
            return RunQueue(name, work, self.store, self._report, self.pool.budget.make, self._admission)

        first = (queue("the reference agents", scripted), 0)
        return [first, *((queue(alike[0].name, alike), alike[0].at_most) for alike in shared.values())]

    def _note(self, queues: Sequence[RunQueue]) -> None:
        """Record why queues left runs out."""
        self.stopped += tuple(queue.stopped for queue in queues if queue.stopped)
        self.cap = next((queue.cap for queue in queues if queue.cap), self.cap)
        if skipped := sum(len(queue.skipped) for queue in queues):
            one = "1 cell was skipped because its"
            which = one if skipped == 1 else f"{skipped} cells were skipped because their"
            self.stopped += (f"{which} memory system kept failing",)

    def _work(self, models: Sequence[Model], following: bool) -> Iterator[list[CellRuns]]:
        """Yield the remaining work of some models, in the order of the plan."""
        rules, scrub = SystemMessages(), Scrubber.of_environment(os.environ)
        for share in self._shares(following, lambda cell: any(self.pool.of(cell) is model for model in models)):
            model = self.pool.of(share.cell)
            yield [(cell_context_of(one, model, rules, scrub), one.seeds) for one in (share, *share.others)]

    def _shares(self, following: bool, wanted: Callable[[Cell], bool]) -> Iterator[CellBatch]:
        for cell, seeds in self.plan.plan():
            if (cell.follows is not None) != following or not wanted(cell):
                continue
            if cell.id in self._alike:
                yield from self._together(cell)
                continue
            left = self._seeds_left(cell, seeds)
            unrecovered = self._unrecovered(cell.follows, left) if cell.follows is not None else {}
            if ready := [seed for seed in left if seed in unrecovered] if following else left:
                yield CellBatch(cell, ready, self.plan.texts, unrecovered)

    def _together(self, cell: Cell) -> Iterator[CellBatch]:
        """Yield the runs that remain of a cell and of those that differ from it in their budget, at the first one."""
        alike = self._alike[cell.id]
        left = [CellBatch(one, rest, self.plan.texts) for one, seeds in alike if (rest := self._seeds_left(one, seeds))]
        if cell.id == alike[0][0].id and left:
            yield replace(left[0], others=left[1:])

    def _unrecovered(self, control: Cell, seeds: Iterable[int]) -> dict[int, Unrecovered]:
        """Return the unrecovered inputs in the runs of a control arm; failed runs are left out."""
        traces = {seed: self.runner.results.trace(control, seed) for seed in seeds}
        return {seed: unrecovered_in(trace.decisions) for seed, trace in traces.items() if trace is not None}

    def _seeds_left(self, cell: Cell, seeds: Sequence[int]) -> Sequence[int]:
        done = self._done.get(cell.id, set()) | self._tried.get(cell.id, set())
        return [seed for seed in seeds if seed not in done] if done else seeds

    def _report(self, ended: Sequence[RunRecord | Failure]) -> None:
        for run in ended:
            if isinstance(run, Failure):
                self._failed += 1
                self._steps += run.steps
            else:
                self._steps += run.setting.task.length
                self._done.setdefault(run.cell, set()).add(run.seed)
            self._runs += 1
            self._left[run.cell] -= 1
            self._cells += not self._left[run.cell]
        self._show()

    def _show(self) -> None:
        self.runner.observe(
            Progress(
                runs=self._runs,
                planned_runs=len(self.plan),
                cells=self._cells,
                planned_cells=len(self._left),
                failed=self._failed,
                steps=self._steps,
                spent_usd=self.runner.budget.ledger.spending.billed_usd,
            )
        )


class Results:
    """The runs that are in a folder so far."""

    def __init__(self, database: SweepDatabase, *, control: bool = False) -> None:
        self.database, self.control = database, control

    def record(self, cell: Cell, seed: int) -> RunRecord | None:
        """Return the record of a run; None if it has not finished."""
        return self.database.record(cell.run_id(seed), control=self.control)

    def score(self, cell: Cell, seed: int) -> RunScore | None:
        record = self.record(cell, seed)
        return None if record is None else record.score

    def trace(self, cell: Cell, seed: int) -> Trace | None:
        """Return the decisions and actions of a run; None if it has not finished."""
        record = self.record(cell, seed)
        if record is None:
            return None
        return trace_of(self.database.events(record.run, control=self.control), record.ending)

    def losses(self, planned: Iterable[Planned]) -> dict[tuple[str, int], str]:
        """Return why runs have not finished, by cell and seed, in the order of the plan."""
        missing = [(cell, seed) for cell, seeds in planned for seed in seeds if self.record(cell, seed) is None]
        failures = self.database.failures(control=self.control) if missing else []
        why = dict.fromkeys((cell.run_id(seed) for cell, seed in missing), NOT_RUN)
        for failure in failures:
            said = cause_of(failure.message)
            is_ours = failure.kind not in PLUG_INS
            why[failure.run] = said if is_ours else f"{failure.kind} failed: {said}; fix it and run again"
        return {(cell.id, seed): why[cell.run_id(seed)] for cell, seed in missing}
