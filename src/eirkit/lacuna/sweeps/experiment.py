"""Runs a sweep: a checked suite and a folder come in; records, a summary and how it ended go out.

Reference agents answer at once and are run one after the other, in the suite's order. Everybody else is asked for as
many runs at a time as the model allows connections. All writing happens in this process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.conditions import make_memory
from eirkit.lacuna.driver import wait_for
from eirkit.lacuna.generation import prepare
from eirkit.lacuna.model import Model
from eirkit.lacuna.serving.metered import Metered
from eirkit.lacuna.serving.scrubbing import Scrubber
from eirkit.lacuna.simulation.plain import structure_of
from eirkit.lacuna.sweeps.attempt import Stage
from eirkit.lacuna.sweeps.lanes import Lane, side_by_side
from eirkit.lacuna.sweeps.manifest import Rules, describe, read_manifest, refuse_drift
from eirkit.lacuna.sweeps.model_pool import Funds, ModelPool, is_scripted
from eirkit.lacuna.sweeps.run_store import RunStore, is_untouched
from eirkit.lacuna.sweeps.suite import Suite, read_suite
from eirkit.lacuna.sweeps.summary import Summary, summarise


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


Observer = Callable[[Progress], None]


def watch_nothing(progress: Progress) -> None:
    """The observer of those who only want the result."""


def start_sweep(suite: Suite, folder: Path, funds: Funds | None = None, observe: Observer = watch_nothing) -> Summary:
    """Run a suite into a new or empty folder.

    Raises:
        UsageError: before anything is written: the folder is in use, or a model or memory cannot be made.
    """
    funds = funds or Funds()
    _refuse_used(folder)
    pool = _make_all(suite, funds, folder)
    manifest = describe(suite, funds.prices, os.environ)
    with RunStore(folder) as store:
        _refuse_used(folder)
        manifest.write(folder)
        return _run(Sweep(suite, pool, store, observe))


def resume_sweep(
    folder: Path, suite: Suite | None = None, funds: Funds | None = None, observe: Observer = watch_nothing
) -> Summary:
    """Finish a sweep that was begun; a suite, if given, must be the same.

    Raises:
        UsageError: the suite, the prompts or the version have changed since.
    """
    funds = funds or Funds()
    then = read_manifest(folder)
    wanted = read_suite(then.suite) if suite is None else suite
    refuse_drift(then, describe(wanted, funds.prices, os.environ), folder)
    pool = _make_all(wanted, funds, folder)
    with RunStore(folder) as store:
        return _run(Sweep(wanted, pool, store, observe))


def _refuse_used(folder: Path) -> None:
    if not is_untouched(folder):
        raise UsageError(f"{folder} is not empty; continue with --resume {folder} or choose another --out")


def _make_all(suite: Suite, funds: Funds, folder: Path) -> ModelPool:
    """Make every model and every memory once, so that what is missing is known before anything runs."""
    for name in dict.fromkeys(cell.access.memory for cell, _ in suite.plan() if cell.access.memory is not None):
        make_memory(name)
    return ModelPool(suite, funds, folder)


def _run(sweep: Sweep) -> Summary:
    sweep.take_in(sweep.store.recover())
    sweep.pool.ledger.read()
    wait_for(sweep.run())
    summary = summarise(sweep.suite, sweep.store.folder, sweep.stopped)
    summary.write(sweep.store.folder)
    return summary


class Sweep:
    """What is left of a suite, and the lanes it is run in."""

    def __init__(self, suite: Suite, pool: ModelPool, store: RunStore, observe: Observer) -> None:
        self.suite, self.pool, self.store, self.observe = suite, pool, store, observe
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

    async def run(self) -> None:
        """Run everything that is left: reference agents first, then all other models side by side."""
        self._show()
        scripted = [model for model in self.pool.all() if is_scripted(model)]
        first = Lane("the reference agents", self._work(scripted), self.store, self._report)
        others = [
            (Lane(model.name, self._work([model]), self.store, self._report), model.options.connections)
            for model in self.pool.all()
            if isinstance(model, Metered)
        ]
        try:
            await first.in_order()
            await side_by_side([lane.at_once(workers) for lane, workers in others])
        finally:
            self.stopped = tuple(lane.stopped for lane in (first, *(lane for lane, _ in others)) if lane.stopped)
            await self.pool.close()

    def _work(self, models: Sequence[Model]) -> Iterator[tuple[Stage, Sequence[int]]]:
        """Yield what is left for some models, in the suite's order."""
        rules, scrub = Rules(), Scrubber.of_environment(os.environ)
        for cell, seeds in self.suite.plan():
            model = self.pool.of(cell)
            done = self._done.get(cell.id, ())
            left = [seed for seed in seeds if seed not in done] if done else seeds
            if left and any(model is one for one in models):
                told = sha256(rules.of(cell).encode()).hexdigest()
                structure = structure_of(cell.task)
                texts, where = self.suite.texts, cell.as_json()
                yield Stage(cell, prepare(cell.task), structure, model, told, texts, scrub, where), left

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

    def _show(self) -> None:
        spent = self.pool.ledger.spent_usd
        self.observe(
            Progress(self._runs, len(self.suite), self._cells, len(self._left), self._failed, self._steps, spent)
        )
