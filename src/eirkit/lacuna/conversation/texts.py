"""Finds what texts of a memory have of a conversation: a statement, a piece of it, an altered one, or another user's.

A value that only one statement has is searched for as a string. Where names and numbers are not unique, the words of
the statement, or what the text reads as, must be there. Capitals and the Unicode form of a text do not count.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property

from eirkit.lacuna.conversation.language import Listener
from eirkit.lacuna.conversation.reading import (
    DatedStatement,
    dated_statements,
    people_named,
    plain_sentence,
)
from eirkit.lacuna.conversation.scoring import contains
from eirkit.lacuna.conversation.workload import AnsweredQuestion, WorldConversation, true_text
from eirkit.lacuna.conversation.world import ATTRIBUTES, Answer, Statement

LEAST_PIECE = 8  # characters by which a piece of a sentence is known
ALIKE = 0.8  # of two values of which one may be the other with a mistake
_UNIQUE = ("value", "rule", "instruction", "set")  # forms of facts whose values occur once in a world
_UNDOING = ("forget", "remove", "retract", "plant")  # they repeat a value, or have none
_ENDS = (".", "!", "?")
_DIGIT = re.compile(r"\d")
_SENTENCE = re.compile(r"(?<=[.!?]) ")


class StatementFinder:
    """Searches texts for what was said in one world."""

    def __init__(self, task: WorldConversation) -> None:
        self.task, self.last_day = task, task.dialogues[-1].day
        self._said_as: dict[DatedStatement, list[str]] = {}
        self._read: dict[str, list[DatedStatement]] = {}  # what texts say; most are looked at again and again

    @cached_property
    def names(self) -> frozenset[str]:
        """Everything that the world has a name for."""
        subjects = {one.statement.subject for one in self.task.said}
        return frozenset(subjects | {str(one.statement.value) for one in self.task.said})

    @cached_property
    def everybody(self) -> Listener:
        """Somebody who knows all people and nicknames of the world."""
        listener = Listener()
        for name in self._people:
            listener.mention(name)
        for one in self.task.said:
            if one.statement.attribute == "nickname":
                listener.nicknames[str(one.statement.value)] = one.statement.subject
        return listener

    @cached_property
    def _people(self) -> list[str]:
        return sorted({name for one in self.task.said for name in people_named(one.statement)})

    @cached_property
    def days_said(self) -> Mapping[Statement, frozenset[int]]:
        """The days on which each statement was made, whether as the first value or as a new one."""
        days: dict[Statement, set[int]] = {}
        for one in self.task.said:
            days.setdefault(same_operation(one.statement), set()).add(one.day)
        return {said: frozenset(on) for said, on in days.items()}

    def was_said(self, statement: Statement, day: int = 0) -> bool:
        """True if a statement was made; on that day, if one is given."""
        days = self.days_said.get(same_operation(statement), ())
        return day in days if day else bool(days)

    def text_of(self, one: DatedStatement) -> str:
        """Return the turn in which a statement was made."""
        return self.task.turns[one.passage]

    def texts(self, asked: AnsweredQuestion, answer: Answer) -> set[str]:
        """Return the texts that mean an answer: itself, a name of the person, a short form of no other."""
        text = self.shown(asked, answer)
        if asked.question.attribute == "lead" and isinstance(answer, str):
            return {text, *(name.casefold() for name in self.everybody.names(answer))}
        short = self.task.language.vocabulary.short(asked.question.attribute, str(answer))
        return {text, short.casefold()} if self._shorts[short] == 1 else {text}

    @cached_property
    def _shorts(self) -> Counter[str]:
        """How many values of the world have a short form."""
        vocabulary = self.task.language.vocabulary
        values = {(one.statement.attribute, one.statement.value) for one in self.task.said}
        return Counter(vocabulary.short(attribute, str(value)) for attribute, value in values)

    def shown(self, asked: AnsweredQuestion, answer: Answer) -> str:
        """Return an answer in the form in which answers are compared."""
        return true_text(self.task.language, asked.question, answer)

    def holding(self, one: DatedStatement, texts: Sequence[str]) -> str | None:
        """Return the first text that has a statement; None if there is none."""
        return next((text for text in texts if self.has(text, one)), None)

    def has(self, text: str, one: DatedStatement) -> bool:
        """True if a text has a statement: its turn, its tracer, or words that read as it."""
        op, attribute, subject, value = one.statement
        plain = plain_text(text)
        if self.text_of(one) in text or any(contains(plain, said) for said in self._wordings(one)):
            return True
        is_unique = ATTRIBUTES[attribute] in _UNIQUE and op not in _UNDOING
        if is_unique and not contains(plain, plain_text(str(value))):
            return False
        read = self.statements(text)
        if is_unique and ATTRIBUTES[attribute] != "set":
            whose = {said.subject for said in read if (said.attribute, said.value) == (attribute, value)}
            return not whose or subject in whose or not whose <= self.names
        return same_operation(one.statement) in map(same_operation, read)

    def _wordings(self, one: DatedStatement) -> list[str]:
        """Return the turn of a statement and its plainest sentences, without date, role and full stop."""
        if one not in self._said_as:
            sayings = [one.statement]
            if one.statement.op == "replace":
                sayings.append(same_operation(one.statement))
            plain = (plain_sentence(self.task.language, said) for said in sayings)
            words = (self.text_of(one).partition(": ")[2], *plain)
            self._said_as[one] = [plain_text(text).rstrip(".") for text in words]
        return self._said_as[one]

    def statements(self, text: str) -> set[Statement]:
        """Return what a text says, with full names, as somebody understands it who knows everybody."""
        return {one.statement for one in self.dated(text)}

    def dated(self, text: str) -> list[DatedStatement]:
        """Return what a text says, with full names and the days that it tells."""
        if text not in self._read:
            heard = dated_statements(self.task.language, [text], self.last_day, self._people)
            self._read[text] = [one._replace(statement=self.named_fully(one.statement)) for one in heard]
        return self._read[text]

    def named_fully(self, said: Statement) -> Statement:
        """Return a statement with full names, which what was shown may not tell."""
        whose, value = self.everybody.resolve(said.subject) or said.subject, said.value
        if said.attribute == "lead":
            value = self.everybody.resolve(str(value)) or value
        return said._replace(subject=whose, value=value)

    def cut(self, one: DatedStatement, texts: Sequence[str]) -> str | None:
        """Return a text with a piece of what was said that ends or begins within a sentence."""
        said = self.text_of(one).partition(": ")[2], plain_sentence(self.task.language, one.statement)
        for line in (line for text in texts for line in text.splitlines()):
            if any(is_cut(line, whole) for whole in said):
                return line
        return None

    def altered(self, one: DatedStatement, texts: Sequence[str]) -> str | None:
        """Return a text that states the same with another value, or of another; None if there is none."""
        op, attribute, subject, value = same_operation(one.statement)
        turn = self.text_of(one).partition(": ")[2]
        sentences = [*_SENTENCE.split(turn), plain_sentence(self.task.language, one.statement)]
        for line in (line for text in texts for line in text.splitlines()):
            for said in self.dated(line):
                found = same_operation(said.statement)
                is_alike = found[:2] == (op, attribute) and (found.subject == subject) != (found.value == value)
                if is_alike and said.day in (0, one.day) and not self.was_said(found, said.day):
                    return line
            # A value that no sentence can have is not read.
            for piece in _SENTENCE.split(line):
                if any(differs_in(str(value), piece, sentence) for sentence in sentences) and not self.dated(piece):
                    return line
        return None

    def foreign(self, passages: Sequence[str]) -> str | None:
        """Return the first passage that speaks of none of this world's people and things; None if there is none."""
        for passage in passages:
            statements = self.statements(passage)
            if statements and not any(map(self._is_ours, statements)) and plain_text(passage) not in self._whole:
                return passage
        return None

    @cached_property
    def _whole(self) -> str:
        """Everything that was said, of which a memory may return a piece."""
        return plain_text(" ".join(self.task.turns))

    def _is_ours(self, statement: Statement) -> bool:
        if " " in statement.subject or statement.value is None:
            return statement.subject in self.names
        known = self.names | {name.partition(" ")[0] for name in self.names}
        is_known = statement.subject in known
        return is_known and bool(get_close_matches(str(statement.value), known, 1, ALIKE))


def same_operation(statement: Statement) -> Statement:
    """Return a statement as it is compared: a new value and a first one are said alike once they are noted down."""
    return statement._replace(op="set") if statement.op == "replace" else statement


def plain_text(text: str) -> str:
    """Return a text in one Unicode form, without capitals, with one space between words and straight quotes."""
    text = unicodedata.normalize("NFKC", text).casefold().replace("“", '"').replace("”", '"')
    return " ".join(text.split())


def is_cut(line: str, whole: str) -> bool:
    """True if a line has the beginning or the end of a text, and is cut within one of its sentences."""
    line, whole = line.casefold(), whole.casefold()
    if len(whole) <= LEAST_PIECE or whole in line:
        return False
    cuts = [at for size, at in _pieces(line, whole) if LEAST_PIECE <= size < len(whole)]
    return any(not whole[:at].rstrip().endswith(_ENDS) and not whole.startswith(_ENDS, at) for at in cuts)


def _pieces(line: str, whole: str) -> Iterator[tuple[int, int]]:
    """Yield the length of the beginning and of the end of a text that a line has, and where the text was cut."""
    start = line.find(whole[:LEAST_PIECE])
    if start >= 0 and not line[:start].rstrip()[-1:].isalnum():
        size = _common(line[start:], whole)
        rest = line[start + size :]
        is_ended = rest.startswith(_ENDS) and not rest.startswith("..")  # it is another sentence
        if not is_ended and not any(map(str.isalnum, rest)):
            yield size, size
    end = line.rfind(whole[-LEAST_PIECE:])
    if end >= 0:
        size = _common(line[: end + LEAST_PIECE][::-1], whole[::-1])
        if not any(map(str.isalnum, line[: end + LEAST_PIECE - size])):
            yield size, len(whole) - size


def differs_in(value: str, line: str, sentence: str) -> bool:
    """True if a line ends in a sentence with other words in the place of its value, or with other digits."""
    if sentence not in line and _DIGIT.sub("0", line).endswith(_DIGIT.sub("0", sentence)):
        return True
    before, found, after = sentence.casefold().partition(value.casefold())
    start = line.casefold().rfind(before) if before else -1
    other = line[start + len(before) :].casefold()
    is_there = bool(found) and start >= 0 and other.endswith(after)
    return is_there and value.casefold() not in other and bool(other.removesuffix(after))


def _common(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
