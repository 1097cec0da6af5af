"""`null`: forgets everything; the lower bound of comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from eirkit.agents.memories.key_value import KeyValue
from eirkit.agents.memory import Item, memories


@memories.add("null")
class Null(KeyValue):
    """Accepts every write and finds nothing."""

    async def write(self, item: Item) -> None:
        pass

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return ()
