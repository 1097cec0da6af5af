"""Where a runner puts its runs: those of the sweep and of its control beside each other, and which folders are unused.

What the database promises is tested in tests/records/test_database.py.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.budget import Budget
from eirkit.lacuna.runs.cells import CellPlan
from eirkit.lacuna.runs.rescue import RescueSetup
from eirkit.lacuna.runs.runner import Runner
from eirkit.lacuna.runs.store import RunStore, is_unused_folder
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import open_plan, resume_sweep, start_sweep
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.database import DATABASE, LOCK, SweepDatabase, SweepWriter
from eirkit.records.documents import MANIFEST
from tests.records.finished import SETTING, failed, finished

SUITE = {"model": "reference/calculator", "workload": "store-recall", "n": 6, "m": 4, "h": 2, "seeds": "0:4"}


def test_a_sweep_and_its_control_are_kept_apart(tmp_path):
    with SweepWriter(tmp_path) as writer:
        sweep, control = RunStore(writer), RunStore(writer, control=True)
        sweep.commit([finished(0), finished(1)], durable=False)
        control.commit([finished(0)], durable=True)
        control.fail(failed(2))
        assert sweep.finished() == {SETTING.id(): {0, 1}}
        assert control.finished() == {SETTING.id(): {0}}
        assert (sweep.folder, control.folder) == (tmp_path, tmp_path)
    with SweepDatabase(tmp_path) as database:
        assert (database.failures(), database.failures(control=True)) == ([], [failed(2)])


def test_an_untouched_folder_is_one_without_records(tmp_path):
    assert is_unused_folder(tmp_path / "none")
    assert is_unused_folder(tmp_path)
    with SweepWriter(tmp_path):
        assert is_unused_folder(tmp_path), "a writer that died before its first record left nothing to keep"
    assert is_unused_folder(tmp_path)
    (tmp_path / f".{MANIFEST}.77.unfinished").touch()
    assert is_unused_folder(tmp_path)
    (tmp_path / "notes.txt").touch()
    assert not is_unused_folder(tmp_path)
    assert not is_unused_folder(tmp_path / "notes.txt")


def test_a_folder_with_runs_or_somebody_elses_database_is_in_use(tmp_path):
    with SweepWriter(tmp_path / "runs") as writer:
        writer.add([finished(0)], durable=False)
        assert not is_unused_folder(tmp_path / "runs")
    assert not is_unused_folder(tmp_path / "runs")
    (tmp_path / "other").mkdir()
    with closing(sqlite3.connect(tmp_path / "other" / DATABASE)) as connection, connection:
        connection.execute("CREATE TABLE dear (x)")
    assert not is_unused_folder(tmp_path / "other")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / DATABASE).write_text("dear")
    assert not is_unused_folder(tmp_path / "text")


def test_a_folder_has_one_runner_at_a_time(tmp_path):
    with Runner(tmp_path), pytest.raises(UsageError, match=r"another process is writing to .*; wait for it or stop it"):
        Runner(tmp_path).__enter__()
    with Runner(tmp_path):  # the lock goes with its holder
        assert (tmp_path / LOCK).stat().st_size == 0


@pytest.mark.parametrize("table", ["records", "events"])
def test_a_changed_run_is_refused(tmp_path, table):
    start_sweep(read_suite(SUITE), tmp_path, control=False)
    column = "record" if table == "records" else "block"
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection, connection:
        ((old,),) = connection.execute(f"SELECT {column} FROM {table} WHERE run = 3").fetchall()
        new = old.replace(b'"correct":', b'"correcT":') if table == "records" else old[:-1] + bytes([old[-1] ^ 1])
        assert new != old
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE run = 3", (new,))
    message = "changed since it was written, as its checksum shows; restore the file"
    with SweepDatabase(tmp_path) as database, pytest.raises(InputFileError, match=message):
        database.digest()
    if table == "records":  # a summary needs no events
        with pytest.raises(InputFileError, match=message):
            resume_sweep(tmp_path)


def left_with_journal(folder: Path) -> None:
    (folder / DATABASE).touch()
    (folder / f"{DATABASE}-journal").write_bytes(bytes(512))


def left_without_tables(folder: Path) -> None:
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


@pytest.mark.parametrize("leave", [left_with_journal, left_without_tables])
@pytest.mark.parametrize("command", ["run", "rescue"])
def test_what_was_killed_before_its_first_table_is_simply_started_again(tmp_path, leave, command):
    leave(tmp_path)
    (tmp_path / LOCK).touch()
    assert is_unused_folder(tmp_path)
    if command == "run":
        assert start_sweep(read_suite(SUITE), tmp_path, control=False).complete
        return
    setup = RescueSetup(TaskSpec("store-recall", n=6, m=4), 1)
    plan = CellPlan("rescue", tuple(setup.cells(["reference/calculator"], ModelOptions(), range(2))))
    with open_plan(plan, tmp_path, Budget(None, tmp_path)) as runner:
        assert not runner.run(plan).stopped
