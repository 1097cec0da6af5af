"""Starts and resumes sweeps and other experiments (`--out`, `--resume`), each in its folder; writes `summary.json`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from eirkit.engine.interface import Engine
from eirkit.errors import UsageError
from eirkit.lacuna.models.model import canonical
from eirkit.lacuna.runs.budget import Budget, ModelPool, SpendingLimits
from eirkit.lacuna.runs.cells import CellPlan
from eirkit.lacuna.runs.control import run_controls
from eirkit.lacuna.runs.manifest import (
    FILE,
    PLAN_SCHEMA,
    describe,
    describe_plan,
    find_sources,
    read_manifest,
    refuse_drift,
)
from eirkit.lacuna.runs.runner import Observer, Runner, ignore_progress
from eirkit.lacuna.runs.store import SUMMARY, is_unused_folder
from eirkit.lacuna.runs.suite import Suite, read_suite
from eirkit.lacuna.runs.summary import RunSummary, summarise
from eirkit.records.lines import read_document, write_document


def start_sweep(
    suite: Suite,
    folder: Path,
    funds: SpendingLimits | None = None,
    observe: Observer = ignore_progress,
    control: bool | None = None,
    engine: Engine | None = None,
) -> RunSummary:
    """Run a suite into a new or empty folder.

    Args:
        control: whether the control is run first; None for free models only.
        engine: runs free models; by default they run in this process.

    Raises:
        UsageError: the folder is in use, or a model or memory cannot be made; nothing was written.
    """
    funds = funds or SpendingLimits()
    _refuse_used(folder)
    budget = Budget(funds, folder, is_new=True)
    pool = ModelPool(suite, budget)
    manifest = describe(suite, funds.prices, os.environ, folder, control)
    with Runner(folder, budget, observe, engine) as runner:
        _refuse_used(folder)
        budget.open()  # before the manifest, so that no sweep can be resumed without its cap
        manifest.write(folder)
        return _run(suite, runner, pool, control)


def resume_sweep(
    folder: Path,
    suite: Suite | None = None,
    funds: SpendingLimits | None = None,
    observe: Observer = ignore_progress,
    control: bool | None = None,
    engine: Engine | None = None,
) -> RunSummary:
    """Finish a sweep; a suite, if given, must be the same.

    Args:
        control: None to keep the original choice; existing verdicts are kept in any case.

    Raises:
        UsageError: the suite, the prompts or the version have changed since.
    """
    funds = funds or SpendingLimits()
    then = read_manifest(folder)
    wanted = recorded_suite(folder) if suite is None else suite
    refuse_drift(then, describe(wanted, funds.prices, os.environ), folder)
    budget = Budget(funds, folder)
    pool = ModelPool(wanted, budget)
    with Runner(folder, budget, observe, engine) as runner:
        if control not in (None, then.control):
            replace(then, control=control).write(folder)
        return _run(wanted, runner, pool, then.control if control is None else control)


def recorded_suite(folder: Path, given: Mapping[str, Any] | None = None) -> Suite:
    """Return the suite of a recorded sweep, with overrides; plug-in files are found from any working directory."""
    then = read_manifest(folder)
    find_sources(then, folder)
    return read_suite(then.suite, given)


def _refuse_used(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; choose a new or empty folder for --out")
    if not is_unused_folder(folder):
        raise UsageError(f"{folder} is not empty; continue with --resume {folder} or choose another --out")


def _run(suite: Suite, runner: Runner, pool: ModelPool, control: bool | None) -> RunSummary:
    """Run the control and the sweep, each as far as possible, and summarise."""
    runner.refuse_unplanned(suite)
    left_out = run_controls(suite, control, runner)
    ended = runner.run(suite, pool)
    summary = summarise(suite, runner.store.folder, (*left_out, *ended.stopped))
    summary.write(runner.store.folder)
    return summary


_COMPARED = ("command", "settings", "sources", "eirkit")


@contextmanager
def open_plan(
    plan: CellPlan,
    folder: Path | None,
    budget: Budget,
    observe: Observer = ignore_progress,
    engine: Engine | None = None,
) -> Iterator[Runner]:
    """Check a plan and yield a runner for it.

    Raises:
        UsageError: a model or a memory system cannot be made, or the folder contains something else; nothing was
            written.
    """
    ModelPool(plan, budget)
    if folder is None:
        with Runner(None, budget, observe, engine) as runner:
            yield runner
        return
    manifest = describe_plan(plan, budget.funds.prices, os.environ)
    _refuse_other(folder, manifest)
    with Runner(folder, budget, observe, engine) as runner:
        if not (folder / FILE).exists():
            budget.open()
            write_document(folder / FILE, PLAN_SCHEMA, manifest, sealed=True)
        yield runner


def write_result(plan: CellPlan, folder: Path, document: Mapping[str, Any]) -> None:
    """Write the result of an experiment into the folder of its runs."""
    write_document(folder / SUMMARY, f"{plan.kind}/1", document)


def _refuse_other(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raise UsageError if the folder contains anything but runs of this plan."""
    if not (folder / FILE).exists():
        if not is_unused_folder(folder):
            raise UsageError(f"{folder} contains other files; choose a new or empty --out")
        return
    then = read_document(folder / FILE, PLAN_SCHEMA)
    for name in _COMPARED:
        if canonical({name: then.get(name)}) != canonical({name: manifest[name]}):
            raise UsageError(f"{folder} was started with other {name}; repeat that command or choose another --out")
    if then["plan_sha256"] != manifest["plan_sha256"] or then["prompt_sha256"] != manifest["prompt_sha256"]:
        raise UsageError(f"the prompts or tasks have changed since {folder} was started; choose another --out")
