"""Where a runner puts its runs: the database of a folder, and in it the sweep itself or its control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eirkit.records.database import DATABASE, LOCK, FinishedRun, SweepWriter, is_without_calls
from eirkit.records.documents import MANIFEST
from eirkit.records.runs import Failure


@dataclass(frozen=True, slots=True)
class RunStore:
    """Stores the runs of one part of a folder."""

    database: SweepWriter
    control: bool = False  # whether they are those of the capability control

    @property
    def folder(self) -> Path:
        return self.database.folder

    def finished(self) -> dict[str, set[int]]:
        """Return the seeds of the finished runs by cell."""
        return self.database.finished(control=self.control)

    def commit(self, runs: Sequence[FinishedRun], *, durable: bool) -> None:
        """Store finished runs; `durable`: also against a power failure, for what cannot be repeated for free."""
        self.database.add(runs, control=self.control, durable=durable)

    def fail(self, failure: Failure) -> None:
        """Store a failed attempt."""
        self.database.fail(failure, control=self.control)


def is_unused_folder(folder: Path) -> bool:
    """True if a folder is missing, empty, or has only what a writer left that was killed before its manifest."""
    if not folder.exists():
        return True
    if not folder.is_dir() or (folder / MANIFEST).exists():
        return False
    names = {entry.name for entry in folder.iterdir() if not entry.name.endswith(".unfinished")} - {LOCK}
    own = {DATABASE, *(DATABASE + ending for ending in ("-wal", "-shm", "-journal"))}
    return names <= own and (not names or is_without_calls(folder))
