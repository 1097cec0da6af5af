"""Runs the capability control of a sweep and stores its verdicts.

Each model and task of a suite has one control, whatever the number of capacities and conditions. Its runs and verdicts
are in a subfolder of the sweep.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from eirkit.errors import UsageError
from eirkit.lacuna.models.model import canonical
from eirkit.lacuna.runs.capability import GATE, STANDING, measure_gates, wants_control
from eirkit.lacuna.runs.cells import Cell, CellPlan
from eirkit.lacuna.runs.manifest import FILE, PLAN_SCHEMA, describe_plan
from eirkit.lacuna.runs.runner import NOT_RUN, Progress, Runner
from eirkit.lacuna.runs.store import RUNS, SUMMARY, is_unused_folder, read_failures, scan_runs
from eirkit.lacuna.runs.suite import Suite
from eirkit.records.lines import read_document, write_document

FOLDER = "control"
CAPABILITY = "capability"  # the condition of its runs
SCHEMA = "control/1"
_SETTINGS = {"windows": list(GATE.windows), "seeds": list(GATE.seeds), "threshold": GATE.threshold}

ControlVerdict = Mapping[str, Any]  # the fields `STANDING`


def control_plan(suite: Suite, control: bool | None, settled: Mapping[str, ControlVerdict] | None = None) -> CellPlan:
    """Return the plan of the control, without the cells that already have a final verdict."""
    wanted = [cell for key, cell in _distinct(suite, control) if key not in (settled or {})]
    planned = (one for cell in wanted for one in GATE.plan([cell.model], [cell.task], cell.options))
    return CellPlan("control", tuple(planned), _SETTINGS)


def run_controls(suite: Suite, control: bool | None, sweep: Runner) -> tuple[str, ...]:
    """Run the rest of the control, store its verdicts, and return why any of it was left out.

    Args:
        sweep: the runner of the sweep, whose folder, budget, engine and observer the control shares.
    """
    wanted = dict(_distinct(suite, control))
    if not wanted:
        return ()
    folder = sweep.store.folder / FOLDER
    rows = _settled_rows(folder)
    if wanted.keys() <= rows.keys():
        return ()
    now = sweep.progress(suite)
    whole, plan = control_plan(suite, control), control_plan(suite, control, rows)
    _refuse_other(folder)

    def show(own: Progress) -> None:
        told = f"control {own.runs}/{own.planned_runs}"
        sweep.observe(replace(now, spent_usd=own.spent_usd, control=told))

    with Runner(folder, sweep.budget, show, sweep.engine) as runner:
        manifest = describe_plan(whole, sweep.budget.funds.prices, os.environ)
        write_document(folder / FILE, PLAN_SCHEMA, manifest, sealed=True)
        try:
            with sweep.budget.part(FOLDER):
                ended = runner.run(plan)
        finally:
            found = {key: cell for key, cell in wanted.items() if key not in rows}
            rows |= _measured_rows(found, runner)
            write_document(folder / SUMMARY, SCHEMA, {"rows": [rows[key] for key in wanted if key in rows]})
    return tuple(f"the control: {reason}" for reason in ended.stopped)


def _measured_rows(wanted: Mapping[str, Cell], runner: Runner) -> dict[str, dict[str, Any]]:
    """Return the verdicts of controls whose runs were all attempted."""
    rows = {}
    for key, cell in wanted.items():
        (found,) = measure_gates([cell.model], cell.task, cell.options, runner.results).values()
        if NOT_RUN not in found.failures:
            rows[key] = {"key": key, **found.as_json()}
    return rows


def _settled_rows(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the final verdicts by key."""
    path = folder / SUMMARY
    rows = read_document(path, SCHEMA)["rows"] if path.exists() else []
    return {row["key"]: row for row in rows if not row["failures"]}


def _refuse_other(folder: Path) -> None:
    """Raise UsageError if the folder contains anything but the control of this sweep."""
    if (folder / FILE).exists():
        then = read_document(folder / FILE, PLAN_SCHEMA)
        settings = {**then.get("settings", {}), "threshold": GATE.threshold}  # decides nothing that is stored
        if (then.get("command"), settings) != ("control", _SETTINGS):
            raise UsageError(f"{folder} contains another control; move it away and resume")
    elif not is_unused_folder(folder):
        raise UsageError(f"{folder} contains other files; move them away and resume")


def read_verdicts(folder: Path) -> dict[str, ControlVerdict]:
    """Return the verdicts in a sweep's folder by `key_of` their cells; empty if no control was run."""
    path = folder / FOLDER / SUMMARY
    rows = read_document(path, SCHEMA)["rows"] if path.exists() else []
    return {row["key"]: {name: row[name] for name in STANDING} for row in rows}


def open_failures(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the last failure of each unfinished run of the control, by run id."""
    found = {record["run"]: {**record, "condition": CAPABILITY} for record in read_failures(folder / FOLDER)}
    if found:
        for record, _ in scan_runs(folder / FOLDER / RUNS):
            found.pop(record["run"], None)
    return found


def key_of(cell: Cell) -> str:
    """Return the key of a cell's control: everything but window, lookback, seed and access."""
    task = {**replace(cell.task, m=1, lookback=None, seed=0).as_json(), "m": None, "lookback": None}
    return sha256(canonical({"task": task, "model": cell.model, "settings": cell.settings()})).hexdigest()[:12]


def _distinct(suite: Suite, control: bool | None) -> Iterator[tuple[str, Cell]]:
    """Yield the first cell of each control, in the suite's order."""
    if control is False:
        return
    seen: set[str] = set()
    asked: dict[str, bool] = {}
    for cell, _ in suite.plan():
        if cell.repeat:
            continue  # the control of the cell that it repeats
        model = f"{cell.model} {cell.options!r}"
        if model not in asked:
            asked[model] = wants_control(cell.model, cell.options, control)
        if asked[model] and (key := key_of(cell)) not in seen:
            seen.add(key)
            yield key, cell
