"""Adapts any object with the required methods to a memory system: default methods, and a thread for plain functions.

A plain function may block, so it is called on a thread of the system. A call that exceeds its time limit is abandoned
with its thread.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from eirkit.agents.memory import OPTIONAL, REQUIRED, Item, MemorySystem, MemoryUsage, MemoryWrapper
from eirkit.agents.memory_calls import start_call
from eirkit.agents.stores.worker_thread import WorkerThread

_AWAITABLE = ("Awaitable", "Coroutine", "Future", "Task")


def adapt(system: Any) -> MemorySystem:
    """Return a system whose methods are all awaitable; an object that already is one is returned unchanged."""
    verbs = [getattr(system, verb, None) for verb in (*REQUIRED, *OPTIONAL)]
    if isinstance(system, MemorySystem) and not any(map(is_synchronous, verbs)):
        return system
    return AdaptedMemory(system)


def is_synchronous(verb: object) -> bool:
    """True for a function that is not async and is not annotated to return an awaitable."""
    if not callable(verb) or inspect.iscoroutinefunction(verb):
        return False
    says = str(getattr(verb, "__annotations__", {}).get("return", ""))
    return not any(word in says for word in _AWAITABLE)


class AdaptedMemory(MemoryWrapper):
    """A memory system around an object with its methods."""

    def __init__(self, system: Any) -> None:
        super().__init__(system)
        self._thread = WorkerThread(type(system).__name__)

    async def setup(self) -> None:
        await self._perform("setup")

    async def reset(self, scope: str) -> None:
        await self._perform("reset", scope)

    async def write(self, item: Item) -> None:
        await self._perform("write", item)

    async def flush(self) -> None:
        await self._perform("flush")

    async def search(self, query: str, limit: int) -> Sequence[str]:
        found: Sequence[str] = await self._perform("search", query, limit)
        return found

    async def read(self, label: str) -> str | None:
        text: str | None = await self._perform("read", label)
        return text

    async def forget(self, label: str) -> None:
        await self._perform("forget", label)

    async def usage(self) -> MemoryUsage | None:
        used: MemoryUsage | None = await self._perform("usage")
        return used

    async def teardown(self) -> None:
        try:
            await self._perform("teardown")
        finally:
            self._thread.stop()

    async def _perform(self, verb: str, *arguments: object) -> Any:
        method: Callable[..., Any] | None = getattr(self.system, verb, None)
        if method is None:
            return await getattr(MemorySystem, verb)(self, *arguments)
        if not is_synchronous(method):
            return await start_call(verb, method, arguments)
        try:
            done = await self._thread.run(start_call, verb, method, arguments)
        except asyncio.CancelledError:
            self._thread.stop()  # later calls must not wait for a call that hangs
            self._thread = WorkerThread(type(self.system).__name__)
            raise
        return await done if inspect.isawaitable(done) else done
