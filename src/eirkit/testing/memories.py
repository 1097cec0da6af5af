"""`check_memory`: the conformance suite of memory systems."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from eirkit.errors import UsageError
from eirkit.lacuna.memories.calls import call_with_timeout, usage_of, wait_for
from eirkit.lacuna.memories.memory import Item, MemorySystem, missing_verbs
from eirkit.testing.conformance import Conformance, Requirement, try_all
from eirkit.testing.memory_faults import FAULTS, Fault, has_record, restarts
from eirkit.testing.opened_memory import (
    CALL_SECONDS,
    LIMIT,
    MANY_RECORDS,
    RECORDS,
    Factory,
    OpenedMemory,
    ReusedMemory,
    SuiteLimits,
    new_memory,
)

Awaited = Coroutine[Any, Any, str | None]


def check_memory(
    system: Factory,
    *,
    seconds: float = CALL_SECONDS,
    records: int = MANY_RECORDS,
    reuse: bool = False,
    limit: float | None = None,
) -> Conformance:
    """Run the conformance suite on a memory system and return what held.

    Args:
        system: the class, or a function that makes a new system; it is called for each requirement.
        seconds: time limit of one call.
        records: how many are written where it is tried with many; a slow system gets as many as it takes in 20 seconds,
            at least 64, and a note says so.
        reuse: whether a system stays open, and is reset, from one requirement to the next, as long as they hold; for
            systems that take long to start.
        limit: seconds after which no further requirement is begun; a note names those that are left.

    Raises:
        AssertionError: a requirement does not hold; the message names each of them, and one mistake once.
        UsageError: it was given neither a class nor a function that makes a system, or no records or no time.
    """
    _refuse_what_makes_nothing(system)
    if records < 1:
        raise UsageError(f"records is {records}; give 1 or more")
    if limit is not None and not limit > 0:
        raise UsageError(f"limit is {limit:g} s, in which nothing would be tested; give more, or None for no limit")
    limits = SuiteLimits(seconds, records)
    if reuse:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return _check_reused(system, limits, limit)  # here, so that Ctrl-C ends it
        with ThreadPoolExecutor(1) as elsewhere:  # as in a notebook
            return elsewhere.submit(_check_reused, system, limits, limit).result()
    return try_all(system, [_waiting(requirement, limits, wait_for) for requirement in REQUIREMENTS], limit)


def _check_reused(system: Factory, limits: SuiteLimits, limit: float | None) -> Conformance:
    """Run the suite in one event loop, to which an open system is bound."""
    idle: list[MemorySystem] = []

    async def close() -> None:
        while idle:
            await call_with_timeout(limits.seconds, "teardown", idle.pop().teardown)

    async def attempt(work: Awaitable[str | None]) -> str | None:
        try:
            return await work
        except BaseException:
            with suppress(Exception):
                await close()  # what a failure left behind must not be the next requirement's finding
            raise

    def lend() -> MemorySystem:
        return ReusedMemory(idle, system)

    with asyncio.Runner() as runner:
        tried = [
            _waiting(one, limits, lambda work: runner.run(attempt(work)), None if one in _FRESH else lend)
            for one in REQUIREMENTS
        ]
        try:
            return try_all(system, tried, limit)
        finally:
            runner.run(close())


def _waiting(
    requirement: Fault, limits: SuiteLimits, wait: Callable[[Awaited], str | None], instead: Factory | None = None
) -> Requirement[Factory]:
    async def run(system: Factory) -> str | None:
        return await requirement(system, limits)

    def tried(system: Factory) -> str | None:
        return wait(run(instead or system))

    tried.__doc__ = requirement.__doc__
    return tried


def _refuse_what_makes_nothing(system: object) -> None:
    if not callable(system):
        kind = type(system).__name__
        if not missing_verbs(type(system)):
            raise UsageError(
                f"check_memory makes a new system for each requirement; give the class, check_memory({kind})"
            )
        raise UsageError(f"check_memory was given a {kind}; give the class of a memory system")


async def _stores(system: Factory, limits: SuiteLimits) -> None:
    """What was written can be read by its label, word for word."""
    async with OpenedMemory(system, limits) as opened:
        for item in await opened.fill("stores"):
            kept = await opened.read(item.label)
            assert kept is not None, f"nothing is stored under {item.label}"
            assert item.text in kept, f"{item.label} is stored as {kept[:80]!r}, which does not have {item.text!r}"
        assert await opened.read("A_999") is None, "something is stored under a label that was never written"


async def _finds(system: Factory, limits: SuiteLimits) -> None:
    """A search returns texts, as many as asked for at most, and finds at least one written record by its label."""
    async with OpenedMemory(system, limits) as opened:
        items = await opened.fill("finds")
        answers = [await opened.find(item) for item in items]
        every = " ".join(item.text.partition(" = ")[0] for item in items)
        for limit in (LIMIT, 1):
            answers.append(await opened.search(every, limit))
            assert len(answers[-1]) <= limit, f"wrong limit: search({every!r}, {limit}) returned {len(answers[-1])}"
        assert bool(answers[-1]) == bool(answers[-2]), f"wrong limit: search({every!r}, 1) returned nothing"
        assert all(len(found) <= LIMIT for found in answers), f"more than {LIMIT} passages came back"
        hits = sum(
            any(has_record(passage, item) for passage in found) for item, found in zip(items, answers, strict=False)
        )
        assert hits, "no record was found by its label"


async def _isolates(system: Factory, limits: SuiteLimits) -> None:
    """Nothing written in one scope can be found in the next."""
    async with OpenedMemory(system, limits) as opened:
        items = await opened.fill("first")
        await opened.reset("second")
        for item in items[:3]:
            assert await opened.read(item.label) is None, f"{item.label} of the scope before can still be read"
            assert not any(item.text in passage for passage in await opened.find(item)), f"{item.label} is still found"


async def _separates(system: Factory, limits: SuiteLimits) -> None:
    """Two systems at the same time never see each other's records."""
    async with OpenedMemory(system, limits) as one, OpenedMemory(system, limits) as other:
        ours, theirs = await asyncio.gather(one.fill("one", 1), other.fill("other", 1 + RECORDS))
        for item in theirs[:3]:
            assert await one.read(item.label) is None, f"{item.label} of a system beside it can be read"
            assert not any(item.text in passage for passage in await one.find(item)), f"{item.label} is found"
        kept = await other.read(ours[0].label)
        assert ours[0].text not in (kept or ""), "a record of the first system can be read in the second"


async def _survives(system: Factory, limits: SuiteLimits) -> None:
    """Unusual queries and texts are handled: empty, very long, quotes, control characters."""
    async with OpenedMemory(system, limits) as opened:
        await opened.fill("survives")
        for query in ("?", "A_1' OR 1=1 --", "\x07 \u202e A_2", "A_3 " * 500, '{}[]()*"\\'):
            found = await opened.search(query)
            assert len(found) <= LIMIT, f"more than {LIMIT} passages came back for {query[:20]!r}"
        await opened.write(Item("A_77", "A_77 = 0001; DROP TABLE records; 'quoted'"), flush=False)


async def _reports(system: Factory, limits: SuiteLimits) -> None:
    """Usage says what is held, without negative numbers, or None where the system cannot tell."""
    async with OpenedMemory(system, limits) as opened:
        await opened.fill("reports")
        used = await usage_of(opened.memory, limits.seconds)
        counted = (used.records, used.bytes, used.model_calls, used.input_tokens, used.output_tokens)
        assert all(count is None or count >= 0 for count in counted), "a count is negative"


async def _closes(system: Factory, limits: SuiteLimits) -> None:
    """It can be torn down at once, twice, and without having been set up."""
    memory = new_memory(system)
    await call_with_timeout(limits.seconds, "teardown", memory.teardown)
    await call_with_timeout(limits.seconds, "setup", memory.setup)
    await call_with_timeout(limits.seconds, "teardown", memory.teardown)
    await call_with_timeout(limits.seconds, "teardown", memory.teardown)


REQUIREMENTS = (
    _stores,
    _finds,
    _isolates,
    _separates,
    _survives,
    _reports,
    _closes,
    *FAULTS,
)
_FRESH = (_closes, restarts)  # they open and close a system themselves
