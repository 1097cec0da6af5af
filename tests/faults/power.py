"""Cuts the power of a writer at random moments, and opens what a file system may have kept.

python -m tests.faults.power [STATES] [SEED]     prints how many states were tried

The system calls of a writer are recorded once by strace(1). A state is what a disk may hold if the power fails between
two of them: of each file what was synced, and of the writes after that all, none, the first few, or any of them or of
their sectors in any order; of names that were made or removed since the folder was synced, any. In every state each run
that was stored durably and each call that was reserved must be there, unchanged; other runs are there completely or not
at all, batches with all of their runs; and a writer that goes on ends with the digest of one that was never cut.
"""

from __future__ import annotations

import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from eirkit.records.database import DATABASE, LOCK, SweepDatabase, SweepWriter, is_without_calls
from tests.processes import completed
from tests.records.finished import OTHER, SETTING, attempt, ended, finished, long_text, reserved

HERE = "tests.faults.power"
SECTOR = 512
MEMORY = Path("/dev/shm")  # where the syncs of the states themselves take no time
MARKS = "marks"  # a file in which the writer says what it has stored
CALLS = "openat,pwrite64,write,ftruncate,fsync,fdatasync,unlink"
BATCH = 5
ROUNDS = 24
_CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)")
_NAMED = re.compile(r"<((?:\\x[0-9a-f]{2})+)>")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
WAYS = ("none", "all", "first", "any", "sectors", "disorder")


# --- the writer -------------------------------------------------------------------------------------------------------


def runs_of(number: int) -> range:
    """Return the seeds of a round; every third is a batch."""
    return range(BATCH * number, BATCH * number + (BATCH if number % 3 == 0 else 1))


def is_durable(number: int) -> bool:
    return number % 2 == 0


def add(writer: SweepWriter, number: int) -> None:
    setting = OTHER if number % 4 == 3 else SETTING
    batch = [finished(seed, setting, text=long_text(seed, 9_000)) for seed in runs_of(number)]
    writer.add(batch, durable=is_durable(number))


def write(folder: Path) -> None:
    """Write runs and calls, and say after each what was stored; the log is folded in often."""
    with (folder.parent / MARKS).open("ab", buffering=0) as marks:
        with SweepWriter(folder, is_new=True) as writer:
            writer._opened.execute("PRAGMA wal_autocheckpoint = 30")
            marks.write(b"opened 0")
            writer.plan([(SETTING, 100), (OTHER, 100)])
            for number in range(ROUNDS):
                call = reserved(number + 1, number + 1)
                writer.reserve(call, attempt(number + 1, BATCH * number))
                marks.write(b"reserved %d" % call.id)
                writer.settle([(ended(call), None, True)])
                add(writer, number)
                marks.write(b"%s %d" % (b"durable" if is_durable(number) else b"stored", number))
        marks.write(b"closed 0")


# --- what it did ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """A system call that changes the folder: write, cut, sync, create, remove, sync-folder or mark."""

    what: str
    file: str = ""
    at: int = 0
    content: bytes = b""


def _unescaped(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def recorded(place: Path) -> list[Call]:
    """Return what a writer does in a folder, as strace tells it."""
    folder, log = place / "out", place / "log"
    words = ["strace", "-f", "-y", "-xx", "-s", 1 << 20, "-e", f"trace={CALLS}", "-o", log]
    completed([*words, sys.executable, "-m", HERE, "--write", folder], check=True)
    return list(_calls(log, folder))


def _calls(log: Path, folder: Path) -> Iterator[Call]:
    exists: set[str] = set()
    with log.open() as stream:
        for line in stream:
            found = _CALL.match(line)
            if found is None or int(found[3]) < 0:
                continue
            name, arguments = found[1], found[2]
            texts = [_unescaped(text) for text in _TEXT.findall(arguments)]
            named = _NAMED.search(arguments)
            path = Path(_unescaped(named[1]).decode()) if named else Path()
            if name in ("openat", "unlink"):
                path = Path(texts[0].decode())
            if path == folder and name in ("fsync", "fdatasync"):
                yield Call("sync-folder")
            elif path.name == MARKS and name == "write":
                yield Call("mark", content=texts[0])
            if path.parent != folder or not path.name.startswith(DATABASE) or path.name.endswith("-shm"):
                continue
            file = path.name
            if name == "openat" and file not in exists and "O_CREAT" in arguments:
                exists.add(file)
                yield Call("create", file)
            elif name == "unlink":
                exists.discard(file)
                yield Call("remove", file)
            elif name == "pwrite64":
                yield Call("write", file, int(arguments.rpartition(",")[2]), texts[-1])
            elif name == "ftruncate":
                yield Call("cut", file, int(arguments.rpartition(",")[2]))
            elif name in ("fsync", "fdatasync"):
                yield Call("sync", file)
            elif name == "write":
                raise ValueError(f"a write without a place: {line[:200]}")


# --- what a disk may hold afterwards ----------------------------------------------------------------------------------


@dataclass(slots=True)
class File:
    """A file: what was synced, and what was written since."""

    synced: bytearray = field(default_factory=bytearray)
    since: list[Call] = field(default_factory=list)

    def sync(self) -> None:
        self.synced, self.since = self.kept(self.since), []

    def kept(self, calls: list[Call]) -> bytearray:
        content = bytearray(self.synced)
        for call in calls:
            if call.what == "cut":
                del content[call.at :]
                content.extend(bytes(call.at - len(content)))
            else:
                content.extend(bytes(max(0, call.at - len(content))))
                content[call.at : call.at + len(call.content)] = call.content
        return content

    def survivor(self, rng: random.Random, way: str) -> bytearray:
        calls = self.since
        if way == "none":
            calls = []
        elif way == "first":
            calls = calls[: rng.randint(0, len(calls))]
        elif way in ("any", "disorder"):
            calls = [call for call in calls if rng.random() < 0.7]
        elif way == "sectors":
            calls = [part for call in calls for part in _sectors(call) if rng.random() < 0.8]
        if way == "disorder":
            calls = rng.sample(calls, len(calls))
        return self.kept(calls)


def _sectors(call: Call) -> Iterator[Call]:
    if call.what == "cut":
        yield call
        return
    start = 0
    while start < len(call.content):
        end = start + SECTOR - (call.at + start) % SECTOR
        yield Call("write", call.file, call.at + start, call.content[start:end])
        start = end


@dataclass(slots=True)
class Disk:
    """The folder of a writer at one moment."""

    files: dict[str, File] = field(default_factory=dict)  # as the writer sees them
    synced: dict[str, File] = field(default_factory=dict)  # names that a power failure cannot change

    def perform(self, call: Call) -> None:
        if call.what == "create":
            self.files[call.file] = File()
        elif call.what == "remove":
            del self.files[call.file]
        elif call.what == "sync":
            self.files[call.file].sync()
        elif call.what == "sync-folder":
            self.synced = dict(self.files)
        elif call.what in ("write", "cut"):
            self.files[call.file].since.append(call)

    def survive(self, folder: Path, rng: random.Random, way: str) -> None:
        """Write what is left after a power failure."""
        for name in sorted({*self.files, *self.synced}):
            ways = [names[name] for names in (self.files, self.synced) if name in names]
            if len(ways) == 1:
                # Made or removed since the folder was synced; the database itself may be lost only before it is used.
                ways = rng.choice((ways, []))
            if ways:
                (folder / name).write_bytes(rng.choice(ways).survivor(rng, way))


# --- what must hold ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Promise:
    """What a writer has said to have stored."""

    opened: bool = False
    durable: set[int] = field(default_factory=set)  # rounds
    stored: set[int] = field(default_factory=set)  # rounds that a power failure may take
    reserved: set[int] = field(default_factory=set)  # calls

    def note(self, mark: bytes) -> None:
        what, number = mark.split()
        if what == b"opened":
            self.opened = True
        elif what == b"durable":
            self.durable.add(int(number))
        elif what == b"stored":
            self.stored.add(int(number))
        elif what == b"reserved":
            self.reserved.add(int(number))


def check(folder: Path, promise: Promise, digest: str) -> int:
    """Assert that a folder keeps a promise; return how many rounds that were not durable are there."""
    if not promise.opened:
        assert not (folder / DATABASE).exists() or is_without_calls(folder), "a folder in which nothing can be begun"
        return 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with SweepDatabase(folder) as database:
        found = {record.seed: record for record in database.records()}
        there = {number for number in range(ROUNDS) if BATCH * number in found}
        assert promise.durable <= there, f"lost rounds {promise.durable - there}"
        assert there <= promise.durable | promise.stored | {max(promise.durable | promise.stored, default=-1) + 1}
        assert set(found) == {seed for number in there for seed in runs_of(number)}, "a part of a batch"
        for number in there:
            setting = OTHER if number % 4 == 3 else SETTING
            for seed in runs_of(number):
                whole = finished(seed, setting, text=long_text(seed, 9_000))
                assert found[seed] == whole.record, "a run changed"
                assert database.event_lines(whole.record.run) == whole.events, "events changed"
        calls = {call.id: call for call in database.calls()}
        assert promise.reserved <= calls.keys(), f"lost calls {promise.reserved - calls.keys()}"
        assert all(call in (reserved(call.id, call.id), ended(reserved(call.id, call.id))) for call in calls.values())
        assert {attempt.id for attempt in database.attempts()} >= calls.keys()
    assert before == {path.name: path.read_bytes() for path in folder.iterdir() if "-shm" not in path.name}
    with SweepWriter(folder) as writer:
        for number in range(ROUNDS):
            if number not in there:
                add(writer, number)
        assert writer.digest() == digest, "another digest"
    assert {path.name for path in folder.iterdir()} == {DATABASE, LOCK}
    return len(there - promise.durable)


def cut(states: int, seed: int) -> Counter[str]:
    """Try so many states, and return how many there were of each kind."""
    rng, tried = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        place = Path(name)
        calls = recorded(place)
        with SweepDatabase(place / "out") as database:
            digest = database.digest()
        # Moments at which little is unsynced are many and alike; a third of the states are drawn right before a sync.
        syncs = [number for number, call in enumerate(calls) if call.what.startswith("sync")]
        moments = [rng.choice(syncs) if rng.random() < 0.33 else rng.randint(0, len(calls)) for _ in range(states)]
        disk, promise, done = Disk(), Promise(), 0
        for moment in sorted(moments):
            for call in calls[done:moment]:
                promise.note(call.content) if call.what == "mark" else disk.perform(call)
            done, way = moment, rng.choice(WAYS)
            folder = place / "cut"
            folder.mkdir()
            disk.survive(folder, rng, way)
            try:
                kept = check(folder, promise, digest)
            except Exception:
                print(f"state after call {moment} of {len(calls)}, {way}, seed {seed}", flush=True)
                raise
            tried[way] += 1
            tried["with runs that were not durable"] += kept > 0
            shutil.rmtree(folder)
    return tried


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--write"]:
        write(Path(arguments[1]))
        return 0
    states = int(arguments[0]) if arguments else 3000
    seed = int(arguments[1]) if len(arguments) > 1 else time.time_ns() % 1_000_000
    if shutil.which("strace") is None:
        print("power failures: not tried, since strace is not installed")
        return 0
    print(f"{states} power failures, seed {seed}", flush=True)
    for way, times in cut(states, seed).items():
        print(f"{way:<34} {times:>5}")
    print("every durable run and every reserved call was there")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
