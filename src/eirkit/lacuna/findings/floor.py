"""What a memory held, in bits: at each cut beside the bits that the task required there (EIR), and at most in a cell.

A record counts as the bits of its value; labels, vectors and other overhead appear in the bytes of the store only. The
number of records is the one that the system reports or, if it reports none, the number that was written to it. Which
records are held is taken not to depend on the values, as no policy of eirkit looks at them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from eirkit.eir.demand import DemandCurve
from eirkit.lacuna.agents.session import Decision
from eirkit.lacuna.agents.telemetry import Consultation


@dataclass(frozen=True, slots=True)
class Cut:
    """What was needed and what was held after step t."""

    t: int
    needed_bits: float  # EIR, or the certified lower bound where it is not exact
    held_records: int  # distinct labels in the store or in context
    held_bits: float


Counted = Literal["system", "writes"]


@dataclass(frozen=True, slots=True)
class Holdings:
    """What was held after each step t = 0 … n."""

    records: tuple[int, ...]  # in the store or in context
    bytes: tuple[int | None, ...]  # of the store alone, None if unknown
    counted: Counted  # source of the count: the system's report, or the writes


@dataclass(frozen=True, slots=True)
class Floor:
    """The peaks of a run over its cuts."""

    needed_bits: float
    held_bits: float
    short_cuts: int  # cuts at which less was held than needed

    @property
    def ratio(self) -> float | None:
        """Peak of held bits over peak of needed bits; None if nothing was needed."""
        return self.held_bits / self.needed_bits if self.needed_bits else None


def holdings(
    n: int, decisions: Sequence[Decision], consultations: Sequence[Consultation], limit: int | None = None
) -> Holdings:
    """Return what was held after each step, as the system reported it if it did so after every write.

    Args:
        limit: the number of records that the store was limited to.
    """
    writes = [one for one in consultations if one.call.verb == "write"]
    sizes = _latest(n, {one.t: one.bytes for one in writes})
    if not writes or any(one.records is None for one in writes):
        return Holdings(held_records(n, decisions, consultations, limit), sizes, "writes")
    return Holdings(_reported_records(n, decisions, writes), sizes, "system")


def _reported_records(n: int, decisions: Iterable[Decision], writes: Sequence[Consultation]) -> tuple[int, ...]:
    """Return a lower bound on the number of distinct records: those that the system reported, and those in context.

    The system does not report which records it holds. It may hold any record in context that was written to it; the
    others are additional.
    """
    in_sight = {decision.t - 1: frozenset(decision.retained) for decision in decisions}
    said = _latest(n, {one.t: one.records for one in writes})
    given = {step: one.t for one in reversed(writes) for step in one.call.steps}  # step of the first write of each
    counts = []
    for t in range(n + 1):
        seen = in_sight.get(t, frozenset())
        known = sum(given.get(step, n + 1) <= t for step in seen)
        counts.append(max(said[t] or 0, known) + len(seen) - known)
    return tuple(counts)


def _latest(n: int, by_step: Mapping[int, int | None]) -> tuple[int | None, ...]:
    """Return for each step the last reported value; None before the first."""
    found: list[int | None] = []
    for t in range(n + 1):
        found.append(by_step.get(t, found[-1] if found else None))
    return tuple(found)


def held_records(
    n: int, decisions: Iterable[Decision], consultations: Iterable[Consultation], limit: int | None = None
) -> tuple[int, ...]:
    """Return the number of distinct records after each step t = 0 … n, in the store or in context.

    The store is assumed to hold what was written to it until a lookup by key shows otherwise.

    Args:
        limit: the number of records that the store was limited to; the oldest write is removed first.
    """
    in_sight = {decision.t - 1: frozenset(decision.retained) for decision in decisions}
    by_step: dict[int, list[Consultation]] = {}
    for one in consultations:
        by_step.setdefault(one.t, []).append(one)
    stored: dict[int, None] = {}  # steps, oldest write first
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
    """Return the cuts of a run whose demand was computed.

    Args:
        held: records after each step t = 0 … n.
        record_bits: bits of the value of a record.
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
    """Return the peaks over runs and the mean share of cuts at which less was held than needed; None without runs."""
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


@dataclass(frozen=True, slots=True)
class Held:
    """What is known of the size of a memory; `bits` is None where it is unknown, and `why` then says why."""

    bits: float | None
    why: str = ""


def held_in_context(h: int, record_bits: float) -> Held:
    """Return the size of a memory of at most h records, all of them in context."""
    return Held(h * record_bits)


def held_by_store(
    floors: Iterable[Mapping[str, Any] | None], in_sight: int, made: Sequence[int], record_bits: float
) -> Held:
    """Return the largest size over all cuts of some runs with a memory system; its bytes where those are fewer bits.

    Floors count a record in sight once if the store may hold it too. Nobody says that it does, so those in sight are
    added, up to the number of records that there are.

    Args:
        floors: what each run held, as `floor_record` writes it; None where nothing was recorded.
        in_sight: records that were in context beside the store, at most.
        made: how many records there are after each step.
    """
    found = list(floors)
    if not found or any(one is None for one in found):
        return Held(None, "what was held was not recorded, as it is only for workloads whose EIR has a closed form")
    known = [one for one in found if one is not None]
    if any(one["counted"] != "system" for one in known):
        return Held(None, "how many records are held is not reported")
    return Held(max(_largest(one, in_sight, made, record_bits) for one in known))


def _largest(floor: Mapping[str, Any], in_sight: int, made: Sequence[int], record_bits: float) -> float:
    cuts = zip(floor["held_records"], floor["held_bytes"], made, strict=True)
    seen = in_sight * record_bits
    return max(
        min(min(int(count) + in_sight, most) * record_bits, math.inf if size is None else 8 * float(size) + seen)
        for count, size, most in cuts
    )
