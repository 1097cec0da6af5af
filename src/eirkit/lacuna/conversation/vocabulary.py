"""Names and values of worlds: lists that ship with the package, and pairs of phrases of a language.

Names of people, places, companies, teams and projects are the same in every language (`names/*.txt`). A value such as
"mint tea with honey" is a pair from two lists of the language's file. Every kind of value has more values than the 4096
that a fact may have, and no value occurs in another as whole words, since all of a kind have the same form.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from math import gcd
from pathlib import Path
from typing import Any

# Prime, so that multiplying by it permutes the numbers of the values of every kind: those of one fact are spread.
_MIX = 2_654_435_761
WORD = "[A-Z][a-z]+"
# Which kind of value an attribute has; those of other attributes are names or numbers.
KINDS = {
    "employer": "company", "desk": "desk", "tea": "tea", "phone": "phone", "allergies": "food", "door": "door",
    "signature": "phrase", "opening": "phrase", "address": "phrase",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PairValues:
    """Values that are pairs of phrases in a form such as "{a} tea with {b}"."""

    form: str
    firsts: Sequence[str]
    seconds: Sequence[str]
    short_form: str = ""  # in which a value may be given where no other of the world begins so
    size: int = field(init=False)  # a field like the parts of the form, since worlds ask for them at every value
    before: str = field(init=False)
    between: str = field(init=False)
    after: str = field(init=False)

    def __post_init__(self) -> None:
        before, _, rest = self.form.partition("{a}")
        between, _, after = rest.partition("{b}")
        computed = {"size": len(self.firsts) * len(self.seconds), "before": before, "between": between, "after": after}
        for name, value in computed.items():
            object.__setattr__(self, name, value)

    def value(self, number: int) -> str:
        """Return the value with a number; different numbers below the size have different values."""
        first, second = divmod(number * _MIX % self.size, len(self.seconds))
        return f"{self.before}{self.firsts[first]}{self.between}{self.seconds[second]}{self.after}"

    def short(self, value: str) -> str:
        """Return the short form of a value, "mint tea" for "mint tea with honey"; the value itself if it has none."""
        return self.short_form.replace("{a}", value.partition(self.between)[0]) or value

    def pattern(self) -> str:
        """Return the pattern of a value."""
        form = re.escape(self.form)
        return form.replace(r"\{a\}", _phrase(self.firsts)).replace(r"\{b\}", _phrase(self.seconds))


def _phrase(phrases: Sequence[str]) -> str:
    """Return the pattern of any phrase of a list; of a single word where all are one, since that is matched faster."""
    if any(" " in phrase for phrase in phrases):
        return f"(?:{'|'.join(map(re.escape, phrases))})"
    if all(phrase.isdigit() for phrase in phrases):
        return r"\d+"
    return WORD if all(re.fullmatch(WORD, phrase) for phrase in phrases) else r"[\w'-]+"


@dataclass(frozen=True, slots=True)
class Desks:
    """Numbers of desks, above every number of boxes and unlike the year of any date."""

    numbers: Sequence[int]

    @property
    def size(self) -> int:
        return len(self.numbers)

    def value(self, number: int) -> str:
        return str(self.numbers[number * _MIX % len(self.numbers)])

    def pattern(self) -> str:
        return r"\d{4}"


class Phones:
    """Telephone numbers, the last six digits of which differ."""

    size = 900_000

    def value(self, number: int) -> str:
        figure = number * _MIX % self.size
        return f"0{121 + figure * 7919 % 857}-{100_000 + figure}"

    def pattern(self) -> str:
        return r"0\d{3}-\d{6}"


Values = PairValues | Desks | Phones


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The values of one language, by kind."""

    kinds: Mapping[str, Values]

    def of(self, attribute: str) -> Values:
        return self.kinds[KINDS[attribute]]

    def short(self, attribute: str, value: str) -> str:
        """Return the short form of a value; the value itself if it has none."""
        values = self.kinds.get(KINDS.get(attribute, ""))
        return values.short(value) if isinstance(values, PairValues) else value


@cache
def names(kind: str) -> tuple[str, ...]:
    """Return the names of a kind: women, men, surnames, places, companies, sectors, teams, projects, nicknames."""
    return tuple((files(__package__) / "names" / f"{kind}.txt").read_text("utf-8").split())


@cache
def near_names() -> tuple[tuple[str, str], ...]:
    """Return pairs of first names that are easily confused, such as Marta and Martha; no other list has them."""
    lines = (files(__package__) / "names" / "near.txt").read_text("utf-8").splitlines()
    return tuple((one, other) for _, one, other in map(str.split, lines))


@cache
def women() -> frozenset[str]:
    """Return the first names of women."""
    lines = (files(__package__) / "names" / "near.txt").read_text("utf-8").splitlines()
    near = (name for line in lines if line.startswith("w ") for name in line.split()[1:])
    return frozenset((*names("women"), *near))


def scattered(items: Sequence[Any], count: int, start: int, stride: int) -> list[Any]:
    """Return items of a list, all different if there are enough, from one at `start` on in strides."""
    size = len(items)
    stride = 1 + stride % size
    while gcd(stride, size) > 1:
        stride += 1
    return [items[(start + number * stride) % size] for number in range(count)]


@cache
def read_table(name: str) -> Mapping[str, Any]:
    """Return the table of a built-in language by its name, or of the one in a TOML file."""
    source = Path(name) if name.endswith(".toml") else files(__package__) / f"{Path(name).name}.toml"
    return tomllib.loads(source.read_text("utf-8"))


def vocabulary_of(table: Mapping[str, Any]) -> Vocabulary:
    """Return the vocabulary of a language from its table."""
    desks = Desks([number for number in range(1100, 10_000) if not 1900 <= number < 2100])
    company = PairValues("{a} {b}", names("companies"), names("sectors"), "{a}")
    pairs = {kind: _pairs(given) for kind, given in table["values"].items()}
    return Vocabulary({"company": company, "desk": desks, "phone": Phones(), **pairs})


def _pairs(given: Mapping[str, Any]) -> PairValues:
    seconds = given["b"]
    if isinstance(seconds, int):
        seconds = [str(number) for number in range(2, 2 + seconds)]
    return PairValues(given["form"], given["a"], seconds, given.get("short", ""))


@cache
def default_vocabulary() -> Vocabulary:
    """Return the vocabulary of English."""
    return vocabulary_of(read_table("english"))
