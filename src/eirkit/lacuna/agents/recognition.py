"""Reads which values a text states for which labels, in any wording, and recognises whether a record is at hand in it.

A text is divided into segments (sentences, lines, JSON objects). A number belongs to the label of its segment that
stands before it, else to the one that follows it; a segment without labels continues the one before. What is hedged,
negated or computed (`A_7 = 3 + 4`) is stated without certainty, and a number that belongs to no label is loose. Digits
of other scripts count as ours.

The value of a record is *present* if its label is stated with it. It is *uncertain* if it occurs without its label,
hedged, marked as ended, or beside another value of the same label that counts more; then nothing may be said
about its loss. Otherwise it is absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from unicodedata import decimal

from msgspec import Struct

from eirkit.lacuna.memories.validity import split_ended
from eirkit.lacuna.tasks.task import Payload

_CANONICAL = re.compile(r"A_([0-9]{1,6}) = ([0-9]{1,20}(?: [0-9]{1,20})*)")
_NUMBER = r"[0-9]{1,3}(?:[,_'’\u00a0\u2009\u202f][0-9]{3})+|[0-9]{1,20}"
_TOKEN = re.compile(
    r"(?P<label>(?<![A-Za-z0-9])(?:[Aa]\\?_|A-?)[\[({]?0*(?P<t>[0-9]{1,6})[\])}]?(?!_?[A-Za-z0-9]))"
    r"|(?P<step>(?<![A-Za-z0-9])(?i:steps? ?#?|t ?= ?)0*(?P<s>[0-9]{1,6})(?![A-Za-z0-9]))"
    r"|(?P<stamp>(?<![A-Za-z0-9])(?:[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.]+Z?)?|[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![A-Za-z0-9]))"
    rf"|(?P<number>(?<![A-Za-z0-9])(?:{_NUMBER})(?:\.(?P<fraction>[0-9]{{1,20}}))?(?![A-Za-z0-9]|\.[0-9]| ?%))"
    r"|(?P<odd>(?<![A-Za-z0-9_.])[0-9][0-9A-Za-z_.%]{0,40}+)"  # 42pts, 0x2A, 4.2e3
    r"|(?P<end>(?<![,\[({:])\n|[.!?;](?=\s|$)|\})"  # a line goes on after a comma or an open bracket
)
_SEPARATOR = re.compile(r"[^0-9]")
_LISTED = re.compile(r"(?i:and|&|[\s,;|/\"'`*()\[\]])*")  # what stands between the items of a list
_REST = r"(?:(?!->)[^\w=→⇒])*"  # no word, and no other sign of a value: a search would read the same text from each
_GIVES = re.compile(
    r"(?:=|→|->|⇒|\b(?:is|are|was|were|be|equals?|values?|answers?|results?|holds?|gives?|returns?|returned|stored))"
    rf"{_REST}$",
    re.IGNORECASE,
)
_RESULT = re.compile(rf"(?:=|→|->|⇒|\bis|\bgives){_REST}$", re.IGNORECASE)
_OPERATOR = re.compile(r"\b(?:plus|minus|times|mod|max|min|sum)\b", re.IGNORECASE)
_HEDGE = re.compile(r"\b(?:or|either|maybe|perhaps|possibly|probably|unsure|unknown|guess|if)\b", re.IGNORECASE)
_DOUBT = re.compile(
    r"(?:\b(?:not|never|about|around|approximately|roughly|than|least|most|between)\b|n't|[~≈≠!<≤≥]=?|\s>=?)"
    r"(?:(?!\s>)[^\w~≈≠!<≤≥])*$|[=:(]\s*[-−]$",
    re.IGNORECASE,
)
_SPELT = re.compile(
    r"(?:=|:|\b(?:is|was|equals))[^\w=:]*\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen"
    r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty)\b(?! of\b)"
    r"|(?:=|:|\bis)\s*(?-i:[IVXLCDM]{1,15})\b|[\u3007\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341]",
    re.IGNORECASE,
)
_JOINT = re.compile(r"[^\w=:;]{1,3}")  # between parts of one number: `1 234`, `1{,}234`, `12-34`
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
_MOST_SEGMENTS = 2  # that a label without a value waits for one
Values = Mapping[int, Payload]


class Statement(Struct, frozen=True, gc=False):
    """Numbers that a text states for one label."""

    label: int
    numbers: tuple[int, ...]  # from the stated value on; more than the value if others follow
    digits: tuple[str, ...]  # the same as written, without separators
    ungrouped: tuple[int, ...]  # the same with `1,234` read as two numbers
    from_end: bool  # the value ends the numbers, because they stand before the label
    sure: bool  # neither hedged nor computed nor shared with other labels
    near: frozenset[int]  # other numbers of the segment


@dataclass(frozen=True, slots=True)
class Wording:
    """What one text states."""

    statements: Mapping[int, tuple[Statement, ...]]  # by label
    loose: frozenset[int] = frozenset()  # numbers that belong to no label
    spelt: frozenset[int] = frozenset()  # labels whose value seems to be spelt in words, or in no plain number
    joined: frozenset[str] = frozenset()  # digits of numbers that stand side by side and may be parts of one
    ended: Mapping[int, tuple[Statement, ...]] = field(default_factory=dict)  # by label, in lines marked as ended


@dataclass(slots=True)
class _Token:
    label: int | None
    value: int | None  # of a number; None for a fraction
    text: str
    gap: str  # what stands before it, back to the token before


def plain_digits(text: str) -> str:
    """Return a text with digits of other scripts and full-width signs in ASCII, without what is not seen."""
    text = text.replace("{,}", ",")  # how TeX writes the comma in 1,234
    if text.isascii():
        return text
    return "".join([_plain(c) if c > "\u00ff" else c for c in _INVISIBLE.sub("", text)])


def _plain(c: str) -> str:
    value = decimal(c, None)
    if value is not None:
        return str(value)
    return chr(ord(c) - 0xFEE0) if "\uff01" <= c <= "\uff5e" else c


@lru_cache(maxsize=1 << 12)  # notes and passages are shown again and again
def read_wording(text: str) -> Wording:
    """Return what a text states."""
    if plain := _CANONICAL.fullmatch(text):
        digits = tuple(plain.group(2).split())
        numbers = tuple(map(int, digits))
        label = int(plain.group(1))
        said = (Statement(label, numbers, digits, numbers, False, True, frozenset()),)
        return Wording({label: said}, joined=frozenset(["".join(digits).lstrip("0")] if len(digits) > 1 else ()))
    holds, ended = split_ended(plain_digits(text))
    new, old = _Parser(holds).wording(), _Parser(ended).wording()
    return Wording(
        new.statements, new.loose | old.loose, new.spelt | old.spelt, new.joined | old.joined, old.statements
    )


def labels_in(text: str) -> frozenset[int]:
    """Return the steps whose labels a text names."""
    return frozenset(int(found.group("t")) for found in _TOKEN.finditer(text) if found.group("label"))


class _Parser:
    """Collects the statements of one text, segment by segment."""

    def __init__(self, text: str) -> None:
        self.statements: list[Statement] = []
        self.loose: set[int] = set()
        self.spelt: set[int] = set()
        self.joined: set[str] = set()
        self._waiting: list[int] = []  # labels of the last segment that had no numbers
        self._patience = 0
        for said, tokens in _segments(text):
            self._take(said, tokens)

    def wording(self) -> Wording:
        said: dict[int, tuple[Statement, ...]] = {}
        for one in self.statements:
            said[one.label] = (*said.get(one.label, ()), one)
        return Wording(said, frozenset(self.loose), frozenset(self.spelt), frozenset(self.joined))

    def _take(self, said: str, tokens: list[_Token]) -> None:
        labels = [token.label for token in tokens if token.label is not None]
        numbers = [token for token in tokens if token.value is not None]
        sure = not _HEDGE.search(said)
        if len(numbers) > 1:
            self.joined.update(_side_by_side(tokens))
        if len(labels) + len(numbers) < len(tokens):
            odd = [token for token in tokens if token.label is None and token.value is None]
            if any(_GIVES.search(one.gap) or one.gap.rstrip().endswith(":") for one in odd):
                self.spelt.update(labels)
            tokens = [token for token in tokens if token not in odd]
        if not labels:
            self._continue(numbers, sure)
        elif not numbers:
            self._waiting, self._patience = labels, _MOST_SEGMENTS
            if _SPELT.search(said):
                self.spelt.update(labels)
        else:
            self._waiting = []
            if any(_computes(one, other) for one, other in pairwise(tokens)):
                self._equation(labels, tokens)
            else:
                self._attribute(tokens, sure)

    def _continue(self, numbers: list[_Token], sure: bool) -> None:
        """Attribute a segment without labels to labels that wait for their values."""
        if self._waiting and numbers:
            self._share(self._waiting, numbers, sure)
            self._waiting = []
            return
        self.loose.update(_values(numbers))
        self._patience -= 1
        if self._patience <= 0:
            self._waiting = []

    def _equation(self, labels: list[int], tokens: list[_Token]) -> None:
        """Take the result of a computation for its first label; everything else in it is only near."""
        numbers = [token for token in tokens if token.value is not None]
        last = tokens[-1]
        self.loose.update(_values(numbers))
        if last.value is not None and _RESULT.search(last.gap):
            self.statements.append(_statement(labels[0], [last], True, numbers))

    def _attribute(self, tokens: list[_Token], sure: bool) -> None:
        """Attribute the numbers of a segment to its labels: to those before them, else to those after them."""
        first = next(i for i, token in enumerate(tokens) if token.label is not None)
        ahead = [token for token in tokens[:first] if token.value is not None]
        if ahead and tokens[-1].label is not None:
            self._from_ahead(tokens, sure)
            return
        self.loose.update(_values(ahead))
        group: list[int] = []
        numbers: list[_Token] = []
        for token in tokens[first:]:
            if token.label is None:
                numbers.append(token)
                continue
            if numbers:
                self._share(group, numbers, sure)
                group, numbers = [], []
            elif group and not _LISTED.fullmatch(token.gap):
                group = []  # `A_9 uses A_7, which is 42` says nothing of A_9; `A_9 (see A_7) is 42` does
                self.loose.update(_values([one for one in tokens if one.value is not None]))
            group.append(token.label)
        if numbers:
            self._share(group, numbers, sure)
        else:
            self._waiting, self._patience = group, _MOST_SEGMENTS

    def _from_ahead(self, tokens: list[_Token], sure: bool) -> None:
        """Attribute numbers to the label after them, as in `42 is the answer of A_7`."""
        numbers: list[_Token] = []
        for token in tokens:
            if token.label is None:
                numbers.append(token)
            elif numbers:
                given = next((i for i, one in enumerate(numbers) if i and _GIVES.search(one.gap)), None)
                chosen = numbers if given is None else numbers[given:]
                self.statements.append(_statement(token.label, chosen, sure, numbers, from_end=given is None))
                numbers = []

    def _share(self, labels: list[int], numbers: list[_Token], sure: bool) -> None:
        """Attribute numbers to the labels before them: all to a single one, else in equal parts and in order."""
        labels = list(dict.fromkeys(labels))
        if len(labels) == 1:
            given = next((i for i, one in enumerate(numbers) if _GIVES.search(one.gap)), 0)
            doubted = _DOUBT.search(numbers[given].gap) is not None
            self.statements.append(_statement(labels[0], numbers[given:], sure and not doubted, numbers))
            return
        part, rest = divmod(len(numbers), len(labels))
        if rest:
            self.loose.update(_values(numbers))
            return
        for i, label in enumerate(labels):
            self.statements.append(_statement(label, numbers[i * part : (i + 1) * part], sure, ()))


def _segments(text: str) -> Iterator[tuple[str, list[_Token]]]:
    """Yield the segments that hold a label or a number, each with its text."""
    named = any(found.group("label") for found in _TOKEN.finditer(text))
    tokens: list[_Token] = []
    start = end = 0
    for found in _TOKEN.finditer(text):
        if found.group("end"):
            if tokens:
                yield text[start : found.start()], tokens
            tokens, start, end = [], found.end(), found.end()
            continue
        gap = text[end : found.start()]
        if found.group("label"):
            tokens.append(_Token(int(found.group("t")), None, found.group(), gap))
        elif found.group("step") and not named:  # beside labels, `step 9` says when, not what
            tokens.append(_Token(int(found.group("s")), None, found.group(), gap))
        elif found.group("number") and not (found.group("fraction") or "").strip("0"):
            written = found.group("number").partition(".")[0]
            tokens.append(_Token(None, int(_SEPARATOR.sub("", written)), written, gap))
        elif found.group("number") or found.group("odd"):
            tokens.append(_Token(None, None, found.group(), gap))
        else:
            continue
        end = found.end()
    if tokens:
        yield text[start:], tokens


def _side_by_side(tokens: list[_Token]) -> Iterator[str]:
    """Yield the digits of numbers that stand side by side, without leading zeros."""
    digits: list[str] = []
    for token in tokens:
        if token.value is None or not (digits and _JOINT.fullmatch(token.gap)):
            if len(digits) > 1:
                yield "".join(digits).lstrip("0")
            digits = []
        if token.value is not None:
            digits.append(_SEPARATOR.sub("", token.text))
    if len(digits) > 1:
        yield "".join(digits).lstrip("0")


def _computes(one: _Token, other: _Token) -> bool:
    """True if an operator stands between two tokens; a dash after a label is none."""
    sign = other.gap.strip()
    return (
        sign in ("+", "*", "×", "·", "^")
        or (sign in ("-", "−", "/") and one.value is not None)
        or (_OPERATOR.search(sign) is not None)
    )


def _statement(
    label: int, chosen: Sequence[_Token], sure: bool, around: Sequence[_Token], *, from_end: bool = False
) -> Statement:
    digits = tuple(_SEPARATOR.sub("", token.text) for token in chosen)
    ungrouped = tuple(int(part) for token in chosen for part in _SEPARATOR.split(token.text))
    return Statement(label, _values(chosen), digits, ungrouped, from_end, sure, frozenset(_values(around)))


def _values(tokens: Sequence[_Token]) -> tuple[int, ...]:
    return tuple([token.value for token in tokens if token.value is not None])


@dataclass(frozen=True, slots=True)
class Recognition:
    """Which records are at hand; records that are in neither set are absent."""

    present: frozenset[int]
    uncertain: frozenset[int] = frozenset()
    stated: Mapping[int, tuple[str, ...]] = field(
        default_factory=dict
    )  # another value in place of the right one: its digits


def recognise(texts: Iterable[str], records: Values, *, best_first: bool = False) -> Recognition:
    """Return which records the texts hold.

    Args:
        records: the right values by step.
        best_first: of several texts about one label the first counts, as for the passages of a search; otherwise the
            last, as for notes, which are corrected by later ones.
    """
    wordings = [read_wording(text) for text in texts]
    deciding: dict[int, tuple[Statement, ...]] = {}  # what the text that counts states, by label
    for wording in reversed(wordings) if best_first else wordings:
        deciding.update(wording.statements)
    present = frozenset([t for t, said in deciding.items() if t in records and _is_sure(said, records[t])])
    lacking = [t for t in deciding if t in records and t not in present]
    if not lacking and not any([one.loose or one.spelt or one.ended for one in wordings]):  # noqa: C419 - faster
        return Recognition(present)
    stated = {t: digits for t in lacking if (digits := _digits(deciding[t][0], len(records[t])))}
    for wording in wordings:  # a text that has the right value as well does not state a wrong one
        for t in [t for t in stated if wording.statements.get(t) is deciding[t]]:
            if _may_hold(wording, t, records[t]):
                del stated[t]
    uncertain = _uncertain(wordings, {t: values for t, values in records.items() if t not in present})
    return Recognition(present, uncertain, stated)


def records_in(text: str, records: Values) -> frozenset[int]:
    """Return the steps whose record one text holds."""
    return recognise((text,), records).present


def _is_sure(said: tuple[Statement, ...], values: Payload) -> bool:
    """True if everything that one text states for a label is this value, without doubt."""
    if len(said) == 1 and said[0].sure and said[0].numbers == values:
        return True  # fast path: a record as it is shown
    return all(one.sure and _matches(one, values) for one in said)


def _matches(one: Statement, values: Payload) -> bool:
    width = len(values)
    if one.from_end:
        return one.numbers[-width:] == values
    return one.numbers[:width] == values or (width > 1 and one.ungrouped[:width] == values)


def _digits(one: Statement, width: int) -> tuple[str, ...]:
    return one.digits[-width:] if one.from_end else one.digits[:width]


def _uncertain(wordings: list[Wording], lacking: Values) -> frozenset[int]:
    """Return the records that are stated somewhere, though not so that they count."""
    loose = frozenset().union(*[wording.loose for wording in wordings])
    anywhere = {t for t, values in lacking.items() if loose and loose.issuperset(values)}
    held = {t for wording in wordings for t, values in lacking.items() if _may_hold(wording, t, values)}
    return frozenset(anywhere | held)


def _may_hold(wording: Wording, t: int, values: Payload) -> bool:
    """True if a text has a value that may be meant for step t, in whatever form."""
    if t in wording.spelt or (wording.loose and wording.loose.issuperset(values)):
        return True
    if wording.joined and "".join(map(str, values)) in wording.joined:
        return True
    said = (*wording.statements.get(t, ()), *wording.ended.get(t, ()))
    return any(
        _matches(one, values) or (one.near | wording.loose | {*one.ungrouped}).issuperset(values) for one in said
    )
