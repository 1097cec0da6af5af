"""Demand curves: class counts and bits that must survive each cut, their pressure on a store, and closed forms.

Counts are exact integers, or a certified interval of integers; the logarithm is taken last, here and nowhere else.

Every function counts the classes at the cut after step t of n, over all histories and all admissible futures (full
support: any eligible references, any inputs). `tests/eir/test_closed_forms.py` certifies each one against inputs
enumerated and the process refined. The comparison workloads (Maximum, Top-k) are in `frontier.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Protocol

from eirkit.errors import SpecError


@dataclass(frozen=True, slots=True)
class ClassCount:
    """The number of continuation-equivalence classes at one cut, or certified bounds on it."""

    lower: int
    upper: int

    @classmethod
    def exactly(cls, classes: int) -> ClassCount:
        return cls(classes, classes)

    @property
    def is_exact(self) -> bool:
        return self.lower == self.upper

    @property
    def lower_bits(self) -> float:
        return math.log2(self.lower)

    @property
    def upper_bits(self) -> float:
        return math.log2(self.upper)

    def power(self, slots: int) -> ClassCount:
        """Return the count for `slots` independent copies that are referenced together."""
        return ClassCount(self.lower**slots, self.upper**slots)


@dataclass(frozen=True, slots=True)
class DemandCurve:
    """EIR after each step t = 0 … n of one task under its workload contract."""

    counts: tuple[ClassCount | None, ...]  # index t; None for cuts that were not requested
    method: str  # the theorem or algorithm that gives the counts, in words

    @property
    def certified(self) -> bool:
        """True if every computed cut has an exact count."""
        return all(count.is_exact for count in self._computed())

    @property
    def bits(self) -> tuple[float | None, ...]:
        """Exact bits after each step t; None for cuts that were not requested."""
        if not self.certified:
            raise ValueError("the curve is bounded, not exact; use lower_bits and upper_bits")
        return self.lower_bits

    @property
    def lower_bits(self) -> tuple[float | None, ...]:
        return tuple(None if count is None else count.lower_bits for count in self.counts)

    @property
    def upper_bits(self) -> tuple[float | None, ...]:
        return tuple(None if count is None else count.upper_bits for count in self.counts)

    @property
    def peak(self) -> ClassCount:
        """The largest demand over the computed cuts; its two ends may come from different cuts."""
        computed = tuple(self._computed())
        return ClassCount(max(count.lower for count in computed), max(count.upper for count in computed))

    def leave_out_unscored(self, warm_up: int) -> DemandCurve:
        """Return the curve if the first `warm_up` steps are not scored, from one that counts every step as required.

        Later cuts are the same. At earlier ones fewer outputs are required, so the count is only an upper bound, unless
        nothing is scored at all.
        """
        if not warm_up:
            return self
        nothing = warm_up >= len(self.counts) - 1
        counts = tuple(
            count if count is None or t >= warm_up else ClassCount(1, 1 if nothing else count.upper)
            for t, count in enumerate(self.counts)
        )
        return replace(self, counts=counts)

    def _computed(self) -> Iterator[ClassCount]:
        return (count for count in self.counts if count is not None)


@dataclass(frozen=True, slots=True)
class Pressure:
    """EIR divided by capacity at each cut, for storage of h records of `record_bits` each.

    Storage is whatever prefix-dependent payload survives the cut: h ordered slots, each holding any one of the
    record's possible values. Labels are implied by the slot order and cost nothing; anything else that depends on the
    history (counters, access times, summaries) would have to be added to the capacity.
    """

    ratios: tuple[float | None, ...]  # index t; of the certified lower bound where the count is not exact
    capacity_bits: float

    @property
    def peak(self) -> float:
        return max(ratio for ratio in self.ratios if ratio is not None)


def pressure(curve: DemandCurve, h: int, record_bits: float) -> Pressure:
    """Return information pressure against `h` records; above 1 no agent can guarantee success."""
    if h < 1:
        raise SpecError(f"h = {h} is too small to hold a record; use h >= 1")
    capacity = h * record_bits
    return Pressure(tuple(None if bits is None else bits / capacity for bits in curve.lower_bits), capacity)


class StepBound(Protocol):
    """What memories of C bits can reach at one step that refers to earlier ones."""

    @property
    def how(self) -> str:
        """How the ceiling is found, in words."""

    def upper(self, bits: float) -> float:
        """Return a probability of a right answer that no memory exceeds."""

    def exists(self, bits: float) -> float:
        """Return one that some memory reaches, perhaps without saying which."""

    def kept(self, bits: float) -> float:
        """Return one that is reached by a memory that can be run."""


def select_cuts(n: int, cuts: Sequence[int] | None) -> tuple[int, ...]:
    """Return the cuts to compute, by default all of 0 … n; cuts outside raise SpecError."""
    if cuts is None:
        return tuple(range(n + 1))
    for cut in cuts:
        if not 0 <= cut <= n:
            raise SpecError(f"cut {cut} is outside 0 … {n}; a cut t lies after step t")
    return tuple(sorted(set(cuts)))


def running_maximum(q: int, n: int, t: int) -> int:
    """Return the classes of Running Maximum: prefixes with equal maxima have equal futures (Running Maximum)."""
    return q if 0 < t < n else 1


def full_lookup(q: int, n: int, m: int, t: int) -> int:
    """Return the classes of Full Lookup: any stored label may still be queried while a query remains (Full Lookup)."""
    return int(q ** min(t, m)) if m < n and t < n else 1


def fetched_lookups(q: int, records: int, asking: int, retrievals: int) -> int:
    """Return the classes of Full Lookup and Store–Recall if some stored records may still be fetched.

    `records` may be asked for, one at each of `asking` later steps. Each retrieval saves one record, and all of them if
    there are no more questions than retrievals (docs/design/lossy-eir.md).
    """
    return int(q ** max(0, records - retrievals)) if asking > retrievals else 1


def store_recall(q: int, n: int, reach: int, t: int, warm_up: int = 0) -> int:
    """Return the classes of Store–Recall: q per STORE that the next scored RECALL may ask for (Store–Recall).

    Odd steps store and even steps recall. Later recalls reach no further back, so the next scored one decides.
    """
    return int(q ** len(recallable(n, reach, t, warm_up)))


def recallable(n: int, reach: int, t: int, warm_up: int = 0) -> range:
    """Return the STORE steps up to t that the first scored RECALL after t may ask for; none if none is left."""
    after = max(t, warm_up)
    next_recall = after + 2 - after % 2
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
