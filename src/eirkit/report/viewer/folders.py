"""Finds the sweeps, evidence folders, analyses and compaction benchmarks below a folder, their changes and progress.

To find folders, only the first bytes of the documents that identify them are read. Links out of the given folder are
not followed. Nothing is locked, so that a command can start writing to a folder at any time.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Struct

from eirkit.errors import EirkitError, InputFileError, UsageError
from eirkit.lacuna.findings.measures import RUN_MEASURES
from eirkit.lacuna.findings.summary import SUMMARY_SCHEMA
from eirkit.records.database import DATABASE
from eirkit.records.documents import MANIFEST, RUNS_SCHEMA, SUMMARY, read_struct, schema_of
from eirkit.records.runs import Failure
from eirkit.records.settings import STRICT, Task
from eirkit.records.sweeps import FailureGroup, Manifest
from eirkit.report.folders import command_of
from eirkit.report.table import counted
from eirkit.report.viewer.documents import FolderKind, FolderProgress
from eirkit.report.viewer.run_table import FolderRuns
from eirkit.vestige.measures import LOG_MEASURES
from eirkit.vestige.tables import FILE as ANALYSIS
from eirkit.vestige.tables import is_analysis, read_analysis

# The folder of `vestige compact`, as `eirkit_coding.compaction` writes it.
BENCHMARK, BENCHMARK_SCHEMA, COMPACTIONS = "compact.json", "compaction-benchmark/1", "compactions.jsonl"
DEEPEST = 3  # folders below the one that was given
MOST = 200  # places
# Files whose growth changes what is shown, in this order, which the page knows, too.
STAMPED = (MANIFEST, DATABASE, f"{DATABASE}-wal", SUMMARY, ANALYSIS, COMPACTIONS)
OPENED = (".json", ".jsonl", ".parquet", ".db", ".db-wal", ".db-shm", ".db-journal")  # endings of files that are read
MOST_GROUPS = 50  # of failed runs
QUIET_SECONDS = 30.0  # without a write before a folder is no longer called running


@dataclass(frozen=True, slots=True)
class ViewedFolder:
    """One folder that the viewer can show."""

    key: str  # its path relative to the given folder, "." for that folder
    path: Path
    kind: FolderKind


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
    parts = []
    for name in STAMPED:
        try:
            found = (place.path / name).stat()
            parts.append(f"{found.st_size:x}.{found.st_mtime_ns:x}")
        except OSError:
            parts.append("")
    return "-".join(parts)


def changed_at(place: ViewedFolder) -> float:
    """Return the time of the last write, in seconds of file modification time."""
    times = [path.stat().st_mtime for name in STAMPED if (path := place.path / name).exists()]
    return max(times, default=0.0)


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


def _kind(folder: Path, root: Path) -> FolderKind | None:
    if _leads_out(folder, root):
        return None
    if is_analysis(folder):
        return "analysis"
    if schema_of(folder / MANIFEST) == RUNS_SCHEMA and (command := command_of(folder)):
        return "sweep" if command == "run" else "evidence"
    return "compaction" if schema_of(folder / BENCHMARK) == BENCHMARK_SCHEMA else None


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


def _manifest(folder: Path) -> Manifest:
    return read_struct(folder / MANIFEST, RUNS_SCHEMA, Manifest)


_Axis = list[str | int | float | None] | str | int | float | None


class _Block(Struct):
    model: _Axis = None
    workload: _Axis = None
    memory: _Axis = None
    h: _Axis = None


class _Grid(Struct):
    grid: list[_Block]


class _ScoredRow(Struct):
    accuracy: float | None


class _ScoredRows(Struct):
    rows: list[_ScoredRow]


def _sweep(folder: Path) -> str:
    manifest = _manifest(folder)
    blocks = msgspec.convert(manifest.settings, _Grid).grid
    who, what = (_named(_values(getattr(block, axis) for block in blocks)) for axis in ("model", "workload"))
    parts = [counted(manifest.runs, "run"), f"{who} on {what}"]
    if memories := _values(block.memory for block in blocks):
        parts.append(f"memory {_named(memories)}")
    if held := _values(block.h for block in blocks):
        parts.append(f"h {_named(held)}")
    path = folder / SUMMARY
    if path.is_file() and path.stat().st_size <= LARGEST:  # the sweep is complete
        rows = read_struct(path, SUMMARY_SCHEMA, _ScoredRows).rows
        if found := sorted(row.accuracy for row in rows if row.accuracy is not None):
            ends = dict.fromkeys(f"{end:.2f}" for end in (found[0], found[-1]))
            parts.append(f"{RUN_MEASURES['accuracy'].label} {' to '.join(ends)}")
    return "; ".join(parts)


class _Experiment(Struct):
    """What the settings of experiments have in common; each has some of it."""

    models: list[str] = []
    task: Task | None = None
    memory: str | None = None
    panel: str | None = None
    h: int | None = None


def _evidence(folder: Path) -> str:
    """Describe the folder of another experiment by its settings, which differ by command."""
    manifest = _manifest(folder)
    settings = msgspec.convert(manifest.settings, _Experiment)
    parts = [manifest.command]
    what = "" if settings.task is None else settings.task.workload
    if about := " on ".join(filter(None, (_named(settings.models), what))):
        parts.append(about)
    if settings.memory is not None:
        parts.append(f"memory {settings.memory}" + (", strict" if settings.panel == STRICT else ""))
    if settings.h is not None:
        parts.append(f"h {settings.h}")
    return "; ".join(parts)


def _analysis(folder: Path) -> str:
    summary = read_analysis(folder)
    runs, formats, peak = summary.runs, _named(summary.formats), summary.mean_peak_tokens
    known = peak is not None and summary.covered_runs != 0  # without a touched goal, zero means unknown
    demand = (
        f"mean {LOG_MEASURES['peak_demand_tokens'].label} {peak:,.0f} tokens"
        if known
        else "demand not measured: no run touched a goal file"
    )
    return f"{counted(runs, 'run')}; {formats}; {demand}"


def _values(axes: Iterable[_Axis]) -> list[str | int | float]:
    """Return the different values of an axis over all blocks of a suite, in their order."""
    every = [value for axis in axes for value in (axis if isinstance(axis, list) else [axis])]
    return list(dict.fromkeys(value for value in every if value))


def _named(values: Iterable[object]) -> str:
    names = [str(value) for value in values]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


class _BenchmarkResults(Struct):
    compactors: tuple[str, ...]
    cuts: int
    runs: int


class _Benchmark(Struct):
    """What is said here of a compaction benchmark, which is an extension's."""

    results: _BenchmarkResults


def _compaction(folder: Path) -> str:
    found = read_struct(folder / BENCHMARK, BENCHMARK_SCHEMA, _Benchmark).results
    return f"{counted(found.cuts, 'cut')} of {counted(found.runs, 'run')}; {_named(found.compactors)}"


_SAYING: dict[FolderKind, Callable[[Path], str]] = {
    "sweep": _sweep,
    "evidence": _evidence,
    "analysis": _analysis,
    "compaction": _compaction,
}


def progress_of(place: ViewedFolder, runs: FolderRuns, now: float) -> FolderProgress:
    """Return the progress of a folder; `now` is compared with file modification times."""
    manifest = _manifest(place.path)
    quiet = now - changed_at(place) > QUIET_SECONDS
    return FolderProgress(
        kind="sweep" if place.kind == "sweep" else manifest.command,
        state="complete" if runs.rows >= manifest.runs else "waiting" if quiet else "running",
        runs=runs.rows,
        planned_runs=manifest.runs,
        planned_cells=manifest.cells,
        lost=len(runs.lost),
        spent_usd=runs.spent_usd,
    )


def failure_groups(lost: Iterable[Failure]) -> tuple[FailureGroup, ...]:
    """Return failed runs grouped by reason, the most frequent first."""
    alike: Counter[tuple[str, str, str, str, str]] = Counter()
    first: dict[tuple[str, str, str, str, str], str] = {}
    for failure in lost:
        key = (failure.workload, failure.model, failure.condition, failure.kind, failure.message)
        alike[key] += 1
        first.setdefault(key, failure.run)
    return tuple(FailureGroup(*key, runs, first[key]) for key, runs in alike.most_common(MOST_GROUPS))
