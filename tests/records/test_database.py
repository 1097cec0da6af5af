"""The database of a folder keeps what it promises: nothing lost, nothing twice, nothing believed that was changed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from decimal import Decimal
from pathlib import Path
from zlib import crc32

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eirkit.errors import EirkitError, InfrastructureError, InputFileError, UsageError
from eirkit.records.database import (
    DATABASE,
    LOCK,
    SHOWN,
    FinishedRun,
    PaidAttempt,
    SweepDatabase,
    SweepWriter,
    checksum_of,
    is_without_calls,
    network_of,
)
from eirkit.records.money import journal_of
from tests.faults.power import cut
from tests.processes import completed, running
from tests.records.finished import OTHER, SETTING, attempt, ended, failed, finished, long_text, reserved

ROOT = Path(__file__).parents[2]
NOBODY = 65534
LARGEST_SEED = (1 << 64) - 1


def write(folder: Path, *batches: list[FinishedRun], durable: bool = False) -> Path:
    with SweepWriter(folder) as writer:
        for batch in batches:
            writer.add(batch, durable=durable)
    return folder


def fill(folder: Path) -> Path:
    """Write something of everything."""
    with SweepWriter(folder) as writer:
        writer.plan([(SETTING, 3), (OTHER, 2)])
        writer.agree({"cap_usd": "4.5"}, [("openai/any", "", b'{"input":1}')])
        writer.add([finished(0), finished(1)], durable=True)
        writer.add([finished(2, OTHER)], durable=False)
        writer.add([finished(7, OTHER)], control=True, durable=True)
        writer.fail(failed(2))
        writer.fail(failed(3, "half \ud800 of a pair"), control=True)
        writer.reserve(reserved(1), attempt(1))
        writer.settle([(ended(reserved(1)), None, True)])
        writer.reserve(reserved(2), None)
        writer.settle([(ended(reserved(3, 2), "0.25"), attempt(2, 1, "control"), False)])
    return folder


def everything(folder: Path) -> list[bytes]:
    """Return all that can be read."""
    with SweepDatabase(folder) as database:
        found: list[object] = [database.finished(control=control) for control in (False, True)]
        found += [database.count(), database.last(), database.planned(), database.terms()]
        found += [database.settings(), database.prices(), database.attempts(), list(database.calls())]
        for control in (False, True):
            records = list(database.records(control=control))
            found += [*records, *(database.events(record.run, control=control) for record in records)]
            found += database.failures(control=control)
        journal = journal_of(database)
        found.append(None if journal is None else journal.sums())
        found.append(database.digest())
        found += [database.column(name) for name in ("seed", *SHOWN)]
    return [msgspec.json.encode(part, order="sorted", enc_hook=sorted) for part in found]


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# --- round trips ------------------------------------------------------------------------------------------------------


def test_what_was_stored_is_there_as_it_was(tmp_path):
    with SweepDatabase(fill(tmp_path)) as database:
        assert list(database.records()) == [finished(0).record, finished(1).record, finished(2, OTHER).record]
        assert list(database.records(control=True)) == [finished(7, OTHER).record]
        assert database.event_lines(finished(1).record.run) == finished(1).events
        assert len(database.events(finished(7, OTHER).record.run, control=True)) == 3
        assert database.record(finished(2, OTHER).record.run) == finished(2, OTHER).record
        assert database.record(finished(3).record.run) is None
        assert database.record("nonsense") is None
        assert database.record_at(1) == finished(1).record
        assert database.finished() == {SETTING.id(): {0, 1}, OTHER.id(): {2}}
        assert (database.count(), database.count(control=True), database.last()) == (3, 1, 4)
        assert database.planned() == {SETTING.id(): 3, OTHER.id(): 2}
        assert database.settings() == {SETTING.id(): SETTING, OTHER.id(): OTHER}
        assert database.failures() == [failed(2)]
        assert database.failures(control=True) == [failed(3, "half ? of a pair")]
        assert database.terms() == {"cap_usd": "4.5"}
        assert database.prices() == [("openai/any", "", b'{"input":1}')]
        assert database.attempts() == [attempt(1), PaidAttempt(2, finished(1).record.run, "control")]
        assert list(database.calls()) == [ended(reserved(1)), reserved(2), ended(reserved(3, 2), "0.25")]
        assert database.column("seed") == (0, 1, 2)
        assert database.column("accuracy") == (0, 1 / 12, 2 / 12)
        assert database.column("cell") == (SETTING.id(), SETTING.id(), OTHER.id())
        assert database.occurring().keys() >= {"accuracy", "calls", "cost_usd", "ending", "computation"}
        with pytest.raises(InputFileError, match=r"has no run 'x-1'; see `eirkit show"):
            database.events("x-1")


def test_money_is_exact(tmp_path):
    with SweepDatabase(fill(tmp_path)) as database:
        journal = journal_of(database)
        assert journal is not None
        assert journal.cap_usd == Decimal("4.5")
        assert journal.spending.billed_usd == Decimal("0.36")
        assert journal.spending.in_flight_usd == Decimal("0.5")
        assert journal.sums().control_usd == 0.25


@pytest.mark.parametrize("seed", [0, 1, (1 << 63) - 1, 1 << 63, LARGEST_SEED - 1, LARGEST_SEED])
def test_every_seed_of_64_bits_is_kept(tmp_path, seed):
    write(tmp_path, [finished(seed), finished(5)])
    with SweepDatabase(tmp_path) as database:
        assert database.finished() == {SETTING.id(): {seed, 5}}
        assert database.record(f"{SETTING.id()}-{seed}") == finished(seed).record
        assert database.column("seed") == (seed, 5)
        assert database.events(f"{SETTING.id()}-{seed}")
        database.digest()


def test_a_batch_is_stored_as_a_whole_or_not_at_all(tmp_path):
    with SweepWriter(tmp_path) as writer:
        writer.add([finished(0)], durable=False)
        with pytest.raises(InputFileError, match="UNIQUE constraint failed"):
            writer.add([finished(1), finished(2, OTHER), finished(0)], durable=True)
        assert writer.count() == 1
        writer.add([finished(1), finished(2, OTHER)], durable=True)  # as if nothing had been
        writer.add([], durable=True)
        assert writer.finished() == {SETTING.id(): {0, 1}, OTHER.id(): {2}}
    with SweepDatabase(tmp_path) as database:
        assert list(database.records())[2] == finished(2, OTHER).record


def test_a_settled_call_keeps_what_was_reserved(tmp_path):
    with SweepWriter(tmp_path) as writer:
        writer.reserve(replace(reserved(1), factor=Decimal("1.5"), is_rest=True), attempt(1))
    with SweepWriter(tmp_path) as writer:
        call = replace(reserved(1), factor=Decimal("1.5"), is_rest=True)
        writer.settle([(ended(call), None, True)])
        assert list(writer.calls()) == [ended(call)]


# --- the digest -------------------------------------------------------------------------------------------------------

RUNS = [(seed, setting) for seed in (0, 3, LARGEST_SEED) for setting in (SETTING, OTHER)]


@given(order=st.permutations(RUNS), seconds=st.floats(0, 100), size=st.integers(1, 6))
def test_the_digest_is_that_of_the_seeds(tmp_path_factory, order, seconds, size):
    """In any order, in batches of any size and however long each took."""
    whole = write(tmp_path_factory.mktemp("whole"), [finished(seed, setting) for seed, setting in RUNS])
    other = tmp_path_factory.mktemp("other")
    runs = [finished(seed, setting, seconds=seconds) for seed, setting in order]
    write(other, *(runs[start : start + size] for start in range(0, len(runs), size)))
    with SweepDatabase(whole) as first, SweepDatabase(other) as second:
        assert first.digest() == second.digest()
    shutil.rmtree(whole)
    shutil.rmtree(other)


@pytest.mark.parametrize(
    "change",
    [
        [finished(0, text="ANSWER 1 8"), finished(1)],
        [finished(0)],
        [finished(0), finished(2)],
        [finished(0), finished(1, OTHER)],
        [finished(0), FinishedRun(replace(finished(1).record, fingerprint="f"), finished(1).events)],
    ],
)
def test_the_digest_differs_where_a_run_does(tmp_path, change):
    write(tmp_path / "a", [finished(0), finished(1)])
    write(tmp_path / "b", change)
    with SweepDatabase(tmp_path / "a") as first, SweepDatabase(tmp_path / "b") as second:
        assert first.digest() != second.digest()


# --- one writer, many readers -----------------------------------------------------------------------------------------


def test_there_is_one_writer_at_a_time(tmp_path):
    message = rf"^another process is writing to {tmp_path}; wait for it or stop it$"
    with SweepWriter(tmp_path) as writer:
        writer.add([finished(0)], durable=False)
        with pytest.raises(UsageError, match=message):
            SweepWriter(tmp_path).__enter__()
        script = f"""
from pathlib import Path
from eirkit.errors import UsageError
from eirkit.records.database import SweepWriter
try:
    SweepWriter(Path({str(tmp_path)!r})).__enter__()
except UsageError as error:
    print(error)
"""
        assert completed([sys.executable, "-c", script], check=True).stdout.strip() == message.strip("^$")
        writer.add([finished(1)], durable=False)
    write(tmp_path, [finished(2)])  # the lock goes with its holder
    assert (tmp_path / LOCK).stat().st_size == 0


def test_a_reader_sees_a_folder_grow(tmp_path):
    with SweepWriter(tmp_path) as writer:
        writer.add([finished(0)], durable=False)
        with SweepDatabase(tmp_path) as reader, SweepDatabase(tmp_path) as other:
            for seed in range(1, 30):
                writer.add([finished(seed, OTHER if seed % 2 else SETTING)], durable=seed % 3 == 0)
                (record,) = reader.records(after=reader.last() - 1)
                assert record == finished(seed, OTHER if seed % 2 else SETTING).record
                assert other.count() == seed + 1
        writer.add([finished(30)], durable=False)
    with SweepDatabase(tmp_path) as reader:
        assert reader.count() == 31


def test_a_reader_changes_nothing_and_makes_no_file(tmp_path):
    """Neither beside a writer, nor when it is closed last, nor in what a kill left."""
    with SweepWriter(tmp_path) as writer:
        writer.add([finished(0)], durable=False)
        names, size = names_in(tmp_path), (tmp_path / f"{DATABASE}-wal").stat().st_size
        content = (tmp_path / DATABASE).read_bytes()
        for _ in range(3):
            everything(tmp_path)
        assert names_in(tmp_path) == names == {DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", LOCK}
        assert (tmp_path / f"{DATABASE}-wal").stat().st_size == size
        assert (tmp_path / DATABASE).read_bytes() == content, "a reader folded the log in"
        reader = SweepDatabase(tmp_path).__enter__()
    assert f"{DATABASE}-wal" in names_in(tmp_path), "a reader that holds on keeps the log"
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if "-shm" not in path.name}
    assert reader.count() == 1
    reader.__exit__(None, None, None)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if "-shm" not in path.name} == before
    write(tmp_path, [finished(1)])
    assert names_in(tmp_path) == {DATABASE, LOCK}, "the next writer folds it in"
    everything(tmp_path)
    assert names_in(tmp_path) == {DATABASE, LOCK}


def test_readers_in_threads_beside_a_writer(tmp_path):
    """Every reader finds whole runs, in the order in which they were stored."""
    faults: list[BaseException] = []
    over = threading.Event()

    def read() -> None:
        try:
            while not over.is_set():
                with SweepDatabase(tmp_path) as reader:
                    seeds = [record.seed for record in reader.records()]
                    assert seeds == list(range(len(seeds)))
                    assert not seeds or reader.events(f"{SETTING.id()}-{seeds[-1]}")
        except (AssertionError, EirkitError) as fault:
            faults.append(fault)

    write(tmp_path)
    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for part in range(4):  # writers come and go
        write(tmp_path, *([finished(20 * part + seed, text=long_text(seed, 4000))] for seed in range(20)))
    over.set()
    for reader in readers:
        reader.join()
    assert not faults
    with SweepDatabase(tmp_path) as database:
        assert database.count() == 80


# --- other users, copies, places that are not writable ----------------------------------------------------------------


@contextmanager
def readable_place(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder that other users can reach."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o055)
    before = os.umask(0o022)
    try:
        yield tmp_path
    finally:
        os.umask(before)


def read_by_nobody(folder: Path) -> list[bytes]:
    """Return all that another user can read there."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(source)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            assert not os.access(folder, os.W_OK)
            found = [part.decode() for part in everything(folder)]
        except (AssertionError, EirkitError) as error:
            found = [f"{type(error).__name__}: {error}"]
        finally:
            with os.fdopen(sink, "w") as stream:
                json.dump(found, stream)
            os._exit(0)
    os.close(sink)
    with os.fdopen(source) as stream:
        found = json.load(stream)
    os.waitpid(child, 0)
    return [part.encode() for part in found]


as_root = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become another user")


@as_root
def test_a_finished_folder_opens_for_another_user(tmp_path):
    with readable_place(tmp_path):
        fill(tmp_path / "out")
        assert names_in(tmp_path / "out") == {DATABASE, LOCK}
        assert stat.S_IMODE((tmp_path / "out" / DATABASE).stat().st_mode) == 0o644
        whole = everything(tmp_path / "out")
        assert read_by_nobody(tmp_path / "out") == whole
        for path in (tmp_path / "out", *(tmp_path / "out").iterdir()):
            path.chmod(path.stat().st_mode & ~0o222)
        assert read_by_nobody(tmp_path / "out") == whole


def killed(folder: Path, script: str) -> None:
    """Write to a folder in a process that ends as by a kill."""
    start = f"""
import os, sys
from pathlib import Path
from eirkit.records.database import SweepWriter
from tests.records.finished import *
from tests.records.test_database import fill
folder = Path({str(folder)!r})
"""
    done = completed([sys.executable, "-c", f"{start}{script}\nos._exit(9)"], cwd=ROOT)
    assert done.returncode == 9, done.stderr


LEFT = "fill(folder); writer = SweepWriter(folder).__enter__(); writer.add([finished(9)], durable=False)"


@as_root
@pytest.mark.parametrize("without", ["", "-shm"])
def test_what_a_kill_left_opens_for_another_user(tmp_path, without):
    with readable_place(tmp_path):
        killed(tmp_path / "out", LEFT)
        copy = tmp_path / "copy"
        shutil.copytree(tmp_path / "out", copy)
        if without:
            (copy / f"{DATABASE}{without}").unlink()
        names = names_in(copy)
        found = read_by_nobody(copy)
        assert found == everything(copy)
        assert b"9" in found[0]
        assert names_in(copy) == names


@pytest.mark.parametrize("mode", [0o755, 0o555])
@pytest.mark.parametrize("left", [("-wal",), ("-wal", "-shm"), ()])
def test_a_copy_of_what_a_kill_left(tmp_path, mode, left):
    """Copied together with its log, with or without the index of that; or folded in and killed right then."""
    killed(tmp_path / "out", LEFT)
    copy = tmp_path / "copy"
    copy.mkdir()
    for ending in ("", *left):
        shutil.copyfile(tmp_path / "out" / f"{DATABASE}{ending}", copy / f"{DATABASE}{ending}")
    copy.chmod(mode)
    names = names_in(copy)
    with SweepDatabase(copy) as database:
        assert database.count() == (4 if left else 3)
        database.digest()
    assert names_in(copy) == names
    copy.chmod(0o755)
    write(copy, [finished(10)])
    assert names_in(copy) == {DATABASE, LOCK}


def test_a_journal_that_a_kill_left_on_a_network_is_taken_back(tmp_path):
    mounts = tmp_path / "mountinfo"
    mounts.write_text("1 0 0:1 / / rw - nfs4 server:/ rw\n")
    out = tmp_path / "out"
    script = f"""
fill(folder)
writer = SweepWriter(folder, mounts=Path({str(mounts)!r})).__enter__()
writer._opened.execute("PRAGMA cache_size = 1")  # so that pages are written before the end of the transaction
context = writer._transaction(durable=True)
connection = context.__enter__()
connection.executemany("INSERT INTO terms VALUES (?, ?, 0)", [(str(number), "x" * 3000) for number in range(50)])
"""
    whole = everything(fill(tmp_path / "whole"))
    killed(out, script)
    assert (out / f"{DATABASE}-journal").stat().st_size
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert everything(out) == whole
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    with SweepWriter(out, mounts=mounts) as writer:
        writer.add([finished(10)], durable=False)
    assert names_in(out) == {DATABASE, LOCK}


# --- killed -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("durable", [False, True])
def test_a_kill_loses_no_run_that_was_stored(tmp_path, durable):
    script = f"""
from pathlib import Path
from eirkit.records.database import SweepWriter
from tests.records.finished import *
with SweepWriter(Path({str(tmp_path / "out")!r})) as writer:
    for seed in range(10_000):
        writer.add([finished(seed)], durable={durable})
        print(seed, flush=True)
"""
    for seed in (0, 40, 41):
        with running([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
            for line in process.stdout:
                if int(line) >= seed:
                    break
            process.send_signal(signal.SIGKILL)
            last = max([int(line), *map(int, process.stdout.read().split())])
        with SweepDatabase(tmp_path / "out") as database:
            seeds = [record.seed for record in database.records()]
            assert seeds in (list(range(last + 1)), list(range(last + 2)))
            assert len(database.digest()) == 64
        shutil.rmtree(tmp_path / "out")


def test_a_writer_that_was_killed_before_its_first_table_left_nothing_to_keep(tmp_path):
    assert not is_without_calls(tmp_path)
    (tmp_path / DATABASE).touch()
    assert is_without_calls(tmp_path)
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    assert is_without_calls(tmp_path)
    write(tmp_path)
    assert is_without_calls(tmp_path)
    fill(tmp_path)
    assert not is_without_calls(tmp_path)


def test_who_begins_anew_does_not_remove_what_somebody_else_has_begun(tmp_path):
    late = SweepWriter(tmp_path, is_new=True)
    whole = everything(fill(tmp_path))
    with pytest.raises(UsageError, match=r"is in use by now; continue it with --resume, or choose another --out$"):
        late.__enter__()
    assert everything(tmp_path) == whole


# --- disks ------------------------------------------------------------------------------------------------------------


@contextmanager
def small_disk(place: Path, size: int) -> Iterator[Path]:
    """Mount a small file system, where that is allowed."""
    place.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=False, capture_output=True
    )
    if not mounted or mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_full_disk_is_said_and_costs_only_what_did_not_fit(tmp_path):
    with small_disk(tmp_path / "disk", 1 << 19) as disk:
        stored = -1
        message = ""
        try:
            with SweepWriter(disk) as writer:
                for seed in range(1000):
                    batch = [finished(seed, text=long_text(seed, 8000)), finished(seed, OTHER)]
                    writer.add(batch, durable=seed % 2 == 0)
                    stored = seed
        except InfrastructureError as error:
            message = str(error)
        assert message.endswith("; free disk space and resume")
        assert stored > 3
        shutil.copytree(disk, tmp_path / "copy")
        for folder in (disk, tmp_path / "copy"):
            with SweepDatabase(folder) as database:
                assert database.finished() == {setting.id(): set(range(stored + 1)) for setting in (SETTING, OTHER)}
                database.digest()
        write(tmp_path / "copy", [finished(stored + 1)])
        assert names_in(tmp_path / "copy") == {DATABASE, LOCK}


@pytest.mark.parametrize("limit", [0, 1000, 4096, 20_000, 60_000, 70_000, 90_000])
def test_a_limit_on_files_is_said_in_one_line(tmp_path, limit):
    script = f"""
import resource
from pathlib import Path
from eirkit.errors import EirkitError
from eirkit.records.database import SweepWriter
from tests.records.finished import *
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
try:
    with SweepWriter(Path({str(tmp_path / "out")!r})) as writer:
        for seed in range(1000):
            writer.add([finished(seed)], durable=True)
            print(seed)
except EirkitError as error:
    print(error)
"""
    done = completed([sys.executable, "-c", script], check=True, cwd=ROOT)
    *seeds, message = done.stdout.splitlines()
    assert message.startswith(f"{tmp_path / 'out'}"), done.stdout
    assert "; free disk space" in message
    write(tmp_path / "out", [finished(len(seeds))])
    with SweepDatabase(tmp_path / "out") as database:
        assert [record.seed for record in database.records()] == list(range(len(seeds) + 1))


@as_root
@pytest.mark.parametrize("protected", ["folder", "files", "both"])
def test_a_folder_that_is_not_writable_is_said_in_one_line(tmp_path, protected):
    with readable_place(tmp_path):
        out = fill(tmp_path / "out")
        out.chmod(0o555 if protected != "files" else 0o777)
        for path in out.iterdir():
            path.chmod(0o444 if protected != "folder" else 0o666)
        source, sink = os.pipe()
        child = os.fork()
        if child == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            message = "nothing was said"
            try:
                write(out, [finished(9)])
            except EirkitError as error:
                message = f"{type(error).__name__}: {error}"
            os.write(sink, message.encode())
            os._exit(0)
        os.close(sink)
        with os.fdopen(source) as stream:
            message = stream.read()
        os.waitpid(child, 0)
    assert message.startswith("UsageError: "), message
    assert "choose another folder" in message
    assert "\n" not in message
    with SweepDatabase(out) as database:
        assert database.count() == 3


MOUNTINFO = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
31 22 0:26 / /mnt rw,nosuid shared:2 master:1 - tmpfs tmpfs rw
32 31 0:27 / /mnt/my\\040data rw - nfs4 server:/export rw,vers=4.2
33 32 0:28 / /mnt/my\\040data/local rw - xfs /dev/vdb rw
34 22 0:29 / /mnt/s rw - fuse.sshfs me@there:/ rw
a line of another kind
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/me", None),
        ("/mnt/other", None),
        ("/mnt/my data", "nfs4"),
        ("/mnt/my data/deep/er", "nfs4"),
        ("/mnt/my data/local/out", None),
        ("/mnt/s/x", "fuse.sshfs"),
        ("/mnt/sx", None),
    ],
)
def test_a_network_file_system_is_recognized(tmp_path, folder, kind):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTINFO)
    assert network_of(Path(folder), mounts) == kind
    assert network_of(Path(folder), tmp_path / "missing") is None


def test_on_a_network_a_writer_does_without_a_log(tmp_path, caplog):
    mounts = tmp_path / "mountinfo"
    mounts.write_text("1 0 0:1 / / rw - nfs4 server:/ rw\n")
    with SweepWriter(tmp_path / "out", mounts=mounts) as writer:
        writer.add([finished(0)], durable=False)
        assert names_in(tmp_path / "out") == {DATABASE, LOCK}
        with SweepDatabase(tmp_path / "out") as reader:
            assert reader.count() == 1
            writer.add([finished(1)], durable=False)
            assert reader.count() == 2
    (line,) = caplog.messages
    assert line.startswith(f"{tmp_path / 'out'} is on a network file system (nfs4)")
    assert line.endswith("; an --out on a local disk is faster")


# --- damaged and hostile databases ------------------------------------------------------------------------------------

SOON_SECONDS = 20.0  # for a file of some kilobytes; each takes milliseconds on a quiet machine


def refused_or(folder: Path, whole: list[bytes]) -> bool:
    """Return whether a database is refused in one line; if not, all that can be read must be what was written."""
    start = time.monotonic()
    try:
        found = everything(folder)
    except InputFileError as error:
        found, message = [], str(error)
    else:
        assert found == whole, "something else was read"
        return False
    assert time.monotonic() - start < SOON_SECONDS
    assert "; " in message
    assert "\n" not in message
    return True


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def make_loop(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("make", [make_fifo, Path.mkdir, make_link, make_loop])
def test_a_database_that_is_no_ordinary_file_is_refused(tmp_path, ending: str, make: Callable[[Path], None]):
    if ending:
        fill(tmp_path)
    make(tmp_path / f"{DATABASE}{ending}")
    message = rf"{DATABASE}{ending} is not an ordinary file; restore it$"
    with pytest.raises(InputFileError, match=message):
        everything(tmp_path)
    with pytest.raises(InputFileError, match=message):
        write(tmp_path, [finished(9)])


def test_a_missing_database_is_said_in_one_line(tmp_path):
    with pytest.raises(InputFileError, match=r"sweep.db: No such file or directory; check the path$"):
        everything(tmp_path)
    assert not names_in(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[bytes, list[bytes]]:
    """The bytes of a database, and all that can be read from it."""
    folder = fill(tmp_path_factory.mktemp("whole"))
    return (folder / DATABASE).read_bytes(), everything(folder)


def placed(folder: Path, content: bytes) -> Path:
    """Put a database into a new folder: one that was found sound is not checked again while it looks the same."""
    folder.mkdir()
    (folder / DATABASE).write_bytes(content)
    return folder


def test_a_database_that_was_cut_is_refused(tmp_path, whole):
    content, _ = whole
    for size in range(0, len(content), 512):
        out = placed(tmp_path / str(size), content[:size])
        assert refused_or(out, []), size
        if size:
            with pytest.raises(InputFileError):
                write(out, [finished(9)])
            assert (out / DATABASE).read_bytes() == content[:size]


@pytest.mark.parametrize("part", range(4))
def test_no_flipped_byte_is_believed(tmp_path, whole, part):
    """A byte of each stretch of 24 is flipped; what is not refused must be what was written.

    The columns by which tables of runs are sorted have no checksum of their own: `digest` compares them.
    """
    content, told = whole
    rng, refused, tried = random.Random(part), 0, 0
    for start in range(24 * part, len(content), 24 * 4):
        place = min(start + rng.randrange(24), len(content) - 1)
        if not content[place]:
            continue  # mostly unused
        changed = bytearray(content)
        changed[place] ^= 1 << rng.randrange(8)
        out = placed(tmp_path / str(place), changed)
        try:
            refused += refused_or(out, told)
        except AssertionError as error:
            raise AssertionError(f"byte {place}: {content[place]:#x} to {changed[place]:#x}") from error
        shutil.rmtree(out)
        tried += 1
    assert refused > 0.9 * tried


def flipped(folder: Path, table: str, column: str) -> None:
    """Change a byte of a row as a disk may, with SQLite itself: only its checksum can tell."""
    with closing(sqlite3.connect(folder / DATABASE)) as connection, connection:
        ((number, value),) = connection.execute(f"SELECT rowid, {column} FROM {table} LIMIT 1").fetchall()
        if isinstance(value, int | float):
            new: object = value + 5
        elif isinstance(value, bytes):
            place = len(value) // 2
            new = value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :]
        else:
            new = value[:-1] + chr(ord(value[-1:] or "a") ^ 1)
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, number))


@pytest.mark.parametrize(
    "changed",
    [
        "cells.cell cells.setting cells.planned records.record events.block failures.record failures.control",
        "terms.name terms.value prices.model prices.price attempts.run attempts.part",
        "calls.reserved_usd calls.billed_usd calls.chars calls.input_tokens calls.attempt calls.model",
        "runs.seed runs.cell runs.accuracy runs.ending runs.control",
    ],
)
def test_a_changed_value_is_refused(tmp_path, whole, changed):
    for name in changed.split():
        out = placed(tmp_path / name, whole[0])
        flipped(out, *name.split("."))
        assert refused_or(out, []), name


@pytest.mark.parametrize("table", ["records", "events", "cells", "attempts"])
def test_a_missing_row_is_noticed(tmp_path, whole, table):
    (tmp_path / DATABASE).write_bytes(whole[0])
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection, connection:
        connection.execute(f"DELETE FROM {table} WHERE rowid = 1")
    assert refused_or(tmp_path, [])


def test_exchanged_rows_are_noticed(tmp_path, whole):
    for table, column in (("records", "record"), ("events", "block")):
        out = placed(tmp_path / table, whole[0])
        with closing(sqlite3.connect(out / DATABASE)) as connection, connection:
            connection.execute(
                f"UPDATE {table} SET ({column}, crc32) = "
                f"(SELECT {column}, crc32 FROM {table} AS other WHERE other.run = 3 - {table}.run) WHERE run < 3"
            )
        assert refused_or(out, []), table


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
HOSTILE = {
    "view": f"CREATE VIEW more AS {ENDLESS}",
    "view in place of a table": f"DROP TABLE terms; CREATE VIEW terms AS {ENDLESS}",
    "trigger": "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM calls; END",
    "generated column": "ALTER TABLE terms ADD COLUMN more INTEGER AS (length(zeroblob(1000000000)))",
    "column": "ALTER TABLE terms ADD COLUMN more TEXT",
    "index": "CREATE INDEX more ON runs (id + 1)",
    "virtual table": "CREATE VIRTUAL TABLE more USING fts5(text)",
    "table": "CREATE TABLE more (x)",
    "statistics": "ANALYZE",
    "other application": "PRAGMA application_id = 7",
    "no application": "PRAGMA application_id = 0",
    "missing table": "DROP TABLE calls",
    "check": "DROP TABLE terms; CREATE TABLE terms (name TEXT PRIMARY KEY, value TEXT CHECK (randomblob(1000)), "
    "crc32 INTEGER NOT NULL) STRICT",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_database_with_other_tables_is_refused(tmp_path, whole, name):
    (tmp_path / DATABASE).write_bytes(whole[0])
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
        connection.executescript(HOSTILE[name])
    before = (tmp_path / DATABASE).read_bytes()
    assert refused_or(tmp_path, [])
    with pytest.raises(InputFileError, match=r"no database of this version of eirkit; use the version that wrote it$"):
        write(tmp_path, [finished(9)])
    assert (tmp_path / DATABASE).read_bytes() == before
    assert not is_without_calls(tmp_path)


def test_a_database_of_100_000_tables_is_refused_soon(tmp_path, whole):
    (tmp_path / DATABASE).write_bytes(whole[0])
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        rows = [(f"t{number}", f"CREATE TABLE t{number} (x)") for number in range(100_000)]
        connection.executemany("INSERT INTO sqlite_master VALUES ('table', ?1, ?1, 2, ?2)", [(n, s) for n, s in rows])
    assert refused_or(tmp_path, [])


def test_pages_that_lead_back_to_themselves_are_refused_soon(tmp_path):
    """Every page of a table names the same page below it many times: read as it stands, it would never end."""
    write(tmp_path, [finished(seed, text=long_text(seed, 50)) for seed in range(400)])
    content = bytearray((tmp_path / DATABASE).read_bytes())
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'runs' AND type = 'table'")
    page = (root - 1) * 4096
    assert content[page] == 5, "a page with pages below it"
    cells = int.from_bytes(content[page + 3 : page + 5], "big")
    for number in range(cells):
        at = int.from_bytes(content[page + 12 + 2 * number : page + 14 + 2 * number], "big")
        content[page + at : page + at + 4] = root.to_bytes(4, "big")
    (tmp_path / DATABASE).write_bytes(content)
    assert refused_or(tmp_path, [])


def test_a_block_that_claims_to_be_enormous_is_refused_unopened(tmp_path):
    bomb = zstandard.ZstdCompressor().compress(b"x" * (1 << 29))
    assert len(bomb) < 1 << 16
    run = finished(0)
    with SweepWriter(tmp_path) as writer:
        writer.add([run], durable=False)
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection, connection:
        row = (bomb, crc32(bomb, crc32(run.record.run.encode(), 0)))
        connection.execute("UPDATE events SET block = ?, crc32 = ?", row)
    with (
        SweepDatabase(tmp_path) as database,
        pytest.raises(InputFileError, match="events claim 536,870,912 bytes, of at most"),
    ):
        database.events(run.record.run)


@pytest.mark.parametrize("usd", ["NaN", "sNaN", "-1", "Infinity", "x"])
def test_money_that_is_none_is_refused(tmp_path, usd):
    """Also with the right checksum, which anybody can compute."""
    fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection, connection:
        *row, _ = connection.execute("SELECT * FROM calls WHERE id = 1").fetchone()
        row[8] = usd
        connection.execute("UPDATE calls SET billed_usd = ?, crc32 = ? WHERE id = 1", (usd, checksum_of(*row)))
    with SweepDatabase(tmp_path) as database, pytest.raises(InputFileError, match=r"; restore the file$"):
        journal_of(database)


# --- the power fails --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_what_a_power_failure_leaves_keeps_every_durable_run_and_every_reserved_call():
    assert cut(60, seed=time.time_ns() % 1_000_000).total() >= 60


RESERVE = """
import sys
from pathlib import Path
from eirkit.records.database import SweepWriter
from tests.records.finished import attempt, reserved
with SweepWriter(Path(sys.argv[1])) as writer:
    for number in range(1, 50):
        writer.reserve(reserved(number, number), attempt(number))
        print(number, flush=True)
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("somebody_reads", [False, True])
def test_a_kill_within_a_commit_takes_no_call_that_was_reserved(tmp_path, somebody_reads):
    """Killed while it syncs the log: what it was told is there for all; one commit more may be, of which it was not."""
    write(tmp_path)
    inject = ["-e", "trace=fdatasync", "-e", "inject=fdatasync:signal=SIGKILL:when=13"]
    words = ["strace", "-f", "-o", os.devnull, *inject, sys.executable, "-c", RESERVE, tmp_path]
    with ExitStack() as stack:
        with running(words, stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
            told = [process.stdout.readline()]
            if somebody_reads:
                stack.enter_context(SweepDatabase(tmp_path))
            told += process.stdout.read().split()
        last = int(told[-1])
        assert 1 < last < 49, "it was not killed within a commit"
        with SweepDatabase(tmp_path) as reader:
            found = [call.id for call in reader.calls()]
        assert found in (list(range(1, last + 1)), list(range(1, last + 2)))
        with SweepWriter(tmp_path) as writer:
            assert [call.id for call in writer.calls()] == found
            writer.add([finished(0)], durable=True)
    with SweepDatabase(tmp_path) as reader:
        assert [call.id for call in reader.calls()] == found
