"""Calls a memory system within a time limit; runs a coroutine to its end wherever it is called from."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from types import CoroutineType
from typing import Any, TypeVar, cast

from eirkit.errors import StoreError
from eirkit.lacuna.memories.memory import (
    MemorySystem,
    MemoryUsage,
    MemoryWrapper,
)
from eirkit.lacuna.memories.values import check_read, check_usage, start_call
from eirkit.registry import attribute

T = TypeVar("T")


async def call_with_timeout(seconds: float, verb: str, method: Callable[..., Awaitable[T]], *arguments: object) -> T:
    """Call a method of a memory system with a time limit and return its result.

    Raises:
        StoreError: it takes too long, has the wrong signature, or is not awaitable.
        PluginError: it raises an error.
    """
    try:
        work = start_call(verb, method, arguments)
        if isinstance(work, CoroutineType):
            try:
                work = _Begun(work, work.send(None))
            except StopIteration as done:
                return cast(T, done.value)  # it finished without waiting, so no timer is needed
        elif not isinstance(work, Awaitable):
            raise StoreError(f"the memory system's {verb} is not async; write it as `async def {verb}`")
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError as error:
        raise StoreError(
            f"the memory system did not finish {verb} within {seconds:g} s; raise timeout_seconds"
        ) from error
    except BaseException as error:  # noqa: BLE001 - plug-ins may raise anything
        owner = getattr(method, "__self__", method)
        name = owner.wrapped_name if isinstance(owner, MemoryWrapper) else type(owner).__name__
        attribute("memory", name, verb, error)


async def usage_of(memory: MemorySystem, seconds: float) -> MemoryUsage:
    """Return the usage that a memory system reports; all fields are unknown if it returns None."""
    return check_usage(await call_with_timeout(seconds, "usage", memory.usage))


class _Begun(Awaitable[T]):
    """The rest of a coroutine that has been started and is waiting for the first time."""

    def __init__(self, work: Coroutine[Any, Any, T], waits_for: Any) -> None:
        self.work, self.waits_for = work, waits_for

    def __await__(self) -> Generator[Any, Any, T]:
        waits_for = self.waits_for
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001 - passed into the coroutine, cancellation included
                resume = partial(self.work.throw, error)
            else:
                resume = partial(self.work.send, sent)
            try:
                waits_for = resume()
            except StopIteration as done:
                return cast(T, done.value)


async def read_stored(memory: MemorySystem, label: str, seconds: float) -> str | None:
    """Return what a memory system stores under a label; raise StoreError if it is neither a string nor None."""
    return check_read(await call_with_timeout(seconds, "read", memory.read, label))


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, even if an event loop is already running, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_attended(work))
    with ThreadPoolExecutor(1) as elsewhere:
        return elsewhere.submit(copy_context().run, asyncio.run, _attended(work)).result()


async def _attended(work: Coroutine[Any, Any, T]) -> T:
    asyncio.get_running_loop().set_exception_handler(_report)
    return await work


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report what a callback raised, except that a result came for a call that an interrupt had just cancelled."""
    if not isinstance(context.get("exception"), asyncio.InvalidStateError):
        loop.default_exception_handler(context)
