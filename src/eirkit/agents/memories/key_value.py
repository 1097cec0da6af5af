"""`key-value`: exact key–value memory that finds records by their labels only."""

from __future__ import annotations

from collections.abc import Sequence

from eirkit.agents.memories.text_matching import find_labels, usage_of_texts
from eirkit.agents.memory import Item, MemorySystem, MemoryUsage, memories


@memories.add("key-value")
class KeyValue(MemorySystem):
    """Finds the records whose labels occur in the query, in that order."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    async def reset(self, scope: str) -> None:
        self._kept = {}

    async def write(self, item: Item) -> None:
        self._kept.pop(item.label, None)  # a rewritten record becomes the newest
        self._kept[item.label] = item.text

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return [self._kept[label] for label in find_labels(query) if label in self._kept][:limit]

    async def read(self, label: str) -> str | None:
        return self._kept.get(label)

    async def forget(self, label: str) -> None:
        self._kept.pop(label, None)

    async def usage(self) -> MemoryUsage:
        return usage_of_texts(self._kept.values())

    async def teardown(self) -> None:
        self._kept = {}
