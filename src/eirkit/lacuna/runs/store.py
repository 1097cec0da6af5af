"""The files of a run folder (runs.jsonl, events.jsonl.zst, failures.jsonl): format, one writer at a time, seals.

The events of a run are appended as one compressed block, and then its line to runs.jsonl. A run exists once that
line is complete. The next writer removes what a killed writer left incomplete, so that no run is lost or stored twice.
Failed runs are listed in failures.jsonl and repeated on resume.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any

from eirkit.errors import InputFileError, UsageError
from eirkit.folders import open_ordinary
from eirkit.lacuna.agents.telemetry import with_stores
from eirkit.lacuna.runs.journal import LEDGER, is_without_calls
from eirkit.records.event_blocks import EVENTS, pack, read_block
from eirkit.records.lines import (
    SEAL,
    append_records,
    check_seal,
    encode,
    read_records,
    seal,
    sync_folder,
    write_document,
)

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; two writers are not detected there
    fcntl = None  # type: ignore[assignment]

RUNS, FAILURES, LOCK = "runs.jsonl", "failures.jsonl", ".lock"
SUMMARY = "summary.json"  # written last
EVENT_SCHEMA, RUN_SCHEMA, FAILURE_SCHEMA = "event/1", "run/1", "failure/1"
LARGEST_RECORD = 1 << 26  # bytes of one line
UNFORCED_BYTES = 1 << 27  # most events that a power failure could damage; they are verified on resume
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run that is ready to be stored."""

    record: Mapping[str, Any]  # the fields of run/1, without `events`
    events: bytes  # its lines of event/1
    count: int  # number of events


class RunStore:
    """Appends to a sweep's folder; use it in a with statement."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open: list[int] = []  # descriptors
        self._events = self._runs = -1
        self._ends = (0, 0)  # lengths of the two files up to the last complete run
        self._forced = 0  # length of the events that is synced to disk

    def __enter__(self) -> RunStore:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._open = [_lock_folder(self.folder)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._open:
            os.close(self._open.pop())

    def recover(self) -> Iterator[str]:
        """Open the files and yield the ids of all complete runs; at the end, remove incomplete data.

        The iterator must be exhausted before anything is written.
        """
        self._events, self._runs = (os.open(self.folder / name, _FLAGS, 0o644) for name in (EVENTS, RUNS))
        self._open += [self._events, self._runs]
        sync_folder(self.folder)  # a file is lost if its directory entry is
        self._ends = (0, 0)
        size = os.fstat(self._events).st_size
        for record, end in scan_runs(self.folder / RUNS):
            place = record["events"]
            if place["offset"] != self._ends[0]:
                raise InputFileError(f"{self.folder / RUNS}: run {record['run']} is out of place; restore the folder")
            if not self._is_whole(place, size):
                break  # a power failure kept the line and lost its events: repeat this run and all that follow
            self._ends = (place["offset"] + place["bytes"], end)
            yield record["run"]
        self._cut()
        for descriptor in (self._events, self._runs) if self._ends[1] else ():
            os.fsync(descriptor)
        self._forced = self._ends[0]

    def _is_whole(self, place: Mapping[str, int], size: int) -> bool:
        """True if the events of a run are complete; recent ones are verified by checksum."""
        end = place["offset"] + place["bytes"]
        if end > size:
            return False
        if end <= size - 2 * UNFORCED_BYTES:  # twice: a killed writer may have appended one more block
            return True
        return zlib.crc32(_read(self._events, place["offset"], place["bytes"])) == place["crc32"]

    def commit(self, runs: Sequence[FinishedRun], *, durable: bool) -> None:
        """Append finished runs; if the writer is killed meanwhile, each run is stored completely or not at all.

        Args:
            durable: survive a power failure; not needed for runs that can be repeated for free.
        """
        offset, blocks, lines = self._ends[0], [], []
        for run in runs:
            block = pack(run.events)
            place = {"offset": offset, "bytes": len(block), "count": run.count, "crc32": zlib.crc32(block)}
            lines.append(seal(encode(RUN_SCHEMA, {**run.record, "events": place})))
            blocks.append(block)
            offset += len(block)
        text = b"".join(lines)
        if durable or offset - self._forced >= UNFORCED_BYTES:
            durable, self._forced = True, offset
        try:
            _write(self._events, b"".join(blocks), durable)
            _write(self._runs, text, durable)
        except BaseException:
            self._cut()  # full disk or interrupt
            raise
        self._ends = (offset, self._ends[1] + len(text))

    def fail(self, record: Mapping[str, Any]) -> None:
        """Store a failed attempt."""
        append_records(self.folder / FAILURES, FAILURE_SCHEMA, [record])

    def _cut(self) -> None:
        os.ftruncate(self._events, self._ends[0])
        os.ftruncate(self._runs, self._ends[1])


def scan_runs(path: Path, start: int = 0, lines: int = 0) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the complete run records of a file from a position on, each with its end position.

    Args:
        lines: number of lines before that position.
    """
    end = start
    with open_ordinary(path) as stream:
        stream.seek(start)
        for number, line in enumerate(iter(partial(stream.readline, LARGEST_RECORD), b""), lines + 1):
            if len(line) == LARGEST_RECORD:
                raise InputFileError(f"{path}:{number}: longer than {LARGEST_RECORD:,} bytes; restore the file")
            if not line.endswith(b"\n") or b"\0" in line:
                return  # incomplete: a killed writer, or a page that a power failure left empty
            end += len(line)
            yield decode_run(line, path, number), end


def decode_run(line: bytes, path: Path, number: int) -> dict[str, Any]:
    """Return the record of a line; `path` and `number` are for the message if it is damaged or was changed."""
    try:
        record = json.loads(line)
        if record["schema"] != RUN_SCHEMA or not {"run", "events"} <= record.keys():
            raise ValueError
    except (ValueError, TypeError, KeyError):
        raise InputFileError(f"{path}:{number}: not a {RUN_SCHEMA!r} record; restore the file") from None
    check_seal(line, f"{path}:{number}", is_needed=True)
    del record[SEAL]
    return dict(record)


def read_failures(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the failed attempts of a sweep."""
    path = folder / FAILURES
    if path.exists():
        yield from read_records(path, FAILURE_SCHEMA)


def read_events(folder: Path, place: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the events of one run, given the `events` field of its record."""
    block = read_block(folder / EVENTS, place["offset"], place["bytes"])
    return with_stores([json.loads(line) for line in block.splitlines()])


def is_unused_folder(folder: Path) -> bool:
    """True if a folder is missing, empty, or contains only the files of a writer without records."""
    if not folder.exists():
        return True
    if not folder.is_dir():
        return False
    return all(
        entry.name == LOCK
        or entry.name.endswith(".unfinished")
        or (entry.name == LEDGER and is_without_calls(entry))  # killed before its manifest was written
        for entry in folder.iterdir()
    )


def _lock_folder(folder: Path) -> int:
    descriptor = os.open(folder / LOCK, _FLAGS, 0o644)
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise UsageError(f"another process is writing to {folder}; wait for it or stop it") from None
    return descriptor


def _read(descriptor: int, offset: int, size: int) -> bytes:
    os.lseek(descriptor, offset, os.SEEK_SET)
    parts = []
    while size and (part := os.read(descriptor, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write(descriptor: int, payload: bytes, durable: bool) -> None:
    view = memoryview(payload)
    while view:
        view = view[os.write(descriptor, view) :]
    if durable:
        os.fsync(descriptor)


def write_list(folder: Path, name: str, schema: str, document: Mapping[str, Any]) -> Path:
    """Write a document with the list of all other files of its folder; return its path."""
    listed = {path.relative_to(folder).as_posix(): describe_file(path) for path in archived_files(folder, name)}
    write_document(folder / name, schema, {**document, "files": listed}, sealed=True)
    return folder / name


def archived_files(folder: Path, name: str) -> Iterator[Path]:
    """Yield all files of a folder in a fixed order, without the list itself and the lock of a writer."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.name not in (LOCK, name):
            yield path


def describe_file(path: Path) -> dict[str, Any]:
    """Return the size and the checksum of a file."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return {"bytes": path.stat().st_size, "sha256": digest.hexdigest()}


def changed_files(folder: Path, name: str, listed: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield what differs between a folder and its list of files."""
    present = {path.relative_to(folder).as_posix(): path for path in archived_files(folder, name)}
    for file, known in listed.items():
        if file not in present:
            yield f"{file}: is missing"
        elif describe_file(present[file]) != known:
            yield f"{file}: has changed since {name} was written"
    yield from (f"{file}: is not in the list of files" for file in present if file not in listed)
