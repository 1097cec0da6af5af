"""Times recovery cones of 100,000 graphs: batched, one pass per graph, and the definition node by node.

python -m benchmarks.cones
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from time import perf_counter

import numpy as np

from eirkit.lacuna.tasks.cones import cone_of, measure_cones, survey_cones
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import Graph, as_tuples, draw_references

GRAPHS = 100_000
SHAPE = {"n": 64, "m": 8}
TARGET_RATIO = 10.0  # all at once against the plain pass
MEMORY_RATIO = 1.1  # ten times the seeds may take so much more memory at the peak: integers grow by some digits


def seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def plain_pass(graph: Graph) -> list[tuple[int, int, int]]:
    """Return size, depth and naive cost of every node in one pass, ancestors as the bits of an integer."""
    ancestors, depth, naive = [0], [0], [0]
    for t, refs in enumerate(graph, 1):
        found = 1 << t
        for r in refs:
            found |= ancestors[r]
        ancestors.append(found)
        depth.append(1 + max((depth[r] for r in refs), default=0))
        naive.append(1 + sum(naive[r] for r in refs))
    return [(a.bit_count(), d, c) for a, d, c in zip(ancestors[1:], depth[1:], naive[1:], strict=True)]


def by_definition(graph: Graph) -> list[tuple[int, int, int]]:
    """Return the same from `cone_of`, which searches each node's ancestors anew."""
    cones = (cone_of(graph, t) for t in range(1, len(graph) + 1))
    return [(cone.size, cone.depth, cone.naive) for cone in cones]


def compare(fan_in: int) -> float:
    """Print graphs a second for each way; return how many times the plain pass is outdone."""
    references = draw_references(np.arange(GRAPHS), SHAPE["n"], SHAPE["m"], fan_in)
    together = min(seconds(lambda: measure_cones(references)) for _ in range(3))
    graphs = [as_tuples(drawn) for drawn in references[:1000]]
    passes = min(seconds(lambda: [plain_pass(graph) for graph in graphs]) for _ in range(3))
    searches = seconds(lambda: [by_definition(graph) for graph in graphs[:50]])
    cones = measure_cones(references[:50])
    for row, graph in enumerate(graphs[:50]):
        measured = [
            tuple(map(int, node)) for node in zip(cones.size[row], cones.depth[row], cones.naive[row], strict=True)
        ]
        assert measured == plain_pass(graph) == by_definition(graph)
    whole = seconds(lambda: survey_cones(TaskSpec("stepwise-sum", fan_in=fan_in, **SHAPE), range(GRAPHS), 32))
    rates = (GRAPHS / together, len(graphs) / passes, 50 / searches, GRAPHS / whole)
    print(f"{fan_in:>6}{together:>12.2f} s" + "".join(f"{value:>16,.0f}" for value in rates))
    return rates[0] / rates[1]


def peak_bytes(seeds: int) -> int:
    """Return the peak memory of a survey over so many graphs."""
    tracemalloc.start()
    survey_cones(TaskSpec("stepwise-sum", fan_in=4, **SHAPE), range(seeds), 32)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main() -> int:
    """Print the tables; 1 if the vectorized way is too slow or memory grows with the seeds."""
    print(f"Cones of all {SHAPE['n']} steps (size, depth, exact naive cost); graphs a second, one core")
    columns = ("all at once", "plain pass", "by definition", "drawn, summed")
    print(f"{'fan-in':>6}{'100,000 in':>14}" + "".join(f"{column:>16}" for column in columns))
    ratio = min(compare(fan_in) for fan_in in (1, 2, 4))
    few, many = peak_bytes(10_000), peak_bytes(100_000)
    print(f"survey of 10,000 graphs: {few / 1e6:.0f} MB at the peak; of 100,000: {many / 1e6:.0f} MB")
    holds = ratio >= TARGET_RATIO and many <= MEMORY_RATIO * few
    print(f"at least {ratio:.0f} times the plain pass, target {TARGET_RATIO:.0f}: {'ok' if holds else 'FALLS SHORT'}")
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
