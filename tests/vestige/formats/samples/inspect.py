"""Inspect: a log of one sample, as an archive and as JSON."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from tests.vestige.formats.samples import as_json

SAMPLE: dict[str, Any] = {
    "id": "s1",
    "epoch": 1,
    "input": "Solve it.",
    "target": "flag",
    "messages": [
        {"role": "user", "content": "Solve it."},
        {
            "role": "assistant",
            "content": "Look.",
            "tool_calls": [{"id": "c1", "function": "bash", "arguments": {"cmd": "ls"}, "type": "function"}],
        },
        {"role": "tool", "tool_call_id": "c1", "function": "bash", "content": "a.py"},
    ],
    "scores": {"includes": {"value": "C", "answer": "flag"}},
}
HEADER: dict[str, Any] = {
    "version": 2,
    "status": "success",
    "eval": {"run_id": "r1", "eval_id": "e1", "task": "ctf", "task_id": "t1", "model": "maker/model-1"},
}


def _archive() -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("header.json", as_json(HEADER))
        archive.writestr("samples/s1_epoch_1.json", as_json(SAMPLE))
    return written.getvalue()


FILES = {"log.eval": _archive(), "log.json": as_json({**HEADER, "samples": [SAMPLE]})}
