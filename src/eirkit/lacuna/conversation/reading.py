"""Reads passages of conversations as somebody who was not there: in any order, with gaps, and with names half known.

A turn is `[2031-01-06] user: …`, perhaps with a time. Where a memory writes otherwise, a line has its date in any usual
form before or after what it says, or in a line of its own above. What no longer holds ends in `(until 2031-01-13)` or,
where the day is not known, in `(no longer valid)`, and then counts as ended on the day on which it was said. What a
passage does not say stays unknown: a first name that fits several people, a nickname whose owner was not mentioned, an
amount added to a stock that was never counted.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from eirkit.lacuna.conversation.language import Language, Listener, Spoken, read, sentence_starts, subject_slot, ways
from eirkit.lacuna.conversation.scoring import Words, dates_in
from eirkit.lacuna.conversation.truth import Key, Knowledge
from eirkit.lacuna.conversation.world import ATTRIBUTES, Statement, WorldQuestion
from eirkit.lacuna.memories.validity import read_mark

_TURN = re.compile(r"\[(\d{4}-\d\d-\d\d)(?:[T ][\d:.,+Z -]+)?\] (?=\S)(?:(user|assistant): )?")
_YEAR = re.compile(r"(?<!\d)[12]\d{3}(?!\d)|(?<!\d)[12]\d{7}(?!\d)")
_COMPACT = re.compile(r"(?<!\d)(\d{4})(\d\d)(\d\d)(?!\d)")
_TAIL = re.compile(r"[(\[]([^()\[\]]*)[)\]][^\w()\[\]]*+$")
_JSON = re.compile(r"\s*(?:\{|\[\s*[\[{\"])")
_MARKUP = re.compile(r"[\"*_`<]")
_TAG = re.compile(r"</?\w[^<>\n]*>")
_AFTER_SENTENCE = re.compile(r"([.!?])[\"*_`]+(?=\s|$)", re.MULTILINE)
_SPACES = re.compile(r"[ \t]{2,}")
_LONGEST_HEAD = 80  # characters before what is said, in a line of a memory's own form


class DatedTurn(NamedTuple):
    """One turn of a passage."""

    day: int | None  # None where the passage does not say
    text: str
    until: int | None = None  # the day on which what it says ended; None where it still holds, as far as is said


class DatedStatement(NamedTuple):
    """One statement as it was read."""

    statement: Statement
    day: int
    passage: int  # from 0
    until: int | None = None  # the day on which it ended, where the passage says so


def show_turn(day: int, role: str, text: str) -> str:
    """Return a turn as memories and readers see it."""
    return f"[{date.fromordinal(day).isoformat()}] {role}: {text}"


def show_note(day: int, text: str) -> str:
    """Return a sentence with its day, as summaries and notes have it."""
    return f"[{date.fromordinal(day).isoformat()}] {text}"


def split_turns(language: Language, passage: str) -> list[DatedTurn]:
    """Return the turns of a passage; what stands before the first date has none."""
    passage = _without_markup(passage)
    marks = list(_TURN.finditer(passage))
    if not marks:
        return _lines_of_own_form(language, passage)
    head = passage[: marks[0].start()].strip()
    found = [_turn(None, head)] if head else []
    for mark, after in zip(marks, [*marks[1:], None], strict=True):
        text = passage[mark.end() : None if after is None else after.start()].strip()
        if mark[2] is None:  # a note, or a role under another name
            text = text[next(iter(sentence_starts(language, text, _LONGEST_HEAD)), 0) :]
        if mark[2] != "assistant":
            found.append(_turn(_ordinal(mark[1]), text))
    return found


def _without_markup(passage: str) -> str:
    """Return a passage without JSON around its texts, tags, marks after sentences, and spaces that say nothing."""
    passage = _values_of_json(unicodedata.normalize("NFC", passage))
    if _MARKUP.search(passage):
        passage = _AFTER_SENTENCE.sub(r"\1", _TAG.sub(" ", passage))
    return _SPACES.sub(" ", passage) if "  " in passage else passage


def _lines_of_own_form(language: Language, passage: str) -> list[DatedTurn]:
    """Return the turns of a passage that has none of the usual form."""
    if _YEAR.search(passage) is None:
        return [_turn(None, passage.strip())]
    found, above = list[DatedTurn](), None
    for line in passage.splitlines():
        start = next(iter(sentence_starts(language, line, _LONGEST_HEAD)), None)
        tail = _TAIL.search(line)
        if start is None:
            above = only_date(language, line) or above
        elif "assistant" not in line[:start].casefold().split(":")[0]:
            own = only_date(language, line[:start]) or (only_date(language, tail[1]) if tail else None)
            found.append(_turn(own or above, line[start:]))
    return found or [_turn(None, passage.strip())]


def _values_of_json(passage: str) -> str:
    """Return the texts in a passage of JSON in a line for each of its objects; another passage as it is."""
    if _JSON.match(passage) is None:
        return passage
    try:
        parts = [json.loads(passage)]
    except ValueError:
        try:
            parts = [json.loads(line) for line in passage.splitlines() if line.strip()]
        except ValueError:
            return passage
    objects = [one for part in parts for one in (part if isinstance(part, list) else [part])]
    # The longest text is what is said, the others are about it.
    texts = [sorted(_texts_in(one), key=len) for one in objects]
    return "\n".join(" | ".join(" ".join(text.split()) for text in own) for own in texts)


def _texts_in(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for one in value.values() for text in _texts_in(one)]
    if isinstance(value, list):
        return [text for one in value for text in _texts_in(one)]
    return [value] if isinstance(value, str) else []


def only_date(language: Language, text: str) -> int | None:
    """Return the one whole date that a text has in any usual form; None if it has none, or several."""
    days = days_in(language, text)
    return next(iter(days)) if len(days) == 1 else None


def days_in(language: Language, text: str) -> set[int]:
    """Return all whole dates that a text may have, in any usual form."""
    found = dates_in(Words(_COMPACT.sub(r"\1-\2-\3", text).replace("T", " ")), language.table["months"])
    return {date(*one).toordinal() for one in found if all(one)}


def _ordinal(day: str) -> int | None:
    """Return a day; None if it is in no calendar, as a memory may write anything."""
    try:
        return date.fromisoformat(day).toordinal()
    except ValueError:
        return None


def _turn(day: int | None, said: str) -> DatedTurn:
    text, ended = read_mark(said)
    until = None if ended is None else _ordinal(ended) or day or 0
    return DatedTurn(day, text, until)


def plain_sentence(language: Language, statement: Statement) -> str:
    """Return a statement in the plainest sentence that says it, with full names and dates."""
    op, attribute, subject, value = statement
    slots = {**dict.fromkeys("vntlw", str(value)), subject_slot(attribute): subject, **language.table["pronouns"][0]}
    if ATTRIBUTES[attribute] == "date" and isinstance(value, int):
        slots |= {"d": language.date(value, 0), **language.table["events"][attribute]}
    return ways(language, attribute, op, 1)[0].text.format_map(slots)


class _Verbatim(Listener):
    """Leaves every name as it was said."""

    def resolve(self, name: str) -> str:
        return name


@lru_cache(maxsize=1 << 14)  # the same turns are read for every question
def read_turn(language: Language, text: str, today: int) -> tuple[Spoken, ...]:
    """Return what a text says, with names as they were said; nothing if it cannot be understood without more."""
    return tuple(read(language, text, today, _Verbatim()))


def dated_statements(
    language: Language, passages: Sequence[str], today: int, known: Iterable[str] = ()
) -> list[DatedStatement]:
    """Return what passages say, the oldest first, with names resolved as far as the passages allow.

    Args:
        today: the day on which they are read; days in passages without a date are counted from it.
        known: people who are known otherwise, such as from the question.
    """
    turns = [(turn, number) for number, text in enumerate(passages) for turn in split_turns(language, text)]
    turns.sort(key=lambda pair: pair[0].day or 0)
    raw = [
        (one, turn.day or 0, number, turn.until)
        for turn, number in turns
        for one in read_turn(language, turn.text, turn.day or today)
        if isinstance(one, Statement)
    ]
    everybody = Listener()
    for person in (*known, *(name for one, *_ in raw for name in people_named(one))):
        if " " in person:
            everybody.mention(person)
    for one, *_ in raw:
        if one.attribute == "nickname":
            everybody.nicknames[str(one.value)] = one.subject
    so_far = Listener()
    found = [DatedStatement(_resolved(one, so_far, everybody), day, at, until) for one, day, at, until in raw]
    return list({(one.statement, one.day): one for one in reversed(found)}.values())[::-1]


def _resolved(one: Statement, so_far: Listener, everybody: Listener) -> Statement:
    """Return a statement with full names: of those mentioned before, as listeners understand it, or of all."""

    def full(name: str) -> str:
        return so_far.resolve(name) or everybody.resolve(name) or name

    if subject_slot(one.attribute) == "p":
        one = one._replace(subject=full(one.subject))
    if one.attribute == "lead":
        one = one._replace(value=full(str(one.value)))
    if one.attribute == "nickname":
        so_far.nicknames[str(one.value)] = one.subject
    return one


@dataclass(slots=True)
class PartialKnowledge(Knowledge):
    """Knowledge from passages with gaps."""

    def hear(self, statement: Statement, day: int) -> None:
        key = statement.attribute, statement.subject
        if statement.op in ("raise", "lower") and key not in self.counts:
            return  # the stock was never counted, so the total stays unknown
        Knowledge.hear(self, statement, day)

    def end(self, statement: Statement, day: int) -> None:
        """Take into account that a statement held until a day; what has held since is not known from it."""
        key = statement.attribute, statement.subject
        told = self.versions.get(key)
        if told and told[-1][1] == statement.value:
            told.append((day, None))
        elif key in self.sets and statement.op == "add":
            self.sets[key].pop(str(statement.value), None)
        elif statement.op in ("set", "replace") and self.counts.get(key) == statement.value:
            del self.counts[key]


def learn(heard: Sequence[DatedStatement]) -> PartialKnowledge:
    """Return what somebody knows who has heard this."""
    knowledge = PartialKnowledge()
    events = [(one.day, False, one.statement) for one in heard]
    if ended := [(one.until, True, one.statement) for one in heard if one.until is not None]:
        events = sorted([*events, *ended], key=lambda event: event[:2])  # a new value on that day comes first
    for day, is_end, statement in events:
        (knowledge.end if is_end else knowledge.hear)(statement, day)
    return knowledge


def keys_of(question: WorldQuestion, knowledge: Knowledge) -> list[Key]:
    """Return the facts that the answer to a question depends on, given what is known."""
    form, attribute, subject, other = question
    if form == "hop":
        lead = knowledge.current("lead", subject)
        return [("lead", subject), *([] if lead is None else [(attribute, str(lead))])]
    if form == "follows":
        place = knowledge.current("seat", subject)
        return [("seat", subject), *([] if place is None else [("door", str(place))])]
    if form in ("first", "between"):
        return [(attribute, subject), (attribute, str(other))]
    return [(attribute, subject)]


def needed_statements(
    question: WorldQuestion, said: Sequence[DatedStatement], knowledge: Knowledge
) -> list[DatedStatement]:
    """Return the statements without which a question cannot be answered rightly."""
    needed: list[DatedStatement] = []
    for key in keys_of(question, knowledge):
        about = [one for one in said if (one.statement.attribute, one.statement.subject) == key]
        needed += _deciding(question, [one for one in about if one.statement.op != "plant"])
    return needed


def _deciding(question: WorldQuestion, about: Sequence[DatedStatement]) -> Sequence[DatedStatement]:
    """Return those statements about one fact that decide the answer."""
    if not about:
        return ()
    form = ATTRIBUTES[about[0].statement.attribute]
    if form == "set":
        return about
    if form == "count":
        counted = [at for at, one in enumerate(about) if one.statement.op in ("set", "replace")]
        return about[counted[-1] if counted else 0 :]
    if about[-1].statement.op == "forget":
        return about[-1:]
    if taken_back := [one for one in about if one.statement.op == "retract"]:
        false = {one.statement.value for one in taken_back}
        true = [one for one in about if one.statement.value not in false]
        return [*_deciding(question, true), *(taken_back if about[-1].statement.value in false else ())]
    if question.form == "before":
        return about[-2:]
    if question.form == "as_of":
        return [one for one in about if one.day <= int(question.other or 0)][-1:]
    return about[-1:]


def without_last(said: Sequence[DatedStatement], key: Key) -> Iterator[list[DatedStatement]]:
    """Yield what was said without the last statement about a fact, the last two, and so on."""
    about = [one for one in said if (one.statement.attribute, one.statement.subject) == key]
    for dropped in range(1, len(about)):
        gone = set(map(id, about[-dropped:]))
        yield [one for one in said if id(one) not in gone]


def people_in(question: WorldQuestion) -> list[str]:
    """Return the people whom a question names."""
    return [question.subject] if " " in question.subject else []


def people_named(statement: Statement) -> list[str]:
    """Return the people whom a statement names."""
    named = [statement.subject] if subject_slot(statement.attribute) == "p" else []
    return [*named, str(statement.value)] if statement.attribute == "lead" else named
