"""Workers end with whoever started them, however that one ended: real commands, real signals, real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eirkit.engine.processes import Processes
from eirkit.vestige.corpus.planted_corpus import PlantedCorpus, write_logs
from tests.processes import PATIENCE_SECONDS, completed, running, wait_until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")

EIRKIT = (sys.executable, "-m", "eirkit")
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
signals = pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)


def stay(where: tuple[str, str]) -> None:
    """Say who works here, then never end: asleep, or in a loop that no call interrupts."""
    folder, how = where
    Path(folder, str(os.getpid())).touch()
    while how == "loops":
        pass
    time.sleep(3_600)


def work_for_ever(folder: str) -> None:
    """Start two workers that never end; run in a process of its own."""
    for outcome in Processes(2, batch=1).map(stay, [(folder, "sleeps"), (folder, "loops")]):
        raise AssertionError(f"a worker ended: {outcome}")


def is_alive(pid: int) -> bool:
    """True unless it has ended; one that nobody has buried yet has."""
    state = completed(["ps", "-o", "stat=", "-p", str(pid)]).stdout
    return bool(state.strip()) and not state.startswith("Z")


def workers_of(pid: int) -> list[int]:
    """Return the processes that carry out pieces: children, or forks of the child that has imported what they need."""
    listed = completed(["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], check=True)
    rows = [(int(row[0]), int(row[1]), row[2]) for row in (line.split(None, 2) for line in listed.stdout.splitlines())]
    forking = {one for one, parent, args in rows if parent == pid and "multiprocessing.forkserver" in args}
    return [one for one, parent, args in rows if parent in forking or (parent == pid and "spawn_main" in args)]


def assert_all_end(started: subprocess.Popen[bytes], workers: list[int], number: signal.Signals) -> None:
    """Send a signal to the parent and wait until neither it nor its workers are alive."""
    started.send_signal(number)
    started.wait(PATIENCE_SECONDS)
    wait_until(lambda: not any(map(is_alive, workers)), "the workers end")


@signals
def test_workers_that_never_end_do_not_outlive_their_parent(tmp_path, number):
    program = f"from tests.test_worker_fate import work_for_ever\nwork_for_ever({str(tmp_path)!r})"
    root = Path(__file__).parents[1]
    with running([sys.executable, "-c", program], cwd=root, stderr=subprocess.DEVNULL) as started:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2, "both are at work", started)
        assert_all_end(started, [int(path.name) for path in tmp_path.iterdir()], number)


def reproducing(folder: Path) -> Iterator[str]:
    yield from ("reproduce", "pressure-grid", "cascade-gap", "alignment-and-rescue", "--seeds", "0:3000")
    yield from ("--out", str(folder / "out"))


def sweeping(folder: Path) -> Iterator[str]:
    yield from ("lacuna", "run", "--workload", "stepwise-sum", "--model", "reference/calculator", "--h", "8,4")
    yield from ("--seeds", "0:20000", "--out", str(folder / "out"))


def analyzing(folder: Path) -> Iterator[str]:
    yield from (
        "vestige",
        "analyze",
        str(write_logs(PlantedCorpus(3_000, 100), 0, folder)),
        "--out",
        str(folder / "out"),
    )


@pytest.mark.parametrize("command", [reproducing, sweeping, analyzing], ids=["reproduce", "run", "analyze"])
@pytest.mark.parametrize("number", [pytest.param(one, marks=pytest.mark.slow) for one in SIGNALS[:2]] + [SIGNALS[2]])
def test_no_command_leaves_workers_behind(tmp_path, command, number):
    arguments = [*EIRKIT, *command(tmp_path), "--workers", "2"]
    with running(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
        wait_until(lambda: len(workers_of(started.pid)) == 2, "two workers are there", started)
        assert_all_end(started, workers_of(started.pid), number)


@pytest.mark.parametrize("after_seconds", [0.0, 0.4])
def test_an_interrupt_of_all_is_one_line_also_while_workers_start(tmp_path, after_seconds):
    """A terminal interrupts the whole group; workers that are still being imported leave the word to their parent."""
    arguments = [*EIRKIT, *reproducing(tmp_path), "--workers", "2"]
    with running(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as started:
        wait_until(lambda: workers_of(started.pid), "a worker is there", started)
        time.sleep(after_seconds)
        os.killpg(started.pid, signal.SIGINT)
        said = started.communicate(timeout=PATIENCE_SECONDS)[1]
    assert said.strip() == "eirkit: interrupted"
    assert started.returncode in (130, -signal.SIGINT)  # by the signal itself where the interpreter was ending


def test_an_interrupt_that_another_thread_receives_waits_until_workers_are_started():
    program = """
import signal, threading, time
from eirkit.engine.processes import deferred_interrupts
other = threading.Thread(target=time.sleep, args=(3_600,), daemon=True)
other.start()
try:
    with deferred_interrupts():
        signal.pthread_kill(other.ident, signal.SIGINT)
        time.sleep(0.2)
        print("started")
    time.sleep(3_600)
except KeyboardInterrupt:
    print("interrupted")
"""
    assert completed([sys.executable, "-c", program], check=True).stdout.split() == ["started", "interrupted"]
