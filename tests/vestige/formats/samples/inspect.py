"""Inspect: a log of one sample, as an archive and as JSON."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from tests.vestige.formats.samples import as_json

TITLE = "Here's the result of running `cat -n` on /repo/a.py:\n"


def asked(id: str, function: str, output: str, **arguments: Any) -> list[dict[str, Any]]:
    """Return a call and its answer."""
    call = {"id": id, "function": function, "arguments": arguments, "type": "function"}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "function": function, "content": output},
    ]


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
        *asked("c2", "text_editor", f"{TITLE}     1\tx\n", command="view", path="/repo/a.py"),
        *asked("c3", "python", "b\n", code="print(open('/repo/b.py').read())\nopen('/repo/c.py', 'w').write('1')"),
        *asked("c4", "bash_session", "d\nroot@box:/# ", action="type_submit", input="cat /repo/d.py"),
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
