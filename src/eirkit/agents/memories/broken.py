"""`broken-…`: memory systems with one deliberate defect each, to test that the harness detects it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from eirkit.agents.memories.key_value import KeyValue
from eirkit.agents.memory import Item, memories

FLOOD_CHARACTERS = 4_000_000


@memories.add("broken-drops")
class Drops(KeyValue):
    """Loses every third write without an error."""

    def __init__(self) -> None:
        super().__init__()
        self._writes = 0

    async def reset(self, scope: str) -> None:
        await super().reset(scope)
        self._writes = 0

    async def write(self, item: Item) -> None:
        self._writes += 1
        if self._writes % 3:
            await super().write(item)


@memories.add("broken-labels")
class Mislabels(KeyValue):
    """Returns a record with the value of another label."""

    async def search(self, query: str, limit: int) -> Sequence[str]:
        found = await super().search(query, limit)
        others = list(self._kept.values())
        return [self._with_other_value(text, others) for text in found]

    def _with_other_value(self, text: str, others: Sequence[str]) -> str:
        label, _, value = text.partition(" = ")
        values = [other.partition(" = ")[2] for other in others]
        return f"{label} = {next((other for other in values if other != value), value)}"


@memories.add("broken-late")
class Late(KeyValue):
    """Never answers a search in time."""

    def __init__(self, seconds: float = 3_600.0) -> None:
        super().__init__()
        self.seconds = seconds

    async def search(self, query: str, limit: int) -> Sequence[str]:
        await asyncio.sleep(self.seconds)
        return await super().search(query, limit)


@memories.add("broken-raises")
class Raises(KeyValue):
    """Raises an error at every search."""

    async def search(self, query: str, limit: int) -> Sequence[str]:
        raise ConnectionError("the store is gone")


@memories.add("broken-floods")
class Floods(KeyValue):
    """Buries what it finds under megabytes of text."""

    async def search(self, query: str, limit: int) -> Sequence[str]:
        found = await super().search(query, limit)
        return ["x" * FLOOD_CHARACTERS, *found]
