"""Runs the capability control of a sweep and stores its verdicts.

Each model and task of a suite has one control, whatever the number of capacities and conditions. Its runs are in the
database of the sweep, its verdicts in `control.json`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace

from eirkit.lacuna.runs.capability import GATE, measure_gates, wants_control
from eirkit.lacuna.runs.cells import Cell, CellPlan
from eirkit.lacuna.runs.runner import NOT_RUN, Progress, Runner
from eirkit.lacuna.runs.suite import Suite
from eirkit.records.settings import control_key
from eirkit.records.sweeps import ControlVerdict, read_verdicts, write_verdicts

_SETTINGS = {"windows": list(GATE.windows), "seeds": list(GATE.seeds), "threshold": GATE.threshold}


def control_plan(suite: Suite, control: bool | None, settled: Container[str] = ()) -> CellPlan:
    """Return the plan of the control, without the cells that already have a final verdict."""
    wanted = [cell for key, cell in _distinct(suite, control) if key not in settled]
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
    folder = sweep.store.folder
    rows = {verdict.key: verdict for verdict in read_verdicts(folder) if not verdict.failures}
    if wanted.keys() <= rows.keys():
        return ()
    sweep.plan(suite)  # before the control, some of whose cells may be cells of the sweep too
    now = sweep.progress(suite)
    plan = control_plan(suite, control, rows)

    def show(own: Progress) -> None:
        part = f"control {own.runs}/{own.planned_runs}"
        sweep.observe(replace(now, spent_usd=own.spent_usd, control=part))

    runner = sweep.control(show)
    try:
        with sweep.budget.part("control"):
            ended = runner.run(plan)
    finally:
        for key, cell in wanted.items():
            if key not in rows:
                (found,) = measure_gates([cell.model], cell.task, cell.options, runner.results).values()
                if NOT_RUN not in found.failures:
                    rows[key] = ControlVerdict(key, found.standing(), found.failures)
        write_verdicts(folder, rows.values())
    return tuple(f"the control: {reason}" for reason in ended.stopped)


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
        if asked[model] and (key := control_key(cell.setting)) not in seen:
            seen.add(key)
            yield key, cell
