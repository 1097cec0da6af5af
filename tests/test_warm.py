"""A command that a fork runs prints, exits and ends as one in a process of its own."""

from __future__ import annotations

import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import warm, warm_server
from tests.processes import PATIENCE_SECONDS, completed, running, wait_until

REAL = Path(sys.executable).parent
COMMANDS = {
    "output": "eirkit --version",
    "wrong usage": "eirkit lacuna nothing",
    "a reader that leaves": "eirkit --help | head -1",
    "files": "eirkit lacuna run --workload store-recall --m 4 --h 2 --seeds 0:1 --model reference/calculator "
    "--no-control --out runs > /dev/null && ls runs",
    "a module of the folder": "PYTHONPATH=folder python script.py",
    "an exception": "python script.py",
    "an exit code": "python exits.py",
}


def test_the_modules_that_are_imported_beforehand_are_there():
    assert [name for name in warm_server.ALSO if name.startswith("eirkit.") and find_spec(name) is None] == []


def shown(command: str, programs: Path, folder: Path) -> tuple[int, str, str]:
    (folder / "folder").mkdir(parents=True)
    (folder / "folder" / "beside.py").write_text("word = 'found'\n")
    (folder / "script.py").write_text("import sys, beside\nprint(beside.word, __name__, sys.argv)\n")
    (folder / "exits.py").write_text("import atexit, sys\natexit.register(print, 'last')\nsys.exit(7)\n")
    path = os.pathsep.join([str(programs), str(REAL), os.environ["PATH"]])
    variables = {"PATH": path, "NO_COLOR": "1", "PYTHONUTF8": "1", "HOME": os.environ["HOME"]}
    done = completed(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=variables)
    return done.returncode, done.stdout, done.stderr.strip().rpartition("\n")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_fork_does_what_a_process_does(name, tmp_path):
    fork = shown(COMMANDS[name], warm.programs(), tmp_path / "fork")
    assert fork == shown(COMMANDS[name], REAL, tmp_path / "process")


def test_a_command_ends_with_the_one_who_asked_for_it(tmp_path):
    script = tmp_path / "waits.py"
    script.write_text("import os, pathlib, time\npathlib.Path('pid').write_text(f'{os.getpid()} ')\ntime.sleep(1e6)\n")
    with running([warm.programs() / "python", script], cwd=tmp_path) as asking:
        wait_until(lambda: (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text(), "it runs", asking)
        fork = int((tmp_path / "pid").read_text())
        asking.send_signal(signal.SIGKILL)
        asking.wait(PATIENCE_SECONDS)
    wait_until(lambda: not Path(f"/proc/{fork}").exists(), "the command has ended")
    assert not Path(f"/proc/{fork}").exists()
