"""Starts sweeps and other experiments in a folder, resumes them and adds to them; writes `summary.json`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import structs

from eirkit.engine.interface import Engine
from eirkit.errors import UsageError
from eirkit.lacuna.findings.summary import summarize, write_summary
from eirkit.lacuna.runs.budget import Budget, ModelPool, SpendingLimits
from eirkit.lacuna.runs.cells import CellPlan
from eirkit.lacuna.runs.control import control_plan, run_controls
from eirkit.lacuna.runs.manifest import describe, read_manifest, refuse_drift, system_messages, write_manifest
from eirkit.lacuna.runs.runner import Observer, Runner, ignore_progress
from eirkit.lacuna.runs.store import is_unused_folder
from eirkit.lacuna.runs.suite import Suite, join_suites, read_suite
from eirkit.records.documents import MANIFEST, SUMMARY, write_struct
from eirkit.records.sweeps import Manifest, Summary
from eirkit.registry import find_sources


def start_sweep(
    suite: Suite,
    folder: Path,
    funds: SpendingLimits | None = None,
    observe: Observer = ignore_progress,
    control: bool | None = None,
    engine: Engine | None = None,
) -> Summary:
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
    manifest = describe_sweep(suite, funds.prices, os.environ, folder, control)
    # The cap is stored when the runner opens, before the manifest, so that no sweep can be resumed without its cap.
    with Runner(folder, budget, observe, engine, is_new=True) as runner:
        write_manifest(manifest, folder)
        return _run(suite, runner, pool, control)


def resume_sweep(
    folder: Path,
    suite: Suite | None = None,
    funds: SpendingLimits | None = None,
    observe: Observer = ignore_progress,
    control: bool | None = None,
    engine: Engine | None = None,
) -> Summary:
    """Finish a sweep, or add to it what a further suite has: seeds, settings, models, memories.

    Args:
        control: None to keep the original choice; existing verdicts are kept in any case.

    Raises:
        UsageError: the prompts, a plug-in or the version have changed since, so that new runs could not be compared.
    """
    funds = funds or SpendingLimits()
    then, recorded = read_manifest(folder), recorded_suite(folder)
    refuse_drift(then, describe(recorded, funds.prices, os.environ), folder)
    wanted = recorded if suite is None else join_suites(recorded, suite)
    budget = Budget(funds, folder)
    pool = ModelPool(wanted, budget)
    control = then.control if control is None else control
    manifest = then
    if wanted.sha256() != recorded.sha256():
        manifest = describe_sweep(wanted, funds.prices, os.environ, folder, control)
        manifest = structs.replace(manifest, prices=manifest.prices or then.prices)
    elif control != then.control:
        manifest = _with_control(then, wanted, control)
    with Runner(folder, budget, observe, engine) as runner:
        if manifest != then:
            write_manifest(manifest, folder)
        return _run(wanted, runner, pool, control)


def describe_sweep(
    suite: Suite, prices: Path | None, environment: Mapping[str, str], folder: Path | None, control: bool | None
) -> Manifest:
    """Return the manifest of a sweep, which also has the system messages of its control."""
    return _with_control(describe(suite, prices, environment, folder), suite, control)


def _with_control(manifest: Manifest, suite: Suite, control: bool | None) -> Manifest:
    rules = manifest.rules | system_messages(control_plan(suite, control))
    return structs.replace(manifest, control=control, rules=rules)


def recorded_suite(folder: Path) -> Suite:
    """Return the suite of a recorded sweep; plug-in files are found from any working directory."""
    then = read_manifest(folder)
    if then.command != "run":
        raise UsageError(f"{folder} holds the runs of a {then.command}; repeat that command to go on with it")
    find_sources(then.sources, then.places, folder)
    return read_suite(then.settings)


def _refuse_used(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; choose a new or empty folder for --out")
    if not is_unused_folder(folder):
        raise UsageError(f"{folder} is not empty; continue with --resume {folder} or choose another --out")


def _run(suite: Suite, runner: Runner, pool: ModelPool, control: bool | None) -> Summary:
    """Run the control and the sweep, each as far as possible, and summarize."""
    runner.refuse_unplanned(suite)
    left_out = run_controls(suite, control, runner)
    ended = runner.run(suite, pool)
    summary = summarize(runner.store.database, (*left_out, *ended.stopped))
    write_summary(summary, runner.store.folder)
    return summary


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
    manifest = describe(plan, budget.funds.prices, os.environ)
    _refuse_other(folder, manifest)
    is_new = not (folder / MANIFEST).exists()
    with Runner(folder, budget, observe, engine, is_new=is_new) as runner:
        if is_new:
            write_manifest(manifest, folder)
        yield runner


def write_result(plan: CellPlan, folder: Path, document: object) -> None:
    """Write the result of an experiment into the folder of its runs."""
    write_struct(folder / SUMMARY, f"{plan.kind}/1", document)


def _refuse_other(folder: Path, manifest: Manifest) -> None:
    """Raise UsageError if the folder contains anything but runs of this plan."""
    if not (folder / MANIFEST).exists():
        if not is_unused_folder(folder):
            raise UsageError(f"{folder} contains other files; choose a new or empty --out")
        return
    then = read_manifest(folder)
    for name in ("command", "settings", "sources", "eirkit"):
        if getattr(then, name) != getattr(manifest, name):
            raise UsageError(f"{folder} was started with other {name}; repeat that command or choose another --out")
    if then.plan_sha256 != manifest.plan_sha256 or then.prompt_sha256 != manifest.prompt_sha256:
        raise UsageError(f"the prompts or tasks have changed since {folder} was started; choose another --out")
