"""Drives one session with one model and, where it has one, its external memory; all waiting happens here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any, TypeVar

from eirkit.agents.memory import MemoryCall, MemoryResult, MemorySystem
from eirkit.agents.memory_calls import MEMORY_SECONDS, consult
from eirkit.agents.model import Model, attribute_to
from eirkit.agents.session import Session
from eirkit.agents.telemetry import Exchange, Trace
from eirkit.errors import InfrastructureError

T = TypeVar("T")


async def drive(
    session: Session,
    model: Model,
    memory: MemorySystem | None = None,
    trace: Trace | None = None,
    clock: Callable[[], float] = perf_counter,
    memory_seconds: float = MEMORY_SECONDS,
    weigh: bool = False,
) -> Trace:
    """Run a session to its end and return everything that happened.

    What the model or the memory system raises arrives as a PluginError, a ModelError or a StoreError; a session raises
    nothing that an agent could provoke.

    Args:
        memory: empty, in a scope of its own; whoever made it sets it up, resets it and tears it down.
        trace: where to write, so that a run which breaks off leaves what it had.
        clock: seconds, for the latency of the memory system; models report their own.
        memory_seconds: how long the memory system may take for one call.
        weigh: ask the memory system after every write what it holds.
    """
    trace = Trace() if trace is None else trace
    log = trace.log
    while (request := session.request()) is not None:
        t = session.position
        if isinstance(request, MemoryCall):
            if memory is None:
                raise InfrastructureError("the session asks for an external memory and has none; give --memory")
            consultation = await consult(memory, t, request, session.submitted, clock, memory_seconds, weigh=weigh)
            log.append(consultation)
            session.receive_memory(MemoryResult(consultation.passages))
        else:
            try:  # as ask_model does, without a coroutine more in the loop that everything runs through
                reply = await model.reply(request)
            except BaseException as error:  # noqa: BLE001 - plug-ins may raise anything
                attribute_to(model, "reply", error)
            log.append(Exchange(t, request, reply))
            session.receive(reply)
        log.extend(session.drain())
    trace.ending = session.ending
    return trace


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns, also where an event loop is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as elsewhere:
        return elsewhere.submit(asyncio.run, work).result()
