"""Opens SQLite databases in which agents keep their sessions, in place and without changing anything.

A database that an agent has open keeps its latest rows in a write-ahead log beside it. If the shared index of that log
is missing, SQLite would have to create it, so the two files are read from a temporary copy.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from eirkit.errors import InputFileError
from eirkit.vestige.sources.documents import LogDocument

MAGIC = b"SQLite format 3\0"
_LOG, _INDEX = "-wal", "-shm"
_STEP = 100_000  # instructions between two looks at how long a query has run
# Instructions that reading a database takes at most, with or without an index: so many, and so many for each byte.
_FEWEST_INSTRUCTIONS, _INSTRUCTIONS_PER_BYTE = 5_000_000, 100
_SLACK_BYTES = 1 << 20


@contextmanager
def open_database(document: LogDocument) -> Iterator[sqlite3.Connection]:
    """Open the database of a document for reading.

    Raises:
        InputFileError: it is damaged, or inside an archive.
    """
    path = getattr(document, "path", None)  # its name is only what is shown of it
    if not isinstance(path, Path) or not path.is_file():
        raise InputFileError(f"{document.source}: is a database inside an archive; unpack the archive")
    try:
        with _in_place(path) as address, closing(sqlite3.connect(address, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            _bound(connection, sum(file.stat().st_size for file in _files(path)))
            yield connection
    # SQLite quotes damaged text in its message, which Python then cannot decode.
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        raise InputFileError(f"{document.source}: cannot be read as a database ({error}); restore the file") from error


@contextmanager
def _in_place(path: Path) -> Iterator[str]:
    if len(_files(path)) == 1:
        yield f"file:{quote(os.fsencode(path))}?mode=ro&immutable=1"
    elif path.with_name(path.name + _INDEX).is_file():
        yield f"file:{quote(os.fsencode(path))}?mode=ro"
    else:
        with TemporaryDirectory(prefix="eirkit-") as made:
            for file in _files(path):
                shutil.copy(file, made)
            yield f"file:{quote(os.fsencode(Path(made) / path.name))}?mode=ro"


def _files(path: Path) -> list[Path]:
    """Return the files that hold the rows of a database: its own, and its write-ahead log if that holds anything."""
    log = path.with_name(path.name + _LOG)
    return [path, log] if log.is_file() and log.stat().st_size else [path]


def _bound(connection: sqlite3.Connection, size: int) -> None:
    """End a query that a damaged or hostile database makes endless, and refuse values that it computes."""
    steps = iter(range((_FEWEST_INSTRUCTIONS + _INSTRUCTIONS_PER_BYTE * size) // _STEP))
    connection.set_progress_handler(lambda: int(next(steps, None) is None), _STEP)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, size + _SLACK_BYTES)


def damage_of(document: LogDocument) -> str | None:
    """Return why the tables of a database cannot be listed; None if they can, whosever it is."""
    try:
        with open_database(document) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except InputFileError as error:
        return str(error)
    return None


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
    """Return the columns of a table; none for a view, which computes its rows and may never end."""
    kinds = [row["type"] for row in connection.execute("SELECT type FROM sqlite_master WHERE name = ?", (table,))]
    if kinds != ["table"]:
        return set()
    return {str(row["name"]) for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}


def rows_of(connection: sqlite3.Connection, query: str, *values: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a query."""
    for row in connection.execute(query, values):
        yield dict(row)


def sessions_of(connection: sqlite3.Connection, table: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table of sessions in the order of their ids, each id once.

    Copies, also those that a column may hold equal, would let every message be read again for each of them.
    """
    seen = set[str]()
    for row in rows_of(connection, f"SELECT * FROM {table} ORDER BY id"):
        key = str(row["id"]).strip().casefold()
        if key not in seen:
            seen.add(key)
            yield row


def files_beside(names: Sequence[str]) -> list[str]:
    """Return the names of files that belong to a database of the same folder."""
    known = frozenset(names)
    return [name for name in names if name.endswith((_LOG, _INDEX)) and name[: -len(_LOG)] in known]
