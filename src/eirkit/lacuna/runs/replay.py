"""Plays one stored run again from its recorded replies, and says which of its records do not follow from them.

Replies and passages are taken from the events; prompts, answers, verdicts, fates and the run record are computed anew
and must be equal to the stored ones. A run can also be made anew with its model and memory, where both are scripts.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import msgspec
from msgspec import Struct, structs

from eirkit.errors import EirkitError, UntrustedError
from eirkit.lacuna.agents.driver import lacking_in
from eirkit.lacuna.agents.telemetry import Consultation, Exchange, Trace, trace_of
from eirkit.lacuna.findings.causes import score
from eirkit.lacuna.memories.calls import wait_for
from eirkit.lacuna.memories.factory import reason_absent
from eirkit.lacuna.memories.memory import (
    LONGEST_PASSAGE,
    OWN_NUMBER,
    SEARCH_LIMIT,
    MemoryCall,
    MemoryResult,
    MemoryUsage,
    memories,
)
from eirkit.lacuna.memories.plan import MemoryPool
from eirkit.lacuna.models.factory import make_model, split_model
from eirkit.lacuna.models.model import Model, Reply, Request, close_model
from eirkit.lacuna.models.replay import recorded_reply
from eirkit.lacuna.models.scrubber import Scrubber
from eirkit.lacuna.runs.attempt import CellContext, MemoryUse, attempt, finished_run, session_of
from eirkit.lacuna.runs.cells import Cell, recorded_cell
from eirkit.lacuna.runs.manifest import SystemMessages
from eirkit.lacuna.runs.workers import CellBatch, cell_context_of
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.task import GeneratedTask
from eirkit.records.budgets import MOST_PASSAGES
from eirkit.records.database import FinishedRun
from eirkit.records.events import Event, MemoryExchange, ModelExchange, decode_events, encode_events
from eirkit.records.runs import Failure, MemoryProfile, RunRecord, RunScore
from eirkit.records.settings import Setting
from eirkit.registry import records_read

ROUNDING_SECONDS = 1e-6  # times are stored with six digits, and sums of them are rounded once more
# What reading a file that somebody else wrote may raise.
UNREADABLE = (
    *(EirkitError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError),
    *(OSError, RecursionError, MemoryError),
)
_SCRIPTS = ("reference", "scripted")
_ITS_OWN = "eirkit.lacuna.memories.in_process"  # memories that need nothing but this process
_IN_MEMORY_RECORD = tuple(one.name for one in fields(MemoryUsage))  # what a system says of itself


class DiffersError(EirkitError):
    """What a run recorded is not what follows from it."""


@dataclass(slots=True)
class Replays:
    """Plays recorded runs again; cells and their system messages are made once."""

    plugins: bool = False  # whether code that a record names may be run, and files be opened
    planned: Mapping[str, Setting] | None = None  # by cell: what a record must say of it; None: anything
    _contexts: dict[str, CellContext] = field(default_factory=dict)
    _rules: SystemMessages = field(default_factory=SystemMessages)

    def check(self, record: RunRecord, lines: bytes) -> tuple[bool, list[str]]:
        """Return whether one run was played again, and what is wrong with it.

        A run whose texts were not kept cannot be played; its score is computed again from its answers.

        Args:
            lines: its events.

        Raises:
            UntrustedError: the record names code or a file, and `plugins` does not allow it.
        """
        try:
            events = decode_events(lines, record.run)
            context, task = self.context_of(record)
            if any(isinstance(event, ModelExchange) and event.reply is None for event in events):
                return False, list(_scored_again(context, task, record, events))
            again = finished_run(context, task, *_played(context, task, record, events))
        except DiffersError as error:
            return True, [str(error)]
        except UntrustedError:
            raise  # it could be played again, if the user trusts it
        except UNREADABLE as error:
            words = " ".join(str(error).split())[:200]
            return True, [f"cannot be played again ({type(error).__name__}: {words})"]
        found = []
        if again.events != lines:
            found.append(f"its events do not follow from its replies ({_first_difference(lines, again.events)})")
        if changed := differing(record, again.record):
            found.append(f"its {', '.join(changed)} do not follow from its events")
        return True, found

    def made_anew(self, record: RunRecord, lines: bytes) -> str | None:
        """Run a task again with its model and memory, which must be scripts; return what differs, apart from times."""
        context, task = self.context_of(record)
        with records_read(plugins=self.plugins):
            outcome = wait_for(_attempted(context, task))
        if isinstance(outcome, Failure):
            return f"fails when it is run again: {outcome.message}"
        then, now = (_without_times(decode_events(part, record.run)) for part in (lines, outcome.events))
        if then != now:
            return f"gives other events when it is run again ({_first_difference(then, now)})"
        changed = differing(record, outcome.record, exact=False)
        return f"gives another {', '.join(changed)} when it is run again" if changed else None

    def context_of(self, record: RunRecord) -> tuple[CellContext, GeneratedTask]:
        """Return the cell of a run as its record describes it, and its task."""
        with records_read(plugins=self.plugins):
            return self._context_of(record)

    def _context_of(self, record: RunRecord) -> tuple[CellContext, GeneratedTask]:
        if self.planned is not None and record.setting != self.planned.get(record.cell):
            raise DiffersError("its settings are not those that were planned")
        key = record.setting.id()
        if key not in self._contexts:
            batch = CellBatch(recorded_cell(record.setting), [record.seed], texts=True)
            scrub = Scrubber.of_environment(os.environ)
            self._contexts[key] = cell_context_of(batch, _NotAsked(), self._rules, scrub)
        context = self._contexts[key]
        cell = context.cell
        if (cell.id, cell.run_id(record.seed)) != (record.cell, record.run):
            raise DiffersError("its settings are not those of its cell")
        if record.injected is not None:
            injected = {t: frozenset(steps) for t, steps in record.injected}
            context = replace(context, unrecovered={record.seed: injected})
        return context, generate(cell.task.with_seed(record.seed))


def reason_not_made_anew(cell: Cell) -> str | None:
    """Return why runs cannot be made anew; None if model and memory are scripts that need what is here and no more."""
    memory = cell.access.memory
    if split_model(cell.model)[0] not in _SCRIPTS or ":" in cell.model:
        return "its model is no script of eirkit"
    if memory is None:
        return None
    if memories.home(memory) != _ITS_OWN:
        return "its memory is no script of eirkit"
    return None if reason_absent(memory, cell.access.memory_settings) is None else "its packages are not installed here"


def differing(then: RunRecord, now: RunRecord, *, exact: bool = True) -> list[str]:
    """Return the fields in which two records of a run differ.

    Args:
        exact: whether times must be equal too, up to rounding, and who took in the conversation.
    """
    calls = max(1, then.usage.calls + then.usage.memory_calls)
    margin = (calls + 1) * ROUNDING_SECONDS if exact else math.inf
    changed = []
    for name in sorted(RunRecord.__struct_fields__):
        old, new = getattr(then, name), getattr(now, name)
        if not (isinstance(old, Struct) and isinstance(new, Struct)):
            changed += [] if old == new else [name]
            continue
        for part in sorted(set(old.__struct_fields__) - {"attempt", *(() if exact else ("shared",))}):
            a, b = getattr(old, part), getattr(new, part)
            if isinstance(a, MemoryProfile) and isinstance(b, MemoryProfile) and a.passages_from == OWN_NUMBER:
                # Recorded before searches asked for the vendor's number.
                b = structs.replace(b, passages=SEARCH_LIMIT, passages_from=OWN_NUMBER)
            if part == "retrieval" and not a:  # recorded before it was
                continue
            alike = abs(a - b) <= margin if part.endswith("_seconds") else a == b
            changed += [] if alike else [f"{name}.{part}"]
    return changed


def _scored_again(
    context: CellContext, task: GeneratedTask, record: RunRecord, events: Sequence[Event]
) -> Iterator[str]:
    """Yield what does not follow from the answers of a run."""
    if task.fingerprint != record.fingerprint:
        yield "its task is not the one of its seed"
    trace = trace_of(events, record.ending)
    if record.score is not None and (verdicts := context.family.rejudge(task, trace)) is not None:
        again = score(verdicts, trace.decisions, max_turn=record.ending == "action-limit")
        names = RunScore.__struct_fields__
        if changed := [name for name in names if getattr(record.score, name) != getattr(again, name)]:
            yield f"its {', '.join(changed)} do not follow from its events"


def _played(
    context: CellContext, task: GeneratedTask, record: RunRecord, events: Sequence[Event]
) -> tuple[Trace, MemoryUse | None]:
    """Return the trace of a run whose replies and passages are taken from its events, and the usage of its memory."""
    given = iter([event for event in events if isinstance(event, (ModelExchange, MemoryExchange))])
    session, trace = session_of(context, task), Trace()
    profile = None if record.memory is None else record.memory.profile
    limit = (SEARCH_LIMIT if profile is None else profile.passages) or MOST_PASSAGES
    while (request := session.request()) is not None:
        t, event = session.position, next(given, None)
        if isinstance(request, MemoryCall) and isinstance(event, MemoryExchange):
            asked = _consultation(t, request, event, session.records, limit)
            trace.log.append(asked)
            session.receive_memory(MemoryResult(asked.passages))
        elif isinstance(request, Request) and isinstance(event, ModelExchange):
            reply = recorded_reply(event)
            trace.log.append(Exchange(t, request, reply))
            session.receive(reply)
        else:
            raise DiffersError(f"its replies lead to another call at step {t} than the one recorded")
        trace.log.extend(session.drain())
    if next(given, None) is not None:
        raise DiffersError("it has replies after its end")
    trace.ending = session.ending
    memory = record.memory
    if memory is None:
        return trace, None
    used = MemoryUsage(**{name: getattr(memory, name) for name in _IN_MEMORY_RECORD})
    return trace, MemoryUse(used, memory.shared)


def _consultation(
    t: int, call: MemoryCall, event: MemoryExchange, records: Mapping[int, Any], limit: int
) -> Consultation:
    if (event.verb, event.text) != (call.verb, call.text):
        raise DiffersError(f"its replies lead to another {call.verb} at step {t} than the one recorded")
    passages = event.found or ()
    whole = sum(map(len, passages))
    is_cut = bool(event.unshown) or len(passages) == limit or any(len(text) >= LONGEST_PASSAGE for text in passages)
    if event.returned_characters < whole or (event.returned_characters != whole and not is_cut):
        raise DiffersError(f"the length of what its memory returned at step {t} is wrong")
    lacking, stated, uncertain = lacking_in(call, passages, records, t) if call.verb == "search" else ((), (), ())
    return Consultation(
        t,
        call,
        passages,
        event.latency_seconds,
        event.returned_characters,
        lacking,
        tuple(step for step in event.held if step in lacking),
        stated,
        event.records,
        event.bytes,
        uncertain,
        event.stored,
        event.unshown,
        event.unshown_ranks,
        event.asked,
        event.kept,
    )


async def _attempted(context: CellContext, task: GeneratedTask) -> FinishedRun | Failure:
    cell, memories = context.cell, MemoryPool()
    model = make_model(cell.model, cell.options)
    batch = CellBatch(cell, [task.spec.seed], True, context.unrecovered)
    try:
        return await attempt(cell_context_of(batch, model, SystemMessages(), context.scrub), task, memories)
    finally:
        await memories.close()
        await close_model(model)


class _NotAsked(Model):
    """The model of a run that is played again from its records."""

    async def reply(self, request: Request) -> Reply:
        raise DiffersError("a recorded run asked its model")

    async def close(self) -> None:
        """Nothing is open."""

    def settings(self) -> Mapping[str, Any]:
        return {}


def _without_times(events: Sequence[Event]) -> bytes:
    return encode_events(
        [
            structs.replace(event, latency_seconds=0.0) if hasattr(event, "latency_seconds") else event
            for event in events
        ]
    )


def _first_difference(then: bytes, now: bytes) -> str:
    """Return the step and the kind of the first event that differs."""
    for old, new in zip(then.splitlines(), now.splitlines(), strict=False):
        if old != new:
            event, other = msgspec.json.decode(old), msgspec.json.decode(new)
            changed = [name for name in event.keys() | other.keys() if event.get(name) != other.get(name)]
            return f"{event.get('type')} of step {event.get('t', '–')}: {', '.join(sorted(changed))}"
    return f"{len(then.splitlines())} events instead of {len(now.splitlines())}"
