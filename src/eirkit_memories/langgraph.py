"""`langgraph`: any BaseStore of LangGraph; its InMemoryStore or SqliteStore with vectors, or one of your own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from eirkit.errors import UnknownNameError
from eirkit.lacuna.memories.adapter import VendorWarnings, WorkerThread
from eirkit.lacuna.memories.in_process import usage_of_texts
from eirkit.lacuna.memories.memory import (
    AS_DOCUMENTED,
    Item,
    MemorySystem,
    MemoryUsage,
    Profile,
    Requirements,
    memories,
)
from eirkit.lacuna.memories.temporary_directory import StoreDirectory, size_of
from eirkit.registry import load_object

DIMENSIONS = 384  # of MiniLM, which the endpoint serves
MOST = 100_000  # records listed at once
STORES = ("memory", "sqlite")
_QUIET = {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false", "OPENAI_API_KEY": "none"}


@memories.add("langgraph")
class LangGraph(MemorySystem):
    """A store of LangGraph: records are put under their labels, and found by its search.

    Args:
        endpoint: base URL of an OpenAI-compatible server for embeddings.
        store: memory, sqlite, or module:function or file.py:function, which is given the index configuration and
            returns a BaseStore.
        dimensions: size of the embeddings from the endpoint.
    """

    requirements = Requirements(
        packages=("langgraph", "langchain_openai"),
        installs=(("langgraph>=1.2,<2", "langgraph-checkpoint-sqlite>=3,<4", "langchain-openai>=1,<2"),),
        endpoint=("embedding",),
    )
    profiles: ClassVar[Mapping[str, Profile]] = {
        AS_DOCUMENTED: Profile(
            "each message is put under a key, which the store itself replaces, and found by its vector search",
            "LangMem's extraction, which is the system langmem",
            passages=10,
            passages_from="the default limit of BaseStore.search, langgraph-checkpoint 4.3.2",
        ),
    }

    def __init__(self, *, endpoint: str, store: str = "memory", dimensions: int = DIMENSIONS) -> None:
        if store not in STORES and ":" not in store:
            raise UnknownNameError("store", store, STORES)
        self.endpoint, self.store, self.dimensions = endpoint, store, dimensions
        self._thread = WorkerThread("langgraph")
        self._warnings = VendorWarnings("langgraph")
        self._directory = StoreDirectory("langgraph")
        self._store: Any = None
        self._namespace: tuple[str, ...] = ()
        self._scopes = 0

    async def setup(self) -> None:
        os.environ.update(_QUIET)
        folder = self._directory.create()
        self._warnings.listen()
        await self._thread.run(self._open, str(folder / "store.db"))

    def _open(self, file: str) -> None:
        from langchain_openai import OpenAIEmbeddings

        # Send text: by default it sends tokens, for which it would have to download a vocabulary.
        embedding = OpenAIEmbeddings(model="eirkit", base_url=self.endpoint, check_embedding_ctx_length=False)
        index = {"dims": self.dimensions, "embed": embedding, "fields": ["text"]}
        if self.store == "memory":
            from langgraph.store.memory import InMemoryStore

            self._store = InMemoryStore(index=index)
        elif self.store == "sqlite":
            self._store = _sqlite(file, index)
        else:
            self._store = load_object(self.store)(index)

    async def reset(self, scope: str) -> None:
        for one in await self._items():
            await self._thread.run(self._store.delete, self._namespace, one.key)
        self._scopes += 1
        self._namespace = ("eirkit", f"{os.getpid()}-{self._scopes}")

    async def write(self, item: Item) -> None:
        await self._thread.run(self._store.put, self._namespace, item.label, {"text": item.text})

    async def search(self, query: str, limit: int) -> Sequence[str]:
        found = await self._thread.run(self._store.search, self._namespace, query=query, limit=limit)
        return [str(one.value["text"]) for one in found]

    async def read(self, label: str) -> str | None:
        found = await self._thread.run(self._store.get, self._namespace, label)
        return None if found is None else str(found.value["text"])

    async def forget(self, label: str) -> None:
        await self._thread.run(self._store.delete, self._namespace, label)

    async def contents(self) -> Sequence[str]:
        return [str(one.value["text"]) for one in await self._items()]

    async def _items(self) -> Sequence[Any]:
        if not self._namespace:
            return ()
        found: Sequence[Any] = await self._thread.run(self._store.search, self._namespace, limit=MOST)
        return found

    async def usage(self) -> MemoryUsage:
        held = usage_of_texts(await self.contents())
        size = {"memory": held.bytes, "sqlite": size_of(self._directory.path)}.get(self.store)
        return replace(held, bytes=size, warnings=self._warnings.heard)

    async def teardown(self) -> None:
        self._store = None
        self._namespace = ()
        self._thread.stop()
        self._directory.remove()


def _sqlite(file: str, index: Mapping[str, Any]) -> Any:
    """Return a store in a file."""
    import sqlite3

    from langgraph.store.sqlite import SqliteStore

    store = SqliteStore(sqlite3.connect(file, check_same_thread=False, isolation_level=None), index=index)
    store.setup()
    return store
