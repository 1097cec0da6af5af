"""Adapts any object with the required methods to a memory system; blocking methods run on a daemon thread.

A thread that hangs in third-party code cannot be stopped. The pools of asyncio and concurrent.futures would wait for it
when the program ends; this one does not.

A plain function may block, so it is called on a thread of the system. A call that exceeds its time limit is abandoned
with its thread.
"""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from eirkit.agents.memory import OPTIONAL, REQUIRED, Item, MemorySystem, MemoryUsage, MemoryWrapper
from eirkit.agents.memory_values import start_call

T = TypeVar("T")

_Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class WorkerThread:
    """One thread, started by the first call; calls run in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def run(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Return the result of the function; it keeps running if the caller stops waiting."""
        if self._thread is None:
            self._thread = threading.Thread(target=_work, args=(self._jobs,), name=self.name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[T] = loop.create_future()
        self._jobs.put((loop, waiting, lambda: function(*arguments, **named)))
        return await waiting

    def stop(self) -> None:
        """End the thread after its pending calls."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread = None


def _work(jobs: queue.SimpleQueue[_Job | None]) -> None:
    while (job := jobs.get()) is not None:
        loop, waiting, call = job
        result, error = None, None
        try:
            result = call()
        except BaseException as raised:  # noqa: BLE001 - raised in the waiting caller
            error = RuntimeError(f"StopIteration: {raised}") if isinstance(raised, StopIteration) else raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, waiting, result, error)


def _settle(waiting: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if waiting.done():
        return
    if error is not None:
        waiting.set_exception(error)
    else:
        waiting.set_result(result)


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
