"""Amp (2026): a thread with a view, an edit and a command, after its published shape."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_json


def asked(id: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return a reply with one call."""
    call = {"type": "tool_use", "id": id, "name": tool, "input": arguments, "complete": True}
    usage = {"model": "claude-opus-4-5", "inputTokens": 10, "outputTokens": 20}
    usage |= {"cacheCreationInputTokens": 190, "cacheReadInputTokens": 1800}
    return {"role": "assistant", "messageId": 1, "content": [call], "state": {"type": "complete"}, "usage": usage}


def told(id: str, result: Any, status: str = "done") -> dict[str, Any]:
    """Return a result."""
    block = {"type": "tool_result", "toolUseID": id, "run": {"status": status, "result": result}}
    return {"role": "user", "messageId": 2, "content": [block]}


ENV = {"trees": [{"uri": "file:///repo"}], "platform": {"os": "linux", "client": "CLI", "clientVersion": "0.0.1790"}}
MESSAGES = [
    {"role": "user", "messageId": 0, "content": [{"type": "text", "text": "Mend a.py"}]},
    asked("c1", "Read", path="/repo/a.py", read_range=[2, 3]),
    told("c1", {"absolutePath": "/repo/a.py", "content": "2: x = 1\n3: y = 2"}),
    asked("c2", "edit_file", path="/repo/a.py", old_str="x = 1", new_str="x = 2"),
    told("c2", {"diff": "-x = 1\n+x = 2", "lineRange": [2, 2]}),
    asked("c3", "Bash", cmd="python3 t.py", cwd="/repo"),
    told("c3", {"output": "AssertionError", "exitCode": 1}),
    {"role": "assistant", "messageId": 7, "content": [{"type": "text", "text": "Done."}]},
]
THREAD = {"v": 1, "id": "T-1", "title": "Mend", "agentMode": "smart", "env": {"initial": ENV}, "messages": MESSAGES}

FILES = {"threads/T-1.json": as_json(THREAD)}
