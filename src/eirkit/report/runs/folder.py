"""Reads the folder of a sweep or of a rescue, capability or probe command; names the axes on which rows differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.conversation.totals import INSTRUCTION
from eirkit.lacuna.findings.causes import RunScore, read_score
from eirkit.lacuna.models.ledger import RAISE
from eirkit.lacuna.runs.cells import cell_of
from eirkit.lacuna.runs.control import FOLDER as CONTROL
from eirkit.lacuna.runs.manifest import FILE, PLAN_SCHEMA, Manifest, read_manifest
from eirkit.lacuna.runs.recorded_rescues import READERS, result_so_far
from eirkit.lacuna.runs.store import RUNS, SUMMARY, scan_runs
from eirkit.lacuna.runs.summary import SCHEMA as SUMMARY_SCHEMA
from eirkit.lacuna.runs.summary import summarise
from eirkit.lacuna.runs.sweep import recorded_suite
from eirkit.lacuna.runs.values import UNLIMITED
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.lines import read_document
from eirkit.report.folders import foreign_in, foreign_in_settings, kind_of
from eirkit.report.table import in_viewer

Row = Mapping[str, Any]
TASK_AXES = ("slots", "digits", "k", "queries", "warm_up", "preset")  # task settings that summary rows lack


@dataclass(frozen=True, slots=True)
class RunFacts:
    """One scored run."""

    cell: str  # of its row; repeats have the one that they repeat
    seed: int
    fingerprint: str  # of the task's graph
    score: RunScore
    rules: str = ""  # the hash of its system message
    usage: Row = field(default_factory=dict)  # what the agent used: calls, tokens, money
    memory: Row | None = None  # what its external memory did, stored and cost
    abilities: Mapping[str, Sequence[int]] = field(
        default_factory=dict
    )  # in words: right answers and questions of each


@dataclass(frozen=True, slots=True)
class Evidence:
    """The settings and results of one rescue, capability or probe folder."""

    command: str  # rescue, capability, probe
    folder: Path
    manifest: Row
    document: Row
    missing: int = 0  # runs that have not ended


@dataclass(frozen=True, slots=True)
class SweepFolder:
    """A sweep, with the evidence folders that belong to it."""

    folder: Path
    manifest: Manifest
    rows: tuple[Row, ...]  # one for each cell
    tasks: Mapping[str, TaskSpec]  # by cell, without a seed
    runs: tuple[RunFacts, ...]
    failures: tuple[Row, ...]
    excluded: tuple[tuple[str, str, str], ...]
    scored: int
    planned: int
    evidence: tuple[Evidence, ...]
    plugins: bool = False  # whether code that the records name may be run
    is_capped: bool = False  # whether its cap stopped it

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def resume(self) -> str:
        """The command that goes on with it; where its cap was reached, only a higher one helps."""
        return f"eirkit lacuna run --resume {quote(str(self.folder))}{' --cap-usd USD' if self.is_capped else ''}"

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(sorted({run.seed for run in self.runs}))

    def by_cell(self) -> dict[str, list[RunFacts]]:
        """Return the runs of each cell, in the order of their seeds."""
        found: dict[str, list[RunFacts]] = {}
        for run in sorted(self.runs, key=lambda run: run.seed):
            found.setdefault(run.cell, []).append(run)
        return found

    def found_by(self, command: str) -> list[Evidence]:
        return [one for one in self.evidence if one.command == command]


def read_sweep(folder: Path, others: Iterable[Path] = (), *, plugins: bool = False) -> SweepFolder:
    """Read a sweep's folder, finished or not, with the evidence in its subfolders and in other folders.

    Args:
        plugins: whether code that the records name, such as a workload `file.py:Name`, may be run.

    Raises:
        InputFileError: a file is damaged, or an unfinished sweep cannot be summarised without such code.
    """
    manifest = read_manifest(folder)
    document = _summary(folder, manifest, plugins=plugins)
    runs: list[RunFacts] = []
    tasks: dict[str, TaskSpec] = {}
    for number, (record, _) in enumerate(scan_runs(folder / RUNS) if (folder / RUNS).exists() else (), 1):
        try:
            runs.append(_facts(record))
            if runs[-1].cell not in tasks:
                tasks[runs[-1].cell] = TaskSpec(**record["task"])
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            words = f"{folder / RUNS}:{number}: not a run that can be read ({error}); restore the file"
            raise InputFileError(words) from error
    return SweepFolder(
        folder=folder,
        manifest=manifest,
        rows=tuple({**_task_axes(tasks.get(row["cell"])), **row} for row in document["rows"]),
        tasks=tasks,
        runs=tuple(runs),
        failures=tuple(document["failures"]),
        excluded=tuple((model, workload, reason) for model, workload, reason in document["excluded"]),
        scored=document["scored"],
        planned=document["planned"],
        evidence=tuple(_evidence_near(folder, others)),
        plugins=plugins,
        is_capped=any(RAISE in reason for reason in document["stopped"]),
    )


def _facts(record: Row) -> RunFacts:
    seed, score = record["seed"], read_score(record["score"])
    if not isinstance(seed, int):
        raise TypeError(f"the seed {seed!r} is no whole number")
    counts = (score.steps, score.correct, score.missed, score.consuming_all, *score.errors.values())
    if not all(isinstance(count, int) for count in counts):
        raise TypeError("the score is not made of whole numbers")
    more = str(record.get("rules_sha256", "")), record.get("usage") or {}, record.get("memory")
    return RunFacts(cell_of(record), seed, str(record["fingerprint"]), score, *more, _abilities(record.get("words")))


def _abilities(words: Row | None) -> dict[str, Sequence[int]]:
    """Return right answers and questions of each ability; of standing instructions, those followed and checks."""
    if words is None:
        return {}
    checks = words.get("instruction") or {}
    followed = {INSTRUCTION: (checks["kept"], checks["asked"])} if checks.get("asked") else {}
    return {**words.get("abilities", {}), **followed}


def _task_axes(spec: TaskSpec | None) -> dict[str, Any]:
    """Return the task settings that summary rows lack; empty for a cell without runs."""
    return {} if spec is None else {name: asdict(spec)[name] for name in TASK_AXES}


def read_evidence(folder: Path, *, plugins: bool = False) -> Evidence:
    """Read the folder of a rescue, capability or probe command, finished or not.

    Args:
        plugins: whether code that the settings name may be run, which an unfinished folder needs.

    Raises:
        InputFileError: it is not such a folder, or it is unfinished and cannot be summarised.
    """
    manifest = read_document(folder / FILE, PLAN_SCHEMA)
    command = str(manifest["command"])
    if command not in READERS:
        raise InputFileError(f"{folder} holds the runs of a {command}; give the folder above it, or `eirkit view` this")
    if (folder / SUMMARY).is_file():
        return Evidence(command, folder, manifest, read_document(folder / SUMMARY, f"{command}/1"))
    if not plugins and (named := foreign_in_settings(manifest["settings"])):
        raise InputFileError(
            f"{folder} is not finished, and {named[0]} is code beside the run; add --plugins to run it"
        )
    try:
        document = result_so_far(folder, manifest)
    except UsageError as error:
        raise InputFileError(f"{folder} is not finished and cannot be summed up ({error})") from error
    ended = sum(1 for _ in scan_runs(folder / RUNS)) if (folder / RUNS).exists() else 0
    return Evidence(command, folder, manifest, document, manifest["runs"] - ended)


def _summary(folder: Path, manifest: Manifest, *, plugins: bool) -> Row:
    """Return the summary of a sweep: the one written at its end, or one computed from the runs so far."""
    if (folder / SUMMARY).is_file():
        document = read_document(folder / SUMMARY, SUMMARY_SCHEMA)
        if document["complete"]:
            return document
    if not plugins and (named := foreign_in(manifest.suite)):
        if (folder / SUMMARY).is_file():
            return document
        raise InputFileError(
            f"{folder} is not finished, and {named[0]} is code beside the run; add --plugins to run it"
        )
    try:
        stopped = document["stopped"] if (folder / SUMMARY).is_file() else ()
        return summarise(recorded_suite(folder), folder, stopped).as_json()
    except UsageError as error:
        if (folder / SUMMARY).is_file():
            return document
        raise InputFileError(f"{folder} is not finished and cannot be summed up ({error})") from error


def _evidence_near(folder: Path, others: Iterable[Path]) -> Iterable[Evidence]:
    inside: Sequence[Path] = sorted(
        path for path in folder.iterdir() if path.is_dir() and (path / FILE).is_file() and path.name != CONTROL
    )
    near = [path for path in inside if kind_of(path) == "lacuna-evidence" and (path / SUMMARY).is_file()]
    return [read_evidence(path) for path in (*near, *others)]


def condition_of(row: Row) -> str:
    """Return a short name of how the agent accesses earlier results: condition and policy, or memory."""
    if row["policy"] is None:
        panel = " (strict)" if row["memory"] is not None and row["panel"] == "strict" else ""
        return f"{row['memory'] or row['condition']}{panel}"
    return str(row["condition"]) if row["policy"] == "window" else f"{row['condition']} {row['policy']}"


def _of_task(name: str, row: Row) -> int | str:
    """Return a setting of the row's task, or its default for a cell without runs."""
    value: int | str = row.get(name, _USUAL[name])
    return value


def _budget(value: int | str) -> int | str:
    return "∞" if value == UNLIMITED else value


_USUAL = {name: getattr(TaskSpec(""), name) for name in TASK_AXES}  # defaults, which are not mentioned
_AXES: dict[str, Callable[[Row], int | str]] = {
    "workload": lambda row: str(row["workload"]),
    "model": lambda row: str(row["model"]),
    "memory": condition_of,
    "n": lambda row: int(row["n"]),
    "m": lambda row: int(row["m"]),
    "lookback": lambda row: int(row["lookback"]),
    "fan-in": lambda row: int(row["fan_in"]),
    "B_oracle": lambda row: _budget(row["b_oracle"]),
    "B": lambda row: _budget(row["b"]),
    "h": lambda row: int(row["h"]),
    **{name: partial(_of_task, name) for name in TASK_AXES},
}
_NAMED = ("workload", "model", "memory")  # their values need no axis name


class Coordinates:
    """Separates the axes on which some rows differ from those on which they agree, and labels the rows."""

    def __init__(self, rows: Sequence[Row]) -> None:
        values = {name: [of(row) for row in rows] for name, of in _AXES.items()}
        self.varying = tuple(name for name, found in values.items() if len(set(found)) > 1)
        self.counts = ", ".join(f"{len(set(values[name]))} of {name}" for name in self.varying)  # of different values
        self._shared = {name: found[0] for name, found in values.items() if found and name not in self.varying}

    @property
    def shared(self) -> str:
        """The settings that all rows share, in words; defaults and implied settings are left out."""
        told = dict(self._shared)
        if told.get("lookback") == told.get("m"):
            told.pop("lookback", None)
        return ", ".join(_said(name, value) for name, value in told.items() if value not in (0, _USUAL.get(name, 0)))

    def label(self, row: Row, without: Sequence[str] = ()) -> str:
        """Return a short name of a row, made of the settings that vary."""
        shown = [_said(name, _AXES[name](row)) for name in self.varying if name not in without]
        return " · ".join(shown) or str(row["workload"])

    def value(self, name: str, row: Row) -> int | str:
        """Return the value of a row on an axis.

        Raises:
            UsageError: there is no such axis.
        """
        if name not in _AXES:
            raise UsageError(f"no setting named {name!r}; known: {', '.join(_AXES)}")
        return _AXES[name](row)

    def ordered(self, rows: Iterable[Row]) -> list[Row]:
        """Return rows grouped by workload, model and memory, each group in the order of its numbers, h last."""
        return sorted(rows, key=lambda row: [in_order(_AXES[name](row)) for name in self.varying])

    def cells(self, row: Row) -> dict[str, int | str]:
        """Return the row's values on the axes that vary."""
        return {name: _AXES[name](row) for name in self.varying}


_FILTERS = ("workload", "model", "condition", "policy", "memory", "n", "m", "lookback", "fan_in", "h")


def linked(row: Row) -> dict[str, str]:
    """Return the anchor of a cell's row on a page, and the link to the runs of the cell in the viewer."""
    chosen = {f"f.{name}": row[name] for name in _FILTERS if row.get(name) is not None}
    return {"anchor": f"cell-{row['cell']}", "view": in_viewer(**chosen)}


def in_order(value: int | str) -> tuple[bool, float, str]:
    """Return a sort key of values of an axis: numbers before words."""
    return (True, 0.0, value) if isinstance(value, str) else (False, float(value), "")


def _said(name: str, value: int | str) -> str:
    return str(value) if name in _NAMED else f"{name} = {value}"
