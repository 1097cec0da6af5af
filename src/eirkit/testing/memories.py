"""`check_memory`: the conformance suite of memory systems."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from typing import Any

from eirkit.agents.driver import wait_for
from eirkit.agents.memory import Item, MemorySystem, MemoryWrapper, can_forget, missing_verbs
from eirkit.agents.memory_calls import call_with_timeout, read_stored, usage_of
from eirkit.agents.memory_values import check_passages
from eirkit.agents.stores.child_process import ProcessMemory
from eirkit.agents.stores.endpoint import MeteredMemory
from eirkit.agents.stores.memory_adapter import adapt
from eirkit.errors import UsageError, describe
from eirkit.testing.conformance import Conformance, Requirement, try_all

RECORDS = 8  # written by the suite; few, because some systems call a model for each
LIMIT = 5  # passages requested

Factory = Callable[[], Any]  # returns a MemorySystem, or whatever has its methods


def check_memory(system: Factory, *, seconds: float = 120.0) -> Conformance:
    """Run the conformance suite on a memory system and return what held.

    Args:
        system: the class, or a function that makes a new system; it is called for each requirement.
        seconds: time limit of one call.

    Raises:
        AssertionError: a requirement does not hold; the message names each of them, and one mistake once.
        UsageError: it was given neither a class nor a function that makes a system.
    """
    _refuse_what_makes_nothing(system)
    return try_all(system, [_waiting(requirement, seconds) for requirement in REQUIREMENTS])


def _waiting(requirement: Callable[[Factory, float], Awaitable[None]], seconds: float) -> Requirement[Factory]:
    async def run(system: Factory) -> None:
        await requirement(system, seconds)

    def tried(system: Factory) -> None:
        wait_for(run(system))

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


class _Opened:
    """A system between `setup` and `teardown`."""

    def __init__(self, system: Factory, seconds: float) -> None:
        self.memory, self.seconds = _new(system), seconds

    async def __aenter__(self) -> _Opened:
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

    async def fill(self, scope: str, first: int = 1) -> list[Item]:
        """Write a few records into a new scope and return them."""
        await call_with_timeout(self.seconds, "reset", self.memory.reset, scope)
        items = [Item(f"A_{t}", f"A_{t:02} = {1000 + 7 * t}") for t in range(first, first + RECORDS)]
        for item in items:
            await call_with_timeout(self.seconds, "write", self.memory.write, item)
        await call_with_timeout(self.seconds, "flush", self.memory.flush)
        return items

    async def find(self, item: Item) -> list[str]:
        label = item.text.partition(" = ")[0]
        return await self.search(label)

    async def read(self, label: str) -> str | None:
        return await read_stored(self.memory, label, self.seconds)

    async def search(self, query: str) -> list[str]:
        return check_passages(await call_with_timeout(self.seconds, "search", self.memory.search, query, LIMIT))


def _new(system: Factory) -> MemorySystem:
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


async def _stores(system: Factory, seconds: float) -> None:
    """What was written can be read by its label, word for word."""
    async with _Opened(system, seconds) as opened:
        for item in await opened.fill("stores"):
            kept = await opened.read(item.label)
            assert kept is not None, f"nothing is stored under {item.label}"
            assert item.text in kept, f"{item.label} is stored as {kept[:80]!r}, which does not have {item.text!r}"
        assert await opened.read("A_999") is None, "something is stored under a label that was never written"


async def _finds(system: Factory, seconds: float) -> None:
    """A search returns texts, as many as asked for at most, and finds at least one written record by its label."""
    async with _Opened(system, seconds) as opened:
        items = await opened.fill("finds")
        answers = [await opened.find(item) for item in items]
        assert all(len(found) <= LIMIT for found in answers), f"more than {LIMIT} passages came back"
        hits = sum(any(item.text in passage for passage in found) for item, found in zip(items, answers, strict=True))
        assert hits, "no record was found by its label"


async def _replaces(system: Factory, seconds: float) -> None:
    """A record that is written again has its new text."""
    async with _Opened(system, seconds) as opened:
        item = (await opened.fill("replaces"))[0]
        again = Item(item.label, item.text.replace("1007", "4242"))
        await call_with_timeout(seconds, "write", opened.memory.write, again)
        await call_with_timeout(seconds, "flush", opened.memory.flush)
        assert again.text in (await opened.read(item.label) or ""), "the label still has its old text"


async def _isolates(system: Factory, seconds: float) -> None:
    """Nothing written in one scope can be found in the next."""
    async with _Opened(system, seconds) as opened:
        items = await opened.fill("first")
        await call_with_timeout(seconds, "reset", opened.memory.reset, "second")
        for item in items[:3]:
            assert await opened.read(item.label) is None, f"{item.label} of the scope before can still be read"
            assert not any(item.text in passage for passage in await opened.find(item)), f"{item.label} is still found"


async def _separates(system: Factory, seconds: float) -> None:
    """Two systems at the same time never see each other's records."""
    async with _Opened(system, seconds) as one, _Opened(system, seconds) as other:
        ours, theirs = await asyncio.gather(one.fill("one", 1), other.fill("other", 1 + RECORDS))
        for item in theirs[:3]:
            assert await one.read(item.label) is None, f"{item.label} of a system beside it can be read"
            assert not any(item.text in passage for passage in await one.find(item)), f"{item.label} is found"
        assert await other.read(ours[0].label) is None, "a record of the first system can be read in the second"


async def _survives(system: Factory, seconds: float) -> None:
    """Unusual queries and texts are handled: empty, very long, quotes, control characters."""
    async with _Opened(system, seconds) as opened:
        await opened.fill("survives")
        for query in ("?", "A_1' OR 1=1 --", "\x07 \u202e A_2", "A_3 " * 500, '{}[]()*"\\'):
            found = await opened.search(query)
            assert len(found) <= LIMIT, f"more than {LIMIT} passages came back for {query[:20]!r}"
        await call_with_timeout(
            seconds, "write", opened.memory.write, Item("A_77", "A_77 = 0001; DROP TABLE records; 'quoted'")
        )


async def _reports(system: Factory, seconds: float) -> None:
    """Usage says what is held, without negative numbers, or None where the system cannot tell."""
    async with _Opened(system, seconds) as opened:
        await opened.fill("reports")
        used = await usage_of(opened.memory, seconds)
        counted = (used.records, used.bytes, used.model_calls, used.input_tokens, used.output_tokens)
        assert all(count is None or count >= 0 for count in counted), "a count is negative"


async def _forgets(system: Factory, seconds: float) -> None:
    """Where it can forget, what it forgot is gone and the rest is there."""
    async with _Opened(system, seconds) as opened:
        items = await opened.fill("forgets")
        plugin = _plugin(opened.memory)
        if plugin.can_forget if isinstance(plugin, ProcessMemory) else can_forget(type(plugin)):
            await call_with_timeout(seconds, "forget", opened.memory.forget, items[0].label)
            await call_with_timeout(seconds, "flush", opened.memory.flush)
            assert await opened.read(items[0].label) is None, "a forgotten record can still be read"
            assert await opened.read(items[1].label) is not None, "another record went with it"


async def _closes(system: Factory, seconds: float) -> None:
    """It can be torn down at once, twice, and without having been set up."""
    memory = _new(system)
    await call_with_timeout(seconds, "teardown", memory.teardown)
    await call_with_timeout(seconds, "setup", memory.setup)
    await call_with_timeout(seconds, "teardown", memory.teardown)
    await call_with_timeout(seconds, "teardown", memory.teardown)


REQUIREMENTS = (
    _stores,
    _finds,
    _replaces,
    _isolates,
    _separates,
    _survives,
    _reports,
    _forgets,
    _closes,
)
