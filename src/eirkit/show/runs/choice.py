"""`eirkit choose`: ranks the memories, models or other settings of sweeps on the tasks that all of them were given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from eirkit.errors import InputFileError, UsageError
from eirkit.findings.fates import LOST, pool_fates
from eirkit.findings.intervals import FEWEST_CLUSTERS
from eirkit.findings.ranking import MOST_TASKS, Ranking, rank
from eirkit.findings.validity import doubt_of, system_remarks
from eirkit.measures import Measure
from eirkit.show.differences import measure_of
from eirkit.show.folders import kind_of, maker_of, records_of
from eirkit.show.runs.command_line import sweep_command
from eirkit.show.runs.figures import AXES, FIGURES
from eirkit.show.runs.folder import RunFacts, SweepFolder, read_sweep
from eirkit.show.table import counted, listed

Row = Mapping[str, Any]
FOLDER = "folder"
ABILITY = "ability"  # of questions in words
BY = (*AXES, FOLDER)
_PREFERRED = ("memory", "model")  # what people choose between, if it varies
_DETAILS = ("used", "search_ms", "bytes", "memory_cost_usd", "cost_usd")


@dataclass(frozen=True, slots=True)
class Case:
    """One task in one cell, for which every candidate has a value."""

    task: str
    place: Row  # its values on the axes other than the one that is ranked


@dataclass(frozen=True, slots=True)
class Choice:
    """The ranking of candidates, overall and for each value of the settings that vary beside them."""

    by: str
    measure: Measure
    ranking: Ranking
    parts: Mapping[str, Mapping[str, Ranking]]  # by axis, then by its value
    details: Mapping[str, Mapping[str, float | None]]  # by candidate: figures over the same cases
    warnings: tuple[str, ...]
    systems: tuple[str, ...]  # how each memory system was used, and what it warned of
    again: str  # the command that runs more seeds; empty if the folders were made by different commands

    def as_json(self) -> dict[str, Any]:
        return {
            "by": self.by,
            "measure": self.measure.id,
            **self.ranking.as_json(),
            "parts": {axis: {value: one.as_json() for value, one in of.items()} for axis, of in self.parts.items()},
            "details": {name: dict(found) for name, found in self.details.items()},
            "warnings": list(self.warnings),
            "systems": list(self.systems),
            "again": self.again,
        }


def choose(sweeps: Sequence[SweepFolder], by: str | None = None, measure: str = "accuracy") -> Choice:
    """Return the ranking of what the sweeps tried.

    Args:
        by: the setting whose values are the candidates; by default the memory, else the model, else what varies first.

    Raises:
        InputFileError: nothing varies, or the candidates were given no task in common.
    """
    placed = [(sweep, row) for sweep in sweeps for row in sweep.rows if row["scored"]]
    if not placed:
        raise InputFileError("no run is scored in these folders; finish a sweep with `eirkit lacuna run --resume DIR`")
    by = by or _default_axis(placed)
    names = _Names(placed, by)
    if len(names.all) < 2:
        only = f"{by} has one value, {names.all[0]}"
        raise InputFileError(f"there is nothing to choose between: {only}; give another --by or more folders")
    confounded = _confounded(placed, names, by)
    cases, found, left_out = _cases(placed, names, by, confounded, measure)
    if not cases:
        raise InputFileError(
            f"no task was given to all of {listed(names.all)}; run them with the same seeds, tasks and h"
        )
    declared, of = measure_of(measure), FIGURES[measure]
    values = {name: [_mean(of, runs) for runs in found[name]] for name in names.all}
    share_of = declared.unit == "share"
    less = declared.better == "less"
    ranking = rank(values, [case.task for case in cases], less_is_better=less, share=share_of)
    return Choice(
        by,
        declared,
        ranking,
        {
            **_parts(cases, values, less, share_of),
            **({ABILITY: parts} if measure == "accuracy" and (parts := _by_ability(cases, found)) else {}),
        },
        {name: details_of([run for runs in found[name] for run in runs]) for name in names.all},
        tuple(_warnings(sweeps, placed, left_out, confounded, by)),
        system_remarks(row for _, row in placed),
        _more_seeds(sweeps, ranking),
    )


def choose_folders(
    folders: Sequence[Path], by: str | None, measure: str, *, plugins: bool = False
) -> tuple[Choice, list[SweepFolder]]:
    """Return the ranking of what the sweeps in some folders tried, and the sweeps.

    Raises:
        InputFileError: a folder is not one of `lacuna run`, or nothing can be ranked.
    """
    for folder in folders:
        if kind_of(folder) != "lacuna-run":
            raise InputFileError(f"{folder} is of `{maker_of(folder)}`; give folders of `lacuna run`")
    with records_of(*folders, plugins=plugins):
        sweeps = [read_sweep(folder, plugins=plugins) for folder in dict.fromkeys(folders)]
        return choose(sweeps, by, measure), sweeps


def choice_in(sweep: SweepFolder) -> Choice | None:
    """Return the ranking of the memory systems of a sweep; None if it has fewer than two with tasks in common."""
    if len({(row["memory"], _settings(row)) for row in sweep.rows if row["scored"] and row["memory"] is not None}) < 2:
        return None
    try:
        return choose([sweep], "memory")
    except InputFileError:
        return None


def _default_axis(placed: Sequence[tuple[SweepFolder, Row]]) -> str:
    varying = [name for name, of in AXES.items() if len({of(row) for _, row in placed}) > 1]
    preferred = [name for name in _PREFERRED if name in varying]
    return (preferred or varying or [FOLDER])[0]


class _Names:
    """Names the candidate of a cell; settings of a memory are added where one memory has several."""

    def __init__(self, placed: Sequence[tuple[SweepFolder, Row]], by: str) -> None:
        self._by = by
        settings: dict[str, set[str]] = {}
        for sweep, row in placed:
            settings.setdefault(self._plain(sweep, row), set()).add(_settings(row))
        self._several = {name for name, found in settings.items() if by == "memory" and len(found) > 1}
        self.all = tuple(dict.fromkeys(self.of(sweep, row) for sweep, row in placed))

    def of(self, sweep: SweepFolder, row: Row) -> str:
        name = self._plain(sweep, row)
        return f"{name} ({_settings(row) or 'default'})" if name in self._several else name

    def _plain(self, sweep: SweepFolder, row: Row) -> str:
        return str(sweep.folder) if self._by == FOLDER else str(AXES[self._by](row))


def _settings(row: Row) -> str:
    """Return the profile of a memory and its other settings."""
    settings = dict(row.get("memory_settings") or {})
    profile = ((row.get("memory_system") or {}).get("profile") or {}).get("name") or settings.get("profile")
    for name in ("profile", "timeout_seconds"):  # how long a call may take changes no result
        settings.pop(name, None)
    own = [f"{name}={value}" for name, value in sorted(settings.items())]
    return ", ".join([*filter(None, [profile]), *own])


def _confounded(placed: Sequence[tuple[SweepFolder, Row]], names: _Names, by: str) -> tuple[str, ...]:
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


def _cases(
    placed: Sequence[tuple[SweepFolder, Row]], names: _Names, by: str, confounded: Sequence[str], measure: str
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


def _mean(of: Callable[[RunFacts], float | None], runs: Sequence[RunFacts]) -> float:
    return fmean(value for run in runs if (value := of(run)) is not None)


def _parts(
    cases: Sequence[Case], values: Mapping[str, Sequence[float]], less: bool, share_of: bool
) -> dict[str, dict[str, Ranking]]:
    """Return a ranking for each value of every setting that varies beside the candidates."""
    found: dict[str, dict[str, Ranking]] = {}
    for axis in cases[0].place:
        levels = sorted({case.place[axis] for case in cases}, key=lambda value: (isinstance(value, str), value))
        if len(levels) < 2 or None in levels:
            continue
        for level in levels:
            chosen = [index for index, case in enumerate(cases) if case.place[axis] == level]
            part = {name: [of[index] for index in chosen] for name, of in values.items()}
            tasks = [cases[index].task for index in chosen]
            ranking = rank(part, tasks, less_is_better=less, share=share_of, rankings=len(levels))
            found.setdefault(axis, {})[str(level)] = ranking
    return found


def _by_ability(cases: Sequence[Case], found: Mapping[str, Sequence[Sequence[RunFacts]]]) -> dict[str, Ranking]:
    """Return a ranking for each ability that questions in words test."""
    known = dict.fromkeys(name for runs in next(iter(found.values())) for run in runs for name in run.abilities)
    rankings = {}
    for ability in sorted(known):
        asked = [i for i in range(len(cases)) if all(_questions(of[i], ability)[1] for of in found.values())]
        part = {
            name: [right / n for right, n in (_questions(of[i], ability) for i in asked)] for name, of in found.items()
        }
        if asked:
            rankings[ability] = rank(part, [cases[i].task for i in asked], rankings=len(known))
    return rankings


def _questions(runs: Sequence[RunFacts], ability: str) -> tuple[int, int]:
    """Return how many questions of an ability were answered correctly, and how many there were."""
    pairs = [run.abilities.get(ability, (0, 0)) for run in runs]
    return sum(right for right, _ in pairs), sum(n for _, n in pairs)


def details_of(runs: Sequence[RunFacts]) -> dict[str, float | None]:
    """Return what is shown beside the measure: records returned and used, lost, latency, size and money."""
    found: dict[str, float | None] = {}
    for name in _DETAILS:
        known = [value for run in runs if (value := FIGURES[name](run)) is not None]
        found[name] = fmean(known) if known else None
    memories = [run.memory for run in runs if run.memory is not None]
    fates = pool_fates(one["fates"] for one in memories)
    found["lost"] = sum(fates.of(fate) or 0.0 for fate in LOST) if fates.runs else None
    floors = [one["floor"] for one in memories if one.get("floor")]
    for name in ("held_bits", "needed_bits"):
        known = [float(one[name]) for one in floors if one.get(name) is not None]
        found[name] = max(known) if known else None
    return found


def _warnings(
    sweeps: Sequence[SweepFolder],
    placed: Sequence[tuple[SweepFolder, Row]],
    left_out: int,
    confounded: Sequence[str],
    by: str,
) -> Iterator[str]:
    for sweep in sweeps:
        if sweep.scored < sweep.planned:
            yield f"{sweep.name} is not finished: {sweep.scored:,} of {sweep.planned:,} runs are scored"
    if left_out:
        yield f"{counted(left_out, 'case')} that not every candidate was given, or has no value for, are left out"
    if confounded:
        yield f"the candidates also differ in {listed(list(confounded))}, so a difference may be due to that"
    panels = {row["panel"] for _, row in placed if row["memory"] is not None}
    if by == "memory" and (
        len(panels) > 1 or (panels == {"native"} and any(row["memory"] is None for _, row in placed))
    ):
        yield "some candidates kept as much as they liked and others h records; `--panel strict` makes them compare"
    versions = sorted({sweep.manifest.eirkit for sweep in sweeps})
    if len(versions) > 1:
        yield f"the folders were made by different versions of eirkit: {listed(versions)}"
    for _, row in placed:
        if doubt := doubt_of(row):
            yield f"{AXES['memory'](row)}, {row['model']}, h = {row['h']}: {doubt}"


def _more_seeds(sweeps: Sequence[SweepFolder], ranking: Ranking) -> str:
    """Return the command that would separate the leaders, if the candidates are in one folder and it can be said."""
    wanted = wanted_tasks(ranking)
    if len(sweeps) != 1 or wanted is None or wanted > MOST_TASKS:
        return ""
    (sweep,) = sweeps
    each = max(1, ranking.tasks // max(1, len(sweep.seeds)))  # tasks of different workloads with one seed
    seeds = max(-(-wanted // each), len(sweep.seeds) + 1)
    grids = [{**grid, "seeds": f"0:{-(-seeds // 10) * 10}"} for grid in sweep.manifest.suite["grid"]]
    manifest = replace(sweep.manifest, suite={**sweep.manifest.suite, "grid": grids})
    return sweep_command(manifest, f"{sweep.name}-more") if len(grids) == 1 else ""


def wanted_tasks(ranking: Ranking) -> int | None:
    """Return how many tasks would tell the two first apart; None if they are apart or it cannot be said."""
    if ranking.tasks < FEWEST_CLUSTERS:
        return 2 * FEWEST_CLUSTERS
    if len(ranking.leaders) < 2:
        return None
    return ranking.contrast(*ranking.leaders[:2]).wanted


def check_measure(name: str) -> str:
    """Return the identifier of a measure that candidates can be ranked by.

    Raises:
        UsageError: there is no such measure, or neither direction of it is better.
    """
    able = [key for key in FIGURES if measure_of(key).better is not None]
    if name not in able:
        raise UsageError(f"candidates cannot be ranked by {name!r}; known: {', '.join(able)}")
    return name
