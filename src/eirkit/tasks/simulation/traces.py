"""Simulates FIFO, LRU, LFU and Belady caches over arbitrary request traces of unit-size objects.

Every miss is admitted. LACUNA's own streams are simulated by `batch.py`; this is the general cache, comparable with
other simulators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eirkit.errors import SpecError, UnknownNameError
from eirkit.packages import compiled, has_compiler
from eirkit.tasks.simulation import trace_kernels

Labels = NDArray[np.int32]
Hits = NDArray[np.bool_]

LONGEST_TRACE = (1 << 31) - 2
_FIRST_BITS = 12  # initial size of the hash table, which doubles as new ids appear
_LOAD = 0.6


@dataclass(frozen=True, slots=True)
class LabelledTrace:
    """A trace whose ids have become 1 … count, so that tables can be arrays. Label once, simulate many capacities."""

    labels: Labels
    count: int

    @classmethod
    def of(cls, ids: ArrayLike) -> LabelledTrace:
        given = np.asarray(ids)
        if given.ndim != 1 or given.dtype.kind not in "iu" or len(given) > LONGEST_TRACE:
            raise SpecError(f"a trace must be a flat array of at most {LONGEST_TRACE} integer ids; convert it first")
        requests = np.ascontiguousarray(given).astype(np.int64, copy=False)
        if has_compiler():
            return cls(*_label(requests))
        known, positions = np.unique(requests, return_inverse=True)
        return cls((positions + 1).astype(np.int32), len(known))


def simulate_trace(trace: LabelledTrace, policy: str, capacity: int) -> Hits:
    """Return for every request whether it was a hit.

    LFU counts requests since the object entered and breaks ties by least recent use. Belady has the fewest misses.
    """
    if policy not in TRACE_POLICIES:
        raise UnknownNameError("trace policy", policy, TRACE_POLICIES)
    if capacity < 1:
        raise SpecError(f"capacity {capacity} holds no object; use 1 or more")
    return TRACE_POLICIES[policy](trace, max(1, min(capacity, trace.count)))


def _label(ids: NDArray[np.int64]) -> tuple[Labels, int]:
    labels = np.empty(len(ids), np.int32)
    bits, at, count = _FIRST_BITS, 0, 0
    table, keys = np.zeros(1 << bits, np.int32), np.zeros(int(_LOAD * (1 << bits)), np.int64)
    while True:
        at, count = compiled(trace_kernels.label)(ids, at, labels, table, keys, count)
        if at == len(ids):
            return labels, count
        bits += 1
        table, smaller = np.zeros(1 << bits, np.int32), keys
        keys = np.zeros(int(_LOAD * (1 << bits)), np.int64)
        keys[: count + 1] = smaller[: count + 1]
        compiled(trace_kernels.fill_table)(table, keys, count)


def _fifo(trace: LabelledTrace, capacity: int) -> Hits:
    return compiled(trace_kernels.fifo)(trace.labels, trace.count, capacity)


def _lru(trace: LabelledTrace, capacity: int) -> Hits:
    return compiled(trace_kernels.lru)(trace.labels, trace.count, capacity)


def _lfu(trace: LabelledTrace, capacity: int) -> Hits:
    return compiled(trace_kernels.lfu)(trace.labels, trace.count, capacity)


def _belady(trace: LabelledTrace, capacity: int) -> Hits:
    n = len(trace.labels)
    following = np.empty(n, np.int32)
    compiled(trace_kernels.fill_following)(trace.labels, np.full(trace.count + 1, n, np.int32), following)
    sizes = [(n + 63) // 64]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] + 63) // 64)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)
    bits = np.zeros(sum(sizes), np.uint64)
    return compiled(trace_kernels.belady)(trace.labels, following, trace.count, capacity, starts, bits)


TRACE_POLICIES: dict[str, Callable[[LabelledTrace, int], Hits]] = {
    "fifo": _fifo,
    "lru": _lru,
    "lfu": _lfu,
    "belady": _belady,
}
