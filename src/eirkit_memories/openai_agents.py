"""`openai-agents`: a session of OpenAI's Agents SDK (package openai-agents) as the memory: a history without a search.

What the SDK would show the model before each turn, the items of the session, is what a search returns.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

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
from eirkit.lacuna.memories.temporary_directory import StoreDirectory, size_of
from eirkit.lacuna.models.message import Message


@memories.add("openai-agents")
class OpenAIAgents(MemorySystem):
    """SQLiteSession of the Agents SDK: every message is an item of the history."""

    requirements = Requirements(packages=("agents",), installs=(("openai-agents>=0.24,<0.25",),))
    profiles: ClassVar[Mapping[str, Profile]] = {
        AS_DOCUMENTED: Profile(
            "each message is added to the session's history, and its items, the newest first, are shown whatever is "
            "asked",
            "compaction by OpenAI's service; there is no search, no update and no delete",
            passages=None,
            passages_from="get_items returns the whole history unless a limit is given, openai-agents 0.24.0",
        ),
    }

    def __init__(self) -> None:
        self._thread = WorkerThread("openai-agents")
        self._warnings = VendorWarnings("openai.agents")
        self._directory = StoreDirectory("openai-agents")
        self._session: Any = None
        self._scopes = 0

    async def setup(self) -> None:
        os.environ.update({"OPENAI_AGENTS_DISABLE_TRACING": "1", "OPENAI_API_KEY": "none"})
        self._directory.create()
        self._warnings.listen()

    async def reset(self, scope: str) -> None:
        await self._leave()
        self._scopes += 1
        self._session = await self._thread.run(self._open)

    def _open(self) -> Any:
        from agents import SQLiteSession

        return SQLiteSession(f"scope-{self._scopes}", self._directory.path / "sessions.db")

    async def _leave(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await self._thread.run(session.clear_session)
            await self._thread.run(session.close)

    async def write(self, item: Item) -> None:
        await self._thread.run(self._session.add_items, [{"role": "user", "content": item.text}])

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        said = [{"role": message.role, "content": f"[{at}] {message.role}: {message.content}"} for message in messages]
        await self._thread.run(self._session.add_items, said)

    async def contents(self) -> Sequence[str]:
        return [str(one["content"]) for one in await self._thread.run(self._session.get_items)]

    async def search(self, query: str, limit: int) -> Sequence[str]:
        """Return the newest items, the newest first."""
        return [str(one["content"]) for one in reversed(await self._thread.run(self._session.get_items, limit))]

    async def read(self, label: str) -> str | None:
        return mentions(await self.contents(), label)

    async def usage(self) -> MemoryUsage:
        held = usage_of_texts(await self.contents())
        return replace(held, bytes=size_of(self._directory.path), warnings=self._warnings.heard)

    async def teardown(self) -> None:
        await self._leave()
        self._thread.stop()
        self._directory.remove()
