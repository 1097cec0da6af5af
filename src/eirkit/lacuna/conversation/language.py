"""Languages of the workload `conversation`: the sentences of a TOML file, filled in, and their exact inverse.

A sentence with slots becomes a regular expression; no two sentences match one text, so that reading back what was said
gives the world again. `english.toml` explains the slots. A file of the same form is another language.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from eirkit.errors import InputFileError
from eirkit.lacuna.conversation.vocabulary import KINDS, WORD, Vocabulary, read_table, vocabulary_of
from eirkit.lacuna.conversation.world import ATTRIBUTES, INSTRUCTIONS, USER, Answer, Statement, Value, WorldQuestion
from eirkit.registry import refuse_untrusted

Reader = Callable[[dict[str, str], int], int]  # from the parts of a date, and today, to a day
LEVELS = ("plain", "varied", "indirect")
PAST, COMING, PRONOUN = 4, 5, 6
NEAR = 14  # days within which a date may be said as a day counted from today
_PLAIN = frozenset({*"pwtljkvndx", "ago", "ahead"})  # slots whose text does not depend on whom or what it is about
_SLOT = re.compile(r"\{(\w+)\}")
_FREE = re.compile(r"(?<![\w\0])\w+(?![\w\0])")  # a word that touches no slot
_START = re.compile(r"(?<!\w)\w")  # of a word


class Sentence(NamedTuple):
    """One way of saying or asking something."""

    text: str
    pattern: re.Pattern[str]
    words: tuple[str, ...]  # those that are no part of a slot, and so occur wherever it is said
    kind: str  # statement, question, again, or filler
    attribute: str
    op: str  # the operation of a statement, the form of a question
    level: int  # 1 to 3; or what the sentence needs: a date in the PAST or COMING, or a person to whom a PRONOUN refers
    has_forms: bool = False  # it has slots whose text depends on whom or what it is about, such as pronouns
    template: str = ""  # the text with %s in the place of its slots, which is faster to fill in
    slots: Callable[[Mapping[str, str]], str | tuple[str, ...]] | None = None  # returns what the slots hold, in order

    def fill(self, slots: Mapping[str, str]) -> str:
        """Return the sentence with the texts of its slots, of which there may be more than it has."""
        return self.text if self.slots is None else self.template % self.slots(slots)


@dataclass(frozen=True, slots=True)
class AnswerWords:
    """Words by which answers are scored, in lower case."""

    unknown: str
    none: str
    yes: str
    no: str
    months: tuple[str, ...]
    numbers: tuple[str, ...]  # from zero
    joining: str  # and
    either: str  # or
    unknown_words: tuple[str, ...]  # phrases that say by themselves that something is not known
    negations: tuple[str, ...]
    knowing: tuple[str, ...]  # shortly after a negation they say the same
    known: str
    none_known: tuple[str, ...]  # right before `known` they say that there is none
    units: tuple[str, ...]
    earlier: tuple[str, ...]
    later: tuple[str, ...]
    instead: tuple[str, ...]  # between the first of two and the other


def _answer_words(table: Mapping[str, Any]) -> AnswerWords:
    given = {
        **{name: table[name] for name in ("unknown", "none", "yes", "no", "months", "numbers")},
        **table["answers"],
    }
    lower: dict[str, Any] = {
        name: value.casefold() if isinstance(value, str) else tuple(map(str.casefold, value))
        for name, value in given.items()
    }
    return AnswerWords(**lower)


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """The sentences of one language."""

    name: str
    table: Mapping[str, Any]
    statements: Mapping[tuple[str, str], tuple[Sentence, ...]]  # by attribute and operation
    questions: Mapping[tuple[str, str], tuple[Sentence, ...]]  # by attribute and form
    others: tuple[Sentence, ...]
    vocabulary: Vocabulary
    answer_words: AnswerWords

    @property
    def sentences(self) -> Iterator[Sentence]:
        for group in (*self.statements.values(), *self.questions.values(), self.others):
            yield from group

    def date(self, day: int, form: int) -> str:
        """Return a date in one of the language's forms."""
        when = date.fromordinal(day)
        month = self.table["months"][when.month - 1]
        text: str = self.table["dates"][form].format(day=when.day, month=month, year=when.year, iso=when.isoformat())
        return text

    def from_today(self, days: int, form: int, today: int) -> str:
        """Return a day counted from today, `days` of them ahead or, if negative, ago."""
        words = self.table["ahead" if days > 0 else "ago"]
        weekday = self.table["weekdays"][date.fromordinal(today + days).weekday()]
        if abs(days) == 1:
            return str(next(iter(words.values())))
        if form and abs(days) < 7:
            return str(words["weekday"].format(weekday=weekday))
        return str(words["days"].format(n=abs(days)))

    def day_of(self, text: str, today: int) -> int:
        """Return the day that a date or a day counted from today means."""
        for pattern, day in _readers(self):
            if found := pattern.fullmatch(text):
                return day(found.groupdict(), today)
        raise ValueError(f"{text!r} is not a date of {self.name}")


def load_language(name: str = "english") -> Language:
    """Return a built-in language by its name, or the one in a TOML file.

    Raises:
        InputFileError: there is no such language, or a sentence of it cannot be used.
    """
    if name.endswith(".toml"):
        refuse_untrusted(name, "a file")
    return _loaded(name)


@cache
def _loaded(name: str) -> Language:
    try:
        return _language(read_table(name))
    except (OSError, KeyError, TypeError, ValueError, IndexError) as error:
        raise InputFileError(
            f"{name} is not a language that can be used ({error}); see english.toml for the form"
        ) from error


def _language(table: Mapping[str, Any]) -> Language:
    plain, vocabulary = _slot_patterns(table), vocabulary_of(table)
    values = {attribute: vocabulary.of(attribute).pattern() for attribute in KINDS}
    of_people = "|".join(values[attribute] for attribute, form in ATTRIBUTES.items() if form == "value")
    slots = {attribute: {**plain, "v": values.get(attribute, WORD)} for attribute in (*ATTRIBUTES, "event")}
    statements: dict[tuple[str, str], tuple[Sentence, ...]] = {}
    for attribute, ops in table["statements"].items():
        for op, levels in ops.items():
            found = [
                _sentence(text, slots[attribute], "statement", attribute, op, level)
                for level, name in enumerate((*LEVELS, "past", "coming", "pronoun"), 1)
                for text in levels.get(name, ())
            ]
            statements[attribute, op] = tuple(found)
    questions = {
        (attribute, form): tuple(_sentence(text, slots[attribute], "question", attribute, form, 1) for text in texts)
        for attribute, forms in table["questions"].items()
        for form, texts in forms.items()
    }
    others = [_sentence(text, {**plain, "v": of_people}, "again", "", "", 3) for text in table["again"]]
    empty = [*table["filler"], *table["document"], *table["acknowledgements"], *table["replies"], table["here_is"]]
    others += [_sentence(text, plain, "filler", "", "", 1) for text in empty]
    return Language(table["name"], table, statements, questions, tuple(others), vocabulary, _answer_words(table))


def _sentence(text: str, slots: Mapping[str, str], kind: str, attribute: str, op: str, level: int) -> Sentence:
    parts, seen = [], set[str]()
    literals = _SLOT.split(text)
    for number, part in enumerate(literals):
        if number % 2 == 0:
            parts.append(re.escape(part))
        else:
            parts.append(f"(?P={part})" if part in seen else f"(?P<{part}>{slots[part]})")
            seen.add(part)
    words = tuple(dict.fromkeys(_FREE.findall(_SLOT.sub("\0", text))))
    pattern = re.compile("".join(parts) + r"(?= |\n|$)")
    template = "%s".join(part.replace("%", "%%") for part in literals[::2])
    get = itemgetter(*literals[1::2]) if seen else None
    return Sentence(text, pattern, words, kind, attribute, op, level, not seen <= _PLAIN, template, get)


def _slot_patterns(table: Mapping[str, Any]) -> dict[str, str]:
    pronouns = "|".join({word for one in table["pronouns"] for word in one.values() if word[0].isupper()})
    person = rf"(?!(?:{pronouns})\b){WORD}(?: {WORD})?"
    spelled = [re.escape(one) for one in table["dates"]]
    dates = "|".join(_filled(one, table, "") for one in spelled)
    return {
        "p": person,
        "w": person,
        **dict.fromkeys("tljk", WORD),
        "x": "|".join(map(re.escape, table["topics"])),
        "n": r"\d+",
        "d": dates,
        "ago": "|".join(_filled(re.escape(one), table, "") for one in table["ago"].values()),
        "ahead": "|".join(_filled(re.escape(one), table, "") for one in table["ahead"].values()),
        **_either(table["pronouns"]),
        **_either(list(table["events"].values())),
    }


def _either(forms: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return for each slot the pattern of its forms: of either gender, or of either event."""
    return {name: "|".join(dict.fromkeys(re.escape(one[name]) for one in forms)) for name in forms[0]}


def _filled(escaped: str, table: Mapping[str, Any], prefix: str) -> str:
    """Return the pattern of a date or of a day counted from today; with a prefix its parts are named groups."""
    parts = {
        "day": r"\d{1,2}",
        "month": "|".join(table["months"]),
        "year": r"\d{4}",
        "iso": r"\d{4}-\d\d-\d\d",
        "n": r"\d+",
        "weekday": "|".join(table["weekdays"]),
    }
    for name, pattern in parts.items():
        group = f"(?P<{name}>{pattern})" if prefix else f"(?:{pattern})"
        escaped = escaped.replace(rf"\{{{name}\}}", group)
    return escaped


@cache
def _readers(language: Language) -> tuple[tuple[re.Pattern[str], Reader], ...]:
    table = language.table
    months, weekdays = table["months"], table["weekdays"]

    def absolute(parts: dict[str, str], _: int) -> int:
        if "iso" in parts:
            return date.fromisoformat(parts["iso"]).toordinal()
        return date(int(parts["year"]), months.index(parts["month"]) + 1, int(parts["day"])).toordinal()

    def relative(sign: int) -> Reader:
        def day(parts: dict[str, str], today: int) -> int:
            if "weekday" in parts:
                wanted, now = weekdays.index(parts["weekday"]), date.fromordinal(today).weekday()
                return int(today + sign * ((sign * (wanted - now) - 1) % 7 + 1))
            return today + sign * int(parts.get("n", 1))

        return day

    found: list[tuple[str, Reader]] = [(one, absolute) for one in table["dates"]]
    found += [(one, relative(-1)) for one in table["ago"].values()]
    found += [(one, relative(1)) for one in table["ahead"].values()]
    return tuple((re.compile(_filled(re.escape(one), table, "named")), day) for one, day in found)


# Which slot holds the subject of an attribute, and which its value.
SUBJECTS = {"lead": "t", "boxes": "l", "door": "l", "kickoff": "j", "review": "j"} | dict.fromkeys(INSTRUCTIONS, "")
_ASKED = {"follows": "p", "hop": "t"}
VALUES = {"seat": "l", "team": "t", "lead": "w", "boxes": "n"}


def subject_slot(attribute: str) -> str:
    return SUBJECTS.get(attribute, "p")


def asked_slot(attribute: str, form: str) -> str:
    """Return the slot of whom a question is about, who is not always the subject of what answers it."""
    return _ASKED.get(form) or SUBJECTS.get(attribute, "p")


def group_of(attribute: str) -> str:
    """Return the name under which a language has the sentences of an attribute."""
    return "event" if ATTRIBUTES[attribute] == "date" else attribute


@dataclass(slots=True)
class Listener:
    """Who has been mentioned so far, as anybody who listens knows: resolves first names and nicknames."""

    firsts: dict[str, set[str]] = field(default_factory=dict)
    nicknames: dict[str, str] = field(default_factory=dict)

    def mention(self, person: str) -> bool:
        """Hear of a person; return whether it is the first time."""
        known = self.firsts.setdefault(person.partition(" ")[0], set())
        is_new = person not in known
        known.add(person)
        return is_new

    def names(self, person: str) -> list[str]:
        """Return the ways in which a person can be named without doubt, the full name first."""
        first = person.partition(" ")[0]
        short = [first] if self.firsts.get(first) == {person} else []
        return [person, *short, *(nick for nick, who in self.nicknames.items() if who == person)]

    def resolve(self, name: str) -> str | None:
        """Return the full name of a person; None if nobody known or several have it. A full name is a mention."""
        if " " in name:
            self.mention(name)
            return name
        if name in self.nicknames:
            return self.nicknames[name]
        known = self.firsts.get(name, set())
        return next(iter(known)) if len(known) == 1 else None


Spoken = Statement | WorldQuestion


def read(language: Language, text: str, today: int, listener: Listener) -> list[Spoken]:
    """Return what a message says and asks, in order.

    Text that is no sentence of the language is skipped, and so is a sentence about somebody who cannot be told from
    the message and what was mentioned before.

    Args:
        today: the day of the session, from which days are counted.
        listener: knows who was mentioned before, and learns.
    """
    found: list[Spoken] = []
    index = _by_word(language)
    candidates = [one for word in ("", *dict.fromkeys(_FREE.findall(text))) for one in index.get(word, ())]
    position, last = 0, None
    while position < len(text):
        matches = [(m, one) for one in candidates if (m := one.pattern.match(text, position))]
        if not matches:
            position = _next_sentence(text, position)
            continue
        match, sentence = max(matches, key=lambda pair: pair[0].end())
        if sentence.kind != "filler":
            try:
                spoken = _spoken(language, sentence, match.groupdict(), today, listener, last)
            except ValueError:  # a memory may write a date that is in no calendar
                spoken = None
            found += () if spoken is None else (spoken,)
            last = spoken if isinstance(spoken, Statement) else None
        position = match.end() + 1
    return found


def sentence_starts(language: Language, text: str, most: int) -> Iterator[int]:
    """Yield where sentences of the language begin that say something, within the first characters of a text."""
    index = _by_word(language)
    candidates = [one for word in ("", *dict.fromkeys(_FREE.findall(text))) for one in index.get(word, ())]
    spoken = [one for one in candidates if one.kind != "filler"]
    for place in _START.finditer(text, 0, most):
        if any(one.pattern.match(text, place.start()) for one in spoken):
            yield place.start()


@cache
def _by_word(language: Language) -> Mapping[str, Sequence[Sentence]]:
    """Return the sentences by the rarest of their words; those without a word under the empty one."""
    shared = Counter(word for one in language.sentences for word in one.words)
    found: dict[str, list[Sentence]] = {}
    for one in language.sentences:
        found.setdefault(min(one.words, key=lambda word: (shared[word], word), default=""), []).append(one)
    return found


def _next_sentence(text: str, position: int) -> int:
    ends = [end for mark in (". ", "? ", "! ", "\n") if (end := text.find(mark, position)) >= 0]
    return min(ends) + 1 + (text[min(ends)] != "\n") if ends else len(text)


def _spoken(
    language: Language,
    sentence: Sentence,
    slots: dict[str, str],
    today: int,
    listener: Listener,
    last: Statement | None,
) -> Spoken | None:
    """Return what a sentence says or asks; None if it is about somebody unknown."""
    for slot in slots.keys() & {"p", "w"}:
        person = listener.resolve(slots[slot])
        if person is None:
            return None
        slots[slot] = person
    if sentence.kind == "again":
        return last and Statement(last.op, last.attribute, slots["p"], slots["v"])
    if sentence.level == PRONOUN:
        if last is None or subject_slot(last.attribute) != "p":
            return None
        slots["p"] = last.subject
    attribute = sentence.attribute
    if attribute == "event":
        attribute = next(
            name
            for name, forms in language.table["events"].items()
            if all(forms[s] == slots.get(s, forms[s]) for s in forms)
        )
    is_question = sentence.kind == "question"
    subject = slots.get(asked_slot(attribute, sentence.op) if is_question else subject_slot(attribute), USER)
    if is_question:
        return WorldQuestion(sentence.op, attribute, subject, _other(language, sentence, slots, today))
    return Statement(sentence.op, attribute, subject, _value(language, sentence, attribute, slots, today, listener))  # type: ignore[arg-type]


def _other(language: Language, sentence: Sentence, slots: Mapping[str, str], today: int) -> Value:
    if sentence.op == "as_of":
        return language.day_of(slots["d"], today)
    return slots.get("v") if sentence.op == "member" else slots.get("k")


def _value(
    language: Language, sentence: Sentence, attribute: str, slots: Mapping[str, str], today: int, listener: Listener
) -> Value:
    if sentence.op == "forget":
        return None
    if ATTRIBUTES[attribute] == "date":
        said = next(slots[slot] for slot in ("d", "ago", "ahead") if slot in slots)
        return language.day_of(said, today)
    if ATTRIBUTES[attribute] == "count":
        return int(slots["n"])
    value = slots[VALUES.get(attribute, "v")]
    if attribute == "nickname":
        listener.nicknames[value] = slots["p"]
    return value


def show_answer(language: Language, question: WorldQuestion, answer: Answer) -> str:
    """Return an answer as text: a value, a list, a number, a date, or that it is unknown."""
    table = language.table
    if answer is None:
        return str(table["unknown"])
    if isinstance(answer, tuple):
        return ", ".join(answer) or str(table["none"])
    if question.form == "day" and isinstance(answer, int):
        return language.date(answer, 0)
    return str(table[answer]) if answer in ("yes", "no") else str(answer)


@cache
def ways(language: Language, attribute: str, op: str, level: int) -> tuple[Sentence, ...]:
    """Return the sentences of a statement up to a level; for PAST, COMING and PRONOUN those alone."""
    known = language.statements[group_of(attribute), op]
    return tuple(one for one in known if (one.level <= level if level <= len(LEVELS) else one.level == level))
