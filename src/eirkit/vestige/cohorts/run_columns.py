"""Reads the runs of analyzed folders as columns for the cohort analyses.

Texts become integer codes that agree over all folders; a missing value is NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eirkit.vestige.tables import RUN, arrow, read_analysis, read_table

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

_NUMBERS = (
    "trajectory_tokens",
    "tool_turns",
    "peak_demand_tokens",
    "later_used_peak",
    "later_used_peak_files",
    "gold_files",
    "gold_additions",
    "gold_deletions",
    "task_entities",
    "edit_failures",
    "repeated_commands",
    "repeated_edits",
    "submits_after_failed_test",
)
# Facts of a run that come from its log: equal in copies of one run, different between two attempts.
_IDENTITY = (
    "task_id",
    "model",
    "format",
    "resolved",
    "turns",
    "tool_turns",
    "reads",
    "writes",
    "trajectory_tokens",
    "read_tokens",
    "repeat_tokens",
    "later_used_peak",
    "later_used_peak_cut",
    "later_used_peak_files",
)
_TEXTS = ("task_id", "model", "format", "unit", "clipping_group", "goal_source")
_REWORK = _NUMBERS[-4:]


@dataclass(frozen=True, slots=True)
class RunColumns:
    """The runs as columns, with one entry per run."""

    number: Codes  # number of the run, over all folders
    identity: Codes  # equal for copies of one run in two folders
    folder: Codes
    task: Codes
    run_id: NDArray[np.object_]
    task_id: NDArray[np.object_]
    model: NDArray[np.object_]
    format: NDArray[np.object_]
    unit: NDArray[np.object_]
    group: NDArray[np.object_]  # clipping group
    goal_source: NDArray[np.object_]
    failed: Floats  # 1, 0, or NaN for unknown
    covered: Mask  # a goal file was touched
    demand: Floats  # peak, tokens
    tokens: Floats
    tool_turns: Floats
    later_used: Floats  # peak, in the run's unit
    later_used_files: Floats
    gold_files: Floats
    gold_changes: Floats  # additions and deletions
    base_lines: Floats  # of the gold files; NaN unless base lines are given
    rework: Mask  # any of the four anomaly patterns
    task_entities: Floats
    gap_fair: Floats  # longest gap over needed files, tokens
    gap_closed: Floats
    gap_end: Floats
    other_gap_closed: Floats  # the same over the other files: a placebo

    def __len__(self) -> int:
        return len(self.number)

    def at(self, rows: Any) -> RunColumns:
        """Return the runs at these indices, or where a mask holds."""
        return RunColumns(*(getattr(self, field.name)[rows] for field in fields(self)))

    def with_more(self, others: RunColumns) -> RunColumns:
        """Return these runs followed by others."""
        joined: RunColumns = _joined(RunColumns, [self, others])
        return joined


@dataclass(frozen=True, slots=True)
class RereadCells:
    """Exposure and rereads by run, need and distance bin."""

    run: Codes  # the run's number
    needed: Mask
    bin: Codes
    midpoint_tokens: Floats
    exposure_tokens: Floats
    rereads: Floats

    def at(self, rows: Any) -> RereadCells:
        return RereadCells(*(getattr(self, field.name)[rows] for field in fields(self)))


def read_runs(folders: Sequence[Path]) -> tuple[RunColumns, RereadCells]:
    """Return the runs and cells of analyzed folders.

    Raises:
        InputFileError: a folder is no complete analysis.
    """
    runs, cells, before = [], [], 0
    known: dict[Any, int] = {}
    for number, folder in enumerate(folders):
        read_analysis(folder)
        columns = dict.fromkeys([RUN, *_TEXTS, *_NUMBERS, *_IDENTITY, "goal_accessed"])
        table = read_table(folder, "runs", list(columns))
        names = table[RUN].combine_chunks()
        same = codes(zip(*(table[name].to_pylist() for name in (RUN, *_IDENTITY)), strict=True), known)
        runs.append(replace(_columns(folder, table, names, number, before), identity=same))
        cells.append(_cells(folder, names, before))
        before += len(names)
    joined = _joined(RunColumns, runs)
    return replace(joined, task=codes(joined.task_id)), _joined(RereadCells, cells)


def _columns(folder: Path, table: Any, names: Any, number: int, before: int) -> RunColumns:
    numbers = {name: _floats(table[name]) for name in _NUMBERS}
    texts = {name: _texts(table[name]) for name in _TEXTS}
    runs = len(names)
    gaps = _gaps(folder, names, runs)
    return RunColumns(
        number=np.arange(before, before + runs),
        identity=np.zeros(runs, dtype=np.int64),
        folder=np.full(runs, number),
        task=np.zeros(runs, dtype=np.int64),
        run_id=_texts(names),
        task_id=texts["task_id"],
        model=texts["model"],
        format=texts["format"],
        unit=texts["unit"],
        group=texts["clipping_group"],
        goal_source=texts["goal_source"],
        failed=1 - _floats(table["resolved"]),
        covered=_floats(table["goal_accessed"]) == 1,
        demand=numbers["peak_demand_tokens"],
        tokens=numbers["trajectory_tokens"],
        tool_turns=numbers["tool_turns"],
        later_used=numbers["later_used_peak"],
        later_used_files=numbers["later_used_peak_files"],
        gold_files=numbers["gold_files"],
        gold_changes=numbers["gold_additions"] + numbers["gold_deletions"],
        base_lines=np.full(runs, np.nan),
        rework=np.any([numbers[name] > 0 for name in _REWORK], axis=0),
        task_entities=numbers["task_entities"],
        **gaps,
    )


def _gaps(folder: Path, names: Any, runs: int) -> dict[str, Floats]:
    table = read_table(folder, "gaps", [RUN, "needed", "end_censored_tokens", "closed_tokens", "fair_clock_tokens"])
    place, needed = _places(table[RUN], names), _floats(table["needed"]) == 1
    chosen = {
        "gap_fair": ("fair_clock_tokens", needed),
        "gap_closed": ("closed_tokens", needed),
        "gap_end": ("end_censored_tokens", needed),
        "other_gap_closed": ("closed_tokens", ~needed),
    }
    found = {}
    for name, (column, rows) in chosen.items():
        found[name] = np.full(runs, np.nan)
        found[name][place[rows]] = _floats(table[column])[rows]
    return found


def _cells(folder: Path, names: Any, before: int) -> RereadCells:
    columns = ["needed", "bin", "midpoint_tokens", "exposure_tokens", "rereads"]
    table = read_table(folder, "exposures", [RUN, *columns])
    needed, place, *rest = (_floats(table[name]) for name in columns)
    return RereadCells(_places(table[RUN], names) + before, needed == 1, place.astype(np.int64), *rest)


def _places(column: Any, names: Any) -> Codes:
    arrow()
    import pyarrow.compute as compute

    found = compute.index_in(column.combine_chunks(), value_set=names)
    places: Codes = np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)
    return places


def _floats(column: Any) -> Floats:
    flat = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    values: Floats = np.asarray(flat.cast("float64").to_numpy(zero_copy_only=False), dtype=np.float64)
    return values


def _texts(column: Any) -> NDArray[np.object_]:
    return np.array(column.to_pylist(), dtype=object)


def _joined(kind: Any, parts: Sequence[Any]) -> Any:
    return kind(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(kind)))


def codes(labels: Iterable[Any], known: dict[Any, int] | None = None) -> Codes:
    """Return an integer for each distinct label in order of appearance; labels in `known` keep theirs."""
    known = {} if known is None else known
    return np.array([known.setdefault(label, len(known)) for label in labels], dtype=np.int64)
