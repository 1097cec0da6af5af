"""Runs studies on several cores and caches their findings.

Findings are stored in DIR/studies/ID.json under a key of all that they depend on: the source and data of the package,
its version, the setting and the analyses it names. Findings that miss recorded runs or a memory system are not cached.
The runs of agents are stored in DIR/runs/ID under the same key, so that a killed study continues where it stopped.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from eirkit import __version__
from eirkit.engine.interface import Engine, LostPiece
from eirkit.errors import InfrastructureError, InputFileError
from eirkit.records.documents import read_struct, write_struct
from eirkit_paper.study import NEEDS_MEMORY, NEEDS_RUNS, Findings, RecordedSetting, Setting, Study, StudyEntry

SCHEMA = "study/1"
KEPT = "studies"  # the folder of kept findings
RUNS, RUNS_SCHEMA = "study.json", "study-runs/1"  # beside the runs of a study
_SOURCES = Path(__file__).parents[1]
_PACKAGES = ("eirkit", "eirkit_memories", "eirkit_paper")  # packages that compute figures of studies
_EXCLUDED = ("cli", "report", "testing")  # but not in these parts of them
_INCLUDED = ("eirkit/report/document.py", "eirkit/report/table.py")  # except these types, which are part of findings
_SOURCE = (".py", ".csv", ".json", ".toml", ".safetensors")  # published figures, weights and odds decide too
_INPUTS = ("*/analysis.json", "base-lines.json")  # of --data; running an analysis again rewrites its first file

Perform = Callable[[tuple[str, Setting]], bytes]  # a study's id and its setting → findings as JSON


class StudyOutcome(Struct, frozen=True):
    """What came of a study, or that it is still awaited."""

    study: Study
    findings: Findings | None  # None: lost, or awaited
    reason: str = ""  # why it was lost
    was_kept: bool = False  # read back from an earlier run
    is_awaited: bool = False  # it has not ended yet

    @property
    def verdict(self) -> str:
        """The verdict in words, or why there is none."""
        if self.findings is not None:
            return self.findings.verdict
        return "not finished yet" if self.is_awaited else f"lost: {self.reason}"


class KeptStudy(StudyEntry, frozen=True):
    """A study and its findings in a file."""

    key: str  # see `key_of`
    setting: RecordedSetting
    eirkit: str
    findings: Findings


class StudyRuns(Struct, frozen=True):
    """What the runs in a folder belong to."""

    key: str
    study: str
    setting: RecordedSetting


class StudyStore:
    """The findings in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.runs = folder / KEPT, folder / "runs"

    def find(self, study: Study, setting: Setting) -> Findings | None:
        """Return what was kept of a study; None if it was made by other source or with another setting."""
        path = self._path(study)
        if not path.is_file():
            return None
        try:
            kept = read_struct(path, SCHEMA, KeptStudy)
        except InputFileError:
            return None  # of another version, or torn: it is made again
        return kept.findings if kept.key == key_of(study, setting) else None

    def keep(self, study: Study, setting: Setting, found: Findings) -> None:
        """Keep what was found, unless it lacks something that may be there the next time."""
        if any(row.verdict in (NEEDS_RUNS, NEEDS_MEMORY) for row in found.rows):
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = KeptStudy(
            **msgspec.structs.asdict(study.entry),
            key=key_of(study, setting),
            setting=study.own(setting).recorded(),
            eirkit=__version__,
            findings=found,
        )
        write_struct(self._path(study), SCHEMA, kept)

    def begin(self, study: Study, setting: Setting) -> Path:
        """Return the folder for the runs of a study; those of another key are removed."""
        folder, key = self.runs / study.id, key_of(study, setting)
        if (folder / RUNS).exists():
            if read_struct(folder / RUNS, RUNS_SCHEMA, StudyRuns).key == key:
                return folder
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_struct(folder / RUNS, RUNS_SCHEMA, StudyRuns(key, study.id, study.own(setting).recorded()))
        return folder

    def end(self, study: Study, setting: Setting) -> None:
        """Remove runs that can be had again for nothing; those of a model are what was paid for, and stay."""
        if setting.model is None or setting.model.startswith("reference/"):
            shutil.rmtree(self.runs / study.id, ignore_errors=True)
            with suppress(OSError):
                self.runs.rmdir()  # unless others are under way there

    def _path(self, study: Study) -> Path:
        return self.folder / f"{study.id}.json"


def key_of(study: Study, setting: Setting) -> str:
    """Return what findings follow from: the source, the version, the study, all of its setting and its inputs."""
    own = study.own(setting)
    parts = (__version__, source_digest(), study.id, own.recorded(), _inputs(own.data))
    return sha256(msgspec.json.encode(parts, order="sorted", enc_hook=str)).hexdigest()


def _inputs(data: Path | None) -> list[tuple[str, int, int]]:
    """Return name, size and time of every analysis in a folder: what tells one that was made again."""
    paths = () if data is None else sorted(path for pattern in _INPUTS for path in data.glob(pattern))
    states = [(path.relative_to(data).as_posix(), path.stat()) for path in paths] if data else []
    return [(name, state.st_size, state.st_mtime_ns) for name, state in states]


@cache
def source_digest() -> str:
    """Return a digest of all source and data of the package that can change a figure or its verdict."""
    digest = sha256()
    for path in deciding_files():
        digest.update(f"{path.relative_to(_SOURCES)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def deciding_files() -> list[Path]:
    """Return the files of the package on which findings depend."""
    files = [path for name in _PACKAGES for path in sorted((_SOURCES / name).rglob("*")) if path.suffix in _SOURCE]
    inside = {path: path.relative_to(_SOURCES) for path in files}
    return [path for path in files if inside[path].parts[1] not in _EXCLUDED or inside[path].as_posix() in _INCLUDED]


def run_studies(
    studies: Sequence[Study],
    setting: Setting,
    store: StudyStore,
    engine: Engine | None,
    perform: Perform,
) -> Iterator[StudyOutcome]:
    """Yield what came of each study, those that were kept first; without an engine they run here, one by one.

    Raises:
        UsageError: a study cannot be computed with this setting; none is begun.
    """
    for study in studies:
        study.check(study.own(setting))
    left = []
    for study in studies:
        kept = store.find(study, setting)
        if kept is not None:
            yield StudyOutcome(study, kept, was_kept=True)
        else:
            left.append(study)
    left.sort(key=lambda study: -study.cost)  # the longest first, so that no core waits for it at the end
    pieces = [(study.id, _with_runs(study, setting, store)) for study in left]
    for number, found in _performed(pieces, engine, perform):
        if isinstance(found, str):
            yield StudyOutcome(left[number], None, found)
            continue
        findings = msgspec.json.decode(found, type=Findings)
        store.keep(left[number], setting, findings)
        store.end(left[number], setting)
        yield StudyOutcome(left[number], findings)


def _with_runs(study: Study, setting: Setting, store: StudyStore) -> Setting:
    runs = store.begin(study, setting) if study.has_agents else None
    return replace(study.own(setting), runs=runs)


def _performed(
    pieces: Sequence[tuple[str, Setting]], engine: Engine | None, perform: Perform
) -> Iterator[tuple[int, bytes | str]]:
    if engine is None:
        for number, piece in enumerate(pieces):
            try:
                yield number, perform(piece)
            except InfrastructureError as error:
                yield number, str(error)
        return
    for outcome in engine.map(perform, pieces):
        yield outcome.number, outcome.reason if isinstance(outcome, LostPiece) else outcome.value
