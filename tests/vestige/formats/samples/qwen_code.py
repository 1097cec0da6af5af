"""Qwen Code 0.24 (November 2026): a view, an edit, a failing command, and a compression that puts a file back."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_lines

COMMON = {"sessionId": "q1", "cwd": "/repo", "version": "0.24.4", "timestamp": "2026-11-16T13:00:00.000Z"}


def entry(number: int, kind: str, role: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a line with a message."""
    parent = f"u{number - 1}" if number else None
    return {
        "uuid": f"u{number}",
        "parentUuid": parent,
        **COMMON,
        "type": kind,
        "message": {"role": role, "parts": parts},
        **more,
    }


def asked(number: int, id: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return a reply with one call."""
    call = {"functionCall": {"id": id, "name": tool, "args": arguments}}
    usage = {"promptTokenCount": 2000, "candidatesTokenCount": 20, "cachedContentTokenCount": 500}
    return entry(number, "assistant", "model", call, model="qwen3", usageMetadata=usage, contextWindowSize=100_000)


def told(number: int, id: str, status: str = "success", **response: str) -> dict[str, Any]:
    """Return the result of a call."""
    part = {"functionResponse": {"id": id, "name": "x", "response": response}}
    return entry(number, "tool_result", "user", part, toolCallResult={"callId": id, "status": status})


FAILED = (
    "Command: python3 t.py\nDirectory: (root)\nOutput: AssertionError\nError: (none)\nExit Code: 1\nSignal: (none)\n"
    "Process Group PGID: 7"
)
COMPRESSED = [
    {"role": "user", "parts": [{"text": "<state_snapshot>a.py was mended</state_snapshot>"}]},
    {"role": "user", "parts": [{"text": "a.py:\nx = 1\ny = 2"}]},
]
LINES = [
    entry(0, "user", "user", {"text": "Mend a.py"}, provenance="real_user"),
    asked(1, "c1", "read_file", file_path="/repo/a.py", offset=1, limit=2),
    told(2, "c1", output="Showing lines 2-3 of 9 total lines.\n\n---\n\nx = 1\ny = 2"),
    asked(3, "c2", "edit", file_path="/repo/a.py", old_string="x = 1", new_string="x = 2"),
    told(4, "c2", output="The file: /repo/a.py has been updated."),
    asked(5, "c3", "run_shell_command", command="python3 t.py", is_background=False),
    told(6, "c3", "error", error=FAILED),
    {
        "uuid": "u7",
        "parentUuid": "u6",
        **COMMON,
        "type": "system",
        "subtype": "chat_compression",
        "systemPayload": {
            "info": {"originalTokenCount": 97_608, "newTokenCount": 3_789},
            "compressedHistory": COMPRESSED,
        },
    },
    entry(8, "assistant", "model", {"text": "Done."}, model="qwen3"),
]

FILES = {"q1.jsonl": as_lines(*LINES)}
