"""Gemini CLI sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.demand.live_states import measure_touches
from eirkit.vestige.formats.gemini_parts import ShellResult, shell_result
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.trajectory import LoggedUsage
from tests.vestige.formats.logs import as_json, only_run, read_with, who_recognizes
from tests.vestige.formats.samples import write_sample
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
    assert who_recognizes(path) == [FORMAT]
    run = only_run(FORMAT, path)
    (call,) = run.turns[0].calls
    assert (run.run_id, run.model, run.prompt, len(run.turns)) == ("s1", "g", "Go", 2)
    assert (call.tool, call.arguments["command"], call.output, call.working_folder) == ("bash", "ls", "a.py", "sub")
    assert run.turns[1].usage == LoggedUsage(12, 1, 9)


OLD = (
    "Command: {command}\nDirectory: {folder}\nStdout: {out}\nStderr: {err}\nError: (none)\nExit Code: {code}\n"
    "Signal: (none)\nBackground PIDs: (none)\nProcess Group PGID: 7"
)
PLAIN = {"command": "cat a.py", "folder": "(root)", "out": "x\ny", "err": "(empty)", "code": 0}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (OLD.format(**PLAIN), ShellResult("x\ny", 0)),
        (OLD.format(**PLAIN | {"command": "cat <<E\na\nE", "out": "(empty)"}), ShellResult("", 0)),
        (OLD.format(**PLAIN | {"out": "(empty)", "err": "no file", "code": 2}), ShellResult("no file", 2)),
        (OLD.format(**PLAIN | {"err": "no file", "code": 1}), ShellResult("x\ny\nno file", 1)),
        (OLD.format(**PLAIN | {"code": "(none)"}), ShellResult("x\ny", None)),
        (OLD.format(**PLAIN).replace("Stdout: x\ny\nStderr: (empty)", "Output: x\ny"), ShellResult("x\ny", 0)),
        ("Output: x\ny\nProcess Group PGID: 77", ShellResult("x\ny", 0)),
        ("Output: (empty)\nProcess Group PGID: 77", ShellResult("", 0)),
        ("Output: no file\nExit Code: 2\nProcess Group PGID: 77", ShellResult("no file", 2)),
        ("Output: Error: own words\nProcess Group PGID: 77", ShellResult("Error: own words", 0)),
        ("Output: x\nSignal: 9\nProcess Group PGID: 77", ShellResult("x", None)),
        ("Output: of another tool", ShellResult("Output: of another tool")),
        (
            "Command: without the rest\nProcess Group PGID: 7",
            ShellResult("Command: without the rest\nProcess Group PGID: 7"),
        ),
        ("plain", ShellResult("plain")),
    ],
)
def test_the_words_around_an_output_are_taken_off(output: str, expected: ShellResult) -> None:
    assert shell_result(output) == expected


def test_what_a_session_touched(tmp_path: Path) -> None:
    (path,) = write_sample(FORMAT, tmp_path)
    turns = interpret(only_run(FORMAT, path), len).turns
    assert [[read.path for read in turn.reads] for turn in turns] == [
        [],
        ["src/m.py"],
        ["src/n.py"],
        ["top.py"],
        ["src/a.py", "src/b.py"],
        [],
        ["src/z.py"],
    ]
    assert [write.path for turn in turns for write in turn.writes] == []
    assert (turns[1].reads[0].lines, turns[5].recorded.calls[0].exit_code) == ({1: "def f():", 2: "    return 1"}, 2)


def _reply(number: int, tool: str, given: dict[str, object], output: str) -> dict[str, object]:
    result = [{"functionResponse": {"id": f"c{number}", "name": tool, "response": {"output": output}}}]
    call = {"id": f"c{number}", "name": tool, "args": given, "status": "success", "result": result}
    return {"id": f"m{number}", "type": "gemini", "content": "", "model": "g", "toolCalls": [call]}


def test_a_file_named_by_its_whole_path_is_the_file_named_in_the_folder_of_the_session(tmp_path: Path) -> None:
    # The session says nowhere in which folder it runs, but the results of writes name whole paths. The edit makes a new
    # version, of which nothing had been shown: the second view is no view of the old one again.
    page, whole = "site/index.html", "/home/me/site/index.html"
    messages = [
        {"id": "u", "type": "user", "content": "Go"},
        _reply(1, "read_file", {"file_path": page}, "<h1>One</h1>\n<p>Two</p>"),
        _reply(2, "replace", {"file_path": whole, "old_string": "Two", "new_string": "Three"}, "ok"),
        _reply(3, "write_file", {"file_path": "a.css", "content": ""}, "Successfully overwrote file: /home/me/a.css."),
        _reply(4, "read_file", {"file_path": page}, "<h1>One</h1>\n<p>Three</p>"),
        _reply(5, "read_file", {"file_path": page}, "<h1>One</h1>\n<p>Three</p>"),
    ]
    run = only_run(FORMAT, as_json(tmp_path / "s.json", {"sessionId": "s", "projectHash": "p", "messages": messages}))
    assert run.root == "/home/me"
    trajectory = interpret(run, len)
    assert [write.path for turn in trajectory.turns for write in turn.writes] == [page, "a.css"]
    use = next(use for use in measure_touches(trajectory, None, len).files if use.path == page)
    assert (use.versions, use.reads, use.repeat_reads) == (1, 3, 1)
    assert use.repeat_tokens == len("<h1>One</h1>\n<p>Three</p>")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a.py", "Successfully created and wrote to new file: /b.py."),
        ("/w/a.py", "Successfully overwrote file: /w/a.py."),
        ("", "Successfully overwrote file: /w/a.py."),
        ("a.py", "Text that names a file: /w/a.py"),
    ],
)
def test_other_results_tell_no_folder(name: str, told: str, tmp_path: Path) -> None:
    messages = [_reply(1, "write_file", {"file_path": name, "content": "x"}, told)]
    run = only_run(FORMAT, as_json(tmp_path / "s.json", {"sessionId": "s", "projectHash": "p", "messages": messages}))
    assert run.root is None


def test_a_session_without_replies_says_so(tmp_path: Path) -> None:
    (nothing,) = read_with(FORMAT, as_json(tmp_path / "session.json", SESSION | {"messages": [3]}))
    assert isinstance(nothing, Skipped)


def test_a_recorded_session() -> None:
    run = only_run(FORMAT, recorded("atif") / "gemini-cli-trajectory.json")
    assert (len(run.turns), run.turns[0].usage) == (1, LoggedUsage(5915, 24, 0))
