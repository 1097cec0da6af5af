"""A memory system under test: its conformance, and its accuracy on a workload, for whoever tests one regularly.

Names and settings come in; what held, or accuracies by seed, go out. Runs are a sweep like any other, in a folder that
is gone afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eirkit.bridges.regression import Case
from eirkit.lacuna.serving.funds import Funds
from eirkit.lacuna.stores.making import MemoryPlan, check_plan, make_memory
from eirkit.lacuna.sweeps.attempt import cause_of
from eirkit.lacuna.sweeps.cells import Cell
from eirkit.lacuna.sweeps.experiment import start_sweep
from eirkit.lacuna.sweeps.run_store import RUNS, read_failures, scan_runs
from eirkit.lacuna.sweeps.suite import Suite, read_suite
from eirkit.testing import Conformance, check_memory

Settings = Mapping[str, Any]


def conform(name: str, settings: Settings) -> Conformance:
    """Return which requirements a memory system keeps.

    Raises:
        AssertionError: it does not keep all of them.
    """
    plan = MemoryPlan(name, settings)
    check_plan(plan)
    return check_memory(lambda: make_memory(plan), seconds=plan.seconds)


def run_case(name: str, workload: str, settings: Settings, grid: Settings, cap_usd: float | None = None) -> Case:
    """Run the seeds of one case.

    Args:
        grid: the other keys of a suite: model, seeds, h, m, n.

    Raises:
        AssertionError: the memory system itself failed.
    """
    suite = suite_of(name, workload, settings, grid)
    with TemporaryDirectory(prefix="eirkit-") as scratch:
        start_sweep(suite, Path(scratch), Funds(cap_usd=cap_usd), control=False)
        return _case(name, workload, suite, Path(scratch))


def suite_of(name: str, workload: str, settings: Settings, grid: Settings) -> Suite:
    """Return the sweep of one case, checked: UsageError where the system or the workload cannot be had."""
    named = {"workload": workload, "memory": name, "memory_options": {name: dict(settings)}, "texts": False}
    return read_suite({**grid, **named})


def _case(name: str, workload: str, suite: Suite, folder: Path) -> Case:
    records, failures = [record for record, _ in scan_runs(folder / RUNS)], list(read_failures(folder))
    for failure in failures:
        if failure["kind"] == "memory":
            raise AssertionError(f"the memory system failed at seed {failure['seed']}: {_told(failure['message'])}")
    errors: Counter[str] = Counter()
    for record in records:
        errors.update(record["score"]["errors"])
    lost = Counter(str(failure["message"]) for failure in failures)
    ((cell, _),) = suite.plan()
    runs = {record["seed"]: record["score"]["correct"] / max(1, record["score"]["steps"]) for record in records}
    return Case(name, workload, _conditions(cell), runs, dict(errors), dict(lost))


def _told(message: str) -> str:
    """Return why a run failed, ending in what to do here: there is no folder to resume or to begin anew."""
    cause = cause_of(message)
    return message if cause == message else f"{cause}; correct it and run the test again"


def _conditions(cell: Cell) -> dict[str, Any]:
    """Return what must be the same for runs to pair; the system's own settings may have been improved since."""
    known = cell.as_json()
    access = {key: value for key, value in known["access"].items() if key not in ("memory", "memory_settings")}
    return {"task": known["task"], "model": known["model"], "settings": known["settings"], **access}
