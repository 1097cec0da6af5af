"""Reads runs exported from LangSmith and observations exported from Langfuse: JSON lines, a list, or one trace.

Each row is a span: a call of a model, of a tool, or of anything else. They become spans of the GenAI conventions, and
are read as those are. What the model was sent and replied is looked up in every shape that clients log.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.messages import arguments_of, native_calls, text_of, usage_of
from eirkit.vestige.formats.run_builder import (
    count_of,
    items_of,
    logged_usage,
    mapping_of,
    objects_by_line,
    skipped,
    string_of,
)
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.trajectory import MARKED, LoggedUsage, Recording, formats
from eirkit_bridges.otlp import runs_of
from eirkit_bridges.otlp_spans import AGENT, TOOL, OtlpSpan, as_text, structured

Row = Mapping[str, Any]

_CHAT = "chat"
_LANGSMITH = {"llm": _CHAT, "tool": TOOL}
_LANGFUSE = {"GENERATION": _CHAT, "TOOL": TOOL, "AGENT": AGENT}
_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "function": "tool"}


@formats.add("langsmith")
class LangSmith:
    """Runs exported from LangSmith."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the rows have the order and the type of a run."""
        return _has_keys(document, (b"run_type", b"trace_id", b"dotted_order"))

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the run of each trace or thread."""
        yield from _read(document, "langsmith", _langsmith_span)


@formats.add("langfuse")
class Langfuse:
    """Observations exported from Langfuse, and downloaded traces."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the rows are observations of a trace, in either spelling."""
        named = (
            (b"traceId", b"parentObservationId", b"type"),
            (b"trace_id", b"parent_observation_id", b"type"),
        )
        return max(_has_keys(document, keys) for keys in named)

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the run of each trace or session."""
        yield from _read(document, "langfuse", _langfuse_span)


def _has_keys(document: LogDocument, keys: Iterable[bytes]) -> int:
    is_json = document.head.lstrip().startswith((b"{", b"["))
    return MARKED if is_json and all(key in document.quoted for key in keys) else 0


def _read(document: LogDocument, format: str, span_of: Any) -> Iterator[Recording | Skipped]:
    spans: list[OtlpSpan] = []
    for row in _rows(document):
        if isinstance(row, Skipped):
            yield row
        elif (span := span_of(row)) is not None:
            spans.append(span)
    yield from runs_of(document, spans, format)


def _rows(document: LogDocument) -> Iterator[Row | Skipped]:
    first, ends, _ = document.head.lstrip().partition(b"\n")
    if first.startswith(b"{") and (first.rstrip().endswith(b"}") or not ends) and len(document.first_records) > 1:
        yield from objects_by_line(document)
        return
    try:
        whole = document.json()
    except InputFileError as error:
        yield skipped(document, error)
        return
    content = mapping_of(whole)
    told = next((content[name] for name in ("observations", "data", "runs") if name in content), None)
    trace = mapping_of(content.get("trace")) or content
    shared = {"session_id": trace.get("sessionId")} if told is not None else {}
    for row in items_of(whole if isinstance(whole, list) else [whole] if told is None else told):
        yield {**shared, **row}


def _span(
    row: Row, trace: str, parent: object, start: object, operation: str, failed: bool, given: Row
) -> OtlpSpan | None:
    id = string_of(row.get("id"))
    attributes = {name: value for name, value in given.items() if value not in (None, "", [])}
    error = "error" if failed else ""
    known = OtlpSpan(trace or id, id, string_of(parent), _nanoseconds(start), operation, attributes, (), error)
    return known if id else None


def _nanoseconds(time: object) -> int:
    try:
        moment = datetime.fromisoformat(string_of(time).replace("Z", "+00:00"))
    except ValueError:
        return 0
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000_000) * 1_000


def _langsmith_span(row: Row) -> OtlpSpan | None:
    kind = _LANGSMITH.get(string_of(row.get("run_type")), "")
    more = mapping_of(mapping_of(row.get("extra")).get("metadata"))
    inputs, outputs = structured(row.get("inputs")), structured(row.get("outputs"))
    names = ("thread_id", "session_id", "conversation_id")
    given: dict[str, Any] = {
        "gen_ai.conversation.id": next(filter(None, (string_of(more.get(name)) for name in names)), "")
    }
    if kind == _CHAT:
        given |= _chat(inputs, outputs, more.get("ls_model_name") or _model(row))
        counts = {"prompt_tokens": row.get("prompt_tokens"), "completion_tokens": row.get("completion_tokens")}
        details = mapping_of(row.get("prompt_token_details"))
        given |= _counted(counts | {"cache_read_tokens": details.get("cache_read")}) if counts["prompt_tokens"] else {}
    elif kind == TOOL:
        given |= _tool(row, inputs, mapping_of(outputs).get("output", outputs), row.get("error"))
    failed = bool(row.get("error"))
    return _span(
        row, string_of(row.get("trace_id")), row.get("parent_run_id"), row.get("start_time"), kind, failed, given
    )


def _model(row: Row) -> object:
    invoked = mapping_of(mapping_of(row.get("extra")).get("invocation_params"))
    return invoked.get("model") or invoked.get("model_name")


def _langfuse_span(row: Row) -> OtlpSpan | None:
    def of(*names: str) -> Any:
        return next((row[name] for name in names if row.get(name) is not None), None)

    kind = _LANGFUSE.get(string_of(row.get("type")).upper(), "")
    inputs, outputs = structured(row.get("input")), structured(row.get("output"))
    given: dict[str, Any] = {"gen_ai.conversation.id": of("sessionId", "session_id")}
    if kind == _CHAT:
        given |= _chat(inputs, outputs, of("model", "providedModelName", "provided_model_name"))
        given |= _langfuse_counts(mapping_of(structured(of("usageDetails", "usage_details", "usage"))))
    elif kind == TOOL:
        shown = outputs if outputs is not None else row.get("output")
        given |= _tool(row, inputs, shown, of("statusMessage", "status_message"))
    elif kind == AGENT:
        given["gen_ai.agent.name"] = row.get("name")
    failed, trace = row.get("level") == "ERROR", string_of(of("traceId", "trace_id"))
    above = of("parentObservationId", "parent_observation_id")
    return _span(row, trace, above, of("startTime", "start_time"), kind, failed, given)


def _langfuse_counts(counts: Row) -> dict[str, Any]:
    if "input" not in counts and "output" not in counts:
        return _counted(counts)
    # The parts of the input are counted apart: `input` is what was neither cached nor written to the cache.
    whole = [value for name, value in counts.items() if name.startswith(("input", "cache_"))]
    read = (value for name, value in counts.items() if name.startswith("input_cache") or "cache_read" in name)
    return _named(logged_usage(whole, [counts.get("output")], sum(map(count_of, read))))


def _counted(counts: Row) -> dict[str, Any]:
    return _named(usage_of(dict(counts)))


def _named(usage: LoggedUsage | None) -> dict[str, Any]:
    """Return the attributes of a usage; none if it is unknown."""
    if usage is None:
        return {}
    names = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.cache_read.input_tokens"
    return dict(zip(names, (usage.input_tokens, usage.output_tokens, usage.cached_tokens), strict=True))


def _chat(inputs: object, outputs: object, model: object) -> dict[str, Any]:
    asked, said = list(_messages(inputs)), list(_messages(outputs))
    return {
        "gen_ai.request.model": string_of(model),
        "gen_ai.input.messages": [{"parts": list(_parts(message))} for message in asked],
        "gen_ai.output.messages": [{"parts": list(_parts(message))} for message in said[-1:]],
    }


def _messages(value: object) -> Iterator[Row]:
    """Yield the messages in what a model was sent or replied, whichever client logged it."""
    if isinstance(value, str):
        yield {"role": "", "content": value}
    elif isinstance(value, list):
        for item in value:
            yield from _messages(item) if isinstance(item, list) else [mapping_of(item)]
    elif isinstance(value, dict):
        inner = next(
            (value[name] for name in ("messages", "generations", "choices", "output") if value.get(name)), None
        )
        if inner is not None:
            for message in _messages(inner):
                yield mapping_of(message.get("message")) or message
        else:
            yield value


def _parts(message: Row) -> Iterator[dict[str, Any]]:
    kwargs = mapping_of(message.get("kwargs"))  # of a message that LangChain has serialized
    known = kwargs or mapping_of(message.get("data")) or message
    role = string_of(known.get("role")) or string_of(known.get("type"))
    content, id = known.get("content", known.get("text")), string_of(known.get("tool_call_id"))
    if id or _ROLES.get(role, role) == "tool":
        yield {"type": "tool_call_response", "id": id, "response": text_of(content) or as_text(content)}
        return
    if text := text_of(
        [block for block in content if mapping_of(block).get("type", "text") == "text"]
        if isinstance(content, list)
        else content
    ):
        yield {"type": "text", "content": text}
    calls = native_calls({"tool_calls": items_of(known.get("tool_calls"))})
    if not calls:
        calls = [
            (string_of(one.get("id")), string_of(one.get("name")), one) for one in items_of(known.get("tool_calls"))
        ]
    given = {string_of(one.get("id")): one.get("args") for one in items_of(known.get("tool_calls"))}
    for call, tool, arguments in calls:
        told = given.get(call)
        yield {
            "type": "tool_call",
            "id": call,
            "name": tool,
            "arguments": told if isinstance(told, dict) else arguments,
        }
    if not calls:
        yield from _blocks(content)


def _blocks(content: object) -> Iterator[dict[str, Any]]:
    """Yield the calls and results that are blocks of a message's content."""
    for block in items_of(content):
        if block.get("type") == "tool_use":
            arguments = arguments_of(block.get("input"))
            yield {"type": "tool_call", "id": string_of(block.get("id")), "name": string_of(block.get("name"))} | {
                "arguments": arguments
            }
        elif block.get("type") == "tool_result":
            told = block.get("content")
            yield {"type": "tool_call_response", "id": string_of(block.get("tool_use_id")), "response": text_of(told)}


def _tool(row: Row, inputs: object, output: object, error: object) -> dict[str, Any]:
    """Return a call of a tool; its arguments may be a text of Python or JSON under `input`."""
    given = mapping_of(inputs)
    told = given.get("input") if set(given) == {"input"} else None
    if isinstance(told, str):
        given = arguments_of(told if told.lstrip().startswith("{") and '"' in told else _as_json(told))
    result = mapping_of(output)
    kwargs = mapping_of(result.get("kwargs")) or result
    shown = text_of(kwargs.get("content")) or text_of(output) or (as_text(output) if output is not None else "")
    return {
        "gen_ai.tool.name": string_of(row.get("name")),
        "gen_ai.tool.call.id": string_of(kwargs.get("tool_call_id")),
        "gen_ai.tool.call.arguments": given or inputs,
        "gen_ai.tool.call.result": shown or string_of(error),
    }


def _as_json(text: str) -> str:
    """Return the JSON of a dictionary that Python printed; other text as it is."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return json.dumps(value) if isinstance(value, dict) else text
