"""Cline 3.0.65 (November 2026) from the command line, and the editor extension's history of 2025 with calls as tags."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_json


def said(role: str, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a message."""
    return {"role": role, "content": list(blocks), **more}


def text(words: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": words}


def asked(id: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return a reply with one call."""
    call = {"type": "tool_use", "id": id, "name": tool, "input": arguments}
    counts = {"inputTokens": 1900, "outputTokens": 20, "cacheReadTokens": 100, "cacheWriteTokens": 0}
    return said("assistant", call, modelInfo={"id": "fake-model"}, metrics=counts)


def told(id: str, content: Any) -> dict[str, Any]:
    """Return a result."""
    return said("user", {"type": "tool_result", "tool_use_id": id, "content": content})


RAN = "[Command exited with code 1]\n\n[stderr]\nAssertionError\n"
MESSAGES = [
    said("user", text('<user_input mode="act">Mend a.py</user_input>')),
    asked("c1", "read_files", files=[{"path": "/repo/a.py", "start_line": 2, "end_line": 3}]),
    told("c1", [{"query": "/repo/a.py:2-3", "result": "2 | x = 1\n3 | y = 2", "success": True}]),
    asked("c2", "editor", path="/repo/a.py", old_text="x = 1", new_text="x = 2"),
    told("c2", '{"query":"edit:/repo/a.py","result":"Edited /repo/a.py","success":true}'),
    asked("c3", "run_commands", commands=["python3 t.py"]),
    told("c3", [{"query": "python3 t.py", "result": RAN, "error": "Command exited with code 1", "success": False}]),
    said("assistant", text("Done.")),
]
SESSION = {"version": 1, "agent": "lead", "sessionId": "l1", "origin": {"version": "3.0.65"}, "messages": MESSAGES}
ABOUT = {"version": 1, "session_id": "l1", "model": "fake-model", "cwd": "/repo", "workspace_root": "/repo"}
TAGGED = [
    said("user", text("<task>\nMend a.py\n</task>"), text("<environment_details>\n# Time\n</environment_details>")),
    said("assistant", text("I look.\n\n<read_file>\n<path>a.py</path>\n</read_file>")),
    said("user", text("[read_file for 'a.py'] Result:\nx = 1"), text("<environment_details>\n</environment_details>")),
    said("assistant", text("<write_to_file>\n<path>a.py</path>\n<content>\nx = 2\n</content>\n</write_to_file>")),
    said("user", text("[write_to_file for 'a.py'] Result:\nThe content was successfully saved to a.py.")),
    said("assistant", text("<execute_command>\n<command>cat b.py</command>\n</execute_command>")),
    said("user", text("[execute_command for 'cat b.py'] Result:\nCommand executed.\nOutput:\ny = 1")),
]

FILES = {
    "l1/l1.messages.json": as_json(SESSION),
    "l1/l1.json": as_json(ABOUT),
    "1700000000000/api_conversation_history.json": as_json(TAGGED),
}
BESIDE = ("l1/l1.json",)
