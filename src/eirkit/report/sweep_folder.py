"""The folder of a sweep or an evidence command as facts: files come in, rows, runs and what was asked for go out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.evidence.attribution import RunScore
from eirkit.lacuna.sweeps import trial_store
from eirkit.lacuna.sweeps.control import FOLDER as CONTROL
from eirkit.lacuna.sweeps.experiment import recorded_suite
from eirkit.lacuna.sweeps.manifest import FILE, Manifest, read_manifest
from eirkit.lacuna.sweeps.run_store import RUNS, SUMMARY, scan_runs
from eirkit.lacuna.sweeps.summary import SCHEMA as SUMMARY_SCHEMA
from eirkit.lacuna.sweeps.summary import summarise
from eirkit.lacuna.task import TaskSpec
from eirkit.records import read_document
from eirkit.report.folders import kind_of
from eirkit.report.plugin_names import foreign_in

Row = Mapping[str, Any]
TASK_AXES = ("slots", "digits", "k", "queries", "warm_up")  # of a task; the rows of a summary have the rest


@dataclass(frozen=True, slots=True)
class RunFacts:
    """One scored run."""

    cell: str
    seed: int
    fingerprint: str  # of the task's graph
    score: RunScore
    rules: str = ""  # the hash of its system message
    usage: Row = field(default_factory=dict)  # what the agent took: calls, tokens, money
    memory: Row | None = None  # what its external memory did, held and took


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one evidence command was asked and what it found."""

    command: str  # rescue, capability, probe
    folder: Path
    manifest: Row
    document: Row


@dataclass(frozen=True, slots=True)
class SweepFolder:
    """A sweep with whatever evidence lies beside it."""

    folder: Path
    manifest: Manifest
    rows: tuple[Row, ...]  # one a cell
    tasks: Mapping[str, TaskSpec]  # by cell, without a seed
    runs: tuple[RunFacts, ...]
    failures: tuple[Row, ...]
    excluded: tuple[tuple[str, str, str], ...]
    scored: int
    planned: int
    evidence: tuple[Evidence, ...]
    plugins: bool = False  # whether code that the records name may be run

    @property
    def name(self) -> str:
        return self.folder.resolve().name

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
    """Return what a sweep's folder says, finished or not, with the evidence in its subfolders and in others.

    Args:
        plugins: whether code that the records name, such as a workload `file.py:Name`, may be run.

    Raises:
        InputFileError: a file is damaged, or what is not finished cannot be summed up without such code.
    """
    manifest = read_manifest(folder)
    document = _summary(folder, manifest, plugins=plugins)
    runs: list[RunFacts] = []
    tasks: dict[str, TaskSpec] = {}
    for number, (record, _) in enumerate(scan_runs(folder / RUNS) if (folder / RUNS).exists() else (), 1):
        try:
            runs.append(_facts(record))
            if record["cell"] not in tasks:
                tasks[record["cell"]] = TaskSpec(**record["task"])
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
    )


def _facts(record: Row) -> RunFacts:
    seed, score = record["seed"], RunScore(**record["score"])
    if not isinstance(seed, int):
        raise TypeError(f"the seed {seed!r} is no whole number")
    counts = (score.steps, score.correct, score.missed, score.consuming_all, *score.errors.values())
    if not all(isinstance(count, int) for count in counts):
        raise TypeError("the score is not made of whole numbers")
    more = str(record.get("rules_sha256", "")), record.get("usage") or {}, record.get("memory")
    return RunFacts(str(record["cell"]), seed, str(record["fingerprint"]), score, *more)


def _task_axes(spec: TaskSpec | None) -> dict[str, Any]:
    """Return what a row of a summary does not say about its task; nothing of a cell without a run."""
    return {} if spec is None else {name: asdict(spec)[name] for name in TASK_AXES}


def read_evidence(folder: Path) -> Evidence:
    """Return what an evidence command left in its folder.

    Raises:
        InputFileError: it has not come to its end.
    """
    manifest = read_document(folder / FILE, trial_store.SCHEMA)
    command = str(manifest["command"])
    if not (folder / SUMMARY).is_file():
        raise InputFileError(f"{folder} was not finished; give `eirkit lacuna {command}` the same --out again")
    return Evidence(command, folder, manifest, read_document(folder / SUMMARY, f"{command}/1"))


def _summary(folder: Path, manifest: Manifest, *, plugins: bool) -> Row:
    """Return the rows of a sweep: as it wrote them at its end, or of what there is so far."""
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
        return summarise(recorded_suite(folder), folder).as_json()
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
