"""Adapts any object with the required methods to a memory system; its methods run on a daemon thread.

An object of the running program cannot be moved to a process of its own. Its methods may block, also those that are
async, so they run on a thread with an event loop of their own, and a time limit holds whatever they do.

A thread that hangs in third-party code cannot be stopped. The pools of asyncio and concurrent.futures would wait for it
when the program ends; this one does not. A call that exceeds its time limit is abandoned with its thread.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from eirkit.errors import PluginError, describe
from eirkit.lacuna.memories.memory import OPTIONAL, REQUIRED, Item, MemorySystem, MemoryUsage, MemoryWrapper
from eirkit.lacuna.memories.validity import with_text
from eirkit.lacuna.memories.values import check_contents, check_passages, check_read, start_call
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.scrubber import Scrubber
from eirkit.registry import place_in_user_file

T = TypeVar("T")
LONGEST_WARNING = 200  # characters


class VendorWarnings(logging.Handler):
    """Collects the warnings that a vendor's code logs, each once, so that a run can pass them on."""

    def __init__(self, logger: str) -> None:
        super().__init__(logging.WARNING)
        self.logger = logger
        self.heard: tuple[str, ...] = ()

    def listen(self) -> None:
        """Begin to collect; importing the code is not enough to make it warn."""
        logging.getLogger(self.logger).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        said = " ".join(record.getMessage().split())[:LONGEST_WARNING]
        if said not in self.heard:
            self.heard = (*self.heard, said)


class ReplayClock:
    """Tells on which day of the conversations a system stored something, from the time on its own clock.

    While people talk the two are the same; conversations of other days are replayed within seconds.
    """

    def __init__(self) -> None:
        self._begun: list[tuple[datetime, str]] = []

    def begin(self, at: str) -> None:
        """Say that from now on everything is stored on this day."""
        self._begun.append((datetime.now(UTC), at))

    def day_of(self, stored: datetime) -> str:
        """Return the day on which something was stored."""
        return next((at for since, at in reversed(self._begun) if since <= stored), self._begun[0][1])


class WorkerThread:
    """One thread with an event loop, started by the first call."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()  # the loop itself keeps no reference

    async def run(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Return the result of a function, awaited if need be; it keeps running if the caller stops waiting."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=_turn, args=(self._loop,), name=self.name, daemon=True).start()
        waiting: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._loop.call_soon_threadsafe(self._begin, waiting, lambda: function(*arguments, **named))
        return await waiting

    def stop(self) -> None:
        """End the thread once its current step is done."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _begin(self, waiting: asyncio.Future[Any], work: Callable[[], Any]) -> None:
        task = asyncio.get_running_loop().create_task(_perform(waiting, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        if left := asyncio.all_tasks(loop):  # asyncio complains about tasks that are dropped
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.wait(left, timeout=1))
    finally:
        loop.close()


async def _perform(waiting: asyncio.Future[Any], work: Callable[[], Any]) -> None:
    result, error = None, None
    try:
        result = work()
        if inspect.isawaitable(result):
            result = await result
    except BaseException as raised:  # noqa: BLE001 - raised in the waiting caller, which it must not cancel or end
        error = raised if isinstance(raised, Exception) else RuntimeError(describe(raised))
    caller = waiting.get_loop()
    if not caller.is_closed():
        caller.call_soon_threadsafe(_settle, waiting, result, error)


def _settle(waiting: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if waiting.done():
        return
    if error is not None:
        waiting.set_exception(error)
    else:
        waiting.set_result(result)


def adapt(system: Any) -> MemorySystem:
    """Return a system whose methods are all awaitable and never block; one of ours is returned unchanged."""
    verbs = [getattr(system, verb, None) for verb in (*REQUIRED, *OPTIONAL)]
    is_ours = type(system).__module__.partition(".")[0] == __name__.partition(".")[0]
    if is_ours and isinstance(system, MemorySystem) and all(map(inspect.iscoroutinefunction, verbs)):
        return system
    return AdaptedMemory(system)


class AdaptedMemory(MemoryWrapper):
    """A memory system around an object with its methods."""

    def __init__(self, system: Any) -> None:
        super().__init__(system)
        self._thread = WorkerThread(type(system).__name__)
        self._scrub = Scrubber()
        self._is_settled = True

    async def setup(self) -> None:
        self._scrub = Scrubber.of_environment(os.environ)
        await self._perform("setup")

    async def reset(self, scope: str) -> None:
        await self._perform("reset", scope)

    async def write(self, item: Item) -> None:
        self._is_settled = False
        await self._perform("write", item)

    async def flush(self) -> None:
        await self._perform("flush")
        if not self._is_settled:
            await asyncio.sleep(float(getattr(self.system, "delay_seconds", 0.0)))
        self._is_settled = True

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return self._scrubbed(await self._perform("search", query, limit))

    async def read(self, label: str) -> str | None:
        text = check_read(await self._perform("read", label))
        return None if text is None else self._scrub.text(text)

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        self._is_settled = False
        await self._perform("observe", messages, session, at)

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        return self._scrubbed(await self._perform("recall", question, at, limit))

    async def contents(self) -> Sequence[str] | None:
        held = check_contents(await self._perform("contents"))
        return None if held is None else [self._scrub.text(text) for text in held]

    async def forget(self, label: str) -> None:
        self._is_settled = False
        await self._perform("forget", label)

    async def reopen(self, scope: str) -> None:
        await self._perform("reopen", scope)

    async def usage(self) -> MemoryUsage | None:
        used: MemoryUsage | None = await self._perform("usage")
        return used

    async def teardown(self) -> None:
        try:
            await self._perform("teardown")
        finally:
            self._thread.stop()

    def _scrubbed(self, found: object) -> list[str]:
        return [with_text(text, self._scrub.text) for text in check_passages(found)]

    async def _perform(self, verb: str, *arguments: object) -> Any:
        method: Callable[..., Any] | None = getattr(self.system, verb, None)
        if method is None:
            return await getattr(MemorySystem, verb)(self, *arguments)
        try:
            return await self._thread.run(self._call, verb, method, arguments)
        except asyncio.CancelledError:
            self._thread.stop()  # later calls must not wait for a call that hangs
            self._thread = WorkerThread(type(self.system).__name__)
            raise

    async def _call(self, verb: str, method: Callable[..., Any], arguments: tuple[object, ...]) -> Any:
        try:
            done = start_call(verb, method, arguments)
            return await done if inspect.isawaitable(done) else done
        except Exception:
            raise
        except BaseException as error:  # nothing but the system can have raised it on its thread
            name = type(self.system).__name__
            raise PluginError("memory", name, verb, describe(error), place_in_user_file(error)) from error
