"""What happened in a run, as its driver saw it, and the events that are stored of it.

A trace is kept in memory until its run ends, so that a run is stored completely or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from eirkit.lacuna.memories.memory import MemoryCall
from eirkit.lacuna.models.model import Reply, Request, ToolCall, prompt_hash, text_hash
from eirkit.records.events import ZERO, ActionTaken, Decision, Event, MemoryExchange, ModelExchange, RequestedCall
from eirkit.records.runs import Ending


class Exchange(Struct, frozen=True, gc=False):
    """One request and its reply."""

    t: int  # the step it was about; 0 before the first
    request: Request
    reply: Reply

    @property
    def is_compacted(self) -> bool:
        """Whether the reply follows from what a server compacted, before this request or while it answered it."""
        return bool(self.request.carried or self.reply.carried)


class Consultation(Struct, frozen=True, gc=False):
    """One call to the external memory and its result."""

    t: int
    call: MemoryCall
    passages: tuple[str, ...]  # cut to what a session can show
    latency_seconds: float
    returned_characters: int = 0  # before anything was cut
    lacking: tuple[int, ...] = ()  # steps searched for whose record did not come back with its value
    held: tuple[int, ...] = ()  # of those, the ones that the store has under their label
    stated: tuple[tuple[int, tuple[str, ...]], ...] = ()  # of those, the ones that came back with these digits instead
    records: int | None = None  # after a write: what the system reports to hold; None if not asked or unknown
    bytes: int | None = None
    uncertain: tuple[int, ...] = ()  # steps searched for whose record may have come back
    stored: tuple[str, ...] | None = None  # after a conversation was observed: all texts held; None if unknown
    unshown: tuple[str, ...] = ()  # what a search or recall returned beyond what is shown, best first
    unshown_ranks: tuple[int, ...] = ()  # of those, among all passages that came back, from 1
    asked: int | None = None  # passages that a search or recall asked for
    kept: tuple[int, ...] = ()  # steps whose record was written before, and which the store has under their label

    @property
    def mislabeled(self) -> tuple[int, ...]:
        """Steps searched for whose label came back with another value."""
        return tuple([step for step, _ in self.stated])


Entry = Exchange | Consultation | Decision | ActionTaken


@dataclass(slots=True)
class Trace:
    """One run in order, as the driver saw it."""

    log: list[Entry] = field(default_factory=list)
    ending: Ending | None = None

    @property
    def consultations(self) -> list[Consultation]:
        return [entry for entry in self.log if type(entry) is Consultation]

    @property
    def decisions(self) -> list[Decision]:
        return [entry for entry in self.log if type(entry) is Decision]

    @property
    def actions(self) -> list[ActionTaken]:
        return [entry for entry in self.log if type(entry) is ActionTaken]

    @property
    def exchanges(self) -> list[Exchange]:
        return [entry for entry in self.log if type(entry) is Exchange]


def events_of(trace: Trace, *, texts: bool = True) -> list[Event]:
    """Return the events of a run; without `texts`, only hashes are kept of prompts and replies."""
    events: list[Event] = []
    held: tuple[str, ...] | None = None  # what the memory held when it was last listed
    for entry in trace.log:
        if type(entry) is Exchange:
            events.append(_exchange(entry, texts))
        elif type(entry) is Consultation:
            events.append(_consultation(entry, texts, held))
            held = held if entry.stored is None else entry.stored
        else:
            events.append(entry)  # type: ignore[arg-type] # a decision or an action, which is stored as it is
    return events


def trace_of(events: Sequence[Event], ending: Ending | None) -> Trace:
    """Return the decisions and actions of a run from its events; exchanges are not read."""
    return Trace([event for event in events if isinstance(event, (Decision, ActionTaken))], ending)


def _exchange(entry: Exchange, texts: bool) -> ModelExchange:
    reply, usage = entry.reply, entry.reply.usage
    return ModelExchange(
        entry.t,
        prompt_hash(entry.request),
        None if texts else text_hash(reply.text),
        round(reply.latency_seconds, 6) or ZERO,
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_tokens,
        usage.cost_usd if usage.cost_usd is None else usage.cost_usd or ZERO,
        usage.from_cache,
        reply.finish,
        reply.max_tokens,
        usage.reasoning_tokens,
        _shown(entry.request) if texts else None,
        reply.text if texts else None,
        reply.reasoning if texts else "",
        tuple([RequestedCall(call.name, _arguments(call)) for call in reply.calls]) if texts and reply.calls else (),
        tuple([dict(item) for item in reply.carried]) if texts and reply.carried else (),
    )


def _shown(request: Request) -> str:
    """Return the messages of a request without the system message."""
    contents = [message.content for message in request.messages if message.role != "system"]
    return contents[0] if len(contents) == 1 else "\n".join(contents)


def _arguments(call: ToolCall) -> dict[str, Any]:
    """Return a call's arguments as JSON; a placeholder if they cannot be encoded."""
    try:
        arguments = dict(call.arguments)
        json.dumps(arguments, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return {"": "arguments that are no JSON"}
    return arguments


def _consultation(entry: Consultation, texts: bool, before: tuple[str, ...] | None) -> MemoryExchange:
    stored, added, removed = _changes(before, entry.stored) if texts and entry.stored is not None else (None, None, ())
    return MemoryExchange(
        entry.t,
        entry.call.verb,
        len(entry.passages),
        round(entry.latency_seconds, 6) or ZERO,
        entry.returned_characters,
        entry.lacking,
        entry.held,
        entry.mislabeled,
        entry.uncertain,
        entry.records,
        entry.bytes,
        entry.call.text if texts else None,
        tuple(map(str, entry.passages)) if texts else None,  # plain, also of a text that is marked as ended
        stored,
        added,
        removed,
        tuple(map(str, entry.unshown)) if texts else (),
        entry.unshown_ranks,
        entry.asked,
        entry.kept,
    )


def _changes(
    before: tuple[str, ...] | None, stored: tuple[str, ...]
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None, tuple[str, ...]]:
    """Return what a store holds, or what came and went where that says it exactly; whole lists would add up to much."""
    known, held = frozenset(before or ()), frozenset(stored)
    added = tuple([text for text in stored if text not in known])
    if before is None or (*(text for text in before if text in held), *added) != stored:
        return stored, None, ()
    return None, added, tuple(sorted(known - held))
