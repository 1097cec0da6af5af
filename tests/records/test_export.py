"""Folders of runs as lines: nothing is lost on the way out and back, and damaged lines are refused in one line."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
import zstandard

from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.records.database import PaidAttempt, PaidCall, SweepDatabase, SweepWriter
from eirkit.records.events import pack
from eirkit.records.export import CALLS, EVENTS, FAILURES, RUNS, load_export, read_export, write_export
from eirkit.records.money import journal_of
from eirkit.records.runs import Failure, RunUsage

FAILED = Failure(
    run="0123-4",
    cell="0123",
    seed=4,
    workload="store-recall",
    model="some/model",
    condition="kv",
    kind="network",
    message="no answer",
    steps=2,
    usage=RunUsage(calls=3),
)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "sweep"
    keys = {
        "workload": ["store-recall"],
        "model": ["reference/recoverer"],
        "memory": ["key-value", "null"],
        "n": [12],
        "m": [4],
        "h": [2],
        "seeds": [0, 3, 1 << 63],
    }
    start_sweep(read_suite(keys), folder, control=True)
    with SweepWriter(folder) as writer:
        writer.fail(FAILED)
        writer.fail(FAILED, control=True)
        paid = PaidCall(
            id=1,
            attempt=1,
            payer="agent",
            model="some/model",
            reserved_usd=Decimal("0.0100"),
            billed_usd=Decimal("0.0073"),
            unconfirmed_usd=Decimal(0),
            input_tokens=10,
        )
        writer.reserve(paid, PaidAttempt(1, "0123-4", ""))
        writer.reserve(msgspec.structs.replace(paid, id=2, attempt=None, billed_usd=None), None)
    return folder


@pytest.fixture
def exported(sweep: Path, tmp_path: Path) -> Path:
    write_export(sweep, tmp_path / "out")
    return tmp_path / "out"


def test_the_lines_hold_what_the_database_holds(sweep: Path, exported: Path) -> None:
    with SweepDatabase(sweep) as database:
        for control in (False, True):
            records = sorted(database.records(control=control), key=lambda record: (record.cell, record.seed))
            found = list(read_export(exported, control=control))
            assert [record for record, _ in found] == records
            assert [events for _, events in found] == [database.events(one.run, control=control) for one in records]
            assert records
    for name in ("manifest.json", "control.json", "summary.json"):
        assert (exported / name).read_bytes() == (sweep / name).read_bytes()
    calls = [msgspec.json.decode(line) for line in (exported / CALLS).read_bytes().splitlines()]
    assert [(call["run"], call["reserved_usd"], call["billed_usd"]) for call in calls] == [
        ("0123-4", "0.0100", "0.0073"),
        (None, "0.0100", None),
    ]


def test_the_same_folder_gives_the_same_bytes(sweep: Path, exported: Path, tmp_path: Path) -> None:
    write_export(sweep, tmp_path / "again")
    assert {path.name for path in exported.iterdir()} == {path.name for path in (tmp_path / "again").iterdir()}
    for path in exported.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def test_lines_become_the_same_database_again(sweep: Path, exported: Path, tmp_path: Path) -> None:
    with SweepWriter(tmp_path / "back") as writer:
        load_export(exported, writer)
    with SweepDatabase(sweep) as then, SweepDatabase(tmp_path / "back") as now:
        assert now.digest() == then.digest()
        assert now.count(control=True) == then.count(control=True) > 0
        for control in (False, True):
            assert now.failures(control=control) == then.failures(control=control) == [FAILED]
        assert list(now.calls()) == list(then.calls())
        assert now.attempts() == then.attempts()
        before, after = journal_of(then), journal_of(now)
        assert before is not None
        assert after is not None
        assert after.spending == before.spending


def test_each_run_has_a_frame_and_each_event_its_run(exported: Path) -> None:
    packed, frames = (exported / EVENTS).read_bytes(), []
    while packed:
        frame = zstandard.ZstdDecompressor().decompressobj()
        frames.append(frame.decompress(packed))
        packed = frame.unused_data
    runs = [msgspec.json.decode(line) for line in (exported / RUNS).read_bytes().splitlines()]
    assert len(frames) == len(runs)
    for frame, run in zip(frames, runs, strict=True):
        for line in frame.splitlines():
            event = msgspec.json.decode(line)
            assert next(iter(event)) == "run"
            assert (event["run"], event.get("control", False)) == (run["run"], run.get("control", False))


def test_a_folder_in_use_is_left_alone(sweep: Path, exported: Path) -> None:
    with pytest.raises(UsageError, match="not empty"):
        write_export(sweep, exported)
    with pytest.raises(InputFileError, match=r"manifest\.json"):
        write_export(exported.parent, exported.parent / "other")


def change(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)


def damaged(folder: Path, way: str) -> None:
    runs, lines = (folder / RUNS).read_bytes(), (folder / RUNS).read_bytes().splitlines(keepends=True)
    events = (folder / EVENTS).read_bytes()
    first = msgspec.json.decode(lines[0])
    match way:
        case "no runs":
            (folder / RUNS).unlink()
        case "cut":
            change(folder, RUNS, runs[:-1])
        case "not JSON":
            change(folder, RUNS, b"\xff{" + runs)
        case "twice":
            change(folder, RUNS, lines[0] + runs)
        case "out of order":
            change(folder, RUNS, b"".join([lines[1], lines[0], *lines[2:]]))
        case "another setting":
            first["setting"]["access"]["h"] += 1
            change(folder, RUNS, msgspec.json.encode(first) + b"\n" + b"".join(lines[1:]))
        case "a text for a number":
            first["seed"] = "0"
            change(folder, RUNS, msgspec.json.encode(first) + b"\n" + b"".join(lines[1:]))
        case "nested":
            change(folder, RUNS, b'{"run":' + b"[" * 100_000 + b"\n")
        case "a run is missing":
            change(folder, RUNS, b"".join(lines[:-1]))
        case "no events":
            change(folder, EVENTS, b"")
        case "torn events":
            change(folder, EVENTS, events[:-40])
        case "no frames":
            change(folder, EVENTS, b"{}\n")
        case "foreign events":
            change(folder, EVENTS, events + pack(b'{"type":"verdicts"}\n'))
        case "further events":
            change(folder, EVENTS, events + pack(b'{"run":"ffff-0","type":"verdicts"}\n'))
        case "a bomb":
            change(folder, EVENTS, zstandard.ZstdCompressor(19).compress(b" " * (1 << 29)))
        case "no event":
            change(folder, EVENTS, pack(b'{"run":"%s","type":"else"}\n' % first["run"].encode()) + events)


@pytest.mark.parametrize(
    "way",
    [
        "no runs",
        "cut",
        "not JSON",
        "twice",
        "out of order",
        "another setting",
        "a text for a number",
        "nested",
        "a run is missing",
        "no events",
        "torn events",
        "no frames",
        "foreign events",
        "further events",
        "a bomb",
        "no event",
    ],
)
def test_damage_is_one_line(exported: Path, way: str) -> None:
    damaged(exported, way)
    with pytest.raises(InputFileError) as found:
        list(read_export(exported))
    assert "\n" not in str(found.value)
    assert len(str(found.value)) < 400


def test_damaged_failures_and_calls_are_refused(exported: Path, tmp_path: Path) -> None:
    for name, line in ((FAILURES, b'{"run":1}\n'), (CALLS, b'{"id":1,"reserved_usd":"much"}\n')):
        copy = shutil.copytree(exported, tmp_path / name)
        change(copy, name, line)
        with SweepWriter(tmp_path / f"of {name}") as writer, pytest.raises(InputFileError, match="damaged"):
            load_export(copy, writer)
