"""A folder of runs as lines of JSON, for archives, submissions and programs that read no SQLite.

`manifest.json`, `control.json` and `summary.json` are copied; `runs.jsonl` has a line for each run, `events.jsonl.zst`
one for each event, in a frame of its own for each run, `failures.jsonl` the failed attempts and `calls.jsonl` the paid
calls. Runs come in the order of control, cell and seed in both files, so that the same runs always give the same bytes
and both files are read side by side. Lines may come from somebody else: each is validated, and none may be endless.
"""

from __future__ import annotations

import io
import re
import shutil
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec
import zstandard
from msgspec import structs

from eirkit.errors import InputFileError, UsageError
from eirkit.folders import clear_unfinished, filled_folder, open_ordinary
from eirkit.records.database import FinishedRun, PaidAttempt, PaidCall, SweepDatabase, SweepWriter
from eirkit.records.documents import MANIFEST, SUMMARY
from eirkit.records.events import LARGEST_BLOCK, Event, ModelExchange, decode_events, pack
from eirkit.records.money import AttemptSpend, Journal
from eirkit.records.runs import Failure, RunRecord
from eirkit.records.sweeps import CONTROL

RUNS, EVENTS, FAILURES, CALLS = "runs.jsonl", "events.jsonl.zst", "failures.jsonl", "calls.jsonl"
DOCUMENTS = (MANIFEST, CONTROL, SUMMARY)  # copied as they are; the first is always there
LARGEST_RECORD = 1 << 26  # bytes of a line that is no event
_LARGEST_WINDOW = 1 << 27  # bytes that decompressing may keep
_AT_ONCE = 200  # runs stored in one transaction
_OWNER = re.compile(rb'\{"run":"([0-9a-f]{1,64})-([0-9]{1,20})",("control":true,)?')

_ENCODE = msgspec.json.Encoder().encode
T = TypeVar("T")
Place = tuple[bool, str, int]  # whether it is a run of the control, its cell and its seed


class _RunLine(RunRecord, frozen=True, kw_only=True, omit_defaults=True):
    control: bool = False


class _FailureLine(Failure, frozen=True, kw_only=True, omit_defaults=True):
    control: bool = False


class _CallLine(PaidCall, frozen=True, kw_only=True):
    run: str | None = None  # of the attempt
    part: str = ""


class _Flag(msgspec.Struct):
    control: bool = False


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """A run of an export."""

    record: RunRecord
    control: bool  # whether it is one of the capability control
    lines: bytes  # its events

    @property
    def events(self) -> list[Event]:
        return decode_events(self.lines, f"run {self.record.run}")


def write_export(folder: Path, out: Path) -> int:
    """Write the lines of a folder of runs into a new or empty one; return how many runs there are.

    Raises:
        InputFileError: the folder is none of runs, or damaged.
        UsageError: the other one is in use.
    """
    if not (folder / MANIFEST).is_file():
        raise InputFileError(f"{folder} has no {MANIFEST}; give a folder of `eirkit lacuna run`")
    clear_unfinished(out, MANIFEST, ())
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty; choose a new folder for --out")
    with SweepDatabase(folder) as database, filled_folder(out, MANIFEST) as made:
        for name in DOCUMENTS:
            if (folder / name).is_file():
                shutil.copyfile(folder / name, made / name)
        _write_money_and_failures(database, made)
        return write_runs(database, made)


def write_runs(database: SweepDatabase, out: Path, *, with_control: bool = True) -> int:
    """Write the runs of a database and their events into a folder; return how many there are.

    Args:
        with_control: also those of the capability control.
    """
    count = 0
    with (out / RUNS).open("xb") as runs, (out / EVENTS).open("xb") as events:
        for control in (False, True) if with_control else (False,):
            for cell, seeds in sorted(database.finished(control=control).items()):
                for seed in sorted(seeds):
                    run = f"{cell}-{seed}"
                    record = database.record(run, control=control)
                    assert record is not None  # it was listed as finished, and nothing is ever removed
                    runs.write(_ENCODE(_RunLine(**structs.asdict(record), control=control)) + b"\n")
                    events.write(pack(_owned(database.event_lines(run, control=control), run, control)))
                    count += 1
    return count


def _write_money_and_failures(database: SweepDatabase, out: Path) -> None:
    with (out / FAILURES).open("xb") as failures:
        for control in (False, True):
            for failure in database.failures(control=control):
                failures.write(_ENCODE(_FailureLine(**structs.asdict(failure), control=control)) + b"\n")
    paid = list(database.calls())  # before the attempts: who is writing stores each with its first call
    attempts = {attempt.id: attempt for attempt in database.attempts()}
    with (out / CALLS).open("xb") as calls:
        for call in paid:
            attempt = None if call.attempt is None else attempts[call.attempt]
            run, part = (None, "") if attempt is None else (attempt.run, attempt.part)
            calls.write(_ENCODE(_CallLine(**structs.asdict(call), run=run, part=part)) + b"\n")


def read_export(folder: Path, *, control: bool = False) -> Iterator[tuple[RunRecord, list[Event]]]:
    """Yield the runs of an export with their events.

    Args:
        control: those of the capability control instead.

    Raises:
        InputFileError: a file is missing or damaged, or the runs and events do not belong together.
    """
    for run in read_runs(folder):
        if run.control == control:
            yield run.record, decode_events(run.lines, f"{folder / EVENTS}: run {run.record.run}")


def read_runs(folder: Path, largest_block: int = LARGEST_BLOCK) -> Iterator[ExportedRun]:
    """Yield all runs of an export, those of the control included; their events are not decoded yet.

    Args:
        largest_block: bytes that the events of one run may have.
    """
    with _opened(folder / RUNS) as runs, _unpacked(folder / EVENTS) as events:
        for number, run in paired(runs, events, largest_block):
            if isinstance(run, InputFileError):
                raise InputFileError(f"{folder / RUNS}:{number}: {run}")
            yield run


def read_exchanges(path: Path) -> Iterator[ModelExchange]:
    """Yield the requests to models and their replies in an events file."""
    with _unpacked(path) as stream:
        while line := _line(stream, LARGEST_BLOCK, str(path)):
            yield from (event for event in decode_events(line, str(path)) if isinstance(event, ModelExchange))


@contextmanager
def _unpacked(path: Path) -> Iterator[BinaryIO]:
    with _opened(path) as packed:
        reader = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW).stream_reader(
            packed, read_across_frames=True
        )
        try:
            yield io.BufferedReader(reader, 1 << 16)
        except zstandard.ZstdError as error:
            raise InputFileError(f"{path} cannot be decompressed ({error}); restore the file") from error


def paired(
    runs: BinaryIO, events: BinaryIO, largest_block: int = LARGEST_BLOCK
) -> Iterator[tuple[int, ExportedRun | InputFileError]]:
    """Yield the runs of two streams of lines with the numbers of their lines, or what is wrong with one of them.

    Raises:
        InputFileError: what follows cannot be read either.
    """
    last: Place | None = None
    reader, number, is_damaged = _Events(events, largest_block), 0, False
    for number, line in enumerate(_lines(runs, RUNS), 1):
        try:
            record, control = decoded(line, RunRecord), decoded(line, _Flag).control
            place = (control, record.cell, record.seed)
            is_own = record.run == f"{record.cell}-{record.seed}" and record.cell == record.setting.id()
            if not is_own or not 0 <= record.seed < 1 << 64:
                raise InputFileError("the run is not one of its setting; restore the file")
            if last is not None and place <= last:
                raise InputFileError(f"run {record.run} is there twice or out of order; export it again")
            last = place
            if reader.skip_to(place) and not is_damaged:
                raise InputFileError(f"{EVENTS} has events that belong to no run; restore the file")
            lines = reader.of(record.run, place)
        except InputFileError as error:
            is_damaged = True
            yield number, error
        else:
            is_damaged = False
            yield number, ExportedRun(record, control, lines)
    if reader.waiting and not is_damaged:
        yield number, InputFileError(f"{EVENTS} has events that belong to no run; restore the file")


class _Events:
    """Reads the events of one run after another."""

    def __init__(self, stream: BinaryIO, largest_block: int) -> None:
        self.stream, self.largest_block = stream, largest_block
        self.waiting = b""
        self.owner: Place = (False, "", 0)
        self._next()

    def skip_to(self, place: Place) -> int:
        """Skip events of runs before one; return how many there were."""
        skipped = 0
        while self.waiting and self.owner < place:
            skipped += 1
            self._next()
        return skipped

    def of(self, run: str, place: Place) -> bytes:
        """Return the lines of a run, without its name in each."""
        own, size, prefix = [], 0, len(_prefix(run, place[0]))
        while self.waiting and self.owner == place:
            size += len(self.waiting)
            if size <= self.largest_block:
                own.append(b"{" + self.waiting[prefix:])
            self._next()
        if size > self.largest_block:
            raise InputFileError(f"run {run} has {size:,} bytes of events, of at most {self.largest_block:,}")
        if not own:
            raise InputFileError(f"the events of run {run} are not in {EVENTS}; restore the file")
        return b"".join(own)

    def _next(self) -> None:
        self.waiting = _line(self.stream, self.largest_block, EVENTS)
        if self.waiting:
            found = _OWNER.match(self.waiting)
            if found is None:
                raise InputFileError(f"{EVENTS}: an event does not say of which run it is; restore the file")
            self.owner = found[3] is not None, found[1].decode(), int(found[2])


def load_export(folder: Path, writer: SweepWriter) -> None:
    """Store all lines of an export in a database.

    Raises:
        InputFileError: a file is missing or damaged.
    """
    waiting: dict[bool, list[FinishedRun]] = {False: [], True: []}
    for run in read_runs(folder):
        decode_events(run.lines, f"{folder / EVENTS}: run {run.record.run}")  # nothing unreadable is stored
        waiting[run.control].append(FinishedRun(run.record, run.lines))
        if len(waiting[run.control]) == _AT_ONCE:
            writer.add(waiting[run.control], control=run.control, durable=False)
            waiting[run.control] = []
    for control, runs in waiting.items():
        writer.add(runs, control=control, durable=False)
    for failure in read_lines(folder / FAILURES, _FailureLine):
        fields = structs.asdict(failure)
        writer.fail(Failure(**{name: fields[name] for name in Failure.__struct_fields__}), control=failure.control)
    attempts: set[int] = set()
    for call in read_lines(folder / CALLS, _CallLine):
        fields = structs.asdict(call)
        attempt = None
        if call.attempt is not None and call.attempt not in attempts:
            attempts.add(call.attempt)
            attempt = PaidAttempt(call.attempt, call.run or "", call.part)
        writer.reserve(PaidCall(**{name: fields[name] for name in PaidCall.__struct_fields__}), attempt)


def read_money(folder: Path) -> Journal:
    """Return the money of an export."""
    found = Journal()
    for call in read_lines(folder / CALLS, _CallLine):
        if call.attempt is not None and call.attempt not in found.attempts:
            found.attempts[call.attempt] = AttemptSpend(call.run or "", call.part)
        found.add(call)
    return found


def read_lines(path: Path, kind: type[T]) -> Iterator[T]:
    """Yield the lines of a file as a type; none if there is no such file."""
    if path.exists():
        with _opened(path) as stream:
            for line in _lines(stream, str(path)):
                yield decoded(line, kind, f"{path}: ")


def decoded(line: bytes, kind: type[T], where: str = "") -> T:
    """Return a line as a type; `where` is for the message if it is something else."""
    try:
        return msgspec.json.decode(line.removeprefix(BOM_UTF8), type=kind)  # editors of Windows put a mark first
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputFileError(f"{where}a line is damaged ({error}); restore the file") from error


def _opened(path: Path) -> BinaryIO:
    try:
        return open_ordinary(path)
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}; check the path") from error


def _lines(stream: BinaryIO, where: str) -> Iterator[bytes]:
    while line := _line(stream, LARGEST_RECORD, where):
        yield line


def _line(stream: BinaryIO, most: int, where: str) -> bytes:
    line = stream.readline(most + 1)
    if len(line) > most:
        raise InputFileError(f"{where}: a line of more than {most:,} bytes; restore the file")
    if line and not line.endswith(b"\n"):
        raise InputFileError(f"{where} ends within a line; restore the file")
    return line


def _prefix(run: str, control: bool) -> bytes:
    return b'{"run":"%s",%s' % (run.encode(), b'"control":true,' if control else b"")


def _owned(lines: bytes, run: str, control: bool) -> bytes:
    """Return lines of events that say first whose they are."""
    prefix = _prefix(run, control)
    return b"".join(prefix + line[1:] for line in lines.splitlines(keepends=True))
