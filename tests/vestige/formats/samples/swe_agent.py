"""SWE-agent: thought and action with the state before it, function calling with the state after it, a bare history."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_json

DIFF = "diff --git a/pkg/a.py b/pkg/a.py\n--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
PROMPT_LINES = "\n(Open file: /repo/pkg/a.py)\n(Current directory: /repo)\nbash-$"


def old_step(action: str, observation: str, open_file: str = "n/a") -> dict[str, Any]:
    """Return a step of version 0, whose state is text and was taken before the action."""
    state = f'{{"open_file": "{open_file}", "working_dir": "/repo"}}\n'
    return {"action": action, "observation": observation, "response": "r", "state": state, "thought": "think\n"}


def new_step(action: str, observation: str, open_file: str, folder: str) -> dict[str, Any]:
    """Return a step of version 1, whose state was taken after the action."""
    state = {"open_file": open_file, "working_dir": folder}
    prompt = [{"role": "user", "content": "the whole prompt again"}]
    return {
        "action": action,
        "observation": observation,
        "response": "r",
        "thought": "think",
        "execution_time": 0.1,
        "state": state,
        "messages": prompt,
    }


OLD: dict[str, Any] = {
    "environment": "swe_main",
    "trajectory": [
        old_step("open pkg/a.py 3\n", "[File: /repo/pkg/a.py (9 lines total)]\n1:x = 1\n"),
        old_step(
            "edit 1:1\nx = 2\nend_of_edit\n", "[File: /repo/pkg/a.py (9 lines total)]\n1:x = 2\n", "/repo/pkg/a.py"
        ),
        old_step(
            "edit 1:1\nx = (\nend_of_edit\n", "Your proposed edit has introduced new syntax error(s).", "/repo/pkg/a.py"
        ),
        old_step("python -m pytest\n", "1 passed\n", "/repo/pkg/a.py"),
        old_step("submit\n", DIFF, "/repo/pkg/a.py"),
    ],
    "history": [
        {"role": "system", "content": "SETTING", "agent": "primary"},
        {"role": "user", "content": "a demonstration", "agent": "primary", "is_demo": True},
        {"role": "user", "content": "the issue", "agent": "primary"},
        {"role": "assistant", "content": "reply", "agent": "primary"},
    ],
    "info": {
        "exit_status": "submitted",
        "submission": "\r\n" + DIFF.replace("\n", "\r\n"),
        "model_stats": {"tokens_sent": 1000, "tokens_received": 10, "api_calls": 5},
    },
}

NEW: dict[str, Any] = {
    "trajectory": [
        new_step("cd pkg && ls", "a.py\r\n", "n/a", "/testbed/pkg"),
        new_step("str_replace_editor view /testbed/pkg/a.py --view_range 1 20", "1\tx = 1", "n/a", "/testbed/pkg"),
        new_step(
            "str_replace_editor str_replace /testbed/a.py --old_str 'x = '\"'\"'1'\"'\"'' --new_str \"x = \\\"2\\\"\"",
            "The file has been edited.",
            "n/a",
            "/testbed/pkg",
        ),
        new_step(
            "str_replace_editor create /testbed/b.py --file_text 'open quote", "bash: error", "n/a", "/testbed/pkg"
        ),
        new_step("submit", DIFF, "n/a", "/testbed/pkg"),
    ],
    "history": [{"role": "system", "content": "SETTING"}, {"role": "user", "content": "the issue"}],
    "info": {"exit_status": "submitted", "submission": DIFF, "model_stats": {"api_calls": 5}},
    "replay_config": as_json(
        {
            "agent": {"model": {"name": "maker/model-1"}},
            "env": {"repo": {"repo_name": "testbed"}},
            "problem_statement": {"id": "owner__repo-2"},
        }
    ).decode(),
    "environment": "main",
}

HISTORY: dict[str, Any] = {
    "history": [
        {"role": "system", "content": "SETTING", "agent": "main", "message_type": "system_prompt"},
        {"role": "user", "content": "the issue\n(Open file: n/a)\n(Current directory: /repo)\nbash-$", "agent": "main"},
        {
            "role": "assistant",
            "content": "think",
            "thought": "think",
            "action": 'open "pkg/a.py"',
            "agent": "main",
            "tool_calls": [{"id": "c1", "function": {"name": "open", "arguments": '{"path":"pkg/a.py"}'}}],
        },
        {
            "role": "tool",
            "content": f"[File: pkg/a.py (9 lines total)]\r\n1:x = 1{PROMPT_LINES}",
            "tool_call_ids": ["c1"],
        },
        {"role": "assistant", "content": "think", "thought": "think", "action": "submit", "agent": "main"},
        {"role": "tool", "content": DIFF},
    ]
}

FILES = {
    "owner__repo-1.traj": as_json(OLD),
    "owner__repo-2.traj": as_json(NEW),
    "owner__repo-3.traj": as_json(HISTORY),
}
