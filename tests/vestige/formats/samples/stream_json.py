"""`claude -p --output-format stream-json` 2.1 (November 2026): a view, and a sub-agent with a command."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_lines


def message(kind: str, *content: dict[str, Any], parent: str | None = None, id: str = "m") -> dict[str, Any]:
    """Return a message of the agent or a result."""
    told = {"id": id, "role": kind, "content": list(content), "usage": {"input_tokens": 9, "output_tokens": 1}}
    return {"type": kind, "session_id": "s1", "parent_tool_use_id": parent, "message": told}


def asked(id: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return a call."""
    return {"type": "tool_use", "id": id, "name": tool, "input": arguments}


def told(id: str, output: str) -> dict[str, Any]:
    """Return a result."""
    return {"type": "tool_result", "tool_use_id": id, "content": output}


START = {"type": "system", "subtype": "init", "session_id": "s1", "cwd": "/repo", "model": "m", "tools": ["Read"]}
LINES = [
    {**START, "claude_code_version": "2.1.325"},
    message("assistant", asked("c1", "Read", file_path="/repo/a.py"), id="m1"),
    message("user", told("c1", "1\tx = 1")),
    message("assistant", asked("c2", "Task", prompt="Look."), id="m2"),
    message("assistant", asked("c3", "Bash", command="cat b.py"), parent="c2", id="m3"),
    message("user", told("c3", "y = 2"), parent="c2"),
    message("user", told("c2", "Looked.")),
    message("assistant", {"type": "text", "text": "Done."}, id="m4"),
    {"type": "result", "subtype": "success", "session_id": "s1", "result": "Done."},
]

FILES = {"stream.jsonl": as_lines(*LINES)}
