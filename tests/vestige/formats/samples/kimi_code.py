"""Kimi Code 2.1.0 (November 2026) with a compaction and a sub-agent, and the events of kimi-cli 1.51."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_json, as_lines

USAGE = {"inputOther": 1900, "output": 20, "inputCacheRead": 100, "inputCacheCreation": 0}


def event(kind: str, **more: Any) -> dict[str, Any]:
    """Return a record of the loop."""
    return {"type": "context.append_loop_event", "agentId": "main", "event": {"type": kind, **more}, "time": 1}


def called(id: str, tool: str, output: str, failed: bool = False, **arguments: Any) -> list[dict[str, Any]]:
    """Return the records of a step with one call."""
    result = {"output": output, "durationMs": 9, **({"isError": True} if failed else {})}
    return [
        event("step.begin", step=1),
        event("tool.call", toolCallId=id, name=tool, args=arguments, display={"kind": "file_io"}),
        event("tool.result", toolCallId=id, result=result),
        event("step.end", usage=USAGE),
    ]


def said(words: str, kind: str = "user") -> dict[str, Any]:
    """Return the record of a message."""
    message = {"role": "user", "content": [{"type": "text", "text": words}], "origin": {"kind": kind}}
    return {"type": "context.append_message", "agentId": "main", "message": message, "time": 1}


COMPACTED = {
    "type": "context.apply_compaction",
    "summary": "a.py was mended.",
    "contextSummary": "What follows is your own summary.\na.py was mended.",
    "compactedCount": 6,
    "tokensBefore": 97_020,
    "tokensAfter": 3_000,
    "keptUserMessageCount": 1,
}
HEAD = {"type": "metadata", "protocol_version": "1.5", "created_at": 1}
REQUEST = {"type": "llm.request", "kind": "loop", "provider": "openai", "model": "fake-model"}
LINES = [
    HEAD,
    said("Mend a.py"),
    REQUEST,
    *called("c1", "Read", "2\tx = 1\n3\ty = 2", path="/repo/a.py", line_offset=2, n_lines=2),
    *called("c2", "Edit", "Replaced 1 occurrence", path="/repo/a.py", old_string="x = 1", new_string="x = 2"),
    {"type": "full_compaction.begin", "source": "manual", "time": 1},
    COMPACTED,
    said("<system-reminder>Go on.</system-reminder>", "injection"),
    *called("c3", "Bash", "AssertionError\nCommand failed with exit code: 1.", True, command="python3 t.py"),
    event("step.begin", step=4),
    event("content.part", part={"type": "text", "text": "Done."}),
    event("step.end", usage=USAGE),
]
CHILD = [HEAD, said("Look at b.py"), *called("c1", "Bash", "z = 1", command="cat b.py")]


def told(kind: str, **payload: Any) -> dict[str, Any]:
    """Return an event of kimi-cli."""
    return {"timestamp": 1.5, "message": {"type": kind, "payload": payload}}


CALL = {"type": "function", "id": "c1", "function": {"name": "ReadFile", "arguments": '{"path": '}}
VALUE = {"is_error": False, "output": "     1\tx = 1\n", "message": "1 lines read from file starting from line 1."}
EDIT = {"name": "StrReplaceFile", "arguments": '{"path": "a.py", "edit": {"old": "x = 1", "new": "x = 2"}}'}
COUNTS = {"input_other": 1900, "output": 20, "input_cache_read": 100, "input_cache_creation": 0}
OLDER = [
    {"type": "metadata", "protocol_version": "1.3"},
    told("TurnBegin", user_input="Mend a.py"),
    told("StepBegin", n=1),
    told("ToolCall", **CALL),
    told("ToolCallPart", arguments_part='"a.py"}'),
    told("StatusUpdate", token_usage=COUNTS, max_context_tokens=100_000),
    told("ToolResult", tool_call_id="c1", return_value=VALUE),
    told("StepBegin", n=2),
    told("ToolCall", type="function", id="c2", function=EDIT),
    told("ToolResult", tool_call_id="c2", return_value={"is_error": False, "output": "", "message": "Edited."}),
    told("CompactionBegin"),
    told("CompactionEnd"),
    told("StepBegin", n=3),
    told("ContentPart", type="text", text="Done."),
]

FILES = {
    "session_k1/state.json": as_json({"id": "session_k1", "version": 2, "cwd": "/repo"}),
    "session_k1/agents/main/wire.jsonl": as_lines(*LINES),
    "session_k1/agents/agent-0/wire.jsonl": as_lines(*CHILD),
    "k2/wire.jsonl": as_lines(*OLDER),
    "k2/context.jsonl": as_lines({"role": "user", "content": "Mend a.py"}),
}
BESIDE = ("session_k1/state.json", "k2/context.jsonl")
