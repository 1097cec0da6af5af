"""Memories of conversations that keep and return everything in a manner of their own, and what each is accused of.

Some write what they return otherwise, others return it in another order, in other pieces, or more of it than was asked
for. None has a fault: all answers are right, or what is wrong is uncertain, as where nobody can read a text. The same
turns with a fault are named by its cause.
"""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from typing import ClassVar

import pytest

from eirkit.lacuna.conversation.broken_memories import ExactNotes
from eirkit.lacuna.conversation.reading import show_turn
from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.models.message import Message
from tests.lacuna.conversation.test_causes import played

SMALL = "small+updates=2"
ALL = 1000  # passages
NOT_ACCUSED = {"cause_uncertain", "shown_not_used"}


class Turns(KeyValue):
    """Keeps every turn in its words, and returns all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: list[str] = []

    async def reset(self, scope: str) -> None:
        await super().reset(scope)
        self.turns = []

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        day = date.fromisoformat(at).toordinal()
        self.turns += [show_turn(day, one.role, one.content) for one in messages]

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        return self.shown(self.turns)

    async def contents(self) -> Sequence[str] | None:
        return self.turns

    def shown(self, turns: Sequence[str]) -> list[str]:
        return list(turns)


class Slow(Turns):
    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        await asyncio.sleep(0.01)
        return self.shown(self.turns)


class Duplicates(Turns):
    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        await super().observe(messages, session, at)
        await super().observe(messages, session, at)


class Unlisted(Turns):
    async def contents(self) -> None:
        return None


class OneText(Turns):
    async def contents(self) -> Sequence[str]:
        return ["\n".join(self.turns)]


class NewestFirst(Turns):
    def shown(self, turns: Sequence[str]) -> list[str]:
        return list(reversed(turns))


class WithoutReplies(Turns):
    def shown(self, turns: Sequence[str]) -> list[str]:
        return [turn for turn in turns if "] user: " in turn]


class Sentences(Turns):
    async def contents(self) -> Sequence[str]:
        return self.shown(self.turns)

    def shown(self, turns: Sequence[str]) -> list[str]:
        parts = [turn.partition(": ") for turn in turns]
        return [f"{head}: {one}" for head, _, words in parts for one in re.split(r"(?<=[.!?]) ", words)]


class Overlapping(Turns):
    def shown(self, turns: Sequence[str]) -> list[str]:
        return ["\n".join(turns[at : at + 4]) for at in range(0, len(turns), 2)]


class SessionsWithHeads(Turns):
    def shown(self, turns: Sequence[str]) -> list[str]:
        days = dict.fromkeys(turn[1:11] for turn in turns)
        return [f"Session of {day}\n" + "\n".join(turn[13:] for turn in turns if turn[1:11] == day) for day in days]


class Documents(Turns):
    def shown(self, turns: Sequence[str]) -> list[str]:
        said = [turn for turn in turns if "] user: " in turn]
        return [f"Document\nDate: {turn[1:11]}\nContent: {turn.partition(': ')[2]}" for turn in said]


STORES = (Turns, Slow, Duplicates, Unlisted, OneText, NewestFirst, WithoutReplies, Sentences, Overlapping)


@pytest.mark.parametrize("store", [*STORES, SessionsWithHeads, Documents], ids=lambda one: one.__name__)
def test_a_store_that_returns_every_turn_is_accused_of_nothing(store):
    runs = played(store(), range(6), SMALL, ALL)
    causes = sum((run.record.causes for run in runs), Counter())
    assert set(causes) <= NOT_ACCUSED, causes
    assert causes.total() <= 1
    assert not any(run.record.contradicting for run in runs)


def each(change: Callable[[date, str], str]) -> Callable[[list[str]], list[str]]:
    """Return what writes every line anew, from its day and its words."""

    def changed(lines: list[str]) -> list[str]:
        return [change(date.fromisoformat(line[1:11]), line.partition("user: ")[2]) for line in lines]

    return changed


def usual(day: date, said: str) -> str:
    return f"[{day}] user: {said}"


MANNERS: dict[str, Callable[[list[str]], list[str]]] = {
    "best last": lambda lines: lines[::-1],
    "joined": lambda lines: ["\n".join(lines)],
    "joined by spaces": lambda lines: [" ".join(lines)],
    "bullets": lambda lines: ["\n".join(f"- {line}" for line in lines)],
    "numbers": lambda lines: ["\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))],
    "under a heading": lambda lines: ["Here is what I remember:\n" + "\n".join(lines)],
    "empty passages": lambda lines: ["", *(text for line in lines for text in (line, ""))],
    "lines of Windows": lambda lines: ["\r\n".join(lines)],
    "more spaces": each(lambda day, said: f"  {usual(day, said)} ".replace(" ", "  ")),
    "decomposed Unicode": lambda lines: [unicodedata.normalize("NFD", line) for line in lines],
    "compatible Unicode": lambda lines: [unicodedata.normalize("NFKC", line) for line in lines],
    "a score after": each(lambda day, said: f"{usual(day, said)} (score: 0.93)"),
    "a score before": each(lambda day, said: f"0.93 | {usual(day, said)}"),
    "a source after": each(lambda day, said: f"{usual(day, said)} [source: session-2, id=17]"),
    "a source before": each(lambda day, said: f"[session-2] {usual(day, said)}"),
    "JSON of a text": each(lambda day, said: json.dumps({"text": usual(day, said), "score": 0.93})),
    "JSON of parts": each(lambda day, said: json.dumps({"id": 17, "memory": said, "created_at": f"{day}T09:00:00Z"})),
    "JSON over lines": each(lambda day, said: json.dumps({"date": str(day), "content": said}, indent=1)),
    "XML": each(lambda day, said: f'<memory id="3">{usual(day, said)}</memory>'),
    "YAML": each(lambda day, said: f"date: {day}\nrole: user\ntext: {said}"),
    "CSV": each(lambda day, said: f'17,{day},user,"{said}"'),
    "tabs": each(lambda day, said: f"{day}\tuser\t{said}"),
    "bold": each(lambda day, said: f"**[{day}] user:** {said}"),
    "dates in words": each(lambda day, said: f"[{day:%d %B %Y}] user: {said}"),
    "dates in capitals": each(lambda day, said: f"[{f'{day:%d %B %Y}'.upper()}] user: {said}"),
    "American dates": each(lambda day, said: f"{day:%B} {day.day}, {day.year}: {said}"),
    "short dates": each(lambda day, said: f"({day:%b} {day.day}, {day.year}) {said}"),
    "days of the week": each(lambda day, said: f"[{day:%A, %d %B %Y}] {said}"),
    "points": each(lambda day, said: f"{day:%d.%m.%Y} - {said}"),
    "slashes": each(lambda day, said: f"[{day:%Y/%m/%d}] {said}"),
    "digits alone": each(lambda day, said: f"[{day:%Y%m%d}] {said}"),
    "times": each(lambda day, said: f"[{day}T10:00:00+00:00] user: {said}"),
    "no brackets": each(lambda day, said: f"{day}: {said}"),
    "in a sentence": each(lambda day, said: f"On {day}, the user said: {said}"),
    "a date after": each(lambda day, said: f"{said} ({day})"),
    "a date above": each(lambda day, said: f"## {day:%d %B %Y}\n\n{said}"),
    "no role": each(lambda day, said: f"[{day}] {said}"),
    "another role": each(lambda day, said: f"[{day}] Human: {said}"),
    "a role in front": each(lambda day, said: f"user [{day}]: {said}"),
    "capitals": lambda lines: [line.upper() for line in lines],
    "small letters": lambda lines: [line.lower() for line in lines],
    "no full stops": lambda lines: [line.rstrip(".") for line in lines],
}
UNREADABLE = {"capitals", "small letters", "no full stops"}  # to a reader who goes by the words of the language


class Mannered(ExactNotes):
    """Returns a plain sentence with full names for each statement that a question depends on, written in its manner."""

    manner: ClassVar[str]

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        found = await super().recall(question, at, limit)
        return MANNERS[self.manner]([line for passage in found for line in passage.splitlines()])


@pytest.mark.parametrize("manner", MANNERS)
def test_a_store_that_writes_in_a_manner_of_its_own_is_accused_of_nothing(manner):
    store = type("Store", (Mannered,), {"manner": manner})()
    runs = played(store, range(6), SMALL, ALL)
    causes = sum((run.record.causes for run in runs), Counter())
    if manner in UNREADABLE:
        assert set(causes) == {"cause_uncertain"}
    else:
        assert causes == ({"cause_uncertain": 1} if causes else {}), causes
    assert not any(run.record.contradicting for run in runs)


# --- the same turns with a fault --------------------------------------------------------------------------------------


class Changed(Turns):
    """Changes every turn in its own way when it is returned and, unless it says otherwise, when it is stored."""

    async def contents(self) -> Sequence[str] | None:
        return self.shown(self.turns)


class Cuts(Changed):
    def shown(self, turns: Sequence[str]) -> list[str]:
        return [turn[:60] for turn in turns]


class CutsWhatItReturns(Cuts):
    async def contents(self) -> Sequence[str]:
        return self.turns


class SwapsDigits(Changed):
    def shown(self, turns: Sequence[str]) -> list[str]:
        return [turn[:12] + re.sub(r"(\d)(\d)", r"\2\1", turn[12:]) for turn in turns]


class LosesSeventh(Changed):
    def shown(self, turns: Sequence[str]) -> list[str]:
        return [turn for number, turn in enumerate(turns) if number % 7 != 3]


class NoDates(Changed):
    def shown(self, turns: Sequence[str]) -> list[str]:
        return [turn[13:] for turn in turns]


class OneDate(Changed):
    def shown(self, turns: Sequence[str]) -> list[str]:
        return ["[2031-01-27]" + turn[12:] for turn in reversed(turns)]


class SideBySide(Turns):
    def shown(self, turns: Sequence[str]) -> list[str]:
        return [text for turn in turns for text in (turn, turn[:12] + re.sub(r"(\d)(\d)", r"\2\1", turn[12:]))]


class Capped(Turns):
    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        await super().observe(messages, session, at)
        self.turns = self.turns[-16:]


class FirstHalf(Turns):
    def shown(self, turns: Sequence[str]) -> list[str]:
        return list(turns[: len(turns) // 2])


class FirstHalfUnlisted(FirstHalf):
    async def contents(self) -> None:
        return None


class Leaks(Turns):
    def __init__(self) -> None:
        super().__init__()
        self.others: list[str] = []

    async def reset(self, scope: str) -> None:
        self.others = self.turns or self.others
        await super().reset(scope)

    def shown(self, turns: Sequence[str]) -> list[str]:
        return self.others or list(turns)


class Deaf(Turns):
    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        """Store nothing."""


FAULTS: dict[type[Turns], tuple[str, int, dict[str, float]]] = {  # the cause, passages shown, other causes
    Cuts: ("cut_off", ALL, {"never_stored": 0.03, "cause_uncertain": 0.02}),  # cut between two sentences
    CutsWhatItReturns: ("cut_off", ALL, {"not_retrieved": 0.03, "cause_uncertain": 0.02}),
    SwapsDigits: ("altered", ALL, {}),
    LosesSeventh: ("never_stored", ALL, {}),
    NoDates: ("misdated", ALL, {"cause_uncertain": 0.02}),
    OneDate: ("misdated", ALL, {"cause_uncertain": 0.02}),
    SideBySide: ("contradicted", ALL, {"altered": 0.05}),  # of what was never said
    Capped: ("deleted", ALL, {"never_stored": 0.02}),  # more than sixteen turns in one session
    FirstHalf: ("not_retrieved", ALL, {}),
    FirstHalfUnlisted: ("store_unknown", ALL, {}),
    Turns: ("below_budget", 4, {}),
    Leaks: ("other_user", ALL, {}),
    Deaf: ("never_stored", ALL, {}),
}


@pytest.mark.parametrize("memory", FAULTS, ids=lambda one: one.__name__)
def test_a_store_of_turns_with_a_fault_is_named_by_its_cause(memory):
    cause, passages, others = FAULTS[memory]
    runs = played(memory(), range(8), SMALL, passages)
    causes = sum((run.record.causes for run in runs), Counter())
    assert causes[cause] > 20
    assert {name for name in causes if name != cause} <= {*others}, causes
    assert all(causes[name] <= share * causes.total() for name, share in others.items()), causes
