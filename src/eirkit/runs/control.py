"""The full-information control of a sweep: which of its cells may carry claims about lost information.

Each model and task of a suite is run once where nothing is missing, whatever the number of capacities and conditions.
The trials and their verdicts are kept in a folder of their own inside the sweep's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from eirkit.agents.exchange import canonical
from eirkit.records import read_document
from eirkit.runs.budget import Budget
from eirkit.runs.cells import Cell
from eirkit.runs.claims import GATE, gate, wants_control
from eirkit.runs.store import RUNS, SUMMARY, read_failures, scan_runs
from eirkit.runs.suite import Suite
from eirkit.runs.trial import Bench, Workbench
from eirkit.runs.trial_store import TrialStore

FOLDER = "control"
_SETTINGS = {"windows": list(GATE.windows), "seeds": list(GATE.seeds), "threshold": GATE.threshold}

Standing = Mapping[str, Any]  # accuracy, passes, reason
Observer = Callable[[str, int, int], None]  # model, trials of it that ended, of how many


def run_controls(suite: Suite, control: bool | None, purse: Budget, folder: Path, observe: Observer) -> None:
    """Run what is left of the control, and write down which cells pass.

    Raises:
        SpendCapReached: what came to its end is written down.
    """
    wanted = dict(_distinct(suite, control))
    if not wanted:
        return
    rows: list[dict[str, Any]] = []
    names = (name for cell in wanted.values() for name in (cell.task.workload, cell.model))
    with TrialStore(folder / FOLDER, "control", _SETTINGS, names=names, prices=purse.funds.prices) as store:
        try:
            for key, cell in wanted.items():

                def note(ended: int, planned: int, model: str = cell.model) -> None:
                    observe(model, ended, planned)

                bench = Workbench(purse, store, note)
                rows.append({"key": key, **gate(cell.model, cell.task, cell.options, bench).as_json()})
        finally:
            store.summarise({"rows": rows})


def rehearse_controls(suite: Suite, control: bool | None, bench: Bench) -> None:
    """Run the whole control on a bench that counts."""
    for _, cell in _distinct(suite, control):
        gate(cell.model, cell.task, cell.options, bench)


def read_standings(folder: Path) -> dict[str, Standing]:
    """Return the verdicts in a sweep's folder by `key_of` their cells; nothing where no control was run."""
    path = folder / FOLDER / SUMMARY
    rows = read_document(path, "control/1")["rows"] if path.exists() else []
    return {row["key"]: {name: row[name] for name in ("accuracy", "passes", "reason")} for row in rows}


def open_failures(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the last failure of each trial of the control that has not come to its end since, by its run."""
    found = {record["run"]: record for record in read_failures(folder / FOLDER)}
    if found:
        for record, _ in scan_runs(folder / FOLDER / RUNS):
            found.pop(record["run"], None)
    return found


def key_of(cell: Cell) -> str:
    """Return what cells share that have the same control: all but window, lookback, seed and access."""
    task = {**replace(cell.task, m=1, lookback=None, seed=0).as_json(), "m": None, "lookback": None}
    return sha256(canonical({"task": task, "model": cell.model, "settings": cell.settings()})).hexdigest()[:12]


def _distinct(suite: Suite, control: bool | None) -> Iterator[tuple[str, Cell]]:
    """Yield the first cell of each control, in the suite's order."""
    seen: set[str] = set()
    asked: dict[str, bool] = {}
    for cell, _ in suite.plan():
        model = f"{cell.model} {cell.options!r}"
        if model not in asked:
            asked[model] = wants_control(cell.model, cell.options, control)
        if asked[model] and (key := key_of(cell)) not in seen:
            seen.add(key)
            yield key, cell
