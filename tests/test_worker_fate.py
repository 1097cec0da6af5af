"""Workers end with whoever started them, however that one ended: real commands, real signals, real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from eirkit.engine.processes import Processes
from eirkit.logs.synthetic.planted_corpus import PlantedCorpus, write_logs

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")

LONGEST_SECONDS = 60.0  # for workers to appear or to end on a busy machine; mostly it is one or two
LOOK_SECONDS = 0.05
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


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + LONGEST_SECONDS
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(LOOK_SECONDS)


def is_alive(pid: int) -> bool:
    """True unless it has ended; one that nobody has buried yet has."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


def workers_of(pid: int) -> list[int]:
    """Return the children that carry out pieces; the one that looks after shared memory is no worker."""
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    return [int(row[0]) for row in rows if int(row[1]) == pid and "spawn_main" in row[2]]


def outliving(started: subprocess.Popen[bytes], workers: list[int], number: signal.Signals) -> list[int]:
    """Send a signal to the parent and return the workers that outlive it by a long wait, which are ended then."""
    started.send_signal(number)
    started.wait(LONGEST_SECONDS)
    with suppress(AssertionError):
        wait_until(lambda: not any(map(is_alive, workers)), "all have ended")
    left = [pid for pid in workers if is_alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return left


@signals
def test_workers_that_never_end_do_not_outlive_their_parent(tmp_path, number):
    program = f"from tests.test_worker_fate import work_for_ever\nwork_for_ever({str(tmp_path)!r})"
    root = Path(__file__).parents[1]
    started = subprocess.Popen([sys.executable, "-c", program], cwd=root, stderr=subprocess.DEVNULL)
    wait_until(lambda: len(list(tmp_path.iterdir())) == 2, "both are at work")
    assert outliving(started, [int(path.name) for path in tmp_path.iterdir()], number) == []


def reproducing(folder: Path) -> Iterator[str]:
    yield from ("reproduce", "pressure-grid", "cascade-gap", "alignment-and-rescue", "--seeds", "0:3000")
    yield from ("--out", str(folder / "out"))


def running(folder: Path) -> Iterator[str]:
    yield from ("lacuna", "run", "--workload", "stepwise-sum", "--model", "reference/calculator", "--h", "8,4")
    yield from ("--seeds", "0:20000", "--out", str(folder / "out"))


def analysing(folder: Path) -> Iterator[str]:
    yield from (
        "vestige",
        "analyze",
        str(write_logs(PlantedCorpus(3_000, 100), 0, folder)),
        "--out",
        str(folder / "out"),
    )


@pytest.mark.parametrize("command", [reproducing, running, analysing], ids=["reproduce", "run", "analyze"])
@pytest.mark.parametrize("number", [pytest.param(one, marks=pytest.mark.slow) for one in SIGNALS[:2]] + [SIGNALS[2]])
def test_no_command_leaves_workers_behind(tmp_path, command, number):
    arguments = [*EIRKIT, *command(tmp_path), "--workers", "2"]
    started = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: len(workers_of(started.pid)) == 2 or started.poll() is not None, "two workers")
    workers = workers_of(started.pid)
    assert len(workers) == 2, "it ended before anybody could look"
    assert outliving(started, workers, number) == []


@pytest.mark.parametrize("after_seconds", [0.0, 0.4])
def test_an_interrupt_of_all_is_one_line_also_while_workers_start(tmp_path, after_seconds):
    """A terminal interrupts the whole group; workers that are still being imported leave the word to their parent."""
    arguments = [*EIRKIT, *reproducing(tmp_path), "--workers", "2"]
    started = subprocess.Popen(
        arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_until(lambda: len(workers_of(started.pid)) > 0, "a worker")
    time.sleep(after_seconds)
    os.killpg(started.pid, signal.SIGINT)
    said = started.communicate(timeout=LONGEST_SECONDS)[1]
    assert said.strip() == "eirkit: interrupted"
    assert started.returncode in (130, -signal.SIGINT)  # by the signal itself where the interpreter was ending
