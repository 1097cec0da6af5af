"""Where a large document may be cut: between lines of JSON lines, row groups of Parquet and members of archives.

A document comes in; sections go out, in order, with what they hold, where that is stored and what it is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from zipfile import ZipInfo

from eirkit.errors import InputFileError
from eirkit.vestige.corpus import CorpusReader
from eirkit.vestige.parquet_footer import RowGroup
from eirkit.vestige.parquet_rows import row_groups
from eirkit.vestige.remote import Location
from eirkit.vestige.source import Members, Rows, Section, Span, StoredDocument
from eirkit.vestige.trajectory import formats
from eirkit.vestige.unpacking import Archive, open_file

_CHUNK_BYTES = 1 << 22
_LINES = (".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class Sections:
    """How a document is cut."""

    format: str | None  # None: every section is a document of its own, or several
    cuts: Iterable[tuple[Section, int]]  # with their bytes, unpacked


WHOLE = Sections(None, ())


def sections_of(reader: CorpusReader, root: Location, document: StoredDocument, size: int) -> Sections:
    """Return the sections of about a size in which a document can be read; none where it is to be read whole."""
    try:
        if _is_compressed(document):
            return WHOLE
        if document.is_parquet:
            name = _format(reader, root, document, "run_per_row")
            sizes = [(group.stop - group.start, group.claimed_bytes) for group in _groups(document)] if name else []
            return Sections(name, [(Rows(start, stop), weight) for start, stop, weight in _joined(sizes, size)])
        if document.is_archive:
            return _members(reader, root, document, size)
        name = _format(reader, root, document, "run_per_line") if document.name.lower().endswith(_LINES) else None
        if name is None:
            return WHOLE
    except InputFileError:
        return WHOLE  # whoever reads it will say what is wrong
    return Sections(name, ((span, span.stop - span.start) for span in spans(document, size)))


def halves_of(document: StoredDocument, section: Section) -> list[Section]:
    """Return a section as two, or as one for each line where one of them is most of it; none if it is one thing."""
    if isinstance(section, Span):
        found = list(spans(document, max(1, (section.stop - section.start) // 2), section))
        found = found if len(found) > 1 else list(spans(document, 1, section))
        return [*found] if len(found) > 1 else []
    middle = (section.start + section.stop) // 2
    if middle == section.start:
        return []
    ends = ((section.start, middle), (middle, section.stop))
    return [Rows(*pair) if isinstance(section, Rows) else Members(*pair, section.prefix) for pair in ends]


def name_of(document: StoredDocument, section: Section | None) -> str:
    """Return what the first thing in a section is called."""
    if section is None:
        return document.source
    if isinstance(section, Members):
        chosen = [one for one in document.members() if one.inner.startswith(section.prefix)]
        return chosen[0].source if chosen else document.source
    return f"{document.source}:{(section.lines_before if isinstance(section, Span) else section.start) + 1}"


def stored_ranges(document: StoredDocument, section: Section) -> list[tuple[int, int | None]]:
    """Return from which byte to which the content of a section is stored; None: to the end."""
    if isinstance(section, Span):
        return [(section.start, section.stop)]
    if isinstance(section, Rows):
        groups = _groups(document)
        own = [one for one in groups if one.start < section.stop and one.stop > section.start]
        # What lies behind the last row group says how to read them all.
        return [*((one.first_byte, one.last_byte) for one in own), (max(one.last_byte for one in groups), None)]
    archive = _archive(document)
    entries = archive.members()
    ends = dict(zip(_offsets(entries), [*_offsets(entries)[1:], archive.directory_byte], strict=True))
    own_names = {one.inner for one in document.members()}
    named = zip(document.all_members(), entries, strict=True)
    starts = [entry.header_offset for member, entry in named if member.inner in own_names]
    return [*((start, ends[start]) for start in starts), (archive.directory_byte, None)]


def spans(document: StoredDocument, size: int, within: Span | None = None) -> Iterator[Span]:
    """Yield spans of about a size that end where lines do."""
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
                yield Span(began, position, before)
                began, before = position, lines
        if position > began:
            yield Span(began, position, before)


def _format(reader: CorpusReader, root: Location, document: StoredDocument, verb: str) -> str | None:
    """Return a document's format if every line or row of it is a run."""
    name = reader.format_of(document, root)
    return name if name is not None and getattr(formats.get(name), verb, False) else None


def _members(reader: CorpusReader, root: Location, document: StoredDocument, size: int) -> Sections:
    name = reader.format_of(document, root)
    prefix = "" if name is None else getattr(formats.get(name), "run_per_member", None)
    if prefix is None:
        return WHOLE
    named = zip(document.all_members(), _archive(document).members(), strict=True)
    sizes = [(1, entry.file_size) for member, entry in named if member.inner.startswith(prefix)]
    return Sections(name, [(Members(start, stop, prefix), weight) for start, stop, weight in _joined(sizes, size)])


def _joined(sizes: Iterable[tuple[int, int]], size: int) -> Iterator[tuple[int, int, int]]:
    """Yield where stretches of about a size begin and end, and what they weigh."""
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
