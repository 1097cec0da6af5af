"""Calls one compactor in a process of its own, within its memory; `trial.py` asks it over an inherited socket."""

from __future__ import annotations

import asyncio
import math
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from eirkit.errors import ContractError
from eirkit.lacuna.memories.host import explain, serve
from eirkit.lacuna.memories.keeper import SOCKETS, LineSocket, adopt_orphans
from eirkit.limits import limit_memory
from eirkit.registry import relocate
from eirkit.vestige.tokens import exact_counter
from eirkit_coding.compaction.context import ContextCall, ContextMessage, LineCounter, fault_of
from eirkit_coding.compactors.compactor import Compactor, CompactorUsage, TokenBudget, find_compactor, make_compactor

MEMORY_BYTES = 4 << 30
MOST_MESSAGES = 100_000  # that a compactor may return


@dataclass(frozen=True, slots=True)
class RaisedError:
    """What a compactor raised, and where in the user's file."""

    reason: str
    place: str | None = None


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """What became of one compaction; it crosses the border between the processes as JSON."""

    seconds: float
    usage: CompactorUsage | None  # None: it gave no valid one
    messages: tuple[ContextMessage, ...]  # empty if anything is wrong
    raised: RaisedError | None
    fault: str  # what is wrong with what it returned


class CompactorHost:
    """One compactor, from loading its code to its end."""

    def __init__(self) -> None:
        self.compactor: Compactor | None = None
        self.counter = LineCounter(exact_counter())

    async def answer(self, verb: str, arguments: list[Any]) -> Any:
        """Carry out one call and return its result as plain data."""
        # On a thread, because a compactor may run an event loop of its own.
        if verb == "load":
            return await asyncio.to_thread(self.load, *arguments)
        return asdict(await asyncio.to_thread(self.compact, *arguments))

    def load(self, name: str, place: str | None, settings: Mapping[str, Any]) -> None:
        """Import and construct the compactor.

        Args:
            place: where its file is, if not at the path in its name.
        """
        if place is not None:
            relocate(name.rpartition(":")[0], Path(place))
        self.compactor = make_compactor(find_compactor(name), settings)

    def compact(self, messages: Sequence[Mapping[str, Any]], tokens: int) -> HostAnswer:
        """Return what the compactor makes of a context, or what is wrong with that."""
        assert self.compactor is not None
        given = tuple(
            ContextMessage(**{**message, "calls": tuple(ContextCall(**call) for call in message["calls"])})
            for message in messages
        )
        counter = LineCounter(exact_counter())  # each context is counted by itself, so that memory stays bounded
        found, raised, fault, began = None, None, "", perf_counter()
        try:
            found = self.compactor.compact(given, TokenBudget(tokens, counter))
        except Exception as error:  # noqa: BLE001 - an answer, since what was used before it counts too
            _, reason, *place = explain(error)
            raised = RaisedError(reason, *place)
        seconds = perf_counter() - began
        usage: CompactorUsage | None = self.compactor.usage()
        returned: list[ContextMessage] = []
        if raised is None:
            try:
                returned = checked(found)
            except (ContractError, AttributeError, TypeError, ValueError) as error:
                fault = str(error)
        if not is_usage(usage):  # what the compactor itself did wrong is told first
            fault = fault or "its usage() is not made of counts and dollars; return a CompactorUsage"
            usage = None
        return HostAnswer(seconds, usage, tuple(returned), raised, fault)


def is_usage(usage: Any) -> bool:
    """Return whether what a compactor says it used is made of numbers that can be added."""
    if not isinstance(usage, CompactorUsage):
        return False
    counts = usage.calls, usage.input_tokens, usage.output_tokens
    cost: Any = usage.cost_usd
    is_cost = cost is None or (isinstance(cost, int | float) and math.isfinite(cost) and cost >= 0)
    return is_cost and all(type(count) is int and count >= 0 for count in counts)


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
