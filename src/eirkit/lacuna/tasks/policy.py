"""The policy protocol: which record a full store evicts, base classes of policies, and the store itself.

A policy is a pure choice over the facts that it is given; `Retention` does all bookkeeping. Most
policies are `Ranked`: they name the fact whose lowest value is evicted first, and the batch kernels simulate them
unchanged. A policy that needs the workload's structure or the future takes it through its constructor.

Simulators and agent sessions use the same store, one step at a time. A record is identified by the step that made it;
values are kept elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter, index
from typing import Any, Literal, Self

from msgspec import Struct
from numpy.typing import NDArray

from eirkit.errors import ContractError, SpecError
from eirkit.lacuna.tasks.task import Kind
from eirkit.lacuna.tasks.workload import Graph
from eirkit.registry import Registry, guard_verbs
from eirkit.seeds import Words, below

NEVER = (1 << 31) - 1  # a step after all steps: the next use of a record that is never needed again

UniqueFact = Literal["id", "inserted", "touched"]
Fact = Literal["id", "inserted", "touched", "uses", "worth", "next_use"]

_UNIQUE: tuple[UniqueFact, ...] = ("id", "inserted", "touched")
# How to rank by facts of the record itself; a unique fact needs no tie-breaker.
_FAST_KEYS: dict[tuple[str, str], Any] = {
    **{(fact, ties): attrgetter(fact) for fact in _UNIQUE for ties in _UNIQUE},
    **{("uses", ties): attrgetter("uses", ties) for ties in _UNIQUE},
}

policies: Registry[type[Policy]] = Registry(
    "policy", group="eirkit.policies", package="eirkit.lacuna.tasks", table="POLICIES"
)


class Record(Struct, frozen=True, gc=False):
    """What a policy may know about a record, which never includes its value."""

    id: int  # the step that made it
    inserted: int  # tick of the store's clock at which it last entered
    touched: int  # tick at which it was last used; `inserted` before its first use
    uses: int  # 1 + the number of uses since it entered


@dataclass(frozen=True, slots=True)
class Structure:
    """What the workload states about its steps before any seed is chosen; index t − 1 is step t."""

    kinds: tuple[Kind, ...]
    takes_slot: tuple[bool, ...]  # whether the answer of the step enters the store
    last_use: tuple[int, ...]  # last step that could need the answer; 0 if none can


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a policy may be built from."""

    structure: Structure
    seed: int
    future: Graph  # references of every step, for hindsight policies only


class Policy(ABC):
    """Chooses which record to evict. Equal candidates at equal steps give equal victims.

    Errors raised by a subclass are reported as PluginError.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        guard_verbs(cls, "policy", ("for_task", "victim", "capacity", "draw"))

    @classmethod
    def for_task(cls, outlook: Outlook) -> Self:
        """Return the policy for one task; most policies ignore the task."""
        return cls()

    @abstractmethod
    def victim(self, candidates: Sequence[Record], step: int) -> int:
        """Return the id of the candidate to evict.

        Args:
            candidates: the residents in slot order, then the newcomer; one more than fits. Returning the newcomer
                refuses it.
            step: the step that is being executed.
        """

    def capacity(self, h: int) -> int:
        """Return how many records the store holds if h are allowed."""
        return h


class Ranked(Policy):
    """Evicts the candidate with the lowest `lowest`, and among equals the one with the lowest `ties`.

    `worth` is an integer per record that follows from the workload's structure, index t − 1 for step t.
    """

    lowest: Fact = "inserted"
    ties: UniqueFact = "inserted"

    _key: Any = None  # for policies that rank by facts of the record alone

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._key = _FAST_KEYS.get((cls.lowest, cls.ties)) if cls.fact is Ranked.fact else None

    def __init__(self, worth: Sequence[int] = ()) -> None:
        self.worth = worth

    @classmethod
    def worths(cls, structure: Structure) -> Sequence[int]:
        """Return what each record is worth, where the policy ranks by it."""
        return ()

    @classmethod
    def for_task(cls, outlook: Outlook) -> Self:
        return cls(cls.worths(outlook.structure))

    def victim(self, candidates: Sequence[Record], step: int) -> int:
        if self._key is not None:
            return min(candidates, key=self._key).id  # equivalent, without a call per candidate
        return min(candidates, key=lambda record: (self.fact(record, step), getattr(record, self.ties))).id

    def fact(self, record: Record, step: int) -> int:
        """Return what the record is ranked by."""
        value: int = self.worth[record.id - 1] if self.lowest == "worth" else getattr(record, self.lowest)
        return value


class Hindsight(Ranked):
    """Policies that know the future: the record needed last, or never again, ranks lowest."""

    lowest = "next_use"

    def __init__(self, future: Graph) -> None:
        super().__init__()
        self.future = future
        self._uses: dict[int, list[int]] = {}
        for step, references in enumerate(future, 1):
            for record in references:
                self._uses.setdefault(record, []).append(step)

    @classmethod
    def for_task(cls, outlook: Outlook) -> Self:
        return cls(outlook.future)

    def fact(self, record: Record, step: int) -> int:
        return -self.next_use(record.id, step)

    def next_use(self, record: int, step: int) -> int:
        """Return the first step after `step` that needs the record, or NEVER."""
        uses = self._uses.get(record, [])
        position = bisect_right(uses, step)
        return uses[position] if position < len(uses) else NEVER


class Drawn(Policy):
    """Policies that draw the position of the victim at random."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._drawn = self.draw([], 0)  # as many as were needed so far

    @classmethod
    def for_task(cls, outlook: Outlook) -> Self:
        return cls(outlook.seed)

    @classmethod
    @abstractmethod
    def draw(cls, seeds: Sequence[int] | NDArray[Any], ticks: int) -> Words:
        """Return random words, shape (seeds, ticks); each is a function of its seed and tick alone."""

    def victim(self, candidates: Sequence[Record], step: int) -> int:
        tick = candidates[-1].inserted
        if tick >= self._drawn.shape[1]:
            self._drawn = self.draw([self.seed], 2 * tick + 64)
        return candidates[int(below(self._drawn[0, tick], len(candidates)))].id


def find_policy(name: str) -> type[Policy]:
    """Return the policy class with this name or at this `module:Name`."""
    found: object = policies.get(name)
    if isinstance(found, type) and issubclass(found, Policy):
        return found
    raise ContractError(f"{name} is not a policy; give a class that extends eirkit.lacuna.tasks.policy.Policy")


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
        lost = [record for record in references if record not in slots]
        return tuple(sorted(lost)) if lost else ()

    def touch(self, references: Iterable[int]) -> None:
        """Mark the held records among the references as used, in ascending order."""
        slots, records = self._slots, self._records
        for record in sorted(references):
            if (slot := slots.get(record)) is not None:
                held = records[slot]
                records[slot] = Record(record, held.inserted, self._clock, held.uses + 1)
                self._clock += 1

    def admit(self, record: int, step: int) -> int | None:
        """Admit a record that is not held; return the evicted record, which may be the new one, or None."""
        if record in self._slots:
            raise ValueError(f"record {record} is already held; touch it instead")
        newcomer = Record(record, self._clock, self._clock, 1)
        self._clock += 1
        if len(self._records) < self.capacity:
            self._slots[record] = len(self._records)
            self._records.append(newcomer)
            return None
        victim = self.policy.victim((*self._records, newcomer), step)
        try:
            chosen = index(victim)
        except TypeError:  # no integer at all
            raise self._not_a_candidate(victim) from None
        if chosen != record:
            self._replace(chosen, newcomer)
        return chosen

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
            raise self._not_a_candidate(victim)
        self._records[slot] = newcomer
        self._slots[newcomer.id] = slot

    def _not_a_candidate(self, victim: object) -> ContractError:
        name = type(self.policy).__name__
        return ContractError(f"policy {name} chose {victim!r:.200}, which is not a candidate; return a candidate's id")
