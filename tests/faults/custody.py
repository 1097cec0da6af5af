"""Ends sweeps with hostile memory systems at random moments, and looks for processes that outlive them.

python -m tests.faults.custody [N] [SEED]     prints how many ends were tried, and at how many nothing was left

Every process of a trial carries a mark in its environment, which its descendants inherit, whoever their parent is.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import eirkit
from eirkit.lacuna.memories import keeper
from eirkit.records.database import DATABASE, SweepDatabase
from eirkit.records.documents import MANIFEST
from tests.faults.hostile import FAULTS
from tests.processes import running, wait_until
from tests.timing import slowness

HERE = Path(__file__).parent
MARK = "LC_EIRKIT_TRIAL"  # variables of the locale are inherited by every process of a store
GONE_SECONDS = 5.0  # after the end of a command, within which no process of it may be alive on a quiet machine
LATEST_SECONDS = 2.0  # at which a command is ended
PATIENCE_SECONDS = 240.0
AT_ONCE = 4
EIRKIT = (sys.executable, "-m", "eirkit")
SEEDS = 3
SECRET = "correct-horse-battery-staple"
ENDS = ("none", "SIGINT", "SIGINT twice", "SIGTERM", "SIGKILL")
MCP = "mcp"
HANGING = ("HangsInWrite", "BlocksInSearch", "Stops")  # systems whose calls never return
OURS = f"{Path(eirkit.__file__).parent}"  # in the frames of tracebacks
UNWANTED = ("Traceback (most recent call last)", "Event loop is closed", "Task was destroyed", "never retrieved")


@dataclass(frozen=True, slots=True)
class Trial:
    """One command and how it is ended."""

    memory: str  # the name of a class in hostile.py, or `mcp` for the hostile server
    end: str
    seconds: float  # after the processes of the system are there, or after the start if `early`
    workers: int  # 0: in one process
    early: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was wrong after a trial; nothing if it held."""

    trial: Trial
    faults: tuple[str, ...]
    alive: int  # processes of the memory system when the command was ended
    slowest: float  # seconds until nothing was left


def marked(mark: str) -> dict[int, str]:
    """Return the living processes with this mark, by their ids."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return found


def left_after(mark: str, seconds: float) -> dict[int, str]:
    """Return the processes with this mark that do not end within so many seconds of a quiet machine."""
    start = time.monotonic()
    for slower in (lambda: 1.0, slowness):  # measured only where the time was not enough
        end = start + seconds * slower()
        while (left := marked(mark)) and time.monotonic() < end:
            time.sleep(0.02)
    return left


def keepers(mark: str) -> int:
    """Return how many processes of the memory system of a trial are alive."""
    return sum(keeper.__name__ in command for command in marked(mark).values())


def command_of(trial: Trial, out: Path, program: Sequence[str]) -> list[str]:
    """Return the sweep of a trial."""
    tasks = ["store-recall", "--n", "16", "--m", "8", "--h", "2", "--seeds", f"0:{SEEDS}", "--no-control"]
    if trial.memory == MCP:
        server = {"command": [sys.executable, str(HERE / "hostile_server.py"), "{store}"]}
        memory = ["--memory", MCP, "--set", "mcp.preset=", "--set", f"mcp.server={json.dumps(server)}"]
        memory += ["--set", "mcp.timeout_seconds=8"]
    else:
        name = f"{HERE / 'hostile.py'}:{trial.memory}"
        limit = 2 if trial.memory in HANGING else 60
        memory = ["--memory", name, "--set", f"{trial.memory}.timeout_seconds={limit}"]
        memory += ["--set", "Echoes.password=${ECHOED_SECRET}"] if trial.memory == "Echoes" else []
    engine = ["--engine", "local", "--workers", str(trial.workers)] if trial.workers else []
    how = ["--model", "reference/recoverer", "--out", str(out), "--json"]
    return [*program, "lacuna", "run", *tasks, *memory, *engine, *how]


def perform(
    trial: Trial, mark: str, folder: Path, gone_seconds: float = GONE_SECONDS, program: Sequence[str] = EIRKIT
) -> Verdict:
    """Run a command to its end and return what is wrong afterwards."""
    environment = {**os.environ, MARK: mark, "ECHOED_SECRET": SECRET, "TMPDIR": str(folder)}
    streams = {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
    with (
        (folder / "said").open("wb") as said,
        running(command_of(trial, folder / "out", program), env=environment, stdout=said, **streams) as process,
    ):
        if not trial.early:
            wait_until(lambda: keepers(mark) or process.poll() is not None, "the memory system has a process")
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_SECONDS if trial.end == "none" else trial.seconds)
        alive = keepers(mark)
        send_end(trial, process)
        try:
            code = process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        ended = time.monotonic()
        left = left_after(mark, gone_seconds)
        took = time.monotonic() - ended
    for pid in left:  # not to disturb the next trial
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    late = [f"did not end within {PATIENCE_SECONDS:g} s"] if code is None else []
    return Verdict(trial, (*late, *(f"alive: {one}" for one in left.values()), *wrong_in(folder, code)), alive, took)


def send_end(trial: Trial, process: subprocess.Popen[bytes]) -> None:
    """Send the signals of a trial."""
    for _ in range(2 if "twice" in trial.end else 1):
        if process.poll() is None and trial.end != "none":
            process.send_signal(getattr(signal, trial.end.split()[0]))
            time.sleep(0.2)


def wrong_in(folder: Path, code: int | None) -> Iterator[str]:
    """Yield what is wrong with the output and the records of a sweep that ended with this code."""
    text = (folder / "said").read_text("utf-8", "replace")
    if OURS in text:  # an interrupt before anything of ours is imported is the interpreter's own affair
        yield from (f"said: {words}: {text[-600:]}" for words in UNWANTED if words in text)
    scored = _scored(folder / "out")
    if code == 0 and scored < SEEDS:
        yield f"exit code 0 with {scored} of {SEEDS} runs"
    if has_secret(folder):
        yield "a secret was written"


def _scored(out: Path) -> int:
    if not (out / MANIFEST).exists():
        return 0
    with SweepDatabase(out) as database:
        return database.count()


def has_secret(folder: Path) -> bool:
    """Whether a file, or the events of a run in a database, which are compressed, contain the secret."""
    if any(SECRET.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file()):
        return True
    for path in folder.rglob(DATABASE):
        if (path.parent / MANIFEST).exists():
            with SweepDatabase(path.parent) as database:
                runs = [record.run for record in database.records()]
                if any(SECRET.encode() in database.event_lines(run) for run in runs):
                    return True
    return False


def trials(count: int, seed: int) -> list[Trial]:
    """Return random trials; every system and every end occurs."""
    draw = random.Random(seed)
    names = [*FAULTS, MCP]
    return [
        Trial(
            names[number % len(names)],
            draw.choice(ENDS),
            draw.uniform(0.0, LATEST_SECONDS),
            draw.choice((0, 0, 2)),
            draw.random() < 0.3,
        )
        for number in range(count)
    ]


def one(trial: Trial, number: int) -> Verdict:
    """Perform a trial in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="custody-") as folder:
        return perform(trial, f"{os.getpid()}-{number}", Path(folder))


def main(count: int = 200, seed: int = 0) -> int:
    """Perform random trials and print the figures; return 1 if anything was left or wrong."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # a shell may start us in the background or with nohup: both ignore some
    planned = trials(count, seed)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        verdicts = list(pool.map(one, planned, range(count)))
    tried, held = (
        Counter(one.trial.end for one in verdicts),
        Counter(one.trial.end for one in verdicts if not one.faults),
    )
    print("end           tried  memory alive  held  nothing left after, at most")
    for end in ENDS:
        these = [one for one in verdicts if one.trial.end == end]
        alive, longest = sum(bool(one.alive) for one in these), max((one.slowest for one in these), default=0.0)
        print(f"{end:<13} {tried[end]:>5} {alive:>13} {held[end]:>5} {longest:>18.1f} s")
    print(f"{'all':<13} {count:>5} {sum(bool(one.alive) for one in verdicts):>13} {sum(held.values()):>5}")
    for verdict in verdicts:
        for fault in verdict.faults:
            print(f"{verdict.trial}: {fault}")
    if not any(verdict.alive for verdict in verdicts):
        print("no memory was alive when its sweep was ended, so nothing was tried")
        return 1
    return int(sum(held.values()) < count)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
