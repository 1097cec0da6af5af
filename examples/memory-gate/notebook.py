"""The memory system that this repository builds: a notebook that is searched for the labels in a question."""

from __future__ import annotations

from collections.abc import Sequence

from eirkit.lacuna.memories.memory import Item, MemorySystem


class Notebook(MemorySystem):
    """One line for each record; a question finds the lines that begin with a label in it."""

    def __init__(self) -> None:
        self.lines: dict[str, str] = {}

    async def reset(self, scope: str) -> None:
        self.lines = {}

    async def write(self, item: Item) -> None:
        self.lines[item.label] = item.text

    async def search(self, query: str, limit: int) -> Sequence[str]:
        words = query.split()
        return [text for text in self.lines.values() if text.split(" = ")[0] in words][:limit]

    async def read(self, label: str) -> str | None:
        return self.lines.get(label)
