"""One call of an external memory: within its time, cut to what can be shown, and with what the store says about a loss.

Where a record that was sought by number did not come back, the store is asked for it by key, so that what was never
stored can be told from what was stored and not found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from functools import partial
from types import CoroutineType
from typing import Any, TypeVar, cast

from eirkit.errors import StoreError
from eirkit.lacuna.condition import labels_in, records_in
from eirkit.lacuna.memory import LONGEST_PASSAGE, SEARCH_LIMIT, Item, MemoryCall, MemorySystem, MemoryUsage
from eirkit.lacuna.task import Payload
from eirkit.lacuna.telemetry import Consultation

MEMORY_SECONDS = 60.0  # how long a memory system may take for one call, unless given

T = TypeVar("T")


async def consult(
    memory: MemorySystem,
    t: int,
    call: MemoryCall,
    submitted: Mapping[int, Payload],
    clock: Callable[[], float],
    seconds: float = MEMORY_SECONDS,
    *,
    weigh: bool = False,
) -> Consultation:
    """Carry out one call at step t and return all that is known about it.

    Args:
        submitted: the agent's own answers: what a right record would say.
        seconds: the time the system has; StoreError is raised after it.
        weigh: ask after every write what the system holds; its latency does not count that.
    """
    start = clock()
    if call.verb == "write":
        (step,) = call.steps
        await within(seconds, "write", memory.write(Item(label_of(step), call.text)))
        took = clock() - start
        if not weigh:
            return Consultation(t, call, (), took)
        used = await usage_of(memory, seconds)
        return Consultation(t, call, (), took, records=used.records, bytes=used.bytes)
    await within(seconds, "flush", memory.flush())
    found = await within(seconds, "search", memory.search(call.text, SEARCH_LIMIT))
    took = clock() - start
    texts = _texts(found)
    returned = len("".join(texts))
    passages = tuple(texts[:SEARCH_LIMIT])
    if returned > LONGEST_PASSAGE:
        passages = tuple([text[:LONGEST_PASSAGE] for text in passages])
    if not call.steps:
        return Consultation(t, call, passages, took, returned)
    shown = "\n".join(passages)
    right = records_in(shown, submitted)
    lacking = tuple([step for step in call.steps if step in submitted and step not in right])
    if not lacking:
        return Consultation(t, call, passages, took, returned)
    held = [step for step in lacking if await _holds(memory, step, submitted, seconds)]
    labels = labels_in(shown)
    mislabelled = tuple(step for step in lacking if step in labels)
    return Consultation(t, call, passages, took, returned, lacking, tuple(held), mislabelled)


async def within(seconds: float, verb: str, work: Awaitable[T]) -> T:
    """Return what a verb of a memory system returns; StoreError if it takes too long, or cannot be waited for."""
    try:
        if isinstance(work, CoroutineType):
            try:
                work = _Begun(work, work.send(None))
            except StopIteration as done:
                return cast(T, done.value)  # it never had to wait, and needs no clock
        elif not isinstance(work, Awaitable):
            raise StoreError(f"the memory system's {verb} is not async; write it as `async def {verb}`")
        async with asyncio.timeout(seconds):
            return await work
    except StoreError:
        raise
    except TimeoutError as error:
        raise StoreError(
            f"the memory system did not finish its {verb} within {seconds:g} s; give it more with timeout_seconds"
        ) from error
    except Exception as error:
        error.add_note(f"raised by {verb}")
        raise


async def usage_of(memory: MemorySystem, seconds: float) -> MemoryUsage:
    """Return what a memory system says that it holds; nothing is known where it returns None."""
    used: object = await within(seconds, "usage", memory.usage())
    if used is None:
        return MemoryUsage()
    if not isinstance(used, MemoryUsage):
        kind = type(used).__name__
        raise StoreError(
            f"the memory system's usage returned a {kind}; return a MemoryUsage, or None if it cannot tell"
        )
    return used


class _Begun(Awaitable[T]):
    """A coroutine that was begun, from where it first has to wait."""

    def __init__(self, work: Coroutine[Any, Any, T], waits_for: Any) -> None:
        self.work, self.waits_for = work, waits_for

    def __await__(self) -> Generator[Any, Any, T]:
        waits_for = self.waits_for
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001 - whatever arrives, a cancellation above all, is the coroutine's
                resume = partial(self.work.throw, error)
            else:
                resume = partial(self.work.send, sent)
            try:
                waits_for = resume()
            except StopIteration as done:
                return cast(T, done.value)


def label_of(step: int) -> str:
    """Return the label that a memory system sees, the same in every task."""
    return f"A_{step}"


def _texts(found: Sequence[str]) -> list[str]:
    if isinstance(found, str) or not all([isinstance(text, str) for text in found]):  # noqa: C419 - a list is quicker
        raise StoreError("the memory system's search did not return a sequence of texts; correct the adapter")
    return list(found)


async def _holds(memory: MemorySystem, step: int, submitted: Mapping[int, Payload], seconds: float) -> bool:
    text = await within(seconds, "read", memory.read(label_of(step)))
    return text is not None and step in records_in(text[:LONGEST_PASSAGE], submitted)
