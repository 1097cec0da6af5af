"""Which calls are understood, and that every surface says how many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from eirkit.cli.show import show
from eirkit.cli.vestige.analyze import analyze
from eirkit.engine.processes import Processes
from eirkit.records.analysis import ToolCoverage, UnknownTool
from eirkit.report.logs.analyzed import read_analyzed
from eirkit.report.logs.page import headline_of
from eirkit.report.logs.sentences import coverage_facts, coverage_section, coverage_warnings, is_silent
from eirkit.vestige.actions.touches import coverage_of, interpret, is_understood
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions
from eirkit.vestige.corpus.pipeline import Corpus, analyze_here, analyze_in_parts
from eirkit.vestige.trajectory import Call, RecordedTurn, Recording
from tests.vestige.formats.logs import as_lines
from tests.vestige.test_detection import session


def calling(*tools: str) -> Recording:
    calls = tuple(Call(tool, {"command": "ls"} if tool == "bash" else {}) for tool in tools)
    return Recording("r", "t", "made", "made", (RecordedTurn(calls=calls), RecordedTurn(calls=calls, rejected=True)))


@pytest.mark.check
def test_calls_are_counted_by_tool_and_those_of_rejected_replies_are_not() -> None:
    assert coverage_of(calling("bash", "Read", "Read", "TodoWrite", "exec")) == (
        ToolCoverage("Read", 2, 2),
        ToolCoverage("bash", 1, 1),
        ToolCoverage("TodoWrite", 1, 1),
        ToolCoverage("exec", 1, 0),
    )
    assert not is_understood("mcp__github__create_issue")


CUT = {
    "bad syntax": "|-)" * 4000,
    "more commands than are followed": "cat a.py; " * 3000,
    "longer than is parsed": "cat a.py b.py c.py && " * 4000 + "true",
}


@pytest.mark.parametrize("name", CUT)
def test_a_command_that_is_not_followed_to_its_end_is_not_understood(name: str) -> None:
    calls = [Call("bash", {"command": one}, "x\n") for one in ("cat a.py", CUT[name], "cat b.py && true")]
    recording = Recording("r", "t", "made", "made", tuple(RecordedTurn(calls=(call,)) for call in calls))
    trajectory = interpret(recording, len)
    assert trajectory.unclear_calls == (("bash", 1),)
    assert coverage_of(recording, trajectory.unclear_calls) == (ToolCoverage("bash", 3, 2),)
    assert [read.path for turn in trajectory.turns[::2] for read in turn.reads] == ["a.py", "b.py"]


@pytest.mark.parametrize(
    "command",
    [
        "cat [ab].py",
        "cat $(ls *.py)",
        "find . -name '*.py' | xargs cat",
        "find . -name '*.py' -exec sed -i s/a/b/ {} +",
        "find . -name '*.txt' -delete",
        "grep -rl x . | xargs sed -i s/x/y/",
        "for f in *.py; do sed -i s/a/b/ $f; done",
        'ls *.py | while read f; do cat "$f"; done',
        "cp -r old new",
        "tar xf packed.tar",
        "split -l 5 a.txt",
        'echo x > "$TARGET"',
        "cat a.py $X",
        "cat < $X",
        "head -5 *.py",  # one file, as no name precedes the lines
        "grep foo $X",
        "rm $F",
        "rm *.bak",
        "cp a.py $D",
        "cp $S b.py",
        "grep -rh foo src",
        "grep -h foo *.py",
        "diff a.py $X",
        "python3 -c \"import os; [open(f, 'w').write('x') for f in os.listdir()]\"",
        "cp *.bak old/",
        "mv a.py $D",
        "mv $S b.py",
        "node -e \"require('fs').writeFileSync('new.txt', '1')\"",
        "node <<'EOF'\nrequire('fs').writeFileSync('new.txt', '1')\nEOF",
        "cat a.js | node",
        "node build.js",
        "npx --yes prettier -w src/a.ts",
        "uv run ruff check --fix src/a.py",
        "poetry run black src/a.py",
        "npm exec -- prettier --write a.ts",
        "docker exec -w /app web cat a.py",
        "docker compose exec web cat /app/a.py",
        "kubectl exec pod -- cat /app/a.py",
    ],
)
def test_a_command_on_files_that_the_log_does_not_name_is_not_understood(command: str) -> None:
    # What a build made and the run never met is nothing that it knew, so deleting that is understood.
    understood = ("ls *.py", "grep -c x *.py", "rm -f *.pyc", "rm -rf *.egg-info/", "node --version", "npm test")
    calls = [Call("bash", {"command": one}, "foo\n") for one in (command, *understood)]
    recording = Recording("r", "t", "made", "made", tuple(RecordedTurn(calls=(call,)) for call in calls))
    assert interpret(recording, len).unclear_calls == (("bash", 1),)


@pytest.mark.parametrize("command", ["cp $S b.py", "mv $S b.py"])
def test_a_copy_of_an_unknown_file_is_a_write_of_its_target(command: str) -> None:
    turn = RecordedTurn(calls=(Call("bash", {"command": command}),))
    (found,) = interpret(Recording("r", "t", "made", "made", (turn,)), len).turns
    assert [(write.path, write.kind) for write in found.writes] == [("b.py", "whole")]


@pytest.mark.parametrize(
    ("linked", "output", "shown", "path"),
    [
        ("ln -s ../src lib/link", "", "lib/link/a.py", "src/a.py"),
        ("ln -sf src/a.py now.py", "", "now.py", "src/a.py"),
        ("ln -s src/a.py now.py", "ln: failed to create symbolic link 'now.py': File exists", "now.py", "now.py"),
        ("cd /repo && pwd -P", "/private/repo\n", "/private/repo/src/a.py", "src/a.py"),
        ("pwd", "/private/repo\n", "/private/repo/src/a.py", "/private/repo/src/a.py"),
        ("readlink -f current", "/repo/v2\n", "current/a.py", "v2/a.py"),
        ("ln -s src/a.py now.py; rm now.py", "", "now.py", "now.py"),
        ('dirname "$(realpath src/a.py)"', "/repo/src\n", "src/a.py", "src/a.py"),
        ("readlink -f src/a.py | xargs dirname", "/repo/src\n", "src/a.py", "src/a.py"),
        ("git -C $(realpath sub) rev-parse --show-toplevel", "/repo\n", "sub/a.py", "sub/a.py"),
        ("realpath sub > /dev/null; cat where.txt", "/repo/data\n", "sub/a.py", "sub/a.py"),
    ],
)
def test_a_path_through_a_link_that_the_log_shows_is_the_same_file(
    linked: str, output: str, shown: str, path: str
) -> None:
    calls = [Call("bash", {"command": linked}, output), Call("Read", {"file_path": shown}, "x = 1\n")]
    turns = tuple(RecordedTurn(calls=(call,)) for call in calls)
    found = interpret(Recording("r", "t", "made", "made", turns, root="/repo"), len)
    assert [read.path for read in found.turns[1].reads] == [path]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {"place": "a.py"}),
        ("Read", {"file_path": ["a.py"]}),
        ("Edit", {"place": "a.py", "old_string": "x", "new_string": "y"}),
        ("write_file", {"content": "x"}),
        ("str_replace_editor", {"command": "view", "place": "a.py"}),
        ("str_replace_editor", {"command": "rename", "path": "a.py"}),
        ("apply_patch", {"input": "*** Begin\n"}),
        ("move_file", {"from": "a.py", "to": "b.py"}),
    ],
)
def test_a_call_of_a_known_tool_that_names_no_file_is_not_understood(tool: str, arguments: dict[str, Any]) -> None:
    calls = [
        Call(tool, arguments, "x = 1\n"),
        Call(tool, {}, "Error: the file is missing", failed=True),
        Call("Read", {"file_path": "a.py"}, "x = 1\n"),
        Call("Grep", {"pattern": "x"}, "No matches found"),
    ]
    recording = Recording("r", "t", "made", "made", tuple(RecordedTurn(calls=(call,)) for call in calls))
    assert interpret(recording, len).unclear_calls == ((tool, 1),)


@pytest.mark.parametrize(
    ("command", "output", "read"),
    [
        ("head -5 src/*.py", "==> src/a.py <==\nx = 1\n\n==> src/b.py <==\ny = 2\n", ["src/a.py", "src/b.py"]),
        ("tail -n 3 logs/*.txt", "==> logs/a.txt <==\nx\n\n==> logs/b.txt <==\ny\n", ["logs/a.txt", "logs/b.txt"]),
        ("grep -r foo $X", "src/a.py:foo = 1\nsrc/b.py:foo = 2\n", ["src/a.py", "src/b.py"]),
        ("rm *.bak", "rm: cannot remove '*.bak': No such file or directory\n", []),
        ("cat *.md", "cat: '*.md': No such file or directory\n", []),
    ],
)
def test_names_that_the_output_tells_are_known(command: str, output: str, read: list[str]) -> None:
    call = Call("bash", {"command": command}, output, exit_code=int("No such" in output))
    trajectory = interpret(Recording("r", "t", "made", "made", (RecordedTurn(calls=(call,)),)), len)
    assert [one.path for turn in trajectory.turns for one in turn.reads] == read
    assert trajectory.unclear_calls == ()


def test_names_that_the_run_has_met_are_known() -> None:
    met = Call("bash", {"command": "cat a.py b.py"}, "x\ny\n")
    commands = (
        "cat *.py",
        "for f in *.py; do sed -i s/a/b/ $f; done",
        'f=$(mktemp); echo x > "$f"',
        "cat *.py > /dev/null",
    )
    calls = [met, *(Call("bash", {"command": one}, "x\ny\n") for one in commands)]
    recording = Recording("r", "t", "made", "made", tuple(RecordedTurn(calls=(call,)) for call in calls))
    assert interpret(recording, len).unclear_calls == ()


def logged(folder: Path, tools: dict[str, str]) -> Path:
    """Write sessions that call one tool each."""
    for name, tool in tools.items():
        lines: list[dict[str, Any]] = session("Go")
        lines[1]["message"]["content"][0]["name"] = tool
        as_lines(folder / f"{name}.jsonl", [{**line, "sessionId": name} for line in lines])
    return folder


def test_a_log_in_which_no_call_was_understood_is_not_a_run_that_needed_nothing(tmp_path: Path) -> None:
    logs = logged(tmp_path / "logs", {"a": "frobnicate"})
    found = analyze_here(Corpus((logs,)), tmp_path / "out", AnalysisOptions(read_windows()), progress=lambda *_: None)
    assert is_silent(found)
    (row,) = found.coverage
    assert (row.format, row.agent_version, row.calls, row.understood) == ("claude-code", "2.1.325", 1, 0)
    assert row.unknown == (UnknownTool("frobnicate", 1),)
    (warning,) = coverage_warnings(found)
    assert "0 of 1 calls in claude-code 2.1.325 were understood" in warning
    assert "frobnicate (1)" in warning
    section = coverage_section(found)
    assert section is not None
    assert headline_of(read_analyzed(tmp_path / "out", tests=False)).caption == "no call was understood"
    command = CliRunner()
    shown = command.invoke(analyze, [str(logs), "--out", str(tmp_path / "again")]).output
    assert "No call was understood, so what these runs needed is not known." in shown
    one = command.invoke(show, [str(tmp_path / "again"), "a"]).output
    assert "calls understood: 0 of 1; not understood: frobnicate (1)" in one


def test_parts_sum_up_to_the_same_coverage(tmp_path: Path) -> None:
    logs = logged(tmp_path / "logs", {"a": "Read", "b": "Read", "c": "frobnicate"})
    options = AnalysisOptions(read_windows())
    here = analyze_here(Corpus((logs,)), tmp_path / "here", options, progress=lambda *_: None)
    parts = analyze_in_parts(Corpus((logs,)), tmp_path / "parts", options, Processes(2))
    assert here.coverage == parts.coverage
    assert list(coverage_facts(here)) == [("calls understood", "2 of 3 in claude-code 2.1.325")]
    assert not is_silent(here)
