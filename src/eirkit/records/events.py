"""The events of a run as they are stored: exchanges with the model, calls to the memory, actions, decisions.

A run's events are one block: a line of JSON for each, compressed. Fields with their usual value are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
import zstandard
from msgspec import Struct

from eirkit.errors import InputFileError

Payload = tuple[int, ...]  # the values of one record: one per slot, or k of them
Answer = Payload | str  # what was submitted: numbers, or a text about a conversation
Record = tuple[int, Payload]  # a step and its values
Verb = Literal["write", "forget", "search", "observe", "recall"]
ActionOutcome = Literal["done", "refused", "fault", "late"]
Cause = Literal["state_supply", "cascade", "not_answered", "malformed", "truncated", "undetermined", "computation"]
Kind = Literal[
    "missing",
    "declined",
    "misinformed",
    "never_submitted",
    "propagated",
    "unanswered",
    "unreached",
    "truncated_reply",
    "uncertain",
    "correct_inputs",
    "on_corrupted",
    "not_fetched",
    "protocol",
]

ZERO = 0.0  # msgspec leaves out a field that has the very object of its default, which equal floats need not be
LARGEST_BLOCK = 1 << 28  # bytes of the events of one run
_LEVEL = 1  # up to level 14 none makes these blocks smaller by more than 2%, and this one is the fastest


class _Event(Struct, frozen=True, gc=False, omit_defaults=True, tag_field="type"):
    """Base of all events."""


class Decision(_Event, frozen=True, gc=False, tag="decision"):
    """What was required, retained, available and submitted at one step; all measures are computed from it."""

    t: int
    required: tuple[int, ...] = ()
    retained: tuple[int, ...] = ()  # in context when the step arrived, before any recovery or injection
    missing: tuple[int, ...] = ()  # required, answered before and not retained: a miss
    unavailable: tuple[int, ...] = ()  # missing, and not obtainable through the interfaces within the budgets
    restored: tuple[Record, ...] = ()  # injected by an intervention
    submitted: Answer | None = None  # None: no valid answer
    fault: str | None = None  # the kind of fault if there is no valid answer
    fetched: tuple[int, ...] = ()  # read, recomputed or found during the step
    reads: int = 0
    recomputations: int = 0
    recovery_depth: int = 0
    actions: int = 1
    # How many were given, read or refused; Controlled Retention takes the last, managed runs the first.
    answers: int = 1
    uncertain: tuple[int, ...] = ()  # required, and not known to be in context or returned
    stated: tuple[Record, ...] = ()  # wrong values that searches returned for missing records

    @property
    def values(self) -> Payload | None:
        """The answer, where it is numbers."""
        return self.submitted if isinstance(self.submitted, tuple) else None

    @property
    def text(self) -> str | None:
        """The answer, where it is a text."""
        return self.submitted if isinstance(self.submitted, str) else None


class ActionTaken(_Event, frozen=True, gc=False, tag="action"):
    """One action of an agent-managed run and its outcome; in both modes also actions after the end."""

    number: int  # from 1; 0 for an action after the end, which does not count
    t: int  # the current step; 0 before the first
    action: str  # as a line of text; the kind of fault where there is none
    outcome: ActionOutcome
    detail: str  # the response shown to the agent
    evicted: int | None = None  # the record that was evicted for it
    reason: str = ""  # stable code of why it was refused; docs/session.md lists them


class RequestedCall(Struct, frozen=True, gc=False):
    """A tool call of a reply."""

    name: str
    arguments: dict[str, Any]  # as the model wrote them


class ModelExchange(_Event, frozen=True, gc=False, tag="exchange"):
    """One request to the model and its reply; texts are None in sweeps that keep none."""

    t: int  # the step it was about; 0 before the first
    prompt_sha256: str
    reply_sha256: str | None = None  # where the text is not kept
    latency_seconds: float = ZERO
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = ZERO
    from_cache: bool = False
    finish: str = ""  # why the reply ended; "" if not reported
    max_tokens: int = 0
    reasoning_tokens: int = 0
    # Without the system message, which is the same in every request: the manifest has its text, the run its hash.
    prompt: str | None = None
    reply: str | None = None
    reasoning: str = ""
    calls: tuple[RequestedCall, ...] = ()
    carried: tuple[dict[str, Any], ...] = ()  # what the server compacted, unread


class MemoryExchange(_Event, frozen=True, gc=False, tag="memory"):
    """One call to the external memory and its result; texts are None in sweeps that keep none."""

    t: int
    verb: Verb
    passages: int = 0  # how many came back
    latency_seconds: float = ZERO
    returned_characters: int = 0  # before anything was cut
    lacking: tuple[int, ...] = ()  # steps searched for whose record did not come back with its value
    held: tuple[int, ...] = ()  # of those, the ones that the store has under their label
    mislabeled: tuple[int, ...] = ()  # of those, the ones that came back with another value
    uncertain: tuple[int, ...] = ()  # steps searched for whose record may have come back
    records: int | None = None  # what the system reports to hold; None if not asked or unknown
    bytes: int | None = None
    text: str | None = None
    found: tuple[str, ...] | None = None  # what came back, cut to what a session can show
    stored: tuple[str, ...] | None = None  # all texts held, where they are listed whole
    added: tuple[str, ...] | None = None  # else what came since the last list, after what was held,
    removed: tuple[str, ...] = ()  # and what went
    unshown: tuple[str, ...] = ()  # what came back beyond `found`, best first
    unshown_ranks: tuple[int, ...] = ()  # of those, among all passages that came back, from 1
    asked: int | None = None  # passages that were asked for
    kept: tuple[int, ...] = ()  # steps written since the last search whose record the store has after this one


class WrongStep(Struct, frozen=True, gc=False, array_like=True):
    """Why one step is wrong."""

    t: int
    cause: Cause
    kind: Kind | None


class Verdicts(_Event, frozen=True, gc=False, tag="verdicts"):
    """The wrong steps of a run; its last event."""

    wrong: tuple[WrongStep, ...] = ()


Event = Decision | ActionTaken | ModelExchange | MemoryExchange | Verdicts

_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode_events(events: Sequence[Event]) -> bytes:
    """Return a line for each event; half of a surrogate pair, which UTF-8 cannot hold, becomes a question mark."""
    try:
        return _ENCODER.encode_lines(events)
    except UnicodeEncodeError:
        return _ENCODER.encode_lines(_readable(msgspec.to_builtins(events)))


def encode_struct(struct: Struct) -> bytes:
    """Return a struct as JSON, with a question mark for half of a surrogate pair."""
    try:
        return _ENCODER.encode(struct)
    except UnicodeEncodeError:
        return _ENCODER.encode(_readable(msgspec.to_builtins(struct)))


def decode_events(lines: bytes, where: str) -> list[Event]:
    """Return the events of lines; lists of what a memory holds are whole in them.

    Args:
        where: file and run, for the message if they are damaged.
    """
    try:
        return with_stores(_DECODER.decode_lines(lines))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputFileError(f"{where}: not the events of a run ({error}); restore the file") from error


def pack(lines: bytes) -> bytes:
    """Return lines of events as one compressed block."""
    return zstandard.ZstdCompressor(level=_LEVEL).compress(lines)


def unpack(block: bytes, where: str, most: int = LARGEST_BLOCK) -> bytes:
    """Return the lines of a block; one that does not say how long it is, and keep to it, is damaged."""
    try:
        size = zstandard.frame_content_size(block)
        if not 0 <= size <= most:
            raise InputFileError(f"{where}: events claim {size:,} bytes, of at most {most:,}; restore the file")
        return zstandard.ZstdDecompressor().decompress(block)
    except zstandard.ZstdError as error:
        raise InputFileError(f"{where}: events cannot be decompressed ({error}); restore the file") from error


def with_stores(events: Iterable[Event]) -> list[Event]:
    """Return events in which every list of what a memory holds is whole."""
    whole: list[Event] = []
    held: tuple[str, ...] = ()
    for event in events:
        if type(event) is MemoryExchange:
            if event.added is not None:
                gone = frozenset(event.removed)
                stored = (*(text for text in held if text not in gone), *event.added)
                event = msgspec.structs.replace(event, stored=stored, added=None, removed=())
            held = held if event.stored is None else event.stored
        whole.append(event)
    return whole


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, (tuple, list)):
        return [_readable(part) for part in value]
    return {_readable(key): _readable(part) for key, part in value.items()} if isinstance(value, dict) else value
