"""Gemini CLI sessions."""

from __future__ import annotations

from pathlib import Path

from eirkit.vestige.source import Skipped
from eirkit.vestige.trajectory import Usage
from tests.vestige.formats.logs import as_json, only_run, read_with, who_recognises
from tests.vestige.recorded import recorded

FORMAT = "gemini-cli"
CALL = {
    "id": "c1",
    "name": "run_shell_command",
    "args": {"command": "ls", "directory": "sub"},
    "status": "success",
    "result": [{"functionResponse": {"id": "c1", "name": "run_shell_command", "response": {"output": "a.py"}}}],
}
SESSION = {
    "sessionId": "s1",
    "projectHash": "p1",
    "messages": [
        {"type": "user", "content": "Go"},
        {
            "type": "gemini",
            "content": "Looking.",
            "model": "g",
            "toolCalls": [CALL],
            "tokens": {"input": 9, "output": 2},
        },
        {"type": "gemini", "content": "Done.", "model": "g", "tokens": {"input": 12, "output": 1, "cached": 9}},
    ],
}


def test_a_session_is_a_run(tmp_path: Path) -> None:
    path = as_json(tmp_path / "session.json", SESSION)
    assert who_recognises(path) == [FORMAT]
    run = only_run(FORMAT, path)
    (call,) = run.turns[0].calls
    assert (run.run_id, run.model, run.prompt, len(run.turns)) == ("s1", "g", "Go", 2)
    assert (call.tool, call.arguments["command"], call.output, call.working_folder) == ("bash", "ls", "a.py", "sub")
    assert run.turns[1].usage == Usage(12, 1, 9)


def test_a_session_without_replies_says_so(tmp_path: Path) -> None:
    (nothing,) = read_with(FORMAT, as_json(tmp_path / "session.json", SESSION | {"messages": [3]}))
    assert isinstance(nothing, Skipped)


def test_a_recorded_session() -> None:
    run = only_run(FORMAT, recorded("atif") / "gemini-cli-trajectory.json")
    assert (len(run.turns), run.turns[0].usage) == (1, Usage(5915, 24, 0))
