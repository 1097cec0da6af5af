"""Executes the calls to a memory system inside its own process; `keeper.py` starts it, `child_process.py` calls it.

Its only connection is the socket that it inherits. Whatever the system raises is an answer; no error ends the process.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from eirkit.errors import EirkitError, PluginError, StoreError, UsageError, describe
from eirkit.lacuna.memories.keeper import LONGEST_LINE, SOCKETS, LineSocket, adopt_orphans
from eirkit.lacuna.memories.memory import Item, MemorySystem, find_memory
from eirkit.lacuna.memories.questions import ENDPOINT, NOWHERE, SystemFacts, facts_of, settings_of
from eirkit.lacuna.memories.validity import EndedText
from eirkit.lacuna.memories.values import check_contents, check_passages, check_read, check_usage, start_call
from eirkit.lacuna.models.message import Message
from eirkit.registry import place_in_user_file, relocate

LONGEST_REASON = 2_000  # characters


class Host:
    """One memory system, from loading its code to its end."""

    def __init__(self) -> None:
        self.kind: Any = None  # the class of the system, once it is loaded
        self.memory: Any = None

    async def answer(self, verb: str, arguments: list[Any]) -> Any:
        """Carry out one call and return its result as plain data."""
        if verb == "load":
            return asdict(self.load(*arguments))
        if verb in ("try", "construct"):
            return getattr(self, verb if verb != "try" else "attempt")(*arguments)
        if verb == "write":
            return await self.call(verb, Item(*arguments))
        if verb == "write_together":
            writers = (self.call("write", Item(*one)) for one in arguments)
            done = await asyncio.gather(*writers, return_exceptions=True)  # no writer goes on after the answer
            for failed in (one for one in done if isinstance(one, BaseException)):
                raise failed
            return None
        if verb == "observe":
            messages, *rest = arguments
            return await self.call(verb, [Message(*one) for one in messages], *rest)
        found = await self.call(verb, *arguments)
        if verb in ("search", "recall"):
            return [[one.text, one.until] if isinstance(one, EndedText) else one for one in check_passages(found)]
        if verb == "contents":
            return check_contents(found)
        if verb == "read":
            return check_read(found)
        return asdict(check_usage(found)) if verb == "usage" else None

    def load(self, name: str, place: str | None, settings: Mapping[str, Any]) -> SystemFacts:
        """Import the system and return the facts about it.

        Args:
            place: where the file of the system is, if not at the path in its name.
        """
        if place is not None:
            relocate(name.rpartition(":")[0], Path(place))
        self.kind = find_memory(name)
        return facts_of(self.kind, settings)

    def attempt(self, settings: Mapping[str, Any]) -> None:
        """Construct a system only to see whether it accepts its settings."""
        known = settings_of(self.kind)
        given = {name: value for name, value in settings.items() if name in known}
        self.kind(**given, **({ENDPOINT: NOWHERE} if ENDPOINT in known else {}))

    def construct(self, settings: Mapping[str, Any], truth: Mapping[str, str] | None) -> None:
        """Construct the system that is called from now on.

        Args:
            truth: the true records by label, for a system that may see them.
        """
        self.memory = self.kind(**settings) if truth is None else self.kind.for_task(truth)

    async def call(self, verb: str, *arguments: Any) -> Any:
        """Return the result of a method; a plain function may block here, where nothing else waits."""
        method = getattr(self.memory, verb, None)
        if method is None:
            caller = self if verb in ("observe", "recall") else self.memory  # these two call others, which may block
            return await getattr(MemorySystem, verb)(caller, *arguments)
        done = start_call(verb, method, arguments)
        return await done if inspect.isawaitable(done) else done

    async def write(self, item: Item) -> None:
        await self.call("write", item)

    async def search(self, query: str, limit: int) -> Any:
        return await self.call("search", query, limit)


def explain(error: BaseException) -> list[Any]:
    """Return what was raised, as an answer."""
    if isinstance(error, EirkitError) and not isinstance(error, PluginError):
        kind = "store" if isinstance(error, StoreError) else "usage" if isinstance(error, UsageError) else "raised"
        if kind != "raised":
            return [kind, str(error)]
    try:
        words = describe(error)
    except BaseException:  # noqa: BLE001 - the words of a foreign error are foreign code
        words = type(error).__name__
    return ["raised", words[:LONGEST_REASON], place_in_user_file(error)]


class Answering(Protocol):
    """Whoever carries out calls in such a process."""

    async def answer(self, verb: str, arguments: list[Any]) -> Any: ...


async def serve(host: Answering, lines: LineSocket) -> None:
    """Execute calls until eirkit disconnects."""
    while line := await lines.receive():
        verb, *arguments = json.loads(line)
        try:
            text = json.dumps(["done", await host.answer(verb, arguments)])
            if len(text) > LONGEST_LINE:
                raise StoreError(f"{verb} returned {len(text) >> 20} MiB; return less")
        except BaseException as error:  # noqa: BLE001 - reported to eirkit
            text = json.dumps(explain(error))
        await lines.send(text.encode())


async def main() -> None:
    """Serve eirkit over the inherited socket."""
    adopt_orphans()  # so that a system can end what its servers leave behind
    calls, _ = os.environ.pop(SOCKETS).split()
    host = Host()
    try:
        await serve(host, LineSocket(socket.socket(fileno=int(calls))))
    finally:
        with suppress(BaseException):
            if host.memory is not None:
                await host.call("teardown")  # also if eirkit was killed


if __name__ == "__main__":
    asyncio.run(main())
