"""Runs plans: cells come in, and what became of every run is written to a folder, whole or not at all.

Reference agents answer at once and are run one after the other, in the plan's order. Everybody else is asked for as
many runs at a time as the model allows connections. Whatever costs nothing may be spread over the workers of an engine.
All writing happens in this process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from eirkit.agents.driver import wait_for
from eirkit.agents.model import Model
from eirkit.agents.serving.metered import Metered
from eirkit.agents.serving.scrubber import Scrubber
from eirkit.engine.interface import Engine
from eirkit.errors import InputFileError, SpendCapReached
from eirkit.runs.attempt import CellContext, Failure
from eirkit.runs.budget import Budget, is_scripted
from eirkit.runs.cells import Cell
from eirkit.runs.manifest import SystemMessages
from eirkit.runs.model_pool import ModelPool
from eirkit.runs.plan import RunPlan
from eirkit.runs.restoration import Unrecovered, unrecovered_in
from eirkit.runs.results import Results
from eirkit.runs.run_queue import RunQueue, run_concurrently
from eirkit.runs.store import FinishedRun, RunStore
from eirkit.runs.workers import CellBatch, cell_context_of, is_free, run_on_engine


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a plan is."""

    runs: int  # ended, scored or not, earlier ones included
    planned_runs: int
    cells: int  # with no run left
    planned_cells: int
    failed: int  # runs of this part
    steps: int  # taken in this part
    spent_usd: float
    control: str = ""  # while the full-information control of a sweep is run: how far that is


Observer = Callable[[Progress], None]


def ignore_progress(progress: Progress) -> None:
    """The observer of those who only want the result."""


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """How a plan ended: with nothing left to do where nothing is said."""

    stopped: tuple[str, ...] = ()  # why runs were left out
    cap: SpendCapReached | None = None  # where the spend cap is among the reasons


class Runner:
    """Runs plans into one folder, where a run that has ended is never run again; use it in a with statement.

    Args:
        folder: where runs are kept; a temporary directory, which goes when the runner is left, unless given.
        budget: pays for all models, and counts.
        engine: runs what costs nothing; this process does unless given.

    Raises:
        UsageError: when it is entered: another process writes to the folder.
    """

    def __init__(
        self,
        folder: Path | None = None,
        budget: Budget | None = None,
        observe: Observer = ignore_progress,
        engine: Engine | None = None,
    ) -> None:
        self.folder, self.budget, self.observe, self.engine = folder, budget or Budget(), observe, engine
        self._inside = ExitStack()
        self._store: RunStore | None = None
        self._done: dict[str, set[int]] | None = None  # seeds by cell

    def __enter__(self) -> Runner:
        folder = self.folder or Path(self._inside.enter_context(TemporaryDirectory(prefix="eirkit-runs-")))
        self._store = RunStore(folder)
        try:
            self._inside.enter_context(self._store)
        except BaseException:
            self._inside.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside.close()

    @property
    def store(self) -> RunStore:
        if self._store is None:
            raise ValueError("the runner was not entered; use it in a with statement")
        return self._store

    def run(self, plan: RunPlan, models: ModelPool | None = None) -> PlanOutcome:
        """Run what is left of a plan.

        Args:
            models: those of the plan, where they were made already.
        """
        execution = Execution(plan, models or ModelPool(plan, self.budget), self)
        execution.run()
        return PlanOutcome(execution.stopped, execution.cap)

    def progress(self, plan: RunPlan) -> Progress:
        """Return how far a plan is before anything more of it is run."""
        done = self.recover()
        left = [sum(seed not in done.get(cell.id, ()) for seed in seeds) for cell, seeds in plan.plan()]
        counts = (len(plan) - sum(left), len(plan), left.count(0), len(left), 0, 0)
        return Progress(*counts, self.budget.ledger.spent_usd)

    def complete(self, plan: RunPlan) -> Results:
        """Run what is left of a plan and return its runs; those that were lost are missing.

        Raises:
            SpendCapReached: what came to its end is kept.
        """
        ended = self.run(plan)
        if ended.cap is not None:
            raise ended.cap
        return self.results

    @cached_property
    def results(self) -> Results:
        """All runs of the folder, those of earlier plans included."""
        return Results(self.store.folder)

    def recover(self) -> dict[str, set[int]]:
        """Return the seeds of complete runs by cell; the first time they are read from the folder."""
        if self._done is None:
            self._done = {}
            for run in self.store.recover():
                cell, _, seed = run.rpartition("-")
                seeds = self._done.setdefault(cell, set())
                if int(seed) in seeds:
                    raise _misplaced(self.store.folder, run)
                seeds.add(int(seed))
            self.budget.ledger.read()
        return self._done

    def refuse_unplanned(self, plan: RunPlan) -> None:
        """Raise InputFileError where the folder holds a run of another plan."""
        planned = {cell.id: seeds for cell, seeds in plan.plan()}
        for cell, seeds in self.recover().items():
            if wrong := [seed for seed in sorted(seeds) if cell not in planned or seed not in planned[cell]]:
                raise _misplaced(self.store.folder, f"{cell}-{wrong[0]}")


def _misplaced(folder: Path, run: str) -> InputFileError:
    return InputFileError(f"{folder}: run {run} is there twice or not planned; restore the folder")


@contextmanager
def runner_or_temporary(runner: Runner | None) -> Iterator[Runner]:
    """Yield a runner that is in use already, or one that keeps nothing."""
    with Runner() if runner is None else nullcontext(runner) as chosen:
        yield chosen


class Execution:
    """What is left of one plan, and the lanes it is run in."""

    def __init__(self, plan: RunPlan, pool: ModelPool, runner: Runner) -> None:
        self.plan, self.pool, self.runner, self.store = plan, pool, runner, runner.store
        self.stopped: tuple[str, ...] = ()  # why runs were left out
        self.cap: SpendCapReached | None = None
        self._done = runner.recover()
        self._tried: dict[str, set[int]] = {}  # by an engine, and lost
        self._left = {cell.id: len(self._seeds_left(cell, seeds)) for cell, seeds in plan.plan()}
        self._runs, self._failed, self._steps = len(plan) - sum(self._left.values()), 0, 0
        self._cells = sum(not left for left in self._left.values())
        # Cells that follow others, the arms of a rescue, are run once those have ended.
        self._rounds = (False, True) if any(cell.follows for cell, _ in plan.plan()) else (False,)

    def run(self) -> None:
        """Run everything that is left: on the engine whatever costs nothing, then the rest.

        The engine is not used inside an event loop, which would keep an interrupt to itself until the engine is done.
        """
        self._show()
        if (engine := self.runner.engine) is not None:
            for following in self._rounds:
                for outcomes in run_on_engine(engine, self._shares(following, is_free)):
                    self._take(outcomes)
        wait_for(self._run_lanes())

    def _take(self, outcomes: Sequence[FinishedRun | Failure]) -> None:
        """Write what a worker of the engine did."""
        finished = [outcome for outcome in outcomes if isinstance(outcome, FinishedRun)]
        self.store.commit(finished, durable=False)
        for outcome in outcomes:
            if isinstance(outcome, Failure):
                self.store.fail(outcome.record)
                self._tried.setdefault(outcome.record["cell"], set()).add(outcome.record["seed"])
        self._report([outcome.record for outcome in outcomes])

    async def _run_lanes(self) -> None:
        """Run reference agents, then all other models side by side."""
        stopped: set[str] = set()
        try:
            for following in self._rounds:
                lanes = [(lane, workers) for lane, workers in self._lanes(following) if lane.name not in stopped]
                try:
                    for lane in [lane for lane, workers in lanes if not workers]:
                        await lane.in_order()
                    await run_concurrently([lane.at_once(workers) for lane, workers in lanes if workers])
                finally:
                    self._note([lane for lane, _ in lanes])
                stopped |= {lane.name for lane, _ in lanes if lane.stopped}
        finally:
            await self.pool.close()

    def _lanes(self, following: bool) -> list[tuple[RunQueue, int]]:
        """Return the lanes, each with how many runs it may have under way; 0 for reference agents, who need no wait."""
        models = self.pool.all()
        scripted = [model for model in models if is_scripted(model)]
        others = [model for model in models if isinstance(model, Metered)]

        def lane(name: str, asked: Sequence[Model]) -> RunQueue:
            return RunQueue(name, self._work(asked, following), self.store, self._report, self.pool.for_memory)

        first = (lane("the reference agents", scripted), 0)
        return [first, *((lane(model.name, [model]), model.at_most) for model in others)]

    def _note(self, lanes: Sequence[RunQueue]) -> None:
        """Note why lanes left runs out."""
        self.stopped += tuple(lane.stopped for lane in lanes if lane.stopped)
        self.cap = next((lane.cap for lane in lanes if lane.cap), self.cap)
        if skipped := sum(len(lane.skipped) for lane in lanes):
            one = "1 cell was given up because its"
            which = one if skipped == 1 else f"{skipped} cells were given up because their"
            self.stopped += (f"{which} memory system kept failing",)

    def _work(self, models: Sequence[Model], following: bool) -> Iterator[tuple[CellContext, Sequence[int]]]:
        """Yield what is left for some models, in the plan's order."""
        rules, scrub = SystemMessages(), Scrubber.of_environment(os.environ)
        for share in self._shares(following, lambda cell: any(self.pool.of(cell) is model for model in models)):
            yield cell_context_of(share, self.pool.of(share.cell), rules, scrub), share.seeds

    def _shares(self, following: bool, wanted: Callable[[Cell], bool]) -> Iterator[CellBatch]:
        for cell, seeds in self.plan.plan():
            if (cell.follows is not None) != following or not wanted(cell):
                continue
            left = self._seeds_left(cell, seeds)
            lacking = self._lacking(cell.follows, left) if cell.follows is not None else {}
            if ready := [seed for seed in left if seed in lacking] if following else left:
                yield CellBatch(cell, ready, self.plan.texts, lacking)

    def _lacking(self, control: Cell, seeds: Iterable[int]) -> dict[int, Unrecovered]:
        """Return what the runs of a control arm lacked; a run that was lost has nothing to restore by."""
        traces = {seed: self.runner.results.trace(control, seed) for seed in seeds}
        return {seed: unrecovered_in(trace.decisions) for seed, trace in traces.items() if trace is not None}

    def _seeds_left(self, cell: Cell, seeds: Sequence[int]) -> Sequence[int]:
        done = self._done.get(cell.id, set()) | self._tried.get(cell.id, set())
        return [seed for seed in seeds if seed not in done] if done else seeds

    def _report(self, records: Sequence[Mapping[str, Any]]) -> None:
        for record in records:
            failed = "kind" in record
            self._failed += failed
            self._steps += record["steps"] if failed else record["task"]["n"]
            if not failed:
                self._done.setdefault(record["cell"], set()).add(record["seed"])
            self._runs += 1
            self._left[record["cell"]] -= 1
            self._cells += not self._left[record["cell"]]
        self._show()

    def _show(self) -> None:
        spent = self.runner.budget.ledger.spent_usd
        counts = (self._runs, len(self.plan), self._cells, len(self._left), self._failed, self._steps)
        self.runner.observe(Progress(*counts, spent))
