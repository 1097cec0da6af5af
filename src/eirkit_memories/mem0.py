"""`mem0`: Mem0 (package mem0ai) with a local vector store, in a separate process.

As documented, records and conversations are messages, and Mem0 extracts what to keep, with one model call each. Its
keyword search needs fastembed, whose only data is a list of stop words that it would download at run time: unless
FASTEMBED_CACHE_PATH has it, the list of bm25s is put in its place.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from eirkit.errors import UnknownNameError
from eirkit.lacuna.memories.adapter import VendorWarnings, WorkerThread
from eirkit.lacuna.memories.in_process import find_labels
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
from eirkit.lacuna.memories.temporary_directory import StoreDirectory, size_of
from eirkit.lacuna.models.message import Message

DIMENSIONS = 384  # of MiniLM, which the endpoint serves
MOST = 100_000  # records listed at once
STORES = ("qdrant", "faiss")
KEYWORDS = "FASTEMBED_CACHE_PATH"  # variable with the folder in which fastembed looks for its list of stop words


@memories.add("mem0")
class Mem0(MemorySystem):
    """Mem0 with a local vector store.

    Args:
        endpoint: base URL of an OpenAI-compatible server for its model and its embeddings.
        profile: as-documented or store-only.
        store: qdrant or faiss.
        threshold: minimum similarity of search results; None for Mem0's default.
        dimensions: size of the embeddings from the endpoint.
    """

    requirements = Requirements(
        packages=("mem0", "qdrant_client"),
        installs=(("mem0ai==2.2.1", "qdrant-client>=1.12,<2", "faiss-cpu>=1.9,<2", "fastembed>=0.9,<1"),),
        endpoint=("model", "embedding"),
        variables=(KEYWORDS,),
    )
    profiles: ClassVar[Mapping[str, Profile]] = {
        AS_DOCUMENTED: Profile(
            "messages in, Mem0's own extraction (infer=True, one model call a message or session), its hybrid search: "
            "vectors, and keywords by fastembed's BM25 with the stop words of bm25s in place of a list it downloads",
            "lemmas and entity boosts, unless spaCy and its en_core_web_sm, which no package index has, are added to "
            "its environment",
            passages=20,
            passages_from="the default top_k of Memory.search, mem0ai 2.2.1",
        ),
        STORE_ONLY: Profile(
            "each message stored as it is (infer=False), the same search; a record written again is deleted first",
            "extraction: no model; lemmas and entity boosts as above",
            passages=20,
            passages_from="the default top_k of Memory.search, mem0ai 2.2.1",
        ),
    }

    def __init__(
        self,
        *,
        endpoint: str,
        profile: str = AS_DOCUMENTED,
        store: str = "qdrant",
        threshold: float | None = None,
        dimensions: int = DIMENSIONS,
    ) -> None:
        if store not in STORES:
            raise UnknownNameError("store", store, STORES)
        self.endpoint, self.store = endpoint, store
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
        os.environ["HF_HUB_OFFLINE"] = "1"  # nothing is downloaded in a run
        os.environ.setdefault(KEYWORDS, str(stop_words(folder / "keywords")))
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
        if self.profile == AS_DOCUMENTED:
            await self.observe([Message("user", item.text)], item.label, "")
            return
        await self.forget(item.label)
        add = self._memory.add
        said = await self._thread.run(add, item.text, user_id=self._scope, metadata={"label": item.label}, infer=False)
        self._ids[item.label] = [one["id"] for one in said["results"]]

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
        said = [{"role": message.role, "content": message.content} for message in messages]
        infer = self.profile == AS_DOCUMENTED
        more: dict[str, Any] = {"metadata": {"date": at}} if at else {}
        more |= {"prompt": f"The Observation Date is {at}."} if at and infer else {}
        await self._thread.run(self._memory.add, said, user_id=self._scope, infer=infer, **more)

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        return [_dated(one) for one in await self._found(question, limit)]

    async def contents(self) -> Sequence[str]:
        return [_dated(one) for one in await self._all()]

    async def read(self, label: str) -> str | None:
        found = await self._about(label)
        return "\n".join(str(one["memory"]) for one in found) or None

    async def _about(self, label: str) -> list[dict[str, Any]]:
        """Return what is held of a label, the newest last: by our metadata, or whatever mentions it."""
        held = await self._all()
        if self.profile == AS_DOCUMENTED:
            found = [one for one in held if label in find_labels(str(one["memory"]))]
        else:
            found = [one for one in held if (one.get("metadata") or {}).get("label") == label]
        return sorted(found, key=lambda one: str(one.get("created_at")))

    async def forget(self, label: str) -> None:
        gone = self._ids.pop(label, ())
        if self.profile == AS_DOCUMENTED:
            gone = [one["id"] for one in await self._about(label)]
        for memory_id in gone:
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


def stop_words(folder: Path) -> Path:
    """Return a folder in the form of fastembed's cache, with the English stop words of bm25s."""
    from bm25s.stopwords import STOPWORDS_EN

    try:
        from fastembed.sparse.bm25 import supported_languages
    except ImportError:  # Mem0 warns of it
        return folder
    kept = folder / "models--Qdrant--bm25"
    snapshot = kept / "snapshots" / "bm25s"
    snapshot.mkdir(parents=True)
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("bm25s")
    (snapshot / "config.json").write_text("{}")
    for language in supported_languages:
        (snapshot / f"{language}.txt").write_text("\n".join(STOPWORDS_EN) if language == "english" else "")
    return folder
