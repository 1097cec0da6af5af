"""Reads the folder of a sweep or another experiment; names the figures of runs and the axes on which rows differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from eirkit import extensions
from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.findings.conversation_measures import RETRIEVAL_MEASURES
from eirkit.lacuna.findings.conversations import INSTRUCTION, pool_retrieval
from eirkit.lacuna.findings.measures import (
    CAUSE_MEASURES,
    MEMORY_MEASURES,
    OUTCOME_MEASURES,
    RUN_MEASURES,
    SPENDING_MEASURES,
)
from eirkit.lacuna.findings.summary import pool_outcomes, read_summary
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.measures import Glossary, Measure
from eirkit.records.database import SweepDatabase
from eirkit.records.documents import MANIFEST, RUNS_SCHEMA, SUMMARY, read_struct
from eirkit.records.evidence import RESULTS, SETTINGS, EvidenceResult, EvidenceSettings, RescueResult, RescueSettings
from eirkit.records.money import RAISE
from eirkit.records.runs import (
    CAUSES,
    OUTCOMES,
    AbilityCount,
    MemoryRun,
    Outcome,
    RunRecord,
    RunScore,
    RunUsage,
)
from eirkit.records.settings import DIALS, DOCUMENTED, SHOWN_ITSELF, UNLIMITED, Access
from eirkit.records.sweeps import CellRow, Excluded, FailureGroup, Manifest, RetrievalRow, Spending
from eirkit.registry import find_sources
from eirkit.report.folders import foreign_in_settings, kind_of
from eirkit.report.table import in_viewer

T = TypeVar("T")

# Computes the result of an experiment that is not finished; it knows how agents are run, and is imported only then.
SO_FAR = "eirkit.lacuna.runs.recorded_rescues:result_so_far"
TASK_AXES = (
    "slots",
    "digits",
    "k",
    "queries",
    "warm_up",
    *DIALS,
    "preset",
)  # of tasks; mentioned where they are not usual


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """One scored run, without what is not pooled."""

    cell: str  # of its row; repeats have the one that they repeat
    seed: int
    fingerprint: str  # of the task's graph
    score: RunScore
    rules: str  # the hash of its system message
    usage: RunUsage
    memory: MemoryRun | None = None
    abilities: Mapping[str, AbilityCount] = field(default_factory=dict)  # and below: only of conversations
    retrieval: RetrievalRow | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """The settings and results of one rescue, capability or probe folder."""

    command: str  # rescue, capability, probe
    folder: Path
    manifest: Manifest
    settings: EvidenceSettings
    result: EvidenceResult
    missing: int = 0  # runs that have not ended


@dataclass(frozen=True, slots=True)
class RescueEvidence:
    """The settings and the result of a rescue."""

    settings: RescueSettings
    result: RescueResult


@dataclass(frozen=True, slots=True)
class SweepFolder:
    """A sweep, with the evidence folders that belong to it."""

    folder: Path
    manifest: Manifest
    rows: tuple[CellRow, ...]  # one for each cell
    runs: tuple[ScoredRun, ...]
    failures: tuple[FailureGroup, ...]
    excluded: tuple[Excluded, ...]  # by the control
    undecided: tuple[Excluded, ...]
    scored: int
    planned: int
    evidence: tuple[Evidence, ...]
    plugins: bool = False  # whether code that the records name may be run
    is_capped: bool = False  # whether its cap stopped it
    spending: Spending | None = None  # None if nothing was paid for

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

    def by_cell(self) -> dict[str, list[ScoredRun]]:
        """Return the runs of each cell, in the order of their seeds."""
        found: dict[str, list[ScoredRun]] = {}
        for run in sorted(self.runs, key=lambda run: run.seed):
            found.setdefault(run.cell, []).append(run)
        return found

    def rescues(self) -> list[RescueEvidence]:
        """Return the rescues that belong to it."""
        return [
            RescueEvidence(evidence.settings, evidence.result)
            for evidence in self.evidence
            if isinstance(evidence.settings, RescueSettings) and isinstance(evidence.result, RescueResult)
        ]


def read_sweep(folder: Path, others: Iterable[Path] = (), *, plugins: bool = False) -> SweepFolder:
    """Read a sweep's folder, finished or not, with the evidence in its subfolders and in other folders.

    Args:
        plugins: whether code that the records name, such as a workload `file.py:Name`, may be run.

    Raises:
        InputFileError: a file is damaged, or an unfinished sweep cannot be summarized without such code.
    """
    manifest = read_struct(folder / MANIFEST, RUNS_SCHEMA, Manifest)
    find_sources(manifest.sources, manifest.places, folder)
    summary = read_summary(folder)
    with SweepDatabase(folder) as database:
        shared: _Shared[Any] = _Shared()
        runs = tuple(run for record in database.records() if (run := _scored(record, shared)) is not None)
    inside = sorted(path for path in folder.iterdir() if path.is_dir() and (path / MANIFEST).is_file())
    near = [path for path in inside if kind_of(path) == "lacuna-evidence" and (path / SUMMARY).is_file()]
    return SweepFolder(
        folder=folder,
        manifest=manifest,
        rows=summary.rows,
        runs=runs,
        failures=summary.failures,
        excluded=summary.excluded,
        undecided=summary.undecided,
        scored=summary.scored,
        planned=summary.planned,
        evidence=tuple(read_evidence(path) for path in (*near, *others)),
        plugins=plugins,
        is_capped=any(RAISE in reason for reason in summary.stopped),
        spending=summary.spending,
    )


class _Shared(dict[T, T]):
    """Gives the first of equal values for each of them: runs of a cell have much in common, and there are many."""

    def __missing__(self, value: T) -> T:
        self[value] = value
        return value


def _scored(record: RunRecord, shared: _Shared[Any]) -> ScoredRun | None:
    if record.score is None:
        return None
    abilities: dict[str, AbilityCount] = {}  # right answers and questions; of standing instructions, checks
    if (answers := record.conversation) is not None:
        checks = answers.instruction
        followed = {INSTRUCTION: AbilityCount(checks.kept, checks.asked)} if checks.asked else {}
        abilities = {**answers.abilities, **followed}
    memory = record.memory
    if memory is not None:
        memory = structs.replace(memory, floor=shared[memory.floor], profile=shared[memory.profile])
    return ScoredRun(
        shared[record.pooled_cell],
        record.seed,
        shared[record.fingerprint],
        record.score,
        shared[record.rules_sha256],
        shared[record.usage],
        memory,
        abilities,
        None if answers is None else pool_retrieval(answers.retrieval),
    )


def read_evidence(folder: Path, *, plugins: bool = False) -> Evidence:
    """Read the folder of a rescue, capability or probe command, finished or not.

    Args:
        plugins: whether code that the settings name may be run, which an unfinished folder needs.

    Raises:
        InputFileError: it is not such a folder, or it is unfinished and cannot be summarized.
    """
    manifest = read_struct(folder / MANIFEST, RUNS_SCHEMA, Manifest)
    command = manifest.command
    if command not in RESULTS:
        raise InputFileError(f"{folder} holds the runs of a {command}; give the folder above it, or `eirkit view` this")
    try:
        settings = msgspec.convert(manifest.settings, SETTINGS[command])
    except msgspec.ValidationError as error:
        raise InputFileError(f"{folder / MANIFEST}: not the settings of a {command} ({error}); restore it") from error
    if (folder / SUMMARY).is_file():
        result = read_struct(folder / SUMMARY, f"{command}/1", RESULTS[command])
        return Evidence(command, folder, manifest, settings, result)
    if not plugins and (named := foreign_in_settings(settings)):
        raise InputFileError(
            f"{folder} is not finished, and {named[0]} is code beside the run; add --plugins to run it"
        )
    try:
        result_so_far: Callable[[Path, Manifest], EvidenceResult] = extensions.load(SO_FAR)
        result = result_so_far(folder, manifest)
        with SweepDatabase(folder) as database:
            ended = database.count()
    except UsageError as error:
        raise InputFileError(f"{folder} is not finished and cannot be summed up ({error})") from error
    return Evidence(command, folder, manifest, settings, result, manifest.runs - ended)


def condition_of(access: CellRow | Access) -> str:
    """Return a short name of how the agent accesses earlier results: condition and policy, or memory."""
    if access.policy is None:
        panel = " (strict)" if access.memory is not None and access.panel == "strict" else ""
        return f"{access.memory or access.condition}{panel}"
    return access.condition if access.policy == "window" else f"{access.condition} {access.policy}"


def is_candidate(row: CellRow) -> bool:
    """True if a row is compared with memories: of one, or of the conversation in the place of one."""
    return row.memory is not None or row.condition in SHOWN_ITSELF


# The settings in which rows may differ, in the order in which comparisons and rankings take them.
AXES: Mapping[str, Callable[[CellRow], int | str]] = {
    "workload": lambda row: row.workload,
    "model": lambda row: row.model,
    "memory": condition_of,
    **{name: attrgetter(name) for name in ("n", "m", "lookback", "fan_in", "h", "b_oracle", "b", *TASK_AXES)},
    "budget": lambda row: row.budget or "",
}
_TITLES = {"fan_in": "fan-in", "b_oracle": "B_oracle", "b": "B"}  # in tables; other axes have their names
_SHOWN = ("workload", "model", "memory", "n", "m", "lookback", "fan_in", "b_oracle", "b", "h", *TASK_AXES, "budget")
_USUAL = {
    "budget": DOCUMENTED,
    **{name: getattr(TaskSpec(""), name, "") for name in TASK_AXES},
}  # defaults, which are not mentioned


def _shown(of: Callable[[CellRow], int | str | None], row: CellRow) -> int | str:
    """Return the value of an axis as it is shown; empty where the family of tasks has no such setting."""
    value = of(row)
    return "" if value is None else "∞" if value == UNLIMITED else value


_AXES = {_TITLES.get(name, name): partial(_shown, AXES[name]) for name in _SHOWN}
_NAMED = ("workload", "model", "memory", "budget")  # their values need no axis name


class Coordinates:
    """Separates the axes on which some rows differ from those on which they agree, and labels the rows."""

    def __init__(self, rows: Sequence[CellRow]) -> None:
        values = {name: [of(row) for row in rows] for name, of in _AXES.items()}
        values["budget"] = [budget for budget in values["budget"] if budget]  # the others put in all there is
        self.varying = tuple(name for name, found in values.items() if len(set(found)) > 1)
        self.counts = ", ".join(f"{len(set(values[name]))} of {name}" for name in self.varying)  # of different values
        self._shared = {name: found[0] for name, found in values.items() if found and name not in self.varying}

    @property
    def shared(self) -> str:
        """The settings that all rows share, in words; defaults and implied settings are left out."""
        told = dict(self._shared)
        if told.get("lookback") == told.get("m"):
            told.pop("lookback", None)
        return ", ".join(
            _said(name, value) for name, value in told.items() if value not in ("", 0, _USUAL.get(name, 0))
        )

    def label(self, row: CellRow, without: Sequence[str] = (), between: str = " · ") -> str:
        """Return a short name of a row, made of the settings that vary."""
        named = {name: _AXES[name](row) for name in self.varying if name not in without}
        return between.join(_said(name, value) for name, value in named.items() if value != "") or row.workload

    def value(self, name: str, row: CellRow) -> int | str:
        """Return the value of a row on an axis.

        Raises:
            UsageError: there is no such axis.
        """
        if name not in _AXES:
            raise UsageError(f"no setting named {name!r}; known: {', '.join(_AXES)}")
        return _AXES[name](row)

    def ordered(self, rows: Iterable[CellRow]) -> list[CellRow]:
        """Return rows grouped by workload, model and memory, each group in the order of its numbers, h last."""
        return sorted(rows, key=lambda row: [in_order(_AXES[name](row)) for name in self.varying])

    def cells(self, row: CellRow) -> dict[str, int | str]:
        """Return the row's values on the axes that vary."""
        return {name: _AXES[name](row) for name in self.varying}


_FILTERS = ("workload", "model", "condition", "policy", "memory", "n", "m", "lookback", "fan_in", "h")


def linked(row: CellRow) -> dict[str, str]:
    """Return the anchor of a cell's row on a page, and the link to the runs of the cell in the viewer."""
    chosen = {f"f.{name}": getattr(row, name) for name in _FILTERS if getattr(row, name) is not None}
    return {"anchor": f"cell-{row.cell}", "view": in_viewer(**chosen)}


def in_order(value: int | str) -> tuple[bool, float, str]:
    """Return a sort key of values of an axis: numbers before words."""
    return (True, 0.0, value) if isinstance(value, str) else (False, float(value), "")


def _said(name: str, value: int | str) -> str:
    return str(value) if name in _NAMED else f"{name} = {value}"


FigureOf = Callable[[ScoredRun], float | None]
_MEASURES = Glossary(
    (RUN_MEASURES, CAUSE_MEASURES, OUTCOME_MEASURES, MEMORY_MEASURES, SPENDING_MEASURES, RETRIEVAL_MEASURES)
)


def measure_of(key: str) -> Measure:
    """Return the measure of a figure."""
    return _MEASURES[key]


def _outcome(outcome: Outcome, run: ScoredRun) -> float | None:
    """Return the share of needed records with this outcome; None if no record was needed."""
    return None if run.memory is None else pool_outcomes([run.memory.outcomes]).of(outcome)


def _milliseconds(seconds: float, calls: int) -> float | None:
    return 1000 * seconds / calls if calls else None


def _of_memory(of: Callable[[MemoryRun], float | None], run: ScoredRun) -> float | None:
    found = None if run.memory is None else of(run.memory)
    return None if found is None else float(found)


def _retrieved(key: str, run: ScoredRun) -> float | None:
    return None if run.retrieval is None else getattr(run.retrieval, key)


FIGURES: Mapping[str, FigureOf] = {
    "accuracy": lambda run: run.score.accuracy,
    "informed_accuracy": lambda run: run.score.informed_accuracy,
    "final_accuracy": lambda run: float(run.score.final_correct),
    "miss_rate": lambda run: run.score.miss_rate,
    **{cause: partial(lambda cause, run: run.score.error_shares[cause], cause) for cause in CAUSES},
    **{outcome: partial(_outcome, outcome) for outcome in OUTCOMES},
    "write_ms": partial(_of_memory, lambda memory: _milliseconds(memory.write_seconds, memory.writes)),
    "search_ms": partial(_of_memory, lambda memory: _milliseconds(memory.search_seconds, memory.searches)),
    "records": partial(_of_memory, lambda memory: memory.records),
    "bytes": partial(_of_memory, lambda memory: memory.bytes),
    "model_calls": partial(_of_memory, lambda memory: memory.model_calls),
    "memory_tokens": partial(_of_memory, lambda memory: memory.input_tokens + memory.output_tokens),
    "memory_cost_usd": partial(_of_memory, lambda memory: memory.cost_usd),
    "calls": lambda run: float(run.usage.calls),
    "agent_tokens": lambda run: (
        None if run.usage.unreported_calls else float(run.usage.input_tokens + run.usage.output_tokens)
    ),
    "cost_usd": lambda run: run.usage.cost_usd,
    **{measure.id: partial(_retrieved, measure.id) for measure in RETRIEVAL_MEASURES},
}
