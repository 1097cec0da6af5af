"""Gemini CLI: a session of one exchange."""

from __future__ import annotations

from tests.vestige.formats.samples import as_json

CALL = {
    "id": "c1",
    "name": "run_shell_command",
    "args": {"command": "ls"},
    "result": [{"functionResponse": {"id": "c1", "response": {"output": "a.py"}}}],
    "status": "success",
}
MESSAGES = [
    {"id": "1", "type": "user", "content": "Solve it."},
    {"id": "2", "type": "gemini", "content": "Look.", "toolCalls": [CALL], "tokens": {"input": 10, "output": 2}},
]

FILES = {"session-1.json": as_json({"sessionId": "s1", "projectHash": "p1", "messages": MESSAGES})}
