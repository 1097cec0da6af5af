"""Every process that a test starts ends with it, and hears what it is told, however the suite was started."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import PATIENCE_SECONDS, completed, kill_tree, leftovers, running, wait_until

TESTS = Path(__file__).parent
STARTING = {
    *(f"subprocess.{name}" for name in ("Popen", "run", "call", "check_call", "check_output")),
    *(f"os.{name}" for name in ("fork", "forkpty", "popen", "posix_spawn", "posix_spawnp", "system")),
    "pty.fork",
}
# What starts processes by itself: the module that does so for all, and programs that are no tests.
APART = {
    "money.py",
    "hostile.py",
    "processes.py",
    "test_processes.py",
    "soak.py",
    "soak_analysis.py",
    "test_database.py",  # forks to become another user
    "wheel.py",
    "warm_server.py",
}
WAITING = "import time; print('ready', flush=True); time.sleep(3_600)"

posix = pytest.mark.skipif(os.name != "posix", reason="sends signals")
linux = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")


@pytest.fixture
def interrupts_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@posix
@pytest.mark.usefixtures("interrupts_ignored")
def test_an_interrupt_is_heard_where_the_suite_ignores_it():
    with running([sys.executable, "-c", WAITING], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == -signal.SIGINT
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@posix
def test_what_a_process_started_ends_with_it():
    with running(["sh", "-c", "sleep 3600 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as process:
        below = int(process.stdout.readline())
        os.kill(below, 0)
    wait_until(lambda: not leftovers(0), "both have ended")
    with pytest.raises(ProcessLookupError):
        os.kill(below, 0)


@posix
def test_a_test_that_fails_leaves_nothing_running():
    with pytest.raises(ZeroDivisionError), running([sys.executable, "-c", WAITING]) as process:
        raise ZeroDivisionError
    assert process.returncode == -signal.SIGKILL


@linux
def test_what_is_left_running_is_found_also_where_its_parent_is_gone():
    child = subprocess.Popen(["sleep", "3600"])
    orphan = int(completed(["setsid", "sh", "-c", "sleep 3601 > /dev/null 2>&1 & echo $!"]).stdout)
    try:
        expected = {child.pid: "sleep 3600", orphan: "sleep 3601"}
        wait_until(lambda: leftovers(0) == expected, "the shell between us and the orphan has ended")
    finally:
        kill_tree(child.pid)
        kill_tree(orphan)
        child.wait()
    assert leftovers(PATIENCE_SECONDS) == {}


def test_a_failed_command_shows_its_complaint():
    failing = [sys.executable, "-c", "import sys; sys.exit('no such thing')"]
    assert completed(failing).returncode == 1
    with pytest.raises(AssertionError, match="ended with 1: no such thing"):
        completed(failing, check=True)


@pytest.mark.check
def test_nothing_starts_processes_in_another_way():
    texts = {path: path.read_text("utf-8") for path in sorted(TESTS.rglob("*.py")) if path.name not in APART}
    starts = [
        f"{path.relative_to(TESTS)}:{node.lineno}"
        for path, text in texts.items()
        if any(name in text for name in STARTING)  # most are not worth parsing
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in STARTING
    ]
    assert starts == [], "use tests.processes.running or completed"
