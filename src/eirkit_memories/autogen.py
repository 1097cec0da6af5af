"""`autogen`: a Memory of AutoGen (package autogen-ext): ChromaDBVectorMemory by default, or ListMemory.

The protocol adds and queries; it has no update and no delete.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from eirkit.errors import UnknownNameError
from eirkit.lacuna.memories.adapter import VendorWarnings, WorkerThread
from eirkit.lacuna.memories.embeddings import chroma_embedding
from eirkit.lacuna.memories.in_process import mentions, usage_of_texts
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

KINDS = ("chroma", "list")


@memories.add("autogen")
class AutoGen(MemorySystem):
    """A Memory of AutoGen: everything is added, and found by its query.

    Args:
        endpoint: base URL of an OpenAI-compatible server for embeddings.
        kind: chroma, list, or module:function or file.py:function, which returns a Memory.
    """

    requirements = Requirements(
        packages=("autogen_core", "autogen_ext", "chromadb"),
        installs=(("autogen-core==0.7.5", "autogen-ext[chromadb]==0.7.5"),),
        endpoint=("embedding",),
    )
    profiles: ClassVar[Mapping[str, Profile]] = {
        AS_DOCUMENTED: Profile(
            "each message is added, and its query returns what is nearest; nothing is ever replaced or removed, since "
            "the protocol has no way to",
            "Chroma's own MiniLM, which it downloads at run time: the endpoint embeds in its place",
            passages=3,
            passages_from="the default k of PersistentChromaDBVectorMemoryConfig, autogen-ext 0.7.5; ListMemory "
            "returns everything",
        ),
    }

    @classmethod
    def passages_for(cls, settings: Mapping[str, Any]) -> int | None:
        return super().passages_for(settings) if settings.get("kind", "chroma") == "chroma" else None

    def __init__(self, *, endpoint: str, kind: str = "chroma") -> None:
        if kind not in KINDS and ":" not in kind:
            raise UnknownNameError("kind of memory", kind, KINDS)
        self.endpoint, self.kind = endpoint, kind
        self._thread = WorkerThread("autogen")
        self._warnings = VendorWarnings("autogen_ext")
        self._directory = StoreDirectory("autogen")
        self._memory: Any = None
        self._config: Any = None  # of chroma, which has the number of results
        self._scopes = 0

    async def setup(self) -> None:
        os.environ["ANONYMIZED_TELEMETRY"] = "False"
        self._directory.create()
        self._warnings.listen()

    async def reset(self, scope: str) -> None:
        await self._leave()
        self._scopes += 1
        self._memory = await self._thread.run(self._open)

    def _open(self) -> Any:
        if self.kind == "list":
            from autogen_core.memory import ListMemory

            return ListMemory()
        if self.kind != "chroma":
            return load_object(self.kind)()
        from autogen_ext.memory.chromadb import (
            ChromaDBVectorMemory,
            CustomEmbeddingFunctionConfig,
            PersistentChromaDBVectorMemoryConfig,
        )

        embedding = CustomEmbeddingFunctionConfig(function=lambda: chroma_embedding(self.endpoint), params={})
        self._config = PersistentChromaDBVectorMemoryConfig(
            persistence_path=self._folder(), embedding_function_config=embedding
        )
        return ChromaDBVectorMemory(self._config)

    def _folder(self) -> str:
        return str(self._directory.path / f"scope-{self._scopes}")

    async def _leave(self) -> None:
        memory, self._memory = self._memory, None
        if memory is not None:
            await self._thread.run(memory.clear)
            await self._thread.run(memory.close)
            shutil.rmtree(self._folder(), ignore_errors=True)

    async def write(self, item: Item) -> None:
        from autogen_core.memory import MemoryContent, MemoryMimeType

        await self._thread.run(self._memory.add, MemoryContent(content=item.text, mime_type=MemoryMimeType.TEXT))

    async def search(self, query: str, limit: int) -> Sequence[str]:
        if self._config is not None:
            self._config.k = limit
        found = await self._thread.run(self._memory.query, query)
        return [str(result.content) for result in found.results][:limit]

    async def read(self, label: str) -> str | None:
        return mentions(await self.contents() or (), label)

    async def contents(self) -> Sequence[str] | None:
        """Return all texts, from Chroma's own collection or from the list; None for another memory."""
        if self.kind == "list":
            return [str(one.content) for one in self._memory.content]
        collection = getattr(self._memory, "_collection", None)
        if self.kind != "chroma":
            return None
        if collection is None:  # it is made by the first call
            return []
        return list(map(str, (await self._thread.run(collection.get))["documents"]))

    async def usage(self) -> MemoryUsage:
        held = await self.contents()
        used = MemoryUsage() if held is None else usage_of_texts(held)
        size = size_of(self._directory.path) if self.kind == "chroma" else used.bytes
        return replace(used, bytes=size, warnings=self._warnings.heard)

    async def teardown(self) -> None:
        await self._leave()
        self._thread.stop()
        self._directory.remove()
