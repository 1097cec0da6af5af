"""Runs one session to its end: awaits the model and the memory system, and records what each call returned.

If a search does not return a record that its query names, the record is read by its label, which separates records
that were never stored from records that were stored and not found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from time import perf_counter
from types import CoroutineType
from typing import Any, TypeVar, cast

from eirkit.agents.memory import (
    LONGEST_PASSAGE,
    MOST_PASSAGES,
    SEARCH_LIMIT,
    Item,
    MemoryCall,
    MemoryResult,
    MemorySystem,
    MemoryUsage,
    MemoryWrapper,
)
from eirkit.agents.memory_times import CALL_SECONDS
from eirkit.agents.memory_values import check_contents, check_passages, check_read, check_usage, start_call
from eirkit.agents.model import Model, attribute_to
from eirkit.agents.session import Session
from eirkit.agents.telemetry import Consultation, Exchange, Trace
from eirkit.agents.wording import recognise
from eirkit.errors import InfrastructureError, StoreError
from eirkit.registry import attribute
from eirkit.tasks.task import Payload
from eirkit.validity import cut_passage

T = TypeVar("T")


async def consult(
    memory: MemorySystem,
    t: int,
    call: MemoryCall,
    records: Mapping[int, Payload],
    clock: Callable[[], float],
    seconds: float = CALL_SECONDS,
    *,
    weigh: bool = False,
    passages: int | None = SEARCH_LIMIT,
) -> Consultation:
    """Make one call at step t and return what is known about it.

    Args:
        records: the values that right records contain: the agent's own answers, or what it computed again.
        seconds: time limit; StoreError is raised after it.
        weigh: query the usage after every write; this does not count towards the latency.
        passages: that a search asks for; None: all that the system returns, of which the first are shown.
    """
    start = clock()
    if call.verb in ("observe", "recall"):
        return await _converse(memory, t, call, clock, seconds, passages)
    if call.verb == "write":
        (step,) = call.steps
        await call_with_timeout(seconds, "write", memory.write, Item(label_of(step), call.text))
        took = clock() - start
        if not weigh:
            return Consultation(t, call, (), took)
        used = await usage_of(memory, seconds)
        return Consultation(t, call, (), took, records=used.records, bytes=used.bytes)
    await call_with_timeout(seconds, "flush", memory.flush)
    limit = MOST_PASSAGES if passages is None else passages
    found = await call_with_timeout(seconds, "search", memory.search, call.text, limit)
    took = clock() - start
    texts = check_passages(found)
    returned = len("".join(texts))
    shown = tuple(texts[:limit])
    if returned > LONGEST_PASSAGE:
        shown = tuple([cut_passage(text, LONGEST_PASSAGE) for text in shown])
    if not call.steps:
        return Consultation(t, call, shown, took, returned)
    lacking, stated, uncertain = lacking_in(call, shown, records)
    held = [step for step in lacking if await _holds(memory, step, records[step], seconds)]
    return Consultation(t, call, shown, took, returned, lacking, tuple(held), stated, uncertain=uncertain)


Stated = tuple[tuple[int, tuple[str, ...]], ...]  # steps with the digits that were returned for them


def lacking_in(
    call: MemoryCall, passages: tuple[str, ...], records: Mapping[int, Payload]
) -> tuple[tuple[int, ...], Stated, tuple[int, ...]]:
    """Return which records that a search named did not come back, which came with other digits, and which may have."""
    sought = {step: records[step] for step in call.steps if step in records}
    seen = recognise(passages, sought, best_first=True)
    if len(seen.present) == len(sought):
        return (), (), ()
    uncertain = tuple(sorted(seen.uncertain - seen.stated.keys()))
    lacking = tuple([step for step in sought if step not in seen.present and step not in uncertain])
    return lacking, tuple([(step, seen.stated[step]) for step in lacking if step in seen.stated]), uncertain


async def _converse(
    memory: MemorySystem, t: int, call: MemoryCall, clock: Callable[[], float], seconds: float, passages: int | None
) -> Consultation:
    """Let a system observe a session, or recall what helps to answer a question."""
    start = clock()
    if call.verb == "observe":
        await call_with_timeout(seconds, "observe", memory.observe, call.messages, call.session, call.at)
        await call_with_timeout(seconds, "flush", memory.flush)
        took = clock() - start
        used = await usage_of(memory, seconds)
        held = check_contents(await call_with_timeout(seconds, "contents", memory.contents))
        stored = None if held is None else tuple(held)
        return Consultation(t, call, (), took, records=used.records, bytes=used.bytes, stored=stored)
    limit = MOST_PASSAGES if passages is None else passages
    found = await call_with_timeout(seconds, "recall", memory.recall, call.text, call.at, limit)
    took = clock() - start
    texts = check_passages(found)
    shown = tuple(cut_passage(text, LONGEST_PASSAGE) for text in texts[:limit])
    return Consultation(t, call, shown, took, sum(map(len, texts)))


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


def label_of(step: int) -> str:
    """Return the label of a step as memory systems see it, without padding."""
    return f"A_{step}"


async def read_stored(memory: MemorySystem, label: str, seconds: float) -> str | None:
    """Return what a memory system stores under a label; raise StoreError if it is neither a string nor None."""
    return check_read(await call_with_timeout(seconds, "read", memory.read, label))


async def _holds(memory: MemorySystem, step: int, values: Payload, seconds: float) -> bool:
    """True if the store has a record: under its own label its value alone is enough."""
    text = await read_stored(memory, label_of(step), seconds)
    if text is None:
        return False
    found = recognise((text[:LONGEST_PASSAGE],), {step: values})
    return step in found.present or (step in found.uncertain and step not in found.stated)


async def drive(
    session: Session,
    model: Model,
    memory: MemorySystem | None = None,
    trace: Trace | None = None,
    clock: Callable[[], float] = perf_counter,
    memory_seconds: float = CALL_SECONDS,
    weigh: bool = False,
    passages: int | None = SEARCH_LIMIT,
) -> Trace:
    """Run a session to its end and return everything that happened.

    Errors of the model or the memory system are raised as PluginError, ModelError or StoreError; nothing that an agent
    replies makes a session raise.

    Args:
        memory: with an empty scope; the caller sets it up, resets it and tears it down.
        trace: where to log, so that an aborted run keeps its events.
        clock: returns seconds, for the latency of the memory system; models report their own.
        memory_seconds: time limit of one memory call.
        weigh: query the usage of the memory system after every write.
        passages: that a search of the memory system asks for; None: all that it returns.
    """
    trace = Trace() if trace is None else trace
    log = trace.log
    while (request := session.request()) is not None:
        t = session.position
        if isinstance(request, MemoryCall):
            if memory is None:
                raise InfrastructureError("the session needs an external memory; give --memory")
            consultation = await consult(
                memory, t, request, session.records, clock, memory_seconds, weigh=weigh, passages=passages
            )
            log.append(consultation)
            session.receive_memory(MemoryResult(consultation.passages))
        else:
            try:  # inlined `ask_model`: this loop is hot, and a further coroutine per call is measurable
                reply = await model.reply(request)
            except BaseException as error:  # noqa: BLE001 - plug-ins may raise anything
                attribute_to(model, "reply", error)
            log.append(Exchange(t, request, reply))
            session.receive(reply)
        log.extend(session.drain())
    trace.ending = session.ending
    return trace


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
