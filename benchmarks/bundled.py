"""Steps a second of bundled/lacuna-tiny on one core, the harness included: Stepwise Sum with 16 records in sight.

python -m benchmarks.bundled
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from eirkit.cli.output import WholeConsole, table
from eirkit.lacuna.bundled.layout import load_weights
from eirkit.lacuna.models.bundled import WEIGHTS
from eirkit.lacuna.sweeps.experiment import start_sweep
from eirkit.lacuna.sweeps.suite import read_suite

TARGET = 200  # steps a second of CPU time: the machine's other work is not ours
CELLS = (("stepwise-sum", 64), ("stepwise-sum", 8), ("store-recall", 64), ("stepwise-topk", 64))
STEPS = 64


def measure(workload: str, runs: int) -> float:
    """Return steps a second of a sweep from start to its records on disk, best of three."""
    grid = {"workload": workload, "model": "bundled/lacuna-tiny", "n": STEPS, "m": 16, "seeds": f"0:{runs}"}
    best = 0.0
    for _ in range(3):
        with TemporaryDirectory() as folder:
            began = process_time()
            start_sweep(read_suite(grid), Path(folder) / "out", control=False)
            best = max(best, STEPS * runs / (process_time() - began))
    return best


def main() -> int:
    """Print the table; return 1 if the first cell is below the target."""
    began = process_time()
    weights = load_weights(WEIGHTS)
    loading = process_time() - began
    found = [(workload, runs, measure(workload, runs)) for workload, runs in CELLS]
    rows = [(workload, runs, f"{steps:.0f}") for workload, runs, steps in found]
    console = WholeConsole()
    console.print(table("Sweeps of bundled/lacuna-tiny, m = h = 16", ("workload", "runs at a time", "steps/s"), rows))
    console.print(f"{weights.parameters:,} parameters, loaded in {1000 * loading:.0f} ms; target {TARGET} steps/s")
    return 0 if found[0][2] >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
