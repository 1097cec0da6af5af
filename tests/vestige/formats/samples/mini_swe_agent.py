"""mini-SWE-agent: v1 with an accepted, a refused, a clipped, a timed-out and a last reply; v2 with parallel calls."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_json

DIFF = "diff --git a/pkg/a.py b/pkg/a.py\n--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"


def info(**more: Any) -> dict[str, Any]:
    """Return what both versions tell about a run."""
    return {
        "exit_status": "Submitted",
        "submission": DIFF,
        "model_stats": {"instance_cost": 0.1, "api_calls": 5},
        "mini_version": "1.15.0",
        "config": {"model": {"model_name": "maker/model-1"}, "environment": {"cwd": "/testbed"}},
        **more,
    }


def reply(text: str, prompt_tokens: int = 100) -> dict[str, Any]:
    """Return a reply of v1."""
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 40}}
    return {"role": "assistant", "content": text, "extra": {"response": {"id": "r", "usage": usage}}}


def said(text: str) -> dict[str, Any]:
    """Return a message of the scaffold."""
    return {"role": "user", "content": text}


ELIDED = (
    "<returncode>0</returncode>\n<warning>\nToo long.\n</warning><output_head>\nfirst\n</output_head>\n"
    "<elided_chars>\n27 characters elided\n</elided_chars>\n<output_tail>\nlast\n\n</output_tail>"
)
STOPPED = (
    "The last command <command>cat <<'E'\n<output>\nE\n</command> timed out and has been killed.\n"
    "The output of the command was:\n <output>\nhalf\n</output>\nPlease try another command."
)

V1: dict[str, Any] = {
    "info": info(),
    "messages": [
        {"role": "system", "content": "You work in a shell."},
        said("Solve the task."),
        reply("THOUGHT: look.\n\n```bash\nls pkg\n```"),
        said("<returncode>1</returncode>\n<output>\na.py</output>\n</output>"),
        reply("Two at once.\n```bash\nls\n```\nand\n```bash\npwd\n```"),
        said("Please always provide EXACTLY ONE action in triple backticks, found 2 actions."),
        reply("```bash\ncat big.txt\n```"),
        said(ELIDED),
        reply("```bash\nsleep 100\n```"),
        said(STOPPED),
        reply("Done.\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git diff --cached\n```", 500),
        said(DIFF),
    ],
    "trajectory_format": "mini-swe-agent-1",
    "instance_id": "owner__repo-1",
}


def tool_call(id: str, command: str) -> dict[str, Any]:
    """Return a native call of the shell."""
    return {
        "id": id,
        "type": "function",
        "function": {"name": "bash", "arguments": as_json({"command": command}).decode()},
    }


V2: dict[str, Any] = {
    "info": info(mini_version="2.2.7"),
    "messages": [
        {"role": "system", "content": "You work in a shell."},
        said("Solve the task."),
        {
            "role": "assistant",
            "content": "Look twice.",
            "tool_calls": [tool_call("c1", "cat a.py"), tool_call("c2", "cat big.txt")],
            "extra": {
                "actions": [{"command": "cat a.py", "tool_call_id": "c1"}],
                "response": {"usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None}},
            },
        },
        {
            "role": "tool",
            "tool_call_id": "c2",
            "content": ELIDED,
            "extra": {"raw_output": "first" + "x" * 60 + "last\n", "returncode": 0, "exception_info": ""},
        },
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": "<exception>gone</exception>\n<returncode>-1</returncode>\n<output>\n</output>",
            "extra": {"raw_output": "", "returncode": -1, "exception_info": "gone"},
        },
        {
            "role": "user",
            "content": "Tool call error",
            "extra": {"interrupt_type": "FormatError", "model_response": "no call at all"},
        },
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [tool_call("c3", "echo COMPLETE && cat patch.txt")],
            "extra": {},
        },
        {"role": "exit", "content": DIFF, "extra": {"exit_status": "Submitted", "submission": DIFF}},
    ],
    "trajectory_format": "mini-swe-agent-1.1",
    "instance_id": "owner__repo-2",
}

RESPONSES: dict[str, Any] = {
    "info": info(mini_version="2.3.0"),
    "messages": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Solve the task."}]},
        {
            "object": "response",
            "output": [
                {"type": "reasoning", "summary": []},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Look."}]},
                {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"command": "ls"}'},
            ],
            "usage": {"input_tokens": 30, "output_tokens": 4},
            "extra": {},
        },
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": "<returncode>0</returncode>\n<output>\na.py\n</output>",
            "extra": {"raw_output": "a.py\n", "returncode": 0, "exception_info": ""},
        },
    ],
    "trajectory_format": "mini-swe-agent-1.1",
}

FILES = {
    "trajs/owner__repo-1.traj.json": as_json(V1),
    "trajs/owner__repo-2.traj.json": as_json(V2),
    "trajs/owner__repo-3.traj.json": as_json(RESPONSES),
}
