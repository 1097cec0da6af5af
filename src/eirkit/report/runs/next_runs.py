"""The command that runs the leaders of a ranking alone, on as many new tasks as would tell them apart."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any

from eirkit.lacuna.findings.ranking import MOST_TASKS
from eirkit.lacuna.runs.command_line import sweep_command
from eirkit.lacuna.runs.suite import AXES
from eirkit.lacuna.tasks.workload import find_workload
from eirkit.report.runs.folder import SweepFolder

Row = Mapping[str, Any]
MORE = "-more"  # added to the name of a folder
LEADERS = "leaders"  # the folder of a run of what several folders hold
MOST_NAMES = 1_000_000  # more than anybody keeps beside each other
_MERGED = ("memory", "memory_options", "seeds")  # what grids may differ in and still be run as one


def command_for(sweeps: Sequence[SweepFolder], leading: Sequence[tuple[SweepFolder, Row]], seeds: int | None) -> str:
    """Return the command, or nothing if there is no single one.

    New seeds are used, because the leaders were chosen by the results of the old ones.

    Args:
        leading: the cells of the leaders, each with its sweep.
        seeds: how many would tell them apart; None if that is unknown.
    """
    own = list({id(sweep): sweep for sweep, _ in leading}.values())
    grid = _merged(own)
    if grid is None or seeds is None or seeds > MOST_TASKS:
        return ""
    if not all(":" not in name and find_workload(name).endless for name in grid["workload"]):
        return ""
    first = max(seed for sweep in sweeps for seed in sweep.seeds) + 1
    restricted = {**_restricted(grid, [row for _, row in leading]), "seeds": f"{first}:{first + seeds}"}
    manifest = replace(own[0].manifest, suite={**own[0].manifest.suite, "grid": [restricted]})
    return sweep_command(manifest, f"{own[0].name}{MORE}" if len(own) == 1 else LEADERS)


def seconds_of(leading: Sequence[tuple[SweepFolder, Row]], seeds: int) -> float | None:
    """Return how long the calls of the memories and models of the leaders would take; None if they took no time."""
    runs = [run for sweep, row in leading for run in sweep.by_cell().get(row["cell"], ())]
    timed = [run.memory or {} for run in runs]
    taken = sum(one.get("write_seconds", 0.0) + one.get("search_seconds", 0.0) for one in timed)
    taken += sum(run.usage.get("latency_seconds") or 0.0 for run in runs)
    return taken * len(leading) * seeds / len(runs) if taken else None


def _merged(sweeps: Sequence[SweepFolder]) -> dict[str, Any] | None:
    """Return one grid with the memories of all sweeps; None if they differ in more than that."""
    grids = [grid for sweep in sweeps for grid in sweep.manifest.suite["grid"]]
    first = grids[0]
    if len(grids) == 1:
        return dict(first)
    others = {str({name: value for name, value in grid.items() if name not in _MERGED}) for grid in grids}
    how = {(sweep.manifest.suite["texts"], sweep.manifest.control) for sweep in sweeps}
    if len(grids) != len(sweeps) or len(others) > 1 or len(how) > 1 or not all("memory" in grid for grid in grids):
        return None
    options: dict[str, Any] = {}
    for grid in grids:
        for name in grid["memory"]:
            settings = grid["memory_options"].get(name, {})
            if options.setdefault(name, settings) != settings:
                return None
    given = {name: settings for name, settings in options.items() if settings}
    return {**first, "memory": list(options), "memory_options": given}


def _restricted(grid: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """Return a grid without the values that none of the rows has."""
    kept = dict(grid)
    for name in AXES:
        own = {row.get(name) for row in rows}
        if isinstance(grid.get(name), list) and None not in own:
            kept[name] = [value for value in grid[name] if value in own] or grid[name]
    named = kept.get("memory", ())
    kept["memory_options"] = {name: one for name, one in grid["memory_options"].items() if name in named}
    return kept


def beside(command: str, folder: Path) -> str:
    """Return the command with a folder to write to that is beside another and does not exist yet."""
    *words, name = shlex.split(command)
    names = (folder.with_name(f"{name}{'' if n == 1 else f'-{n}'}") for n in count(1))
    free = next(path for path in islice(names, MOST_NAMES) if not path.exists())
    return shlex.join([*words, str(free)])
