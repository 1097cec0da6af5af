"""Builds OpenTelemetry spans with ids derived from the name of their run, and encodes them as OTLP/JSON.

`otel_runs.py` and `otel_export.py` turn runs into spans. Records of runs hold durations and no clock times, so the
caller gives the start of a trace, and every span lasts at least a microsecond.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from eirkit import __version__

Value = str | int | float | bool | tuple[str, ...]
Kind = Literal["internal", "client"]

LEAST = 1_000  # nanoseconds: the shortest span
SECOND = 1_000_000_000  # nanoseconds
SERVICE = {"service.name": "eirkit", "service.version": __version__}
_KINDS: dict[Kind, int] = {"internal": 1, "client": 3}
_ERROR = 2  # status code


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """An event at one moment of a span."""

    name: str
    at: int  # nanoseconds since 1970
    attributes: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """One operation."""

    trace: str  # 32 hexadecimal digits
    id: str  # 16 hexadecimal digits
    parent: str  # "" for the root
    name: str
    kind: Kind
    start: int  # nanoseconds since 1970
    end: int
    attributes: Mapping[str, Value]
    events: tuple[SpanEvent, ...] = ()
    error: str = ""  # message


@dataclass(slots=True)
class OpenSpan:
    """An operation that has not ended."""

    id: str
    parent: str
    name: str
    kind: Kind
    start: int
    attributes: dict[str, Value]
    events: list[SpanEvent] = field(default_factory=list)
    error: str = ""

    def fail(self, kind: str, message: str) -> None:
        """Record that the operation ended in an error."""
        self.attributes["error.type"] = kind
        self.error = message or kind


class TraceBuilder:
    """The spans of one run.

    Args:
        run: its name, from which all ids are derived.
        start: nanoseconds since 1970.
    """

    def __init__(self, run: str, start: int) -> None:
        self.run, self.now = run, start
        self.trace = _digest("trace", run, digits=32)
        self._open: list[OpenSpan] = []
        self._done: dict[str, TraceSpan] = {}
        self._order: list[str] = []

    @contextmanager
    def span(self, name: str, kind: Kind, attributes: Mapping[str, Value], seconds: float = 0.0) -> Iterator[OpenSpan]:
        """Open a span inside the innermost open one; it ends with the block and lasts at least so many seconds."""
        id = _digest("span", self.run, str(len(self._order)), digits=16)
        opened = OpenSpan(id, self._open[-1].id if self._open else "", name, kind, self.now, dict(attributes))
        self._order.append(id)
        self._open.append(opened)
        yield opened
        self.now = max(self.now, opened.start + max(LEAST, round(seconds * SECOND)))
        self._open.pop()
        self._done[id] = self._closed(opened)

    def note(self, name: str, attributes: Mapping[str, Value]) -> None:
        """Add an event to the span that was opened last."""
        self._open[-1].events.append(SpanEvent(name, self.now, dict(attributes)))

    def spans(self) -> list[TraceSpan]:
        """Return the spans that have ended, in the order in which they began."""
        return [self._done[id] for id in self._order if id in self._done]

    def _closed(self, one: OpenSpan) -> TraceSpan:
        events = tuple(one.events)
        return TraceSpan(
            self.trace, one.id, one.parent, one.name, one.kind, one.start, self.now, one.attributes, events, one.error
        )


def _digest(*parts: str, digits: int) -> str:
    return sha256("\x1f".join(("eirkit/otel/1", *parts)).encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def compact_json(value: Any) -> str:
    """Return structured data as JSON text, the form in which span attributes carry it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def otlp_line(spans: Sequence[TraceSpan]) -> bytes:
    """Return spans as one line of OTLP/JSON, newline included."""
    scope = {"name": "eirkit", "version": __version__}
    document = {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(SERVICE)},
                "scopeSpans": [{"scope": scope, "spans": [_encoded(span) for span in spans]}],
            }
        ]
    }
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _encoded(span: TraceSpan) -> dict[str, Any]:
    made: dict[str, Any] = {
        "traceId": span.trace,
        "spanId": span.id,
        "name": span.name,
        "kind": _KINDS[span.kind],
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": _attributes(span.attributes),
    }
    if span.parent:
        made["parentSpanId"] = span.parent
    if span.events:
        made["events"] = [
            {"timeUnixNano": str(event.at), "name": event.name, "attributes": _attributes(event.attributes)}
            for event in span.events
        ]
    if span.error:
        made["status"] = {"code": _ERROR, "message": span.error}
    return made


def _attributes(given: Mapping[str, Value]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in given.items()]


def _value(value: Value) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}  # OTLP/JSON writes 64-bit integers as strings
        case float():
            return {"doubleValue": value}
        case tuple():
            return {"arrayValue": {"values": [{"stringValue": text} for text in value]}}
    return {"stringValue": value}


def message(role: str, parts: Iterable[Mapping[str, Any]], finish: str = "") -> dict[str, Any]:
    """Return a message in the form of the GenAI conventions."""
    made: dict[str, Any] = {"role": role, "parts": list(parts)}
    return {**made, "finish_reason": finish} if finish else made


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


def call_part(id: str, tool: str, arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": id, "name": tool, "arguments": arguments}
