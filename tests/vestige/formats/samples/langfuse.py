"""Langfuse (2026): observations as JSON lines and a downloaded trace, after the published fields."""

from __future__ import annotations

import json
from typing import Any

from tests.vestige.formats.samples import as_json, as_lines


def row(id: str, kind: str, name: str, start: int, given: Any, told: Any, **more: Any) -> dict[str, Any]:
    """Return an exported observation."""
    own = {"id": id, "trace_id": "t1", "parent_observation_id": None, "type": kind, "name": name, "level": "DEFAULT"}
    when = {"start_time": f"2026-11-16 13:17:{start:02d}.000000", "session_id": "f1"}
    return {**own, **when, "input": json.dumps(given), "output": json.dumps(told), **more}


ASKED = {"role": "user", "content": "Mend a.py"}
CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "cat a.py"}'}}
FIRST = {"role": "assistant", "content": None, "tool_calls": [CALL]}
SHOWN = {"role": "tool", "tool_call_id": "c1", "content": "x = 1"}
USE = {
    "type": "tool_use",
    "id": "c2",
    "name": "edit",
    "input": {"path": "a.py", "old_str": "x = 1", "new_str": "x = 2"},
}
COUNTS = {"input": 1900, "input_cached_tokens": 100, "output": 20, "total": 2020}
MODEL = {"provided_model_name": "gpt-5", "usage_details": COUNTS}
ROWS = [
    row("o1", "GENERATION", "chat", 1, {"messages": [ASKED]}, FIRST, **MODEL),
    row("o2", "TOOL", "bash", 2, {"command": "cat a.py"}, "x = 1"),
    row("o3", "GENERATION", "chat", 3, [ASKED, FIRST, SHOWN], {"role": "assistant", "content": [USE]}, **MODEL),
    row("o4", "TOOL", "edit", 4, USE["input"], "Edited."),
    row("o5", "GENERATION", "chat", 5, [ASKED], {"role": "assistant", "content": "Done."}, **MODEL),
]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


DOWNLOADED = [{_camel(name): value for name, value in one.items() if name != "session_id"} for one in ROWS]
TRACE = {"trace": {"id": "t1", "name": "agent", "sessionId": "f2"}, "observations": DOWNLOADED}

FILES = {"observations.jsonl": as_lines(*ROWS), "trace-t1.json": as_json(TRACE)}
