"""Makes a submission of a sweep: which records it contains, without the content of a memory, and claimed scores.

Two rows say what a memory contributes: `null` keeps nothing, and `sham` returns records of the same form with the
content of others. If the sweep lacks them and its model costs nothing, they are run here.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct, structs

from eirkit.errors import InputFileError, UsageError
from eirkit.folders import clear_unfinished, filled_folder
from eirkit.lacuna.memories.plan import TIMEOUT
from eirkit.lacuna.runs.cells import Cell
from eirkit.lacuna.runs.manifest import read_manifest, write_manifest
from eirkit.lacuna.runs.store import is_unused_folder
from eirkit.lacuna.runs.suite import Suite, read_suite
from eirkit.lacuna.runs.sweep import recorded_suite, start_sweep
from eirkit.lacuna.runs.workers import is_free
from eirkit.records.database import DATABASE, SweepDatabase, SweepWriter
from eirkit.records.documents import MANIFEST, write_struct
from eirkit.records.events import Cause
from eirkit.records.evidence import Seeds
from eirkit.records.export import load_export, write_runs
from eirkit.records.listing import ListedFile, describe_file, describe_files
from eirkit.records.runs import Outcome
from eirkit.records.sweeps import CellFloor, CellRow, Manifest
from eirkit.registry import records_read, refuse_untrusted
from eirkit.report.runs.folder import SweepFolder, condition_of, read_sweep
from eirkit.seeds import show_seeds

DOCUMENT, SCHEMA = "submission.json", "submission/1"
OWN, CONTROLS, SOURCES = "runs", "controls", "sources"  # folders of a submission
NULL, SHAM = "null", "sham"
REFERENCES = (NULL, SHAM)
VERSIONS = ("eirkit", "python", "platform", "dependencies")
LONGEST_NAME = 80


class ClaimedScore(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a submission claims of one row."""

    cell: str
    workload: str
    model: str
    memory: str  # with its budget
    h: int | None
    scored: int
    attempted: int
    accuracy: float | None
    steps: int
    errors: dict[Cause, int]
    cost_usd: float | None
    outcomes: dict[Outcome, float] | None  # shares of the records needed from memory
    floor: CellFloor | None


class Submission(Struct, frozen=True, kw_only=True):
    """The document of a submission: who made it with what, its scores, and all its files."""

    name: str
    eirkit: str
    python: str
    platform: str
    dependencies: dict[str, str]
    seeds: Seeds
    scores: tuple[ClaimedScore, ...]
    files: dict[str, ListedFile]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory system under one model, as one row of the board."""

    model: str
    memory: str  # with its panel
    settings: str
    own_settings: str  # without those of eirkit, such as how long a system is waited for

    @property
    def memory_label(self) -> str:
        """The memory with its own settings."""
        return f"{self.memory} ({self.own_settings})" if self.own_settings else self.memory

    @property
    def label(self) -> str:
        """The candidate in words."""
        return f"{self.memory_label} · {self.model}"


def candidate_of(row: CellRow) -> Candidate | None:
    """Return the candidate of a row; None for rows without a memory system and for the two references."""
    if row.memory is None or row.memory in REFERENCES:
        return None
    given = {name: f"{name}={value}" for name, value in sorted(row.memory_settings.items())}
    own = [text.removeprefix("profile=") for name, text in given.items() if name != TIMEOUT]
    return Candidate(row.model, condition_of(row), ", ".join(given.values()), ", ".join(own))


def make_submission(folder: Path, out: Path, name: str) -> Submission:
    """Write a finished sweep with everything that others need to check it; return the document of the submission.

    Args:
        folder: of a sweep, or of its exported lines.

    Raises:
        UsageError: the folder cannot be written, or rows are missing that only the user can pay for.
        InputFileError: the sweep is not finished, or holds no run of a memory system.
    """
    manifest = read_manifest(folder)
    with records_read(plugins=True):  # its code is the user's own
        suite = recorded_suite(folder)
    _refuse(folder, out, name, suite)
    sources = {path: _source(folder, manifest, path) for path in manifest.sources}
    missing = references_missing(suite)
    if missing and (costly := [cell for cell, _ in missing.plan() if not is_free(cell)]):
        raise UsageError(
            f"{folder} lacks the rows null and sham, and {costly[0].model} costs money; run the sweep with "
            f"--memory …,{NULL},{SHAM} and submit that folder"
        )
    with with_database(folder, suite) as stored, filled_folder(out, DOCUMENT) as made:
        sweep = read_sweep(stored)
        if sweep.scored < sweep.planned:
            raise InputFileError(
                f"{folder} is not finished: {sweep.scored:,} of {sweep.planned:,} runs; finish it with "
                f"`{replace(sweep, folder=folder).resume}`"
            )
        copies = {path: f"{SOURCES}/{place}-{Path(path).name}" for place, path in enumerate(manifest.sources)}
        for path, copy in copies.items():
            (made / SOURCES).mkdir(exist_ok=True)
            shutil.copyfile(sources[path], made / copy)
        _write_part(stored, made / OWN, copies)
        if missing:
            with TemporaryDirectory(prefix="eirkit-") as scratch:
                start_sweep(missing, Path(scratch) / CONTROLS, control=False)
                _write_part(Path(scratch) / CONTROLS, made / CONTROLS, copies)
        document = Submission(
            name=name,
            eirkit=manifest.eirkit,
            python=manifest.python,
            platform=manifest.platform,
            dependencies=manifest.dependencies,
            seeds=show_seeds(sorted({seed for _, seeds in suite.plan() for seed in seeds})),
            scores=claimed_scores(read_parts(made)),
            files=describe_files(made, DOCUMENT),
        )
        write_struct(made / DOCUMENT, SCHEMA, document)
    return document


def _write_part(folder: Path, to: Path, copies: Mapping[str, str]) -> None:
    """Write the lines of a sweep that everything else follows from; its manifest names the copies of the code."""
    to.mkdir(parents=True)
    manifest = read_manifest(folder)
    write_manifest(structs.replace(manifest, places={path: f"../{copies[path]}" for path in manifest.sources}), to)
    with SweepDatabase(folder) as database:
        write_runs(database, to, with_control=False)


def _refuse(folder: Path, out: Path, name: str, suite: Suite) -> None:
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError(f"the name of a submission has 1 to {LONGEST_NAME} printable characters; give another --name")
    clear_unfinished(out, DOCUMENT, (OWN, CONTROLS, SOURCES))
    if not is_unused_folder(out) or out.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"{out} is not empty or lies in {folder}; choose a new folder for --out")
    if not suite.texts:
        raise InputFileError(f"{folder} was run with --no-texts, so nothing in it can be checked; run it with texts")
    if not any(is_candidate(cell) for cell, _ in suite.plan()):
        raise InputFileError(f"{folder} has no run of a memory system; run one with --memory, such as --memory bm25")


@contextmanager
def with_database(folder: Path, suite: Suite) -> Iterator[Path]:
    """Yield a folder with the manifest and the database of a sweep: the given one, or one made of its exported lines.

    Raises:
        InputFileError: the lines are damaged.
    """
    if (folder / DATABASE).is_file():
        yield folder
        return
    with TemporaryDirectory(prefix="eirkit-") as scratch:
        made = Path(scratch) / folder.name
        with SweepWriter(made, is_temporary=True) as writer:
            writer.plan((cell.setting, len(seeds)) for cell, seeds in suite.plan())
            load_export(folder, writer)
        shutil.copyfile(folder / MANIFEST, made / MANIFEST)
        yield made


def _source(folder: Path, manifest: Manifest, path: str) -> Path:
    """Return where a file of code is that the sweep ran; no other file is handed on, whatever the manifest names."""
    refuse_untrusted(path, "a file")
    for place in (Path(path), folder / manifest.places.get(path, path)):
        if place.is_file() and describe_file(place).sha256 == manifest.sources[path]:
            return place
    raise InputFileError(f"{path} is not the file that {folder} was run with; restore it, or run the sweep again")


def is_candidate(cell: Cell) -> bool:
    """Return whether a cell has a memory system that is no reference."""
    return cell.access.memory is not None and cell.access.memory not in REFERENCES


def twin(cell: Cell, memory: str) -> Cell:
    """Return the cell with a reference in place of its memory."""
    return replace(cell, access=structs.replace(cell.access, memory=memory, memory_settings={}))


def twins_missing(suite: Suite, others: Sequence[Suite]) -> Iterator[tuple[Cell, str]]:
    """Yield candidates of a suite with the reference that was not given the same tasks."""
    planned: dict[str, set[int]] = {}
    for plan in (suite, *others):
        for cell, seeds in plan.plan():
            planned.setdefault(cell.id, set()).update(seeds)
    for cell, seeds in suite.plan():
        if is_candidate(cell):
            given = {name: planned.get(twin(cell, name).id, set()) for name in REFERENCES}
            yield from ((cell, name) for name, found in given.items() if not found.issuperset(seeds))


def references_missing(suite: Suite) -> Suite | None:
    """Return the suite of the null and sham rows that a sweep lacks; None if it has them all."""
    missing = {name for _, name in twins_missing(suite, ())}
    if not missing:
        return None
    grids = [grid for grid in suite.settings["grid"] if set(grid.get("memory") or ()) - {None, *REFERENCES}]
    plain = [
        {**grid, "memory": [name for name in REFERENCES if name in missing], "memory_options": {}} for grid in grids
    ]
    return read_suite({**suite.settings, "grid": plain})


def read_parts(folder: Path) -> list[SweepFolder]:
    """Return the sweeps of a submission: its own, and the references if they are apart."""
    parts = [folder / OWN, *([folder / CONTROLS] if (folder / CONTROLS).is_dir() else [])]
    found = []
    for part in parts:
        with with_database(part, recorded_suite(part)) as stored:
            found.append(read_sweep(stored, plugins=True))
    return found


def claimed_scores(parts: Sequence[SweepFolder]) -> tuple[ClaimedScore, ...]:
    """Return what a submission claims: for each row its score, outcomes, floor and cost, as the records give them."""
    return tuple(
        ClaimedScore(
            cell=row.cell,
            workload=row.workload,
            model=row.model,
            memory=condition_of(row),
            h=row.h,
            scored=row.scored,
            attempted=row.attempted,
            accuracy=row.accuracy,
            steps=row.steps,
            errors=row.errors,
            cost_usd=row.cost_usd,
            outcomes=None if row.memory_system is None else row.memory_system.outcome_shares,
            floor=None if row.memory_system is None else row.memory_system.floor,
        )
        for part in parts
        for row in part.rows
    )
