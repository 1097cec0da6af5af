"""Runs a sweep: a checked suite and a folder come in; records, a summary and how it ended go out.

Reference agents answer at once and are run one after the other, in the suite's order. Everybody else is asked for as
many runs at a time as the model allows connections. All writing happens in this process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eirkit.agents.driver import wait_for
from eirkit.agents.model import Model, ModelOptions
from eirkit.agents.serving.metered import Metered
from eirkit.agents.serving.scrubbing import Scrubber
from eirkit.agents.stores.memory_factory import make_memory
from eirkit.engine.mapping import Engine
from eirkit.errors import InputFileError, SpendCapReached, UsageError
from eirkit.runs.attempt import Failure, Stage
from eirkit.runs.budget import Budget, SpendingLimits, is_scripted
from eirkit.runs.cells import Cell
from eirkit.runs.control import run_controls
from eirkit.runs.lanes import Lane, side_by_side
from eirkit.runs.manifest import SystemMessages, describe, find_sources, read_manifest, refuse_drift
from eirkit.runs.model_pool import ModelPool
from eirkit.runs.store import FinishedRun, RunStore, is_untouched
from eirkit.runs.suite import Suite, read_suite
from eirkit.runs.summary import RunSummary, summarise
from eirkit.runs.workers import is_free, spread, stage_of


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sweep is."""

    runs: int  # ended, scored or not, earlier ones included
    planned_runs: int
    cells: int  # with no run left
    planned_cells: int
    failed: int  # runs of this part of the sweep
    steps: int  # taken in this part of the sweep
    spent_usd: float
    control: str = ""  # while the full-information control of a model is run: which, and how far


Observer = Callable[[Progress], None]


def watch_nothing(progress: Progress) -> None:
    """The observer of those who only want the result."""


def start_sweep(
    suite: Suite,
    folder: Path,
    funds: SpendingLimits | None = None,
    observe: Observer = watch_nothing,
    control: bool | None = None,
    engine: Engine | None = None,
) -> RunSummary:
    """Run a suite into a new or empty folder.

    Args:
        control: whether the full-information control is run first; unless given, for reference agents alone.
        engine: runs what costs nothing; this process does unless given.

    Raises:
        UsageError: before anything is written: the folder is in use, or a model or memory cannot be made.
    """
    funds = funds or SpendingLimits()
    _refuse_used(folder)
    pool = _make_all(suite, funds, folder)
    manifest = describe(suite, funds.prices, os.environ, folder, control)
    with RunStore(folder) as store:
        _refuse_used(folder)
        manifest.write(folder)
        return _run(Sweep(suite, pool, store, observe, engine), control)


def resume_sweep(
    folder: Path,
    suite: Suite | None = None,
    funds: SpendingLimits | None = None,
    observe: Observer = watch_nothing,
    control: bool | None = None,
    engine: Engine | None = None,
) -> RunSummary:
    """Finish a sweep that was begun; a suite, if given, must be the same.

    Args:
        control: as it was begun, unless given; what the control has found stays in any case.

    Raises:
        UsageError: the suite, the prompts or the version have changed since.
    """
    funds = funds or SpendingLimits()
    then = read_manifest(folder)
    wanted = recorded_suite(folder) if suite is None else suite
    refuse_drift(then, describe(wanted, funds.prices, os.environ), folder)
    pool = _make_all(wanted, funds, folder)
    with RunStore(folder) as store:
        if control not in (None, then.control):
            replace(then, control=control).write(folder)
        return _run(Sweep(wanted, pool, store, observe, engine), then.control if control is None else control)


def recorded_suite(folder: Path, given: Mapping[str, Any] | None = None) -> Suite:
    """Return the suite of a sweep that was begun, with keys over it; its plug-ins are found from wherever we are."""
    then = read_manifest(folder)
    find_sources(then, folder)
    return read_suite(then.suite, given)


def _refuse_used(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; choose a new or empty folder for --out")
    if not is_untouched(folder):
        raise UsageError(f"{folder} is not empty; continue with --resume {folder} or choose another --out")


def _make_all(suite: Suite, funds: SpendingLimits, folder: Path) -> ModelPool:
    """Make every model and every memory once, so that what is missing is known before anything runs."""
    purse = Budget(funds, folder)
    for cell, _ in suite.plan():
        if cell.memory_plan is not None:
            make_memory(cell.memory_plan, make=lambda string: purse.make(string, ModelOptions()))
    return ModelPool(suite, purse)


def _run(sweep: Sweep, control: bool | None) -> RunSummary:
    sweep.take_in(sweep.store.recover())
    sweep.pool.purse.ledger.read()
    sweep.run_control(control)
    sweep.run_on_engine()
    wait_for(sweep.run())
    summary = summarise(sweep.suite, sweep.store.folder, sweep.stopped)
    summary.write(sweep.store.folder)
    return summary


class Sweep:
    """What is left of a suite, and the lanes it is run in."""

    def __init__(
        self, suite: Suite, pool: ModelPool, store: RunStore, observe: Observer, engine: Engine | None = None
    ) -> None:
        self.suite, self.pool, self.store, self.observe, self.engine = suite, pool, store, observe, engine
        self.stopped: tuple[str, ...] = ()  # why runs were left out
        self._left = {cell.id: len(seeds) for cell, seeds in suite.plan()}
        self._done: dict[str, set[int]] = {}
        self._runs = self._failed = self._steps = self._cells = 0

    def take_in(self, runs: Iterable[str]) -> None:
        """Note the runs that are complete."""
        for run in runs:
            cell, _, seed = run.rpartition("-")
            done = self._done.setdefault(cell, set())
            if cell not in self._left or int(seed) in done:
                raise InputFileError(
                    f"{self.store.folder}: run {run} is there twice or not planned; restore the folder"
                )
            done.add(int(seed))
            self._end_run(cell)

    def run_control(self, control: bool | None) -> None:
        """Run what is left of the full-information control; a cap that ends it leaves the sweep to its own lanes."""
        try:
            run_controls(self.suite, control, self.pool.purse, self.store.folder, self._show_control)
        except SpendCapReached as reached:
            self.stopped = (f"the control: {reached}",)

    def run_on_engine(self) -> None:
        """Let the engine, if there is one, run whatever costs nothing; what it does is done for the lanes.

        Not inside an event loop, which would keep an interrupt to itself until the engine is done.
        """
        self._show()
        free = [(cell, self._seeds_left(cell, seeds)) for cell, seeds in self.suite.plan() if is_free(cell)]
        for outcomes in spread(self.engine, free, self.suite.texts) if self.engine is not None else ():
            finished = [outcome for outcome in outcomes if isinstance(outcome, FinishedRun)]
            self.store.commit(finished, durable=False)
            for outcome in outcomes:
                if isinstance(outcome, Failure):
                    self.store.fail(outcome.record)
                record = outcome.record
                self._done.setdefault(record["cell"], set()).add(record["seed"])
            self._report([outcome.record for outcome in outcomes])

    async def run(self) -> None:
        """Run everything that is left: reference agents, then all other models side by side."""
        scripted = [model for model in self.pool.all() if is_scripted(model)]
        first = Lane("the reference agents", self._work(scripted), self.store, self._report, self._model)
        others = [
            (Lane(model.name, self._work([model]), self.store, self._report, self._model), model.at_most)
            for model in self.pool.all()
            if isinstance(model, Metered)
        ]
        try:
            await first.in_order()
            await side_by_side([lane.at_once(workers) for lane, workers in others])
        finally:
            lanes = (first, *(lane for lane, _ in others))
            self.stopped += tuple(lane.stopped for lane in lanes if lane.stopped)
            if skipped := sum(len(lane.skipped) for lane in lanes):
                which = (
                    "1 cell was given up because its"
                    if skipped == 1
                    else f"{skipped} cells were given up because their"
                )
                self.stopped += (f"{which} memory system kept failing",)
            await self.pool.close()

    def _seeds_left(self, cell: Cell, seeds: Sequence[int]) -> Sequence[int]:
        done = self._done.get(cell.id, ())
        return [seed for seed in seeds if seed not in done] if done else seeds

    def _model(self, string: str) -> Model:
        """Make the model of a memory system: it pays from the same purse."""
        return self.pool.purse.make(string, ModelOptions())

    def _work(self, models: Sequence[Model]) -> Iterator[tuple[Stage, Sequence[int]]]:
        """Yield what is left for some models, in the suite's order."""
        rules, scrub = SystemMessages(), Scrubber.of_environment(os.environ)
        for cell, seeds in self.suite.plan():
            model = self.pool.of(cell)
            left = self._seeds_left(cell, seeds)
            if left and any(model is one for one in models):
                yield stage_of(cell, model, self.suite.texts, rules, scrub), left

    def _report(self, records: Sequence[Mapping[str, Any]]) -> None:
        for record in records:
            self._failed += "kind" in record
            self._steps += record["steps"] if "kind" in record else record["task"]["n"]
            self._end_run(record["cell"])
        self._show()

    def _end_run(self, cell: str) -> None:
        self._runs += 1
        self._left[cell] -= 1
        self._cells += not self._left[cell]

    def _show_control(self, model: str, ended: int, planned: int) -> None:
        self._show(f"control of {model} {ended}/{planned}")

    def _show(self, control: str = "") -> None:
        spent = self.pool.purse.ledger.spent_usd
        counts = (self._runs, len(self.suite), self._cells, len(self._left), self._failed, self._steps)
        self.observe(Progress(*counts, spent, control))
