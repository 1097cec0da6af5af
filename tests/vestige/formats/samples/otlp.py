"""OTLP/JSON: a small trace as JSON lines, whose agent uses a tool and a memory, and the same as one document."""

from __future__ import annotations

import json
from typing import Any

from tests.vestige.formats.samples import as_json, as_lines

TRACE = "5b8efff798038103d269b633813fc60c"
SECOND = 1_000_000_000
MESSAGE: list[Any] = [
    {
        "role": "assistant",
        "parts": [
            {"type": "text", "content": "I look at the file."},
            {"type": "tool_call", "id": "call_1", "name": "bash", "arguments": {"command": "cat a.py"}},
        ],
        "finish_reason": "tool_call",
    }
]
DONE: list[Any] = [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}], "finish_reason": "stop"}]


def attribute(name: str, value: Any) -> dict[str, Any]:
    """Return a pair as OTLP spells it."""
    kinds: dict[type, tuple[str, Any]] = {str: ("stringValue", value), int: ("intValue", str(value))}
    kind, spelled = kinds.get(type(value), ("stringValue", json.dumps(value)))
    return {"key": name, "value": {kind: spelled}}


def span(id: int, parent: int, name: str, start: int, **attributes: Any) -> dict[str, Any]:
    """Return a span of the trace; double underscores in names stand for dots."""
    given = [attribute(f"gen_ai.{key.replace('__', '.')}", value) for key, value in attributes.items()]
    made = {
        "traceId": TRACE,
        "spanId": f"{id:016x}",
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(start * SECOND),
        "endTimeUnixNano": str((start + 1) * SECOND),
        "attributes": given,
    }
    return {**made, "parentSpanId": f"{parent:016x}"} if parent else made


def export(*spans: dict[str, Any]) -> dict[str, Any]:
    """Return one exported request."""
    resource = {"attributes": [attribute("service.name", "mine")]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "mine"}, "spans": spans}]}]}


AGENT = span(1, 0, "invoke_agent mender", 1, operation__name="invoke_agent", agent__name="mender")
FIRST = span(
    2,
    1,
    "chat m1",
    2,
    operation__name="chat",
    request__model="m1",
    usage__input_tokens=100,
    usage__output_tokens=20,
    usage__cache_read__input_tokens=40,
    system_instructions=[{"type": "text", "content": "You mend."}],
    input__messages=[{"role": "user", "parts": [{"type": "text", "content": "Mend a.py."}]}],
    output__messages=MESSAGE,
)
TOOL = span(
    3,
    1,
    "execute_tool bash",
    3,
    operation__name="execute_tool",
    tool__name="bash",
    tool__call__id="call_1",
    tool__call__arguments={"command": "cat a.py"},
    tool__call__result="print(1)",
)
MEMORY = span(
    4,
    1,
    "search_memory",
    4,
    operation__name="search_memory",
    memory__query__text="a.py",
    memory__records=[{"content": "a.py prints"}],
)
LAST = span(5, 1, "chat m1", 5, operation__name="chat", request__model="m1", output__messages=DONE)

FILES = {
    # As a collector writes it: the agent's span ends last, and stands last.
    "trace.jsonl": as_lines(export(FIRST, TOOL), export(MEMORY, LAST), export(AGENT)),
    "trace.json": as_json(export(AGENT, FIRST, TOOL, MEMORY, LAST)),
}
