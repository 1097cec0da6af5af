"""`codex exec --json` 0.166 (November 2026): a command, a change and a message, after a warning."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_lines


def done(number: int, kind: str, **more: Any) -> dict[str, Any]:
    """Return a completed item."""
    return {"type": "item.completed", "item": {"id": f"item_{number}", "type": kind, **more}}


CAT = {"command": "/bin/bash -lc 'cat a.py'", "aggregated_output": "x = 1\n", "exit_code": 0, "status": "completed"}
LINES = [
    {"type": "thread.started", "thread_id": "t1"},
    {"type": "turn.started"},
    done(0, "command_execution", **CAT),
    done(1, "file_change", changes=[{"path": "/repo/a.py", "kind": "update"}], status="completed"),
    done(2, "agent_message", text="Done."),
    {"type": "turn.completed", "usage": {"input_tokens": 2000, "cached_input_tokens": 100, "output_tokens": 20}},
]

FILES = {"exec.jsonl": as_lines(*LINES)}
