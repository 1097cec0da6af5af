"""Opens SQLite databases in which agents keep their sessions, in place and without changing anything.

A database that an agent has open keeps its latest rows in a write-ahead log beside it. If the shared index of that log
is missing, SQLite would have to create it, so the two files are read from a temporary copy.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from eirkit.errors import InputFileError
from eirkit.logs.sources.documents import LogDocument

MAGIC = b"SQLite format 3\0"
_LOG, _INDEX = "-wal", "-shm"
_MOST_INSTRUCTIONS = 100_000  # between two looks at how long a query has run
_MOST_STEPS = 20_000


@contextmanager
def open_database(document: LogDocument) -> Iterator[sqlite3.Connection]:
    """Open the database of a document for reading.

    Raises:
        InputFileError: it is damaged, or inside an archive.
    """
    path = None if document.parent is None else document.parent / document.name
    if path is None or not path.is_file():
        raise InputFileError(f"{document.source}: is a database inside an archive; unpack the archive")
    try:
        with _in_place(path) as address, closing(sqlite3.connect(address, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            _bound(connection)
            yield connection
    # SQLite quotes damaged text in its message, which Python then cannot decode.
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        raise InputFileError(f"{document.source}: cannot be read as a database ({error}); restore the file") from error


@contextmanager
def _in_place(path: Path) -> Iterator[str]:
    log, index = (path.with_name(path.name + ending) for ending in (_LOG, _INDEX))
    if not log.is_file() or not log.stat().st_size:
        yield f"file:{quote(str(path))}?mode=ro&immutable=1"
    elif index.is_file():
        yield f"file:{quote(str(path))}?mode=ro"
    else:
        with TemporaryDirectory(prefix="eirkit-") as made:
            for file in (path, log):
                shutil.copy(file, made)
            yield f"file:{quote(str(Path(made) / path.name))}?mode=ro"


def _bound(connection: sqlite3.Connection) -> None:
    """End a query that a damaged or hostile database makes endless."""
    steps = iter(range(_MOST_STEPS))
    connection.set_progress_handler(lambda: int(next(steps, None) is None), _MOST_INSTRUCTIONS)


def has_columns(document: LogDocument, wanted: Mapping[str, Collection[str]]) -> bool:
    """Return whether a document is a database with these columns in these tables; never raises."""
    if not document.head.startswith(MAGIC):
        return False
    try:
        with open_database(document) as connection:
            return all(set(columns) <= _columns(connection, table) for table, columns in wanted.items())
    except InputFileError:
        return False


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {str(row["name"]) for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}


def rows_of(connection: sqlite3.Connection, query: str, *values: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a query."""
    for row in connection.execute(query, values):
        yield dict(row)


def files_beside(names: Sequence[str]) -> list[str]:
    """Return the names of files that belong to a database of the same folder."""
    known = frozenset(names)
    return [name for name in names if name.endswith((_LOG, _INDEX)) and name[: -len(_LOG)] in known]
