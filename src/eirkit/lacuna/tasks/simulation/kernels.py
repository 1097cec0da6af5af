"""The inner loops of the batch simulator, in the subset of Python that numba compiles.

`needed_capacities` gives all capacities in one pass where recovery is off; `missed_counts` replays one capacity and
also supports direct recovery and drawn victims. Both rank a record by one integer, fact[lowest] · 2^32 + fact[ties],
which changes only when the record enters or is touched; the lowest rank is evicted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eirkit.lacuna.tasks.policy import NEVER

Ints = NDArray[np.integer[Any]]

FACTS = ("id", "worth", "inserted", "touched", "uses", "next_use")  # the first two never change
_INSERTED, _TOUCHED, _USES, _NEXT = range(2, 6)
_SHIFT = 1 << 32


class Streams(NamedTuple):
    """What the steps of many tasks ask of a store, shape (tasks, n, width) both."""

    requests: NDArray[
        np.int32
    ]  # references, ascending and zero-padded; in the last column the record that enters, or 0
    upcoming: NDArray[np.int32]  # the first later step that refers to the same record, or NEVER


class Rank(NamedTuple):
    """By what a policy ranks records."""

    lowest: int  # position in FACTS
    ties: int
    facts: NDArray[np.int64]  # (n + 1, 6): of each record; the kernels set all but id and worth


def fill_upcoming(requests: Ints, upcoming: Ints) -> None:
    """Set the next use of every request."""
    tasks, n, width = requests.shape
    following = np.empty(n + 1, np.int64)
    for task in range(tasks):
        following[:] = NEVER
        for t in range(n - 1, -1, -1):
            for i in range(width):
                upcoming[task, t, i] = following[requests[task, t, i]]
            for i in range(width - 1):
                following[requests[task, t, i]] = t + 1


def needed_capacities(streams: Streams, rank: Rank, by_step: Ints, by_reference: Ints) -> None:
    """Count, per task, the smallest capacity that holds each reference, and all references of each step.

    The residents of every capacity form one stack: position p (from 0) is what capacity p + 1 holds and p does not.
    With recovery off a held record has been held since it was made, so its rank does not depend on the capacity, and
    the record that ranks lowest among the residents and the newcomer of capacity p + 1 ranks lowest in capacity p too,
    if it is there. Hence a newcomer moves down the stack; at each position the higher rank stays and the lower moves on
    (Mattson, Gecsei, Slutz and Traiger 1970). `test_simulation_batch.py` compares with the plain loop.

    Args:
        by_step, by_reference: shape (tasks, depth + 1), added to; column p: capacity p + 1 is needed; the last: more.
    """
    tasks, n, width = streams.requests.shape
    depth = by_step.shape[1] - 1
    facts, place = rank.facts, np.empty(n + 1, np.int64)
    ids, keys = np.empty(depth, np.int64), np.empty(depth, np.int64)
    for task in range(tasks):
        place[:] = depth
        held = 0
        for t in range(n):
            worst = -1
            for i in range(width - 1):
                r = streams.requests[task, t, i]
                if r == 0:
                    break
                p = place[r]
                worst = max(worst, p)
                by_reference[task, p] += 1
                if p < depth:
                    facts[r, _TOUCHED] = t * width + i
                    facts[r, _USES] += 1
                    facts[r, _NEXT] = -streams.upcoming[task, t, i]
                    keys[p] = facts[r, rank.lowest] * _SHIFT + facts[r, rank.ties]
            if worst >= 0:
                by_step[task, worst] += 1
            carried, tick = streams.requests[task, t, width - 1], (t + 1) * width - 1
            if carried > 0:
                facts[carried, _INSERTED:] = (tick, tick, 1, -streams.upcoming[task, t, width - 1])
                key = facts[carried, rank.lowest] * _SHIFT + facts[carried, rank.ties]
                for p in range(held):
                    # Selections, not a branch: which record stays is random, so a branch would be mispredicted.
                    other, rival = ids[p], keys[p]
                    ids[p] = carried if key > rival else other
                    carried = other if key > rival else carried
                    keys[p], key = max(key, rival), min(key, rival)
                    place[ids[p]] = p
                place[carried] = held
                if held < depth:
                    ids[held], keys[held] = carried, key
                    held += 1


def missed_counts(streams: Streams, rank: Rank, capacity: int, direct: bool, choices: Ints, missed: Ints) -> None:
    """Count missed steps and missed references per task for one capacity, as the plain loop does.

    Args:
        direct: whether missing references compete for a slot again.
        choices: shape (tasks, ticks): the victim's position for each tick of the clock; no columns to go by rank.
        missed: shape (tasks, 2), added to: steps, references.
    """
    tasks, n, width = streams.requests.shape
    facts, slots = rank.facts, np.empty(n + 1, np.int64)
    ids, keys = np.empty(min(capacity, n), np.int64), np.empty(min(capacity, n), np.int64)
    absent = np.ones(width, np.bool_)  # the entering record, in the last column, always is
    for task in range(tasks):
        slots[:], ids[:] = -1, 0
        held = tick = 0
        for t in range(n):
            for i in range(width - 1):
                r = streams.requests[task, t, i]
                absent[i] = r > 0 and slots[r] < 0
                if r > 0 and not absent[i]:
                    facts[r, _TOUCHED] = tick
                    facts[r, _USES] += 1
                    facts[r, _NEXT] = -streams.upcoming[task, t, i]
                    keys[slots[r]] = facts[r, rank.lowest] * _SHIFT + facts[r, rank.ties]
                    tick += 1
            missing = absent[:-1].sum()
            missed[task, 0] += missing > 0
            missed[task, 1] += missing
            for i in range(0 if direct else width - 1, width):
                r = streams.requests[task, t, i]
                if r == 0 or not absent[i]:
                    continue
                facts[r, _INSERTED:] = (tick, tick, 1, -streams.upcoming[task, t, i])
                key = facts[r, rank.lowest] * _SHIFT + facts[r, rank.ties]
                slot, least = held, key  # a free slot, or beyond the last: the newcomer itself
                if held < capacity:
                    held += 1
                elif choices.shape[1] > 0:
                    slot = choices[task, tick]
                else:
                    for p in range(held):
                        if keys[p] < least:
                            slot, least = p, keys[p]
                tick += 1
                if slot < capacity:
                    slots[ids[slot]] = -1
                    ids[slot], keys[slot], slots[r] = r, key, slot


class ScoreTables(NamedTuple):
    """The tables of a policy, flat enough for a kernel."""

    kinds: Ints  # of step t at t − 1
    last_use: Ints
    buckets: Ints  # of every distance that can occur
    left: Ints
    idle: Ints
    uses: Ints


def scored_counts(requests: Ints, lookups: ScoreTables, capacity: int, direct: bool, missed: Ints) -> None:
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
