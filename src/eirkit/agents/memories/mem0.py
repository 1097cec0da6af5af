"""`mem0`: Mem0 (package mem0ai) with a local vector store, in a separate process.

`infer = false` stores every record unchanged, without a model; `infer = true` lets Mem0 extract what to keep, with one
model call per write. Conversations are always added as messages, and the profile decides whether Mem0 infers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from eirkit.agents.memory import (
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
from eirkit.agents.model import Message
from eirkit.agents.stores.memory_adapter import VendorWarnings, WorkerThread
from eirkit.agents.stores.temporary_directory import StoreDirectory, size_of
from eirkit.errors import UnknownNameError

DIMENSIONS = 384  # of MiniLM, which the endpoint serves
MOST = 100_000  # records listed at once
STORES = ("qdrant", "faiss")


@memories.add("mem0")
class Mem0(MemorySystem):
    """Mem0 with a local vector store.

    Args:
        endpoint: base URL of an OpenAI-compatible server for its model and its embeddings.
        infer: whether a model decides what to keep of a record.
        profile: how conversations are used: as-documented or store-only.
        store: qdrant or faiss.
        threshold: minimum similarity of search results; None for Mem0's default.
        dimensions: size of the embeddings from the endpoint.
    """

    requirements = Requirements(
        packages=("mem0", "qdrant_client"),
        installs=(("mem0ai==2.2.1", "qdrant-client>=1.12,<2", "faiss-cpu>=1.9,<2"),),
        endpoint=("model", "embedding"),
    )
    profiles: ClassVar[Mapping[str, Profile]] = {
        AS_DOCUMENTED: Profile(
            "messages in, Mem0's own extraction (infer=True, one model call a session), its own search",
            "keyword search and entity boosts: fastembed and spaCy download their models at run time",
        ),
        STORE_ONLY: Profile("each message stored as it is (infer=False), its own search", "extraction: no model"),
    }

    def __init__(
        self,
        *,
        endpoint: str,
        infer: bool = False,
        profile: str = AS_DOCUMENTED,
        store: str = "qdrant",
        threshold: float | None = None,
        dimensions: int = DIMENSIONS,
    ) -> None:
        if store not in STORES:
            raise UnknownNameError("store", store, STORES)
        self.endpoint, self.infer, self.store = endpoint, infer, store
        self.profile = check_profile(Mem0, profile)
        self.threshold, self.dimensions = threshold, dimensions
        self._thread = WorkerThread("mem0")
        self._warnings = VendorWarnings("mem0")
        self._directory = StoreDirectory("mem0")
        self._memory: Any = None
        self._scope = ""  # Mem0's user id
        self._scopes = 0
        self._ids: dict[str, list[str]] = {}  # label → Mem0's ids of the memories made from it

    async def setup(self) -> None:
        folder = self._directory.create()
        os.environ.update({"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder), "OPENAI_API_KEY": "none"})
        self._warnings.listen()
        self._memory = await self._thread.run(self._open)

    def _open(self) -> Any:
        from mem0 import Memory

        model = {"provider": "openai", "config": {"model": "eirkit", "openai_base_url": self.endpoint}}
        embedder = {"model": "eirkit", "openai_base_url": self.endpoint, "embedding_dims": self.dimensions}
        store = {
            "collection_name": "eirkit",
            "path": str(self._directory.path / "store"),
            "embedding_model_dims": self.dimensions,
        }
        return Memory.from_config(
            {
                "llm": model,
                "embedder": {"provider": "openai", "config": embedder},
                "vector_store": {"provider": self.store, "config": store},
                "history_db_path": str(self._directory.path / "history.db"),
            }
        )

    async def reset(self, scope: str) -> None:
        if self._scope:
            await self._thread.run(self._memory.delete_all, user_id=self._scope)
        self._scopes += 1  # Mem0 also keeps the last messages of a user, so user ids are never reused
        self._scope, self._ids = f"{scope}-{self._scopes}", {}

    async def write(self, item: Item) -> None:
        if item.label in self._ids and not self.infer:
            await self.forget(item.label)
        said = await self._thread.run(
            self._memory.add, item.text, user_id=self._scope, metadata={"label": item.label}, infer=self.infer
        )
        made = [one["id"] for one in said.get("results", ()) if one.get("event") != "DELETE"]
        self._ids.setdefault(item.label, []).extend(made)

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return [str(one["memory"]) for one in await self._found(query, limit)][:limit]

    async def _found(self, query: str, limit: int) -> list[dict[str, Any]]:
        more = {} if self.threshold is None else {"threshold": self.threshold}
        found = await self._thread.run(
            self._memory.search, query, filters={"user_id": self._scope}, top_k=limit, **more
        )
        return list(found["results"])

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        """Add the messages of a session.

        Mem0 dates what it extracts and what it stores by the clock, which is right while people talk. A conversation of
        another day states it where Mem0 has a place for it: as an instruction and as metadata.
        """
        said = [{"role": one.role, "content": one.content} for one in messages]
        infer = self.profile == AS_DOCUMENTED
        more = {"prompt": f"The Observation Date is {at}."} if infer else {}
        add = self._memory.add
        await self._thread.run(add, said, user_id=self._scope, metadata={"date": at}, infer=infer, **more)

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        return [_dated(one) for one in await self._found(question, limit)]

    async def contents(self) -> Sequence[str]:
        return [_dated(one) for one in await self._all()]

    async def read(self, label: str) -> str | None:
        found = [one for one in await self._all() if (one.get("metadata") or {}).get("label") == label]
        found.sort(key=lambda one: str(one.get("created_at")))  # the newest last
        return "\n".join(str(one["memory"]) for one in found) or None

    async def forget(self, label: str) -> None:
        for memory_id in self._ids.pop(label, ()):
            await self._thread.run(self._memory.delete, memory_id)

    async def usage(self) -> MemoryUsage:
        return MemoryUsage(
            records=len(await self._all()), bytes=size_of(self._directory.path), warnings=self._warnings.heard
        )

    async def _all(self) -> list[dict[str, Any]]:
        listed = await self._thread.run(self._memory.get_all, filters={"user_id": self._scope}, top_k=MOST)
        return list(listed["results"])

    async def teardown(self) -> None:
        memory, self._memory = self._memory, None
        if memory is not None:
            await self._thread.run(memory.close)
        self._thread.stop()
        self._directory.remove()
        self._scope = ""


def _dated(one: Mapping[str, Any]) -> str:
    """Return a memory with the day of its conversation, and with who said it if it is a message."""
    day, role = (one.get("metadata") or {}).get("date"), one.get("role")
    said = f"{role}: {one['memory']}" if role else str(one["memory"])
    return f"[{day}] {said}" if day else said
