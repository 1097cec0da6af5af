"""The reply cache: one SQLite file of replies by the hash of their request.

Processes and threads may share the file. The first reply stored under a key is kept.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import msgspec

from eirkit.errors import InfrastructureError, InputFileError
from eirkit.lacuna.models.model import Reply, read_reply, reply_text

VERSION = 1
WAIT_SECONDS = 30.0  # for another writer; each holds the file for well under a millisecond
_APPLICATION = 0x65697231  # SQLite's application_id, which identifies our files


class ReplyCache:
    """Stores replies by the hash of the request."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> Reply | None:
        """Return the reply under a key."""
        with self._lock:
            row = self._open().execute("SELECT reply FROM replies WHERE key = ?", (bytes.fromhex(key),)).fetchone()
        if row is None:
            return None
        try:
            return read_reply(row[0])
        except (ValueError, msgspec.ValidationError) as error:
            raise InputFileError(f"{self.path} contains a damaged reply; delete the file") from error

    def put(self, key: str, reply: Reply) -> Reply:
        """Store a reply unless there is one already, and return the stored one.

        Raises:
            InfrastructureError: the disk is full or another writer holds the lock.
        """
        text = reply_text(reply)
        try:
            with self._lock, self._open() as connection:
                statement = "INSERT OR IGNORE INTO replies (key, reply) VALUES (?, ?)"
                stored = connection.execute(statement, (bytes.fromhex(key), text)).rowcount
        except sqlite3.OperationalError as error:
            raise InfrastructureError(f"{self.path}: {error}; free disk space or close other writers") from error
        return reply if stored else (self.get(key) or reply)

    def __len__(self) -> int:
        with self._lock:
            return int(self._open().execute("SELECT COUNT(*) FROM replies").fetchone()[0])

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        # A connection must not be shared across a fork: the child opens its own.
        if self._connection is None or self._process != os.getpid():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._connection = _connect(self.path)
            except sqlite3.Error as error:
                raise InputFileError(f"{self.path} cannot be used as a reply cache ({error}); name another") from error
            self._process = os.getpid()
        return self._connection


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=WAIT_SECONDS, check_same_thread=False)
    try:
        _refuse_foreign(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")  # readers and a writer do not block each other
        connection.execute("PRAGMA synchronous = NORMAL")  # a power failure may lose the last replies, never the file
        with connection:
            connection.execute("BEGIN IMMEDIATE")  # another process may be creating the table
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("CREATE TABLE IF NOT EXISTS replies (key BLOB PRIMARY KEY, reply TEXT) WITHOUT ROWID")
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse any other database before anything is written to it."""
    asked = ("SELECT COUNT(*) FROM sqlite_schema", "PRAGMA application_id", "PRAGMA user_version")
    tables, application, made_by = (connection.execute(question).fetchone()[0] for question in asked)
    if tables and (application, made_by) != (_APPLICATION, VERSION):
        raise InputFileError(f"{path} is not a reply cache of version {VERSION}; name another file")
