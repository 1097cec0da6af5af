"""Calls one compactor in a process of its own, within its memory; `trial.py` asks it over an inherited socket."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

from eirkit.errors import ContractError
from eirkit.lacuna.memories.host import explain, serve
from eirkit.lacuna.memories.keeper import SOCKETS, LineSocket, adopt_orphans
from eirkit.limits import limit_memory
from eirkit.registry import relocate
from eirkit.vestige.tokens import exact_counter
from eirkit_coding.compaction.context import ContextMessage, LineCounter, fault_of
from eirkit_coding.compactors.compactor import Compactor, TokenBudget, find_compactor, make_compactor

MEMORY_BYTES = 4 << 30
MOST_MESSAGES = 100_000  # that a compactor may return


class CompactorHost:
    """One compactor, from loading its code to its end."""

    def __init__(self) -> None:
        self.compactor: Compactor | None = None
        self.counter = LineCounter(exact_counter())

    async def answer(self, verb: str, arguments: list[Any]) -> Any:
        """Carry out one call and return its result as plain data."""
        # On a thread, because a compactor may run an event loop of its own.
        return await asyncio.to_thread(self.load if verb == "load" else self.compact, *arguments)

    def load(self, name: str, place: str | None, settings: Mapping[str, Any]) -> None:
        """Import and construct the compactor.

        Args:
            place: where its file is, if not at the path in its name.
        """
        if place is not None:
            relocate(name.rpartition(":")[0], Path(place))
        self.compactor = make_compactor(find_compactor(name), settings)

    def compact(self, messages: Sequence[Mapping[str, Any]], tokens: int) -> dict[str, Any]:
        """Return what the compactor makes of a context, or what is wrong with that."""
        assert self.compactor is not None
        given = tuple(map(ContextMessage.from_json, messages))
        counter = LineCounter(exact_counter())  # each context is counted by itself, so that memory stays bounded
        found, raised, began = None, None, perf_counter()
        try:
            found = self.compactor.compact(given, TokenBudget(tokens, counter))
        except Exception as error:  # noqa: BLE001 - an answer, since what was used before it counts too
            raised = explain(error)[1:]
        spent = {"seconds": perf_counter() - began, "usage": asdict(self.compactor.usage())}
        if raised is not None:
            return {"raised": raised, **spent}
        try:
            return {"messages": [one.as_json() for one in checked(found)], **spent}
        except (ContractError, AttributeError, TypeError, ValueError) as error:
            return {"fault": str(error), **spent}


def checked(messages: Any) -> list[ContextMessage]:
    """Return messages as a list.

    Raises:
        ContractError: they are no messages, or a model's API would refuse them.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Sequence):
        raise ContractError(f"it returned a {type(messages).__name__}; return a list of messages")
    if len(messages) > MOST_MESSAGES:
        raise ContractError(f"it returned {len(messages):,} messages; return fewer than {MOST_MESSAGES:,}")
    found = list(messages)
    if fault := fault_of(found):
        raise ContractError(fault)
    return found


async def main() -> None:
    """Serve eirkit over the inherited socket."""
    adopt_orphans()
    limit_memory(MEMORY_BYTES)
    calls, _ = os.environ.pop(SOCKETS).split()
    await serve(CompactorHost(), LineSocket(socket.socket(fileno=int(calls))))


if __name__ == "__main__":
    asyncio.run(main())
