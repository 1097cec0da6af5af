"""Runs one SQL query over the tables of an analysis with DuckDB.

The query sees the tables by name and nothing else: no other file, no network, no extension. The command runs it in a
process of its own, with limits on time and memory, because DuckDB checks neither within a single call of a function.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from eirkit.engine.interface import LostPiece, PieceLimits, make_engine
from eirkit.errors import MissingExtraError, UsageError
from eirkit.records.analysis import TABLES
from eirkit.vestige.tables import read_analysis

MOST_ROWS = 100_000
MOST_SECONDS = 60.0  # for a query of the command
MOST_BYTES = 1 << 30  # of memory that DuckDB may use
MOST_PROCESS_BYTES = 4 << 30  # of address space beyond what its process has at the start
_THREADS = 4  # the stack and the allocator of each take address space
_ZONED = "TIMESTAMP WITH TIME ZONE"
_LESS = "ask for less, with WHERE, GROUP BY or LIMIT"


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The columns and rows of a query."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    cut: bool  # there were more rows than the limit


def query(folder: Path, sql: str, most_rows: int = MOST_ROWS) -> QueryResult:
    """Return the rows of one SELECT over the tables of an analyzed folder.

    Raises:
        InputFileError: the folder holds no complete analysis.
        UsageError: the query is wrong, or wants more than the tables.
    """
    read_analysis(folder)
    with _opened(folder) as (duckdb, connection):
        try:
            kinds = [statement.type for statement in connection.extract_statements(sql)]
            if kinds != [duckdb.StatementType.SELECT]:
                raise UsageError(f"give a single SELECT statement; tables: {', '.join(TABLES)}")
            columns, rows = _rows(connection, sql, most_rows + 1)
        except duckdb.OutOfMemoryException as error:
            raise UsageError(f"the query needs more than {MOST_BYTES >> 20} MiB of memory; {_LESS}") from error
        except duckdb.Error as error:
            said = str(error).split("\n\n")[0]
            raise UsageError(f"{' '.join(said.split())[:400]}; tables: {', '.join(TABLES)}") from error
    return QueryResult(columns, tuple(rows[:most_rows]), len(rows) > most_rows)


def query_apart(folder: Path, sql: str, most_rows: int = MOST_ROWS, most_seconds: float = MOST_SECONDS) -> QueryResult:
    """Return what `query` does, from a process that is ended when it exceeds its limits.

    Raises:
        InputFileError: the folder holds no complete analysis.
        UsageError: the query is wrong, wants more than the tables, or exceeds a limit.
    """
    read_analysis(folder)
    if find_spec("duckdb") is None:
        raise MissingExtraError("queries over tables", "query")
    engine = make_engine("local", workers=1, bounds=PieceLimits(most_seconds, MOST_PROCESS_BYTES))
    (outcome,) = engine.map(_answered, [(folder, sql, most_rows)])
    if isinstance(outcome, LostPiece):
        raise UsageError(f"the query {outcome.reason.partition(';')[0]}; {_LESS}")
    if isinstance(outcome.value, str):
        raise UsageError(outcome.value)
    result: QueryResult = outcome.value
    return result


def _answered(asked: tuple[Path, str, int]) -> QueryResult | str:
    """Return the result of a query, or why there is none; defined at module level for the worker."""
    try:
        return query(*asked)
    except UsageError as error:
        return str(error)


def _rows(connection: Any, sql: str, most_rows: int) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the columns and the first rows; a time with a zone is read as text, for which DuckDB needs no package."""
    described = connection.query(sql)
    kinds = [str(kind) for kind in described.types]
    names = _distinct([str(column) for column in described.columns])
    if not any(_ZONED in kind for kind in kinds):
        return names, connection.execute(sql).fetchmany(most_rows)
    connection.execute(f"CREATE TEMP VIEW asked AS {sql}")
    casts = (f"CAST(#{place} AS {kind.replace(_ZONED, 'VARCHAR')})" for place, kind in enumerate(kinds, 1))
    found = connection.execute(f"SELECT {', '.join(casts)} FROM asked").fetchmany(most_rows)
    zoned = [kind == _ZONED for kind in kinds]
    return names, [
        tuple(_moment(one) if is_zoned else one for one, is_zoned in zip(row, zoned, strict=True)) for row in found
    ]


def _moment(text: Any) -> Any:
    """Return a time in UTC; as DuckDB writes it if Python has none such, as of infinity."""
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return text


@contextmanager
def _opened(folder: Path) -> Iterator[tuple[Any, Any]]:
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError("queries over tables", "query") from error
    connection = duckdb.connect(":memory:")
    try:
        for setting in (
            "enable_progress_bar = false",
            "TimeZone = 'UTC'",
            f"memory_limit = '{MOST_BYTES >> 20}MiB'",
            "temp_directory = ''",  # or it would write into the folder of the caller
            f"threads = {_THREADS}",
        ):
            connection.execute(f"SET {setting}")
        paths = {name: str((folder / f"{name}.parquet").resolve()) for name in TABLES}
        connection.execute(f"SET allowed_paths = [{', '.join(map(_quoted, paths.values()))}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        for name, path in paths.items():
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({_quoted(path)})")
        yield duckdb, connection
    finally:
        connection.close()


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Return unique column names."""
    return tuple(name if name not in names[:at] else f"{name}_{at + 1}" for at, name in enumerate(names))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
