"""Tells a world as dated conversations: order, names and repetitions of statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, pairwise
from typing import Literal, NamedTuple

from eirkit.lacuna.conversation.language import (
    COMING,
    NEAR,
    PAST,
    PRONOUN,
    SUBJECTS,
    Language,
    Listener,
    asked_slot,
    group_of,
    ways,
)
from eirkit.lacuna.conversation.vocabulary import women
from eirkit.lacuna.conversation.world import ATTRIBUTES, Statement, World, WorldQuestion, WorldSession
from eirkit.seeds import drawing, words

LONGEST_TURN = 3  # statements
AT_ONCE = 1024  # sessions of people for whom random words are drawn together
FIRST_WORDS = 256  # of each; more are drawn where they do not suffice
AGAIN = 2  # one in so many statements that could lean on the one before does


class Utterance(NamedTuple):
    """One turn of a conversation."""

    role: Literal["user", "assistant"]
    text: str


_utter: Callable[[tuple[str, str]], Utterance] = partial(tuple.__new__, Utterance)  # quicker than calling the class


class Dialogue(NamedTuple):
    """One session as it was spoken: what was said, then what was asked."""

    day: int
    messages: tuple[Utterance, ...]
    questions: tuple[str, ...]


def tell(world: World, language: Language) -> tuple[Dialogue, ...]:
    """Return the conversations of a world; the same world and language give the same text."""
    return next(tell_many((world,), language))


def tell_many(worlds: Iterable[World], language: Language) -> Iterator[tuple[Dialogue, ...]]:
    """Yield the conversations of worlds, each the same as alone; random numbers are drawn for many at once."""
    left = iter(worlds)
    while some := list(islice(left, 1)):
        dials = some[0].dials
        some += islice(left, AT_ONCE // (dials.people * dials.sessions))  # few of those that are large
        rows = words([one.seed for one in some], FIRST_WORDS, "words told")[:, ::-1].tolist()
        for world, row in zip(some, rows, strict=True):
            yield _Teller(world, language, row).sessions()


class _Teller:
    def __init__(self, world: World, language: Language, row: list[int]) -> None:
        self.world, self.language, self.level = world, language, world.dials.level
        self.below = drawing(row, world.seed, "words told")
        self.listener = Listener()
        self.asked: dict[str, set[str]] = {}  # people in questions, by first name
        self.known: dict[str, list[str]] = {}  # how people can be named, as long as nobody new is spoken of
        self.last = 0  # the sentence without a fact that was said last

    def sessions(self) -> tuple[Dialogue, ...]:
        return tuple(Dialogue(one.day, tuple(self.messages(one)), self.questions(one)) for one in self.world.sessions)

    def messages(self, session: WorldSession) -> list[Utterance]:
        left, talk = session.statements, 0 if session is self.world.sessions[-1] else self.world.dials.small_talk
        said: list[Utterance] = []
        while left or talk:
            if left:
                size = 1 + self.below(LONGEST_TURN)
                said += self.turn(" ".join(self.said(left[:size], session.day)))
                left = left[size:]
            if talk:
                talk -= 1
                said += self.turn(self.filled("filler"), "replies")
        for statement in session.documents:
            said += self.turn(self.document(statement, session.day))
        return said

    def turn(self, text: str, kind: str = "acknowledgements") -> Iterable[Utterance]:
        answers = self.language.table[kind]
        return _utter(("user", text)), _utter(("assistant", answers[self.below(len(answers))]))

    def said(self, statements: Sequence[Statement], today: int) -> list[str]:
        """Return the sentences of one turn."""
        if self.level < 3 or len(statements) == 1:
            return [self.sentence(one, today, self.level) for one in statements]
        said = [self.sentence(statements[0], today, 3)]
        for last, statement in pairwise(statements):
            op, attribute, subject, value = statement
            leans = not self.below(AGAIN)
            if leans and last[:2] == (op, attribute) and ATTRIBUTES[attribute] == "value" and value:
                again: list[str] = self.language.table["again"]
                said.append(again[self.below(len(again))].format(p=self.named(subject, 3), v=value))
            elif leans and last.subject == subject and ways(self.language, attribute, op, PRONOUN):
                said.append(self.sentence(statement, today, PRONOUN))
            else:
                said.append(self.sentence(statement, today, 3))
        return said

    def sentence(self, statement: Statement, today: int, level: int) -> str:
        """Return one statement as a sentence; with PRONOUN about the person of the sentence before."""
        op, attribute, subject, value = statement
        form, slot = ATTRIBUTES[attribute], SUBJECTS.get(attribute, "p")
        text = str(value)
        slots = {"v": text, "n": text, "t": text, "l": text, slot: subject}
        if slot == "p" and level != PRONOUN:
            slots["p"] = self.named(subject, 1 if form == "alias" else level)
        if form == "alias":  # a nickname is of little use to someone who does not know whose it is: no short name above
            self.listener.nicknames[text] = subject
            self.known.clear()
        elif form == "date" and isinstance(value, int):
            slots |= self.when(value, today) | self.language.table["events"][attribute]
            if level > 1 and 0 < abs(value - today) <= NEAR and self.below(2):
                level = COMING if value > today else PAST
        elif attribute == "lead":
            slots["w"] = self.named(text, level)
        known = ways(self.language, attribute, op, level)
        chosen = known[self.below(len(known))]
        if slot == "p" and chosen.has_forms:
            pronouns = self.language.table["pronouns"]
            slots |= pronouns[(subject.partition(" ")[0] not in women()) % len(pronouns)]
        return chosen.fill(slots)

    def when(self, day: int, today: int) -> dict[str, str]:
        form = self.below(len(self.language.table["dates"]) if self.level > 1 else 1)
        slots = {"d": self.language.date(day, form)}
        if 0 < abs(day - today) <= NEAR:
            slots["ahead" if day > today else "ago"] = self.language.from_today(day - today, self.below(2), today)
        return slots

    def named(self, person: str, level: int) -> str:
        """Return a name of a person that listeners understand; the first time it is the full name."""
        names = self.known.get(person)
        if names is None:
            first, names = person.partition(" ")[0], self.listener.names(person)
            if self.asked.get(first, {person}) != {person}:  # a question named somebody else who has this first name
                names = [name for name in names if name != first]
            if self.listener.mention(person):
                self.known.clear()
            else:
                self.known[person] = names
        chosen = self.below(len(names) if level > 1 else 1)
        return names[chosen]

    def filled(self, kind: str) -> str:
        """Return a sentence that says nothing of the world, never in the words of the one before."""
        texts, topics = self.language.table[kind], self.language.table["topics"]
        self.last = (self.last + 1 + self.below(len(texts) - 1)) % len(texts)
        return str(texts[self.last].format(x=topics[self.below(len(topics))], n=2 + self.below(97)))

    def document(self, statement: Statement, today: int) -> str:
        count = self.world.dials.sentences
        sentences = [self.filled("document") for _ in range(count)]
        sentences.insert(self.below(count + 1), self.sentence(statement, today, 1))
        return f"{self.language.table['here_is']}\n\n{' '.join(sentences)}"

    def questions(self, session: WorldSession) -> tuple[str, ...]:
        return tuple([self.question(one) for one in session.questions])

    def question(self, question: WorldQuestion) -> str:
        form, attribute, subject, other = question
        if " " in subject and subject not in (asked := self.asked.setdefault(subject.partition(" ")[0], set())):
            asked.add(subject)
            self.known.clear()
        slots = {asked_slot(attribute, form): subject}
        if other is not None:
            slots["v"] = slots["k"] = str(other)
        if ATTRIBUTES[attribute] == "date":
            slots |= self.language.table["events"][attribute]
        if form == "as_of":
            slots["d"] = self.language.date(int(other or 0), 0)
        known = self.language.questions[group_of(attribute), form]
        return known[self.below(len(known))].fill(slots)
