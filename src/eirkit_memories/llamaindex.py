"""`llamaindex`: memory blocks of LlamaIndex (package llama-index-core): vectors in Chroma, or extracted facts.

Messages are given to the block as the memory does when they leave the chat history. A block adds; it has no delete.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from eirkit.errors import UnknownNameError
from eirkit.lacuna.memories.adapter import VendorWarnings, WorkerThread
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
from eirkit.lacuna.models.message import Message

BLOCKS = ("vector", "facts")
# A text ends at the next tag of its kind, so that many unclosed tags do not make the search quadratic.
_MESSAGE = re.compile(r"<message role='(\w{1,20})'>((?:(?!</?message\b).)*)</message>", re.DOTALL)
_BETWEEN_BATCHES = re.compile(r"(?<=</message>)\n\n(?=<message )")  # a message may have paragraphs
_FACT = re.compile(r"<fact>((?:(?!</?fact>).)*)</fact>", re.DOTALL)


@memories.add("llamaindex")
class LlamaIndex(MemorySystem):
    """A memory block of LlamaIndex with its default settings.

    Args:
        endpoint: base URL of an OpenAI-compatible server for its model and its embeddings.
        block: vector, for VectorMemoryBlock, or facts, for FactExtractionMemoryBlock.
    """

    requirements = Requirements(
        packages=("llama_index.core", "llama_index.vector_stores.chroma"),
        installs=(
            (
                "llama-index-core>=0.14,<0.15",
                "llama-index-vector-stores-chroma>=0.6,<0.7",
                "llama-index-embeddings-openai-like>=0.4,<0.5",
                "llama-index-llms-openai-like>=0.8,<0.9",
            ),
        ),
        endpoint=("model", "embedding"),
    )
    profiles: ClassVar[Mapping[str, Profile]] = {
        AS_DOCUMENTED: Profile(
            "each record or session is given to the block as one batch of messages; the block's own search, which "
            "returns batches, or its extraction of facts, which returns all of them",
            "the chat history before it, in which a short conversation would simply stay",
            passages=2,
            passages_from="the default similarity_top_k of VectorMemoryBlock, llama-index-core 0.14.25; the block of "
            "facts returns all of them, at most 50",
        ),
    }

    @classmethod
    def passages_for(cls, settings: Mapping[str, Any]) -> int | None:
        return super().passages_for(settings) if settings.get("block", "vector") == "vector" else None

    def __init__(self, *, endpoint: str, block: str = "vector") -> None:
        if block not in BLOCKS:
            raise UnknownNameError("memory block", block, BLOCKS)
        self.endpoint, self.block = endpoint, block
        self._thread = WorkerThread("llamaindex")
        self._warnings = VendorWarnings("llama_index")
        self._block: Any = None
        self._collection: Any = None
        self._scopes = 0

    async def setup(self) -> None:
        os.environ.update({"ANONYMIZED_TELEMETRY": "False", "OPENAI_API_KEY": "none", "IS_TESTING": ""})
        self._warnings.listen()

    async def reset(self, scope: str) -> None:
        self._scopes += 1
        await self._thread.run(self._open)

    def _open(self) -> None:
        if self.block == "facts":
            from llama_index.core.memory import FactExtractionMemoryBlock
            from llama_index.llms.openai_like import OpenAILike

            model = OpenAILike(model="eirkit", api_base=self.endpoint, api_key="none", is_chat_model=True)
            self._block = FactExtractionMemoryBlock(llm=model)
            return
        import chromadb
        from llama_index.core.memory import VectorMemoryBlock
        from llama_index.embeddings.openai_like import OpenAILikeEmbedding
        from llama_index.vector_stores.chroma import ChromaVectorStore

        embedding = OpenAILikeEmbedding(model_name="eirkit", api_base=self.endpoint, api_key="none")
        self._collection = chromadb.EphemeralClient().create_collection(f"scope-{os.getpid()}-{self._scopes}")
        store = ChromaVectorStore(chroma_collection=self._collection)
        self._block = VectorMemoryBlock(vector_store=store, embed_model=embedding)

    async def write(self, item: Item) -> None:
        await self._put([Message("user", item.text)])

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        await self._put([Message(message.role, f"[{at}] {message.content}") for message in messages])

    async def _put(self, messages: Sequence[Message]) -> None:
        from llama_index.core.base.llms.types import ChatMessage

        said = [ChatMessage(role=message.role, content=message.content) for message in messages]
        await self._thread.run(self._block.aput, said, from_short_term_memory=True)

    async def search(self, query: str, limit: int) -> Sequence[str]:
        from llama_index.core.base.llms.types import ChatMessage

        if self.block == "vector":
            self._block.similarity_top_k = limit
        found = await self._thread.run(self._block.aget, [ChatMessage(role="user", content=query)])
        return _passages(str(found))[:limit]

    async def read(self, label: str) -> str | None:
        return mentions(await self.contents(), label)

    async def contents(self) -> Sequence[str]:
        if self.block == "facts":
            return list(self._block.facts)
        held = (await self._thread.run(self._collection.get))["documents"]
        return [text for one in held for text in _messages(str(one))]

    async def usage(self) -> MemoryUsage:
        return replace(usage_of_texts(await self.contents()), warnings=self._warnings.heard)

    async def teardown(self) -> None:
        self._block = self._collection = None
        self._thread.stop()


def _messages(text: str) -> list[str]:
    """Return the messages of a batch, with the day and the speaker where there is a day."""
    found = []
    for role, said in _MESSAGE.findall(text):
        day, closed, rest = said.partition("] ")
        found.append(f"{day}] {role}: {rest}" if closed and day.startswith("[") else said)
    return found


def _passages(text: str) -> list[str]:
    """Return the facts, or the batches of messages, whose lines are messages."""
    if facts := _FACT.findall(text):
        return facts
    return ["\n".join(_messages(batch)) for batch in _BETWEEN_BATCHES.split(text) if batch]
