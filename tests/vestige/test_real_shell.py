"""Commands of this project's own in a real shell: the files named as read are those whose lines came out."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from eirkit.vestige.shell.effects import shell_touches
from eirkit.vestige.shell.state import ShellState
from tests.processes import completed

FILES = ("a.py", "b.py", "src/m.py", "src/n.py")
COMMANDS = (
    "cat gone.py || cat b.py",
    "cat a.py || cat b.py",
    "cat gone.py a.py",
    "cat b.py; cat gone.py",
    "sed -n 1,5p gone.py; sed -n 2,3p a.py",
    "head -3 gone.py; tail -2 a.py",
    "nl -ba gone.py; nl -ba a.py",
    "awk 'NR<3' gone.py; cat a.py",
    "grep -n line gone.py; cat b.py",
    "cat src; cat a.py",
    "cat < gone.py; cat a.py",
    "cat gone.py | head || cat b.py",
    "cd src && cat gone.py; cat n.py",
    "for f in gone.py a.py; do cat $f; done",
    "cat gone.py 2>/dev/null || echo none",
    "grep -n zzz a.py || cat b.py",
    "grep -n '3 of' a.py || cat b.py",
    "grep -n zzz a.py; cat b.py",
    "grep zzz a.py; cat b.py",
    "cat b.py; grep -n 'zzz\\|yyy' a.py",
    "grep -rn zzz src; cat b.py",
    "grep -n '3 of' a.py | cut -d: -f2; cat b.py",
    "cd src && head -3 m.py n.py",
    "head -n 2 src/*.py",
    "cd src && tail -n 2 *.py",
    "head -2 a.py gone.py b.py",
    "tail -n +28 a.py b.py",
    "cat <(head -3 a.py)",
    "cat <(head -3 a.py) b.py",
    'x=$(cat a.py); echo "$x"',
    'x=$(cat a.py); echo "${#x}"',
    'while IFS= read -r l; do printf "%s\\n" "$l"; done < a.py',
    "cat a.py | while read l; do echo $l; done",
    "while read l; do echo $l; done < <(cat a.py)",
    "head -2 a.py | cat - b.py",
    "dd if=a.py",
    "dd if=a.py of=/dev/null",
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    for name in FILES:
        lines = [f"line {number} of {name}\n" for number in range(1, 31)]
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    return tmp_path


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize("command", COMMANDS)
def test_files_read_are_those_whose_lines_came_out(command: str, repository: Path) -> None:
    done = completed(["bash", "-c", command], cwd=repository, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    place = ShellState(roots=(str(repository),), folder=str(repository))
    reads = shell_touches(command, done.stdout, done.returncode, place).reads
    shown = {name: sum(line.endswith(f" of {name}") for line in done.stdout.splitlines()) for name in FILES}
    assert {read.path for read in reads} == {name for name, lines in shown.items() if lines}
    for read in reads:
        if read.lines is not None:
            assert len(read.lines) == shown[read.path]
            assert all(text == f"line {number} of {read.path}" for number, text in read.lines.items())


@pytest.mark.skipif(shutil.which("bash") is None or shutil.which("git") is None, reason="needs bash and git")
@pytest.mark.parametrize(
    "command",
    [
        "git checkout -q a.py || echo 'could not restore it'",  # it is in no commit
        "git checkout -q nowhere -- a.py 2>/dev/null || echo failed",
        "rm gone.py 2>/dev/null || echo 'nothing to remove'",
        "rm a.py || echo 'nothing to remove'",
        "rm a.py && echo removed || echo 'nothing to remove'",
        "rm gone.py 2>/dev/null && echo removed || echo 'nothing to remove'",
        "cp gone.py b.py 2>/dev/null || printf 'kept\\n'",
        "cp a.py b.py || echo kept",
    ],
)
def test_a_write_whose_failure_was_told_is_none(command: str, repository: Path) -> None:
    completed(["git", "init", "-q"], cwd=repository, check=True)
    before = {name: (repository / name).read_bytes() for name in FILES}
    done = completed(["bash", "-c", command], cwd=repository, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    after = {name: (repository / name).read_bytes() for name in FILES if (repository / name).exists()}
    place = ShellState(roots=(str(repository),), folder=str(repository))
    writes = shell_touches(command, done.stdout, done.returncode, place).writes
    assert {write.path for write in writes} == {name for name in FILES if before[name] != after.get(name)}
