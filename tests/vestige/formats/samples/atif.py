"""ATIF: a short trajectory."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_json

STEPS: list[dict[str, Any]] = [
    {"step_id": 1, "source": "user", "message": "Solve it."},
    {
        "step_id": 2,
        "source": "agent",
        "message": "Look.",
        "tool_calls": [{"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "ls"}}],
        "observation": {"results": [{"source_call_id": "c1", "content": "a.py"}]},
        "metrics": {"prompt_tokens": 10, "completion_tokens": 2},
    },
]
TRAJECTORY = {
    "schema_version": "ATIF-v1.5",
    "session_id": "s1",
    "agent": {"name": "agent", "version": "1", "model_name": "maker/model-1"},
    "steps": STEPS,
}

FILES = {"trajectory.json": as_json(TRAJECTORY)}
