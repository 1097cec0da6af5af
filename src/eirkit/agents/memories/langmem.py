"""`langmem`: LangMem's memory tools (package langmem) over LangGraph's in-memory store, in a separate process.

Records are created, updated and deleted through `manage_memory` and found through `search_memory`, as an agent with
these tools would do. No language model is called; embeddings come from the endpoint.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from eirkit.agents.memories.in_process import usage_of_texts
from eirkit.agents.memory import Item, MemorySystem, MemoryUsage, Requirements, memories
from eirkit.agents.stores.memory_adapter import WorkerThread

DIMENSIONS = 384  # of MiniLM, which the endpoint serves
MOST = 100_000  # records listed at once
NAMESPACE = ("memories",)

# Disable tracing; no key of the user is needed.
_QUIET = {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false", "OPENAI_API_KEY": "none"}


@memories.add("langmem")
class LangMem(MemorySystem):
    """LangMem's memory tools over an in-memory store with vectors.

    Args:
        endpoint: base URL of an OpenAI-compatible server for its embeddings.
        dimensions: size of the embeddings from the endpoint.
    """

    requirements = Requirements(
        packages=("langmem", "langchain_openai"),
        installs=(("langmem==0.0.30", "langchain-openai>=1,<2"),),
        endpoint=("embedding",),
    )

    def __init__(self, *, endpoint: str, dimensions: int = DIMENSIONS) -> None:
        self.endpoint, self.dimensions = endpoint, dimensions
        self._thread = WorkerThread("langmem")
        self._store: Any = None
        self._manage: Any = None
        self._search: Any = None
        self._ids: dict[str, str] = {}  # label → LangMem's id of the memory

    async def setup(self) -> None:
        os.environ.update(_QUIET)
        await self._thread.run(self._open)

    def _open(self) -> None:
        from langchain_openai import OpenAIEmbeddings
        from langgraph.store.memory import InMemoryStore
        from langmem import create_manage_memory_tool, create_search_memory_tool

        # Send text: by default it sends tokens, for which it would have to download a vocabulary.
        embedding = OpenAIEmbeddings(model="eirkit", base_url=self.endpoint, check_embedding_ctx_length=False)
        self._store = InMemoryStore(index={"dims": self.dimensions, "embed": embedding, "fields": ["content"]})
        self._manage = create_manage_memory_tool(NAMESPACE, store=self._store)
        self._search = create_search_memory_tool(NAMESPACE, store=self._store)
        self._ids = {}

    async def reset(self, scope: str) -> None:
        await self._thread.run(self._open)

    async def write(self, item: Item) -> None:
        if (known := self._ids.get(item.label)) is not None:
            await self._thread.run(self._manage.invoke, {"content": item.text, "action": "update", "id": known})
        else:
            said = await self._thread.run(self._manage.invoke, {"content": item.text, "action": "create"})
            self._ids[item.label] = str(said).split()[-1]  # the tool answers "created memory" and the id

    async def search(self, query: str, limit: int) -> Sequence[str]:
        found = json.loads(await self._thread.run(self._search.invoke, {"query": query, "limit": limit}))
        return [str(one["value"]["content"]) for one in found][:limit]

    async def read(self, label: str) -> str | None:
        if (known := self._ids.get(label)) is None:
            return None
        item = await self._thread.run(self._store.get, NAMESPACE, known)
        return None if item is None else str(item.value["content"])

    async def forget(self, label: str) -> None:
        if (known := self._ids.pop(label, None)) is not None:
            await self._thread.run(self._manage.invoke, {"action": "delete", "id": known})

    async def usage(self) -> MemoryUsage:
        items = await self._thread.run(self._store.search, NAMESPACE, limit=MOST)
        return usage_of_texts([str(item.value["content"]) for item in items])

    async def teardown(self) -> None:
        self._thread.stop()
        self._store = self._manage = self._search = None
        self._ids = {}
