"""`text`: a page of text to which every write adds a line, searched for the words of the query."""

from __future__ import annotations

from collections.abc import Sequence

from eirkit.agents.memories.text_matching import find_words, newest_first, usage_of_texts
from eirkit.agents.memory import Item, MemorySystem, MemoryUsage, memories


@memories.add("text")
class Text(MemorySystem):
    """Shows the newest lines that have a word of the query; nothing is ever replaced."""

    def __init__(self) -> None:
        self._lines: list[Item] = []

    async def reset(self, scope: str) -> None:
        self._lines = []

    async def write(self, item: Item) -> None:
        self._lines.append(item)

    async def search(self, query: str, limit: int) -> Sequence[str]:
        wanted = set(find_words(query))
        return newest_first((line.text for line in self._lines if not wanted.isdisjoint(find_words(line.text))), limit)

    async def read(self, label: str) -> str | None:
        return next((line.text for line in reversed(self._lines) if line.label == label), None)

    async def forget(self, label: str) -> None:
        self._lines = [line for line in self._lines if line.label != label]

    async def usage(self) -> MemoryUsage:
        return usage_of_texts([line.text for line in self._lines])

    async def teardown(self) -> None:
        self._lines = []
