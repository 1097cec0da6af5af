"""Runs blocking calls of a store on one daemon thread that can be abandoned.

A thread that hangs in third-party code cannot be stopped. The pools of asyncio and concurrent.futures would wait for it
when the program ends; this one does not.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

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
