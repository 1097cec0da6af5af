"""Reads the runs of a corpus one at a time: detects the format of each log, finds its outcome, names each run.

The format of a file is detected from its content. Files that hold no run are passed over; a file that looks like a log
but cannot be read is yielded as skipped with the reason. One document is in memory at a time.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eirkit.errors import EirkitError, InputFileError, MissingExtraError, PluginError, describe
from eirkit.limits import RECORD_SECONDS, limited
from eirkit.records.analysis import TABLES
from eirkit.records.export import CALLS, DOCUMENTS, EVENTS, FAILURES
from eirkit.registry import call
from eirkit.vestige.corpus.outcomes import (
    Outcomes,
    OutcomesBeside,
    damage_beside,
    damage_in,
    damaged_rows,
    holds_outcomes,
    outcomes_within,
    read_outcomes,
)
from eirkit.vestige.formats import BEGINNINGS, FILES_BESIDE, NAMING, SIGNS
from eirkit.vestige.sources.databases import MAGIC, damage_of
from eirkit.vestige.sources.documents import HEAD_BYTES, NAMED, ReadLimits, Skipped, StoredDocument
from eirkit.vestige.sources.folders import find_documents, unclaimed_members
from eirkit.vestige.sources.json_parser import shows_an_object
from eirkit.vestige.sources.members import Folder
from eirkit.vestige.sources.remote import Location, Remote
from eirkit.vestige.sources.streams import as_label
from eirkit.vestige.tables import FILE, is_analysis
from eirkit.vestige.trajectory import NAMED as SUREST
from eirkit.vestige.trajectory import FolderFormat, LogFormat, Recording, formats

_KEY = re.compile(rb'"([^"]*)"')
# Most signs are keys, or contain one: the signs by the text between their quotes, with the formats that have them.
_BY_KEY: dict[bytes, list[tuple[bytes, str]]] = {}
_OTHER_SIGNS: list[tuple[bytes | str, str]] = []
for _format, _signs in SIGNS.items():
    for _sign in _signs:
        if isinstance(_sign, bytes) and (_found := _KEY.search(_sign)):
            _BY_KEY.setdefault(_found[1], []).append((_sign, _format))
        else:
            _OTHER_SIGNS.append((_sign, _format))
_KEYS = frozenset(_BY_KEY)
LOG_ENDINGS = (".json", ".jsonl", ".ndjson", ".traj", ".eval", ".parquet", ".zip")
_PACKED = {b"\xfd7zXZ\0": "xz", b"BZh": "bzip2", b"7z\xbc\xaf'\x1c": "7z", b"Rar!\x1a\x07": "rar"}
_TAR = slice(257, 262), b"ustar"  # where a tar has its mark
GIVEN_UP = 10_000  # damaged parts before the first run after which a document is given up
OWN_NAMES = frozenset({FILE, *(f"{name}.parquet" for name in TABLES)})  # files of an analysis
# Files that scaffolds and evaluations write beside their runs; none of them is a run.
_COMPANION_NAMES = """
all_preds.json all_preds.jsonl args.json config.json metadata.json package.json predictions.json
predictions.jsonl preds.json preds.jsonl report.json results.json settings.json
"""
COMPANIONS = frozenset(_COMPANION_NAMES.split())
_EXPORTED = (*DOCUMENTS, EVENTS.removesuffix(".zst"), FAILURES, CALLS)  # what an export has beside its runs


def read_corpus(
    paths: Sequence[Location],
    *,
    outcomes: Path | None = None,
    format: str | None = None,
    limits: ReadLimits = ReadLimits(),  # noqa: B008 - frozen
) -> Iterator[Recording | Skipped]:
    """Yield the runs at the paths in the order of their names, and what was skipped.

    Args:
        outcomes: a result file that overrides those beside the runs; an outcome in a run itself takes precedence.
        format: the format to read everything as; detected from the content if None.

    Raises:
        InputFileError: a path is missing, a pipe or a device, or `outcomes` cannot be read.
        UnknownNameError: there is no such format.
    """
    reader, names = CorpusReader(outcomes=outcomes, format=format, limits=limits), UniqueNames()
    yield from reader.damaged_results(paths)
    for path in paths:
        for document in reader.documents(path):
            for item in [document] if isinstance(document, Skipped) else reader.read(document, path):
                yield item if isinstance(item, Skipped) else names.rename(item)
                del item  # so that the memory of a run is used again for the next


class CorpusReader:
    """Finds the documents of a corpus and reads one at a time, with outcomes; each process has its own.

    Args:
        outcomes, format: as `read_corpus` takes them.
    """

    def __init__(self, *, outcomes: Path | None, format: str | None, limits: ReadLimits) -> None:
        self.limits = limits
        self._reading = _Reading([format] if format else formats.names(), forced=format)
        self._given_at = outcomes
        self._given = read_outcomes(outcomes) if outcomes else Outcomes()
        self._results: dict[Location, _Results] = {}

    def documents(self, path: Location) -> Iterator[StoredDocument | Skipped]:
        """Yield the documents at a path without reading them."""
        return find_documents([path], self.limits, self._reading.claims)

    def read(
        self, document: StoredDocument, root: Location, format: str | None = None, tally: DocumentTally | None = None
    ) -> Iterator[Recording | Skipped]:
        """Yield the runs of a document found under a root; their names may not be unique.

        Args:
            format: format of the section, which may not be recognizable by itself.
            tally: counts what was found, from which the notes about the whole document follow.
        """
        results = self._results.setdefault(root, _Results(self._given, _beside(root)))
        for item in self._reading.read(document, is_given=not root.is_dir(), known=format, tally=tally):
            yield item if isinstance(item, Skipped) else results.join(item, document)
            del item

    def damaged_results(self, paths: Sequence[Location]) -> Iterator[Skipped]:
        """Yield what could not be read in files of results that are not documents of the corpus."""
        if self._given_at is not None:
            yield from damage_in(self._given_at)
        yield from damage_beside([path for path in paths if isinstance(path, Path)])

    def format_of(self, document: StoredDocument, root: Location) -> str | None:
        """Return the name of the format as which a document is read; None if there is none."""
        try:
            return self._reading.format_of(document, is_given=not root.is_dir())
        except InputFileError:
            return None  # the error is reported when the document is read

    def outcomes_near(self, root: Location, folder: Path | None) -> Iterator[Path]:
        """Yield the files of results that may decide the outcomes of runs in a folder."""
        yield from _beside(root).files(folder)

    def claimed(self, folder: Path) -> list[str]:
        """Return the names in a folder that are read together with another document there."""
        try:
            names = sorted(entry.name for entry in folder.iterdir())
        except OSError:
            return []
        return sorted(self._reading.claims(folder, names))


def _beside(root: Location) -> OutcomesBeside:
    # A remote document has no folder, so there are no results beside it.
    return OutcomesBeside(Path() if isinstance(root, Remote) else root)


@dataclass(slots=True)
class DocumentTally:
    """What was found in a document, or in a section of it, so far."""

    runs: int = 0
    skipped: int = 0
    leading: int = 0  # parts skipped before the first run

    def add(self, is_run: bool) -> None:
        self.runs += is_run
        self.skipped += not is_run
        self.leading += not is_run and not self.runs

    @property
    def is_hopeless(self) -> bool:
        """Return whether so much is damaged before the first run that the rest is not read."""
        return self.leading >= GIVEN_UP


class UniqueNames:
    """Renames a run whose name is taken, to one that says where it comes from."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def rename(self, run: Recording) -> Recording:
        """Return the run under a name that no earlier run has."""
        name = self.unique(run.run_id, run.source)
        return run if name == run.run_id else replace(run, run_id=name)

    def unique(self, run_id: str, source: str) -> str:
        """Return and reserve a name that no earlier run has."""
        name = run_id
        if name in self.taken:
            name = f"{run_id}@{source}"
        number = 2
        while name in self.taken:
            name, number = f"{run_id}@{source}#{number}", number + 1
        self.taken.add(name)
        return name


class _Results:
    """Adds an outcome to runs that record none: from the given file, the run's archive, or a file beside it."""

    def __init__(self, given: Outcomes, beside: OutcomesBeside) -> None:
        self.given, self.beside = given, beside
        self._archive: tuple[str, Outcomes] = ("", Outcomes())  # the archive used last, by its source

    def join(self, run: Recording, document: StoredDocument) -> Recording:
        """Return a run of the document with its outcome, where one is known."""
        if run.resolved is not None:
            return run
        names = run.run_id, run.task_id
        resolved = self.given.get(*names)
        if resolved is None and document.is_archive:
            if self._archive[0] != document.source:
                self._archive = document.source, outcomes_within(document)
            resolved = self._archive[1].get(*names)
        if resolved is None:
            resolved = self.beside.get(document.parent if isinstance(document.parent, Path) else None, *names)
        return run if resolved is None else replace(run, resolved=resolved)


class _Reading:
    """Detects the format of a document and reads it; a reader is imported when it may be needed."""

    def __init__(self, names: Sequence[str], forced: str | None) -> None:
        self.names, self.forced = names, forced
        self._readers: dict[str, LogFormat] = {}
        if forced:
            self.reader(forced)  # an unknown name is an error before anything is read

    def reader(self, name: str) -> LogFormat:
        """Return the reader of a format."""
        if name not in self._readers:
            self._readers[name] = call("format", formats.get(name))
        return self._readers[name]

    def claims(self, folder: Folder, names: Sequence[str]) -> Collection[str]:
        """Return the names in a folder that are read with another document there, or are tables of an analysis."""
        claimed = set(OWN_NAMES.intersection(names) if isinstance(folder, Path) and is_analysis(folder) else ())
        for format in self.names:
            beside = FILES_BESIDE.get(format, () if format in SIGNS else ("",))
            if any(sign in name for sign in beside for name in names):
                reader = self.reader(format)
                if isinstance(reader, FolderFormat):
                    claimed.update(call("format", reader.claims, folder, names))
        return claimed

    def read(
        self,
        document: StoredDocument,
        *,
        is_given: bool,
        within: bool = False,
        known: str | None = None,
        tally: DocumentTally | None = None,
    ) -> Iterator[Recording | Skipped]:
        """Yield the runs of a document, or why there are none; other files are passed over unless given explicitly."""
        try:
            name = known or self.format_of(document, is_given)
            packed, inner = _packed_as(document)
            if packed and (name or is_given or inner.lower().endswith(LOG_ENDINGS)):
                yield Skipped(document.source, f"is packed as {packed}, which is not read; unpack it or use zip")
            elif name is not None:
                yield from _runs(document, name, self.reader(name), tally)
            elif document.is_archive and not within:
                for member in unclaimed_members(document, self.claims):
                    yield from self.read(member, is_given=False, within=True)
            elif within and document.head.startswith(MAGIC):
                yield Skipped(document.source, "is a database inside an archive; unpack the archive")
            elif document.head.startswith(MAGIC) and (damage := damage_of(document)):
                yield Skipped(document.source, _without_source(damage, document.source))
            elif is_given or document.name.lower().endswith(LOG_ENDINGS):
                yield from _explain(document)
        except (MissingExtraError, PluginError):
            raise
        except EirkitError as error:
            yield Skipped(document.source, _without_source(str(error), document.source))

    def format_of(self, document: StoredDocument, is_given: bool) -> str | None:
        """Return the name of the format that is surest of a document; two that are equally sure are an error."""
        if not document.head:
            return None
        if self.forced and not document.is_archive:
            is_log = is_given or (document.name.lower().endswith(LOG_ENDINGS) and not _is_companion(document))
            return self.forced if is_log else None
        sure = self._certainties(naming_formats(self.names, document), document)
        if max(sure.values(), default=0) < SUREST:
            sure = self._certainties(possible_formats(self.names, document), document)
        most = max(sure.values(), default=0)
        best = [name for name, certainty in sure.items() if certainty == most]
        if most and len(best) > 1:
            raise InputFileError(f"looks like {' and like '.join(best)}; choose one with --log-format")
        return best[0] if most else None

    def _certainties(self, names: Iterable[str], document: StoredDocument) -> dict[str, int]:
        return {name: int(call("format", self.reader(name).recognizes, document)) for name in names}


def _packed_as(document: StoredDocument) -> tuple[str | None, str]:
    """Return an archive or compression that is not read, and the name of the first file inside.

    The lines inside a tar would look like those of one log.
    """
    head = document.head
    place, mark = _TAR
    if head[place] == mark:
        first = head[1024:] if head[156:157] in (b"x", b"g") else head  # behind what PAX says of the file
        return "tar", first[:100].partition(b"\0")[0].decode(errors="replace")
    packed = next((name for magic, name in _PACKED.items() if head.startswith(magic)), None)
    return packed, document.name.rpartition(".")[0]


def _runs(
    document: StoredDocument, name: str, reader: LogFormat, section: DocumentTally | None = None
) -> Iterator[Recording | Skipped]:
    """Yield the runs of a document, the first of its damaged parts, and the number of the others."""
    tally = section or DocumentTally()
    try:
        for item in limited(reader.read(document), RECORD_SECONDS, "reading one run"):
            if not isinstance(item, Recording | Skipped):
                raise TypeError(f"read() gave {item!r:.100}, which is neither a Recording nor Skipped")
            tally.add(isinstance(item, Recording))
            if isinstance(item, Recording) or tally.skipped <= NAMED:
                yield item
            del item
            if section is None and tally.is_hopeless:
                break
    except (EirkitError, MemoryError):
        raise  # the caller bounds memory and gives up this run alone
    except RecursionError:
        yield Skipped(document.source, "nested too deeply to be an agent log; leave it out")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the one place where a reader's failure becomes a skip
        cause = as_label(describe(error))
        yield Skipped(document.source, f"the reader of {name} failed ({cause}); report it with the file's beginning")
    else:
        yield from document_notes(document.source, name, tally) if section is None else ()


def document_notes(source: str, format: str, tally: DocumentTally) -> Iterator[Skipped]:
    """Yield the notes that follow from a whole document: no run in it, or more damage than was named."""
    if tally.is_hopeless:
        yield Skipped(source, f"the first {GIVEN_UP:,} parts are damaged; the rest was left unread")
    elif tally.skipped > NAMED:
        yield Skipped(source, f"{tally.skipped - NAMED:,} more parts are damaged; the first {NAMED} are named")
    elif not tally.runs and not tally.skipped:
        yield Skipped(source, f"holds no run, though it looks like {format}; leave it out")


def _explain(document: StoredDocument) -> Iterator[Skipped]:
    if isinstance(document.path, Remote) and document.name in _EXPORTED:
        return  # nothing is claimed in a bucket
    if not document.head.strip():
        yield Skipped(document.source, "is empty; leave it out")
    elif document.is_archive:
        yield Skipped(document.source, "is an archive in an archive; unpack the outer one")
    elif document.is_parquet and isinstance(first := next(document.rows(), (0, None))[1], Exception):
        yield Skipped(document.source, str(first))
    elif not _is_companion(document):
        yield Skipped(document.source, "is of no known format; see `eirkit vestige formats`")
    else:
        yield from damaged_rows(document)


def _is_companion(document: StoredDocument) -> bool:
    """Return whether a file belongs beside runs; a damaged one raises, so that the damage is reported."""
    name = document.name.lower()
    if name.endswith((".jsonl", ".ndjson")):
        _, first = next(document.lines(), (0, None))
        if isinstance(first, Exception):
            raise first
    elif name.endswith((".json", ".traj")):
        document.json()
    return document.name in COMPANIONS or holds_outcomes(document)


def _without_source(reason: str, source: str) -> str:
    return reason.removeprefix(source).lstrip(": ")


def naming_formats(names: Iterable[str], document: StoredDocument) -> list[str]:
    """Return those formats that may be as sure of a document as any can be."""
    return [
        name
        for name in names
        if name not in SIGNS or (name in NAMING and any(_has(document, sign) for sign in NAMING[name]))
    ]


def possible_formats(names: Iterable[str], document: StoredDocument) -> list[str]:
    """Return those formats of which a sign occurs in a document, or may do so beyond its head."""
    head = document.head
    if len(head) >= HEAD_BYTES and not shows_an_object(head):
        return list(names)
    shown = {name for sign, name in _OTHER_SIGNS if _has(document, sign)}
    # Searching the head for each of sixty keys took longer than all else that recognizes a document.
    for key in _KEYS.intersection(document.quoted):
        shown.update(name for sign, name in _BY_KEY[key] if len(sign) == len(key) + 2 or sign in head)
    return [name for name in names if name in shown or name not in SIGNS]


def _has(document: StoredDocument, sign: bytes | str) -> bool:
    if isinstance(sign, str):
        return sign in document.name
    return document.head.lstrip().startswith(sign) if sign in BEGINNINGS else sign in document.head
