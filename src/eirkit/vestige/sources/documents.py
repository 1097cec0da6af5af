"""Opens log files (plain, `.gz`, `.zst`, `.zip`, Parquet); `ReadLimits`: how much of each is read at most.

There is one document per log file, and its bytes are read only when a format needs them. Nothing is unpacked to disk or
written.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from pathlib import PurePosixPath
from typing import IO, Any, Protocol, TypeAlias

from eirkit.errors import InputFileError
from eirkit.vestige.sources.json_parser import (
    BYTE_ORDER_MARK,
    PARSER_NESTING,
    finds_next_line,
    first_records,
    parse_json,
    parse_line,
    pass_blank_lines,
)
from eirkit.vestige.sources.members import ArchiveTree, Folder, MemberPath
from eirkit.vestige.sources.parquet import read_rows
from eirkit.vestige.sources.remote import Location, Remote
from eirkit.vestige.sources.streams import (
    EMPTY_ZIP_MAGIC,
    PARQUET_MAGIC,
    ZIP_MAGIC,
    Archive,
    Opener,
    as_label,
    cause_of,
    open_file,
    open_slice,
    open_unpacked,
    read_bounded,
    why_not_a_file,
    without_compression,
)

HEAD_BYTES = 1 << 16
_MARKS = (ZIP_MAGIC, EMPTY_ZIP_MAGIC, PARQUET_MAGIC)
_MARK_BYTES = 4


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """How much of an untrusted file is read."""

    document_bytes: int = 1 << 30  # one whole document, decompressed
    line_bytes: int = 1 << 28  # one line of JSON lines
    nesting: int = PARSER_NESTING  # nesting levels of JSON; a lower limit costs a pass over every document


@dataclass(frozen=True, slots=True)
class LineRange:
    """A range of complete lines of a file."""

    start: int  # bytes
    stop: int
    lines_before: int


@dataclass(frozen=True, slots=True)
class RowRange:
    """A range of rows of a Parquet file."""

    start: int  # rows before the range
    stop: int


@dataclass(frozen=True, slots=True)
class MemberRange:
    """A range of an archive's members in name order, and all members without the prefix."""

    start: int  # members with the prefix before the range
    stop: int
    prefix: str = ""


Section: TypeAlias = LineRange | RowRange | MemberRange

NAMED = 100  # damaged parts of one document that are reported one by one; the rest is counted


_NUMBER = re.compile(r"\d+")


class HasReason(Protocol):
    """A part of the logs that was not read."""

    @property
    def source(self) -> str: ...
    @property
    def reason(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part of the input that could not be read, and why."""

    source: str
    reason: str


def complaints(skipped: Iterable[HasReason]) -> list[str]:
    """Return one line for each cause, with the first part of the logs that it hit and the number of the others.

    Reasons that differ in numbers alone, such as places in a file, are one cause.
    """
    causes: dict[str, list[HasReason]] = {}
    for part in skipped:
        causes.setdefault(_NUMBER.sub("", part.reason), []).append(part)
    return [
        f"{parts[0].source}{f' and {len(parts) - 1:,} more' if len(parts) > 1 else ''}: {parts[0].reason}"
        for parts in causes.values()
    ]


class LogDocument(Protocol):
    """One log file, wherever it is stored; every method raises InputFileError with the source and a remedy."""

    @property
    def source(self) -> str:
        """Its display name: a path relative to the given one, with the member of an archive after a colon."""

    @property
    def name(self) -> str:
        """The last component of its path, without suffixes of compression."""

    @property
    def head(self) -> bytes:
        """Its first 64 KiB, decompressed; of an archive or a Parquet file only its magic bytes."""

    @property
    def quoted(self) -> Collection[bytes]:
        """What stands between neighboring quotes in its head: the keys of objects and the strings without escapes."""

    @property
    def first_records(self) -> Sequence[Mapping[str, Any]]:
        """The objects on its first lines, for JSON lines; none for one JSON document of several lines.

        A first line of any length is passed over or read; lines that are not JSON, such as a preamble, are left out.
        """

    @property
    def parent(self) -> Folder | None:
        """The folder that contains it, for files beside it; None for a remote file."""

    def json(self) -> Any:
        """Return the whole document as one JSON value."""

    def text(self) -> str:
        """Return the whole document as text, with invalid UTF-8 replaced."""

    def lines(self) -> Iterator[tuple[int, Any | Exception]]:
        """Yield each line's JSON value with its number, or an error whose text is the reason alone.

        Blank lines are skipped but counted.
        """

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any] | Exception]]:
        """Yield each row of a Parquet file with its number, or an error for the rest of a damaged row group."""

    def members(self) -> Sequence[LogDocument]:
        """Return the documents inside an archive; none for anything else."""


class StoredDocument:
    """A file on disk or a member of an archive."""

    def __init__(
        self,
        open_stored: Opener,
        source: str,
        name: str,
        parent: Folder | None,
        limits: ReadLimits,
        path: Location | None = None,
        section: Section | None = None,
    ) -> None:
        self.open_stored, self.limits = open_stored, limits
        self.source, self.name, self.parent = source, name, parent
        self.path = path  # its location; None inside an archive
        self.section = section  # None: the whole file
        self.inner = ""  # of a member: its path in the archive
        self.place: MemberPath | None = None  # of a member: the same, for what lies beside it
        self._head: bytes | None = None
        self._quoted: frozenset[bytes] | None = None
        self._records: tuple[Mapping[str, Any], ...] | None = None

    @property
    def head(self) -> bytes:
        """Its first 64 KiB, decompressed; of an archive or a Parquet file only its magic bytes."""
        if self._head is None:
            with self.opened() as stream:
                # Editors and shells of Windows put a mark before the text.
                beginning = stream.read(HEAD_BYTES + len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK)[:HEAD_BYTES]
            # Uncompressed content of an archive must not make it look like another format.
            self._head = beginning[:_MARK_BYTES] if beginning.startswith(_MARKS) else beginning
        return self._head

    @property
    def quoted(self) -> Collection[bytes]:
        """What stands between neighboring quotes in its head: a dozen formats look for keys there, most in vain."""
        if self._quoted is None:
            self._quoted = frozenset(self.head.split(b'"')[1:-1])
        return self._quoted

    @property
    def first_records(self) -> Sequence[Mapping[str, Any]]:
        """The objects on its first lines, however long the first one is."""
        if self._records is None:
            is_whole = len(self.head) < HEAD_BYTES
            self._records = first_records(self.head, is_whole, self.opened, self.limits.line_bytes)
        return self._records

    def json(self) -> Any:
        """Return the whole document as one JSON value."""
        try:
            return parse_json(self._content(), self.limits.nesting)
        except InputFileError as error:
            raise InputFileError(self._named(error)) from error

    def text(self) -> str:
        """Return the whole document as text, with invalid UTF-8 replaced."""
        return self._content().decode("utf-8-sig", "replace")

    def lines(self) -> Iterator[tuple[int, Any | Exception]]:
        """Yield each JSON line with its number, or an error whose text is the reason alone."""
        with self.opened() as stream:
            number = self.section.lines_before if isinstance(self.section, LineRange) else 0
            while line := stream.readline(self.limits.line_bytes + 1):
                number += 1
                if len(line) > self.limits.line_bytes:
                    yield number, InputFileError(f"longer than {self.limits.line_bytes:,} bytes; remove the line")
                    if not finds_next_line(stream, line, self.limits.document_bytes):
                        return
                elif line.isspace():
                    number += pass_blank_lines(stream)
                else:
                    yield number, parse_line(line, self.limits.nesting)

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any] | Exception]]:
        """Yield each row of a Parquet file with its number, or an error for the rest of a damaged row group."""
        if self.is_parquet:
            part = (self.section.start, self.section.stop) if isinstance(self.section, RowRange) else (0, None)
            with self.open_seekable() as stored:
                yield from read_rows(stored, self.source, self.limits.document_bytes, *part)

    def members(self) -> Sequence[StoredDocument]:
        """Return the documents inside an archive; none for anything else."""
        found = self.all_members()
        return _within(self.section, found) if isinstance(self.section, MemberRange) else found

    def all_members(self) -> Sequence[StoredDocument]:
        """Return the documents inside an archive, whatever section of it this is."""
        if not self.is_archive:
            return ()
        archive = Archive(self.open_stored, self.source, self.limits.document_bytes)
        found = [_member_document(archive, entry, self.source, self.limits) for entry in archive.members()]
        tree = ArchiveTree(found)
        for member in found:
            member.place = tree.path_of(member)
            member.parent = None if member.place is None else member.place.parent
        return found

    @property
    def is_archive(self) -> bool:
        """True for a zip archive, whatever its name."""
        return self.head.startswith((ZIP_MAGIC, EMPTY_ZIP_MAGIC))

    @property
    def is_parquet(self) -> bool:
        """True for a Parquet file, whatever its name."""
        return self.head.startswith(PARQUET_MAGIC)

    @contextmanager
    def opened(self) -> Iterator[BufferedReader]:
        """Open its bytes, decompressed."""
        try:
            with open_unpacked(self.open_stored, self.source, self.limits.document_bytes) as stream:
                yield stream
        except OSError as error:
            raise InputFileError(f"{self.source}: cannot be read ({cause_of(error)}); restore the file") from error

    def open_seekable(self) -> IO[bytes]:
        """Open the stored bytes of a Parquet file."""
        stored = self.open_stored()
        if stored.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC and stored.seekable():
            return stored
        stored.close()
        return BytesIO(self._content())

    def _content(self) -> bytes:
        with self.opened() as stream:
            return read_bounded(stream, self.source, self.limits.document_bytes)

    def _named(self, error: InputFileError) -> str:
        text = str(error)
        return text if text.startswith(self.source) else f"{self.source}: {text}"


def open_document(
    path: Location | MemberPath,
    limits: ReadLimits = ReadLimits(),  # noqa: B008 - frozen
    source: str | None = None,
) -> StoredDocument:
    """Return the document at a path without reading it.

    Raises:
        InputFileError: the path is missing, a folder, a pipe, a socket or a device.
    """
    if isinstance(path, MemberPath):
        return _opened_member(path, source)
    source = as_label(path.name if source is None else source)
    reason = None if isinstance(path, Remote) else why_not_a_file(path)
    if reason:
        raise InputFileError(f"{as_label(str(path))} {reason}")
    name = without_compression(as_label(path.name))
    beside = None if isinstance(path, Remote) else path.parent
    return StoredDocument(lambda: open_file(path, source), source, name, beside, limits, path)


def open_lines(
    path: Location,
    span: LineRange,
    limits: ReadLimits = ReadLimits(),  # noqa: B008 - frozen
    source: str | None = None,
) -> StoredDocument:
    """Return some lines of an uncompressed file as a document of their own."""
    whole = open_document(path, limits, source)

    def open_span() -> IO[bytes]:
        return open_slice(open_file(path, whole.source), span.start, span.stop)

    return StoredDocument(open_span, whole.source, whole.name, whole.parent, limits, path, span)


def open_section(path: Location, section: Section | None, limits: ReadLimits, source: str) -> StoredDocument:
    """Return a document, or a section of it as a document of its own."""
    if isinstance(section, LineRange):
        return open_lines(path, section, limits, source)
    whole = open_document(path, limits, source)
    whole.section = section
    return whole


def _opened_member(path: MemberPath, source: str | None) -> StoredDocument:
    found = path.tree.files.get(path.inner)
    if not isinstance(found, StoredDocument):
        raise InputFileError(f"{as_label(path.inner)} is not in the archive")
    label = found.source if source is None else as_label(source)
    return StoredDocument(found.open_stored, label, found.name, found.parent, found.limits)


def _member_document(archive: Archive, entry: zipfile.ZipInfo, source: str, limits: ReadLimits) -> StoredDocument:
    label = as_label(f"{source}:{entry.filename}")
    name = without_compression(as_label(PurePosixPath(entry.filename.replace("\\", "/")).name))
    member = StoredDocument(lambda: archive.open(entry, label), label, name, None, limits)
    member.inner = label.removeprefix(f"{source}:")
    return member


def _within(section: MemberRange, members: Sequence[StoredDocument]) -> list[StoredDocument]:
    chosen, place = [], 0
    for member in members:
        counts = member.inner.startswith(section.prefix)
        if not counts or section.start <= place < section.stop:
            chosen.append(member)
        place += counts
    return chosen
