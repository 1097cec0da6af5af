"""`langmem`: LangMem (package langmem) over LangGraph's in-memory store, in a separate process.

As documented, records and conversations are messages to its store manager, which asks a model what to insert, update
and delete. As a mere store, records are created, updated and deleted through `manage_memory` and found through
`search_memory`, as an agent with these tools would do, without a model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from eirkit.lacuna.memories.adapter import ReplayClock, VendorWarnings, WorkerThread
from eirkit.lacuna.memories.in_process import find_labels, mentions, usage_of_texts
from eirkit.lacuna.memories.memory import (
    AS_DOCUMENTED,
    STORE_ONLY,
    Item,
    MemorySystem,
    MemoryUsage,
    Profile,
    Requirements,
    check_profile,
    memories,
)
from eirkit.lacuna.models.message import Message

DIMENSIONS = 384  # of MiniLM, which the endpoint serves
MOST = 100_000  # records listed at once
NAMESPACE = ("memories",)

# Disable tracing; no key of the user is needed.
_QUIET = {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false", "OPENAI_API_KEY": "none"}


@memories.add("langmem")
class LangMem(MemorySystem):
    """LangMem over an in-memory store with vectors: its memory tools, and its store manager in conversations.

    Args:
        endpoint: base URL of an OpenAI-compatible server for its model and its embeddings.
        profile: as-documented or store-only.
        dimensions: size of the embeddings from the endpoint.
    """

    requirements = Requirements(
        packages=("langmem", "langchain_openai"),
        installs=(("langmem==0.0.30", "langchain-openai>=1,<2"),),
        endpoint=("model", "embedding"),
    )
    profiles: ClassVar[Mapping[str, Profile]] = {
        AS_DOCUMENTED: Profile(
            "messages in, its store manager with the default settings (inserts, updates, deletes), vector search",
            "a query model, which is optional: the manager looks for what to update by the last message alone",
            passages=10,
            passages_from="the default limit of its store manager's search, langmem 0.0.30",
        ),
        STORE_ONLY: Profile(
            "each message kept by its manage_memory tool, which updates a record that is written again, vector search",
            "the store manager: no model",
            passages=10,
            passages_from="the default limit of its search_memory tool, langmem 0.0.30",
        ),
    }

    def __init__(self, *, endpoint: str, profile: str = AS_DOCUMENTED, dimensions: int = DIMENSIONS) -> None:
        self.endpoint, self.dimensions = endpoint, dimensions
        self.profile = check_profile(LangMem, profile)
        self._thread = WorkerThread("langmem")
        self._warnings = VendorWarnings("langmem")
        self._clock = ReplayClock()
        self._manager: Any = None
        self._store: Any = None
        self._manage: Any = None
        self._search: Any = None
        self._ids: dict[str, str] = {}  # label → LangMem's id of the memory

    async def setup(self) -> None:
        os.environ.update(_QUIET)
        self._warnings.listen()
        await self._thread.run(self._open)

    def _open(self) -> None:
        from langchain_openai import ChatOpenAI, OpenAIEmbeddings
        from langgraph.store.memory import InMemoryStore
        from langmem import create_manage_memory_tool, create_memory_store_manager, create_search_memory_tool

        # Send text: by default it sends tokens, for which it would have to download a vocabulary.
        embedding = OpenAIEmbeddings(model="eirkit", base_url=self.endpoint, check_embedding_ctx_length=False)
        self._store = InMemoryStore(index={"dims": self.dimensions, "embed": embedding, "fields": ["content"]})
        model = ChatOpenAI(model="eirkit", base_url=self.endpoint)
        talked = InMemoryStore(index={"dims": self.dimensions, "embed": embedding})
        self._manager = create_memory_store_manager(model, namespace=NAMESPACE, store=talked)
        self._clock = ReplayClock()
        self._manage = create_manage_memory_tool(NAMESPACE, store=self._store)
        self._search = create_search_memory_tool(NAMESPACE, store=self._store)
        self._ids = {}

    async def reset(self, scope: str) -> None:
        await self._thread.run(self._open)

    async def write(self, item: Item) -> None:
        if self.profile == AS_DOCUMENTED:
            await self.observe([Message("user", item.text)], item.label, "")
            return
        if (known := self._ids.get(item.label)) is not None:
            await self._thread.run(self._manage.invoke, {"content": item.text, "action": "update", "id": known})
        else:
            said = await self._thread.run(self._manage.invoke, {"content": item.text, "action": "create"})
            self._ids[item.label] = str(said).split()[-1]  # the tool answers "created memory" and the id

    async def search(self, query: str, limit: int) -> Sequence[str]:
        if self.profile == AS_DOCUMENTED:
            return await self.recall(query, "", limit)
        found = json.loads(await self._thread.run(self._search.invoke, {"query": query, "limit": limit}))
        return [str(one["value"]["content"]) for one in found][:limit]

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        """Give messages to the store manager; the first states the day, if known, which LangMem takes nowhere else."""
        if self.profile == STORE_ONLY:
            await super().observe(messages, session, at)
            return
        self._clock.begin(at)
        said = [{"role": "system", "content": f"Today is {at}."}] if at else []
        said += [{"role": message.role, "content": message.content} for message in messages]
        await self._thread.run(self._manager.invoke, {"messages": said})

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        if self.profile == STORE_ONLY:
            return await self.search(question, limit)
        return self._shown(await self._thread.run(self._manager.search, query=question, limit=limit))

    async def contents(self) -> Sequence[str]:
        kept = [str(one.value["content"]) for one in await self._thread.run(self._store.search, NAMESPACE, limit=MOST)]
        return [*kept, *self._shown(await self._thread.run(self._manager.search, limit=MOST))]

    def _shown(self, items: Sequence[Any]) -> list[str]:
        """Return memories with the day on which they were last written, where it is known."""
        days = [self._clock.day_of(item.updated_at) for item in items]
        return [
            f"[{day}] {one.value.content}" if day else str(one.value.content)
            for day, one in zip(days, items, strict=True)
        ]

    async def read(self, label: str) -> str | None:
        if self.profile == AS_DOCUMENTED:
            return mentions(await self.contents(), label)
        if (known := self._ids.get(label)) is None:
            return None
        item = await self._thread.run(self._store.get, NAMESPACE, known)
        return None if item is None else str(item.value["content"])

    async def forget(self, label: str) -> None:
        if self.profile == AS_DOCUMENTED:
            held = await self._thread.run(self._manager.search, limit=MOST)
            for one in held:
                if label in find_labels(str(one.value.content)):
                    await self._thread.run(self._manager.delete, one.key)
        if (known := self._ids.pop(label, None)) is not None:
            await self._thread.run(self._manage.invoke, {"action": "delete", "id": known})

    async def usage(self) -> MemoryUsage:
        return replace(usage_of_texts(await self.contents()), warnings=self._warnings.heard)

    async def teardown(self) -> None:
        self._thread.stop()
        self._store = self._manage = self._search = self._manager = None
        self._ids = {}
