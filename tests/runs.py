"""Reads folders of runs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from eirkit.lacuna.findings.summary import read_summary
from eirkit.lacuna.runs.manifest import read_manifest
from eirkit.lacuna.runs.replay import Replays
from eirkit.records.database import DATABASE, SweepDatabase
from eirkit.records.documents import SUMMARY
from eirkit.records.events import Event
from eirkit.records.runs import Failure, RunRecord
from eirkit.records.sweeps import CellRow, Gate, GateVerdict, Manifest, Standing


def records(folder: Path | str, *, control: bool = False) -> list[RunRecord]:
    """Return the finished runs in the order in which they ended."""
    with SweepDatabase(Path(folder)) as database:
        return list(database.records(control=control))


def by_seed(folder: Path | str) -> list[RunRecord]:
    """Return the finished runs in the order of their seeds."""
    return sorted(records(folder), key=lambda record: record.seed)


def record(folder: Path | str) -> RunRecord:
    """Return the only finished run."""
    (only,) = records(folder)
    return only


def events(folder: Path | str, run: str | None = None, *, control: bool = False) -> list[Event]:
    """Return the events of a run, or those of all runs in the order in which they ended."""
    with SweepDatabase(Path(folder)) as database:
        named = [run] if run is not None else [ended.run for ended in database.records(control=control)]
        return [event for name in named for event in database.events(name, control=control)]


def failures(folder: Path | str, *, control: bool = False) -> list[Failure]:
    """Return the failed attempts."""
    with SweepDatabase(Path(folder)) as database:
        return database.failures(control=control)


def rows(folder: Path | str) -> tuple[CellRow, ...]:
    """Return the rows of the summary."""
    return read_summary(Path(folder)).rows


def row(folder: Path | str) -> CellRow:
    """Return the only row of the summary."""
    (only,) = rows(folder)
    return only


def manifest(folder: Path | str) -> Manifest:
    """Return the manifest."""
    return read_manifest(Path(folder))


def digest(folder: Path | str) -> str:
    """Return the hash of all runs and their events."""
    with SweepDatabase(Path(folder)) as database:
        return database.digest()


def replayed(folder: Path | str, *, plugins: bool = False) -> list[tuple[bool, list[str]]]:
    """Play all runs again from their records; return whether each was played, and what is wrong with it."""
    with SweepDatabase(Path(folder)) as database:
        return [Replays(plugins).check(ended, database.event_lines(ended.run)) for ended in database.records()]


def lose_last(folder: Path | str) -> None:
    """Take the last run out of the database, as if it had not ended yet."""
    with sqlite3.connect(Path(folder) / DATABASE) as connection:
        ((last,),) = connection.execute("SELECT max(id) FROM runs").fetchall()
        for table, key in (("events", "run"), ("records", "run"), ("runs", "id")):
            connection.execute(f"DELETE FROM {table} WHERE {key} = ?", (last,))
    connection.close()


def cut(folder: Path | str, kept: int = 2) -> None:
    """Leave a folder as a writer leaves it that is killed after some runs; those of the control come before."""
    with closing(sqlite3.connect(Path(folder) / DATABASE)) as connection, connection:
        (last,) = connection.execute(
            "SELECT id FROM runs WHERE control = 0 ORDER BY id LIMIT 1 OFFSET ?", (kept - 1,)
        ).fetchone()
        for table, column in (("events", "run"), ("records", "run"), ("runs", "id")):
            connection.execute(f"DELETE FROM {table} WHERE {column} > ?", (last,))
    (Path(folder) / SUMMARY).unlink()


def standing(verdict: GateVerdict, reason: str) -> Standing:
    """Return a control that ends in this way."""
    figures = {"estimate": 0.1, "low": 0.0, "high": 0.2, "counted": 90, "verdict": verdict}
    ours, papers = (
        Gate(measure=measure, threshold=threshold, **figures)
        for measure, threshold in (("informed_accuracy", 0.9), ("accuracy", 0.75))
    )
    return Standing(gates=(ours, papers), verdict=verdict, passes=verdict == "passes", reason=reason)
