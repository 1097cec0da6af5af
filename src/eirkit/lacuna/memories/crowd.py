"""Other users of a memory system who work at the same time: each has a scope, the same labels and its own values."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from eirkit.lacuna.memories.memory import Item, MemorySystem, MemoryWrapper
from eirkit.lacuna.tasks.standing import neighbor_text

DELETED = 3  # of so many writes another user deletes the record of one


class CrowdedMemory(MemoryWrapper):
    """A memory beside those of other users, who write what it writes with values of their own, and delete some of it.

    Args:
        others: systems of the same kind, opened and reset to their own scopes.
        scope: names the task, from which the values of the others follow.
    """

    def __init__(self, system: MemorySystem, others: Sequence[MemorySystem], scope: str, *, deletes: bool) -> None:
        super().__init__(system)
        self.others, self.scope, self.deletes = others, scope, deletes
        self._writes = 0

    async def write(self, item: Item) -> None:
        self._writes += 1
        texts = (neighbor_text(self.scope, user, item.text) for user in range(1, len(self.others) + 1))
        writing = (other.write(Item(item.label, text)) for other, text in zip(self.others, texts, strict=True))
        done = await asyncio.gather(self.system.write(item), *writing, return_exceptions=True)
        for failed in (one for one in done if isinstance(one, BaseException)):
            raise failed
        if self.deletes and self._writes % DELETED == 0:
            for other in self.others:
                await other.forget(item.label)

    async def flush(self) -> None:
        await asyncio.gather(self.system.flush(), *(other.flush() for other in self.others))
