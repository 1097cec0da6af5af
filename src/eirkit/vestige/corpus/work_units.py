"""Divides a corpus into work units that one worker can read by itself, in order.

Small documents are grouped, large ones are cut into sections. The division depends on the corpus alone and never on the
workers, so that equal corpora give equal units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from zipfile import ZipInfo

from eirkit.errors import InputFileError
from eirkit.vestige.corpus.reader import CorpusReader
from eirkit.vestige.sources.documents import (
    LineRange,
    MemberRange,
    ReadLimits,
    RowRange,
    Section,
    Skipped,
    StoredDocument,
    open_section,
)
from eirkit.vestige.sources.parquet import RowGroup, row_groups
from eirkit.vestige.sources.remote import Location, Remote
from eirkit.vestige.sources.streams import Archive, open_file
from eirkit.vestige.trajectory import formats

_CHUNK_BYTES = 1 << 22
_LINES = (".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class DocumentSections:
    """How a document is divided."""

    format: str | None  # None: every section is one or more documents of its own
    cuts: Iterable[tuple[Section, int]]  # sections with their unpacked bytes


WHOLE = DocumentSections(None, ())


def sections_of(reader: CorpusReader, root: Location, document: StoredDocument, size: int) -> DocumentSections:
    """Return sections of about a size in which a document can be read; none if it must be read whole."""
    try:
        if _is_compressed(document):
            return WHOLE
        if document.is_parquet:
            name = _format(reader, root, document, "run_per_row")
            sizes = [(group.stop - group.start, group.claimed_bytes) for group in _groups(document)] if name else []
            return DocumentSections(
                name, [(RowRange(start, stop), weight) for start, stop, weight in _joined(sizes, size)]
            )
        if document.is_archive:
            return _members(reader, root, document, size)
        name = _format(reader, root, document, "run_per_line") if document.name.lower().endswith(_LINES) else None
        if name is None:
            return WHOLE
    except InputFileError:
        return WHOLE  # whoever reads it will say what is wrong
    return DocumentSections(name, ((span, span.stop - span.start) for span in spans(document, size)))


def halves_of(document: StoredDocument, section: Section) -> list[Section]:
    """Return a section in two, or line by line where one line is most of it; none if it cannot be divided."""
    if isinstance(section, LineRange):
        found = list(spans(document, max(1, (section.stop - section.start) // 2), section))
        found = found if len(found) > 1 else list(spans(document, 1, section))
        return [*found] if len(found) > 1 else []
    middle = (section.start + section.stop) // 2
    if middle == section.start:
        return []
    ends = ((section.start, middle), (middle, section.stop))
    return [RowRange(*pair) if isinstance(section, RowRange) else MemberRange(*pair, section.prefix) for pair in ends]


def name_of(document: StoredDocument, section: Section | None) -> str:
    """Return the name of the first item in a section."""
    if section is None:
        return document.source
    if isinstance(section, MemberRange):
        chosen = [one for one in document.members() if one.inner.startswith(section.prefix)]
        return chosen[0].source if chosen else document.source
    return f"{document.source}:{(section.lines_before if isinstance(section, LineRange) else section.start) + 1}"


def stored_ranges(document: StoredDocument, section: Section) -> list[tuple[int, int | None]]:
    """Return the byte ranges that hold the content of a section; None as an end means the end of the file."""
    if isinstance(section, LineRange):
        return [(section.start, section.stop)]
    if isinstance(section, RowRange):
        groups = _groups(document)
        own = [group for group in groups if group.start < section.stop and group.stop > section.start]
        # The footer after the last row group is needed to read any of them.
        return [*((one.first_byte, one.last_byte) for one in own), (max(one.last_byte for one in groups), None)]
    archive = _archive(document)
    entries = archive.members()
    ends = dict(zip(_offsets(entries), [*_offsets(entries)[1:], archive.directory_byte], strict=True))
    own_names = {one.inner for one in document.members()}
    named = zip(document.all_members(), entries, strict=True)
    starts = [entry.header_offset for member, entry in named if member.inner in own_names]
    return [*((start, ends[start]) for start in starts), (archive.directory_byte, None)]


def spans(document: StoredDocument, size: int, within: LineRange | None = None) -> Iterator[LineRange]:
    """Yield spans of about a size that end at line ends."""
    path = document.path
    assert path is not None
    began = position = within.start if within else 0
    before = lines = within.lines_before if within else 0
    with open_file(path, document.source) as stream:
        stream.seek(began)
        while (within is None or position < within.stop) and (line := stream.readline(_CHUNK_BYTES)):
            position += len(line)
            lines += line.endswith(b"\n")
            if position - began >= size and line.endswith(b"\n"):
                yield LineRange(began, position, before)
                began, before = position, lines
        if position > began:
            yield LineRange(began, position, before)


def _format(reader: CorpusReader, root: Location, document: StoredDocument, verb: str) -> str | None:
    """Return a document's format if every line or row of it is a run."""
    name = reader.format_of(document, root)
    return name if name is not None and getattr(formats.get(name), verb, False) else None


def _members(reader: CorpusReader, root: Location, document: StoredDocument, size: int) -> DocumentSections:
    name = reader.format_of(document, root)
    prefix = "" if name is None else getattr(formats.get(name), "run_per_member", None)
    if prefix is None:
        return WHOLE
    named = zip(document.all_members(), _archive(document).members(), strict=True)
    sizes = [(1, entry.file_size) for member, entry in named if member.inner.startswith(prefix)]
    return DocumentSections(
        name, [(MemberRange(start, stop, prefix), weight) for start, stop, weight in _joined(sizes, size)]
    )


def _joined(sizes: Iterable[tuple[int, int]], size: int) -> Iterator[tuple[int, int, int]]:
    """Yield the beginning, end and size of stretches of about a size."""
    start = stop = weight = 0
    for things, heavy in sizes:
        stop, weight = stop + things, weight + heavy
        if weight >= size:
            yield start, stop, weight
            start, weight = stop, 0
    if stop > start:
        yield start, stop, weight


def _groups(document: StoredDocument) -> Sequence[RowGroup]:
    with document.open_seekable() as stored:
        return row_groups(stored, document.source, document.limits.document_bytes)


def _archive(document: StoredDocument) -> Archive:
    return Archive(document.open_stored, document.source, document.limits.document_bytes)


def _offsets(entries: Iterable[ZipInfo]) -> list[int]:
    return sorted({entry.header_offset for entry in entries})


def _is_compressed(document: StoredDocument) -> bool:
    path = document.path
    assert path is not None
    beginning = document.head[:64]
    with open_file(path, document.source) as stream:
        return stream.read(len(beginning)) != beginning


PIECE_BYTES = 8 << 20  # one or two seconds of work
PIECE_DOCUMENTS = 64
_PACKED = 8  # assumed ratio of unpacked to packed bytes
_PACKED_ENDINGS = (".eval", ".gz", ".parquet", ".zip", ".zst", ".zstd")


@dataclass(frozen=True, slots=True)
class DocumentRange:
    """One document, or a section of one."""

    root: Location  # the path that was given
    path: Location
    source: str
    section: Section | None = None  # None: the whole document
    format: str | None = None  # format of a section

    def open(self, limits: ReadLimits) -> StoredDocument:
        """Return the document without reading it."""
        return open_section(self.path, self.section, limits, self.source)


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """What one worker reads at a time, with the items skipped at that position."""

    items: tuple[DocumentRange | Skipped, ...]

    @property
    def places(self) -> tuple[DocumentRange, ...]:
        return tuple(item for item in self.items if isinstance(item, DocumentRange))

    @property
    def section(self) -> DocumentRange | None:
        """The section that it consists of; None for whole documents."""
        first = self.items[0]
        return first if isinstance(first, DocumentRange) and first.section is not None else None

    def halves(self, limits: ReadLimits) -> tuple[WorkUnit, ...]:
        """Return the unit in smaller parts; none if it cannot be divided further."""
        if len(self.items) > 1:
            middle = len(self.items) // 2
            return WorkUnit(self.items[:middle]), WorkUnit(self.items[middle:])
        place = self.section
        if place is None or place.section is None:
            return ()
        halves = halves_of(place.open(limits), place.section)
        return tuple(WorkUnit((replace(place, section=half),)) for half in halves)


def plan_work_units(reader: CorpusReader, paths: Sequence[Location]) -> Iterator[WorkUnit]:
    """Yield the work units of a corpus in the order of its documents."""
    items: list[DocumentRange | Skipped] = [*reader.damaged_results(paths)]
    size = 0
    for root in paths:
        for document in reader.documents(root):
            if isinstance(document, Skipped):
                items.append(document)
                continue
            for place, weight in _places(reader, root, document):
                is_full = size + weight > PIECE_BYTES or len(items) >= PIECE_DOCUMENTS
                if items and (is_full or place.section is not None):
                    yield WorkUnit(tuple(items))
                    items, size = [], 0
                if place.section is not None:
                    yield WorkUnit((place,))
                else:
                    items.append(place)
                    size += weight
    if items:
        yield WorkUnit(tuple(items))


def _places(reader: CorpusReader, root: Location, document: StoredDocument) -> Iterator[tuple[DocumentRange, int]]:
    path = document.path
    assert path is not None
    try:
        size = path.size() if isinstance(path, Remote) else path.stat().st_size
    except (OSError, InputFileError):
        size = 0  # whoever reads it will say what is wrong
    whole = DocumentRange(root, path, document.source)
    if size > 2 * PIECE_BYTES or (size > 2 * PIECE_BYTES // _PACKED and _is_packed(document)):
        found = sections_of(reader, root, document, PIECE_BYTES)
        cuts = iter(found.cuts)
        first, second = next(cuts, None), next(cuts, None)
        if first and second:
            for section, weight in chain((first, second), cuts):
                yield replace(whole, section=section, format=found.format), weight
            return
    yield whole, size


def growth_of(name: str) -> int:
    """Return how much a file may grow when it is unpacked, judging by its name."""
    return _PACKED if name.lower().endswith(_PACKED_ENDINGS) else 1


def _is_packed(document: StoredDocument) -> bool:
    try:
        return document.is_parquet or document.is_archive
    except InputFileError:
        return False
