"""Scores answers about conversations by tracers: what an answer states, whatever else it says.

An answer is right if the true value occurs in it as whole words and no other value of that subject and attribute does.
Dates count in any usual form, and lists, numbers, yes or no, and which of two comes first have a small rule each. Where
no value occurs, the answer may say that it is unknown; the words for that are in the language's file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import takewhile

from eirkit.lacuna.conversation.language import AnswerWords

_TOKEN = re.compile(r"\w+|[=+−]")
_LEAST_MONTH = 3  # letters of an abbreviation
_YEAR = 4  # digits


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """What an answer is compared with.

    Texts are in the form in which the truth is shown; a date is one in ISO form.
    """

    form: str  # of the question, and "total" for a number that was counted or summed up
    truth: str
    own: Mapping[str, Collection[str]]  # every value of that subject and attribute, with the texts that mean it
    others: Callable[[], Mapping[str, Collection[str]]]  # returns values of the same attribute of others
    language: AnswerWords
    item: str = ""  # of a question whether it is among a set


def stated(key: AnswerKey, text: str) -> str:
    """Return the value that an answer states, in the form of the truth; the answer itself if it states none."""
    words = Words(text)
    rule = {
        "all": _items, "how_many": _amount, "between": _amount, "total": _total, "member": _yes_or_no,
        "first": _earlier, "day": _date,
    }.get(key.form, _value)  # fmt: skip
    found = rule(key, words)
    if found is not None:
        return found
    if is_unknown(key.language, words):
        return key.language.unknown
    named = [value for value, texts in key.others().items() if key.form != "all" and words.has_any(texts)]
    return named[0] if len(named) == 1 else text.strip().casefold()


class Words:
    """A text as its words in lower case, with the signs of arithmetic."""

    def __init__(self, text: str) -> None:
        self.text = text.casefold()
        plain = self.text.replace("’", "'")
        joined = "".join(_without_separator(plain.replace(" - ", " − ")))
        self.list: list[str] = _TOKEN.findall(joined)
        self.line = f" {' '.join(self.list)} "

    def has(self, phrase: str) -> bool:
        """True if a phrase occurs as whole words, whatever stands between them; a number also in other groups."""
        line = f" {' '.join(_TOKEN.findall(phrase.casefold()))} "
        if line in self.line:
            return True
        digits = "".join(filter(str.isdigit, phrase))
        is_grouped = len(digits) > _YEAR and not any(map(str.isalpha, phrase))
        return is_grouped and digits in "".join(word if word.isdigit() else "|" for word in self.list)

    def has_any(self, phrases: Iterable[str]) -> bool:
        return any(map(self.has, phrases))

    def index(self, phrase: str) -> list[int]:
        """Return where a single word stands."""
        return [at for at, word in enumerate(self.list) if word == phrase.casefold()]


def contains(text: str, tracer: str) -> bool:
    """True if a text has a tracer as whole words, exactly as it was said, but for capitals."""
    text, tracer = text.casefold(), tracer.casefold()
    at = text.find(tracer)
    while at >= 0:
        around = text[at - 1 : at], text[at + len(tracer) : at + len(tracer) + 1]
        if not any(sign.isalnum() for sign in around):
            return True
        at = text.find(tracer, at + 1)
    return False


def _without_separator(text: str) -> Iterable[str]:
    """Yield the characters of a text without the commas between thousands."""
    for at, character in enumerate(text):
        digits = text[at + 1 : at + 4]
        is_separator = character == "," and text[at - 1 : at].isdigit() and len(digits) == 3 and digits.isdigit()
        if not is_separator or text[at + 4 : at + 5].isdigit():
            yield character


def is_unknown(language: AnswerWords, words: Words) -> bool:
    """True if a text says that something is not known, stated, remembered …: a negation shortly before such a word."""
    if not words.list or words.has_any((language.unknown, *language.unknown_words)):
        return True
    for at, word in enumerate(words.list):
        if word in language.negations:
            near = words.list[at + 1 : at + 5]
            # That there are no known allergies means that there are none.
            says_none = word in language.none_known and near[:1] == [language.known]
            if not says_none and any(each in language.knowing for each in near):
                return True
    return False


def _value(key: AnswerKey, words: Words) -> str | None:
    found = [value for value, texts in key.own.items() if words.has_any(texts)]
    other = [value for value in found if value != key.truth]
    return (other or found)[0] if found else None


def _date(key: AnswerKey, words: Words) -> str | None:
    read = dates_in(words, key.language.months)
    days = {value: date.fromisoformat(value) for value in key.own}
    # A date may be given without its year.
    found = [value for value, day in days.items() if read & {(year, day.month, day.day) for year in (day.year, 0)}]
    other = [value for value in found if value != key.truth]
    if found:
        return (other or found)[0]
    whole = [each for each in read if all(each)]
    return date(*whole[0]).isoformat() if len(whole) == 1 else None


def dates_in(words: Words, months: Sequence[str]) -> set[tuple[int, int, int]]:
    """Return the dates in a text as year, month and day; 0 for a year that is not given.

    A date of three numbers is read in both orders, unless it has points, which the day comes first with.
    """
    numbers = [_calendar_number(word, months) for word in words.list]
    parts = [(kind, number) for kind, number in numbers if kind]
    found: set[tuple[int, int, int]] = set()
    for at in range(len(parts) - 1):
        kinds = "".join(kind for kind, _ in parts[at : at + 3])
        first, second, third = (*(number for _, number in parts[at : at + 3]), 0, 0)[:3]
        if kinds in ("dmy", "mdy"):
            found.add((third, second, first) if kinds == "dmy" else (third, first, second))
        elif kinds[:2] in ("dm", "md"):
            found.add((0, second, first) if kinds[0] == "d" else (0, first, second))
        elif kinds == "ydd" or kinds == "ymd":
            found.add((first, second, third))
        elif kinds == "ddy":
            found.add((third, second, first))
            if f"{first}.{second}." not in words.text and f"{first:02}.{second:02}." not in words.text:
                found.add((third, first, second))
    return {each for each in found if _is_date(each)}


def _calendar_number(word: str, months: Sequence[str]) -> tuple[str, int]:
    """Return whether a word is a day, a month or a year ("" if none), and its number."""
    digits = word.rstrip("stndrh") if word[:1].isdigit() else word
    if digits.isdigit():
        kind = "y" if len(digits) == _YEAR else "d" if int(digits) <= 31 else ""
        return kind, int(digits)
    named = [
        number
        for number, month in enumerate(months, 1)
        if len(word) >= _LEAST_MONTH and (month.casefold().startswith(word) or word == f"{month[:3].casefold()}t")
    ]
    return ("m", named[0]) if len(named) == 1 else ("", 0)


def _is_date(given: tuple[int, int, int]) -> bool:
    try:
        date(given[0] or 2000, given[1], given[2])
    except ValueError:
        return False
    return True


def _items(key: AnswerKey, words: Words) -> str | None:
    """Return the list that a text names; None if it names none, or has an item of nobody."""
    values = {item for item in (*key.own, *key.others()) if words.has(item)}
    if values:
        parts = words.text.replace(";", ",").replace("\n", ",").replace(f" {key.language.joining} ", ",").split(",")
        remarks = [part for part in map(Words, parts) if 0 < len(part.list) < 3 and not part.has_any(values)]
        strange = [part for part in remarks if not any(word in key.language.negations for word in part.list)]
        return None if strange else ", ".join(sorted(values))
    none = key.language.none
    is_empty = words.has(none) or any(word in key.language.negations for word in words.list)
    return none if is_empty and not is_unknown(key.language, words) else None


def _yes_or_no(key: AnswerKey, words: Words) -> str | None:
    """Return yes or no: the first that is said, else whether there is a negation beside the item."""
    yes, no = key.language.yes, key.language.no
    head = "".join(takewhile(lambda sign: sign.isalnum() or sign.isspace(), words.text)).strip()
    if head in (yes, no):
        return head
    if is_unknown(key.language, words):
        return None
    if said := [word for word in words.list if word in (yes, no)]:
        return said[0]
    if any(word in key.language.negations for word in words.list):
        return no
    return yes if words.has(key.item) else None


def _earlier(key: AnswerKey, words: Words) -> str | None:
    """Return which of two names a text says to come first; None if it does not."""
    places = sorted((at, name) for name in key.own for at in words.index(name))
    counts = {name: len(words.index(name)) for name in key.own}
    named = [name for name, count in counts.items() if count]
    if len(named) < 2:
        return named[0] if named else None
    if len(set(counts.values())) > 1:  # of one and the other, the one
        return max(named, key=lambda name: counts[name])
    if words.has(key.language.either):
        return None
    for at, word in enumerate(words.list):
        is_early, is_late = word in key.language.earlier, word in (*key.language.later, *key.language.instead)
        before = [name for place, name in places if place < at]
        after = [name for place, name in places if place > at]
        if is_early and (before or after):
            return before[-1] if before else after[0]
        if is_late and word in key.language.instead:  # one, not the other
            return before[-1] if before else after[-1]
        if is_late and (before or after):
            return after[0] if after else next(name for name in named if name != before[-1])
    return None


def _numbers(words: Words) -> list[int]:
    """Return the numbers of a text: the result of a sum alone if there is one, without its terms otherwise."""
    tokens = words.list
    if "=" in tokens:
        last = len(tokens) - tokens[::-1].index("=")
        tokens = [word for word in tokens[last:] if word.isdigit()][:1] or tokens
    signs = ("+", "−", "plus", "minus")
    terms = {near for at, word in enumerate(tokens) if word in signs for near in (at - 1, at + 1)}
    numbers = [(at, int(word)) for at, word in enumerate(tokens) if word.isdigit()]
    return [number for at, number in numbers if at not in terms] or [number for _, number in numbers]


def _total(key: AnswerKey, words: Words) -> str | None:
    """Return the number of a stock: the true one if no other count of the same stock is there."""
    numbers = list(dict.fromkeys(map(str, _numbers(words))))
    own = [number for number in numbers if number in key.own]
    other = [number for number in own if number != key.truth]
    if own:
        return (other or own)[0]
    return numbers[0] if len(numbers) == 1 else None


def _amount(key: AnswerKey, words: Words) -> str | None:
    """Return how many: the number that a text begins with, or the one before a unit, or its only one, or a word."""
    units = key.language.units
    numbers = _numbers(words)
    counted = [word for word, unit in zip(words.list, words.list[1:], strict=False) if word.isdigit() and unit in units]
    leading = words.list[:1] if words.list and words.list[0].isdigit() else []
    if numbers and "=" in words.list:
        return str(numbers[0])
    if leading or counted:
        return (counted or leading)[0]
    if len(set(numbers)) == 1:
        return str(numbers[0])
    if numbers or is_unknown(key.language, words):
        return None
    named = [number for number, name in enumerate(key.language.numbers) if words.has(name)]
    is_none = words.list[:1] == [key.language.no] or words.has(key.language.none)
    return str(named[0]) if len(named) == 1 else "0" if is_none and not named else None
