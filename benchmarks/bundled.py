"""Measures steps per second of bundled/lacuna-tiny on one core, harness included, by number of concurrent runs.

python -m benchmarks.bundled
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from eirkit.lacuna.agents.bundled import WEIGHTS
from eirkit.lacuna.models.network.layout import load_weights
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.report.showing import TEXT_WIDTH
from eirkit.report.table import Column, Table
from eirkit.report.terminal import table_lines

TARGET = 200  # steps a second of CPU time: the machine's other work is not ours
CELLS = (  # workload, records in sight of 16, runs
    ("stepwise-sum", 16, 64),
    ("stepwise-sum", 16, 8),
    ("stepwise-sum", 16, 3),
    ("stepwise-sum", 8, 8),
    ("store-recall", 16, 8),
    ("stepwise-topk", 16, 8),
)
HELD_TO = CELLS[:3]  # the last of them is what `lacuna run` does unless told otherwise
STEPS = 64


def measure(workload: str, h: int, runs: int) -> float:
    """Return steps a second of a sweep from start to its records on disk, best of three."""
    grid = {"workload": workload, "model": "bundled/lacuna-tiny", "n": STEPS, "m": 16, "h": h, "seeds": f"0:{runs}"}
    best = 0.0
    for _ in range(3):
        with TemporaryDirectory() as folder:
            began = process_time()
            start_sweep(read_suite(grid), Path(folder) / "out", control=False)
            best = max(best, STEPS * runs / (process_time() - began))
    return best


def main() -> int:
    """Print the table; return 1 if a cell that is held to the target misses it."""
    began = process_time()
    weights = load_weights(WEIGHTS)
    loading = process_time() - began
    found = {cell: measure(*cell) for cell in CELLS}
    columns = (
        Column("workload", "workload"),
        Column("h", "h"),
        Column("runs", "runs at a time"),
        Column("rate", "steps/s", 0),
    )
    rows = tuple({"workload": w, "h": h, "runs": runs, "rate": rate} for (w, h, runs), rate in found.items())
    table = Table("sweeps", "Sweeps of bundled/lacuna-tiny, m = 16", columns, rows)
    print("\n".join(line.text for line in table_lines(table, TEXT_WIDTH)))
    print(f"{weights.parameters:,} parameters, loaded in {1000 * loading:.0f} ms; target {TARGET} steps/s")
    return 0 if all(found[cell] >= TARGET for cell in HELD_TO) else 1


if __name__ == "__main__":
    sys.exit(main())
