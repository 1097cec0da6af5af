"""Closed-form class counts of Running Maximum, Full Lookup, Store–Recall and Stepwise Sum.

Every function counts the classes at the cut after step t of n, over all histories and all admissible futures (full
support: any eligible references, any inputs). `tests/eir/test_closed_forms.py` certifies each one against inputs
enumerated and the process refined. The comparison workloads (Maximum, Top-k) are in `frontier.py`.
"""

from __future__ import annotations

from math import gcd


def running_maximum(q: int, n: int, t: int) -> int:
    """Return the classes of Running Maximum: prefixes with equal maxima have equal futures (Running Maximum)."""
    return q if 0 < t < n else 1


def full_lookup(q: int, n: int, m: int, t: int) -> int:
    """Return the classes of Full Lookup: any stored label may still be queried while a query remains (Full Lookup)."""
    return int(q ** min(t, m)) if m < n and t < n else 1


def store_recall(q: int, n: int, reach: int, t: int) -> int:
    """Return the classes of Store–Recall: q per STORE that the next RECALL may ask for (Store–Recall).

    Odd steps store and even steps recall. Later recalls reach no further back, so the next one decides.
    """
    return int(q ** len(recallable(n, reach, t)))


def recallable(n: int, reach: int, t: int) -> range:
    """Return the STORE steps up to t that the first RECALL after t may ask for; none if no RECALL is left."""
    next_recall = t + 2 - t % 2
    if next_recall > n:
        return range(0)
    oldest = max(1, next_recall - reach)
    return range(oldest + (oldest + 1) % 2, t + 1, 2)


def stepwise_sum(q: int, n: int, reach: int, fan_in: int, t: int) -> int:
    """Return the classes of Stepwise Sum modulo q (Stepwise Sum, interior and terminal; here for every fan-in).

    Two windows of W values share all futures exactly if their difference d vanishes on every admissible reference set.
    The next step uses all sets of g = min(fan_in, W) entries. If W > fan_in, they force all entries of d to be one c
    with fan_in · c = 0, which is gcd(fan_in, q) solutions; a second step sees an old entry beside a new one, whose
    difference is 0, and forces c = 0. If W ≤ fan_in, a step sees only the sum of the surviving entries of d: one
    equation for each distinct set of survivors, until the window outgrows the fan-in and every survivor is seen apart.
    """
    window, left = min(t, reach), n - t
    if window == 0 or left == 0:
        return 1
    every = int(q**window)
    if window > fan_in:
        return every if left > 1 else every // gcd(fan_in, q)
    if reach > fan_in:
        return every if left >= fan_in - t + 2 else q
    # The window never outgrows the fan-in. Survivors start to drop out once it is full, one a step.
    full_after = max(0, reach - t)
    return int(q ** min(window, max(1, left - full_after)))


def final_sum(q: int, n: int, t: int) -> int:
    """Return the classes when only the sum of all inputs is asked for, at the end: the offline contrast."""
    return q if 0 < t < n else 1
