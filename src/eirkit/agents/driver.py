"""Runs one session to its end with a model and an optional memory system; all awaiting happens here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
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

    Errors of the model or the memory system are raised as PluginError, ModelError or StoreError; nothing that an agent
    replies makes a session raise.

    Args:
        memory: with an empty scope; the caller sets it up, resets it and tears it down.
        trace: where to log, so that an aborted run keeps its events.
        clock: returns seconds, for the latency of the memory system; models report their own.
        memory_seconds: time limit of one memory call.
        weigh: query the usage of the memory system after every write.
    """
    trace = Trace() if trace is None else trace
    log = trace.log
    while (request := session.request()) is not None:
        t = session.position
        if isinstance(request, MemoryCall):
            if memory is None:
                raise InfrastructureError("the session needs an external memory; give --memory")
            consultation = await consult(memory, t, request, session.records, clock, memory_seconds, weigh=weigh)
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
