"""Codex CLI: a rollout of one exchange."""

from __future__ import annotations

from typing import Any

from tests.vestige.formats.samples import as_lines


def line(kind: str, **payload: Any) -> dict[str, Any]:
    """Return one line in its envelope."""
    return {"timestamp": "2025-01-01T00:00:00Z", "type": kind, "payload": payload}


FILES = {
    "rollout-1.jsonl": as_lines(
        line("session_meta", id="t1", cwd="/repo", originator="codex_cli_rs", cli_version="0.60.0", source="cli"),
        line("turn_context", cwd="/repo", model="model-1", approval_policy="never"),
        line("response_item", type="message", role="user", content=[{"type": "input_text", "text": "Solve it."}]),
        line("response_item", type="function_call", call_id="c1", name="shell", arguments='{"command": ["ls"]}'),
        line("response_item", type="function_call_output", call_id="c1", output="a.py"),
        line("response_item", type="message", role="assistant", content=[{"type": "output_text", "text": "Done."}]),
    )
}
