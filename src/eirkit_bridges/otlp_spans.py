"""Decodes the spans of an OTLP/JSON export, and the messages, calls and usage in their GenAI attributes.

Data that the conventions moved between versions is looked up in every location: attributes, events of the span, and the
older numbered attributes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from msgspec import Struct

from eirkit.vestige.formats.messages import arguments_of
from eirkit.vestige.formats.run_builder import items_of, logged_usage, mapping_of, number_of, string_of
from eirkit.vestige.trajectory import Evidence, FileRead, FileWrite, KeptContext, LoggedUsage, Touches, WriteKind

AGENT = "invoke_agent"
INFERENCE = frozenset({"chat", "generate_content", "text_completion"})
TOOL = "execute_tool"
MEMORY = frozenset({"search_memory", "create_memory", "update_memory", "upsert_memory", "delete_memory"})
# Our own attributes, for which the conventions have none;
RUN_FACTS, TURN_FACTS, CALL_FACTS = "eirkit.run", "eirkit.turn", "eirkit.call"

_KINDS: tuple[WriteKind, ...] = ("whole", "edit", "delete")
_EVIDENCE: tuple[Evidence, ...] = get_args(Evidence)
_DEEPEST = 32  # nesting levels of an attribute's value
_DETAILS = "gen_ai.client.inference.operation.details"
_EVALUATED = "gen_ai.evaluation.result"
_VERDICTS = {"pass": True, "passed": True, "correct": True, "fail": False, "failed": False, "incorrect": False}
_NUMBERED = re.compile(r"gen_ai\.(prompt|completion)\.(\d{1,6})\.(?:(role|content)|tool_calls\.(\d{1,4})\.(\w+))")
_LATEST = 1 << 63  # nanoseconds; larger values are not times


class OtlpSpan(Struct, frozen=True, gc=False):
    """One span with its attributes as plain values."""

    trace: str
    id: str
    parent: str  # "" at the top
    start: int  # nanoseconds; 0 where the export does not say
    operation: str  # gen_ai.operation.name, "" for spans of something else
    attributes: Mapping[str, Any]
    events: tuple[tuple[str, Mapping[str, Any]], ...]
    error: str  # error type, "" if it succeeded


@dataclass(frozen=True, slots=True)
class MessagePart:
    """One part of a message: a text, a call, or the result of one."""

    kind: str  # text | call | answer
    text: str = ""
    id: str = ""
    tool: str = ""
    arguments: Mapping[str, Any] | None = None


def spans_of(export: Mapping[str, Any]) -> Iterator[OtlpSpan]:
    """Yield the spans of one exported request."""
    for resource in items_of(_either(export, "resourceSpans", "resource_spans")):
        scopes = _either(resource, "scopeSpans", "scope_spans") or resource.get("instrumentationLibrarySpans")
        for scope in items_of(scopes):
            for span in items_of(scope.get("spans")):
                if made := _span(span):
                    yield made


def _span(given: Mapping[str, Any]) -> OtlpSpan | None:
    trace = string_of(_either(given, "traceId", "trace_id"))
    id = string_of(_either(given, "spanId", "span_id"))
    if not trace or not id:
        return None
    attributes = _attributes(given.get("attributes"))
    events = tuple(
        (string_of(event.get("name")), _attributes(event.get("attributes"))) for event in items_of(given.get("events"))
    )
    for name, more in events:
        if name == _DETAILS:
            attributes = {**more, **attributes}
    failed = mapping_of(given.get("status")).get("code") in (2, "STATUS_CODE_ERROR")
    return OtlpSpan(
        trace=trace,
        id=id,
        parent=string_of(_either(given, "parentSpanId", "parent_span_id")),
        start=_nanoseconds(_either(given, "startTimeUnixNano", "start_time_unix_nano")),
        operation=string_of(attributes.get("gen_ai.operation.name")),
        attributes=attributes,
        events=events,
        error=string_of(attributes.get("error.type")) or ("error" if failed else ""),
    )


def _either(given: Mapping[str, Any], one: str, other: str) -> Any:
    return given[one] if one in given else given.get(other)


def _nanoseconds(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    return value if type(value) is int and 0 <= value < _LATEST else 0


def _attributes(given: object) -> dict[str, Any]:
    pairs = ((string_of(pair.get("key")), pair.get("value")) for pair in items_of(given))
    return {key: _plain(value, _DEEPEST) for key, value in pairs if key}


def _plain(value: object, levels: int) -> Any:
    """Return the value that OTLP wraps in an object named after its type; None for anything else."""
    if not isinstance(value, dict) or not levels:
        return None
    for kind, inner in value.items():
        match kind.replace("_", "").lower():
            case "intvalue":
                if isinstance(inner, str) and re.fullmatch(r"-?[0-9]{1,19}", inner, re.ASCII):
                    return int(inner)
                return inner if type(inner) is int else None
            case "arrayvalue":
                return [_plain(item, levels - 1) for item in items_of(mapping_of(inner).get("values"))]
            case "kvlistvalue":
                pairs = items_of(mapping_of(inner).get("values"))
                return {string_of(pair.get("key")): _plain(pair.get("value"), levels - 1) for pair in pairs}
            case "stringvalue" | "boolvalue" | "doublevalue":
                return inner
    return None


def structured(value: object) -> Any:
    """Return an attribute as plain data, whether structured or JSON text; None if it is neither."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def facts_of(span: OtlpSpan, name: str) -> Mapping[str, Any]:
    """Return one of our own attributes."""
    return mapping_of(structured(span.attributes.get(name)))


def asked_parts(span: OtlpSpan) -> list[MessagePart]:
    """Return the input of a model: its instructions, then the messages."""
    instructions = list(_parts([{"parts": structured(span.attributes.get("gen_ai.system_instructions"))}]))
    return instructions + (_messages(span, "gen_ai.input.messages") or _numbered(span, "prompt"))


def said_parts(span: OtlpSpan) -> list[MessagePart]:
    """Return the reply of a model."""
    return _messages(span, "gen_ai.output.messages") or _numbered(span, "completion")


def _messages(span: OtlpSpan, name: str) -> list[MessagePart]:
    return list(_parts(items_of(structured(span.attributes.get(name)))))


def _parts(messages: Iterable[Mapping[str, Any]]) -> Iterator[MessagePart]:
    for message in messages:
        for part in items_of(message.get("parts")):
            kind = part.get("type")
            if kind == "text":
                yield MessagePart("text", string_of(part.get("content")))
            elif kind == "tool_call":
                arguments = arguments_of(part.get("arguments"))
                yield MessagePart("call", "", string_of(part.get("id")), string_of(part.get("name")), arguments)
            elif kind == "tool_call_response":
                yield MessagePart(
                    "answer", as_text(part.get("response", part.get("result"))), string_of(part.get("id"))
                )


def _numbered(span: OtlpSpan, kind: str) -> list[MessagePart]:
    """Return the parts that older instrumentations store as `gen_ai.completion.0.content` and similar."""
    texts: dict[int, str] = {}
    calls: dict[tuple[int, int], dict[str, Any]] = {}
    for name, value in span.attributes.items():
        found = _NUMBERED.fullmatch(name)
        if found is None or found[1] != kind:
            continue
        if found[3] == "content":
            texts[int(found[2])] = string_of(value)
        elif found[4]:
            calls.setdefault((int(found[2]), int(found[4])), {})[found[5]] = value
    parts = [MessagePart("text", texts[number]) for number in sorted(texts)]
    return parts + [
        MessagePart(
            "call", "", string_of(call.get("id")), string_of(call.get("name")), arguments_of(call.get("arguments"))
        )
        for _, call in sorted(calls.items())
    ]


def usage_of(span: OtlpSpan) -> LoggedUsage | None:
    """Return the tokens of one inference; the input includes cached tokens, as in the conventions."""
    given = span.attributes
    names = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
    inputs = next((given[name] for name in names if name in given), None)
    names = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
    outputs = next((given[name] for name in names if name in given), None)
    if inputs is None and outputs is None:
        return None
    return logged_usage([inputs], [outputs], given.get("gen_ai.usage.cache_read.input_tokens"))


def verdict_of(spans: Sequence[OtlpSpan]) -> tuple[float | None, bool | None]:
    """Return the reward and the outcome of evaluations recorded on these spans, the last one first."""
    results = [more for span in spans for name, more in span.events if name == _EVALUATED]
    rewards = [number_of(more.get("gen_ai.evaluation.score.value")) for more in results]
    labels = [_VERDICTS.get(string_of(more.get("gen_ai.evaluation.score.label")).lower()) for more in results]
    reward = next((value for value in reversed(rewards) if value is not None), None)
    return reward, next((label for label in reversed(labels) if label is not None), None)


def as_text(value: object) -> str:
    """Return a tool's result as text: a text as it is, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def kept_of(given: object) -> KeptContext | None:
    """Return what a break kept, as our own exports tell it."""
    if not isinstance(given, dict):
        return None
    evidence = next((one for one in _EVIDENCE if one == given.get("evidence")), None)
    if evidence is None:
        return None
    return KeptContext(
        evidence=evidence,
        texts=tuple(text for text in given.get("texts") or () if isinstance(text, str)),
        files=_reads(given.get("files")),
        turns=tuple(turn for turn in given.get("turns") or () if type(turn) is int),
        is_complete=given.get("is_complete") is True,
        is_opaque=given.get("is_opaque") is True,
        tokens_before=size_of(given.get("tokens_before")),
        tokens_after=size_of(given.get("tokens_after")),
    )


def _reads(given: object) -> tuple[FileRead, ...]:
    return tuple(
        FileRead(path, size_of(item.get("tokens")), words_of(item.get("content")), clipped=item.get("clipped") is True)
        for item in items_of(given)
        if (path := string_of(item.get("path")))
    )


def touches_of(given: Mapping[str, Any]) -> Touches:
    reads = _reads(given.get("reads"))
    writes = tuple(
        FileWrite(
            path,
            _kind(item.get("kind")),
            size_of(item.get("tokens")),
            words_of(item.get("content")),
            words_of(item.get("removed")),
            words_of(item.get("added")),
        )
        for item in items_of(given.get("writes"))
        if (path := string_of(item.get("path")))
    )
    return Touches(reads, writes)


def _kind(value: object) -> WriteKind:
    return next((kind for kind in _KINDS if kind == value), "edit")


def size_of(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 53 else None


def words_of(value: object) -> str | None:
    return value if isinstance(value, str) else None
