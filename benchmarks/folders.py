"""Measures large folders of runs: resuming one, its report, which memory it chooses, its size, and its first page.

The runs are those of a small sweep, stored again under other seeds. Every command has a process of its own.

python -m benchmarks.folders
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from eirkit.lacuna.runs.manifest import write_manifest
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import describe_sweep, resume_sweep, start_sweep
from eirkit.records.database import DATABASE, FinishedRun, SweepWriter
from eirkit.records.documents import SUMMARY

RESUMED, LEFT = 200_000, 8  # runs that are stored, and runs that are not
REPORTED = 100_000
DRAWN = 20  # seeds that are really run
BATCH = 1_000  # runs stored at a time
FIRST_RUN_SECONDS, SUMMARY_SECONDS, PAGE_SECONDS = 1.0, 10.0, 0.3  # targets on two cores
PEAK_BYTES = 400e6
# What the same runs took in the files that the database replaced (b60d6eac), and how much more it may take.
EARLIER_BYTES, LARGER = {"resumed": 2_566, "reported": 6_353}, 1.3

AGENTS: dict[str, Any] = {"workload": "stepwise-sum", "model": "reference/calculator", "n": 8, "m": 4, "h": 4}
MEMORIES: dict[str, Any] = {
    "workload": "store-recall", "model": "reference/recoverer", "n": 16, "m": 8, "h": 2,
    "memory": ["key-value", "text", "bm25", "broken-drops"],
}  # fmt: skip

_COMMAND = """
import sys
from eirkit.cli import run
code = run(sys.argv[1:])
status = open("/proc/self/status").read()
print(int(status.partition("VmHWM:")[2].split()[0]) * 1024, file=sys.stderr)
sys.exit(code)
"""


def fill(folder: Path, grid: dict[str, Any], seeds: int, left: int = 0) -> None:
    """Make the folder of a sweep with so many seeds of each cell, of which the last are left to be run."""
    start_sweep(read_suite({**grid, "seeds": f"0:{DRAWN}"}), folder, control=False)
    suite = read_suite({**grid, "seeds": f"0:{seeds}"})
    write_manifest(describe_sweep(suite, None, os.environ, folder, False), folder)
    (folder / SUMMARY).unlink()
    with SweepWriter(folder) as database:
        database.plan((cell.setting, len(own)) for cell, own in suite.plan())
        drawn: dict[str, list[FinishedRun]] = {}
        for record in list(database.records()):
            drawn.setdefault(record.cell, []).append(FinishedRun(record, database.event_lines(record.run)))
        for cell, _ in suite.plan():
            waiting = _renamed(drawn[cell.id], range(DRAWN, seeds - left))
            while batch := list(islice(waiting, BATCH)):
                database.add(batch, durable=False)
    if not left:
        resume_sweep(folder)  # writes the summary


def _renamed(runs: Sequence[FinishedRun], seeds: Sequence[int]) -> Iterator[FinishedRun]:
    for seed, run in zip(seeds, cycle(runs), strict=False):
        record = replace(run.record, run=f"{run.record.cell}-{seed}", seed=seed)
        yield FinishedRun(record, run.events)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one command took."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


def cost_of(*words: object) -> Cost:
    """Return what a command of ours takes in a process of its own."""
    started, before = perf_counter(), os.times()
    command = [sys.executable, "-c", _COMMAND, *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(perf_counter() - started, cpu, int(done.stderr.split()[-1]))


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Start a viewer in a process of its own and yield its address."""
    words = [sys.executable, "-m", "eirkit", "view", str(folder), "--no-browser", "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["address"]
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def first_page_seconds(folder: Path) -> float:
    """Return how long a viewer that has just started takes for its first page of runs."""
    with serving(folder) as address:
        parts = urlsplit(address)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        started = perf_counter()
        connection.request("GET", f"/api/runs?{parts.query}&at=.&limit=100")
        reply = connection.getresponse()
        reply.read()
        taken = perf_counter() - started
        connection.close()
        if reply.status != 200:
            raise RuntimeError(f"the viewer answers {reply.status}")
        return taken


def _line(name: str, value: float, unit: str, target: float | None = None, cpu: float | None = None) -> bool:
    met = target is None or value <= target
    shown = "" if cpu is None else f", {cpu:.2f} s of CPU time"  # which other work on the machine changes less
    shown += "" if target is None else f"  target {target:g}: {'ok' if met else 'FALLS SHORT'}"
    print(f"  {name:48}{value:>10.2f} {unit}{shown}", flush=True)
    return met


def _size(folder: Path, runs: int, name: str) -> bool:
    a_run = (folder / DATABASE).stat().st_size / runs
    return _line("kB a run on disk", a_run / 1e3, "kB", LARGER * EARLIER_BYTES[name] / 1e3)


def resuming(folder: Path) -> bool:
    """Print how long a resume takes until its first run begins, and until its end; True if the targets are met."""
    fill(folder, AGENTS, RESUMED + LEFT, LEFT)
    begun: list[tuple[float, float]] = []
    started, cpu = perf_counter(), process_time()

    def note(progress: object = None) -> None:
        begun.append((perf_counter() - started, process_time() - cpu))

    resume_sweep(folder, observe=note)
    note()
    print(f"resume of {RESUMED:,} recorded runs")
    return all(
        [
            _line("until the first new run begins", begun[0][0], "s", FIRST_RUN_SECONDS, begun[0][1]),
            _line("until the summary is written", begun[-1][0], "s", SUMMARY_SECONDS, begun[-1][1]),
            _size(folder, RESUMED + LEFT, "resumed"),
        ]
    )


def reading(folder: Path) -> bool:
    """Print what the report, the choice and the first page of a folder take; True if the targets are met."""
    fill(folder, MEMORIES, REPORTED // len(MEMORIES["memory"]))
    print(f"a folder of {REPORTED:,} runs with memories")
    report, choice = cost_of("report", folder, "--out", folder.parent / "page.html"), cost_of("choose", folder)
    return all(
        [
            _line("eirkit report", report.seconds, "s", None, report.cpu_seconds),
            _line("eirkit report, peak memory", report.peak_bytes / 1e6, "MB", PEAK_BYTES / 1e6),
            _line("eirkit choose", choice.seconds, "s", None, choice.cpu_seconds),
            _line("eirkit choose, peak memory", choice.peak_bytes / 1e6, "MB", PEAK_BYTES / 1e6),
            _line("the viewer's first page of runs", first_page_seconds(folder), "s", PAGE_SECONDS),
            _size(folder, REPORTED, "reported"),
        ]
    )


def main() -> int:
    """Print the tables; 1 if a target is missed."""
    with TemporaryDirectory() as place:
        return int(not all([resuming(Path(place) / "resumed"), reading(Path(place) / "reported")]))


if __name__ == "__main__":
    sys.exit(main())
