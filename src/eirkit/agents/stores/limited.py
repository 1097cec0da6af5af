"""Holds any memory system that can forget to a number of records, so that systems compare at equal capacity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from eirkit.agents.memory import Forgetting, Item, MemorySystem, MemoryUsage


class Limitable(MemorySystem, Forgetting, Protocol):
    """A memory system that can remove a record."""


class Limited:
    """At most h records: the one written longest ago leaves before a new one comes."""

    def __init__(self, system: Limitable, h: int) -> None:
        self.system, self.h = system, h
        self._order: dict[str, None] = {}  # labels, the oldest first

    async def setup(self) -> None:
        await self.system.setup()

    async def reset(self, scope: str) -> None:
        self._order = {}
        await self.system.reset(scope)

    async def write(self, item: Item) -> None:
        if item.label in self._order:  # a system may keep both
            del self._order[item.label]
            await self.system.forget(item.label)
        if len(self._order) >= self.h:
            oldest = next(iter(self._order))
            del self._order[oldest]
            await self.system.forget(oldest)
        self._order[item.label] = None
        await self.system.write(item)

    async def flush(self) -> None:
        await self.system.flush()

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return await self.system.search(query, limit)

    async def read(self, label: str) -> str | None:
        return await self.system.read(label)

    async def usage(self) -> MemoryUsage | None:
        return await self.system.usage()

    async def teardown(self) -> None:
        await self.system.teardown()
