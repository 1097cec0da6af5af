"""`qdrant`: Qdrant (package qdrant-client) as a plain store of vectors, in its local mode or on a server."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from uuid import NAMESPACE_URL, uuid5

from eirkit.errors import UsageError
from eirkit.lacuna.memories.adapter import VendorWarnings, WorkerThread
from eirkit.lacuna.memories.embeddings import embed
from eirkit.lacuna.memories.memory import STORE_ONLY, Item, MemorySystem, MemoryUsage, Profile, Requirements, memories
from eirkit.lacuna.memories.temporary_directory import StoreDirectory, size_of

DIMENSIONS = 384  # of MiniLM, which the endpoint serves
PAGE = 1_000  # points listed at once
KEY = "QDRANT_API_KEY"


@memories.add("qdrant")
class Qdrant(MemorySystem):
    """Qdrant: one point a record, found by cosine similarity.

    Args:
        endpoint: base URL of an OpenAI-compatible server for embeddings.
        url: a running server, such as http://127.0.0.1:6333; its key is taken from QDRANT_API_KEY. None for the local
            mode of the client.
        dimensions: size of the embeddings from the endpoint.
    """

    requirements = Requirements(
        packages=("qdrant_client",),
        installs=(("qdrant-client>=1.12,<2",),),
        endpoint=("embedding",),
        variables=(KEY,),
        services=("a Qdrant server, only where url names one",),
    )
    profiles: ClassVar[Mapping[str, Profile]] = {
        STORE_ONLY: Profile(
            "each message is a point, found by the cosine of its embedding; a record written again replaces its point",
            "sparse and hybrid queries; in the local mode the index, since it compares every vector",
            passages=10,
            passages_from="the default limit of QdrantClient.query_points, qdrant-client 1.20.0",
        ),
    }

    def __init__(self, *, endpoint: str, url: str | None = None, dimensions: int = DIMENSIONS) -> None:
        if url is not None and not url.startswith(("http://", "https://")):
            raise UsageError("its url is not the URL of a server; give one such as http://127.0.0.1:6333")
        self.endpoint, self.url, self.dimensions = endpoint, url, dimensions
        self._thread = WorkerThread("qdrant")
        self._warnings = VendorWarnings("qdrant_client")
        self._directory = StoreDirectory("qdrant")
        self._client: Any = None
        self._collection = ""
        self._scopes = 0

    async def setup(self) -> None:
        folder = self._directory.create()
        self._warnings.listen()
        await self._thread.run(self._open, str(folder / "points"))

    def _open(self, folder: str) -> None:
        from qdrant_client import QdrantClient

        where: dict[str, Any] = {"path": folder}
        if self.url is not None:
            where = {"url": self.url, "api_key": os.environ.get(KEY)}
        self._client = QdrantClient(**where)

    async def reset(self, scope: str) -> None:
        await self._thread.run(self._leave)
        self._scopes += 1
        self._collection = f"eirkit-{os.getpid()}-{self._scopes}"
        await self._thread.run(self._enter)

    def _enter(self) -> None:
        from qdrant_client.models import Distance, VectorParams

        vectors = VectorParams(size=self.dimensions, distance=Distance.COSINE)
        self._client.create_collection(self._collection, vectors_config=vectors)

    def _leave(self) -> None:
        if self._collection:
            self._client.delete_collection(self._collection)
        self._collection = ""

    async def write(self, item: Item) -> None:
        await self._thread.run(self._write, item)

    def _write(self, item: Item) -> None:
        from qdrant_client.models import PointStruct

        (vector,) = embed(self.endpoint, [item.text])
        record = {"label": item.label, "text": item.text}
        self._client.upsert(self._collection, [PointStruct(id=_id(item.label), vector=vector, payload=record)])

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return await self._thread.run(self._search, query, limit)

    def _search(self, query: str, limit: int) -> list[str]:
        (vector,) = embed(self.endpoint, [query])
        found = self._client.query_points(self._collection, query=vector, limit=limit).points
        return [str(one.payload["text"]) for one in found]

    async def read(self, label: str) -> str | None:
        found = await self._thread.run(self._client.retrieve, self._collection, [_id(label)])
        return str(found[0].payload["text"]) if found else None

    async def forget(self, label: str) -> None:
        await self._thread.run(self._client.delete, self._collection, [_id(label)])

    async def contents(self) -> Sequence[str]:
        return await self._thread.run(self._listed)

    def _listed(self) -> list[str]:
        held, since = [], None
        while True:
            page, since = self._client.scroll(self._collection, limit=PAGE, offset=since)
            held += [str(one.payload["text"]) for one in page]
            if since is None:
                return held

    async def usage(self) -> MemoryUsage:
        count = await self._thread.run(self._client.count, self._collection)
        size = size_of(self._directory.path) if self.url is None else None
        return MemoryUsage(count.count, size, warnings=self._warnings.heard)

    async def teardown(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            if self.url is not None and self._collection:
                await self._thread.run(client.delete_collection, self._collection)
            await self._thread.run(client.close)
        self._thread.stop()
        self._directory.remove()
        self._collection = ""


def _id(label: str) -> str:
    return str(uuid5(NAMESPACE_URL, label))
