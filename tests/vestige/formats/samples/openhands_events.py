"""OpenHands events: a run with parallel calls, a condensation, a call nobody understood and an error; old pairs."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_json, as_lines

PATCH = "diff --git a/pkg/a.py b/pkg/a.py\n--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
PROMPT = "<uploaded_files>\n/workspace/repo__1.0\n</uploaded_files>\nSolve it."


def response(id: str, tool: str, prompt_tokens: int) -> dict[str, Any]:
    """Return what both an action and its observation repeat of the response they come from."""
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 3}
    return {"function_name": tool, "tool_call_id": id, "model_response": {"id": id, "usage": usage, "choices": []}}


def event(id: int, source: str, **facts: Any) -> dict[str, Any]:
    """Return an event."""
    return {"id": id, "timestamp": "2025-01-01T00:00:00", "source": source, "message": "", **facts}


FIRST, SECOND, THIRD = (
    response("r1", "execute_bash", 100),
    response("r2", "str_replace_editor", 200),
    response("r3", "finish", 50),
)
VIEWED = {**FIRST, "function_name": "str_replace_editor", "tool_call_id": "another call of the same response"}
PATH = "/workspace/repo__1.0/pkg/a.py"
HISTORY = [
    event(0, "agent", action="system", args={"content": "You are an agent.", "tools": []}),
    event(1, "user", action="message", args={"content": PROMPT}),
    event(2, "user", action="recall", args={"query": "q"}),
    event(3, "environment", observation="recall", cause=2, content="", extras={}),
    event(4, "agent", action="run", tool_call_metadata=FIRST, args={"command": "cd pkg", "thought": "Look."}),
    event(
        5, "agent", action="read", tool_call_metadata=VIEWED, args={"path": PATH, "view_range": [1, 9], "thought": ""}
    ),
    event(6, "agent", observation="read", cause=5, content="1\tx = 1", tool_call_metadata=VIEWED, extras={}),
    event(
        7,
        "agent",
        observation="run",
        cause=4,
        content="",
        tool_call_metadata=FIRST,
        extras={"metadata": {"exit_code": 0, "working_dir": "/workspace/repo__1.0/pkg"}},
    ),
    event(8, "agent", observation="error", content="Parameter 'command' is missing.", extras={}),
    event(9, "environment", observation="agent_state_changed", content="", extras={"agent_state": "running"}),
    event(10, "agent", action="condensation", args={"forgotten_event_ids": [4, 5], "summary": "Looked at a.py."}),
    event(
        11,
        "agent",
        action="edit",
        tool_call_metadata=SECOND,
        args={
            "path": PATH,
            "command": "str_replace",
            "file_text": None,
            "old_str": "x = 1",
            "new_str": "x = 2",
            "start": 1,
            "end": -1,
            "thought": "Change.",
        },
    ),
    event(12, "agent", observation="edit", cause=11, content="ERROR:\nno", tool_call_metadata=SECOND, extras={}),
    event(13, "agent", action="finish", tool_call_metadata=THIRD, args={"final_thought": "done", "thought": ""}),
]


def run(task: str, history: list[Any], **more: Any) -> dict[str, Any]:
    """Return one line of an evaluation's output."""
    return {
        "instance_id": task,
        "test_result": {"git_patch": PATCH},
        "instruction": PROMPT,
        "metadata": {"llm_config": {"model": "maker/model-1"}},
        "history": history,
        "metrics": {"token_usages": [{"response_id": "r1", "prompt_tokens": 100, "completion_tokens": 3}]},
        "error": None,
        **more,
    }


PAIRS = [
    [
        {"source": "agent", "action": "run", "args": {"command": "ls", "thought": "Look."}},
        {"source": "agent", "observation": "run", "content": "a.py", "extras": {"exit_code": 2}},
    ],
    [{"source": "agent", "action": "message", "args": {"content": "Done."}}, {"source": "user", "observation": "null"}],
]

FILES = {
    "output.jsonl": as_lines(
        run("owner__repo-1", HISTORY, report={"resolved": True}),
        run("owner__repo-2", PAIRS, error="RuntimeError: limit"),
    ),
    "trajectory.json": as_json(HISTORY),
}
