"""Times `vestige analyze` against orjson parsing the same files, on a very long session, and its peak memory.

python -m benchmarks.vestige
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import process_time

import orjson
from tests.vestige.recorded import find_recorded

from eirkit.records.analysis import AnalysisSummary
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions
from eirkit.vestige.corpus.pipeline import analyze_corpus
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.demand.gold_patches import open_gold_patches
from eirkit.vestige.tokens import exact_counter

ROUNDS = 3
MOST_RATIO = 12.0  # of the analysis to orjson.loads
MOST_GROWTH = 1.3  # of the time a turn from a session to one four times as long
MOST_MEMORY = 1.15  # of the peak from a corpus to one four times as large
LONG_SESSION = 100_000  # turns
RUNS, TURNS = 300, 100  # of the smaller corpus, and of its largest run
FILES = 400  # that a generated run goes about in


def cpu_seconds(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start


def analyze(paths: list[Path], gold: Path | None = None) -> AnalysisSummary:
    """Do what the command line does, without starting an interpreter."""
    with TemporaryDirectory() as folder:
        patches = None if gold is None else open_gold_patches(gold)
        options = AnalysisOptions(read_windows())
        return analyze_corpus(read_corpus(paths), Path(folder) / "out", options, exact_counter(), gold=patches)


def compare_with_orjson() -> bool:
    """Print the time of the recorded mini-SWE-agent runs against parsing them alone."""
    runs, gold = find_recorded("mini-swe-agent-v1"), find_recorded("swebench-gold")
    if runs is None:
        print("the recorded runs are absent; EIRKIT_DATA may name their folder")
        return True
    contents = [path.read_bytes() for path in sorted(runs.rglob("*.json"))]
    analyze([runs], gold)  # the vocabulary and the grammar are loaded once
    parsing, dropping, whole = [], [], []
    for _ in range(ROUNDS):
        parsing.append(cpu_seconds(lambda: [orjson.loads(content) for content in contents]))
        dropping.append(cpu_seconds(lambda: deque(map(orjson.loads, contents), maxlen=0)))
        whole.append(cpu_seconds(lambda: analyze([runs], gold)))
    ratio = min(whole) / min(parsing)
    megabytes = sum(map(len, contents)) / 1e6
    print(f"{len(contents)} files, {megabytes:.0f} MB: orjson.loads {min(parsing):.3f} s, analysis {min(whole):.3f} s")
    print(f"{ratio:.1f} times orjson, at most {MOST_RATIO:.0f}: {_verdict(ratio <= MOST_RATIO)}")
    dropped = min(dropping)
    print(f"({min(whole) / dropped:.1f} times the {dropped:.3f} s that orjson needs where no document is kept)")
    return ratio <= MOST_RATIO


def compare_lengths() -> bool:
    """Print the time a turn of a long session and of one a quarter as long."""
    seconds = {}
    with TemporaryDirectory() as folder:
        for turns in (LONG_SESSION // 4, LONG_SESSION):
            path = Path(folder) / f"{turns}.jsonl"
            path.write_text("".join(session_lines(turns)))
            seconds[turns] = cpu_seconds(lambda path=path: analyze([path])) / turns
            print(f"a session of {turns:,} turns: {seconds[turns] * turns:.1f} s, {seconds[turns] * 1e6:.0f} µs a turn")
    growth = seconds[LONG_SESSION] / seconds[LONG_SESSION // 4]
    print(f"{growth:.2f} times the time a turn, at most {MOST_GROWTH}: {_verdict(growth <= MOST_GROWTH)}")
    return growth <= MOST_GROWTH


def compare_memory() -> bool:
    """Print the peak memory of a corpus and of one four times as large."""
    peaks = []
    with TemporaryDirectory() as folder:
        for runs in (RUNS, 4 * RUNS):
            path = Path(folder) / f"{runs}.jsonl"
            with path.open("w") as stream:
                stream.writelines(plain_runs(runs))
            peaks.append(peak_bytes(path))
            print(
                f"a corpus of {runs:,} runs, {path.stat().st_size / 1e6:.0f} MB: {peaks[-1] / 1e6:.0f} MB at the peak"
            )
    growth = peaks[1] / peaks[0]
    print(f"{growth:.2f} times the memory, at most {MOST_MEMORY}: {_verdict(growth <= MOST_MEMORY)}")
    return growth <= MOST_MEMORY


def peak_bytes(path: Path) -> int:
    """Return the peak of a process of its own, since a process never shrinks."""
    code = "import sys; from benchmarks.vestige import own_peak; print(own_peak(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    return int(done.stdout)


def own_peak(path: str) -> int:
    """Analyze and return the peak of this process in bytes."""
    analyze([Path(path)])
    status = Path("/proc/self/status")
    if status.is_file():  # what getrusage gives on Linux still holds the peak of the process that started this one
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def session_lines(turns: int) -> Iterator[str]:
    """Yield a session of Claude Code: reads, and an edit at every fifth turn."""
    draw = Random(0)
    parent = None
    for number in range(turns):
        path = f"/repo/src/module_{draw.randrange(FILES)}.py"
        edit = number % 5 == 4
        tool = {"name": "Edit", "input": {"file_path": path, "old_string": "old = 1", "new_string": f"new = {number}"}}
        if not edit:
            tool = {"name": "Read", "input": {"file_path": path}}
        result = "The file has been updated." if edit else f"     1→import os\n     2→value = {number}\n"
        call = {"type": "tool_use", "id": f"call-{number}", **tool}
        back = {"type": "tool_result", "tool_use_id": f"call-{number}", "content": result}
        usage = {"input_tokens": 1000, "output_tokens": 20}
        reply = {"id": f"m-{number}", "role": "assistant", "model": "m", "content": [call], "usage": usage}
        for kind, message in (("assistant", reply), ("user", {"role": "user", "content": [back]})):
            uuid = f"{kind}-{number}"
            line = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "long", "cwd": "/repo"}
            yield json.dumps({**line, "isSidechain": False, "message": message}) + "\n"
            parent = uuid


def plain_runs(runs: int) -> Iterator[str]:
    """Yield runs in the plain format, none longer than the first."""
    for number in range(runs):
        draw = Random(number)

        def touch(draw: Random = draw) -> dict[str, object]:
            return {"path": f"module_{draw.randrange(FILES)}.py", "tokens": draw.randrange(2_000)}

        turns = [
            {"reads": [touch(), touch()], "writes": [touch()] if turn % 4 == 3 else [], "tokens": 500}
            for turn in range(TURNS)
        ]
        yield json.dumps({"run_id": f"run-{number}", "task_id": f"task-{number % 50}", "turns": turns}) + "\n"


def _verdict(holds: bool) -> str:
    return "ok" if holds else "FALLS SHORT"


def main() -> int:
    """Measure all three; 1 if one falls short."""
    print(f"CPU seconds, one core; ratios from the best of {ROUNDS} rounds")
    results = [compare_with_orjson(), compare_lengths(), compare_memory()]
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
