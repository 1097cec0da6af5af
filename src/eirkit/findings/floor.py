"""The gap above the EIR floor: bits that a task still needed at each cut, against what a memory system held there.

A demand curve and the records of a run come in; one row for each cut goes out. A record counts for as many bits as its
value can differ in; labels, vectors and whatever else a store keeps come on top, and show in its bytes alone. Where the
system says how many records it holds, its word counts; where it cannot, what it was given does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from eirkit.agents.session import Decision
from eirkit.agents.telemetry import Consultation
from eirkit.eir.demand import DemandCurve


@dataclass(frozen=True, slots=True)
class Cut:
    """What was needed and what was held after step t."""

    t: int
    needed_bits: float  # EIR, or the certified lower bound where it is not exact
    held_records: int  # different labels in the store or in sight
    held_bits: float

    @property
    def gap_bits(self) -> float:
        """Held above needed; below 0 nothing that was held could have guaranteed what comes."""
        return self.held_bits - self.needed_bits


Counted = Literal["system", "writes"]


@dataclass(frozen=True, slots=True)
class Holdings:
    """What was held after each step t = 0 … n."""

    records: tuple[int, ...]  # in the store or in sight
    bytes: tuple[int | None, ...]  # of the store alone, None where it does not say
    counted: Counted  # who counted the store's records: the system itself, or the harness by what it wrote


@dataclass(frozen=True, slots=True)
class Floor:
    """The peaks of a run over its cuts."""

    needed_bits: float
    held_bits: float
    short_cuts: int  # at which less was held than needed

    @property
    def ratio(self) -> float | None:
        """Held over needed, at their peaks; None where nothing was ever needed."""
        return self.held_bits / self.needed_bits if self.needed_bits else None


def holdings(
    n: int, decisions: Sequence[Decision], consultations: Sequence[Consultation], limit: int | None = None
) -> Holdings:
    """Return what was held after each step, by the system's own account where it gave one after every write.

    Args:
        limit: how many records the store was held to.
    """
    writes = [one for one in consultations if one.call.verb == "write"]
    sizes = _latest(n, {one.t: one.bytes for one in writes})
    if not writes or any(one.records is None for one in writes):
        return Holdings(held_records(n, decisions, consultations, limit), sizes, "writes")
    return Holdings(_reported_records(n, decisions, writes), sizes, "system")


def _reported_records(n: int, decisions: Iterable[Decision], writes: Sequence[Consultation]) -> tuple[int, ...]:
    """Return how many different records there were at least: as many as the system said, and those in sight.

    Which ones the system has it does not say. Of those in sight that it was given it may have each; the others are new.
    """
    in_sight = {decision.t - 1: frozenset(decision.retained) for decision in decisions}
    said = _latest(n, {one.t: one.records for one in writes})
    given = {step: one.t for one in reversed(writes) for step in one.call.steps}  # the first time that each was
    counts = []
    for t in range(n + 1):
        seen = in_sight.get(t, frozenset())
        known = sum(given.get(step, n + 1) <= t for step in seen)
        counts.append(max(said[t] or 0, known) + len(seen) - known)
    return tuple(counts)


def _latest(n: int, by_step: Mapping[int, int | None]) -> tuple[int | None, ...]:
    """Return for each step what was said last, None before anything was."""
    found: list[int | None] = []
    for t in range(n + 1):
        found.append(by_step.get(t, found[-1] if found else None))
    return tuple(found)


def held_records(
    n: int, decisions: Iterable[Decision], consultations: Iterable[Consultation], limit: int | None = None
) -> tuple[int, ...]:
    """Return how many different records were held after each step t = 0 … n, in the store or in sight.

    The store is taken to hold what it was given, until it is asked for a record by key and does not have it.

    Args:
        limit: how many records the store was held to; the one written longest ago leaves first.
    """
    in_sight = {decision.t - 1: frozenset(decision.retained) for decision in decisions}
    by_step: dict[int, list[Consultation]] = {}
    for one in consultations:
        by_step.setdefault(one.t, []).append(one)
    stored: dict[int, None] = {}  # steps, the one written longest ago first
    counts = []
    for t in range(n + 1):
        for one in by_step.get(t, ()):
            _take_in(stored, one, limit)
        counts.append(len(in_sight.get(t, frozenset()).union(stored)))
    return tuple(counts)


def _take_in(stored: dict[int, None], one: Consultation, limit: int | None) -> None:
    if one.call.verb == "search":
        for step in one.lacking:
            if step not in one.held:
                stored.pop(step, None)
        return
    for step in one.call.steps:
        stored.pop(step, None)
        stored[step] = None
    while limit is not None and len(stored) > limit:
        del stored[next(iter(stored))]


def cuts_of(curve: DemandCurve, held: Sequence[int], record_bits: float) -> tuple[Cut, ...]:
    """Return the cuts of a run; those whose demand was not computed are left out.

    Args:
        held: records after each step t = 0 … n.
        record_bits: in how many bits the value of a record can differ.
    """
    return tuple(
        Cut(t, needed, count, count * record_bits)
        for t, (needed, count) in enumerate(zip(curve.lower_bits, held, strict=True))
        if needed is not None
    )


def floor_of(cuts: Sequence[Cut]) -> Floor:
    """Return the peaks over the cuts."""
    return Floor(
        max((cut.needed_bits for cut in cuts), default=0.0),
        max((cut.held_bits for cut in cuts), default=0.0),
        sum(cut.held_bits < cut.needed_bits for cut in cuts),
    )


def floor_record(curve: DemandCurve, held: Holdings, record_bits: float) -> dict[str, Any]:
    """Return the floor of a run as plain data, with what was held at each cut."""
    found = floor_of(cuts_of(curve, held.records, record_bits))
    return {
        "counted": held.counted,
        "held_records": list(held.records),
        "held_bytes": list(held.bytes),
        "record_bits": record_bits,
        "needed_bits": found.needed_bits,
        "held_bits": found.held_bits,
        "short_cuts": found.short_cuts,
    }


def pool_floors(records: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the peaks over runs, and the mean share of cuts at which less was held than needed; None without a run."""
    if not records:
        return None
    peak = Floor(
        max(record["needed_bits"] for record in records),
        max(record["held_bits"] for record in records),
        sum(record["short_cuts"] for record in records),
    )
    cuts = sum(len(record["held_records"]) for record in records)
    sizes = [size for record in records for size in record["held_bytes"] if size is not None]
    counted: Counted = "system" if all(record["counted"] == "system" for record in records) else "writes"
    return {
        "counted": counted,
        "held_bytes": max(sizes, default=None),
        "needed_bits": peak.needed_bits,
        "held_bits": peak.held_bits,
        "ratio": peak.ratio,
        "short_cuts": peak.short_cuts / cuts,
    }
