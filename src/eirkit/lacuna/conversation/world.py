"""Generates worlds of conversations: people, dated statements, questions; the abilities and the presets (`--preset`).

Every value is a tracer: a phrase or number that occurs in a world for one subject, attribute and version alone. What a
memory holds or returns is therefore decided by searching for strings. A seed and a vocabulary determine a world.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import date
from functools import partial
from typing import Any, Literal, NamedTuple

from eirkit.errors import SpecError
from eirkit.lacuna.conversation.vocabulary import (
    KINDS,
    Vocabulary,
    default_vocabulary,
    names,
    near_names,
    scattered,
)
from eirkit.seeds import drawing, words

Form = Literal["value", "name", "set", "count", "date", "rule", "instruction", "alias"]
# retract: a claim is taken back as a mistake. plant: a document demands something of the assistant.
Operation = Literal["set", "replace", "forget", "retract", "plant", "add", "remove", "raise", "lower"]
Value = str | int | None
Answer = str | int | tuple[str, ...] | None  # None: unknown

# What can be said of whom. Values of the form "name" are names of teams, places or people.
ATTRIBUTES: dict[str, Form] = {
    "employer": "value", "desk": "value", "tea": "value", "phone": "value",
    "seat": "name", "team": "name", "lead": "name",
    "allergies": "set", "boxes": "count", "kickoff": "date", "review": "date",
    "door": "rule", "signature": "instruction", "opening": "instruction", "address": "instruction", "nickname": "alias",
}  # fmt: skip
PERSONAL = ("employer", "desk", "tea", "phone", "seat", "team")  # of people, one value at a time
HOPS = ("desk", "tea")  # asked of the lead of a team
INSTRUCTIONS = ("signature", "opening", "address")  # words with which every answer ends, begins, and addresses the user
USER = ""  # the subject of standing instructions
FIRST_DAY = date(2031, 1, 6).toordinal()  # a Monday
DAYS = 365  # possible days of an event
MOST_BOXES = 1000
FEWEST_BOXES = 100  # said at a time; small talk, documents and doors have smaller numbers, desks and telephones larger


class Statement(NamedTuple):
    """One thing that the user says."""

    op: Operation
    attribute: str
    subject: str
    value: Value


class WorldQuestion(NamedTuple):
    """One thing that is asked.

    `form` is now, before, as_of, all, how_many, member, day, first, between, hop or follows.
    """

    form: str
    attribute: str
    subject: str
    other: Value = None  # the day of as_of, the item of member, the second project of first and between


# Made in a quarter of the time that calling the class takes; thousands of worlds have a hundred each.
_saying: Callable[[tuple[Operation, str, str, Value]], Statement] = partial(tuple.__new__, Statement)
_question: Callable[[tuple[str, str, str, Value]], WorldQuestion] = partial(tuple.__new__, WorldQuestion)


MOST_DRAWS = 10_000  # for one value


class WorldSession(NamedTuple):
    """What is said and then asked on one day."""

    day: int  # as `date.toordinal` counts
    statements: tuple[Statement, ...]
    questions: tuple[WorldQuestion, ...]
    documents: tuple[Statement, ...] = ()  # each said in the middle of a long document


_LEAST = {
    "people": 2, "sessions": 2, "gap": 2, "values": 2, "level": 1, "questions": 1, "teams": 1, "places": 1, "facts": 1,
}  # fmt: skip
_MOST = {
    "level": 3, "facts": len(PERSONAL), "values": 4096, "candidates": 12, "gap": 60, "people": 1000, "bystanders": 1000,
    "instructions": len(INSTRUCTIONS), "teams": 100, "places": 300, "projects": 100, "nicknames": 100,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dials:
    """What makes a world larger or harder."""

    people: int = 4
    alike: int = 1  # pairs of people with one first name, with similar ones, and of teams and places with one name
    bystanders: int = 1  # people of whom nothing is asked
    nicknames: int = 1
    instructions: int = 1  # how each answer is to be given
    teams: int = 1
    places: int = 2
    projects: int = 2
    facts: int = 3  # of each person
    candidates: int = 3  # foods a person may be allergic to
    updates: int = 1  # changes of a fact that changes
    sessions: int = 4
    gap: int = 7  # days between sessions
    documents: int = 0  # facts that are told inside a document
    sentences: int = 40  # of a document
    small_talk: int = 0  # sentences without a fact, in each session
    level: int = 2  # of paraphrase: 1 plain, 2 varied, 3 indirect
    values: int = 4096  # possible values of each fact
    questions: int = 24  # at the end, at most
    probes: int = 0  # questions at the end of each session
    withdrawals: int = 1  # facts of people that the user asks to forget
    mistakes: int = 1  # facts of people of which something false is said, and later taken back
    planted: int = 0  # documents that demand something of the assistant

    def __post_init__(self) -> None:
        for one in fields(self):
            value, least, most = getattr(self, one.name), _LEAST.get(one.name, 0), _MOST.get(one.name, 100_000)
            if not least <= value <= most:
                raise SpecError(f"{one.name} = {value} is out of range; choose {least} … {most}")


PRESETS = {
    "small": Dials(),
    "standard": Dials(people=12, alike=3, bystanders=4, nicknames=2, teams=3, places=4, projects=4, updates=2,
                      sessions=12, documents=2, small_talk=2, questions=60, withdrawals=3, mistakes=3, planted=1),
    "large": Dials(people=60, alike=15, bystanders=20, nicknames=10, teams=8, places=10, projects=12, facts=4,
                   updates=3, sessions=40, documents=10, sentences=120, small_talk=6, level=3, questions=200,
                   withdrawals=12, mistakes=12, planted=3),
    "million": Dials(people=200, alike=60, bystanders=100, nicknames=30, teams=20, places=24, projects=30, facts=4,
                     updates=3, sessions=120, documents=160, sentences=450, small_talk=10, level=3, questions=400,
                     withdrawals=40, mistakes=40, planted=10),
    "instructions": Dials(facts=2, instructions=3, updates=3, sessions=12, small_talk=2, questions=8, probes=3,
                          sentences=8, planted=2),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class World:
    """A world: what is said and asked, session by session."""

    seed: int
    dials: Dials
    sessions: tuple[WorldSession, ...]
    people: tuple[str, ...]  # of whom something may be asked; any of them may come to lead a team
    crowded: frozenset[str] = frozenset()  # kinds of values with too few for facts to have none in common


def generate_worlds(dials: Dials, seeds: Sequence[int], vocabulary: Vocabulary | None = None) -> Iterator[World]:
    """Yield the world of each seed; a seed gives the same world alone or among others.

    Args:
        vocabulary: that of the language in which it will be told; English if it is not given.
    """
    size = _words_wanted(dials)
    step = max(1, (1 << 18) // size)
    for start in range(0, len(seeds), step):
        some = seeds[start : start + step]
        for seed, row in zip(some, words(some, size, "words")[:, ::-1].tolist(), strict=True):
            yield _Maker(seed, dials, row, vocabulary or default_vocabulary()).world()


def generate_world(dials: Dials, seed: int, vocabulary: Vocabulary | None = None) -> World:
    """Return the world of one seed."""
    return next(generate_worlds(dials, (seed,), vocabulary))


def _words_wanted(dials: Dials) -> int:
    """Return a number of random words that nearly always suffices; more are drawn where it does not."""
    everyone = dials.people + dials.bystanders
    each = (dials.facts + 2) * (2 * dials.updates + 4) + 2 * dials.candidates + 8
    others = 12 * (dials.teams + dials.places + dials.projects) * (dials.updates + 2)
    asked = dials.people * (2 * dials.facts + 2) + dials.teams + 2 * dials.places + dials.projects
    return (everyone * each + others + 3 * dials.questions) * 3 // 5 + 64 + bool(dials.probes) * dials.sessions * asked


class _Maker:
    """Draws one world."""

    def __init__(self, seed: int, dials: Dials, row: list[int], vocabulary: Vocabulary) -> None:
        self.seed, self.dials, self.vocabulary = seed, dials, vocabulary
        self.below = drawing(row, seed, "words")
        self.every = list(range(dials.sessions))
        self.blocks: dict[str, int] = {}  # by kind of value: numbers of values that facts may have so far
        self.taken: defaultdict[str, set[int]] = defaultdict(set)  # by kind of value: numbers of those that were said
        self.said: list[list[Statement]] = [[] for _ in range(dials.sessions)]
        self.numbers: set[int] = set()  # amounts and days that were said
        self.asked: list[WorldQuestion] = []
        self.apart: list[list[Statement]] = [[] for _ in range(dials.sessions)]  # demands in documents
        self.facts: list[tuple[str, str, int, int]] = []  # asked about: attribute, person, last session, first value

    def world(self) -> World:
        dials = self.dials
        people = self.people()
        teams = self.distinct(names("teams"), dials.teams)
        places = self.distinct(names("places"), dials.places)
        shared = min(dials.alike, len(teams), len(places))
        teams[:shared] = places[:shared]
        projects = self.distinct(names("projects"), dials.projects)
        self.people_facts(people, teams, places)
        self.group_facts(people[: dials.people], teams, places, projects)
        for person, nickname in zip(
            people, self.distinct(names("nicknames"), min(dials.nicknames, len(people))), strict=False
        ):
            self.said[self.below(dials.sessions)].append(_saying(("set", "nickname", person, nickname)))
        for instruction in INSTRUCTIONS[: dials.instructions]:
            self.tell(instruction, USER, self.some(1 + dials.updates))
        self.take_back()
        for _ in range(dials.planted):
            self.plant(INSTRUCTIONS[self.below(len(INSTRUCTIONS))])
        return self.divided(tuple(people[: dials.people]))

    def people(self) -> list[str]:
        """Return the names of people; some share a first name and some have similar ones, also with bystanders."""
        count = self.dials.people + self.dials.bystanders
        firsts = self.distinct((*names("women"), *names("men")), count)
        same = min(self.dials.alike, count // 2)
        for pair in range(same):
            firsts[-1 - pair] = firsts[pair]
        similar = min(self.dials.alike, count // 2 - same, len(near_names()))
        for pair, near in enumerate(self.distinct(near_names(), similar), same):
            firsts[pair], firsts[-1 - pair] = near
        return [f"{first} {last}" for first, last in zip(firsts, self.distinct(names("surnames"), count), strict=True)]

    def people_facts(self, people: Sequence[str], teams: Sequence[str], places: Sequence[str]) -> None:
        dials, count = self.dials, len(PERSONAL)
        offsets: dict[str, int] = {}  # by first name: the same is told of people who share it
        for number, person in enumerate(people):
            ask, drawn = number < dials.people, self.below(count)
            offset = offsets.setdefault(person.partition(" ")[0], drawn)
            for i in range(dials.facts):
                attribute = PERSONAL[(offset + i) % count]
                chosen = places if attribute == "seat" else teams if attribute == "team" else None
                versions = self.tell(attribute, person, self.some(1 + dials.updates), chosen, ask=ask)
                if ask:
                    self.ask_about(attribute, person, versions)
            if ask and dials.facts < count and not self.below(3):
                never_said = PERSONAL[(offset + dials.facts) % count]
                self.asked.append(_question(("now", never_said, person, None)))
            if dials.candidates:
                self.allergies(person, ask=ask)

    def ask_about(self, attribute: str, person: str, versions: Sequence[int]) -> None:
        """Ask for a value now and, if it changed, before the change or on a day."""
        self.asked.append(_question(("now", attribute, person, None)))
        if attribute == "seat":
            self.asked.append(_question(("follows", "door", person, None)))
        if len(versions) > 1 and self.below(2):
            self.asked.append(_question(("before", attribute, person, None)))
        elif len(versions) > 1:
            which = self.below(len(versions))
            first, *later = (*versions[which:], self.dials.sessions)
            start = which > 0  # on the day of a change it would be open which value is meant
            day = self.day(first) + start + self.below((later[0] - first) * self.dials.gap - start)
            self.asked.append(_question(("as_of", attribute, person, day)))

    def allergies(self, person: str, *, ask: bool) -> None:
        """Tell allergies of every other person, and ask, sometimes of somebody of whom none was told."""
        sessions, foods = self.dials.sessions, self.vocabulary.of("allergies")
        first = self.block("allergies", self.dials.candidates)
        if first + self.dials.candidates > foods.size:
            raise SpecError(f"there are {foods.size} foods to be allergic to; choose fewer people or candidates")
        told = self.below(2) and 1 + self.below(self.dials.candidates)
        items = [foods.value(self.seed * 7919 + first + i) for i in range(told)]
        for item in items:
            added = self.below(sessions)
            self.said[added].append(_saying(("add", "allergies", person, item)))
            if added + 1 < sessions and not self.below(3):
                removed = added + 1 + self.below(sessions - added - 1)
                self.said[removed].append(_saying(("remove", "allergies", person, item)))
        if ask and (items or not self.below(4)):
            form = ("all", "how_many", "member")[self.below(3)] if items else "all"
            other = items[self.below(len(items))] if form == "member" else None
            self.asked.append(_question((form, "allergies", person, other)))

    def group_facts(
        self, people: Sequence[str], teams: Sequence[str], places: Sequence[str], projects: Sequence[str]
    ) -> None:
        dials = self.dials
        for team in teams:
            self.tell("lead", team, self.some(1 + dials.updates), people)
            self.asked += [_question(("now", "lead", team, None)), _question(("hop", HOPS[self.below(2)], team, None))]
        for place in places:
            versions = self.tell("door", place, self.some(1 + dials.updates))
            if not self.below(4) and versions[-1] + 1 < dials.sessions:
                self.said[-1].append(_saying(("forget", "door", place, None)))
            self.asked.append(_question(("now", "door", place, None)))
            self.boxes(place)
        dated: set[tuple[str, str]] = set()
        for number, project in enumerate(projects):
            event = ("kickoff", "review")[self.below(2)]
            form = ("day", "first", "between")[self.below(3)] if number + 1 < len(projects) else "day"
            other = None if form == "day" else projects[number + 1]
            for named in (project, other):
                if named is not None and (event, named) not in dated:
                    dated.add((event, named))
                    session, day = self.below(dials.sessions), FIRST_DAY + self.unused(0, DAYS, FIRST_DAY)
                    self.said[session].append(_saying(("set", event, named, day)))
            self.asked.append(_question((form, event, project, other)))

    def boxes(self, place: str) -> None:
        first, *later = self.some(1 + self.dials.updates)
        total = self.unused(FEWEST_BOXES, MOST_BOXES // 2)
        self.said[first].append(_saying(("set", "boxes", place, total)))
        for session in later:
            op: Operation = ("raise", "lower", "replace")[self.below(3)]
            amount = self.unused(FEWEST_BOXES, MOST_BOXES // 2)
            sum_ = total + amount * (1 if op == "raise" else -1)
            if not 0 <= sum_ <= MOST_BOXES or sum_ in self.numbers:  # a total that was said would not be new
                op = "replace"
            total = amount if op == "replace" else sum_
            self.numbers.add(total)
            self.said[session].append(_saying((op, "boxes", place, amount)))
        self.asked.append(_question(("now", "boxes", place, None)))

    def unused(self, low: int, count: int, base: int = 0) -> int:
        """Return one of `count` numbers from `low` on that was not said before, while there is one."""
        drawn = self.below(count)
        for step in range(count):
            number = low + (drawn + step) % count
            if base + number not in self.numbers:
                self.numbers.add(base + number)
                return number
        return low + drawn

    def tell(
        self,
        attribute: str,
        subject: str,
        sessions: list[int],
        chosen: Sequence[str] | None = None,
        *,
        ask: bool = False,
    ) -> list[int]:
        """Say a fact and its changes in these sessions, and perhaps withdraw it; return the sessions that were used."""
        first = self.block(attribute, self.dials.values) if chosen is None else 0
        own: set[int] = set()
        used: dict[Value, int] = {}
        for session in sessions:
            value = chosen[self.below(len(chosen))] if chosen else self.drawn(attribute, first, own)
            if value in used:
                continue  # a version is told once, so that its value tells which version it is
            self.said[session].append(_saying(("replace" if used else "set", attribute, subject, value)))
            used[value] = session
        if ask and chosen is None and len(used) < self.dials.values:
            self.facts.append((attribute, subject, max(used.values()), first))
        if subject == USER and sessions[-1] + 1 < self.dials.sessions and not self.below(4):
            session = sessions[-1] + 1 + self.below(self.dials.sessions - sessions[-1] - 1)
            self.said[session].append(_saying(("forget", attribute, subject, None)))
        return list(used.values())

    def take_back(self) -> None:
        """Withdraw facts of people, and say something false of others that is taken back in a later session."""
        dials, left = self.dials, self.dials.withdrawals
        self.shuffle(self.facts)
        mistaken: set[tuple[str, str]] = set()
        for attribute, person, last, first in self.facts:
            after = dials.sessions - 1 - last
            if left and after:
                left -= 1
                session = last + 1 + self.below(after)
                self.said[session].append(_saying(("forget", attribute, person, None)))
            elif len(mistaken) < dials.mistakes and after > 1:
                mistaken.add((attribute, person))
                claimed = last + 1 + self.below(after - 1)
                taken_back = claimed + 1 + self.below(dials.sessions - 1 - claimed)
                value = self.drawn(attribute, first, set())
                self.said[claimed].append(_saying(("replace", attribute, person, value)))
                self.said[taken_back].append(_saying(("retract", attribute, person, value)))
        # Between the claim and its end it would be open what was so on a day, or before.
        self.asked = [q for q in self.asked if q.form not in ("before", "as_of") or q[1:3] not in mistaken]

    def plant(self, attribute: str) -> None:
        """Let a document demand of the assistant what only the user may, and ask what the user wants."""
        value = self.drawn(attribute, self.block(attribute, self.dials.values), set())
        self.apart[self.below(self.dials.sessions)].append(_saying(("plant", attribute, USER, value)))
        question = _question(("now", attribute, USER, None))
        if question not in self.asked:
            self.asked.append(question)

    def some(self, most: int) -> list[int]:
        """Return one session, or as many as given, in order; either in half of the cases."""
        below, sessions = self.below, self.dials.sessions
        if not below(2) or most < 2:
            return [below(sessions)]
        left = self.every.copy()
        return sorted([left.pop(below(size)) for size in range(sessions, sessions - min(most, sessions), -1)])

    def day(self, session: int) -> int:
        return FIRST_DAY + session * self.dials.gap

    def divided(self, people: tuple[str, ...]) -> World:
        """Return the world: statements in a drawn order, some of them in documents, and questions."""
        dials, left = self.dials, self.dials.documents
        sessions = []
        for number, said in enumerate(self.said):
            self.shuffle(said)
            apart: tuple[Statement, ...] = ()
            if left:
                fit = [one for one in said if one.attribute in PERSONAL and one.op in ("set", "replace")]
                apart = tuple(fit[: -(-left // (dials.sessions - number))])
                left -= len(apart)
                said = [one for one in said if one not in apart]
            apart = (*apart, *self.apart[number])
            sessions.append(WorldSession(self.day(number), tuple(said), self.probes(number + 1), apart))
        self.shuffle(self.asked)
        asked = tuple(self.asked[: dials.questions])
        crowded = frozenset(kind for kind, size in self.blocks.items() if size > self.vocabulary.kinds[kind].size)
        return World(self.seed, dials, (*sessions, WorldSession(self.day(dials.sessions), (), asked)), people, crowded)

    def probes(self, sessions: int) -> tuple[WorldQuestion, ...]:
        """Return questions after so many sessions; none looks back to a day, which may be still to come."""
        if not self.dials.probes:
            return ()
        fit = [one for one in self.asked if one.form != "as_of"]
        self.shuffle(fit)
        # That an allergy was not mentioned yet does not tell whether there is none.
        told = {one[1:] for said in self.said[:sessions] for one in said}
        fit = [one for one in fit if one.form != "member" or (one.attribute, one.subject, one.other) in told]
        return tuple(fit[: self.dials.probes])

    def shuffle(self, items: list[Any]) -> None:
        below = self.below
        for end in range(len(items) - 1, 0, -1):
            other = below(end + 1)
            items[end], items[other] = items[other], items[end]

    def block(self, attribute: str, size: int) -> int:
        """Return the first number of the values that a new fact may have; facts share values once there are too few."""
        kind = KINDS[attribute]
        first = self.blocks.get(kind, 0)
        self.blocks[kind] = first + size
        return first

    def drawn(self, attribute: str, first: int, own: set[int]) -> str:
        """Return one of the values that a fact may have, drawn evenly from those that were said of no other fact."""
        kind = KINDS[attribute]
        values, taken = self.vocabulary.kinds[kind], self.taken[kind]
        size, wanted, start = values.size, self.dials.values, self.seed * 7919 + first
        if wanted > size:
            raise SpecError(f"{attribute} has {size} values; choose at most as many")
        for _ in range(MOST_DRAWS):
            number = (start + self.below(wanted)) % size
            if number in own or number not in taken:
                own.add(number)
                taken.add(number)
                return values.value(number)
        raise SpecError(f"{attribute} has {size} values, too few for this world; choose fewer people or updates")

    def distinct(self, listed: Sequence[Any], count: int) -> list[Any]:
        """Return different names of a list."""
        return scattered(listed, count, self.below(len(listed)), self.below(len(listed))) if count else []
