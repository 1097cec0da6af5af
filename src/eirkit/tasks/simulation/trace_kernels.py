"""Inner loops of the cache simulator for request traces, in the subset of Python that numba compiles.

Requests are labels from 1, objects have unit size. A miss is always admitted, and the victim is chosen among the
objects that were cached before. Every loop does a few array accesses per request, whatever the capacity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.integer[Any]]
Flags = NDArray[np.bool_]

_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: multiplication by it spreads neighbouring keys
_BLOCK = 64


def label(ids: Ints, start: int, labels: Ints, table: Ints, keys: Ints, count: int) -> tuple[int, int]:
    """Label the ids from `start` in order of first appearance until the table is full; return position and labels.

    Open addressing over a power of two; a table entry is a label, keys[label] its id. Each block of requests first
    loads what it will compare, so that its cache misses overlap instead of queueing up behind one another.
    """
    slots = np.empty(_BLOCK, np.int64)
    found = np.empty(_BLOCK, np.int64)
    held = np.empty(_BLOCK, np.int64)
    mask = len(table) - 1
    shift = np.uint64(64 - int(np.log2(len(table)) + 0.5))
    at = start
    while at < len(ids) and count + _BLOCK < len(keys):
        size = min(_BLOCK, len(ids) - at)
        for j in range(size):
            slots[j] = np.int64((np.uint64(ids[at + j]) * np.uint64(_GOLDEN)) >> shift)
            found[j] = table[slots[j]]
        for j in range(size):
            held[j] = keys[found[j]]
        for j in range(size):
            wanted, known, slot = ids[at + j], found[j], slots[j]
            while known == 0 or held[j] != wanted:
                known = table[slot]
                if known == 0:
                    count += 1
                    known = table[slot] = count
                    keys[known] = wanted
                held[j] = keys[known]
                slot = (slot + 1) & mask
            labels[at + j] = known
        at += size
    return at, count


def fill_table(table: Ints, keys: Ints, count: int) -> None:
    """Enter the labels 1 … count into an empty, larger table."""
    mask = len(table) - 1
    shift = np.uint64(64 - int(np.log2(len(table)) + 0.5))
    for known in range(1, count + 1):
        slot = np.int64((np.uint64(keys[known]) * np.uint64(_GOLDEN)) >> shift)
        while table[slot]:
            slot = (slot + 1) & mask
        table[slot] = known


def fifo(labels: Ints, count: int, capacity: int) -> Flags:
    """Return the hits: objects among the last `capacity` to enter."""
    entered = np.full(count + 1, -capacity, np.int64)  # number of the entry
    hits = np.empty(len(labels), np.bool_)
    entries = 0
    for i in range(len(labels)):
        hit = entries - entered[labels[i]] < capacity
        hits[i] = hit
        if not hit:
            entries += 1
            entered[labels[i]] = entries
    return hits


def lru(labels: Ints, count: int, capacity: int) -> Flags:
    """Return the hits: objects whose last request is no older than the oldest one still held."""
    last = np.full(count + 1, -1, np.int32)
    repeated = np.zeros(len(labels) + 1, np.bool_)  # positions whose object was requested again
    hits = np.empty(len(labels), np.bool_)
    oldest = held = 0
    for i in range(len(labels)):
        before = last[labels[i]]
        last[labels[i]] = i
        hit = before >= oldest
        hits[i] = hit
        if hit:
            repeated[before] = True
        elif held < capacity:
            held += 1
        else:
            while repeated[oldest]:
                oldest += 1
            oldest += 1
    return hits


def lfu(labels: Ints, count: int, capacity: int) -> Flags:
    """Return the hits: objects of equal frequency form a list, least recently used first, and the lowest list loses."""
    frequency = np.zeros(count + 1, np.int32)  # since entry; 0: not held
    before, after = np.zeros(count + 1, np.int32), np.zeros(count + 1, np.int32)
    first, final = np.zeros(len(labels) + 2, np.int32), np.zeros(len(labels) + 2, np.int32)
    hits = np.empty(len(labels), np.bool_)
    lowest, held = 1, 0
    for i in range(len(labels)):
        x = labels[i]
        f = frequency[x]
        hits[i] = f > 0
        if f == 0 and held < capacity:
            held += 1
        else:
            # A hit leaves its list for the next one; a miss sends the head of the lowest list away.
            gone, level = (x, f) if f > 0 else (first[lowest], lowest)
            a, b = before[gone], after[gone]
            frequency[gone] = 0
            if a:
                after[a] = b
            else:
                first[level] = b
            if b:
                before[b] = a
            else:
                final[level] = a
            if f == lowest and first[f] == 0:
                lowest += 1
        if f == 0:
            lowest = 1
        f += 1
        frequency[x], before[x], after[x] = f, final[f], 0
        if final[f]:
            after[final[f]] = x
        else:
            first[f] = x
        final[f] = x
    return hits


def fill_following(labels: Ints, last: Ints, following: Ints) -> None:
    """Set the position of each object's next request; `last` holds the value to use if there is none."""
    for i in range(len(labels) - 1, -1, -1):
        following[i] = last[labels[i]]
        last[labels[i]] = i


def belady(labels: Ints, following: Ints, count: int, capacity: int, starts: Ints, bits: NDArray[np.uint64]) -> Flags:
    """Return the hits of the optimal cache, which evicts the object requested last or never again.

    The next requests of those held are a set of positions, kept as a tree of 64-way bit words whose levels begin at
    `starts`, leaves first; its maximum leaves. Positions that have passed stay in it: they are below all others.
    """
    n, levels, one = len(labels), len(starts), np.uint64(1)
    idle = np.empty(capacity, np.int64)  # held and never requested again
    idles = held = 0
    resident = np.zeros(count + 1, np.bool_)
    hits = np.empty(n, np.bool_)
    for i in range(n):
        hits[i] = resident[labels[i]]
        resident[labels[i]] = True
        if not hits[i] and held < capacity:
            held += 1
        elif not hits[i] and idles > 0:
            idles -= 1
            resident[idle[idles]] = False
        elif not hits[i]:
            position = 0
            for level in range(levels - 1, -1, -1):
                word = bits[starts[level] + position]
                # The highest bit is a double's exponent; without the bit below it, rounding cannot reach the next one.
                leading = int(np.float64(word & ~(word >> one)).view(np.int64) >> 52)
                position = (position << 6) + leading - 1023
            resident[labels[position]] = False
            for level in range(levels):
                bits[starts[level] + (position >> 6)] ^= one << np.uint64(position & 63)
                if bits[starts[level] + (position >> 6)]:
                    break
                position >>= 6
        position = following[i]
        if position == n:
            idle[idles] = labels[i]
            idles += 1
            continue
        for level in range(levels):
            word = bits[starts[level] + (position >> 6)]
            bits[starts[level] + (position >> 6)] = word | one << np.uint64(position & 63)
            if word:
                break
            position >>= 6
    return hits
