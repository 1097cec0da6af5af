"""The folder of a sweep: whatever a dying writer leaves behind, what was complete stays and nothing is there twice."""

from __future__ import annotations

import json
import shutil
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.runs.store import (
    FAILURES,
    LOCK,
    RUNS,
    FinishedRun,
    RunStore,
    is_unused_folder,
    read_events,
    read_failures,
    scan_runs,
)
from eirkit.records.event_blocks import EVENTS, pack, read_lines
from eirkit.records.lines import encode, seal
from tests.processes import completed


def finished(name: str, events: int = 2) -> FinishedRun:
    lines = [encode("event/1", {"run": name, "i": i, "text": "ä\n\u2028"}) for i in range(events)]
    return FinishedRun({"run": name, "cell": "c"}, b"".join(lines), events)


def write(folder: Path, *batches: list[FinishedRun]) -> list[str]:
    """Open a folder as a new writer does, commit, and return what was there before."""
    with RunStore(folder) as store:
        present = list(store.recover())
        for batch in batches:
            store.commit(batch, durable=False)
    return present


def contents(folder: Path) -> tuple[bytes, bytes]:
    return (folder / EVENTS).read_bytes(), (folder / RUNS).read_bytes()


def test_what_was_committed_is_there_in_order(tmp_path):
    assert write(tmp_path, [finished("c-0"), finished("c-1", 0)], [finished("c-2", 3)]) == []
    assert write(tmp_path) == ["c-0", "c-1", "c-2"]
    records = [record for record, _ in scan_runs(tmp_path / RUNS)]
    assert [len(read_events(tmp_path, record["events"])) for record in records] == [2, 0, 3]
    assert [event["run"] for event in read_events(tmp_path, records[2]["events"])] == ["c-2"] * 3


def test_blocks_follow_each_other_without_gaps(tmp_path):
    write(tmp_path, [finished("c-0")], [finished("c-1")])
    places = [record["events"] for record, _ in scan_runs(tmp_path / RUNS)]
    assert places[0]["offset"] == 0
    assert places[1]["offset"] == places[0]["bytes"]
    assert sum(place["bytes"] for place in places) == (tmp_path / EVENTS).stat().st_size


BATCHES = [[finished("c-0")], [finished("c-1"), finished("c-2", 1)], [finished("c-3", 3)]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    write(folder, *BATCHES)
    return contents(folder)


def boundaries() -> list[tuple[int, int]]:
    """Where the two files end after each batch, by their sizes."""
    ends, events, runs = [(0, 0)], 0, 0
    for batch in BATCHES:
        for run in batch:
            block = pack(run.events)
            place = {"offset": events, "bytes": len(block), "count": run.count, "crc32": zlib.crc32(block)}
            runs += len(seal(encode("run/1", {**run.record, "events": place})))
            events += len(block)
        ends.append((events, runs))
    return ends


@given(st.data())
def test_a_writer_that_dies_anywhere_loses_only_what_it_had_not_finished(whole, tmp_path_factory, data):
    """Events are written before the line, so a death leaves: all of some batches, and a part of the next.

    With a power cut any of the two files may also have lost its end.
    """
    events, runs = whole
    done = data.draw(st.integers(0, len(BATCHES) - 1), label="complete batches")
    ends = boundaries()
    dying = data.draw(st.booleans(), label="dies while writing events")
    if dying:
        cut = (data.draw(st.integers(ends[done][0], ends[done + 1][0])), ends[done][1])
    else:
        cut = (ends[done + 1][0], data.draw(st.integers(ends[done][1], ends[done + 1][1])))
    if data.draw(st.booleans(), label="power cut"):
        cut = tuple(data.draw(st.integers(0, end)) for end in cut)
    folder = tmp_path_factory.mktemp("cut")
    (folder / EVENTS).write_bytes(events[: cut[0]])
    (folder / RUNS).write_bytes(runs[: cut[1]])

    present = write(folder)
    everything = [run for batch in BATCHES for run in batch]
    names = [str(run.record["run"]) for run in everything]
    assert present == names[: len(present)], "a prefix of what was written, each once"
    if cut[0] >= ends[done][0] and cut[1] >= ends[done][1]:
        assert len(present) >= sum(len(batch) for batch in BATCHES[:done]), "nothing complete is lost"
    write(folder, everything[len(present) :])
    assert contents(folder) == whole, "going on gives the bytes of a sweep that was never cut"
    shutil.rmtree(folder)


def test_bytes_of_a_dead_writer_do_not_end_up_in_a_record(tmp_path):
    write(tmp_path, [finished("c-0")])
    with (tmp_path / EVENTS).open("ab") as stream:
        stream.write(b'{"schema":"event/1","run":"c-1"}\n{"schema":"ev')
    with (tmp_path / RUNS).open("ab") as stream:
        stream.write(b'{"schema":"run/1","run":"c-1"')
    assert write(tmp_path, [finished("c-1")]) == ["c-0"]
    assert write(tmp_path) == ["c-0", "c-1"]
    assert b"".join(read_lines(tmp_path / EVENTS)) == finished("c-0").events + finished("c-1").events


def test_a_block_that_claims_to_be_enormous_is_refused_unopened(tmp_path):
    frame = bytearray(pack(b"x" * 300))
    assert frame[4] == 0x60, "a frame with a content size of two bytes"
    bomb = bytes(frame[:4]) + bytes([0xE0]) + (1 << 40).to_bytes(8, "little") + bytes(frame[7:])
    (tmp_path / EVENTS).write_bytes(bomb)
    with pytest.raises(InputFileError, match="claims 1,099,511,627,776 bytes"):
        read_events(tmp_path, {"offset": 0, "bytes": len(bomb), "count": 1})


@given(data=st.data())
def test_a_page_that_the_power_cut_left_empty_takes_its_run_and_what_follows(whole, tmp_path_factory, data):
    """Sizes are right, names are right, and somewhere there are zeros where events or run lines should be."""
    folder = tmp_path_factory.mktemp("zeros")
    events, runs = (bytearray(content) for content in whole)
    file = data.draw(st.sampled_from([events, runs]))
    start = data.draw(st.integers(0, len(file) - 1))
    end = data.draw(st.integers(start + 1, len(file)))
    assume(any(file[start:end]))  # compressed bytes may be zeros already
    start += next(place for place, byte in enumerate(file[start:end]) if byte)
    file[start:end] = bytes(end - start)
    for name, content in ((EVENTS, events), (RUNS, runs)):
        (folder / name).write_bytes(content)
    everything = [run for batch in BATCHES for run in batch]
    present = write(folder)
    ends = [at for at, _ in (run_ends() if file is events else [(at, 0) for _, at in run_ends()])]
    assert present == [run.record["run"] for run, at in zip(everything, ends, strict=True) if at <= start]
    write(folder, everything[len(present) :])
    assert contents(folder) == whole
    shutil.rmtree(folder)


def run_ends() -> list[tuple[int, int]]:
    """Where each run ends in the two files."""
    found, events, runs = [], 0, 0
    for run in (run for batch in BATCHES for run in batch):
        block = pack(run.events)
        place = {"offset": events, "bytes": len(block), "count": run.count, "crc32": zlib.crc32(block)}
        events += len(block)
        runs += len(seal(encode("run/1", {**run.record, "events": place})))
        found.append((events, runs))
    return found


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (b"not JSON\n", r"runs.jsonl:2: not a 'run/1' record; restore the file"),
        (b'{"schema":"run/2","run":"x","events":{}}\n', "runs.jsonl:2: not a 'run/1' record"),
        (b'["run/1"]\n', "runs.jsonl:2: not a 'run/1' record"),
        (seal(b'{"schema":"run/1","run":"x","events":{"offset":7,"bytes":1,"count":1}}\n'), "run x is out of place"),
    ],
)
def test_damage_in_the_middle_is_reported_not_repaired(tmp_path, damage, message):
    write(tmp_path, [finished("c-0")])
    before = (tmp_path / RUNS).read_bytes() + damage
    (tmp_path / RUNS).write_bytes(before)
    with pytest.raises(InputFileError, match=message):
        write(tmp_path)
    assert (tmp_path / RUNS).read_bytes() == before


def test_there_is_one_writer_at_a_time(tmp_path):
    pytest.importorskip("fcntl")
    message = r"another process is writing to .*; wait for it or stop it"
    with RunStore(tmp_path), pytest.raises(UsageError, match=message):
        RunStore(tmp_path).__enter__()
    write(tmp_path, [finished("c-0")])  # the lock goes with its holder


def test_a_full_disk_takes_back_what_did_not_fit(tmp_path):
    # A limit on the size of files is the nearest thing to a full disk that a test may have.
    pytest.importorskip("resource")
    script = f"""
import resource
from pathlib import Path
from tests.lacuna.runs.test_run_store import finished
from eirkit.lacuna.runs.store import RunStore
with RunStore(Path({str(tmp_path)!r})) as store:
    list(store.recover())
    store.commit([finished("c-0")], durable=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (230, 230))
    try:
        store.commit([finished("c-1"), finished("c-2", 9)], durable=True)
    except OSError as error:
        print(type(error).__name__, error.errno)
"""
    done = completed([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[3])
    assert done.stdout.startswith("OSError"), done.stderr
    assert contents(tmp_path)[0] == pack(finished("c-0").events)
    assert write(tmp_path) == ["c-0"]


def test_failures_are_a_file_of_their_own(tmp_path):
    assert list(read_failures(tmp_path)) == []
    with RunStore(tmp_path) as store:
        store.fail({"run": "c-0", "kind": "timeout"})
        store.fail({"run": "c-0", "kind": "server"})
    assert [failure["kind"] for failure in read_failures(tmp_path)] == ["timeout", "server"]
    assert (tmp_path / FAILURES).read_text().count("\n") == 2


def test_an_untouched_folder_is_one_without_records(tmp_path):
    assert is_unused_folder(tmp_path / "none")
    assert is_unused_folder(tmp_path)
    with RunStore(tmp_path):
        assert is_unused_folder(tmp_path), "a writer that died before its first record left nothing to keep"
    (tmp_path / ".manifest.json.unfinished").touch()
    assert is_unused_folder(tmp_path)
    (tmp_path / "notes.txt").touch()
    assert not is_unused_folder(tmp_path)
    assert not is_unused_folder(tmp_path / "notes.txt")


def test_the_lock_holds_no_data(tmp_path):
    write(tmp_path, [finished("c-0")])
    assert (tmp_path / LOCK).stat().st_size == 0
    assert {entry.name for entry in tmp_path.iterdir()} == {LOCK, EVENTS, RUNS}


def test_records_are_plain_json_lines(tmp_path):
    write(tmp_path, [finished("c-0")])
    for line in [*read_lines(tmp_path / EVENTS), *(tmp_path / RUNS).read_bytes().split(b"\n")[:-1]]:
        assert "schema" in json.loads(line)


@pytest.mark.skipif(shutil.which("zstd") is None, reason="the command zstd is not installed")
def test_the_command_zstd_reads_the_events(tmp_path):
    write(tmp_path, [finished("c-0")], [finished("c-1")])
    done = completed(["zstd", "-dc", str(tmp_path / EVENTS)], check=True)
    assert done.stdout.encode() == finished("c-0").events + finished("c-1").events
