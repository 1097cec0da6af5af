"""Times a sweep of the bundled network on a GPU beside the processor, in one run; the records must be the same.

python -m benchmarks gpu
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from eirkit.errors import EirkitError
from eirkit.lacuna.agents.bundled import WEIGHTS
from eirkit.lacuna.models.network.layout import load_weights
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.records.database import SweepDatabase

WORTH = 2.0  # times faster than the processor, or it is not worth keeping
RUNS = 1_024


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = perf_counter()
    found = work()
    return perf_counter() - start, found


def network() -> bool:
    """Print the steps a second of one sweep on both devices; True if the GPU is worth it."""
    rates, records = {}, {}
    for device, runs in (("cpu", RUNS // 16), ("gpu", RUNS)):
        grid = {"workload": "stepwise-sum", "model": "bundled/lacuna-tiny", "n": 64, "m": 16, "h": 16}
        suite = {**grid, "model_options": {"extra": {"device": device}}}
        with TemporaryDirectory() as place:
            start_sweep(read_suite({**suite, "seeds": "0:4"}), Path(place) / "warm", control=False)
            work = lambda folder=Path(place) / "out", suite=suite, runs=runs: start_sweep(  # noqa: E731
                read_suite({**suite, "seeds": f"0:{runs}"}), folder, control=False
            )
            spent, _ = timed(work)
            rates[device] = 64 * runs / spent
            records[device] = _answers(Path(place) / "out")
        print(f"bundled/lacuna-tiny, {runs:,} runs at a time or fewer, {device}{rates[device]:>10,.0f} steps/s")
    assert records["cpu"].items() <= records["gpu"].items(), "the devices give different records"
    return verdict(rates["gpu"] / rates["cpu"])


def _answers(folder: Path) -> dict[int, Any]:
    with SweepDatabase(folder) as database:
        return {record.seed: record.score for record in database.records()}


def verdict(times: float) -> bool:
    print(f"  {times:.1f} times the processor, at least {WORTH:.0f}: {'ok' if times >= WORTH else 'FALLS SHORT'}")
    return times >= WORTH


def main() -> int:
    """Print both rates; 1 if the GPU is not worth it."""
    try:
        load_weights(WEIGHTS).on_gpu()
    except EirkitError as error:
        print(error)
        return 0
    return int(not network())
