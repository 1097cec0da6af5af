"""Claude Code: a session of one exchange."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_lines


def entry(uuid: str, parent: str | None, kind: str, message: dict[str, Any]) -> dict[str, Any]:
    """Return one line."""
    facts = {"sessionId": "s1", "isSidechain": False, "cwd": "/repo", "timestamp": "2025-01-01T00:00:00Z"}
    return {"parentUuid": parent, "type": kind, "uuid": uuid, "message": message, **facts}


CALL = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "a.py"}

FILES = {
    "s1.jsonl": as_lines(
        entry("u1", None, "user", {"role": "user", "content": "Solve it."}),
        entry(
            "u2",
            "u1",
            "assistant",
            {
                "id": "m1",
                "role": "assistant",
                "model": "model-1",
                "content": [{"type": "text", "text": "Look."}, CALL],
                "usage": {"input_tokens": 10, "output_tokens": 2},
            },
        ),
        entry("u3", "u2", "user", {"role": "user", "content": [RESULT]}),
    )
}
