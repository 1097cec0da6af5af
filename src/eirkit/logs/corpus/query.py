"""Runs one SQL query over the tables of an analysis with DuckDB.

The query sees the tables by name and nothing else: no other file, no network, no extension.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eirkit.errors import MissingExtraError, UsageError
from eirkit.logs.corpus.analysis import TABLES
from eirkit.logs.tables import read_analysis

MOST_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The columns and rows of a query."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    cut: bool  # there were more rows than the limit


def query(folder: Path, sql: str, most_rows: int = MOST_ROWS) -> QueryResult:
    """Return the rows of one SELECT over the tables of an analysed folder.

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
            done = connection.execute(sql)
            rows = done.fetchmany(most_rows + 1)
            columns = _distinct([str(column[0]) for column in done.description])
        except duckdb.Error as error:
            said = str(error).split("\n\n")[0]
            raise UsageError(f"{' '.join(said.split())[:400]}; tables: {', '.join(TABLES)}") from error
    return QueryResult(columns, tuple(rows[:most_rows]), len(rows) > most_rows)


@contextmanager
def _opened(folder: Path) -> Iterator[tuple[Any, Any]]:
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError("queries over tables", "query") from error
    connection = duckdb.connect(":memory:")
    try:
        connection.execute("SET enable_progress_bar = false")
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
