"""Runs one session to its end: awaits the model and the memory system, and records what each call returned.

If a search does not return a record that its query names, the record is read by its label, which separates records
that were never stored from records that were stored and not found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

from msgspec.structs import replace

from eirkit.errors import InfrastructureError
from eirkit.lacuna.agents.recognition import read_text, recognize
from eirkit.lacuna.agents.session import Session
from eirkit.lacuna.agents.telemetry import Consultation, Exchange, Trace
from eirkit.lacuna.memories.budgets import PromptBudget
from eirkit.lacuna.memories.calls import call_with_timeout, read_stored, usage_of
from eirkit.lacuna.memories.memory import (
    LONGEST_PASSAGE,
    Item,
    MemoryCall,
    MemoryResult,
    MemorySystem,
    label_of,
)
from eirkit.lacuna.memories.times import CALL_SECONDS
from eirkit.lacuna.memories.values import check_contents, check_passages
from eirkit.lacuna.models.model import Model, attribute_to
from eirkit.lacuna.tasks.task import Payload

USUAL_BUDGET = PromptBudget()


async def consult(
    memory: MemorySystem,
    t: int,
    call: MemoryCall,
    records: Mapping[int, Payload],
    clock: Callable[[], float],
    seconds: float = CALL_SECONDS,
    *,
    weigh: bool = False,
    budget: PromptBudget = USUAL_BUDGET,
) -> Consultation:
    """Make one call at step t and return what is known about it.

    Args:
        records: the values that right records contain: the agent's own answers, or what it computed again.
        seconds: time limit; StoreError is raised after it.
        weigh: query the usage after every write; this does not count toward the latency.
        budget: how many passages a search asks for, and how much of them is shown.
    """
    start = clock()
    if call.verb in ("observe", "recall"):
        return await _converse(memory, t, call, clock, seconds, budget)
    if call.verb == "write":
        (step,) = call.steps
        await call_with_timeout(seconds, "write", memory.write, Item(label_of(step), call.text))
        took = clock() - start
        if not weigh:
            return Consultation(t, call, (), took)
        used = await usage_of(memory, seconds)
        return Consultation(t, call, (), took, records=used.records, bytes=used.bytes)
    if call.verb == "forget":
        await call_with_timeout(seconds, "forget", memory.forget, call.text)
        return Consultation(t, call, (), clock() - start)
    await call_with_timeout(seconds, "flush", memory.flush)
    found = await call_with_timeout(seconds, "search", memory.search, call.text, budget.passages)
    took = clock() - start
    kept = tuple([step for step in call.check if await _holds(memory, step, records[step], seconds, t)])
    made = _retrieved(t, call, check_passages(found), took, budget, kept)
    if not call.steps:
        return made
    lacking, stated, uncertain = lacking_in(call, made.passages, records, t)
    held = [step for step in lacking if await _holds(memory, step, records[step], seconds, t)]
    return (
        replace(made, lacking=lacking, held=tuple(held), stated=stated, uncertain=uncertain)
        if lacking or uncertain
        else made
    )


def _retrieved(
    t: int, call: MemoryCall, texts: Sequence[str], took: float, budget: PromptBudget, kept: tuple[int, ...] = ()
) -> Consultation:
    """Return a search or recall with what of its passages is shown."""
    shown = budget.show(texts)
    return Consultation(
        t,
        call,
        shown.shown,
        took,
        len("".join(texts)),
        unshown=shown.unshown,
        unshown_ranks=shown.ranks,
        asked=budget.passages,
        kept=kept,
    )


Stated = tuple[tuple[int, tuple[str, ...]], ...]  # steps with the digits that were returned for them


def lacking_in(
    call: MemoryCall, passages: tuple[str, ...], records: Mapping[int, Payload], t: int
) -> tuple[tuple[int, ...], Stated, tuple[int, ...]]:
    """Return which records that a search named did not come back, which came with other digits, and which may have."""
    sought = {step: records[step] for step in call.steps if step in records}
    seen = recognize(passages, sought, best_first=True, now=t)
    if len(seen.present) == len(sought):
        return (), (), ()
    uncertain = tuple(sorted(seen.uncertain - seen.stated.keys()))
    lacking = tuple([step for step in sought if step not in seen.present and step not in uncertain])
    return lacking, tuple([(step, seen.stated[step]) for step in lacking if step in seen.stated]), uncertain


async def _converse(
    memory: MemorySystem, t: int, call: MemoryCall, clock: Callable[[], float], seconds: float, budget: PromptBudget
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
    found = await call_with_timeout(seconds, "recall", memory.recall, call.text, call.at, budget.passages)
    took = clock() - start
    return _retrieved(t, call, check_passages(found), took, budget)


async def _holds(memory: MemorySystem, step: int, values: Payload, seconds: float, t: int) -> bool:
    """True if the store has a record: under its own label its value alone is enough.

    A read that returns the record of another label does not show that this one is lost.
    """
    text = await read_stored(memory, label_of(step), seconds)
    if text is None:
        return False
    others = read_text(text[:LONGEST_PASSAGE]).statements
    if others and step not in others:
        return True
    found = recognize((text[:LONGEST_PASSAGE],), {step: values}, now=t)
    return step in found.present or (step in found.uncertain and step not in found.stated)


async def drive(
    session: Session,
    model: Model,
    memory: MemorySystem | None = None,
    trace: Trace | None = None,
    clock: Callable[[], float] = perf_counter,
    memory_seconds: float = CALL_SECONDS,
    weigh: bool = False,
    budget: PromptBudget = USUAL_BUDGET,
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
        budget: how many passages a search of the memory system asks for, and how much of them is shown.
    """
    trace = Trace() if trace is None else trace
    log = trace.log
    while (request := session.request()) is not None:
        t = session.position
        if isinstance(request, MemoryCall):
            if memory is None:
                raise InfrastructureError("the session needs an external memory; give --memory")
            consultation = await consult(
                memory, t, request, session.records, clock, memory_seconds, weigh=weigh, budget=budget
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
