"""Bits of a world: how many must survive a cut to answer what is to come, and how often a memory of some bits is right.

The contract: in every session each fact may be said for the first time, replaced by a value that it never had, or,
where that is possible, withdrawn; who is meant is supplied with each statement. A claim that may still be taken back as
a mistake makes the value before it needed, as a question for it does. `declared` says what may be asked. The facts are
independent, so the classes of histories multiply; each factor has a closed form, which tests compare with all histories
of small contracts. The worlds that are generated are some of those that the contract allows: they say no number and no
date twice, so that each can be searched for.

The ceiling is that of a memory which knows beforehand what will be asked, and all that was said but for the values.
Values are drawn evenly from those that a fact may have and that were said of no other fact. Given all others, a value
is thus uniform over at least `values` less the others of its kind that may coincide with it: the versions of the same
fact, and of other facts only where a kind has fewer values than its facts need to have none in common. A guess at it is
right with at most one over that. Answers made of several facts, sets, amounts and dates, and answers that were asked
for before, count as known. The rest is the lemma on luck; docs/design/workload-ceilings.md has the proof.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from eirkit.eir.step_bounds import Tails, different_tails
from eirkit.lacuna.conversation.truth import Key, answers
from eirkit.lacuna.conversation.vocabulary import KINDS
from eirkit.lacuna.conversation.world import (
    ATTRIBUTES,
    DAYS,
    INSTRUCTIONS,
    MOST_BOXES,
    USER,
    Answer,
    Dials,
    World,
)
from eirkit.lacuna.tasks.frontier import TaskFrontier

Times = frozenset[int]  # sessions after which an earlier value may be asked
_DIRECT = ("now", "before", "as_of")  # forms of questions that ask for one value of one fact
_VALUES = ("value", "rule", "name")  # forms of facts whose values are drawn uniformly


@dataclass(frozen=True, slots=True)
class Askable:
    """What may be asked about one fact: always its present value, and perhaps earlier ones."""

    key: Key
    before: bool = False  # the value before the present one
    times: Times = frozenset()


@dataclass(frozen=True, slots=True)
class Requirement:
    """The classes of histories that must be told apart for one fact."""

    key: Key
    classes: int

    @property
    def bits(self) -> float:
        return math.log2(self.classes)


def declared(world: World, cut: int = 0) -> list[Askable]:
    """Return what may be asked after `cut` sessions: about every fact that a question still to come depends on.

    A question about the lead's desk depends on every person's desk, because the lead may change, and a question about
    the door that somebody uses depends on the doors of all places.
    """
    before: set[Key] = set()
    times: dict[Key, set[int]] = {}
    places = sorted({s.subject for session in world.sessions for s in session.statements if s.attribute == "door"})
    for form, attribute, subject, other in (one for session in world.sessions[cut:] for one in session.questions):
        keys: list[Key] = [(attribute, subject)]
        if form == "hop":
            keys = [("lead", subject), *((attribute, person) for person in world.people)]
        elif form == "follows":
            keys = [("seat", subject), *(("door", place) for place in places)]
        elif form in ("first", "between"):
            keys.append((attribute, str(other)))
        for key in keys:
            times.setdefault(key, set())
        if form == "before":
            before.add((attribute, subject))
        elif form == "as_of":
            passed = [n for n, session in enumerate(world.sessions[:-1]) if session.day <= int(other or 0)]
            times[attribute, subject].add(len(passed))
    for statement in (s for session in world.sessions[cut:] for s in session.statements if s.op == "retract"):
        if (statement.attribute, statement.subject) in times:
            before.add((statement.attribute, statement.subject))  # what holds again once a claim is taken back
    for instruction in INSTRUCTIONS[: world.dials.instructions]:
        times.setdefault((instruction, USER), set())
    return [Askable(key, key in before, frozenset(asked)) for key, asked in sorted(times.items())]


def requirements(world: World, cut: int) -> list[Requirement]:
    """Return the classes of each fact that may be asked about, after `cut` sessions."""
    sizes = _Sizes(world.dials, _names(world))
    return [Requirement(one.key, classes(one, cut, sizes.of(one.key[0]))) for one in declared(world, cut)]


def present_requirement(world: World, cut: int, key: Key) -> Requirement:
    """Return the classes of a fact of which only the present value may be asked, after `cut` sessions."""
    return Requirement(key, classes(Askable(key), cut, _Sizes(world.dials, _names(world)).of(key[0])))


def floor_bits(world: World, cut: int) -> float:
    """Return the bits that must survive after `cut` sessions."""
    return math.fsum(one.bits for one in requirements(world, cut))


def floor_bytes(world: World, cut: int) -> int:
    """Return the whole bytes in which what must survive after `cut` sessions can be written down."""
    return ((math.prod(one.classes for one in requirements(world, cut)) - 1).bit_length() + 7) // 8


@dataclass(frozen=True, slots=True)
class _Sizes:
    """How many values each attribute can have."""

    dials: Dials
    names: dict[str, int]

    def of(self, attribute: str) -> int:
        form = ATTRIBUTES[attribute]
        if form == "name":
            return self.names[attribute]
        return {"set": self.dials.candidates, "count": MOST_BOXES, "date": DAYS}.get(form, self.dials.values)


def _names(world: World) -> dict[str, int]:
    return {"seat": world.dials.places, "team": world.dials.teams, "lead": world.dials.people}


def classes(asked: Askable, cut: int, size: int) -> int:
    """Return the number of histories of one fact that must be told apart after `cut` sessions.

    Args:
        size: possible values; for a set, possible members; for a count, the largest.
    """
    form = ATTRIBUTES[asked.key[0]]
    if cut == 0:
        return 1
    if form == "set":
        # Any set of members, or no mention at all; it takes a second session to empty a set again.
        return int(2**size) + (cut > 1)
    if form == "count":
        # Counted once, the stock is one of size / 2 numbers; raised or lowered later it is any from 0 to `size`.
        return 1 + (size + 1 if cut > 1 else size // 2)
    if form == "date":
        return size + 1  # said once, or not yet
    if asked.before:
        return 1 + size + (size * (size - 1) if cut > 1 else 0)
    return sum(_visible(asked.times, cut, size))


def _visible(times: Times, cut: int, size: int) -> list[int]:
    """Return how many sequences of values can be seen at some times and at the cut, by the number of different values.

    At each of these times the value is the one of the time before, or one that was never seen; no value comes back.
    """
    counts = [1]
    for _ in {time for time in times if 0 < time < cut} | {cut}:
        stayed, changed = [*counts, 0], [0, *(n * max(0, size - k) for k, n in enumerate(counts))]
        counts = [a + b for a, b in zip(stayed, changed, strict=True)]
    return counts


@dataclass(frozen=True, slots=True)
class AskedValues:
    """The questions of a world: how many values each answer can have, as a memory that knows the questions sees it."""

    sizes: tuple[int, ...]  # of answers that are independent values
    known: int  # answers that nobody needs a memory for: the fact was never said, or was withdrawn
    others: int  # answers that count as known from above, and as values of `largest` from below
    largest: int
    crowded: tuple[int, ...] = ()  # in the place of `sizes` for guesses: less the values of other facts

    @property
    def how(self) -> str:
        return (
            "no better than the luckiest one in 2^C blind guesses, for a memory that knows what will be asked; "
            f"{self.others} of {self.asked} answers, which depend on several facts, count as known"
        )

    @property
    def asked(self) -> int:
        return len(self.sizes) + self.known + self.others

    def upper(self, bits: float) -> float:
        drawn = self._tails.upper(bits) * len(self.sizes) if self.sizes else 0.0
        return min(1.0, (self.known + self.others + drawn) / self.asked)

    def exists(self, bits: float) -> float:
        return self.kept(bits)

    def kept(self, bits: float) -> float:
        """Keep as many answers as fit, those with the fewest values first."""
        room, right = bits + 1e-9, self.known
        for size in sorted((*self.sizes, *(self.largest,) * self.others)):
            room -= math.log2(size)
            if room < 0:
                break
            right += 1
        return right / self.asked

    @property
    def _tails(self) -> Tails:
        return different_tails(self.crowded or self.sizes)


def asked_values(world: World) -> AskedValues:
    """Return what the questions of a world ask for."""
    dials = world.dials
    names = {"seat": dials.places, "team": dials.teams, "lead": dials.people}
    sizes, crowded, known, others = list[int](), list[int](), 0, 0
    said = Counter(
        KINDS[s.attribute]
        for session in world.sessions
        for s in (*session.statements, *session.documents)
        if s.attribute in KINDS and s.value is not None
    )
    seen: set[tuple[Key, Answer]] = set()
    before: Counter[Key] = Counter()
    for question, answer, _ in answers(world):
        key = question.attribute, question.subject
        form = ATTRIBUTES[question.attribute]
        if question.form not in _DIRECT or form not in _VALUES or (key, answer) in seen:
            others += 1
        elif answer is None:
            known += 1
        else:
            seen.add((key, answer))
            size, kind = names.get(question.attribute, dials.values), KINDS.get(question.attribute, "")
            sizes.append(max(1, size - before[key]))
            crowded.append(max(1, size + 1 - said[kind]) if kind in world.crowded else sizes[-1])
            before[key] += 1
    largest = max(dials.values, 2 * MOST_BOXES, 2 * DAYS, 2**dials.candidates)
    return AskedValues(tuple(sorted(sizes)), known, others, largest, tuple(sorted(crowded)))


def world_frontier(world: World) -> TaskFrontier:
    """Return what memories can reach on the questions of a world."""
    found, record_bits = asked_values(world), math.log2(world.dials.values)
    records = next(count for count in range(found.asked + 1) if found.kept(count * record_bits) >= 1)
    return TaskFrontier(((found, found.asked),), 0, record_bits, records)
