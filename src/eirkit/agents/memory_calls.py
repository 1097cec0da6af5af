"""One call of an external memory: within its time, cut to what can be shown, and with what the store says about a loss.

Where a record that was sought by number did not come back, the store is asked for it by key, so that what was never
stored can be told from what was stored and not found.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from functools import partial
from types import CoroutineType
from typing import Any, TypeVar, cast

from eirkit.agents.conditions import labels_in, records_in
from eirkit.agents.memory import (
    LONGEST_PASSAGE,
    SEARCH_LIMIT,
    Item,
    MemoryCall,
    MemorySystem,
    MemoryUsage,
    MemoryWrapper,
    signature_of,
)
from eirkit.agents.telemetry import Consultation
from eirkit.boundary import attribute
from eirkit.errors import StoreError
from eirkit.tasks.task import Payload

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
        await call_with_timeout(seconds, "write", memory.write, Item(label_of(step), call.text))
        took = clock() - start
        if not weigh:
            return Consultation(t, call, (), took)
        used = await usage_of(memory, seconds)
        return Consultation(t, call, (), took, records=used.records, bytes=used.bytes)
    await call_with_timeout(seconds, "flush", memory.flush)
    found = await call_with_timeout(seconds, "search", memory.search, call.text, SEARCH_LIMIT)
    took = clock() - start
    texts = check_passages(found)
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


async def call_with_timeout(seconds: float, verb: str, method: Callable[..., Awaitable[T]], *arguments: object) -> T:
    """Return what a verb of a memory system returns.

    Raises:
        StoreError: it takes too long, cannot be called or awaited as a memory system's, or ends the program.
        PluginError: it raises an error of its own.
    """
    try:
        work = start_call(verb, method, arguments)
        if isinstance(work, CoroutineType):
            try:
                work = _Begun(work, work.send(None))
            except StopIteration as done:
                return cast(T, done.value)  # it never had to wait, and needs no clock
        elif not isinstance(work, Awaitable):
            raise StoreError(f"the memory system's {verb} is not async; write it as `async def {verb}`")
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError as error:
        raise StoreError(
            f"the memory system did not finish its {verb} within {seconds:g} s; give it more with timeout_seconds"
        ) from error
    except SystemExit as error:
        raise StoreError(
            f"the memory system's {verb} ended the program (SystemExit: {error}); let it raise an error of its own"
        ) from error
    except BaseException as error:  # noqa: BLE001 - plug-ins may raise anything
        owner = getattr(method, "__self__", method)
        name = owner.wrapped_name if isinstance(owner, MemoryWrapper) else type(owner).__name__
        attribute("memory", name, verb, error)


def start_call(verb: str, method: Callable[..., T], arguments: tuple[object, ...]) -> T:
    """Call a verb of a memory system.

    Raises:
        StoreError: it takes other arguments than the verb has.
    """
    try:
        return method(*arguments)
    except TypeError as error:
        if _takes(method, arguments):
            raise  # from inside the method, not from calling it
        raise StoreError(
            f"the memory system's {verb} cannot be called ({error}); write it as `{signature_of(verb)}`"
        ) from error


def _takes(method: Callable[..., object], arguments: tuple[object, ...]) -> bool:
    try:
        inspect.signature(method).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # of a compiled function: nothing is known
        return True
    return True


async def usage_of(memory: MemorySystem, seconds: float) -> MemoryUsage:
    """Return what a memory system says that it holds; nothing is known where it returns None."""
    used: object = await call_with_timeout(seconds, "usage", memory.usage)
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


def check_passages(found: object) -> list[str]:
    """Return what a search returned, if it is a sequence of texts; StoreError if not."""
    if isinstance(found, str) or not isinstance(found, Sequence):
        kind = "None" if found is None else f"a {type(found).__name__}"
        raise StoreError(f"the memory system's search returned {kind}; return a list of texts, [] if nothing is found")
    for text in found:
        if not isinstance(text, str):
            kind = type(text).__name__
            raise StoreError(f"the memory system's search returned a list with a {kind} in it; return a list of texts")
    return list(found)


async def read_stored(memory: MemorySystem, label: str, seconds: float) -> str | None:
    """Return what a memory system has under a label; StoreError if that is neither a text nor None."""
    text: object = await call_with_timeout(seconds, "read", memory.read, label)
    if text is None or isinstance(text, str):
        return text
    raise StoreError(
        f"the memory system's read returned a {type(text).__name__}; return the text under the label, None without one"
    )


async def _holds(memory: MemorySystem, step: int, submitted: Mapping[int, Payload], seconds: float) -> bool:
    text = await read_stored(memory, label_of(step), seconds)
    return text is not None and step in records_in(text[:LONGEST_PASSAGE], submitted)
