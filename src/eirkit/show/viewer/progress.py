"""Computes the progress of a sweep or evidence command from its files: planned, scored and failed runs, and cost.

Nothing is locked, so that a command can start writing to the folder at any time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from eirkit.errors import EirkitError
from eirkit.findings.statistics import pool
from eirkit.records import read_document
from eirkit.runs.manifest import FILE, PLAN_SCHEMA, read_manifest
from eirkit.runs.store import SUMMARY, read_failures
from eirkit.show.viewer.folders import ViewedFolder, changed_at
from eirkit.show.viewer.run_index import RunIndex

State = Literal["running", "complete", "waiting"]
NAMES = ("workload", "model", "condition", "policy", "memory", "arm", "h")  # columns that identify a cell
QUIET_SECONDS = 30.0  # without a write before a folder is no longer called running


@dataclass(frozen=True, slots=True)
class FolderProgress:
    """The progress of one folder at one moment."""

    kind: str  # sweep, or the evidence command
    state: State  # waiting: not complete, and nothing was written for a while
    runs: int  # runs that ended and are scored
    planned_runs: int | None  # None if the folder does not record it
    planned_cells: int | None
    lost: int  # runs whose last attempt failed for infrastructure reasons
    spent_usd: float | None
    read_share: float  # share of the file that was read so far
    skipped: int  # records that are not valid runs

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def progress_of(place: ViewedFolder, index: RunIndex, now: float) -> FolderProgress:
    """Return the progress of a folder; `now` is compared with file modification times."""
    planned, cells, kind = _planned(place.path, place.kind)
    lost = lost_runs(place.path, index)
    whole = index.complete and (
        (planned is not None and len(index) >= planned) or (planned is None and (place.path / SUMMARY).exists())
    )
    quiet = now - changed_at(place) > QUIET_SECONDS
    costs = index.column("cost_usd")
    return FolderProgress(
        kind=kind,
        state="complete" if whole else "waiting" if quiet else "running",
        runs=len(index),
        planned_runs=planned,
        planned_cells=cells,
        lost=len(lost),
        spent_usd=sum(float(cost) for cost in costs if cost is not None) if len(index) else None,
        read_share=index.read_share,
        skipped=index.skipped,
    )


def lost_runs(folder: Path, index: RunIndex) -> dict[str, dict[str, Any]]:
    """Return the last failure of each run that was not scored later."""
    found: dict[str, dict[str, Any]] = {}
    for record in read_failures(folder):
        found[record["run"]] = record
    return {run: record for run, record in found.items() if not index.has(run)}


def failure_groups(lost: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return failed runs grouped by reason, the most frequent first."""
    names = ("workload", "model", "condition", "kind", "message")
    tally = Counter(tuple(str(record.get(name, "")) for name in names) for record in lost.values())
    return [{**dict(zip(names, key, strict=True)), "runs": runs} for key, runs in tally.most_common(50)]


def cell_rows(index: RunIndex) -> list[dict[str, Any]]:
    """Return one row for each cell with a scored run, pooled as in the summary of a sweep."""
    by_cell: dict[str, list[int]] = {}
    for place, cell in enumerate(index.cells):
        if cell and index.scores[place] is not None:
            by_cell.setdefault(cell, []).append(place)
    table = index.table()
    names = [one.key for one in table.fields if one.key in NAMES]
    rows = []
    for cell, places in by_cell.items():
        pooled = pool([score for place in places if (score := index.scores[place]) is not None])
        rows.append({"cell": cell, **{name: index.column(name)[places[0]] for name in names}, **pooled.as_json()})
    return rows


def _planned(folder: Path, kind: str) -> tuple[int | None, int | None, str]:
    if kind == "sweep":
        manifest = read_manifest(folder)
        return manifest.runs, manifest.cells, "sweep"
    try:
        told = read_document(folder / FILE, PLAN_SCHEMA)
        return told.get("runs"), told.get("cells"), str(told["command"])
    except (EirkitError, KeyError):
        return None, None, "evidence"
