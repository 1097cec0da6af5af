"""Kills sweeps with SIGKILL at random moments and resumes them: nothing may be lost, nothing may be there twice.

python -m tests.soak [POINTS [SEED]]
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
from pathlib import Path
from typing import Any

from eirkit.lacuna.sweeps.experiment import resume_sweep, start_sweep
from eirkit.lacuna.sweeps.run_store import EVENTS, RUNS, read_events, scan_runs
from eirkit.lacuna.sweeps.suite import read_suite

EIRKIT = str(Path(sys.executable).with_name("eirkit"))
COMMAND_EVERY = 20  # one point in so many kills the command itself; the others a copy of this process, which is quicker

SUITES: dict[str, dict[str, Any]] = {
    "scripted": {
        "model": ["reference/calculator", "reference/sloppy"],
        "workload": ["stepwise-sum", "store-recall"],
        "n": 16, "m": 8, "h": [8, 4, 2], "seeds": "0:20",
    },
    "managed": {
        "model": "reference/recoverer", "workload": "stepwise-sum", "n": 12, "m": 4, "h": 2, "seeds": "0:20",
        "grid": [{"memory": "key-value"}, {"condition": ["lru", "paging"], "b": 20}],
    },
    "overlapping": {
        "model": "tests.lacuna.faulty:Answering/calculator", "workload": "store-recall",
        "n": 16, "m": 8, "h": [4, 2], "seeds": "0:20", "model_options": {"connections": 6},
    },
}  # fmt: skip


def soak(points: int, seed: int, folder: Path) -> int:
    """Kill until the number of points is reached; return it, or raise AssertionError at the first fault."""
    rng = random.Random(seed)
    whole = {name: _whole(name, folder) for name in SUITES}
    killed = sweeps = 0
    while killed < points:
        name = rng.choice(list(SUITES))
        cut = folder / f"cut-{sweeps}"
        killed += _kill_until_done(name, cut, whole[name][1], rng, points - killed)
        _compare(name, cut, whole[name][0])
        shutil.rmtree(cut)
        sweeps += 1
    print(f"{killed} kills in {sweeps} sweeps: nothing lost, nothing twice")
    return killed


def _whole(name: str, folder: Path) -> tuple[Path, float]:
    """Run a suite without interruption; return its folder and how long it took."""
    out, started = folder / f"whole-{name}", time.monotonic()
    start_sweep(read_suite(SUITES[name]), out)
    return out, time.monotonic() - started


def _kill_until_done(name: str, cut: Path, seconds: float, rng: random.Random, most: int) -> int:
    """Start a sweep and kill it again and again, until it survives or was killed often enough; then let it finish."""
    killed = 0
    while killed < most:
        # Most moments fall into the sweep, some before its manifest and some after its end.
        moment = rng.uniform(0, 0.6 * seconds)
        if rng.randrange(COMMAND_EVERY):
            died = _kill_copy(name, cut, moment)
        else:
            died = _kill_command(name, cut, moment + 0.3)
        if not died:
            break
        killed += 1
    _go_on(name, cut)
    return killed


def _go_on(name: str, cut: Path) -> None:
    if (cut / "manifest.json").exists():
        resume_sweep(cut)
    else:
        start_sweep(read_suite(SUITES[name]), cut)


def _kill_copy(name: str, cut: Path, moment: float) -> bool:
    """Go on in a copy of this process and kill it after a moment; True if it was not finished."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _go_on(name, cut)
            code = 0
        finally:
            os._exit(code)
    time.sleep(moment)
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"the sweep {name} failed by itself"
    return os.WIFSIGNALED(status)


def _kill_command(name: str, cut: Path, moment: float) -> bool:
    """The same with the command as people run it."""
    suite = cut.with_suffix(".json.toml")
    suite.write_text(_as_toml(SUITES[name]))
    where = ["--resume", str(cut)] if (cut / "manifest.json").exists() else [str(suite), "--out", str(cut)]
    process = subprocess.Popen(
        [EIRKIT, "lacuna", "run", *where, "--json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},  # where the plug-ins of the suites are
    )
    time.sleep(moment)
    process.kill()
    complaint = process.communicate()[1]
    suite.unlink()
    assert process.returncode in (0, -signal.SIGKILL), complaint
    return process.returncode != 0


def _as_toml(document: dict[str, Any]) -> str:
    """Return a flat document with tables of one level as TOML; JSON spells its values in the same way."""
    tables = {key: value for key, value in document.items() if key in ("grid", "model_options")}
    plain = {"name": "run", **{key: value for key, value in document.items() if key not in tables}}
    lines = [f"{key} = {json.dumps(value)}" for key, value in plain.items()]
    for key, value in tables.items():
        for table in value if isinstance(value, list) else [value]:
            lines.append(f"[[{key}]]" if isinstance(value, list) else f"[{key}]")
            lines += [f"{name} = {json.dumps(inner)}" for name, inner in table.items()]
    return "\n".join(lines)


def _compare(name: str, cut: Path, whole: Path) -> None:
    """Assert that a sweep that was killed left what an uninterrupted one leaves."""
    if name == "scripted":
        for file in (EVENTS, RUNS, "manifest.json", "summary.json"):
            assert (cut / file).read_bytes() == (whole / file).read_bytes(), f"{file} of {cut} differs"
    assert _records(cut) == _records(whole), f"the records of {cut} differ"


def _records(folder: Path) -> list[str]:
    """Return every record but for places and times, in an order that does not depend on who was first."""
    runs = [record for record, _ in scan_runs(folder / RUNS)]
    assert sum(run["events"]["bytes"] for run in runs) == (folder / EVENTS).stat().st_size, "bytes of nobody"
    events = [event for run in runs for event in read_events(folder, run["events"])]
    plain = [{key: value for key, value in run.items() if key not in ("events", "usage")} for run in runs]
    timeless = [{key: value for key, value in event.items() if key != "latency_seconds"} for event in events]
    return sorted(json.dumps(record) for record in [*plain, *timeless])


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
