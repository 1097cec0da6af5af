"""Droid 0.81 (December 2025): a session of its own store, and the stream that it prints."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_lines


def said(id: str, role: str, *content: dict[str, Any]) -> dict[str, Any]:
    """Return a message of the store."""
    return {"type": "message", "id": id, "message": {"role": role, "content": list(content)}}


CAT = {"type": "tool_use", "id": "c1", "name": "Execute", "input": {"command": "cat a.py"}}
STORED = [
    {"type": "session_start", "id": "d1", "cwd": "/repo", "version": "0.81.0"},
    said("m1", "user", {"type": "text", "text": "Mend a.py"}),
    said("m2", "assistant", CAT),
    said("m3", "user", {"type": "tool_result", "tool_use_id": "c1", "content": "x = 1"}),
    said("m4", "assistant", {"type": "text", "text": "Done."}),
]
STREAM = [
    {"type": "system", "session_id": "d2", "model": "m", "cwd": "/repo"},
    {"type": "message", "session_id": "d2", "role": "user", "text": "Mend a.py"},
    {"type": "tool_call", "toolCallId": "c1", "toolName": "Execute", "parameters": {"command": "cat a.py"}},
    {"type": "tool_result", "toolCallId": "c1", "value": {"stdout": "x = 1", "exitCode": 0}},
    {"type": "message", "session_id": "d2", "role": "assistant", "text": "Done."},
]

FILES = {"d1.jsonl": as_lines(*STORED), "stream.jsonl": as_lines(*STREAM)}
