"""Sweeps as trajectories: the database of a folder, and the lines of its export, also packed and in a bucket."""

from __future__ import annotations

import shutil
import sqlite3
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.records.database import SweepDatabase
from eirkit.records.events import ModelExchange
from eirkit.records.export import EVENTS, RUNS, write_export
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.sources.remote import Remote
from eirkit.vestige.trajectory import Recording


def sweep(folder: Path, **options: Any) -> Path:
    start_sweep(read_suite({"n": 12, "m": 4, "seeds": [0], **options}), folder / "sweep")
    return folder / "sweep"


@pytest.fixture(scope="module")
def controlled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = {"workload": "stepwise-sum", "h": [2, 4], "model": "reference/calculator"}
    return sweep(tmp_path_factory.mktemp("controlled"), **options)


@pytest.fixture(scope="module")
def exported(controlled: Path) -> Path:
    write_export(controlled, controlled.parent / "lines")
    return controlled.parent / "lines"


def runs(folder: Path | Remote) -> list[Recording]:
    found = list(read_corpus([folder]))
    assert not [item for item in found if isinstance(item, Skipped)]
    return [item for item in found if isinstance(item, Recording)]


def test_every_run_is_read_and_nothing_else(controlled: Path) -> None:
    found = runs(controlled)
    with SweepDatabase(controlled) as database:
        records = list(database.records())
        assert database.count(control=True)  # whose runs are left out
    assert [run.run_id for run in found] == [record.run for record in records]
    scores = [record.score for record in records]
    assert [run.resolved for run in found] == [score is not None and score.correct == 12 for score in scores]
    assert {(run.format, run.model, run.exit_status) for run in found} == {
        ("lacuna", "reference/calculator", "finished")
    }


def alike(folder: Path | Remote) -> list[Recording]:
    return sorted((replace(run, source="") for run in runs(folder)), key=lambda run: run.run_id)


def test_an_export_says_the_same_as_the_database_wherever_it_is(controlled: Path, exported: Path) -> None:
    expected = alike(controlled)
    assert alike(exported) == expected
    archive = exported.parent / "lines.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in exported.iterdir():
            packed.write(path, f"lines/{path.name}")
    assert alike(archive) == expected
    assert alike(Remote(f"file://{exported}")) == expected


def test_a_database_in_an_archive_is_named(controlled: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "sweep.zip", "w") as packed:
        packed.write(controlled / "sweep.db", "sweep/sweep.db")
    (skipped,) = read_corpus([tmp_path])
    assert isinstance(skipped, Skipped)
    assert "eirkit export jsonl" in skipped.reason


def test_a_step_reads_what_it_required_and_had_and_writes_its_answer(controlled: Path) -> None:
    # Written against the prompts, which the reader does not look at: what they show and the step refers to was read.
    with SweepDatabase(controlled) as database:
        events = {run.run: database.events(run.run) for run in database.records()}
    for run in runs(controlled):
        prompts = [event.prompt or "" for event in events[run.run_id] if isinstance(event, ModelExchange)]
        assert len(prompts) == len(run.turns) == 12
        for step, (prompt, turn) in enumerate(zip(prompts, run.turns, strict=True), 1):
            records, _, rest = prompt.partition("STEP")
            shown = {line.split(" = ")[0] for line in records.splitlines() if " = " in line}
            required = set(rest.partition("REFS ")[2].split("\n")[0].split())
            expected = sorted(f"A_{int(name[2:])}" for name in shown & required)
            assert sorted(read.path for read in turn.touches.reads) == expected
            assert [write.path for write in turn.touches.writes] == [f"A_{step}"]


def test_what_was_fetched_from_a_memory_is_read(tmp_path: Path) -> None:
    options = {"workload": "store-recall", "h": 2, "model": "reference/recoverer", "memory": "key-value"}
    (run,) = runs(sweep(tmp_path, **options))
    recalled = {turn.touches.writes[0].path: [read.path for read in turn.touches.reads] for turn in run.turns}
    assert sum(map(len, recalled.values())) == 6  # of twelve steps every second one recalls
    assert run.goal_files == tuple(f"A_{t}" for t in range(1, 13))


def test_an_export_without_its_events_is_named(exported: Path, tmp_path: Path) -> None:
    shutil.copy(exported / RUNS, tmp_path)
    (skipped,) = read_corpus([tmp_path])
    assert isinstance(skipped, Skipped)
    assert skipped.reason == "is without the events.jsonl.zst beside it; give the whole folder"


@pytest.mark.parametrize("damage", [{"setting": 3}, {"score": {}}, {"seed": 5}])
def test_a_damaged_record_costs_no_other(exported: Path, tmp_path: Path, damage: dict[str, object]) -> None:
    lines = (exported / RUNS).read_bytes().splitlines()
    lines[0] = msgspec.json.encode({**msgspec.json.decode(lines[0]), **damage})
    (tmp_path / RUNS).write_bytes(b"\n".join(lines) + b"\n")
    shutil.copy(exported / EVENTS, tmp_path)
    first, second = read_corpus([tmp_path])
    assert isinstance(first, Skipped)
    assert isinstance(second, Recording)


def test_a_damaged_block_costs_no_other_run(controlled: Path, tmp_path: Path) -> None:
    shutil.copytree(controlled, tmp_path / "sweep")
    with sqlite3.connect(tmp_path / "sweep" / "sweep.db") as connection:
        connection.execute("UPDATE events SET block = x'00' WHERE run = (SELECT id FROM runs WHERE control = 0)")
    connection.close()
    first, second = read_corpus([tmp_path])
    assert isinstance(first, Skipped)
    assert isinstance(second, Recording)
