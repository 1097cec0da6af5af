"""A memory in this process, for those that differ only in how they find: records by label, the last text of each."""

from __future__ import annotations

from collections.abc import Sequence

from eirkit.agents.memories.texts import labels, weigh
from eirkit.agents.memory import Item, MemoryUsage


class Kept:
    """Keeps the last text of each label and finds it by its label; a subclass may find in another way."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    async def setup(self) -> None:
        pass  # nothing to open

    async def reset(self, scope: str) -> None:
        self._kept = {}

    async def write(self, item: Item) -> None:
        self._kept.pop(item.label, None)  # a record that is written again is the newest
        self._kept[item.label] = item.text

    async def flush(self) -> None:
        pass  # what is kept can be found

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return [self._kept[label] for label in labels(query) if label in self._kept][:limit]

    async def read(self, label: str) -> str | None:
        return self._kept.get(label)

    async def forget(self, label: str) -> None:
        self._kept.pop(label, None)

    async def usage(self) -> MemoryUsage:
        return weigh(self._kept.values())

    async def teardown(self) -> None:
        self._kept = {}
