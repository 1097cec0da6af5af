"""Append-only JSON lines, each with the version of its schema: generated tasks, and compactions as they are tried.

A record exists once its newline is on disk. A writer that dies in the middle of a line leaves a torn tail, which
readers ignore and the next writer removes. Several processes and threads may append to one file; each append is one
locked write.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from eirkit.errors import InputFileError
from eirkit.folders import open_ordinary
from eirkit.records.documents import sync_folder

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; one writing process per file there
    fcntl = None  # type: ignore[assignment]

SCHEMA = "schema"  # the first field
_UTF8 = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_ASCII = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False)
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)


class RecordWriter:
    """Appends records of one schema, such as `task/1`, to one file; use it in a with statement.

    Args:
        fsync: force every append to disk.
    """

    def __init__(self, path: Path, schema: str, *, fsync: bool = False) -> None:
        self.path, self.schema, self.fsync = path, schema, fsync
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

    def append(self, *records: Mapping[str, Any]) -> None:
        """Append the records in one write, so that other writers cannot interleave."""
        if self._descriptor is None:
            raise ValueError("the writer is closed; use it in a with statement")
        payload = b"".join([encode(self.schema, record) for record in records])
        with self._threads:
            if self._process != os.getpid():
                # A forked process shares the open file, and with it the lock, with its parent: open our own.
                os.close(self._descriptor)
                self._open()
            _append_locked(self._descriptor, payload, self.fsync)

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        self._descriptor, self._process = os.open(self.path, _FLAGS, 0o644), os.getpid()
        try:
            _refuse_foreign(self._descriptor, self.path, self.schema)
        except InputFileError:
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
        return (_UTF8.encode(document) + "\n").encode()
    except UnicodeEncodeError:
        # A lone surrogate cannot be encoded as UTF-8; escaped, every JSON reader accepts it.
        return (_ASCII.encode(document) + "\n").encode()


def read_records(path: Path, schema: str, *, limit_bytes: int = 1 << 26) -> Iterator[dict[str, Any]]:
    """Yield the complete records of a file, in order.

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
            yield _decode(line, schema, path, number)


def _decode(line: bytes, schema: str, path: Path, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise InputFileError(f"{path}:{number}: not JSON ({error}); remove the line or restore the file") from error
    found = record.get(SCHEMA) if isinstance(record, dict) else None
    if found != schema:
        raise InputFileError(f"{path}:{number}: schema {found!r}, expected {schema!r}; use the version that wrote it")
    del record[SCHEMA]
    return dict(record)


def _append_locked(descriptor: int, payload: bytes, fsync: bool) -> None:
    _lock(descriptor, True)
    try:
        end = _drop_torn_tail(descriptor)
        try:
            view = memoryview(payload)
            while view:
                view = view[os.write(descriptor, view) :]
            if fsync:
                os.fsync(descriptor)
        except BaseException:
            os.ftruncate(descriptor, end)  # full disk or interrupt: write all of the records or none
            raise
    finally:
        _lock(descriptor, False)


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
