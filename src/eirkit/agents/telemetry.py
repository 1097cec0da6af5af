"""What a run leaves behind: exchanges with the model, actions and decisions, as plain records.

A run's records are kept together until it ends, so that a run is on disk as a whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from eirkit.agents.exchange import prompt_hash, text_hash
from eirkit.agents.memory import MemoryCall
from eirkit.agents.model import Reply, Request, ToolCall
from eirkit.agents.session import ActionTaken, Decision, Ending, Event
from eirkit.facts import fact

SCHEMA = "event/1"


@fact
class Exchange:
    """One request and its reply."""

    t: int  # the step it was about; 0 before the first
    request: Request
    reply: Reply


@fact
class Consultation:
    """One call of the external memory and what it gave back."""

    t: int
    call: MemoryCall
    passages: tuple[str, ...]  # cut to what a session can show
    latency_seconds: float
    returned_characters: int = 0  # before anything was cut
    lacking: tuple[int, ...] = ()  # steps that were sought and whose record did not come back with its value
    held: tuple[int, ...] = ()  # of those, the ones that the store has under their label
    mislabelled: tuple[int, ...] = ()  # of those, the ones whose label came back with another value
    records: int | None = None  # after a write: what the system says it holds; None where it was not asked or cannot
    bytes: int | None = None


Entry = Exchange | Consultation | Event


@dataclass(slots=True)
class Trace:
    """One run in order, as the driver saw it."""

    log: list[Entry] = field(default_factory=list)
    ending: Ending | None = None

    @property
    def consultations(self) -> list[Consultation]:
        return [entry for entry in self.log if isinstance(entry, Consultation)]

    @property
    def decisions(self) -> list[Decision]:
        return [entry for entry in self.log if isinstance(entry, Decision)]

    @property
    def actions(self) -> list[ActionTaken]:
        return [entry for entry in self.log if isinstance(entry, ActionTaken)]

    @property
    def exchanges(self) -> list[Exchange]:
        return [entry for entry in self.log if isinstance(entry, Exchange)]


def event_records(trace: Trace, run: str, *, texts: bool = True) -> list[dict[str, Any]]:
    """Return the trace as records; `texts` keeps prompts and replies beside their hashes."""
    return [{"run": run, **_record(entry, texts)} for entry in trace.log]


def _record(entry: Entry, texts: bool) -> dict[str, Any]:
    if isinstance(entry, Exchange):
        return _exchange(entry, texts)
    if isinstance(entry, Consultation):
        return _consultation(entry, texts)
    if isinstance(entry, ActionTaken):
        return {
            "type": "action",
            "number": entry.number,
            "t": entry.t,
            "action": entry.action,
            "outcome": entry.outcome,
            "detail": entry.detail,
            "evicted": entry.evicted,
            "reason": entry.reason,
        }
    return {
        "type": "decision",
        "t": entry.t,
        "required": entry.required,
        "retained": entry.retained,
        "missing": entry.missing,
        "unavailable": entry.unavailable,
        "restored": entry.restored,
        "submitted": entry.submitted,
        "fault": entry.fault,
        "fetched": entry.fetched,
        "reads": entry.reads,
        "recomputations": entry.recomputations,
        "recovery_depth": entry.recovery_depth,
        "actions": entry.actions,
        "answers": entry.answers,
    }


def _exchange(entry: Exchange, texts: bool) -> dict[str, Any]:
    reply, usage = entry.reply, entry.reply.usage
    record: dict[str, Any] = {
        "type": "exchange",
        "t": entry.t,
        "prompt_sha256": prompt_hash(entry.request),
        "reply_sha256": text_hash(reply.text),
        "latency_seconds": round(reply.latency_seconds, 6),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": usage.cost_usd,
        "from_cache": usage.from_cache,
    }
    if texts:
        # The rules are the same in every request of a run: the manifest holds their text, the run record their hash.
        record["prompt"] = "\n".join([m.content for m in entry.request.messages if m.role != "system"])
        record["reply"] = reply.text
        if reply.calls:
            record["calls"] = [{"name": call.name, "arguments": _arguments(call)} for call in reply.calls]
    return record


def _arguments(call: ToolCall) -> dict[str, Any]:
    """Return a call's arguments as JSON can hold them; what it cannot fits no tool either."""
    try:
        arguments = dict(call.arguments)
        json.dumps(arguments, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return {"": "arguments that are no JSON"}
    return arguments


def _consultation(entry: Consultation, texts: bool) -> dict[str, Any]:
    record: dict[str, Any] = {
        "type": "memory",
        "t": entry.t,
        "verb": entry.call.verb,
        "passages": len(entry.passages),
        "latency_seconds": round(entry.latency_seconds, 6),
        "returned_characters": entry.returned_characters,
        "lacking": entry.lacking,
        "held": entry.held,
        "mislabelled": entry.mislabelled,
        "records": entry.records,
        "bytes": entry.bytes,
    }
    if texts:
        record |= {"text": entry.call.text, "found": list(entry.passages)}
    return record


def decisions_of(records: Sequence[dict[str, Any]]) -> list[Decision]:
    """Return the decisions among event records, as they were."""
    return [_decision_of(record) for record in records if record["type"] == "decision"]


def trace_of(records: Sequence[dict[str, Any]], ending: Ending | None) -> Trace:
    """Return the decisions and actions of a run from its event records; what was said is left in the file."""
    trace = Trace(ending=ending)
    for record in records:
        if record["type"] == "decision":
            trace.log.append(_decision_of(record))
        elif record["type"] == "action":
            trace.log.append(ActionTaken(**{one.name: record[one.name] for one in fields(ActionTaken)}))
    return trace


def _decision_of(record: dict[str, Any]) -> Decision:
    given = {one.name: record[one.name] for one in fields(Decision)}
    for name in ("required", "retained", "missing", "unavailable", "fetched"):
        given[name] = tuple(given[name])
    given["restored"] = tuple((t, tuple(values)) for t, values in given["restored"])
    given["submitted"] = None if given["submitted"] is None else tuple(given["submitted"])
    return Decision(**given)
