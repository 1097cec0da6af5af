"""The database of a folder of runs, sweep.db: runs with their events, failed attempts, and the money of paid calls.

One process writes, any number read. While a writer is open the database has a write-ahead log, so that a kill at any
moment loses no committed run and stores none twice; a run is committed with its events in one transaction. When the
writer ends, the log is folded in, so that a finished folder can be opened where nothing may be written.

A database may come from somebody else. It is read only if its tables are exactly those below, so that no view, trigger
or computed column of it is ever evaluated. Every row has a checksum, so that a flipped byte is reported and never
believed; of the runs, which have none, SQLite compares table and index.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sqlite3
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from hashlib import sha256
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote
from zlib import crc32

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from eirkit.errors import EirkitError, InfrastructureError, InputFileError, UsageError
from eirkit.records.documents import FULL, sync_folder
from eirkit.records.events import LARGEST_BLOCK, Event, decode_events, encode_struct, pack, unpack
from eirkit.records.runs import (
    ANSWER_CAUSES,
    CAUSES,
    OUTCOMES,
    RETURNED,
    SYMPTOMS,
    Failure,
    RunRecord,
)
from eirkit.records.settings import ELSEWHERE, Setting

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; two writers are not detected there
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")

DATABASE, LOCK = "sweep.db", ".lock"
ENDINGS = ("-wal", "-shm", "-journal")  # of the files that SQLite keeps beside a database while somebody writes
APPLICATION = 0x65697231  # SQLite's application_id of these files
BUSY_SECONDS = 10.0
_AT_ONCE = 1_000  # records read at a time: a reader must not hold back the log of a writer
LAST_SECONDS = 1.0  # for readers to let go when a writer ends
_DEFINITION_STEPS = 20_000  # of SQLite's machine, for reading the definitions of tables; ours take 500
_FIRST_SECONDS = 0.1  # within which a writer that begins has made its log
# Where SQLite's write-ahead log cannot be shared; a rollback journal serves there, with a sync for each transaction.
MOUNTS = Path("/proc/self/mountinfo")
NETWORKS = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "beegfs", "fuse.sshfs")

# What runs are filtered, sorted and grouped by in a table; everything else of a run is in its record.
SCORES = ("accuracy", "informed_accuracy", "step_accuracy", "miss_rate", "first_miss", "first_error")
MEASURES = (*SCORES, *CAUSES, *OUTCOMES, *SYMPTOMS, *ANSWER_CAUSES)
SHOWN = (*MEASURES, "calls", "cost_usd", "ending", "failure", "profile")
_KINDS = {"TEXT": ("ending", "failure", "profile"), "INTEGER": ("first_miss", "first_error", "calls")}
_COLUMNS = ", ".join(
    f"{name} {next((kind for kind, names in _KINDS.items() if name in names), 'REAL')}" for name in SHOWN
)

_SCHEMA = (
    "CREATE TABLE cells (id INTEGER PRIMARY KEY, cell TEXT NOT NULL UNIQUE, setting BLOB NOT NULL, "
    "planned INTEGER, crc32 INTEGER NOT NULL) STRICT",
    # `control` is 1 for the runs of a sweep's capability control. Seeds from 2^63 on are stored as negative numbers.
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, control INTEGER NOT NULL, cell INTEGER NOT NULL REFERENCES cells, "
    f"seed INTEGER NOT NULL, {_COLUMNS}, UNIQUE (control, cell, seed)) STRICT",
    "CREATE TABLE records (run INTEGER PRIMARY KEY REFERENCES runs, record BLOB NOT NULL, "
    "crc32 INTEGER NOT NULL) STRICT",
    "CREATE TABLE events (run INTEGER PRIMARY KEY REFERENCES runs, block BLOB NOT NULL, crc32 INTEGER NOT NULL) STRICT",
    "CREATE TABLE failures (id INTEGER PRIMARY KEY, control INTEGER NOT NULL, record BLOB NOT NULL, "
    "crc32 INTEGER NOT NULL) STRICT",
    "CREATE TABLE terms (name TEXT PRIMARY KEY, value TEXT, crc32 INTEGER NOT NULL) STRICT",
    "CREATE TABLE prices (model TEXT NOT NULL, base_url TEXT NOT NULL, price BLOB NOT NULL, crc32 INTEGER NOT NULL, "
    "PRIMARY KEY (model, base_url)) STRICT",
    "CREATE TABLE attempts (id INTEGER PRIMARY KEY, run TEXT NOT NULL, part TEXT NOT NULL, "
    "crc32 INTEGER NOT NULL) STRICT",
    # Dollars are decimal texts. A call without `billed_usd` was in flight when its process ended.
    "CREATE TABLE calls (id INTEGER PRIMARY KEY, attempt INTEGER, payer TEXT NOT NULL, model TEXT NOT NULL, "
    "reserved_usd TEXT NOT NULL, chars INTEGER NOT NULL, factor TEXT NOT NULL, is_rest INTEGER NOT NULL, "
    "billed_usd TEXT, unconfirmed_usd TEXT, input_tokens INTEGER, output_tokens INTEGER, cached_tokens INTEGER, "
    "crc32 INTEGER NOT NULL) STRICT",
)
_RUN = f"INSERT INTO runs VALUES (NULL, ?, ?, ?, {', '.join('?' * len(SHOWN))})"
_CALL = "INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# Those of which all rows are read; records and events are looked up by their run, and one that is missing is noticed.
_SOUND: set[tuple[str, int, int, int]] = set()  # files whose tables were checked, as they were then
_LISTED = ("cells", "runs", "failures", "terms", "prices", "attempts", "calls")

_RECORD: msgspec.json.Decoder[RunRecord] = msgspec.json.Decoder(RunRecord)
_FAILURE: msgspec.json.Decoder[Failure] = msgspec.json.Decoder(Failure)
_SETTING: msgspec.json.Decoder[Setting] = msgspec.json.Decoder(Setting)
_ENCODE = msgspec.json.Encoder().encode


class FinishedRun(Struct, frozen=True):
    """A run that is ready to be stored."""

    record: RunRecord
    events: bytes  # a line for each


class PaidCall(Struct, frozen=True, kw_only=True):
    """One call to a model that costs money: what was reserved before it, and what it came to."""

    id: int
    attempt: int | None  # at a run
    payer: str  # who asked: agent or memory
    model: str
    reserved_usd: Decimal
    chars: int = 0  # of the prompt
    factor: Decimal = Decimal(1)
    is_rest: bool = False
    billed_usd: Decimal | None = None  # None: in flight
    unconfirmed_usd: Decimal | None = None
    input_tokens: int | None = None  # None: without a reply
    output_tokens: int | None = None
    cached_tokens: int | None = None


class PaidAttempt(Struct, frozen=True):
    """An attempt at a run that made paid calls."""

    id: int
    run: str
    part: str  # control, or "" for the sweep itself


class SweepDatabase:
    """The database of a folder, open to read; use it in a with statement.

    Raises:
        InputFileError: on entry, if there is none, or it is damaged or somebody else's.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / DATABASE
        self._connection: sqlite3.Connection | None = None
        self._copy: TemporaryDirectory[str] | None = None
        self._settings: dict[int, tuple[str, Setting]] = {}  # by number of the cell
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        try:
            with self._explained():
                self._connection = self._open_to_read()
                try:
                    self._check()
                except sqlite3.OperationalError as error:
                    # A process was killed and left what SQLite must take back before it can read.
                    if not _is_one_of(error, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
                        raise
                    self._connection.close()
                    self._connection = self._open_copy()
                    self._check()
        except BaseException:
            SweepDatabase.__exit__(self, None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    def finished(self, *, control: bool = False) -> dict[str, set[int]]:
        """Return the seeds of the finished runs by cell."""
        found: dict[int, set[int]] = {}
        for number, seed in self._rows("SELECT cell, seed FROM runs WHERE control = ?", control):
            found.setdefault(number, set()).add(_unsigned(seed))
        return {self._cell(number)[0]: seeds for number, seeds in found.items()}

    def count(self, *, control: bool = False) -> int:
        """Return the number of finished runs."""
        ((count,),) = self._rows("SELECT count(*) FROM runs WHERE control = ?", control)
        return int(count)

    def last(self) -> int:
        """Return the number of the last finished run; 0 if there is none."""
        ((number,),) = self._rows("SELECT coalesce(max(id), 0) FROM runs")
        return int(number)

    def has_tables(self) -> bool:
        """True unless the writer was killed when it had just begun."""
        ((count,),) = self._opened.execute("SELECT count(*) FROM sqlite_master").fetchall()
        return bool(count)

    def settings(self) -> dict[str, Setting]:
        """Return the setting of each cell, those of the control included."""
        return dict(self._cells().values())

    def planned(self) -> dict[str, int]:
        """Return the number of planned runs of each cell of the sweep itself, in the order of the plan."""
        rows = self._checked(self._rows("SELECT * FROM cells WHERE planned IS NOT NULL ORDER BY id"))
        return {cell: planned for _, cell, _, planned in rows}

    def records(self, *, control: bool = False, after: int = 0) -> Iterator[RunRecord]:
        """Yield the finished runs in the order in which they ended.

        Args:
            after: number of the last run that is already known.
        """
        # The plus sign keeps SQLite from looking up all runs by their control and sorting them, for each page.
        query = f"{_RECORDS} WHERE +control = ? AND runs.id > ? ORDER BY runs.id LIMIT ?"
        while rows := self._rows(query, control, after, _AT_ONCE):
            yield from map(self._record, rows)
            after = rows[-1][0]

    def record(self, run: str, *, control: bool = False) -> RunRecord | None:
        """Return a finished run by its id; None if there is none."""
        return next(map(self._record, self._rows(f"{_RECORDS} {_OF_RUN}", *self._key(run, control))), None)

    def record_at(self, index: int) -> RunRecord | None:
        """Return a finished run by its place in the order in which they ended; None if there are fewer."""
        query = f"{_RECORDS} WHERE +control = 0 ORDER BY runs.id LIMIT 1 OFFSET ?"
        return next(map(self._record, self._rows(query, max(index, 0))), None)

    def events(self, run: str, *, control: bool = False) -> list[Event]:
        """Return the events of a finished run."""
        return decode_events(self.event_lines(run, control=control), f"{self.path}: run {run}")

    def event_lines(self, run: str, *, control: bool = False) -> bytes:
        """Return the events of a finished run as lines of JSON."""
        for block, checksum in self._rows(f"{_EVENTS} {_OF_RUN}", *self._key(run, control)):
            if block is None or crc32(block, crc32(run.encode(), control)) != checksum:
                raise self._damaged(f"events of run {run}")
            return unpack(block, f"{self.path}: run {run}")
        raise InputFileError(f"{self.path} has no run {run!r}; see `eirkit show {self.folder}` for its runs")

    def failures(self, *, control: bool = False) -> list[Failure]:
        """Return the failed attempts."""
        rows = self._checked(self._rows("SELECT control, record, crc32 FROM failures ORDER BY id"))
        return [self._decoded(_FAILURE, record) for of_control, record in rows if bool(of_control) == control]

    def column(self, name: str) -> tuple[float | int | str | None, ...]:
        """Return one of the columns that `columns` explains."""
        return self.columns((name,))[0]

    def columns(self, names: Sequence[str]) -> list[tuple[float | int | str | None, ...]]:
        """Return some of `SHOWN`, `id`, `cell` and `seed` for the runs of the sweep itself, in the order they ended."""
        if unknown := set(names) - {*SHOWN, "id", "cell", "seed"}:
            raise ValueError(f"runs have no columns {sorted(unknown)}")
        # Without the plus sign, SQLite would look up the runs by their control and cell, and sort them.
        rows = self._rows(f"SELECT {', '.join(names)} FROM runs WHERE +control = 0 ORDER BY id")
        found = []
        for place, name in enumerate(names):
            column: Iterable[Any] = map(itemgetter(place), rows)
            if name == "seed":
                column = map(_unsigned, column)
            elif name == "cell":
                numbers = tuple(column)
                cells = {number: self._cell(number)[0] for number in set(numbers)}
                column = map(cells.__getitem__, numbers)
            found.append(tuple(column))
        return found

    def occurring(self, names: Sequence[str] = SHOWN) -> dict[str, bool]:
        """Return which of these columns have a value in any run of the sweep itself, and whether in one it is not 0."""
        asked = ", ".join(f"max({name})" for name in names if name in SHOWN)
        ((*largest,),) = self._rows(f"SELECT {asked} FROM runs WHERE +control = 0")
        return {name: bool(value) for name, value in zip(names, largest, strict=True) if value is not None}

    def values(self, names: Sequence[str], ids: Sequence[int]) -> list[tuple[float | int | str | None, ...]]:
        """Return some of `SHOWN` for the runs with these numbers, in their order."""
        if not set(names) <= set(SHOWN):
            raise ValueError(f"runs have no columns {sorted(set(names) - set(SHOWN))}")
        found: dict[int, tuple[float | int | str | None, ...]] = {}
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            query = f"SELECT {', '.join(('id', *names))} FROM runs WHERE id IN ({', '.join('?' * len(some))})"
            found |= {number: tuple(values) for number, *values in self._rows(query, *some)}
        return [found[number] for number in ids]

    def terms(self) -> dict[str, str | None]:
        """Return what was agreed on money: `cap_usd`."""
        return dict(self._checked(self._rows("SELECT * FROM terms")))

    def prices(self) -> list[tuple[str, str, bytes]]:
        """Return the prices in use: model, base URL ("" for none) and price as JSON."""
        return list(self._checked(self._rows("SELECT * FROM prices")))

    def attempts(self) -> list[PaidAttempt]:
        """Return the attempts that made paid calls."""
        return [PaidAttempt(*row) for row in self._checked(self._rows("SELECT * FROM attempts ORDER BY id"))]

    def calls(self) -> Iterator[PaidCall]:
        """Yield the paid calls in the order in which they were made."""
        fields = PaidCall.__struct_fields__
        for row in self._checked(self._rows("SELECT * FROM calls ORDER BY id")):
            try:
                call = msgspec.convert(dict(zip(fields, row, strict=True)), PaidCall, strict=False)
            except msgspec.ValidationError as error:
                raise self._damaged(f"call {row[0]}") from error
            amounts = (call.reserved_usd, call.factor, call.billed_usd, call.unconfirmed_usd)
            if not all(amount is None or (amount.is_finite() and amount >= 0) for amount in amounts):
                raise self._damaged(f"call {row[0]}")
            yield call

    def digest(self) -> str:
        """Return a hash of all runs and their events, whatever their order and however long anything took."""
        whole = sha256()
        order = sorted(
            self._rows("SELECT id, control, cell, seed FROM runs"),
            key=lambda row: (row[1], self._cell(row[2])[0], _unsigned(row[3])),
        )
        for number, control, *_ in order:
            ((*row, shown),) = (
                (*row[:6], row[6:]) for row in self._rows(f"{_RECORDS_SHOWN} WHERE runs.id = ?", number)
            )
            record = self._record(row)
            if [*shown] != shown_values(record):
                raise self._damaged(f"run {record.run}")
            whole.update(b"%d %s " % (control, record.cell.encode()))
            whole.update(_ENCODE(_without_times(replace(record, setting=ELSEWHERE))))
            events = self.events(record.run, control=bool(control))
            whole.update(_ENCODE([_without_latency(event) for event in events]))
        return whole.hexdigest()

    def _record(self, row: Sequence[Any]) -> RunRecord:
        """Return the record of a row of `_RECORDS`."""
        number, control, cell, seed, record, checksum = row
        if record is None or crc32(record, control) != checksum:
            raise self._damaged(f"run {number}")
        name, setting = self._cell(cell)
        found = self._decoded(_RECORD, record)
        if (found.cell, found.seed) != (name, _unsigned(seed)):
            raise self._damaged(f"run {number}")
        force_setattr(found, "setting", setting)
        return found

    def _checked(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """Yield rows without their checksums, if those are right."""
        for *row, checksum in rows:
            if checksum_of(*row) != checksum:
                raise self._damaged("a row")
            yield tuple(row)

    def _damaged(self, what: str) -> InputFileError:
        return InputFileError(
            f"{self.path}: {what} changed since it was written, as its checksum shows; restore the file"
        )

    def _decoded(self, decoder: msgspec.json.Decoder[T], record: bytes) -> T:
        try:
            return decoder.decode(record)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InputFileError(f"{self.path}: a record is damaged ({error}); restore the file") from error

    def _cell(self, number: int) -> tuple[str, Setting]:
        found = self._settings.get(number) or self._cells(number).get(number)
        if found is None:
            raise self._damaged("the cell of a run")
        return found

    def _cells(self, wanted: int | None = None) -> dict[int, tuple[str, Setting]]:
        """Return the cells by their number, those included that were added meanwhile."""
        if wanted is None or wanted not in self._settings:
            last = max(self._settings, default=0)
            for number, cell, setting, _ in self._checked(self._rows("SELECT * FROM cells WHERE id > ?", last)):
                self._settings[number] = cell, self._decoded(_SETTING, setting)
        return self._settings

    def _key(self, run: str, control: bool) -> tuple[int, str, int]:
        cell, _, seed = run.rpartition("-")
        return int(control), cell, _signed(int(seed)) if seed.isascii() and seed.isdigit() else -1

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock, self._explained():
            return self._opened.execute(query, values).fetchall()

    @property
    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise ValueError("the database is not open; use it in a with statement")
        return self._connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _explanation(self.path, error) from error
        except OSError as error:
            if error.errno in FULL:
                raise InfrastructureError(f"{self.path}: {error.strerror}; free disk space and resume") from error
            raise InputFileError(f"cannot read {self.path}: {error.strerror}; check the path") from error
        except UnicodeDecodeError as error:  # SQLite quotes damaged text in its message
            raise InputFileError(f"{self.path} cannot be read as a database; restore the file") from error

    def _open_to_read(self) -> sqlite3.Connection:
        """Open the file without changing anything, also where its folder cannot be written to."""
        self._refuse_unusual()
        self.path.stat()  # says best why there is none
        with self.path.open("rb") as stream:
            has_log = stream.read(20)[18:] == b"\2\2"
        log, index = self._beside("-wal"), self._beside("-shm")
        end = time.monotonic() + _FIRST_SECONDS
        while has_log and not index.exists() and not _size_of(log) and time.monotonic() < end:
            time.sleep(_FIRST_SECONDS / 10)  # a writer that begins is about to make them
        if not index.exists() and (has_log or _size_of(log)):
            # Its process was killed, or somebody copied the folder: SQLite would have to make the index of the log.
            return self._open_copy()
        return _connect(self.path, "ro")

    def _open_copy(self) -> sqlite3.Connection:
        self._copy = TemporaryDirectory(prefix="eirkit-")
        for file in (self.path, self._beside("-wal"), self._beside("-journal")):
            if file.exists():
                shutil.copyfile(file, Path(self._copy.name) / file.name)
        return _connect(Path(self._copy.name) / DATABASE, "rw")

    def _beside(self, ending: str) -> Path:
        return self.path.with_name(DATABASE + ending)

    def _refuse_unusual(self) -> None:
        """Refuse a pipe, which may never end, and a link, which may lead anywhere."""
        for ending in ("", *ENDINGS):
            with suppress(FileNotFoundError):
                if not stat.S_ISREG(self._beside(ending).lstat().st_mode):
                    raise InputFileError(f"{self._beside(ending)} is not an ordinary file; restore it")

    def _check(self) -> None:
        """Refuse a database that is not exactly one of ours, or whose tables are damaged."""
        # SQLite reads the definitions of all tables first, of which a hostile file may have any number.
        self._opened.set_progress_handler(lambda: 1, _DEFINITION_STEPS)
        (number,) = self._opened.execute("PRAGMA application_id").fetchone()
        query = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid LIMIT ?"
        found = self._opened.execute(query, (len(_SCHEMA) + 1,)).fetchall()
        if number != APPLICATION or tuple(sql for (sql,) in found) != _SCHEMA:
            raise InputFileError(f"{self.path} is no database of this version of eirkit; use the version that wrote it")
        self._opened.set_progress_handler(None, 0)
        # What is in the log is not checked again: each of its pages has a checksum.
        state = self.path.stat()
        seen = (str(self.path), state.st_ino, state.st_size, state.st_mtime_ns)
        if seen in _SOUND:
            return
        for table in _LISTED:
            ((answer, *_), *_) = self._opened.execute(f"PRAGMA integrity_check({table})").fetchall()
            if answer != "ok":
                raise InputFileError(f"{self.path} is damaged ({' '.join(answer.split())}); restore the file")
        _SOUND.add(seen)


class SweepWriter(SweepDatabase):
    """The database of a folder, open to write by this process alone; use it in a with statement.

    Args:
        is_new: begin anew, whatever a writer left that was killed before its manifest was written.
        mounts: where it is said which file systems are those of a network.

    Raises:
        UsageError: on entry, if another process writes to the folder, or nothing can be written there.
    """

    def __init__(
        self, folder: Path, *, is_new: bool = False, is_temporary: bool = False, mounts: Path = MOUNTS
    ) -> None:
        super().__init__(folder)
        self.is_new, self.is_temporary, self.mounts = is_new, is_temporary, mounts
        self._network: str | None = None
        self._numbers: dict[str, int] = {}  # of cells
        self._held = -1  # descriptor of the lock
        self._level = ""

    def __enter__(self) -> Self:
        try:
            created = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
            self.folder.mkdir(parents=True, exist_ok=True)
            for folder in created if not self.is_temporary else ():
                sync_folder(folder.parent)
            self._held = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UsageError(f"cannot write to {self.folder}: {error.strerror}; choose another folder") from error
        if fcntl is not None:
            try:
                fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._unlock()
                raise UsageError(f"another process is writing to {self.folder}; wait for it or stop it") from None
            except OSError as error:
                self._unlock()
                raise UsageError(
                    f"{self.folder} cannot be locked ({error.strerror}); choose a folder on a local disk"
                ) from error
        try:
            with self._explained():
                self._connection = self._open_to_write()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._connection is not None:
                # A reader that holds on leaves the log where it is; the next writer folds it in.
                with suppress(sqlite3.Error):
                    self._connection.execute(f"PRAGMA busy_timeout = {int(1000 * LAST_SECONDS)}")
                    self._synchronize("FULL")
                    self._connection.execute("PRAGMA journal_mode = DELETE")
        finally:
            super().__exit__(kind, error, trace)
            self._unlock()

    def add(self, runs: Sequence[FinishedRun], *, control: bool = False, durable: bool) -> None:
        """Store finished runs, all or none.

        Args:
            durable: survive a power failure; not needed for runs that can be repeated for free.
        """
        if not runs:
            return
        with self._transaction(durable=durable) as connection:
            for run in runs:
                record = run.record
                cell = self._number(record.cell, record.setting)
                row = (control, cell, _signed(record.seed), *shown_values(record))
                place = connection.execute(_RUN, row).lastrowid
                stored, block = encode_struct(replace(record, setting=ELSEWHERE)), pack(run.events)
                connection.execute("INSERT INTO records VALUES (?, ?, ?)", (place, stored, crc32(stored, control)))
                checksum = crc32(block, crc32(record.run.encode(), control))
                connection.execute("INSERT INTO events VALUES (?, ?, ?)", (place, block, checksum))

    def plan(self, cells: Iterable[tuple[Setting, int]]) -> None:
        """Store which runs are planned: the setting of each cell, and its number of runs."""
        with self._transaction(durable=False) as connection:
            for setting, runs in cells:
                number = self._number(setting.id(), setting)
                row = (number, setting.id(), encode_struct(setting), runs)
                connection.execute("REPLACE INTO cells VALUES (?, ?, ?, ?, ?)", _with_checksum(row))

    def fail(self, failure: Failure, *, control: bool = False) -> None:
        """Store a failed attempt."""
        with self._transaction(durable=False) as connection:
            row = (int(control), encode_struct(failure))
            connection.execute("INSERT INTO failures VALUES (NULL, ?, ?, ?)", _with_checksum(row))

    def agree(self, terms: dict[str, str | None], prices: Iterable[tuple[str, str, bytes]]) -> None:
        """Store the terms of what follows."""
        with self._transaction(durable=True) as connection:
            connection.executemany("REPLACE INTO terms VALUES (?, ?, ?)", map(_with_checksum, terms.items()))
            connection.executemany("REPLACE INTO prices VALUES (?, ?, ?, ?)", map(_with_checksum, prices))

    def reserve(self, call: PaidCall, attempt: PaidAttempt | None) -> None:
        """Store a call before it is made; with the first of an attempt, that attempt."""
        with self._transaction(durable=True) as connection:
            _reserve(connection, call, attempt)

    def settle(self, calls: Sequence[tuple[PaidCall, PaidAttempt | None, bool]]) -> None:
        """Store what calls came to; a flag says whether they were reserved.

        It need not survive a power failure: without it, a call counts with the most that it may have cost.
        """
        with self._transaction(durable=not all(reserved for _, _, reserved in calls)) as connection:
            for call, attempt, reserved in calls:
                if reserved:
                    connection.execute(f"REPLACE {_CALL}", _with_checksum(_stored(call)))
                else:
                    _reserve(connection, call, attempt)

    def _number(self, cell: str, setting: Setting) -> int:
        """Return the number of a cell, which is stored when it is first named."""
        if not self._numbers:
            self._numbers = {cell: number for number, (cell, _) in self._cells().items()}
        if cell not in self._numbers:
            number = max(self._numbers.values(), default=0) + 1
            row = (number, cell, encode_struct(setting), None)
            self._opened.execute("INSERT INTO cells VALUES (?, ?, ?, ?, ?)", _with_checksum(row))
            self._numbers[cell] = number
        return self._numbers[cell]

    @contextmanager
    def _transaction(self, *, durable: bool) -> Iterator[sqlite3.Connection]:
        with self._lock, self._explained():
            connection = self._opened
            # Without a write-ahead log, a power failure could damage what is there already.
            self._synchronize("FULL" if durable or self._network is not None else "NORMAL")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                self._numbers = {}
                with suppress(sqlite3.Error):  # a full disk has rolled it back already
                    connection.execute("ROLLBACK")
                raise

    def _synchronize(self, level: str) -> None:
        level = "OFF" if self.is_temporary else level
        if level != self._level:
            self._opened.execute(f"PRAGMA synchronous = {level}")
            self._level = level

    def _open_to_write(self) -> sqlite3.Connection:
        self._refuse_unusual()
        exists = self.path.exists()
        if self.is_new and exists:
            if not is_without_calls(self.folder):  # somebody was quicker
                raise UsageError(f"{self.folder} is in use by now; continue it with --resume, or choose another --out")
            for ending in (*ENDINGS, ""):
                self._beside(ending).unlink(missing_ok=True)
            exists = False
        connection = _connect(self.path, "rwc")
        try:
            self._connection = connection
            if exists and self.has_tables():
                self._check()
            self._network = network_of(self.folder, self.mounts)
            if self._network is not None:
                logging.getLogger("eirkit").warning(
                    f"{self.folder} is on a network file system ({self._network}), where every run waits for the "
                    "server; an --out on a local disk is faster"
                )
            mode = "DELETE" if self._network is not None else "WAL"
            connection.execute(f"PRAGMA journal_mode = {mode}")
            if not self.has_tables():
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                for statement in _SCHEMA:
                    connection.execute(statement)
                connection.execute("COMMIT")
                sync_folder(self.folder)
        except BaseException:
            connection.close()
            self._connection = None
            raise
        return connection

    def _unlock(self) -> None:
        if self._held >= 0:
            os.close(self._held)
            self._held = -1


def shown_values(record: RunRecord) -> list[float | int | str | None]:
    """Return the values of `SHOWN` for a run."""
    score, memory, talk = record.score, record.memory, record.conversation
    found: dict[str, float | int | str | None] = {
        "calls": record.usage.calls,
        "cost_usd": record.usage.cost_usd,
        "ending": record.ending,
        "failure": main_failure(record),
        "profile": None if memory is None or memory.profile is None else memory.profile.name,
    }
    if score is not None:
        found |= {name: getattr(score, name) for name in SCORES}
        found |= {str(cause): share for cause, share in score.error_shares.items()}
    needed = 0 if memory is None else sum(memory.outcomes.values())
    if memory is not None and needed:
        found |= {outcome: memory.outcomes.get(outcome, 0) / needed for outcome in OUTCOMES}
    if talk is not None:
        wrong, symptoms, causes = max(1, len(talk.wrong)), talk.symptoms, talk.causes
        found.update((symptom, symptoms[symptom] / wrong) for symptom in SYMPTOMS)
        found.update((cause, causes[cause] / wrong) for cause in ANSWER_CAUSES)
    return [found.get(name) for name in SHOWN]


def ways_to_fail(record: RunRecord) -> dict[str, int]:
    """Return how often a run failed in each way: kinds of wrong steps, outcomes of records, symptoms and causes."""
    counts: dict[str, int] = {}
    for group in (
        None if record.score is None else record.score.kinds,
        None if record.memory is None else record.memory.outcomes,
        None if record.conversation is None else record.conversation.symptoms,
        None if record.conversation is None else record.conversation.causes,
    ):
        counts.update({str(way): count for way, count in (group or {}).items()})
    return {way: count for way, count in counts.items() if count and way not in RETURNED}


def main_failure(record: RunRecord) -> str | None:
    """Return how most of what failed did so: needed records or answers, else steps; None if nothing failed."""
    ways = ways_to_fail(record)
    known: set[str] = {*OUTCOMES, *ANSWER_CAUSES}
    counted = {way: count for way, count in ways.items() if way in known} or ways
    return max(counted, key=counted.__getitem__, default=None)


def network_of(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """Return the kind of network file system on which a folder lies; None if it is local, or nobody can tell."""
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    place, best = folder.resolve(), ("", "")
    for line in lines:
        fields = line.split(" ")
        if len(fields) < 9 or "-" not in fields[6:-1]:
            continue
        mounted = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), fields[4])
        if place.is_relative_to(mounted) and len(mounted) >= len(best[0]):
            best = mounted, fields[fields.index("-", 6) + 1]
    return best[1] if best[1] in NETWORKS else None


def is_without_calls(folder: Path) -> bool:
    """True if a folder's database has neither runs nor paid calls: its writer was killed before its manifest."""
    with suppress(EirkitError), _BegunDatabase(folder) as database:
        return not database.has_tables() or (not database.last() and next(database.calls(), None) is None)
    return False


class _BegunDatabase(SweepDatabase):
    """A database that may still be empty."""

    def _check(self) -> None:
        if self.has_tables():
            super()._check()


_RECORDS = (
    "SELECT runs.id, control, runs.cell, seed, record, crc32 FROM runs LEFT JOIN records ON records.run = runs.id"
)
_RECORDS_SHOWN = _RECORDS.replace(" FROM", f", {', '.join(SHOWN)} FROM")
_EVENTS = "SELECT block, crc32 FROM runs LEFT JOIN events ON events.run = runs.id"
_OF_RUN = "WHERE control = ? AND runs.cell = (SELECT id FROM cells WHERE cell = ?) AND seed = ?"
_ESCAPED = re.compile(r"\\([0-7]{3})")  # in the table of mounts


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    address = f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}"
    connection = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_BLOCK)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _explanation(path: Path, error: sqlite3.Error) -> InfrastructureError | InputFileError | UsageError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return InfrastructureError(f"{path}: the disk is full; free disk space and resume")
    if code == sqlite3.SQLITE_READONLY:
        return UsageError(f"{path}: nothing can be written there; choose another folder, or ask for the right to write")
    if code == sqlite3.SQLITE_CANTOPEN:
        return InputFileError(f"{path} cannot be opened; check the path and your right to read it")
    if code == sqlite3.SQLITE_BUSY:
        return InfrastructureError(f"{path}: another program keeps it locked; end that program and try again")
    if code == sqlite3.SQLITE_IOERR:
        return InfrastructureError(f"{path}: {error}; free disk space or check the disk, then resume")
    return InputFileError(f"{path} cannot be read as a database ({error}); restore the file")


def _is_one_of(error: sqlite3.Error, *codes: int) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in codes


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def checksum_of(*values: object) -> int:
    """Return the checksum of the values of a row."""
    return crc32(b"\0".join(value if isinstance(value, bytes) else str(value).encode() for value in values))


def _with_checksum(values: Sequence[object]) -> tuple[object, ...]:
    return (*values, checksum_of(*values))


def _reserve(connection: sqlite3.Connection, call: PaidCall, attempt: PaidAttempt | None) -> None:
    if attempt is not None:
        row = _with_checksum((attempt.id, attempt.run, attempt.part))
        connection.execute("INSERT INTO attempts VALUES (?, ?, ?, ?)", row)
    connection.execute(f"INSERT {_CALL}", _with_checksum(_stored(call)))


def _stored(call: PaidCall) -> list[object]:
    """Return the fields of a call as they are stored: money as texts."""
    return [
        str(value) if isinstance(value, Decimal) else int(value) if isinstance(value, bool) else value
        for value in msgspec.structs.astuple(call)
    ]


def _signed(seed: int) -> int:
    return seed - (1 << 64) if seed >= 1 << 63 else seed


def _unsigned(seed: int) -> int:
    return seed + (1 << 64) if seed < 0 else seed


def _without_times(record: RunRecord) -> RunRecord:
    """Return a record without how long anything took, and without whose ingestion it shared, which a kill changes."""
    usage = replace(record.usage, latency_seconds=0.0)
    if record.memory is None:
        return replace(record, usage=usage)
    memory = replace(record.memory, write_seconds=0.0, search_seconds=0.0, slowest_seconds=0.0, shared=None)
    return replace(record, usage=usage, memory=memory)


def _without_latency(event: Event) -> Event:
    return replace(event, latency_seconds=0.0) if hasattr(event, "latency_seconds") else event
