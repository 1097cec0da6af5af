"""The retention store: holds at most h records under a policy and tracks their age and use.

Simulators and agent sessions use the same store, one step at a time. A record is identified by the step that made it;
values are kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from eirkit.errors import ContractError, SpecError
from eirkit.tasks.policy import Policy, Record


class Retention:
    """At most `capacity` records under one policy.

    Every touch and every admission takes one tick of the clock. A newcomer that does not fit competes with the
    residents: it takes the slot of the evicted record, or is refused.
    """

    def __init__(self, policy: Policy, h: int) -> None:
        if h < 1:
            raise SpecError(f"h = {h} is too small to hold a record; use h >= 1")
        self.policy, self.h = policy, h
        self.capacity = policy.capacity(h)
        self._records: list[Record] = []  # by slot
        self._slots: dict[int, int] = {}  # id -> slot
        self._clock = 0

    def __contains__(self, record: int) -> bool:
        return record in self._slots

    def __len__(self) -> int:
        return len(self._records)

    @property
    def records(self) -> tuple[Record, ...]:
        """The residents, in slot order."""
        return tuple(self._records)

    def held(self) -> list[int]:
        """Return the ids of the residents, ascending."""
        return sorted(self._slots)

    def missing(self, references: Iterable[int]) -> tuple[int, ...]:
        """Return the references that are not held, ascending; nothing is touched."""
        slots = self._slots
        return tuple(sorted([record for record in references if record not in slots]))

    def touch(self, references: Iterable[int]) -> None:
        """Mark the held records among the references as used, in ascending order."""
        for record in sorted(references):
            if (slot := self._slots.get(record)) is not None:
                held = self._records[slot]
                self._records[slot] = Record(record, held.inserted, self._tick(), held.uses + 1)

    def admit(self, record: int, step: int) -> int | None:
        """Admit a record that is not held; return the evicted record, which may be the new one, or None."""
        if record in self._slots:
            raise ValueError(f"record {record} is already held; touch it instead")
        tick = self._tick()
        newcomer = Record(record, tick, tick, 1)
        if len(self._records) < self.capacity:
            self._slots[record] = len(self._records)
            self._records.append(newcomer)
            return None
        victim = self.policy.victim((*self._records, newcomer), step)
        if victim != record:
            self._replace(victim, newcomer)
        return victim

    def discard(self, record: int) -> None:
        """Drop a held record on request; the last slot closes the gap."""
        slot = self._slots.pop(record)
        last = self._records.pop()
        if last.id != record:
            self._records[slot] = last
            self._slots[last.id] = slot

    def _replace(self, victim: int, newcomer: Record) -> None:
        slot = self._slots.pop(victim, None)
        if slot is None:
            name = type(self.policy).__name__
            raise ContractError(f"policy {name} chose {victim!r}, which is not a candidate; return a candidate's id")
        self._records[slot] = newcomer
        self._slots[newcomer.id] = slot

    def _tick(self) -> int:
        self._clock += 1
        return self._clock - 1
