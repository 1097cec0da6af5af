"""Memories of conversations with one known fault each, for calibration: `words-…`.

Apart from its fault each finds what a question needs: it reads the conversation by the grammar, keeps one record for
each statement, with full names and dates, and returns the records about the facts that a question depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date

from eirkit.lacuna.conversation.language import load_language
from eirkit.lacuna.conversation.reading import (
    dated_statements,
    keys_of,
    learn,
    people_in,
    plain_sentence,
    read_turn,
    show_note,
    show_turn,
)
from eirkit.lacuna.conversation.world import ATTRIBUTES, Statement, WorldQuestion
from eirkit.lacuna.memories.in_process import KeyValue, usage_of_texts
from eirkit.lacuna.memories.memory import LONGEST_PASSAGE, MemoryUsage, memories
from eirkit.lacuna.models.message import Message


@dataclass(frozen=True, slots=True)
class KeptStatement:
    """One statement as it is kept."""

    statement: Statement
    day: int
    text: str


class BrokenNotes(KeyValue):
    """Keeps every statement as a dated, plain sentence, and returns those that a question depends on."""

    def __init__(self) -> None:
        super().__init__()
        self.language = load_language()
        self._notes: list[KeptStatement] = []
        self._turns: list[str] = []

    async def reset(self, scope: str) -> None:
        await super().reset(scope)
        self._notes, self._turns = [], []

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        day = date.fromisoformat(at).toordinal()
        new = [show_turn(day, one.role, one.content) for one in messages]
        heard = dated_statements(self.language, [*self._turns, *new], day)
        before = len(self._turns)
        self._turns += new
        for one in heard:
            if one.passage >= before:
                text = show_turn(day, "user", plain_sentence(self.language, one.statement))
                self.keep(KeptStatement(one.statement, one.day, text))

    def keep(self, note: KeptStatement) -> None:
        """Store a statement."""
        self._notes.append(note)

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        day = date.fromisoformat(at).toordinal()
        asked = [one for one in read_turn(self.language, question, day) if isinstance(one, WorldQuestion)]
        found = self.choose(asked[0]) if asked else ()
        return ["\n".join(note.text for note in found)] if found else []

    def choose(self, question: WorldQuestion) -> Sequence[KeptStatement]:
        """Return the notes that help to answer a question, the newest first."""
        heard = dated_statements(self.language, [note.text for note in self._notes], 0, people_in(question))
        keys = set(keys_of(question, learn(heard)))
        return [n for n in reversed(self._notes) if (n.statement.attribute, n.statement.subject) in keys]

    async def contents(self) -> Sequence[str]:
        return [*await super().contents(), *(note.text for note in self._notes)]

    async def usage(self) -> MemoryUsage:
        return usage_of_texts(await self.contents())


@memories.add("words-exact")
class ExactNotes(BrokenNotes):
    """Has no fault: returns every statement about what a question depends on."""


@memories.add("words-add-only")
class AddOnly(BrokenNotes):
    """Never replaces: asked for the present value of a fact, it returns the one that it has had longest."""

    def choose(self, question: WorldQuestion) -> Sequence[KeptStatement]:
        found = [note for note in super().choose(question) if note.statement.op != "plant"]
        single = question.form == "now" and ATTRIBUTES[question.attribute] != "count"
        return found[-1:] if single and found and found[0].statement.op != "forget" else found


@memories.add("words-last-writer")
class LastWriter(BrokenNotes):
    """Keeps one record for each person, place or project: what is said in a later session replaces it."""

    def keep(self, note: KeptStatement) -> None:
        subject, day = note.statement.subject, note.day
        self._notes = [one for one in self._notes if one.statement.subject != subject or one.day == day]
        super().keep(note)


@memories.add("words-merges")
class MergesNames(BrokenNotes):
    """Takes people who share a first name for one person."""

    def choose(self, question: WorldQuestion) -> Sequence[KeptStatement]:
        found = super().choose(question)
        has_tracers = ATTRIBUTES[question.attribute] != "name"  # a team or a place may be that of several people
        if " " not in question.subject or question.form != "now" or not has_tracers:
            return found
        first = question.subject.partition(" ")[0]
        others = [
            replace(note, text=note.text.replace(note.statement.subject, question.subject))
            for note in self._notes
            if note.statement.attribute == question.attribute
            and note.statement.op not in ("forget", "retract")
            and note.statement.subject.partition(" ")[0] == first
            and note.statement.subject != question.subject
        ]
        return [*found, *others]


@memories.add("words-forgets")
class ForgetsOld(BrokenNotes):
    """Forgets the oldest statements when a session begins.

    Args:
        most: how many it still holds then.
    """

    def __init__(self, most: int = 12) -> None:
        super().__init__()
        self.most = most

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        del self._notes[: -self.most]
        await super().observe(messages, session, at)


@memories.add("words-leaks")
class LeaksScopes(BrokenNotes):
    """Returns what another user said: a record of the scope before this one."""

    def __init__(self) -> None:
        super().__init__()
        self._others: list[KeptStatement] = []

    async def reset(self, scope: str) -> None:
        self._others = [note for note in self._notes if note.statement.subject] or self._others
        await super().reset(scope)

    def choose(self, question: WorldQuestion) -> Sequence[KeptStatement]:
        alike = [note for note in self._others if note.statement.attribute == question.attribute]
        return (alike or self._others)[:1] if self._others else super().choose(question)


@memories.add("words-truncates")
class CutsTexts(BrokenNotes):
    """Cuts every text before the value that it states, or, if it begins with it, after three quarters."""

    def keep(self, note: KeptStatement) -> None:
        start, most = note.text.find(": ") + 2, len(note.text) * 3 // 4
        value = note.text.find(str(note.statement.value), start + 1)
        super().keep(replace(note, text=note.text[: value if value > 0 else most].rstrip()))


@memories.add("words-keeps-withdrawn")
class KeepsWithdrawn(BrokenNotes):
    """Does not take note when the user asks to forget something."""

    def keep(self, note: KeptStatement) -> None:
        if note.statement.op != "forget":
            super().keep(note)


@memories.add("words-keeps-mistakes")
class KeepsMistakes(BrokenNotes):
    """Does not take note when the user takes something back as a mistake."""

    def keep(self, note: KeptStatement) -> None:
        if note.statement.op != "retract":
            super().keep(note)


@memories.add("words-obeys-documents")
class ObeysDocuments(BrokenNotes):
    """Keeps what a document demands of the assistant as an instruction of the user."""

    def keep(self, note: KeptStatement) -> None:
        if note.statement.op == "plant":
            said = note.statement._replace(op="set")
            note = KeptStatement(said, note.day, show_turn(note.day, "user", plain_sentence(self.language, said)))
        super().keep(note)


@memories.add("words-late")
class LateByOne(BrokenNotes):
    """Indexes a session when the next one arrives, so that the last one is held and not found."""

    def __init__(self) -> None:
        super().__init__()
        self._indexed = 0

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        self._indexed = len(self._notes)
        await super().observe(messages, session, at)

    def choose(self, question: WorldQuestion) -> Sequence[KeptStatement]:
        late = set(map(id, self._notes[self._indexed :]))
        return [note for note in super().choose(question) if id(note) not in late]


@memories.add("words-returns-all")
class ReturnsAll(BrokenNotes):
    """Returns a log of everything, whatever was asked, which begins with more than can be shown."""

    def choose(self, question: WorldQuestion) -> Sequence[KeptStatement]:
        whole = "\n".join(["-" * LONGEST_PASSAGE, *(note.text for note in self._notes)])
        return [replace(self._notes[0], text=whole)] if self._notes else []


@memories.add("words-misdates")
class Misdates(BrokenNotes):
    """Dates what was said last as if it had been said first, and the first as if last."""

    def choose(self, question: WorldQuestion) -> Sequence[KeptStatement]:
        days = sorted({note.day for note in self._notes})
        moved = dict(zip(days, reversed(days), strict=True))
        return [_at(note, moved[note.day]) for note in super().choose(question)]


@memories.add("words-contradicts")
class Contradicts(BrokenNotes):
    """Returns beside every statement the same one with another value, of the same day."""

    def choose(self, question: WorldQuestion) -> Sequence[KeptStatement]:
        found = super().choose(question)
        return [one for note in found for one in (note, _with_value(note, altered_value))]


@memories.add("words-alters")
class Alters(BrokenNotes):
    """Stores every value with two of its letters or digits in the other order."""

    def keep(self, note: KeptStatement) -> None:
        super().keep(_with_value(note, altered_value))


@memories.add("words-swaps-people")
class SwapsPeople(BrokenNotes):
    """Stores what is said of a person as said of the one who was named before."""

    def __init__(self) -> None:
        super().__init__()
        self._before = ""

    def keep(self, note: KeptStatement) -> None:
        subject = note.statement.subject
        if " " in subject and note.statement.attribute != "nickname":
            other, self._before = self._before or subject, subject
            note = replace(note, text=note.text.replace(subject, other))
        super().keep(note)


@memories.add("words-ranks-last")
class RanksLast(BrokenNotes):
    """Returns everything, one statement a passage, and what a question depends on after the rest."""

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        found = await super().recall(question, at, limit)
        right = {line for passage in found for line in passage.splitlines()}
        return sorted((note.text for note in self._notes), key=right.__contains__)


@memories.add("words-deletes-updated")
class DeletesUpdated(BrokenNotes):
    """Deletes a fact when it changes, the old value with the new one."""

    def keep(self, note: KeptStatement) -> None:
        op, attribute, subject, _ = note.statement
        if op != "replace":
            super().keep(note)
        self._notes = [one for one in self._notes if op != "replace" or one.statement[1:3] != (attribute, subject)]


@memories.add("words-loses-seventh")
class LosesSeventh(BrokenNotes):
    """Does not store every seventh statement."""

    def __init__(self) -> None:
        super().__init__()
        self._heard = 0

    def keep(self, note: KeptStatement) -> None:
        self._heard += 1
        if self._heard % 7:
            super().keep(note)


@memories.add("words-behind")
class OneBehind(BrokenNotes):
    """Stores a session when the next one arrives, so that the last one is never stored."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[KeptStatement] = []

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        self._notes, self._waiting = [*self._notes, *self._waiting], []
        await super().observe(messages, session, at)

    def keep(self, note: KeptStatement) -> None:
        self._waiting.append(note)

    async def reset(self, scope: str) -> None:
        await super().reset(scope)
        self._waiting = []


def altered_value(value: str) -> str:
    """Return a value in which the last two neighbors that differ, letters or digits, have changed places."""
    for at in range(len(value) - 2, -1, -1):
        pair = value[at : at + 2]
        if pair.isalnum() and pair[0] != pair[1]:
            return f"{value[:at]}{pair[::-1]}{value[at + 2 :]}"
    return f"{value} {value}"


def _with_value(note: KeptStatement, change: Callable[[str], str]) -> KeptStatement:
    """Return a note whose text states another value; as it is if it states none."""
    value = note.statement.value
    return note if value is None else replace(note, text=note.text.replace(str(value), change(str(value))))


def _at(note: KeptStatement, day: int) -> KeptStatement:
    """Return a note with another date."""
    return replace(note, text=note.text.replace(show_note(note.day, ""), show_note(day, "")))
