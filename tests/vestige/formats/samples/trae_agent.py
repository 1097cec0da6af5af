"""Trae agent (2025): a view, an edit and a command, after its published schema."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_json


def step(number: int, content: str, *called: tuple[str, dict[str, Any], str, bool]) -> dict[str, Any]:
    """Return a step with its calls: tool, arguments, result and whether it succeeded."""
    calls = [{"call_id": f"c{number}", "name": tool, "arguments": given} for tool, given, _, _ in called]
    results = [
        {"call_id": f"c{number}", "success": done, "result": shown if done else None, "error": None if done else shown}
        for _, _, shown, done in called
    ]
    usage = {"input_tokens": 2000, "output_tokens": 20}
    response = {"content": content, "model": "m", "finish_reason": "stop", "usage": usage, "tool_calls": calls or None}
    state = {"step_number": number, "state": "completed", "llm_messages": None, "llm_response": response}
    return {**state, "tool_calls": calls or None, "tool_results": results or None, "reflection": None, "error": None}


EDITOR, PATH = "str_replace_based_edit_tool", "/repo/a.py"
VIEW = "Here's the result of running `cat -n` on /repo/a.py:\n     2\tx = 1\n     3\ty = 2\n"
CHANGE = {"old_str": "x = 1", "new_str": "x = 2"}
STEPS = [
    step(1, "I look.", (EDITOR, {"command": "view", "path": PATH, "view_range": [2, 3]}, VIEW, True)),
    step(
        2, "", (EDITOR, {"command": "str_replace", "path": PATH, "old_str": "x = 1", "new_str": "x = 2"}, "Done", True)
    ),
    step(3, "", ("bash", {"command": "python3 t.py"}, "AssertionError", False)),
    step(4, "Done."),
]
CACHED = {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 1900}
TRAJECTORY = {
    "task": "Mend a.py",
    "start_time": "2025-09-12T22:05:46",
    "provider": "anthropic",
    "model": "claude-sonnet-4-20250514",
    "max_steps": 20,
    "llm_interactions": [{"response": {"content": "I look.", "usage": CACHED}}],
    "agent_steps": STEPS,
    "success": True,
}

FILES = {"trajectory_20250912_220546.json": as_json(TRAJECTORY)}
