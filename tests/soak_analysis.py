"""Kills analyses with SIGKILL, workers and all, in every phase of their work and starts them again until they are done.

What they leave must be what an analysis leaves that nobody killed, byte for byte, and a part that was complete when its
analysis died must not be made again.

python -m tests.soak_analysis [POINTS [SEED]]
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from eirkit.engine.processes import Processes
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions
from eirkit.vestige.corpus.parts import PARTS
from eirkit.vestige.corpus.pipeline import Corpus, analyze_in_parts
from eirkit.vestige.tables import FILE

COMMAND = [sys.executable, "-m", "eirkit", "vestige", "analyze", "--json"]
FILES, RUNS = 512, 1  # files, and runs in each; 64 files are a piece
PIECES = FILES // 64
LONGEST = 12  # turns
COMMAND_EVERY = 5  # one point in so many kills the command itself; the others a copy of this process, which is quicker
PATIENCE_SECONDS = 300.0  # for one analysis, on the busiest of machines
PHASES = ("starting", "measuring", "merging", "naming", "clearing")
WEIGHTS = (3, 5, 5, 2, 1)  # a kill while it clears up is the last one of an analysis


@dataclass(frozen=True, slots=True)
class Moment:
    """When to kill: so long after a state of the folder is seen."""

    is_reached: Callable[[], bool]
    delay_seconds: float


def write_logs(folder: Path, seed: int) -> Path:
    """Write many small files of runs; some names are taken twice, in different pieces."""
    folder.mkdir()
    rng = random.Random(seed)
    for file in range(FILES):
        lines = [_run(rng, f"r{(file * RUNS + number) % (FILES * RUNS - 40)}") for number in range(RUNS)]
        (folder / f"{file:04d}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def _run(rng: random.Random, name: str) -> str:
    def touch() -> dict[str, object]:
        return {"path": f"f{rng.randrange(9)}.py", "tokens": rng.randrange(2_000)}

    turns = [
        {"reads": [touch()], "writes": [touch()] if rng.random() < 0.3 else [], "tokens": 900}
        for _ in range(rng.randrange(3, LONGEST))
    ]
    run = {"run_id": name, "task_id": f"t{rng.randrange(40)}", "resolved": rng.random() < 0.5, "turns": turns}
    return json.dumps(run)


def soak(points: int, seed: int, folder: Path) -> Counter[str]:
    """Kill until the number of points is reached; return the phases in which, or raise AssertionError at a fault."""
    rng = random.Random(seed)
    logs, whole = write_logs(folder / "logs", seed), folder / "whole"
    started = time.monotonic()
    subprocess.run([*COMMAND, str(logs), "--out", str(whole), "--workers", "2"], check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - started
    expected, phases, analyses = _content(whole), Counter[str](), 0
    assert len(expected) > 1
    while phases.total() < points:
        out = folder / f"cut-{analyses}"
        phases += _kill_until_done(logs, out, seconds, rng, points - phases.total())
        assert _content(out) == expected, f"{out} is not what an analysis leaves that nobody killed"
        shutil.rmtree(out)
        analyses += 1
        print(f"{phases.total()} kills in {analyses} analyses", flush=True)
    where = ", ".join(f"{phases[phase]} {phase}" for phase in PHASES)
    print(f"{phases.total()} kills in {analyses} analyses ({where}): the same bytes, nothing made twice")
    return phases


def _content(out: Path) -> dict[str, bytes]:
    """Return every file of an analysis; the folder of parts or an unfinished table would be one more name."""
    return {path.name: path.read_bytes() if path.is_file() else b"" for path in sorted(out.iterdir())}


def _kill_until_done(logs: Path, out: Path, seconds: float, rng: random.Random, most: int) -> Counter[str]:
    """Start an analysis and kill it again and again, until it survives or was killed often enough; then let it end."""
    phases: Counter[str] = Counter()
    while phases.total() < most and not phases["clearing"]:
        parts, old = _parts(out), _tables(out)
        start = _start_copy if rng.randrange(COMMAND_EVERY) else _start_command
        if not _kill(start(logs, out), _moment(out, old, seconds, rng)):
            return phases
        phase = _phase(out, old)
        phases[phase] += 1
        if phase != "clearing":
            again = [name for name, made in parts.items() if _parts(out).get(name) != made]
            assert not again, f"{len(again)} complete parts were lost or made again"
    assert os.waitstatus_to_exitcode(os.waitpid(_start_copy(logs, out), 0)[1]) == 0, "the analysis failed by itself"
    return phases


def _moment(out: Path, old: dict[str, int], seconds: float, rng: random.Random) -> Moment:
    """Draw a moment in one of the phases; the short ones would hardly ever be hit by the clock."""
    (phase,) = rng.choices(PHASES, WEIGHTS)
    if phase == "starting":
        return Moment(lambda: True, rng.uniform(0, 0.6 * seconds))
    if phase == "measuring":
        wanted = rng.randrange(PIECES + 1)
        return Moment(lambda: len(_parts(out)) >= wanted, rng.uniform(0, 0.1))
    reached, longest = PHASES.index(phase), 0.1 if phase == "merging" else 0.005
    return Moment(lambda: PHASES.index(_phase(out, old)) >= reached, rng.uniform(0, longest))


def _phase(out: Path, old: dict[str, int]) -> str:
    """Return how far an analysis has come, from what lies in its folder beside the tables that it found there."""
    if b'"complete": true' in _bytes(out / FILE):
        return "clearing"
    new = [name for name, written in _tables(out).items() if old.get(name) != written]
    if any(name.endswith(".parquet") for name in new):
        return "naming"
    return "merging" if new else "measuring" if _parts(out) else "starting"


def _tables(out: Path) -> dict[str, int]:
    """Return the tables, finished or not, with the time of their last change."""
    found = {}
    for path in [*out.glob("*.parquet"), *out.glob(".*.parquet.unfinished")]:
        with suppress(FileNotFoundError):  # it has just got its name
            found[path.name] = path.stat().st_mtime_ns
    return found


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _parts(out: Path) -> dict[str, tuple[int, int]]:
    """Return the complete parts with what tells a file from one that was made again under its name."""
    found = {}
    for path in out.glob(f"{PARTS}/*/{FILE}"):
        if "." not in path.parent.name:  # it is named after the process that makes it until it is complete
            with suppress(FileNotFoundError):  # the parts are being removed
                found[path.parent.name] = (path.stat().st_ino, path.stat().st_mtime_ns)
    return found


def _start_copy(logs: Path, out: Path) -> int:
    """Analyze in a copy of this process, with two workers, as a group of its own."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            analyze_in_parts(Corpus((logs,)), out, AnalysisOptions(read_windows(None)), Processes(2))
            code = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)
    with suppress(PermissionError):  # whichever of the two is first, so that the group is there when it is killed
        os.setpgid(child, child)
    return child


def _start_command(logs: Path, out: Path) -> int:
    """The same with the command as people run it."""
    command = [*COMMAND, str(logs), "--out", str(out), "--workers", "2"]
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    return os.posix_spawn(command[0], command, os.environ, file_actions=quiet, setpgroup=0)


def _kill(group: int, moment: Moment) -> bool:
    """Kill all processes of a group at a moment; False if the first of them had ended before."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    due: float | None = None
    while due is None or time.monotonic() < due:
        done, status = os.waitpid(group, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0, "the analysis failed by itself"
            return False
        assert time.monotonic() < deadline, f"an analysis took more than {PATIENCE_SECONDS:g} s"
        if due is None and moment.is_reached():
            due = time.monotonic() + moment.delay_seconds
        else:
            time.sleep(0.0005)
    os.killpg(group, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(group, 0)[1])


def main(arguments: list[str]) -> int:
    """Run the soak; the seed is printed so that a failure can be repeated."""
    points = int(arguments[0]) if arguments else 1000
    seed = int(arguments[1]) if len(arguments) > 1 else time.time_ns() % 1_000_000
    print(f"{points} points, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        soak(points, seed, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
