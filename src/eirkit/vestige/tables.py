"""Reads and writes the folder of an analysis: one Parquet file per table, and `analysis.json` with its metadata.

Columns are added run by run and written in row groups, so that memory does not grow with the corpus; equal input gives
equal bytes. A file gets its final name when it is complete, and `analysis.json` is written last.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from operator import attrgetter
from pathlib import Path
from types import NoneType, TracebackType
from typing import Any, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct, ValidationError, convert, to_builtins

from eirkit.errors import InputFileError, MissingExtraError, UsageError
from eirkit.folders import is_unfinished
from eirkit.records.analysis import TABLES, AnalysisClaim, AnalysisSummary, LogSources
from eirkit.records.documents import read_struct, sync_folder, write_struct

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; run one analysis per folder there
    fcntl = None  # type: ignore[assignment]

Columns: TypeAlias = Mapping[str, Sequence[object]]
T = TypeVar("T", bound=Struct)

FILE, SCHEMA = "analysis.json", "analysis/1"
RUN = "run_id"  # the first column of every table
GROUP_ROWS = 1 << 15
LOCK, PARTS = ".lock", ".parts"  # lock held while writing; folder for parts of a large analysis


def arrow() -> Any:
    """Return pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("reading and writing tables", "vestige") from None
    return pyarrow


@cache
def column_names(row: type[Struct]) -> tuple[str, ...]:
    """Return the columns of a table of such rows, without the run's id."""
    return tuple(name for name in row.__struct_fields__ if name != RUN)


def columns_of(row: type[T], records: Sequence[T]) -> Columns:
    """Return records of one type as columns."""
    names = column_names(row)
    if not records:
        return dict.fromkeys(names, ())
    if len(names) < 2:
        return {name: [getattr(record, name) for record in records] for name in names}
    return dict(zip(names, map(list, zip(*map(attrgetter(*names), records), strict=True)), strict=True))


class TableWriter:
    """Writes tables into a folder; use it in a with statement, and call `finish` when they are complete.

    Unfinished tables leave no trace: an earlier analysis in the folder stays unchanged.

    Args:
        logs: the source of the tables; a folder with tables of other logs is refused.
    """

    def __init__(self, folder: Path, rows: Mapping[str, type[Struct]], logs: LogSources | None = None) -> None:
        self.folder, self.rows, self.logs = folder, rows, logs
        self._arrow = arrow()
        self._schemas = {name: _schema(self._arrow, row) for name, row in rows.items()}
        self._pending = {name: _no_rows(schema) for name, schema in self._schemas.items()}
        self._waiting: dict[str, list[Any]] = {name: [] for name in rows}  # converted, but fewer than a row group
        self._open: dict[str, Any] = {}
        self._is_new = False

    def __enter__(self) -> TableWriter:
        self._is_new = claim(self.folder, self.logs)
        try:
            for name, schema in self._schemas.items():
                path = self._unfinished(name)
                self._open[name] = self._arrow.parquet.ParquetWriter(path, schema, compression="zstd")
        except BaseException:
            self._abandon()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open:
            self._abandon()

    def add(self, run_id: str, tables: Mapping[str, Columns]) -> None:
        """Append one run's rows."""
        for name, columns in tables.items():
            pending = self._pending[name]
            rows = len(next(iter(columns.values())))
            if not rows:
                continue
            pending[RUN] += [run_id] * rows
            for column, values in columns.items():
                pending[column] += values
            if len(pending[RUN]) >= GROUP_ROWS:
                self._flush(name)

    def copy(self, name: str, table: Any) -> None:
        """Append rows of a table read from another folder."""
        if table.num_rows:
            self._waiting[name].append(table)
            self._write_groups(name, whole=False)

    def finish(self, document: Struct) -> None:
        """Close every table, give it its final name, and write `analysis.json`."""
        for name, writer in self._open.items():
            self._flush(name)
            self._write_groups(name, whole=True)
            writer.close()
        if not self._is_new:
            write_struct(self.folder / FILE, SCHEMA, AnalysisClaim(logs=self.logs))
        for name in self._open:
            self._unfinished(name).replace(self.folder / f"{name}.parquet")
        self._open = {}
        sync_folder(self.folder)
        try:
            write_struct(self.folder / FILE, SCHEMA, document)
        except UnicodeEncodeError:
            clean = convert(_encodable(to_builtins(document)), type(document))
            write_struct(self.folder / FILE, SCHEMA, clean)

    def _abandon(self) -> None:
        for writer in self._open.values():
            try:
                writer.close()
            except OSError:  # its last bytes cannot be written; the table is not wanted anyway
                writer.is_open = False  # or its destructor would try again and print a traceback
                with suppress(OSError):
                    writer.close()  # what is left of it, its file
        for name in self._schemas:  # also that of a writer that could not be made
            self._unfinished(name).unlink(missing_ok=True)
        self._open = {}
        if self._is_new:
            (self.folder / FILE).unlink(missing_ok=True)
            with suppress(OSError):
                self.folder.rmdir()

    def _flush(self, name: str) -> None:
        pending, schema = self._pending[name], self._schemas[name]
        if not pending[RUN]:
            return
        self._pending[name] = _no_rows(schema)
        try:
            table = self._arrow.table(pending, schema=schema)
        except UnicodeEncodeError:
            # A log may contain lone surrogates, which Parquet cannot store.
            clean = {column: [_encodable(value) for value in values] for column, values in pending.items()}
            table = self._arrow.table(clean, schema=schema)
        self._waiting[name].append(table)
        self._write_groups(name, whole=False)

    def _write_groups(self, name: str, *, whole: bool) -> None:
        """Write row groups of a fixed number of rows, whatever batches they came in; also the remainder if `whole`."""
        waiting = self._waiting[name]
        rows = sum(table.num_rows for table in waiting)
        if not rows or (rows < GROUP_ROWS and not whole):
            return
        joined = self._arrow.concat_tables(waiting)
        end = rows if whole else rows - rows % GROUP_ROWS
        for start in range(0, end, GROUP_ROWS):
            group = joined.slice(start, min(GROUP_ROWS, end - start)).combine_chunks()
            self._open[name].write_table(group, row_group_size=GROUP_ROWS)
        self._waiting[name] = [joined.slice(end)] if end < rows else []

    def _unfinished(self, name: str) -> Path:
        return self.folder / f".{name}.parquet.unfinished"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the lock of an analysis folder.

    Raises:
        UsageError: another process holds it.
    """
    path = folder / LOCK
    with path.open("ab") as stream:
        try:
            if fcntl is not None:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.stat().st_ino != os.fstat(stream.fileno()).st_ino:
                raise OSError  # the lock file was replaced in between, and another process was first
        except OSError as error:
            raise UsageError(
                f"another analysis is writing to {folder}; wait for it, or choose another --out"
            ) from error
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def claim(folder: Path, logs: LogSources | None = None) -> bool:
    """Claim a folder for an analysis, or refuse one with other content; return whether it was not an analysis yet."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; give a folder with --out")
    if (folder / FILE).is_file():
        before = read_struct(folder / FILE, SCHEMA, AnalysisClaim).logs
        if logs is not None and before is not None and before.digest != logs.digest:
            names = ", ".join(before.names)
            raise UsageError(
                f"{folder} holds the analysis of other logs ({names}); choose another --out, or remove it first"
            )
        return False
    # An interrupted claim leaves only its unfinished document.
    if folder.is_dir() and not all(
        path.name in (LOCK, PARTS) or is_unfinished(path.name, FILE) for path in folder.iterdir()
    ):
        raise UsageError(f"{folder} holds files that are not an analysis; give a new or empty folder with --out")
    folder.mkdir(parents=True, exist_ok=True)
    write_struct(folder / FILE, SCHEMA, AnalysisClaim(logs=logs))
    return True


def is_analysis(folder: Path) -> bool:
    """Return whether a folder is an analysis, finished or not."""
    try:
        with (folder / FILE).open("rb") as stream:
            return f'"{SCHEMA}"'.encode() in stream.read(64)
    except OSError:
        return False


def read_analysis(folder: Path) -> AnalysisSummary:
    """Return the summary of a complete analysis."""
    if not (folder / FILE).is_file():
        raise InputFileError(
            f"{folder} holds no analysis; create one with `eirkit vestige analyze PATH --out {folder}`"
        )
    if not read_struct(folder / FILE, SCHEMA, AnalysisClaim).complete:
        raise InputFileError(f"the analysis in {folder} was not finished; run `eirkit vestige analyze` again")
    return read_struct(folder / FILE, SCHEMA, AnalysisSummary)


def table_of(row: type[Struct]) -> str:
    """Return the name of the table of such rows."""
    return next(name for name, kind in TABLES.items() if kind is row)


def read_rows(folder: Path, row: type[T], run_id: str | None = None) -> list[T]:
    """Return the rows of the table of such rows, all or those of one run, in the order written."""
    chosen = None if run_id is None else [(RUN, "=", run_id)]
    return rows_of(read_table(folder, table_of(row), filters=chosen), row, folder)


def rows_of(table: Any, row: type[T], folder: Path) -> list[T]:
    """Return the rows of a pyarrow table; the folder is for the message if they are something else."""
    try:
        return convert(table.to_pylist(), list[row])  # type: ignore[valid-type]
    except ValidationError as error:
        raise InputFileError(
            f"cannot read the tables in {folder}: {error}; run `eirkit vestige analyze` again"
        ) from error


def run_ids(folder: Path) -> list[str]:
    """Return the names of all analyzed runs."""
    names: list[str] = read_table(folder, "runs", [RUN])[RUN].to_pylist()
    return names


def read_table(folder: Path, name: str, columns: list[str] | None = None, filters: Any = None) -> Any:
    """Return a table as a pyarrow table: all of it, or some columns or rows.

    Raises:
        InputFileError: it is missing or damaged.
    """
    path, pyarrow = folder / f"{name}.parquet", arrow()
    try:
        return pyarrow.parquet.read_table(path, columns=columns, filters=filters)
    except (OSError, pyarrow.ArrowException) as error:
        cause = " ".join(str(error).split())
        raise InputFileError(f"cannot read {path}: {cause}; run `eirkit vestige analyze` again") from error


def _no_rows(schema: Any) -> dict[str, list[object]]:
    return {column: [] for column in schema.names}


def _encodable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(part) for key, part in value.items()}
    return [_encodable(part) for part in value] if isinstance(value, (list, tuple)) else value


def _schema(pyarrow: Any, row: type[Struct]) -> Any:
    hints = get_type_hints(row)
    own = [(name, _column_type(pyarrow, hints[name])) for name in column_names(row)]
    return pyarrow.schema([(RUN, pyarrow.string()), *own])


def _column_type(pyarrow: Any, hint: Any) -> Any:
    if get_origin(hint) is Literal:
        return pyarrow.string()
    if get_origin(hint) is tuple:
        return pyarrow.list_(_column_type(pyarrow, get_args(hint)[0]))
    plain = {int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_(), str: pyarrow.string()}
    if hint in plain:
        return plain[hint]
    (inner,) = [part for part in get_args(hint) if part is not NoneType]  # `int | None`
    return _column_type(pyarrow, inner)
