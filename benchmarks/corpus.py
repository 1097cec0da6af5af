"""Times `vestige analyze` on a corpus of the size of the paper's three cohorts, 72,562 runs, with two workers.

It prints time, peak memory and rate, the ratio to parsing the same bytes with orjson, and the cost per run among
1,000, 10,000 and 72,562, which must not grow. Runs have as many turns, reads and writes as recorded ones, but none of
their text; copies of recorded runs show the cost of the text. `docs/logs.md` has the main results.

python -m benchmarks.corpus [FOLDER]
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory

import numpy as np
import orjson
from tests.vestige.recorded import find_recorded

from eirkit.vestige.corpus.planted_corpus import PAPER, PlantedCorpus, write_plain

SIZES = (1_000, 10_000, sum(cohort.runs for cohort in PAPER))
WORKERS = 2
# Of 246 recorded runs of mini-SWE-agent: 42 turns, 18 reads and 17 writes in the mean, and ten files.
TURNS_MEDIAN, TURNS_SPREAD = 36, 0.43
READS, WRITES = 0.44, 0.41  # a turn
FILES = 10
COPIES = 4  # of the recorded runs
MOST_GROWTH = 1.25  # of the cost of one more run; CPU times of a shared machine differ by so much
MOST_MEMORY = 1 << 30  # bytes, of all processes together
_SAMPLE_SECONDS = 0.1
_TOUCHES = 1 << 12  # kinds of touches that are spelled out once


@dataclass(frozen=True, slots=True)
class Measured:
    """What one analysis took."""

    runs: int
    input_bytes: int
    table_bytes: int
    wall_seconds: float
    cpu_seconds: float  # of all its processes
    parsing_seconds: float  # CPU seconds of orjson on the same bytes, with reading them
    peak_bytes: int  # resident in all its processes at one time; what they share counts in each

    @property
    def cpu_ms(self) -> float:
        """Milliseconds a run."""
        return 1000 * self.cpu_seconds / self.runs


def paper_cohorts(runs: int) -> list[PlantedCorpus]:
    """Return the paper's cohorts at their proportions, with so many runs in all."""
    whole = sum(cohort.runs for cohort in PAPER)
    ends = [round(runs * sum(cohort.runs for cohort in PAPER[: place + 1]) / whole) for place in range(len(PAPER))]
    return [replace(cohort, runs=end - start) for cohort, start, end in zip(PAPER, [0, *ends], ends, strict=False)]


def write_long(runs: int, folder: Path) -> Path:
    """Write runs as long as recorded ones, a file for each cohort."""
    folder.mkdir()
    for place, cohort in enumerate(paper_cohorts(runs)):
        with (folder / f"{cohort.name}.jsonl").open("w", encoding="utf-8", buffering=1 << 20) as stream:
            stream.writelines(long_runs(cohort, np.random.default_rng([0, place])))
    return folder


def write_planted(runs: int, folder: Path) -> Path:
    """Write the runs that the statistics are checked on, which are short."""
    for cohort in paper_cohorts(runs):
        write_plain(cohort, 0, folder / f"{cohort.name}.jsonl")
    return folder


def copy_recorded(folder: Path) -> Path | None:
    """Copy recorded logs several times; None where there are none."""
    recorded = find_recorded("mini-swe-agent-v1")
    for copy in range(COPIES if recorded else 0):
        assert recorded is not None
        shutil.copytree(recorded, folder / str(copy))
    return recorded and folder


def long_runs(cohort: PlantedCorpus, rng: np.random.Generator) -> Iterator[str]:
    """Yield runs in the `plain` format, one a line."""
    paths = [f"src/package/module_{file}.py" for file in range(FILES)]
    drawn = zip(rng.integers(FILES, size=_TOUCHES), rng.integers(40, 3_000, _TOUCHES), strict=True)
    touches = [f'{{"path": "{paths[file]}", "tokens": {tokens}}}' for file, tokens in drawn]
    for number in range(cohort.runs):
        turns = min(400, max(3, round(TURNS_MEDIAN * float(np.exp(rng.normal(0, TURNS_SPREAD))))))
        chances, kinds = rng.random((2, turns)), rng.integers(_TOUCHES, size=(2, turns))
        body = ", ".join(
            f'{{"reads": [{touches[read] if is_read else ""}], "writes": [{touches[write] if is_write else ""}], '
            f'"tokens": 900}}'
            for is_read, is_write, read, write in zip(
                (chances[0] < READS).tolist(), (chances[1] < WRITES).tolist(), *kinds.tolist(), strict=True
            )
        )
        task, trial = number % cohort.tasks, number // cohort.tasks
        name = f'"run_id": "{cohort.name}-{task}-{trial}", "task_id": "{cohort.name}-{task}"'
        fate = f'"model": "m{trial % cohort.models}", "resolved": {json.dumps(bool(rng.random() < 0.5))}'
        yield f'{{{name}, {fate}, "goal_files": ["{paths[0]}"], "turns": [{body}]}}\n'


def measure(logs: Path, out: Path) -> Measured:
    """Analyze a folder as people do, by the command, and parse the same bytes."""
    command = [sys.executable, "-m", "eirkit", "vestige", "analyze", str(logs), "--out", str(out), "--json"]
    before, started = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen([*command, "--workers", str(WORKERS)], stdout=subprocess.PIPE, start_new_session=True)
    watch = Watch(process.pid)
    said = process.communicate()[0]
    wall, after = time.perf_counter() - started, getrusage(RUSAGE_CHILDREN)
    peak = watch.stop()
    if process.returncode:
        raise SystemExit(f"the analysis of {logs} failed")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    sizes = [sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) for folder in (logs, out)]
    return Measured(orjson.loads(said)["runs"], *sizes, wall, cpu, parsing_seconds(logs), peak)


def parsing_seconds(logs: Path) -> float:
    """Return the CPU time of reading every document, or every line, with orjson in one process."""
    started = time.process_time()
    for path in logs.rglob("*.json"):
        orjson.loads(path.read_bytes())
    for path in logs.rglob("*.jsonl"):
        with path.open("rb") as stream:
            for line in stream:
                orjson.loads(line)
    return time.process_time() - started


class Watch(threading.Thread):
    """Adds up the resident memory of a session's processes while they run; 0 where the system does not say."""

    def __init__(self, session: int) -> None:
        super().__init__(daemon=True)
        self.session, self.peak_bytes, self.is_over = session, 0, threading.Event()
        self.start()

    def run(self) -> None:
        while not self.is_over.wait(_SAMPLE_SECONDS):
            self.peak_bytes = max(self.peak_bytes, sum(map(self._resident, Path("/proc").glob("[0-9]*"))))

    def stop(self) -> int:
        self.is_over.set()
        self.join()
        return self.peak_bytes

    def _resident(self, process: Path) -> int:
        try:
            facts = (process / "stat").read_text("ascii", "replace").rpartition(")")[2].split()
        except OSError:
            return 0  # it is gone
        return int(facts[21]) * os.sysconf("SC_PAGE_SIZE") if int(facts[3]) == self.session else 0


def show(name: str, found: Measured) -> None:
    """Print one line of figures."""
    rate = (
        f"{found.wall_seconds:7.1f} s  {found.runs / found.wall_seconds:7,.0f} runs/s  {found.cpu_ms:6.2f} CPU ms a run"
    )
    ratio = f"{found.cpu_seconds / found.parsing_seconds:6.1f} × orjson"
    size = f"{found.input_bytes / 1e6:7.1f} MB in, {found.table_bytes / found.runs:5.0f} bytes of tables a run"
    print(f"{name:8} {found.runs:7,} runs  {rate}  {ratio}  {found.peak_bytes / 1e6:5.0f} MB  {size}", flush=True)


def marginal_ms(less: Measured, more: Measured) -> float:
    """Return the CPU milliseconds of one more run, free of what starting costs."""
    return 1000 * (more.cpu_seconds - less.cpu_seconds) / (more.runs - less.runs)


def measure_and_show(name: str, logs: Path) -> Measured:
    """Analyze a folder, print what it took, and remove it."""
    out = logs.with_name("out")
    found = measure(logs, out)
    show(name, found)
    shutil.rmtree(logs)
    shutil.rmtree(out)
    return found


def main(folder: Path | None = None) -> int:
    """Measure all sizes; 1 if the cost of a run grows or memory is not bounded."""
    print(f"{WORKERS} workers on a machine of load {os.getloadavg()[0]:.1f}; × orjson is CPU time against CPU time")
    with TemporaryDirectory(dir=folder) as scratch:
        logs = Path(scratch) / "logs"
        found = [measure_and_show("long", write_long(runs, logs)) for runs in SIZES]
        measure_and_show("planted", write_planted(SIZES[-1], logs))
        if copy_recorded(logs):
            measure_and_show("recorded", logs)
    first, last = marginal_ms(found[0], found[1]), marginal_ms(found[1], found[2])
    is_flat, peak = last <= MOST_GROWTH * first, found[-1].peak_bytes
    print(f"one more run costs {first:.2f} CPU ms from {SIZES[0]:,} on and {last:.2f} from {SIZES[1]:,} on", end=": ")
    print(f"{last / first:.2f} times, at most {MOST_GROWTH}: {'ok' if is_flat else 'FALLS SHORT'}")
    is_bounded = peak <= MOST_MEMORY
    print(f"peak of {peak / 1e6:.0f} MB, at most {MOST_MEMORY / 1e6:.0f}: {'ok' if is_bounded else 'FALLS SHORT'}")
    return int(not (is_flat and is_bounded))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else None))
