"""A memory system under test: made anew, opened and closed, with the calls that conformance suites make."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from eirkit.errors import UsageError, describe
from eirkit.lacuna.memories.adapter import adapt
from eirkit.lacuna.memories.calls import call_with_timeout, read_stored
from eirkit.lacuna.memories.child_process import ProcessMemory
from eirkit.lacuna.memories.endpoint import MeteredMemory
from eirkit.lacuna.memories.memory import Item, MemorySystem, MemoryWrapper, can_forget, can_reopen, missing_verbs
from eirkit.lacuna.memories.values import check_passages
from eirkit.lacuna.scripted.extractor import Extractor

RECORDS = 8  # written by most requirements; few, because some systems call a model for each
LIMIT = 5  # passages requested
CALL_SECONDS = 120.0
MANY_RECORDS = 10_000

Factory = Callable[[], Any]  # returns a MemorySystem, or whatever has its methods


@dataclass(frozen=True, slots=True)
class SuiteLimits:
    """How long one call may take, and how many records are written where many are."""

    seconds: float = CALL_SECONDS
    records: int = MANY_RECORDS


class OpenedMemory:
    """A system between `setup` and `teardown`."""

    def __init__(self, system: Factory, limits: SuiteLimits) -> None:
        self.memory, self.seconds = new_memory(system), limits.seconds

    async def __aenter__(self) -> OpenedMemory:
        try:
            await call_with_timeout(self.seconds, "setup", self.memory.setup)
        except BaseException as error:
            await self.__aexit__(type(error), error)
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        # After a failure, errors while closing a partly opened system are not the finding.
        with suppress(Exception) if any(error) else nullcontext():
            await call_with_timeout(self.seconds, "teardown", self.memory.teardown)

    @property
    def can_forget(self) -> bool:
        plugin = _plugin(self.memory)
        return plugin.can_forget if isinstance(plugin, ProcessMemory) else can_forget(type(plugin))

    @property
    def is_queued(self) -> bool:
        """True if calls reach it one at a time: it is a vendor's system in a process of its own."""
        plugin = _plugin(self.memory)
        return isinstance(plugin, ProcessMemory) and not plugin.is_own

    @property
    def is_scripted(self) -> bool:
        """True if a script has answered for a model, and so decided what the system keeps."""
        memory = self.memory
        while isinstance(memory, MemoryWrapper):
            memory = memory.system
        return (
            isinstance(memory, MeteredMemory)
            and isinstance(memory.endpoint.model, Extractor)
            and memory.endpoint.meter.calls > 0
        )

    @property
    def can_reopen(self) -> bool:
        plugin = _plugin(self.memory)
        return plugin.can_reopen if isinstance(plugin, ProcessMemory) else can_reopen(type(plugin))

    @property
    def most_records(self) -> int | None:
        """How many records it declares to hold at most; None: as many as are written."""
        declared = getattr(_plugin(self.memory), "most_records", None)
        return None if declared is None else max(1, int(declared))

    async def reset(self, scope: str) -> None:
        await call_with_timeout(self.seconds, "reset", self.memory.reset, scope)

    async def write(self, *items: Item, flush: bool = True) -> None:
        """Write records, then wait until they can be found."""
        for item in items:
            await call_with_timeout(self.seconds, "write", self.memory.write, item)
        if flush:
            await self.flush()

    async def write_together(self, items: Sequence[Item]) -> None:
        """Write records at the same time, then wait until they can be found."""
        plugin = _plugin(self.memory)
        if isinstance(plugin, ProcessMemory):
            await call_with_timeout(self.seconds, "write", plugin.write_together, items)
        else:
            writers = (self.write(item, flush=False) for item in items)
            done = await asyncio.gather(*writers, return_exceptions=True)  # no writer goes on after this call
            for failed in (one for one in done if isinstance(one, BaseException)):
                raise failed
        await self.flush()

    async def flush(self) -> None:
        await call_with_timeout(self.seconds, "flush", self.memory.flush)

    async def forget(self, label: str) -> None:
        await call_with_timeout(self.seconds, "forget", self.memory.forget, label)
        await self.flush()

    async def restart(self, scope: str) -> None:
        """Close the system and open its scope again."""
        plugin = _plugin(self.memory)
        if isinstance(plugin, ProcessMemory):
            await call_with_timeout(self.seconds, "reopen", plugin.restart, scope)
            return
        await call_with_timeout(self.seconds, "teardown", self.memory.teardown)
        await call_with_timeout(self.seconds, "setup", self.memory.setup)
        await call_with_timeout(self.seconds, "reopen", self.memory.reopen, scope)

    async def fill(self, scope: str, first: int = 1, count: int = RECORDS) -> list[Item]:
        """Write a few records into a new scope and return them."""
        await self.reset(scope)
        items = [Item(f"A_{t}", f"A_{t:02} = {1000 + 7 * t}") for t in range(first, first + count)]
        await self.write(*items)
        return items

    async def find(self, item: Item) -> list[str]:
        label = item.text.partition(" = ")[0]
        return await self.search(label)

    async def read(self, label: str) -> str | None:
        return await read_stored(self.memory, label, self.seconds)

    async def held(self, items: Sequence[Item]) -> list[Item]:
        """Return the records that can be read."""
        return [item for item in items if item.text in (await self.read(item.label) or "")]

    async def search(self, query: str, limit: int = LIMIT) -> list[str]:
        return check_passages(await call_with_timeout(self.seconds, "search", self.memory.search, query, limit))


class ReusedMemory(MemoryWrapper):
    """A system that stays open when it is torn down, for the next requirement; some take half a minute to start.

    Args:
        idle: open systems that nobody uses; one of them is taken if there is one.
    """

    def __init__(self, idle: list[MemorySystem], system: Factory) -> None:
        self.is_open = bool(idle)
        super().__init__(idle.pop() if idle else new_memory(system))
        self.idle = idle

    async def setup(self) -> None:
        if not self.is_open:
            try:
                await self.system.setup()
            except BaseException:  # half open, and nobody else will close it
                with suppress(Exception):
                    await self.system.teardown()
                raise
        self.is_open = True

    async def teardown(self) -> None:
        if self.is_open:
            self.idle.append(self.system)
        self.is_open = False


def new_memory(system: Factory) -> MemorySystem:
    """Return a new system whose methods are all present and awaitable."""
    if isinstance(system, type) and (lacking := missing_verbs(system)):
        raise UsageError(f"it has no {', '.join(lacking)}; see docs/add-a-memory.md for the verbs it needs")
    made = _called(system)
    if isinstance(made, type):
        raise UsageError("the function returned a class instead of a system; give the class itself")
    if lacking := missing_verbs(type(made)):
        raise UsageError(f"it has no {', '.join(lacking)}; see docs/add-a-memory.md for the verbs it needs")
    return adapt(made)


def _called(system: Factory) -> Any:
    try:
        return system()
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        name = getattr(system, "__name__", "Name")
        raise UsageError(
            f"it needs arguments ({describe(error)}); give a function, check_memory(lambda: {name}(…))"
        ) from error


def _plugin(memory: MemorySystem) -> object:
    while isinstance(memory, MemoryWrapper | MeteredMemory):
        memory = memory.system
    return memory
