"""What a memory held, in bits: at each cut beside the bits that the task required there (EIR).

A record counts as the bits of its value; labels, vectors and other overhead appear in the bytes of the store only. The
number of records is the one that the system reports or, if it reports none, the number that was written to it. Which
records are held is taken not to depend on the values, as no policy of eirkit looks at them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eirkit.eir.demand import DemandCurve
from eirkit.lacuna.agents.telemetry import Consultation
from eirkit.records.events import Decision
from eirkit.records.runs import Counted, RunFloor


@dataclass(frozen=True, slots=True)
class Cut:
    """What was needed and what was held after step t."""

    t: int
    needed_bits: float  # EIR, or the certified lower bound where it is not exact
    held_records: int  # distinct labels in the store or in context
    held_bits: float


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
        if one.call.verb == "write":
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


def floor_record(curve: DemandCurve, held: Holdings, record_bits: float) -> RunFloor:
    """Return the floor of a run, with what was held at each cut."""
    found = floor_of(cuts_of(curve, held.records, record_bits))
    return RunFloor(
        held.counted, held.records, held.bytes, record_bits, found.needed_bits, found.held_bits, found.short_cuts
    )
