"""Holds any memory system that can forget to a number of records, so that systems compare at equal capacity."""

from __future__ import annotations

from eirkit.agents.memory import Item, MemorySystem, MemoryWrapper


class LimitedMemory(MemoryWrapper):
    """At most h records: the one written longest ago leaves before a new one comes."""

    def __init__(self, system: MemorySystem, h: int) -> None:
        super().__init__(system)
        self.h = h
        self._order: dict[str, None] = {}  # labels, the oldest first

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
