"""Cursor (2025): a view whose call has no id, and an edit."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_lines


def said(role: str, *content: dict[str, Any]) -> dict[str, Any]:
    """Return a message."""
    return {"role": role, "message": {"content": list(content)}}


def text(words: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": words}


LINES = [
    said("user", text("Mend a.py")),
    said("assistant", text("Look."), {"type": "tool_use", "name": "Read", "input": {"file_path": "a.py"}}),
    said("user", {"type": "tool_result", "tool_use_id": "t1", "content": [text("x = 1")]}),
    said("assistant", {"type": "tool_use", "name": "Write", "input": {"file_path": "a.py", "content": "x = 2"}}),
    said("user", {"type": "tool_result", "tool_use_id": "t2", "content": [text("Wrote it.")]}),
    said("assistant", text("Done.")),
]

FILES = {"transcript.jsonl": as_lines(*LINES)}
