"""What commands of many shells read and wrote, by files and lines; those of tools of this machine are really run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from eirkit.vestige.actions.touches import touches_of
from eirkit.vestige.formats.mini_swe_agent import read_turns
from eirkit.vestige.shell.effects import shell_touches
from eirkit.vestige.shell.state import ShellState
from eirkit.vestige.trajectory import Call, FileRead, Touches
from eirkit.vestige.viewer_output import clip_marks
from tests.processes import completed
from tests.vestige.shells import FILES, REAL, TOLD, Labeled

MANY_ENOUGH = 120


def lines_of(read: FileRead) -> str:
    if read.lines is not None:
        return str(len(read.lines))
    return "?" if read.content is None else str(len(read.content.rstrip("\n").split("\n")))


def differences(touches: Touches, case: Labeled) -> list[tuple[str, object, object]]:
    """Return what is found otherwise than labeled: files read, their lines where these are labeled, files written."""
    wanted = dict(part.rpartition(":")[::2] for part in case.reads.split())
    found = {read.path: lines_of(read) for read in touches.reads}
    lines = {path: shown for path, shown in found.items() if wanted.get(path) != "?"}
    pairs = {
        "reads": (set(found), set(wanted)),
        "lines": (lines, {path: shown for path, shown in wanted.items() if shown != "?"}),
        "writes": ({write.path for write in touches.writes}, set(case.writes.split())),
    }
    return [(name, ours, theirs) for name, (ours, theirs) in pairs.items() if ours != theirs]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text if name != "src/b.py" else "import sys\n", "utf-8")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", tmp_path]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        completed([*git, *words], check=True)
    (tmp_path / "src/b.py").write_text(FILES["src/b.py"], "utf-8")
    completed([*git, "commit", "-qam", "two"], check=True)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.skipif(
    shutil.which("git") is None or shutil.which("bash") is None, reason="git and bash are not installed"
)
@pytest.mark.parametrize("case", REAL, ids=lambda case: case.command[:60])
def test_a_command_that_was_run_touches_what_its_label_says(case: Labeled, folder: Path) -> None:
    tool = "jq" if "jq " in case.command else "bash"
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    state = ShellState(roots=(str(folder),), folder=str(folder), keeps_folder=False)

    def run(command: str) -> tuple[str, int]:
        done = completed(["bash", "-c", command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.stdout, done.returncode

    for command in case.before:
        shell_touches(command, *run(command), state)
    before = contents(folder)
    output, exit_code = run(case.command)
    after = contents(folder)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    passing = {name for name in case.writes.split() if name not in before and name not in after}  # made and removed
    kept = {"src/a.py"} if "git checkout --" in case.command else set()  # changed and put back
    assert set(case.writes.split()) == changed | passing | kept, "the label is wrong"
    assert differences(shell_touches(case.command, output, exit_code, state), case) == []


@pytest.mark.parametrize("case", TOLD, ids=lambda case: f"{case.command[:60]} {case.exit_code}")
def test_a_command_of_another_shell_touches_what_its_label_says(case: Labeled) -> None:
    state = ShellState(roots=("/repo",), folder="/repo", keeps_folder=False)
    assert differences(shell_touches(case.command, case.output or "", case.exit_code, state), case) == []


def test_a_run_on_windows_is_known_by_an_earlier_line() -> None:
    """`git checkout -- src\\a.py` alone may be a line of any shell; after a cmdlet its name has a folder."""
    state = ShellState(roots=("/repo",), folder="/repo")
    shell_touches("Get-ChildItem", "a.py\n", 0, state)
    touches = shell_touches("git checkout -- src\\a.py", "", 0, state)
    assert [write.path for write in touches.writes] == ["src/a.py"]


@pytest.mark.parametrize(
    "command",
    [
        "sed -i '9c\\except E as e:\\n    raise' a.py",
        "sed -i '1116i\\    if not a:\\n        return 1' a.py",
        "cat > x.ps1 <<'EOF'\nGet-Content C:\\a.txt\nEOF",
        "grep -rn 'foo\\.bar' src",
        "find . -name \\*.py",
    ],
)
def test_text_of_another_kind_makes_no_line_one_of_windows(command: str) -> None:
    state = ShellState(roots=("/repo",), folder="/repo")
    shell_touches(command, "", 0, state)
    assert not state.on_windows


def test_there_are_many_labels() -> None:
    assert len(REAL) + len(TOLD) >= MANY_ENOUGH
    assert len({(case.command, case.output, case.before) for case in (*REAL, *TOLD)}) == len(REAL) + len(TOLD)


REFUSALS = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected",
    "Permission to use Bash with command rm has been denied.",
    "exec command rejected by user",
    "[Operation Cancelled] Reason: User denied execution.",
    "The user rejected permission to use this specific tool call.",
    "The user denied this operation.",
    "Error: The user has declined to run this tool.",
)


@pytest.mark.parametrize("told", REFUSALS)
@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("bash", {"command": "echo x > a.py; rm b.py; cat c.py"}), ("Write", {"file_path": "a.py", "content": "x"})],
)
def test_a_refused_call_touches_nothing(told: str, failed: bool, tool: str, arguments: dict[str, str]) -> None:
    call = Call(tool, arguments, told, failed=failed)
    assert touches_of(call, ShellState(folder="/repo")) == Touches()


@pytest.mark.parametrize(
    "code", ["import glob\nfor p in glob.glob('src/*.py'): print(open(p).read())", "open('a\\x01b','w')"]
)
def test_no_mark_of_ours_gets_into_a_path(code: str) -> None:
    state = ShellState(roots=("/repo",), folder="/repo", met={"src/a.py": None})
    touches = shell_touches(f"python3 - <<'EOF'\n{code}\nEOF", "x\n", 0, state)
    paths = [read.path for read in touches.reads] + [write.path for write in touches.writes]
    assert all(path.isprintable() for path in paths)


@pytest.mark.parametrize("fenced", [False, True])
def test_escapes_of_an_observation_in_json_are_not_part_of_it(fenced: bool) -> None:
    """mini-SWE-agent 2 shows outputs as JSON; a file of quotes and tabs is as long as it is."""
    text = 'print("a\\tb")\n' * 40
    observation = json.dumps({"returncode": 0, "output": text}, indent=2)
    command = "cat src/a.py"
    if fenced:
        reply = {"role": "assistant", "content": f"THOUGHT: look\n```bash\n{command}\n```"}
        answer = {"role": "user", "content": observation}
    else:
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        reply = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": function}]}
        answer = {"role": "tool", "tool_call_id": "1", "content": observation}
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "fix"}, reply, answer, reply, answer]
    _, turns = read_turns(messages)
    call = turns[0].calls[0]
    assert (call.output, call.exit_code) == (text, 0)
    long = json.dumps({"returncode": 1, "output_head": "a\n", "elided_chars": 9, "output_tail": "b\n"})
    answer["content"] = long
    assert clip_marks(read_turns(messages)[1][0].calls[0].output)
