"""Memory systems with a process or a store that tests can break: real ones, found by reference."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.memories.memory import Item, Requirements, memories


class Mortal(KeyValue):
    """Runs in a process of its own; waits in the middle of its third write until somebody kills it, but only once.

    Args:
        grave: a file into which it then writes its process id; while that is there it works as it should.
    """

    requirements = Requirements(packages=("json",))

    def __init__(self, *, grave: str) -> None:
        super().__init__()
        self.grave = grave

    async def write(self, item: Item) -> None:
        if len(self._kept) == 2 and not Path(self.grave).exists():
            Path(self.grave).write_text(str(os.getpid()))
            await asyncio.sleep(3_600)
        await super().write(item)


class Outage(KeyValue):
    """Cannot be searched as long as a file of this name is there."""

    def __init__(self, *, file: str) -> None:
        super().__init__()
        self.file = file

    async def search(self, query: str, limit: int) -> Sequence[str]:
        if Path(self.file).exists():
            raise ConnectionError("the store is down")
        return await super().search(query, limit)


@memories.add("shared-by-all")  # of this program, so that it runs in this process
class Shared(KeyValue):
    """One store for all, as a server is: only the scope tells one run's records from another's."""

    everything: ClassVar[dict[str, dict[str, str]]] = {}
    at_once: ClassVar[set[str]] = set()  # scopes in use
    most_at_once: ClassVar[int] = 0

    async def reset(self, scope: str) -> None:
        self._kept = self.everything.setdefault(scope, {})
        self._kept.clear()
        Shared.at_once.add(scope)
        Shared.most_at_once = max(Shared.most_at_once, len(Shared.at_once))
        self._scope = scope

    async def write(self, item: Item) -> None:
        await asyncio.sleep(0)  # let other runs in between
        await super().write(item)

    async def search(self, query: str, limit: int) -> Sequence[str]:
        await asyncio.sleep(0)
        found = [text for text in self._kept.values() if text.split(" = ")[0] in query.split()]
        return found[:limit]

    async def usage(self):  # type: ignore[no-untyped-def]
        Shared.at_once.discard(self._scope)
        return await super().usage()
