"""What `eirkit choose` ranks: the candidates' names, what they differ in, and the tasks that all of them were given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eirkit.report.runs.comparison import AXES, FIGURES
from eirkit.report.runs.folder import RunFacts, SweepFolder

Row = Mapping[str, Any]
Placed = Sequence[tuple[SweepFolder, Row]]  # the cells, each with its sweep
FOLDER = "folder"
_PREFERRED = ("memory", "model")  # what people choose between, if it varies


@dataclass(frozen=True, slots=True)
class Case:
    """One task in one cell, for which every candidate has a value."""

    task: str
    place: Row  # its values on the axes other than the one that is ranked


def default_axis(placed: Placed) -> str:
    varying = [name for name, of in AXES.items() if len({of(row) for _, row in placed}) > 1]
    preferred = [name for name in _PREFERRED if name in varying]
    return (preferred or varying or [FOLDER])[0]


class Names:
    """Names the candidate of a cell; settings of a memory are added where one memory has several."""

    def __init__(self, placed: Placed, by: str) -> None:
        self._by = by
        settings: dict[str, set[str]] = {}
        for sweep, row in placed:
            settings.setdefault(self._plain(sweep, row), set()).add(settings_of(row))
        self._several = {name for name, found in settings.items() if by == "memory" and len(found) > 1}
        self.all = tuple(dict.fromkeys(self.of(sweep, row) for sweep, row in placed))

    def of(self, sweep: SweepFolder, row: Row) -> str:
        """Return the candidate that a cell belongs to."""
        name = self._plain(sweep, row)
        return f"{name} ({settings_of(row) or 'default'})" if name in self._several else name

    def _plain(self, sweep: SweepFolder, row: Row) -> str:
        return str(sweep.folder) if self._by == FOLDER else str(AXES[self._by](row))


def settings_of(row: Row) -> str:
    """Return the profile of a memory and its other settings."""
    settings = dict(row.get("memory_settings") or {})
    profile = ((row.get("memory_system") or {}).get("profile") or {}).get("name") or settings.get("profile")
    for name in ("profile", "timeout_seconds"):  # how long a call may take changes no result
        settings.pop(name, None)
    own = [f"{name}={value}" for name, value in sorted(settings.items())]
    return ", ".join([*filter(None, [profile]), *own])


def confounded_axes(placed: Placed, names: Names, by: str) -> tuple[str, ...]:
    """Return the other axes on which every candidate has one value, and not all the same."""
    found = []
    for name, of in AXES.items():
        values: dict[str, set[Any]] = {}
        for sweep, row in placed:
            values.setdefault(names.of(sweep, row), set()).add(of(row))
        apart = len({value for one in values.values() for value in one}) > 1
        if name != by and apart and all(len(one) == 1 for one in values.values()):
            found.append(name)
    return tuple(found)


def shared_cases(
    placed: Placed, names: Names, by: str, confounded: Sequence[str], measure: str
) -> tuple[list[Case], dict[str, list[list[RunFacts]]], int]:
    """Return the cases that all candidates share, their runs in the same order, and how many cases are left out."""
    axes = [name for name in AXES if name != by and name not in confounded]
    runs = {id(sweep): sweep.by_cell() for sweep, _ in placed}
    table: dict[tuple[Any, ...], tuple[Case, dict[str, list[RunFacts]]]] = {}
    for sweep, row in placed:
        place = {name: AXES[name](row) for name in axes}
        for run in runs[id(sweep)].get(row["cell"], ()):
            if FIGURES[measure](run) is None:
                continue
            task = f"{run.fingerprint}/{run.seed}"
            _, own = table.setdefault((task, *place.values()), (Case(task, place), {}))
            own.setdefault(names.of(sweep, row), []).append(run)
    shared = [(case, own) for case, own in table.values() if len(own) == len(names.all)]
    found = {name: [own[name] for _, own in shared] for name in names.all}
    return [case for case, _ in shared], found, len(table) - len(shared)


def without_figure(placed: Placed, names: Names, measure: str) -> list[str]:
    """Return the candidates none of whose runs has a figure."""
    runs: dict[str, list[RunFacts]] = {name: [] for name in names.all}
    for sweep, row in placed:
        runs[names.of(sweep, row)] += [run for run in sweep.runs if run.cell == row["cell"]]
    return [name for name, own in runs.items() if all(FIGURES[measure](run) is None for run in own)]


def with_figures(placed: Placed, by: str, measure: str) -> tuple[Placed, Names, list[str]]:
    """Return the cells without the candidates that have no figure, their names, and who is left out.

    Nobody is left out if nobody has a figure.
    """
    names = Names(placed, by)
    absent = without_figure(placed, names, measure)
    if not absent or len(absent) == len(names.all):
        return placed, names, []
    kept = [(sweep, row) for sweep, row in placed if names.of(sweep, row) not in absent]
    return kept, Names(kept, by), absent
