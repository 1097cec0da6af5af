"""Opens the folder of an experiment other than a sweep, and resumes it if it contains the same plan."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eirkit.agents.exchange import canonical
from eirkit.engine.interface import Engine
from eirkit.errors import UsageError
from eirkit.records import read_document, write_document
from eirkit.runs.budget import Budget, ModelPool
from eirkit.runs.manifest import FILE, PLAN_SCHEMA, describe_plan
from eirkit.runs.plan import CellPlan
from eirkit.runs.runner import Observer, Runner, ignore_progress
from eirkit.runs.store import SUMMARY, is_unused_folder

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
            write_document(folder / FILE, PLAN_SCHEMA, manifest)
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
    if then.get("command") == manifest["command"] and "plan_sha256" not in then:
        raise UsageError(f"{folder} was written by an earlier version; repeat the command with another --out")
    for name in _COMPARED:
        if canonical({name: then.get(name)}) != canonical({name: manifest[name]}):
            raise UsageError(f"{folder} was started with other {name}; repeat that command or choose another --out")
    if then["plan_sha256"] != manifest["plan_sha256"] or then["prompt_sha256"] != manifest["prompt_sha256"]:
        raise UsageError(f"the prompts or tasks have changed since {folder} was started; choose another --out")
