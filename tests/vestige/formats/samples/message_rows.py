"""Rows of messages: SWE-rebench OpenHands, CoderForge with messages as text and calls as text, nebius SWE-agent."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.vestige.formats.samples import as_json, as_lines

PATCH = "diff --git a/pkg/a.py b/pkg/a.py\n--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
TOOLS = [{"type": "function", "function": {"name": "execute_bash"}}]


def native(id: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return a native call."""
    return {"id": id, "type": "function", "function": {"name": tool, "arguments": as_json(arguments).decode()}}


def message(role: str, content: str, calls: Any = None, answers: str | None = None) -> dict[str, Any]:
    """Return a message as a table keeps it: all columns, null where they do not apply."""
    return {"role": role, "content": content, "tool_calls": calls, "tool_call_id": answers, "name": None}


REBENCH: dict[str, Any] = {
    "trajectory_id": "chatcmpl-1",
    "instance_id": "owner__repo-1",
    "repo": "owner/repo",
    "trajectory": [
        message("system", "You are an agent."),
        message("user", "<uploaded_files>\n/workspace/repo__1.0\n</uploaded_files>\nSolve it."),
        message(
            "assistant",
            "Think and look.",
            [native("c1", "think", thought="hm"), native("c2", "execute_bash", command="ls", security_risk=None)],
        ),
        message("tool", "a.py\n[The command completed with exit code 0.]\n[Current working directory: /x]", None, "c2"),
        message("tool", "Your thought has been logged.", None, "c1"),
        message("assistant", "", [native("c3", "str_replace_editor", command="view", path="/x/a.py")]),
        message("tool", "1\tx = 1", None, "c3"),
    ],
    "tools": TOOLS,
    "model_patch": PATCH,
    "exit_status": "submit",
    "resolved": 1,
}

XML = (
    "<think>hm</think>\n\n<function=str_replace_editor>\n<parameter=command>view</parameter>\n"
    "<parameter=path>/x/a.py</parameter>\n<parameter=view_range>[1, 9]</parameter>\n</function>"
)
CODERFORGE: dict[str, Any] = {
    "trajectory_id": "owner__repo-2_run1",
    "reward": 0.0,
    "finish_reason": "stop",
    "image": "images/owner__repo-2",
    "messages": as_json(
        [
            {"role": "system", "content": "You are an agent."},
            {"role": "user", "content": "Solve it."},
            {"role": "assistant", "content": XML},
            {"role": "user", "content": "<tool_response>\n1\tx = 1\n</tool_response>"},
        ]
    ).decode(),
    "tools": as_json(TOOLS).decode(),
}

NEBIUS: dict[str, Any] = {
    "instance_id": "owner__repo-3",
    "model_name": "maker/model-1",
    "target": False,
    "trajectory": [
        {"cutoff_date": "2023", "mask": False, "role": "system", "system_prompt": "SETTING", "text": None},
        {
            "cutoff_date": None,
            "mask": False,
            "role": "user",
            "system_prompt": None,
            "text": "the issue\n(Open file: n/a)\n(Current directory: /repo)\nbash-$",
        },
        {"cutoff_date": None, "mask": True, "role": "ai", "system_prompt": None, "text": "Look.\n```\nopen a.py\n```"},
        {
            "cutoff_date": None,
            "mask": False,
            "role": "user",
            "system_prompt": None,
            "text": "[File: a.py (9 lines total)]\n1:x\n(Open file: /repo/a.py)\n(Current directory: /repo)\nbash-$",
        },
        {"cutoff_date": None, "mask": True, "role": "ai", "system_prompt": None, "text": "Done.\n```\nsubmit\n```"},
    ],
    "exit_status": "submitted",
    "generated_patch": PATCH,
}

MINI: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": "Solve it."},
        {"role": "assistant", "content": "Look.\n```bash\nls\n```"},
        {"role": "user", "content": "<returncode>0</returncode>\n<output>\na.py\n</output>"},
    ],
    "instance_id": "owner__repo-4",
}


def parquet(*rows: dict[str, Any]) -> bytes:
    """Return rows as a Parquet file."""
    written = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), written)
    return written.getvalue()


FILES = {
    "rebench.jsonl": as_lines(REBENCH),
    "rebench.parquet": parquet(REBENCH),
    "coderforge.jsonl": as_lines(CODERFORGE),
    "coderforge.parquet": parquet(CODERFORGE),
    "nebius.jsonl": as_lines(NEBIUS, MINI),
}
