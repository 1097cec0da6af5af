"""The inner loop for policies that look scores up in tables, in the subset of Python that numba compiles.

A score changes with time even if nothing happens to the record, so it is looked up when somebody must leave.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.integer[Any]]


class Lookups(NamedTuple):
    """The tables of a policy, flat enough for a kernel."""

    kinds: Ints  # of step t at t − 1
    last_use: Ints
    buckets: Ints  # of every distance that can occur
    left: Ints
    idle: Ints
    uses: Ints


def scored_counts(requests: Ints, lookups: Lookups, capacity: int, direct: bool, missed: Ints) -> None:
    """Count missed steps and missed references per task for one capacity, as the plain loop does.

    Args:
        requests: shape (tasks, n, width): references, ascending and zero-padded; last the record that enters, or 0.
        direct: whether missing references compete for a slot again.
        missed: shape (tasks, 2), added to: steps, references.
    """
    tasks, n, width = requests.shape
    kinds, buckets, most = lookups.kinds, lookups.buckets, lookups.uses.shape[1]
    sorts = lookups.idle.shape[0] // most
    slots, ids = np.empty(n + 1, np.int64), np.empty(min(capacity, n) + 1, np.int64)
    inserted, touched, used = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    absent = np.ones(width, np.bool_)  # the entering record, in the last column, always is
    for task in range(tasks):
        slots[:] = -1
        held = tick = 0
        for t in range(n):
            for i in range(width - 1):
                r = requests[task, t, i]
                absent[i] = r > 0 and slots[r] < 0
                if r > 0 and not absent[i]:
                    touched[r] = tick
                    used[r] = min(used[r] + 1, most)
                    tick += 1
            missing = absent[:-1].sum()
            missed[task, 0] += missing > 0
            missed[task, 1] += missing
            for i in range(0 if direct else width - 1, width):
                r = requests[task, t, i]
                if r == 0 or not absent[i]:
                    continue
                inserted[r], touched[r], used[r] = tick, tick, 1
                ids[held], slot, least = r, held, np.int64(0)
                # The newcomer, in the place behind the last, is a candidate too.
                for p in range(held, -1 if held == capacity else held, -1):
                    c = ids[p]
                    pair, seen = kinds[c - 1] * sorts + kinds[t], used[c] - 1
                    left = max(0, lookups.last_use[c - 1] - t - 1)
                    worth = lookups.left[pair, buckets[left]] + lookups.uses[pair, seen]
                    worth += lookups.idle[kinds[t] * most + seen, buckets[tick - touched[c]]]
                    if p == held or worth < least or (worth == least and inserted[c] < inserted[ids[slot]]):
                        slot, least = p, worth
                held, tick = min(held + 1, capacity), tick + 1
                if slot < capacity:
                    slots[ids[slot]] = -1
                    ids[slot], slots[r] = r, slot
