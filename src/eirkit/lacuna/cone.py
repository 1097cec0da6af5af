"""Recovery cones: what must be evaluated again to rebuild a missing result from the steps' own inputs.

One cone comes from a graph in plain Python, the readable definition; all cones of many graphs come from their reference
arrays at once. The cone of a node contains the node, so that size and depth are those of the published table.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.errors import SpecError, TooLargeError
from eirkit.lacuna.graph import References
from eirkit.lacuna.workload import Graph

LARGEST_GRAPH = 4096  # steps; ancestor sets grow with the square, naive costs to more than a thousand digits
CHUNK_WORDS = 1 << 20  # words of ancestor sets held at once; 8 MiB stay near the processor
_WORD = 64
_LARGEST_WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Cone:
    """What one missing result needs, given the resident records."""

    nodes: tuple[int, ...]  # steps to evaluate, in an order in which each finds its references done; the target last
    depth: int  # nodes on the longest chain
    naive: int  # evaluations if no result is kept: every path is walked again

    @property
    def size(self) -> int:
        """Evaluations if every result is kept: the minimal recomputation."""
        return len(self.nodes)


def cone_of(graph: Graph, target: int, resident: Collection[int] = ()) -> Cone:
    """Return the cone of a target cut at resident records, which are excluded; empty if the target is resident."""
    if not 1 <= target <= len(graph):
        raise SpecError(f"step {target} is outside 1 … {len(graph)}; choose a step of the graph")
    kept = frozenset(resident)
    nodes = ancestors(graph, (target,), kept)
    depth: dict[int, int] = {}
    naive: dict[int, int] = {}
    for t in nodes:
        inner = [r for r in graph[t - 1] if r not in kept]
        depth[t] = 1 + max((depth[r] for r in inner), default=0)
        naive[t] = 1 + sum(naive[r] for r in inner)
    return Cone(nodes, depth.get(target, 0), naive.get(target, 0))


def ancestors(graph: Graph, wanted: Collection[int], resident: Collection[int] = ()) -> tuple[int, ...]:
    """Return every step that recomputing the wanted ones takes, ascending, which is an order of computation."""
    kept = frozenset(resident)
    found = set(wanted) - kept
    open_nodes = list(found)
    while open_nodes:
        fresh = {r for r in graph[open_nodes.pop() - 1] if r not in found and r not in kept}
        found |= fresh
        open_nodes.extend(fresh)
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class ConeArrays:
    """The cones of all steps of many graphs; every array has shape (graphs, n)."""

    size: NDArray[np.int32]
    depth: NDArray[np.int32]
    naive: NDArray[Any]  # exact: uint64, or Python integers where those are too narrow


def measure_cones(references: References) -> ConeArrays:
    """Return size, depth and naive cost of every cone of many graphs, given as (graphs, n, fan_in), zero-padded."""
    graphs, n, _ = references.shape
    if n > LARGEST_GRAPH:
        raise TooLargeError(f"cones of {n} steps, the limit is {LARGEST_GRAPH}; use a smaller --n")
    rows = max(1, CHUNK_WORDS // (n * _words(n)))
    parts = [_measure(references[start : start + rows]) for start in range(0, graphs, rows)] or [_measure(references)]
    return ConeArrays(
        np.concatenate([part.size for part in parts]),
        np.concatenate([part.depth for part in parts]),
        np.concatenate([part.naive for part in parts]),
    )


def _measure(references: References) -> ConeArrays:
    graphs, n, fan_in = references.shape
    # Step-major, and row 0 stands for "no reference": no ancestors, depth 0, cost 0. So padding needs no mask.
    by_step = np.ascontiguousarray(references.transpose(1, 2, 0))
    ancestors = np.zeros((n + 1, graphs, _words(n)), dtype=np.uint64)
    depth = np.zeros((n + 1, graphs), dtype=np.int32)
    naive: NDArray[Any] = np.zeros((n + 1, graphs), dtype=np.uint64)
    column = np.arange(graphs)
    largest = 0  # naive cost so far
    for t in range(1, n + 1):
        if naive.dtype != object and 1 + fan_in * largest > _LARGEST_WORD:
            naive = naive.astype(object)
        for refs in by_step[t - 1]:
            ancestors[t] |= ancestors[refs, column]
            np.maximum(depth[t], depth[refs, column], out=depth[t])
            naive[t] += naive[refs, column]
        word, bit = divmod(t - 1, _WORD)
        ancestors[t, :, word] |= np.uint64(1 << bit)
        depth[t] += 1
        naive[t] += naive.dtype.type(1) if naive.dtype != object else 1
        largest = max(largest, int(naive[t].max(initial=0)))
    size = _ones(ancestors[1:])
    return ConeArrays(size.T, depth[1:].T, naive[1:].T)


def _words(n: int) -> int:
    return -(-n // _WORD)


def _ones(sets: NDArray[np.uint64]) -> NDArray[np.int32]:
    """Return the number of elements of each set, summed over the last axis."""
    if hasattr(np, "bitwise_count"):
        counts: NDArray[np.int32] = np.bitwise_count(sets).sum(axis=-1, dtype=np.int32)
    else:  # numpy 1 cannot count bits
        counts = np.unpackbits(sets.view(np.uint8), axis=-1).sum(axis=-1, dtype=np.int32)
    return counts
