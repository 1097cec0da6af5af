"""A folder of runs as an object: typed rows, lazy runs with their steps and events, rankings and tables."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, overload
from weakref import finalize

from eirkit.errors import InputFileError, MissingExtraError, UsageError
from eirkit.lacuna.findings.ranking import MARGIN
from eirkit.lacuna.findings.summary import read_summary
from eirkit.records.database import SHOWN, SweepDatabase
from eirkit.records.documents import MANIFEST, RUNS_SCHEMA, read_struct
from eirkit.records.events import Event
from eirkit.records.runs import Failure, RunRecord, StepRecord, steps_of
from eirkit.records.sweeps import CellRow, Manifest, Spending, Summary
from eirkit.report.runs.choice import Choice, choose_folders

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS = ("workload", "model", "memory", "h", "scored", "accuracy")


class Sweep:
    """The runs of a folder, finished or not.

    Everything is read when it is asked for; `rows` and `runs` of a folder that is being written to are those so far.

    Args:
        folder: as `eirkit.run` or `eirkit lacuna run` wrote it.
        temporary: remove the folder when this object is gone.
    """

    def __init__(self, folder: str | Path, *, temporary: bool = False) -> None:
        self.folder = Path(folder)
        if temporary:
            finalize(self, rmtree, self.folder, ignore_errors=True)
        if not (self.folder / MANIFEST).is_file():
            raise InputFileError(f"{folder} holds no runs; give a folder of `eirkit.run` or `eirkit lacuna run`")

    @property
    def manifest(self) -> Manifest:
        """What determines the runs: settings, versions, hashes."""
        return read_struct(self.folder / MANIFEST, RUNS_SCHEMA, Manifest)

    @property
    def summary(self) -> Summary:
        """All rows, failures and spending."""
        return read_summary(self.folder)

    @property
    def rows(self) -> tuple[CellRow, ...]:
        """One row for each combination of task, model, memory and limits."""
        return self.summary.rows

    @property
    def runs(self) -> Runs:
        """The finished runs in the order in which they ended; each is read when it is asked for."""
        return Runs(self)

    @property
    def failures(self) -> list[Failure]:
        """The failed attempts; a run that finished later is in `runs`, too."""
        with self.database() as database:
            return database.failures()

    @property
    def spending(self) -> Spending | None:
        """What it has cost so far; None if nothing was paid for."""
        return self.summary.spending

    @property
    def complete(self) -> bool:
        """Whether every planned run is scored."""
        return self.summary.complete

    def database(self) -> SweepDatabase:
        """Return the database of the folder, to be opened in a with statement."""
        return SweepDatabase(self.folder)

    def digest(self) -> str:
        """Return a hash of all runs and events: equal for equal seeds, settings and versions."""
        with self.database() as database:
            return database.digest()

    def choose(
        self,
        by: str | None = None,
        measure: str = "accuracy",
        abilities: Sequence[str] = (),
        margin: float = MARGIN,
    ) -> Choice:
        """Return the ranking of what the sweep tried, as `eirkit choose` prints it.

        Args:
            by: the setting whose values are the candidates; by default the memory, else the model, else what varies.
            abilities: rank by questions about conversations that test one of these.
            margin: a difference that does not matter, as a share.
        """
        return choose_folders([self.folder], by, measure, abilities, margin)[0]

    def to_arrow(self, *, runs: bool = False) -> Any:
        """Return the rows as a table of pyarrow; with `runs`, one row for each run."""
        try:
            import pyarrow
        except ImportError:
            raise MissingExtraError("tables of Arrow", "vestige") from None
        return pyarrow.Table.from_pylist(self._run_rows() if runs else [_flat(row) for row in self.rows])

    def to_pandas(self, *, runs: bool = False) -> Any:
        """Return the rows as a data frame of pandas, which must be installed; with `runs`, one row for each run."""
        try:
            import pandas
        except ImportError:
            raise UsageError("data frames need pandas; run `python -m pip install pandas`") from None
        return pandas.DataFrame(self._run_rows() if runs else [_flat(row) for row in self.rows])

    def _run_rows(self) -> list[dict[str, Any]]:
        with self.database() as database:
            settings, cells = database.settings(), list(map(str, database.column("cell")))
            columns = {name: database.column(name) for name in ("seed", *SHOWN)}
        return [
            {
                "cell": cell,
                "workload": settings[cell].task.workload,
                "model": settings[cell].model,
                "memory": settings[cell].access.memory,
                "condition": settings[cell].access.condition,
                "h": settings[cell].access.h,
                **{name: column[place] for name, column in columns.items()},
            }
            for place, cell in enumerate(cells)
        ]

    def __repr__(self) -> str:
        summary = self.summary
        return f"Sweep({str(self.folder)!r}: {summary.scored} of {summary.planned} runs, {len(summary.rows)} settings)"

    def __rich__(self) -> Table:
        from rich.table import Table

        table = Table(title=repr(self))
        for name in COLUMNS:
            table.add_column(name)
        for row in self.rows:
            table.add_row(*_cells(row))
        return table

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in COLUMNS)
        rows = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in _cells(row))}</tr>" for row in self.rows
        )
        return f"<table><caption>{html.escape(repr(self))}</caption><tr>{head}</tr>{rows}</table>"


def _cells(row: CellRow) -> list[str]:
    accuracy = "–" if row.accuracy is None else f"{row.accuracy:.3f}"
    return [
        row.workload,
        row.model,
        row.memory or row.condition,
        "" if row.h is None else str(row.h),
        f"{row.scored}/{row.attempted}",
        accuracy,
    ]


def _flat(row: CellRow) -> dict[str, Any]:
    """Return the plain values of a row, and its causes under their own names."""
    plain = {name: getattr(row, name) for name in row.__struct_fields__}
    kept = {name: value for name, value in plain.items() if value is None or isinstance(value, (str, int, float))}
    return {**kept, **{f"share_{cause}": share for cause, share in row.error_shares.items()}}


class Run:
    """One finished run: its record, and its steps and events, which are read when they are asked for."""

    def __init__(self, sweep: Sweep, record: RunRecord) -> None:
        self.sweep, self.record = sweep, record

    @property
    def id(self) -> str:
        return self.record.run

    @property
    def seed(self) -> int:
        return self.record.seed

    @property
    def accuracy(self) -> float | None:
        """Correct answers / scored steps; None for a probe, which has no score."""
        return None if self.record.score is None else self.record.score.accuracy

    @cached_property
    def events(self) -> list[Event]:
        """Exchanges with the model and the memory, actions and decisions, in order."""
        with self.sweep.database() as database:
            return database.events(self.record.run)

    @cached_property
    def steps(self) -> list[StepRecord]:
        """Every step of the task with its answer and, where that is wrong, the cause; `steps[0]` is step 1."""
        return steps_of(self.events, self.record.setting.task.length)

    def __repr__(self) -> str:
        setting = self.record.setting
        where = f"{setting.task.workload}, {setting.model}, {setting.access.memory or setting.access.condition}"
        return f"Run({self.id!r}: {where}, seed {self.seed}, accuracy {self.accuracy})"


class Runs(Sequence[Run]):
    """The finished runs of a sweep; at most one is in memory at a time unless you keep them."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep

    def __len__(self) -> int:
        with self.sweep.database() as database:
            return database.count()

    @overload
    def __getitem__(self, index: int) -> Run: ...

    @overload
    def __getitem__(self, index: slice) -> list[Run]: ...

    def __getitem__(self, index: int | slice) -> Run | list[Run]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        with self.sweep.database() as database:
            record = database.record_at(index if index >= 0 else index + database.count())
        if record is None:
            raise IndexError(f"there are {len(self)} runs")
        return Run(self.sweep, record)

    def __iter__(self) -> Iterator[Run]:
        with self.sweep.database() as database:
            for record in database.records():
                yield Run(self.sweep, record)

    def of(self, run: str) -> Run:
        """Return the run with this id."""
        with self.sweep.database() as database:
            record = database.record(run)
        if record is None:
            raise InputFileError(f"{self.sweep.folder} has no run {run!r}; see the ids in `.runs`")
        return Run(self.sweep, record)
