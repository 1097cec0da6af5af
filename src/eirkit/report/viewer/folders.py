"""Finds the sweeps, evidence folders, analyses and compaction benchmarks below a folder, their changes and progress.

To find folders, only the first bytes of the documents that identify them are read. Links out of the given folder are
not followed. Nothing is locked, so that a command can start writing to a folder at any time.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from eirkit.errors import EirkitError, InputFileError, UsageError
from eirkit.folders import open_ordinary
from eirkit.lacuna.findings.measures import RUN_MEASURES
from eirkit.lacuna.findings.statistics import pool
from eirkit.lacuna.runs.cells import STRICT
from eirkit.lacuna.runs.manifest import FILE, PLAN_SCHEMA, read_manifest
from eirkit.lacuna.runs.store import FAILURES, RUNS, SUMMARY, read_failures
from eirkit.records.lines import read_document
from eirkit.report.table import counted
from eirkit.report.viewer.run_index import RunIndex
from eirkit.vestige.measures import LOG_MEASURES
from eirkit.vestige.tables import FILE as ANALYSIS
from eirkit.vestige.tables import is_analysis, read_analysis

Kind = Literal["sweep", "evidence", "analysis", "compaction"]
MANIFEST = "manifest.json"
# The folder of `vestige compact`, as `eirkit_coding.compaction` writes it.
BENCHMARK, BENCHMARK_SCHEMA, COMPACTIONS = "compact.json", "compaction-benchmark/1", "compactions.jsonl"
SCHEMAS: dict[str, Kind] = {"manifest/1": "sweep", "evidence/1": "evidence", BENCHMARK_SCHEMA: "compaction"}
DEEPEST = 3  # folders below the one that was given
MOST = 200  # places
# In this order, which the page knows, too.
STAMPED = (MANIFEST, RUNS, FAILURES, SUMMARY, ANALYSIS, COMPACTIONS)  # files whose growth changes what is shown
OPENED = (".json", ".jsonl", ".parquet", ".zst")  # extensions of the files that are read
_HEAD_BYTES = 64
State = Literal["running", "complete", "waiting"]
CELL_NAMES = ("workload", "model", "condition", "policy", "memory", "arm", "h")  # columns that identify a cell
QUIET_SECONDS = 30.0  # without a write before a folder is no longer called running


@dataclass(frozen=True, slots=True)
class ViewedFolder:
    """One folder that the viewer can show."""

    key: str  # its path relative to the given folder, "." for that folder
    path: Path
    kind: Kind


def find_places(root: Path) -> list[ViewedFolder]:
    """Return the folders that can be shown at or below `root`, the root first, then by path."""
    return [place for place, _ in zip(_walk(root), range(MOST), strict=False)]


def open_root(root: Path) -> Path:
    """Return the given folder after checking that it holds something to show.

    Raises:
        UsageError: it is missing, is not a folder, or holds no results of eirkit.
    """
    if not root.is_dir():
        raise UsageError(f"{root} is no folder; give one that `lacuna run --out` or `vestige analyze --out` wrote")
    if not find_places(root):
        raise UsageError(
            f"{root} holds no sweep, evidence, analysis or compaction benchmark; write one with `lacuna run`, "
            "`vestige analyze` or `vestige compact`"
        )
    return root.resolve()


def place_at(root: Path, key: str) -> ViewedFolder:
    """Return the folder with a key; only keys from `find_places` are accepted, so nothing else is opened."""
    for place in find_places(root):
        if place.key == key:
            return place
    raise InputFileError(f"nothing that can be shown is at {key!r}; reload the page")


def stamp(place: ViewedFolder) -> str:
    """Return a text that changes whenever a record is added or a document is rewritten."""
    return "-".join(_stamp(place.path / name) for name in STAMPED)


def changed_at(place: ViewedFolder) -> float:
    """Return the time of the last write, in seconds of file modification time."""
    times = [path.stat().st_mtime for name in STAMPED if (path := place.path / name).exists()]
    return max(times, default=0.0)


def _stamp(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{found.st_size:x}.{found.st_mtime_ns:x}"


def _walk(root: Path) -> Iterator[ViewedFolder]:
    waiting = [(root, ".", 0)]
    while waiting:
        folder, key, depth = waiting.pop()
        if (kind := _kind(folder, root)) is not None:
            yield ViewedFolder(key, folder, kind)
        if depth < DEEPEST and kind not in ("analysis", "compaction"):
            inside = [path for path in _folders(folder) if not path.name.startswith(".")]
            waiting += [
                (path, path.name if key == "." else f"{key}/{path.name}", depth + 1) for path in reversed(inside)
            ]


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
    return [folder / name for name in names]


def _kind(folder: Path, root: Path) -> Kind | None:
    if _leads_out(folder, root):
        return None
    if is_analysis(folder):
        return "analysis"
    return _by_schema(folder / MANIFEST) or _by_schema(folder / BENCHMARK)


def _by_schema(path: Path) -> Kind | None:
    try:
        with open_ordinary(path) as stream:
            head = stream.read(_HEAD_BYTES)
    except OSError:
        return None
    return next((kind for schema, kind in SCHEMAS.items() if f'"{schema}"'.encode() in head), None)


def _leads_out(folder: Path, root: Path) -> bool:
    """Return True if a file that would be read is a link to outside the given folder."""
    try:
        with os.scandir(folder) as entries:
            links = [folder / entry.name for entry in entries if entry.name.endswith(OPENED) and entry.is_symlink()]
        return not all(link.resolve().is_relative_to(root.resolve()) for link in links)
    except (OSError, RuntimeError):
        return True  # a link that leads to itself, or a folder that cannot be read


MOST_NAMED = 3  # of models, workloads or capacities
LARGEST = 1 << 20  # bytes of a summary that is read for a single line


def abstract(place: ViewedFolder) -> str:
    """Return a one-line description of a folder; empty if its documents cannot be read."""
    try:
        return _SAYING[place.kind](place.path)
    except (EirkitError, OSError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return ""


def _sweep(folder: Path) -> str:
    manifest = read_manifest(folder)
    grid: list[Mapping[str, Any]] = manifest.suite["grid"]
    who, what = _named(_values(grid, "model")), _named(_values(grid, "workload"))
    parts = [counted(manifest.runs, "run"), f"{who} on {what}"]
    if memories := [name for name in _values(grid, "memory") if name]:
        parts.append(f"memory {_named(memories)}")
    if held := _values(grid, "h"):
        parts.append(f"h {_named(held)}")
    return "; ".join(parts + _accuracy(folder / SUMMARY))


def _accuracy(path: Path) -> list[str]:
    """Return the accuracy of the cells in words, if the sweep is complete."""
    if not path.is_file() or path.stat().st_size > LARGEST:
        return []
    rows = read_document(path, "summary/1")["rows"]
    found = sorted(row["accuracy"] for row in rows if row["accuracy"] is not None)
    if not found:
        return []
    least, most = f"{found[0]:.2f}", f"{found[-1]:.2f}"
    label = RUN_MEASURES["accuracy"].label
    return [f"{label} {least}" if least == most else f"{label} {least} to {most}"]


def _evidence(folder: Path) -> str:
    """Describe an evidence folder by its settings, which differ by command."""
    manifest = read_document(folder / MANIFEST, "evidence/1")
    settings = manifest["settings"]
    parts = [str(manifest["command"])]
    who, what = _named(settings.get("models", ())), settings.get("task", {}).get("workload", "")
    if about := " on ".join(filter(None, (who, what))):
        parts.append(about)
    if memory := settings.get("memory"):
        parts.append(f"memory {memory}" + (", strict" if settings.get("panel") == STRICT else ""))
    if "h" in settings:
        parts.append(f"h {settings['h']}")
    return "; ".join(parts)


def _analysis(folder: Path) -> str:
    summary = read_analysis(folder)
    runs, formats, peak = summary["runs"], _named(summary["formats"]), summary["mean_peak_tokens"]
    known = peak is not None and summary.get("covered_runs") != 0  # without a touched goal, zero means unknown
    demand = (
        f"mean {LOG_MEASURES['peak_demand_tokens'].label} {peak:,.0f} tokens"
        if known
        else "demand not measured: no run touched a goal file"
    )
    return f"{counted(runs, 'run')}; {formats}; {demand}"


def _values(grid: Iterable[Mapping[str, Any]], axis: str) -> list[Any]:
    """Return the different values of an axis over all blocks of a suite, in their order."""
    found: list[Any] = []
    for block in grid:
        value = block.get(axis, ())
        found += value if isinstance(value, (list, tuple)) else [value]
    return list(dict.fromkeys(found))


def _named(values: Iterable[Any]) -> str:
    names = [str(value) for value in values]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _compaction(folder: Path) -> str:
    found = read_document(folder / BENCHMARK, BENCHMARK_SCHEMA)["results"]
    names = _named(found["compactors"])
    return f"{counted(found['cuts'], 'cut')} of {counted(found['runs'], 'run')}; {names}"


_SAYING: dict[Kind, Callable[[Path], str]] = {
    "sweep": _sweep,
    "evidence": _evidence,
    "analysis": _analysis,
    "compaction": _compaction,
}


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
    names = [one.key for one in table.fields if one.key in CELL_NAMES]
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
