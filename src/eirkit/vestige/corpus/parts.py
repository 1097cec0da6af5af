"""Measures one work unit and stores it as a part, named after a digest of the content that it was made of.

A part is an analysis folder of its own under `.parts`. It is given its name once it is complete, so a part with the
right name is valid: an interrupted analysis resumes where it stopped, and a finished one measures again only what has
changed since.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

from msgspec import Struct

from eirkit.errors import EirkitError, InputFileError
from eirkit.folders import files_below
from eirkit.records.analysis import TABLES
from eirkit.records.documents import read_struct
from eirkit.vestige.corpus.analysis import AnalysisOptions, fewer_collections, measured
from eirkit.vestige.corpus.reader import CorpusReader, DocumentTally, UniqueNames
from eirkit.vestige.corpus.work_units import DocumentRange, WorkUnit, stored_ranges
from eirkit.vestige.demand.gold_patches import GoldPatches, open_gold_patches
from eirkit.vestige.sources.documents import ReadLimits, Skipped
from eirkit.vestige.sources.remote import Location, Remote
from eirkit.vestige.sources.streams import open_file
from eirkit.vestige.tables import FILE, PARTS, SCHEMA, TableWriter, arrow
from eirkit.vestige.tokens import Counter, estimating_counter, exact_counter
from eirkit.vestige.trajectory import Recording

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class AnalysisJob:
    """What all work units of an analysis share; small, because it is sent with each of them."""

    out: Path
    options: AnalysisOptions
    outcomes: Path | None
    format: str | None
    gold: Path | None
    estimate: bool
    limits: ReadLimits
    state: str  # digest of all of this and of the content of the files that it names

    @property
    def parts(self) -> Path:
        return self.out / PARTS


class CorpusPart(Struct, frozen=True):
    """A complete part, as its `analysis.json` stores it."""

    key: str
    runs: int
    skipped: tuple[Skipped, ...]
    unmeasured: frozenset[int] = frozenset()  # indices of skipped items that were read but could not be measured
    tally: DocumentTally | None = None  # of a section: what was found in it
    renamed: Mapping[str, str] = {}  # new name → original name of renamed runs


@dataclass(frozen=True, slots=True)
class PartNotWritten:
    """A part that could not be written, for instance on a full disk; it ends the analysis."""

    reason: str


def make_part(work: tuple[AnalysisJob, WorkUnit]) -> CorpusPart | PartNotWritten:
    """Measure a work unit and write its part, unless it is already written; a module-level function, for workers."""
    job, piece = work
    tools = _tools(job.state, job)
    key = _key(job, piece, tools)
    folder = job.parts / key
    try:
        if not is_complete(folder):
            _write(job, piece, tools, folder)
    except OSError as error:  # errors in the input are InputFileErrors, so this is the disk
        return PartNotWritten(error.strerror or str(error))
    return read_part(folder)


def is_complete(folder: Path) -> bool:
    """Return whether a part has all its tables in full; what a power cut or a kill left behind is removed."""
    if not folder.exists():
        return False
    try:
        read_part(folder)
        for name in TABLES:
            arrow().parquet.read_metadata(folder / f"{name}.parquet")
    except (OSError, InputFileError, arrow().ArrowException):
        shutil.rmtree(folder, ignore_errors=True)
        return False
    return True


def read_part(folder: Path) -> CorpusPart:
    """Return what a complete part says about itself."""
    return read_struct(folder / FILE, SCHEMA, CorpusPart)


@dataclass(frozen=True, slots=True)
class _Tools:
    """What a worker process keeps between work units."""

    reader: CorpusReader
    gold: GoldPatches | None
    count: Counter
    beside: dict[tuple[Location, Path], bytes] = field(default_factory=dict)  # digests by root and folder


@lru_cache(maxsize=2)
def _kept(state: str) -> dict[str, _Tools]:
    return {}


def _tools(state: str, job: AnalysisJob) -> _Tools:
    kept = _kept(state)
    if state not in kept:
        reader = CorpusReader(outcomes=job.outcomes, format=job.format, limits=job.limits)
        gold = None if job.gold is None else open_gold_patches(job.gold)
        kept[state] = _Tools(reader, gold, estimating_counter() if job.estimate else exact_counter())
    return kept[state]


def open_reader(job: AnalysisJob) -> CorpusReader:
    """Open everything that all work units need, and return the reader.

    Raises:
        UsageError: reference patches, outcomes, a format or a package are missing or wrong.
    """
    return _tools(job.state, job).reader


def _write(job: AnalysisJob, piece: WorkUnit, tools: _Tools, folder: Path) -> None:
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    runs, skipped = 0, list[Skipped]()
    recordings = _Recordings(piece, tools)
    try:
        with TableWriter(unfinished, TABLES) as writer, fewer_collections():
            for item in measured(recordings, job.options, tools.count, tools.gold):
                if isinstance(item, Skipped):
                    skipped.append(item)
                else:
                    writer.add(item.run.run_id, item.columns())
                    runs += 1
            unread = set(map(id, recordings.unread))
            unmeasured = frozenset(place for place, part in enumerate(skipped) if id(part) not in unread)
            writer.finish(
                CorpusPart(folder.name, runs, tuple(skipped), unmeasured, recordings.tally, recordings.renamed)
            )
        unfinished.replace(folder)
    except OSError:
        shutil.rmtree(unfinished, ignore_errors=True)
        if not (folder / FILE).is_file():  # another worker may have written it first
            raise


class _Recordings:
    """The runs of a work unit under names that are unique in it, and what is known after reading them."""

    def __init__(self, piece: WorkUnit, tools: _Tools) -> None:
        self.piece, self.tools = piece, tools
        self.renamed: dict[str, str] = {}
        self.unread: list[Skipped] = []
        is_cut = piece.section is not None and piece.section.format is not None
        self.tally = DocumentTally() if is_cut else None

    def __iter__(self) -> Iterator[Recording | Skipped]:
        names = UniqueNames()
        for item in self._items():
            if isinstance(item, Skipped):
                self.unread.append(item)
                yield item
                continue
            unique = names.rename(item)
            if unique is not item:
                self.renamed[unique.run_id] = item.run_id
            yield unique

    def _items(self) -> Iterator[Recording | Skipped]:
        reader = self.tools.reader
        for place in self.piece.items:
            if isinstance(place, Skipped):
                yield place
                continue
            try:
                yield from reader.read(place.open(reader.limits), place.root, place.format, self.tally)
            except InputFileError as error:
                yield Skipped(place.source, str(error))


def _key(job: AnalysisJob, piece: WorkUnit, tools: _Tools) -> str:
    """Return a name derived from everything that can change a part."""
    digest = blake2b(job.state.encode(), digest_size=16)
    for item in piece.items:
        if isinstance(item, Skipped):
            digest.update(repr(item).encode())
            continue
        digest.update(repr((item.source, item.section, item.format)).encode())
        for chunk in _content(item, job.limits):
            digest.update(chunk)
        digest.update(_beside(item, tools))
    return digest.hexdigest()


def _content(place: DocumentRange, limits: ReadLimits) -> Iterator[bytes]:
    try:
        if isinstance(place.path, Remote):  # downloading it twice costs more than trusting the store's metadata
            yield place.path.identity()
            return
        ranges: list[tuple[int, int | None]] = [(0, None)]
        if place.section is not None:
            ranges = stored_ranges(place.open(limits), place.section)
        with open_file(place.path, place.source) as stream:
            for start, stop in ranges:
                stream.seek(start)
                left = None if stop is None else stop - start
                while chunk := stream.read(_CHUNK_BYTES if left is None else min(left, _CHUNK_BYTES)):
                    left = None if left is None else left - len(chunk)
                    yield chunk
    except (OSError, EirkitError) as error:
        yield str(error).encode()  # the error is reported when it is read


def _beside(place: DocumentRange, tools: _Tools) -> bytes:
    """Return a digest of the files beside a document, computed once per folder."""
    if isinstance(place.path, Remote):
        return b""
    where = place.root, place.path.parent
    if where not in tools.beside:
        digest = blake2b(digest_size=16)
        for path in _neighbors(place.root, place.path, tools.reader):
            digest.update(repr((path.name, *_identity(path))).encode())
        tools.beside[where] = digest.digest()
    return tools.beside[where]


def _neighbors(root: Location, path: Path, reader: CorpusReader) -> Iterator[Path]:
    """Yield files beside a document from which its runs or their outcomes may come."""
    yield from reader.outcomes_near(root, path.parent)
    for name in reader.claimed(path.parent):
        beside = path.parent / name
        yield from sorted(files_below(beside)) if beside.is_dir() else [beside]


def _identity(path: Path) -> tuple[int, int]:
    try:
        known = path.stat()
    except OSError:
        return 0, 0
    return known.st_size, known.st_mtime_ns


def state_of(
    options: AnalysisOptions, estimate: bool, format: str | None, limits: ReadLimits, files: list[Path | None]
) -> str:
    """Return a digest of how runs are measured and of the files on which this depends."""
    digest = blake2b(repr((version("eirkit"), options, estimate, format, limits)).encode(), digest_size=16)
    for path in files:
        listed = [] if path is None else sorted(files_below(path)) if path.is_dir() else [path]
        digest.update(repr([(str(one), *_identity(one)) for one in listed]).encode())
    return digest.hexdigest()
