"""Decides whether a record is in a text that an agent or a memory wrote.

A record is *present* if in one line, sentence or JSON object its values come first of the numbers after its label, and
no other number there is as long. Otherwise it is *uncertain* if its values occur without being those of another label,
or if digits that are no plain number (12-34, 0x2A) come first after its label; else it is *absent*, and a number that
comes first after its label is *stated*.

Numbers before all labels belong to the next one if none comes after it. A line with a label and no number goes on in
the line below it. Words are not read: a value in number words is absent, and "A_7 is not 42" has 42. Digits of every
script count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple
from unicodedata import category, decimal

from msgspec import Struct

from eirkit.lacuna.memories.validity import split_ended
from eirkit.lacuna.tasks.standing import UNTIL
from eirkit.lacuna.tasks.task import Payload

_CANONICAL = re.compile(r"A_([0-9]{1,6}) = ([0-9]{1,20}(?: [0-9]{1,20})*)")
_TOKEN = re.compile(
    r"(?<![^\W_])(?:(?:[Aa]\\?_|A-?)[\[({]?0*(?P<label>[0-9]{1,6})[\])}]?(?!_?[^\W_])"
    r"|(?i:steps? ?#?|t ?= ?)0*(?P<step>[0-9]{1,6})(?![^\W_])"
    r"|(?<![-−])(?P<number>[0-9]{1,3}(?:[,_'’\u00a0\u2009\u202f][0-9]{3})+|[0-9]{1,20})(?!_?[^\W_]|[-.:/+][0-9]|%)"
    r"|(?P<other>[^\W_0-9]*+[0-9]\w*+(?:[-.:/+][0-9]\w*+)*+))"  # 42pts, 0x2A, 4.2e3, dates, identifiers
    r"|(?P<end>(?<![,\[({:])\n|[.!?;](?=\s|$)|\})"  # a line goes on after a comma, a colon or an open bracket
)
_LABEL = r"(?:[Aa]\\?_|A-?)[\[({]?\d"
_TIMED = re.compile(rf"{_LABEL}(?:(?!{_LABEL}).)*?{UNTIL}0*(\d{{1,6}})")  # one record and its last step
_SEPARATOR = re.compile(r"[^0-9]")
_IN_LISTS = frozenset(" \t,;|&\"'`*[]()")  # what stands between the labels of a list
Values = Mapping[int, Payload]


class Statement(Struct, frozen=True, gc=False):
    """The numbers that belong to one label in a line, sentence or JSON object."""

    numbers: tuple[int, ...]
    written: tuple[str, ...]  # the same as in the text
    plain: bool = True  # a number stands first, not 12-34 or 0x2A

    def has(self, values: Payload) -> bool:
        """True if it states these values."""
        width = len(values)
        if self.numbers[:width] == values:
            shortest = min(map(len, self.written[:width]))
            others = zip(self.numbers[width:], self.written[width:], strict=True)
            return all(number in values or len(written) < shortest for number, written in others)
        return width > 1 and self._ungrouped() == values

    def may_have(self, values: Payload, free: frozenset[int]) -> bool:
        """True if these values may be meant: they are among other numbers, or in another form than a plain number."""
        digits = _SEPARATOR.sub("", "".join(self.written)).lstrip("0")
        return (
            not self.plain
            or free.union(self.numbers, self._ungrouped()).issuperset(values)
            or digits == "".join(map(str, values)).lstrip("0")  # 1 234
        )

    def _ungrouped(self) -> Payload:
        """Return the numbers, with 042,051 read as two."""
        return tuple([int(part) for number in self.written for part in _SEPARATOR.split(number)])


Statements = Mapping[int, tuple[Statement, ...]]  # by label


class Reading(Struct, frozen=True, gc=False):
    """What one text has."""

    statements: Statements
    loose: frozenset[int] = frozenset()  # numbers that belong to no label
    ended: Statements = {}  # in lines marked as ended
    longest: int = 1  # numbers of a statement

    def free(self, width: int) -> frozenset[int]:
        """Return the numbers that are not clearly the value of a label; a value has `width` numbers."""
        if self.longest <= width:
            return self.loose
        every = [statement.numbers for about in self.statements.values() for statement in about]
        return self.loose.union(*[{*numbers[width:]}.difference(numbers[:width]) for numbers in every])

    def may_hold(self, t: int, values: Payload) -> bool:
        """True if it has values that may be meant for step t."""
        free = self.free(len(values))
        about = (*self.statements.get(t, ()), *self.ended.get(t, ()))
        return free.issuperset(values) or any(statement.may_have(values, free) for statement in about)


@dataclass(frozen=True, slots=True)
class Recognition:
    """Which records are at hand; records that are in neither set are absent."""

    present: frozenset[int]
    uncertain: frozenset[int] = frozenset()
    stated: Mapping[int, tuple[str, ...]] = field(default_factory=dict)  # digits in place of the right ones


def recognize(
    texts: Iterable[str], records: Values, *, best_first: bool = False, now: int | None = None
) -> Recognition:
    """Return which records the texts hold.

    Args:
        records: the right values by step.
        now: the current step; what texts say of records whose time was over before is left out.
        best_first: of several texts about one label the first counts, as for the passages of a search; otherwise the
            last, as for notes, which are corrected by later ones.
    """
    readings = [read_text(text if now is None else holding(text, now)) for text in texts]
    deciding: dict[int, tuple[Statement, ...]] = {}  # what the text that counts states, by label
    for reading in reversed(readings) if best_first else readings:
        deciding.update(reading.statements)
    present = frozenset([t for t, stated in deciding.items() if t in records and _all_have(stated, records[t])])
    wrong = [t for t in deciding if t in records and t not in present]
    width = len(next(iter(records.values()), ()))  # of every record of a task
    if not wrong and not any([one.loose or one.ended or one.longest > width for one in readings]):  # noqa: C419 - faster
        return Recognition(present)
    free = frozenset().union(*[reading.free(width) for reading in readings])
    uncertain = [
        t
        for t, values in records.items()
        if t not in present and (free.issuperset(values) or any(reading.may_hold(t, values) for reading in readings))
    ]
    stated = {}
    for t in wrong:  # a text that may have the right value as well does not state a wrong one
        source = next(reading for reading in readings if reading.statements.get(t) is deciding[t])
        if not source.may_hold(t, records[t]):
            digits = [_SEPARATOR.sub("", number) for number in deciding[t][0].written]
            stated[t] = tuple(digits[: len(records[t])])
    return Recognition(present, frozenset(uncertain), stated)


def holding(text: str, now: int) -> str:
    """Return a text without the records of which it says that their time is over."""
    if UNTIL not in text:
        return text
    return _TIMED.sub(lambda found: found[0] if int(found[1]) >= now else "", text)


def other_values(texts: Iterable[str], t: int, values: Payload, digits: int, now: int) -> tuple[str, ...] | None:
    """Return the digits of another value that texts state for a record beside the right one; None if they do not.

    Only a number as long as the values of records counts, since others may be ranks or scores.
    """
    stated = [one for text in texts for one in read_text(holding(text, now)).statements.get(t, ())]
    if not any(one.has(values) for one in stated):
        return None
    others = [one.written for one in stated if one.plain and len(one.numbers) == len(values) and one.numbers != values]
    return next((written for written in others if all(len(number) == digits for number in written)), None)


def _all_have(stated: tuple[Statement, ...], values: Payload) -> bool:
    if len(stated) == 1 and stated[0].numbers == values:
        return True  # fast path: a record as it is shown
    return all(statement.has(values) for statement in stated)


def records_in(text: str, records: Values) -> frozenset[int]:
    """Return the steps whose record one text holds."""
    return recognize((text,), records).present


@lru_cache(maxsize=1 << 12)  # notes and passages are shown again and again
def read_text(text: str) -> Reading:
    """Return what a text states."""
    if canonical := _CANONICAL.fullmatch(text):
        written = tuple(canonical[2].split())
        statement = Statement(tuple(map(int, written)), written)
        return Reading({int(canonical[1]): (statement,)}, longest=len(written))
    valid, ended = split_ended(plain_digits(text))
    statements, loose = _read(valid)
    longest = max([len(one.numbers) for about in statements.values() for one in about], default=0)
    return Reading(statements, loose, _read(ended)[0] if ended else {}, longest)


def plain_digits(text: str) -> str:
    """Return a text with digits of other scripts in ASCII, without characters that are not seen."""
    text = text.replace("{,}", ",")  # how TeX writes the comma in 1,234
    if text.isascii():
        return text
    visible = [c for c in text if category(c) != "Cf"]
    ascii_signs = [chr(ord(c) - 0xFEE0) if "\uff01" <= c <= "\uff5e" else c for c in visible]  # full-width ones
    return "".join([str(decimal(c)) if c.isdecimal() else c for c in ascii_signs])


class _Token(NamedTuple):
    label: int | None
    written: str  # a number; empty for a label and for digits that are no plain number
    gap: str  # the text before it, back to the token before


def _read(text: str) -> tuple[Statements, frozenset[int]]:
    """Return the statements of a text, and the numbers that belong to no label."""
    statements: dict[int, tuple[Statement, ...]] = {}
    loose: set[int] = set()
    above: list[_Token] = []  # labels of a line that goes on in this one
    for tokens, rest in _units(text):
        labels = [token for token in tokens if token.label is not None]
        if len(labels) == len(tokens):
            if tokens or any(map(str.isalnum, rest)):
                above = tokens if rest.endswith("\n") else []
            continue
        for owners, items in _groups(tokens if labels else [*above, *tokens]):
            written = [item.written for item in items if item.written]
            numbers = [int(_SEPARATOR.sub("", number)) for number in written]
            width, left_over = divmod(len(numbers), len(owners)) if owners else (0, 1)
            if left_over or (len(owners) > 1 and not width):
                loose.update(numbers)
                continue
            for i, label in enumerate(owners):
                part = slice(i * width, (i + 1) * width)
                statement = Statement(tuple(numbers[part]), tuple(written[part]), bool(items[0].written))
                statements[label] = (*statements.get(label, ()), statement)
        above = []
    return statements, frozenset(loose)


def _groups(tokens: list[_Token]) -> Iterator[tuple[list[int], list[_Token]]]:
    """Yield numbers with the labels that they belong to: one, several in a list, or none if that is not clear."""
    groups: list[tuple[list[_Token], list[_Token]]] = [([], [])]
    for token in tokens:
        if token.label is None:
            groups[-1][1].append(token)
        elif groups[-1][1]:
            groups.append(([token], []))
        else:
            groups[-1][0].append(token)
    if not groups[0][0] and not groups[-1][1] and any(item.written for item in groups[0][1]):
        # `42 is the answer of A_7`; it is not clear how `42 is A_7 and 51 is A_8` or `1) A_7 = 42, from A_3` is meant
        items = [token for token in tokens if token.label is None]
        groups = [(groups[-1][0] if len(groups) == 2 else [], items)]
    for labels, items in groups:
        if items:
            distinct = list(dict.fromkeys([token.label for token in labels if token.label is not None]))
            is_list = all(_IN_LISTS.issuperset(token.gap) for token in labels[1:])
            yield distinct if len(distinct) == 1 or is_list else [], items


def _units(text: str) -> Iterator[tuple[list[_Token], str]]:
    """Yield the labels and numbers of each line, sentence or JSON object and the text after them, to its end."""
    matches = list(_TOKEN.finditer(text))
    named = any([match["label"] for match in matches])  # noqa: C419 - faster
    tokens: list[_Token] = []
    end = 0
    for match in matches:
        gap = text[end : match.start()]
        if match["end"]:
            yield tokens, gap + match["end"]
            tokens = []
        elif label := match["label"] or (None if named else match["step"]):
            tokens.append(_Token(int(label), "", gap))
        elif not match["step"]:
            tokens.append(_Token(None, match["number"] or "", gap))
        else:
            continue  # beside labels, `step 9` says when, not what
        end = match.end()
    yield tokens, text[end:]
