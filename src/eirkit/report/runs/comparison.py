"""Compares two `lacuna run` folders: matches their cells, pairs runs by task and seed, and warns about confounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from msgspec import to_builtins

from eirkit.errors import InputFileError
from eirkit.lacuna.findings.validity import system_remarks
from eirkit.lacuna.tasks.workload import units_of
from eirkit.records.sweeps import CellRow
from eirkit.report.comparison import (
    COSTS,
    Comparison,
    Difference,
    MeasuredPair,
    SettingChange,
    changes_between,
    comparers,
    difference_of,
    group_of,
)
from eirkit.report.runs.folder import (
    AXES,
    FIGURES,
    TASK_AXES,
    Coordinates,
    FigureOf,
    ScoredRun,
    SweepFolder,
    read_sweep,
)
from eirkit.seeds import seeds_text

Match = tuple[ScoredRun, ScoredRun]  # two runs of the same task
OF_LOSS = ("state_supply", "cascade")  # reported only if neither side failed its control


_TASK_SHAPE = ("workload", "n", "m", "lookback", "fan_in", *TASK_AXES)  # what a task is generated from
OF_TASK = ("workload", *TASK_AXES)  # runs that differ in these share at most the graph


def compare_sweeps(a: SweepFolder, b: SweepFolder) -> Comparison:
    """Return the paired differences of two sweeps, b − a.

    Raises:
        InputFileError: no cell matches one of the other sweep, or no two runs have the same task.
    """
    for sweep in (a, b):
        _refuse_unscored(sweep)
    between = contrast_axes(a.rows, b.rows)
    couples = list(_couples(a.rows, b.rows, between))
    if not couples:
        told = ", ".join(_unshared(a.rows, b.rows)) or "each value is there, and not together"
        raise InputFileError(f"no setting of {a.name} has a partner in {b.name} ({told}); run both over the same grid")
    left, right = a.by_cell(), b.by_cell()
    named = Coordinates([one for one, _ in couples])
    parts: list[Difference] = []
    pooled: dict[str, list[MeasuredPair]] = {}
    matches: list[Match] = []
    for one, other in couples:
        matched = _matched(left.get(one.cell, []), right.get(other.cell, []))
        matches += matched
        withheld = OF_LOSS if one.is_withheld or other.is_withheld else ()
        for name in FIGURES:
            if name in withheld:
                continue
            if pairs := _pairs(matched, FIGURES[name]):
                pooled.setdefault(name, []).extend(pairs)
                if group_of(name) not in COSTS:
                    parts.append(difference_of(named.label(one, without=between), name, pairs))
    if not pooled:
        raise InputFileError(f"no run of {a.name} was asked the same task as one of {b.name}; {_why_apart(a, b)}")
    return Comparison(
        "lacuna-run",
        *((a.name, b.name) if a.name != b.name else (str(a.folder), str(b.folder))),
        "runs",
        tuple(
            difference_of("", name, pairs)
            for name, pairs in pooled.items()
            if group_of(name) not in COSTS or any(pair.a or pair.b for pair in pairs)  # no cost that is always zero
        ),
        tuple(parts),
        manifest_changes(a, b),
        tuple(_warnings(a, b, couples, between, matches)),
        contrast=tuple(SettingChange(name, *(str(AXES[name](sweep.rows[0])) for sweep in (a, b))) for name in between),
        units=units_of({str(row.workload) for row in (*a.rows, *b.rows)}),
    )


def _refuse_unscored(sweep: SweepFolder) -> None:
    """Raise InputFileError if a sweep has no scored runs, with the most frequent reason for failure."""
    if sweep.scored:
        return
    worst = max(sweep.failures, key=lambda group: group.runs, default=None)
    why = "none has come to its end" if worst is None else f"{worst.kind}: {worst.message}"
    raise InputFileError(f"no scored runs in {sweep.name} ({why}); run it again, then compare")


def _why_apart(a: SweepFolder, b: SweepFolder) -> str:
    """Return why no runs of the two folders have the same task, and what to do about it."""
    if not {run.seed for run in a.runs} & {run.seed for run in b.runs}:
        return f"use the same seeds ({seeds_text(a.seeds)} / {seeds_text(b.seeds)})"
    apart = [told for told in _unshared(a.rows, b.rows) if told.partition(":")[0] in _TASK_SHAPE]
    return (
        f"the tasks differ in {', '.join(apart)}; run both with the same" if apart else "run both over the same tasks"
    )


def _pairs(matched: Sequence[Match], of: FigureOf) -> list[MeasuredPair]:
    """Return a pair of values of one measure for each task and cell where both sides have one, means over repeats."""
    # Different seeds may share a graph, as in running-max, but are different tasks because their inputs differ.
    tasks: dict[str, list[tuple[float, float]]] = {}
    for x, y in matched:
        if (one := of(x)) is not None and (other := of(y)) is not None:
            tasks.setdefault(f"{x.fingerprint}/{x.seed}", []).append((one, other))
    return [MeasuredPair(task, *map(fmean, zip(*values, strict=True))) for task, values in tasks.items()]


def contrast_axes(a: Sequence[CellRow], b: Sequence[CellRow]) -> tuple[str, ...]:
    """Return the axes on which each folder has a single value and the two values differ."""
    found = []
    for name, of in AXES.items():
        left, right = ({of(row) for row in rows} for rows in (a, b))
        if len(left) == len(right) == 1 and left != right:
            found.append(name)
    return tuple(found)


def _couples(a: Sequence[CellRow], b: Sequence[CellRow], between: Sequence[str]) -> Iterator[tuple[CellRow, CellRow]]:
    """Yield pairs of cells that agree on every axis except `between`; ambiguous matches are left out."""
    sides: tuple[dict[tuple[int | str, ...], list[CellRow]], ...] = ({}, {})
    for side, rows in zip(sides, (a, b), strict=True):
        for row in rows:
            side.setdefault(tuple(of(row) for name, of in AXES.items() if name not in between), []).append(row)
    for place, left in sides[0].items():
        right = sides[1].get(place, [])
        same = [(x, y) for x in left for y in right if x.cell == y.cell]
        if same:
            yield from same
        elif len(left) == len(right) == 1:
            yield left[0], right[0]


def _unshared(a: Sequence[CellRow], b: Sequence[CellRow]) -> list[str]:
    """Return the settings for which the two folders have no value in common, as `m: 16 / 8`."""
    sides = {name: [{of(row) for row in rows} for rows in (a, b)] for name, of in AXES.items()}
    follows_window = all(row.lookback == row.m for row in (*a, *b))
    return [
        f"{name}: {' / '.join(', '.join(sorted(map(str, side))) for side in both)}"
        for name, both in sides.items()
        if all(both) and not both[0] & both[1] and not (name == "lookback" and follows_window)
    ]


def _matched(a: Sequence[ScoredRun], b: Sequence[ScoredRun]) -> list[Match]:
    """Return the pairs of runs of two cells that have the same seed and task graph; each repeat with each."""
    by_seed: dict[int, list[ScoredRun]] = {}
    for run in b:
        by_seed.setdefault(run.seed, []).append(run)
    pairs = [(run, other) for run in a for other in by_seed.get(run.seed, ())]
    return [(one, other) for one, other in pairs if one.fingerprint == other.fingerprint]


def manifest_changes(a: SweepFolder, b: SweepFolder) -> tuple[SettingChange, ...]:
    """Return the settings in which the manifests differ, without fields that follow from other settings."""
    first, second = (to_builtins(sweep.manifest) for sweep in (a, b))
    for document in (first, second):
        # Prompts follow from the other settings; `_warnings` reports whether those of the pairs agree.
        for name in ("plan_sha256", "prompt_sha256", "rules", "places", "cells", "runs"):
            document.pop(name)
    return changes_between(first, second)


def _warnings(
    a: SweepFolder,
    b: SweepFolder,
    couples: Sequence[tuple[CellRow, CellRow]],
    between: Sequence[str],
    matches: Sequence[Match],
) -> Iterator[str]:
    for sweep in (a, b):
        if sweep.scored < sweep.planned:
            yield f"{sweep.name} is not finished: {sweep.scored:,} of {sweep.planned:,} runs are scored"
    alone = [sweep.name for sweep in (a, b) if len(sweep.rows) > len(couples)]
    if alone:
        yield f"settings without a partner in {' and '.join(alone)} are left out"
    if other := [name for name in between if name in OF_TASK]:
        yield f"the tasks are not the same: pairs share their references, and differ in {', '.join(other)}"
    if len(between) > 1:
        yield f"the folders differ in {', '.join(between)} at once, so a difference belongs to none of them alone"
    if a.manifest.eirkit != b.manifest.eirkit:
        yield f"made by different versions of eirkit: {a.manifest.eirkit} and {b.manifest.eirkit}"
    if "memory" not in between and _are_told_otherwise(a, b, matches):
        yield "the prompts are not the same, so part of a difference may be theirs"
    if any(one.panel != other.panel for one, other in couples):
        yield "native and strict panels: one side kept as much as it liked, the other h records; they do not compare"
    without = {row.model for pair in couples for row in pair if row.control is None}
    if without:
        yield f"no full-information control was run for {', '.join(sorted(without))}: causes describe"
    for sweep in (a, b):
        for failed in sweep.excluded:
            yield f"{sweep.name}: {failed.model} on {failed.workload}: {failed.reason}; causes are withheld"
        for judged in sweep.undecided:
            yield f"{sweep.name}: {judged.model} on {judged.workload}: {judged.reason}; until then causes describe"
    yield from system_remarks((row.memory, row.memory_system) for pair in couples for row in pair)


def _are_told_otherwise(a: SweepFolder, b: SweepFolder, matches: Sequence[Match]) -> bool:
    """Return True if paired runs had different rules, or the same rules with differently rendered prompts."""
    if any(one.rules != other.rules for one, other in matches):
        return True
    alike = set(a.manifest.rules) == set(b.manifest.rules)
    return alike and a.manifest.prompt_sha256 != b.manifest.prompt_sha256


@comparers.add("lacuna-run")
def compare_folders(a: Path, b: Path, *, plugins: bool) -> Comparison:
    """Return the comparison of two sweeps."""
    return compare_sweeps(read_sweep(a, plugins=plugins), read_sweep(b, plugins=plugins))
