"""Reads and writes record files: append-only JSON lines with a schema version, single documents, and seals.

A record exists once its newline is on disk. A writer that dies in the middle of a line leaves a torn tail, which
readers ignore and the next writer removes. Several processes and threads may append to one file; each append is one
locked write.

A sealed record or document ends with the CRC-32 of what precedes it, so that a changed byte is found when it is read.
"""

from __future__ import annotations

import json
import os
import re
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from eirkit.errors import InputFileError, UsageError
from eirkit.folders import open_ordinary, replace_file

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; one writing process per file there
    fcntl = None  # type: ignore[assignment]

SCHEMA, SEAL = "schema", "crc32"  # the first and the last field
_UTF8 = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
LARGEST_DOCUMENT = 1 << 28  # bytes
_ASCII = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False)
_SEAL = re.compile(rb',\s*"crc32": ?(\d{1,10})\s*}\s*\Z')
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)


class RecordWriter:
    """Appends records of one schema, such as `run/1`, to one file; use it in a with statement.

    Args:
        fsync: force every append to disk.
        sealed: seal every record, and keep other writers away from the file while it is open.
    """

    def __init__(self, path: Path, schema: str, *, fsync: bool = False, sealed: bool = False) -> None:
        self.path, self.schema, self.fsync, self.sealed = path, schema, fsync, sealed
        self._descriptor: int | None = None
        self._process = 0
        self._threads = threading.Lock()

    def __enter__(self) -> RecordWriter:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def append(self, *records: Mapping[str, Any], fsync: bool | None = None) -> None:
        """Append the records in one write, so that other writers cannot interleave."""
        if self._descriptor is None:
            raise ValueError("the writer is closed; use it in a with statement")
        lines = [encode(self.schema, record) for record in records]
        payload = b"".join(map(seal, lines) if self.sealed else lines)
        durable = self.fsync if fsync is None else fsync
        with self._threads:
            if self._process != os.getpid():
                # A forked process shares the open file, and with it the lock, with its parent: open our own.
                os.close(self._descriptor)
                self._open()
            if self.sealed:  # locked since it was opened
                _append(self._descriptor, os.lseek(self._descriptor, 0, os.SEEK_END), payload, durable)
            else:
                _append_locked(self._descriptor, payload, durable)

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        self._descriptor, self._process = os.open(self.path, _FLAGS, 0o644), os.getpid()
        try:
            if self.sealed:
                _lock_alone(self._descriptor, self.path)
                _drop_torn_tail(self._descriptor)
                os.lseek(self._descriptor, 0, os.SEEK_SET)
            _refuse_foreign(self._descriptor, self.path, self.schema)
        except (InputFileError, UsageError):
            self.__exit__(None, None, None)
            raise
        if self.fsync and is_new:
            sync_folder(self.path.parent)


def encode(schema: str, record: Mapping[str, Any]) -> bytes:
    """Return the record as one line of JSON, newline included, with its keys in order."""
    if SCHEMA in record:
        raise ValueError(f"the key {SCHEMA!r} is reserved; rename that key of the record")
    document = {SCHEMA: schema, **record}
    try:
        return _dump(document, _UTF8)
    except UnicodeEncodeError:
        # A lone surrogate cannot be encoded as UTF-8; escaped, every JSON reader accepts it.
        return _dump(document, _ASCII)


def _dump(document: Mapping[str, Any], encoder: json.JSONEncoder) -> bytes:
    return (encoder.encode(document) + "\n").encode()


def append_records(path: Path, schema: str, records: Iterable[Mapping[str, Any]], *, fsync: bool = False) -> None:
    """Append all records and close the file."""
    with RecordWriter(path, schema, fsync=fsync) as writer:
        writer.append(*records)


def read_records(
    path: Path, schema: str, *, limit_bytes: int = 1 << 26, sealed: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield the complete records of a file, in order.

    Args:
        sealed: every record must have a checksum.

    Raises:
        InputFileError: a line is damaged, longer than `limit_bytes`, or of another schema.
    """
    try:
        stream = open_ordinary(path)
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}; check the path") from error
    with stream:
        number = 0
        while line := stream.readline(limit_bytes + 1):
            number += 1
            if len(line) > limit_bytes:
                raise InputFileError(f"{path}:{number}: line longer than {limit_bytes} bytes; give a file of records")
            if not line.endswith(b"\n"):
                return  # torn tail: this record was never completed
            if sealed:
                check_seal(line, f"{path}:{number}", is_needed=True)
            yield decode(line, schema, path, number)


def write_document(path: Path, schema: str, document: Mapping[str, Any], *, sealed: bool = False) -> None:
    """Replace a file with one JSON document atomically: concurrent readers see the old or the new document."""
    text = json.dumps({SCHEMA: schema, **document}, ensure_ascii=False, allow_nan=False, indent=1)
    body = text.encode("utf-8", "replace")
    if sealed:
        body = b'%s,\n "crc32": %d\n}' % (body[:-2], zlib.crc32(body[:-2]))
    replace_file(path, body + b"\n", is_durable=True)
    sync_folder(path.parent)


def read_document(path: Path, schema: str, limit_bytes: int = LARGEST_DOCUMENT) -> dict[str, Any]:
    """Return the document in a file, without its schema.

    Raises:
        InputFileError: the file is missing, too large, damaged, changed since it was sealed, or of another schema.
    """
    try:
        with open_ordinary(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            content = stream.read() if size <= limit_bytes else b""
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}; check the path") from error
    if size > limit_bytes:
        raise InputFileError(f"{path} has more than {limit_bytes:,} bytes; restore the file")
    check_seal(content, str(path))
    return decode(content, schema, path, 1)


def decode(line: bytes, schema: str, path: Path, number: int) -> dict[str, Any]:
    """Return the record of a line, without its schema; `path` and `number` are for the message if it is damaged."""
    try:
        record = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise InputFileError(f"{path}:{number}: not JSON ({error}); remove the line or restore the file") from error
    found = record.get(SCHEMA) if isinstance(record, dict) else None
    if found != schema:
        raise InputFileError(f"{path}:{number}: schema {found!r}, expected {schema!r}; use the version that wrote it")
    del record[SCHEMA]
    record.pop(SEAL, None)
    return dict(record)


def seal(line: bytes) -> bytes:
    """Return a line of JSON with the checksum of what it has so far as its last field."""
    body = line[:-2]
    return b'%s,"crc32":%d}\n' % (body, zlib.crc32(body))


def check_seal(content: bytes, where: str, *, is_needed: bool = False) -> None:
    """Raise InputFileError if a record or document is not what was sealed; one without a seal is accepted.

    Args:
        where: file and line, for the message.
        is_needed: do not accept it without a seal either.
    """
    if (why := broken_seal(content, is_needed=is_needed)) is not None:
        raise InputFileError(f"{where}: {why}")


def broken_seal(content: bytes, *, is_needed: bool = False) -> str | None:
    """Return why a record or document is not what was sealed, and what to do; None if it is."""
    tail = content[-64:]
    found = _SEAL.search(tail)
    if found is None:
        return "the checksum is missing or damaged; restore the file" if is_needed else None
    sealed = content[: len(content) - len(tail) + found.start()]
    changed = "changed since it was written, as its checksum shows; restore the file"
    return changed if zlib.crc32(sealed) != int(found[1]) else None


def _append_locked(descriptor: int, payload: bytes, fsync: bool) -> None:
    _lock(descriptor, True)
    try:
        _append(descriptor, _drop_torn_tail(descriptor), payload, fsync)
    finally:
        _lock(descriptor, False)


def _append(descriptor: int, end: int, payload: bytes, fsync: bool) -> None:
    try:
        view = memoryview(payload)
        while view:
            view = view[os.write(descriptor, view) :]
        if fsync:
            os.fsync(descriptor)
    except BaseException:
        os.ftruncate(descriptor, end)  # full disk or interrupt: write all of the records or none
        raise


def _lock_alone(descriptor: int, path: Path) -> None:
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"another process is writing to {path}; wait for it or stop it") from None


def _lock(descriptor: int, held: bool) -> None:
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX if held else fcntl.LOCK_UN)


def _drop_torn_tail(descriptor: int) -> int:
    """Remove bytes after the last newline and return the length of the file."""
    # We hold the lock, so such bytes belong to a writer that died.
    end = position = os.lseek(descriptor, 0, os.SEEK_END)
    size = 1  # almost always the last byte is a newline
    while position:
        start = max(0, position - size)
        os.lseek(descriptor, start, os.SEEK_SET)
        newline = os.read(descriptor, position - start).rfind(b"\n")
        if newline >= 0:
            position = start + newline + 1
            break
        position, size = start, 1 << 16
    if position != end:
        os.ftruncate(descriptor, position)
    return position


def _refuse_foreign(descriptor: int, path: Path, schema: str) -> None:
    """Refuse a file that does not start with our schema: appending would mix versions or truncate foreign data."""
    ours = encode(schema, {})[:-2]
    head = os.read(descriptor, len(ours) + 1)
    if head[: len(ours)] != ours[: len(head)] or head[len(ours) :] not in (b"", b",", b"}"):
        raise InputFileError(f"{path} is not a file of {schema!r} records; write to another file")


def sync_folder(folder: Path) -> None:
    # A new file survives a power failure only once its directory entry is on disk too.
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
