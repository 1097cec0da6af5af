"""A memory system of one's own: a notebook that is searched for the labels in a question.

Run it: eirkit lacuna run --workload store-recall --m 8 --h 4 --model reference/recoverer \
            --memory examples/notebook_memory.py:Notebook
"""

from __future__ import annotations

from collections.abc import Sequence

from eirkit.lacuna.memories.memory import Item, MemorySystem


class Notebook(MemorySystem):
    """One line a record; a question finds the lines that begin with a label in it."""

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
