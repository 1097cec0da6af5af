"""Times retention simulation against libcachesim and plain Python on one thread, on the streams of the paper.

python -m benchmarks.simulation

libcachesim gets every trace as an annotated binary file, in one call, both as it comes and with a hash table sized to
the cache, which suits small caches much better. Reading that file is part of its time; hashing the ids is part of ours.
"""

from __future__ import annotations

import sys
import tempfile
import tracemalloc
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.policy import find_policy
from eirkit.lacuna.tasks.simulation.batch import Batch, count_misses
from eirkit.lacuna.tasks.simulation.plain import replay, structure_of
from eirkit.lacuna.tasks.simulation.table import sweep
from eirkit.lacuna.tasks.task import TaskSpec

TASKS = 20_000
GRID = tuple(range(16, 0, -2))  # the capacities of the paper's first-failure grid
SAMPLE = 100  # tasks for the plain loops
TABLE = (12, 8, 4)  # those of its cross-family table
STREAM_TARGET = 10.0  # times the best peer, per request
FITTED = 16  # log2 of a hash table that fits the cache
ROUNDS = 3
MEMORY_RATIO = 1.1  # ten times the seeds may take so much more memory at the peak

Ids = NDArray[np.int64]
CLASSES = {"fifo": "FIFO", "lru": "LRU", "lfu": "LFU", "belady": "Belady"}


def quickest(*works: Callable[[], object]) -> list[float]:
    """Return the best time of each, taken in turns so that a busy moment hits all alike."""
    times = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, taken in zip(works, times, strict=True):
            start = perf_counter()
            work()
            taken.append(perf_counter() - start)
    return [min(taken) for taken in times]


def write_trace(path: Path, ids: Ids) -> Path:
    """Write the binary format that carries each request's next use."""
    order = np.argsort(ids, kind="stable")
    following = np.full(len(ids), -1, np.int64)
    again = ids[order][1:] == ids[order][:-1]
    following[order[:-1][again]] = order[1:][again] + 1
    fields = np.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])
    records = np.zeros(len(ids), fields)
    records["time"], records["id"], records["size"], records["next"] = np.arange(len(ids)), ids, 1, following
    records.tofile(path)
    return path


def theirs(library: Any, path: Path, policy: str, capacity: int, **options: int) -> float:
    """Return libcachesim's miss ratio over the whole file."""
    reader = library.TraceReader(str(path), library.TraceType.ORACLE_GENERAL_TRACE)
    cache = getattr(library, CLASSES[policy])(capacity, **options)
    return float(cache.process_trace(reader)[0])


def ordered_dictionary(tasks: list[list[list[int]]], policy: str, capacity: int) -> int:
    """Return the misses of FIFO or LRU with an ordered dictionary: the loop that anybody would write."""
    missed = 0
    for task in tasks:
        held: OrderedDict[int, None] = OrderedDict()
        for *references, new in task:
            for record in references:
                if record in held:
                    if policy == "lru":
                        held.move_to_end(record)
                elif record:
                    missed += 1
            if len(held) == capacity:
                held.popitem(last=False)
            held[new] = None
    return missed


def line(name: str, cells: list[object]) -> None:
    """Print one line of a table."""
    print(f"{name:<8}" + "".join(f"{f'{cell:.3g}' if isinstance(cell, float) else cell:>14}" for cell in cells))


def streams(library: Any, folder: Path) -> bool:
    """Compare on the paper's streams; True if every policy reaches the target."""
    spec, seeds = TaskSpec("stepwise-sum"), np.arange(TASKS, dtype=np.uint64)
    references, structure = prepare(spec).references(spec, seeds), structure_of(spec)
    batch = Batch.of(structure, seeds, references)
    requests = batch.streams.requests
    total = int((requests > 0).sum())
    offset = np.arange(TASKS, dtype=np.int64)[:, None, None] << 10  # ids of one task differ from those of all others
    path = write_trace(folder / "streams.bin", (requests + offset)[requests > 0])
    print(f"Stepwise Sum, {TASKS:,} tasks of {spec.n} steps; nanoseconds a request and capacity, recovery off")
    line("policy", ["h = 16 … 2", "h = 12, 8, 4", "libcachesim", "fitted", "Python", "ratio", "12, 8, 4"])
    ratios = []
    for policy in ("fifo", "lru", "belady"):
        kind = find_policy(policy)
        works = (
            lambda kind=kind: count_misses(Batch.of(structure, seeds, references), kind, GRID),
            lambda kind=kind: count_misses(Batch.of(structure, seeds, references), kind, TABLE),
            lambda policy=policy: [theirs(library, path, policy, h) for h in TABLE],
            lambda policy=policy: [theirs(library, path, policy, h, hashpower=FITTED) for h in TABLE],
            lambda policy=policy: python(batch, policy),
        )
        shares = (total * len(GRID), *(total * len(TABLE),) * 3, total * SAMPLE / TASKS)
        each = [seconds / share * 1e9 for seconds, share in zip(quickest(*works), shares, strict=True)]
        ratios.append(min(each[2:]) / each[0])
        line(policy, [*each, f"{ratios[-1]:.1f}×", f"{min(each[2:]) / each[1]:.1f}×"])
        assert python(batch, policy) == count_misses(batch, kind, [8]).references[:SAMPLE].sum()
    return verdict("the best peer over the grid of capacities", min(ratios), STREAM_TARGET)


def python(batch: Batch, policy: str) -> int:
    """Return the misses of the first tasks with eight records, by a plain loop."""
    if policy in ("fifo", "lru"):
        return ordered_dictionary(batch.streams.requests[:SAMPLE].tolist(), policy, 8)
    outlooks = [batch.outlook(row) for row in range(SAMPLE)]
    return sum(replay(o, find_policy(policy).for_task(o), 8).missed_references for o in outlooks)


def verdict(peer: str, ratio: float, target: float) -> bool:
    print(f"at least {ratio:.1f} times {peer}, target {target:.0f}: {'ok' if ratio >= target else 'FALLS SHORT'}")
    return ratio >= target


def flat_memory() -> bool:
    """Print the peak memory of sweeps of 10,000 and 100,000 seeds; True if they are alike."""

    def peak(seeds: int) -> int:
        tracemalloc.start()
        sweep(TaskSpec("stepwise-sum"), range(seeds), ["lru"], GRID)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    few, many = peak(10_000), peak(100_000)
    holds = many <= MEMORY_RATIO * few
    print(f"\nsweep of 10,000 seeds: {few / 1e6:.0f} MB at the peak; of 100,000: {many / 1e6:.0f} MB")
    print(f"memory flat in the number of seeds: {'ok' if holds else 'FALLS SHORT'}")
    return holds


def warm_up() -> None:
    """Compile, or load, every kernel, and say how long it took."""
    start = perf_counter()
    sweep(TaskSpec("stepwise-sum"), range(2), ["fifo", "lru"], TABLE)
    print(f"first calls, compiling what is not on disk yet: {perf_counter() - start:.1f} s, not counted below\n")


def main() -> int:
    """Print the tables; 1 if a target is missed."""
    try:
        import libcachesim
    except ImportError:
        print("libcachesim is not installed; pip install -r requirements-dev.txt")
        return 1
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        held = [streams(libcachesim, Path(folder)), flat_memory()]
    return int(not all(held))


if __name__ == "__main__":
    sys.exit(main())
