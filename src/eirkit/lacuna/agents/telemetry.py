"""The event log of a run (exchanges, memory calls, actions, decisions) and its records on disk.

Events are kept in memory until a run ends, so that a run is stored completely or not at all. Sweeps write mostly
decisions and exchanges with free agents, so `event_lines` formats these two by hand;
`tests/lacuna/agents/test_event_lines.py` compares the bytes with those of `encode` and `event_records`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import pairwise
from json import JSONEncoder
from json.encoder import encode_basestring as quote
from typing import Any

from eirkit.lacuna.agents.session import ActionTaken, Decision, Ending, Event
from eirkit.lacuna.memories.memory import MemoryCall
from eirkit.lacuna.models.model import NO_USAGE, Reply, Request, ToolCall, prompt_hash, text_hash
from eirkit.records.facts import fact
from eirkit.records.lines import encode

SCHEMA = "event/1"
_UNSURE = ("uncertain", "stated")  # fields of decisions that are written only where there is something
_TEXT = JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)  # as records are written
_NOTHING_SPENT = (
    '"latency_seconds":0.0,"input_tokens":0,"output_tokens":0,"cached_tokens":0,"cost_usd":0.0,"from_cache":false'
)


@fact
class Exchange:
    """One request and its reply."""

    t: int  # the step it was about; 0 before the first
    request: Request
    reply: Reply

    @property
    def is_compacted(self) -> bool:
        """Whether the reply follows from what a server compacted, before this request or while it answered it."""
        return bool(self.request.carried or self.reply.carried)


@fact
class Consultation:
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

    @property
    def mislabelled(self) -> tuple[int, ...]:
        """Steps searched for whose label came back with another value."""
        return tuple([step for step, _ in self.stated])


Entry = Exchange | Consultation | Event


@dataclass(slots=True)
class Trace:
    """One run in order, as the driver saw it."""

    log: list[Entry] = field(default_factory=list)
    ending: Ending | None = None

    @property
    def consultations(self) -> list[Consultation]:
        return [entry for entry in self.log if type(entry) is Consultation]  # facts have no subclasses

    @property
    def decisions(self) -> list[Decision]:
        return [entry for entry in self.log if type(entry) is Decision]

    @property
    def actions(self) -> list[ActionTaken]:
        return [entry for entry in self.log if isinstance(entry, ActionTaken)]

    @property
    def exchanges(self) -> list[Exchange]:
        return [entry for entry in self.log if type(entry) is Exchange]


def event_records(trace: Trace, run: str, *, texts: bool = True) -> list[dict[str, Any]]:
    """Return the trace as records; `texts` keeps prompts and replies; without them, a reply leaves its hash."""
    before = _stores_before(trace.log)
    return [{"run": run, **_record(entry, texts, before.get(id(entry)))} for entry in trace.log]


def _stores_before(log: Sequence[Entry]) -> dict[int, tuple[str, ...]]:
    """Return, for each entry that lists what a memory holds, what it held at the last one before it."""
    listed = [one for one in log if type(one) is Consultation and one.stored is not None]
    return {id(one): last.stored for last, one in pairwise(listed) if last.stored is not None}


def _record(entry: Entry, texts: bool, before: tuple[str, ...] | None = None) -> dict[str, Any]:
    if isinstance(entry, Exchange):
        return _exchange(entry, texts)
    if isinstance(entry, Consultation):
        return _consultation(entry, texts, before)
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
    unsure = {name: found for name in _UNSURE if (found := getattr(entry, name))}
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
        **unsure,
    }


def _exchange(entry: Exchange, texts: bool) -> dict[str, Any]:
    reply, usage = entry.reply, entry.reply.usage
    record: dict[str, Any] = {
        "type": "exchange",
        "t": entry.t,
        "prompt_sha256": prompt_hash(entry.request),
        **({} if texts else {"reply_sha256": text_hash(reply.text)}),
        "latency_seconds": round(reply.latency_seconds, 6),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": usage.cost_usd,
        "from_cache": usage.from_cache,
    }
    stated = {"finish": reply.finish, "max_tokens": reply.max_tokens, "reasoning_tokens": usage.reasoning_tokens}
    record |= {name: value for name, value in stated.items() if value}  # absent: not reported
    if texts:
        # The system message is the same in every request: the manifest holds its text, the run record its hash.
        record["prompt"] = _shown(entry.request)
        record["reply"] = reply.text
        if reply.reasoning:
            record["reasoning"] = reply.reasoning
        if reply.calls:
            record["calls"] = [{"name": call.name, "arguments": _arguments(call)} for call in reply.calls]
        if reply.carried:
            record["carried"] = [dict(item) for item in reply.carried]
    return record


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


def _consultation(entry: Consultation, texts: bool, before: tuple[str, ...] | None) -> dict[str, Any]:
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
        "uncertain": entry.uncertain,
        "records": entry.records,
        "bytes": entry.bytes,
    }
    if texts:
        record |= {"text": entry.call.text, "found": list(entry.passages)}
        if entry.stored is not None:
            record |= _changes(before, entry.stored)
    return record


def _changes(before: tuple[str, ...] | None, stored: tuple[str, ...]) -> dict[str, list[str]]:
    """Return what a store holds, as what came and went where that says it exactly; whole lists would add up to much."""
    known, held = frozenset(before or ()), frozenset(stored)
    added, removed = [text for text in stored if text not in known], known - held
    if before is None or (*(text for text in before if text in held), *added) != stored:
        return {"stored": list(stored)}
    return {"added": added, "removed": sorted(removed)}


def with_stores(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return event records in which every list of what a store holds is whole again."""
    held: list[str] = []
    for one in events:
        if "added" in one:
            gone = frozenset(one.pop("removed"))
            one["stored"] = [*(text for text in held if text not in gone), *one.pop("added")]
        held = one.get("stored", held)
    return events


def trace_of(records: Sequence[dict[str, Any]], ending: Ending | None) -> Trace:
    """Return the decisions and actions of a run from its event records; exchanges are not read."""
    trace = Trace(ending=ending)
    for record in records:
        if record["type"] == "decision":
            trace.log.append(_decision_of(record))
        elif record["type"] == "action":
            trace.log.append(ActionTaken(**{one.name: record[one.name] for one in fields(ActionTaken)}))
    return trace


def _decision_of(record: dict[str, Any]) -> Decision:
    given = {one.name: record[one.name] for one in fields(Decision) if one.name not in _UNSURE}
    for name in ("required", "retained", "missing", "unavailable", "fetched"):
        given[name] = tuple(given[name])
    given["uncertain"] = tuple(record.get("uncertain", ()))
    for name in ("restored", "stated"):
        given[name] = tuple((t, tuple(values)) for t, values in record.get(name, ()))
    given["submitted"] = None if given["submitted"] is None else tuple(given["submitted"])
    return Decision(**given)


def event_lines(trace: Trace, run: str, *, texts: bool = True) -> bytes:
    """Return one line for each entry of a trace, as `encode` writes the records of `event_records`."""
    head = _TEXT.encode({"schema": SCHEMA, "run": run})[:-1] + ","
    try:
        before = _stores_before(trace.log)
        return "".join([head + _line(entry, texts, before.get(id(entry))) for entry in trace.log]).encode()
    except UnicodeEncodeError:  # a lone surrogate, which `encode` escapes
        return b"".join([encode(SCHEMA, record) for record in event_records(trace, run, texts=texts)])


def _line(entry: Entry, texts: bool, before: tuple[str, ...] | None) -> str:
    """Return the line of an entry after its common prefix."""
    if type(entry) is Decision and not (entry.restored or entry.uncertain or entry.stated):
        return _decision_line(entry)
    if type(entry) is Exchange and _is_plain(entry.reply):
        return _exchange_line(entry, texts)
    return _TEXT.encode(_record(entry, texts, before))[1:] + "\n"


def _is_plain(reply: Reply) -> bool:
    return reply.usage is NO_USAGE and not (
        reply.latency_seconds or reply.calls or reply.finish or reply.reasoning or reply.max_tokens or reply.carried
    )


def _decision_line(entry: Decision) -> str:
    missing = _integers(entry.missing)
    unavailable = missing if entry.unavailable is entry.missing else _integers(entry.unavailable)
    submitted = "null" if entry.submitted is None else _integers(entry.submitted)
    fault = "null" if entry.fault is None else quote(entry.fault)
    return (
        f'"type":"decision","t":{entry.t},"required":{_integers(entry.required)},"retained":{_integers(entry.retained)}'
        f',"missing":{missing},"unavailable":{unavailable},"restored":[],"submitted":{submitted},"fault":{fault}'
        + _effort(entry.fetched, entry.reads, entry.recomputations, entry.recovery_depth, entry.actions, entry.answers)
    )


@lru_cache(maxsize=1 << 10)  # the same at every step of Controlled Retention
def _effort(
    fetched: tuple[int, ...], reads: int, recomputations: int, recovery_depth: int, actions: int, answers: int
) -> str:
    return (
        f',"fetched":{_integers(fetched)},"reads":{reads},"recomputations":{recomputations}'
        f',"recovery_depth":{recovery_depth},"actions":{actions},"answers":{answers}}}\n'
    )


@lru_cache(maxsize=1 << 14)  # windows and references repeat in every run of a cell
def _integers(values: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, values))}]"


def _exchange_line(entry: Exchange, texts: bool) -> str:
    said = entry.reply.text
    begin = f'"type":"exchange","t":{entry.t},"prompt_sha256":"{prompt_hash(entry.request)}",'
    if not texts:
        return f'{begin}"reply_sha256":"{text_hash(said)}",{_NOTHING_SPENT}}}\n'
    return f'{begin}{_NOTHING_SPENT},"prompt":{quote(_shown(entry.request))},"reply":{quote(said)}}}\n'
