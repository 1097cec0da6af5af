"""A card index: one card a label, found by the labels in a question."""

from __future__ import annotations

import re
from collections.abc import Sequence

from eirkit.lacuna.memories.memory import Item, MemorySystem, MemoryUsage

_LABEL = re.compile(r"A_0*([0-9]+)")


class CardIndex(MemorySystem):
    """Keeps everything in memory, by label.

    Args:
        drawers: how many cards fit; the oldest leave. None: as many as there are.
    """

    def __init__(self, *, drawers: int | None = None) -> None:
        self.drawers = drawers
        self.cards: dict[str, str] = {}

    async def reset(self, scope: str) -> None:
        self.cards = {}

    async def write(self, item: Item) -> None:
        self.cards.pop(item.label, None)
        self.cards[item.label] = item.text
        while self.drawers is not None and len(self.cards) > self.drawers:
            del self.cards[next(iter(self.cards))]

    async def search(self, query: str, limit: int) -> Sequence[str]:
        labels = [f"A_{number}" for number in _LABEL.findall(query)]
        return [self.cards[label] for label in labels if label in self.cards][:limit]

    async def read(self, label: str) -> str | None:
        return self.cards.get(label)

    async def forget(self, label: str) -> None:
        self.cards.pop(label, None)

    async def usage(self) -> MemoryUsage:
        return MemoryUsage(records=len(self.cards), bytes=sum(map(len, self.cards.values())))
