"""Made-up words of the words workload: names, values, and words that are neither."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

_ONSETS, _VOWELS, _MIDDLES, _ENDS = (
    "bdfghklmnprstvwz",
    "aeiou",
    ("lv", "rz", "sk", "dr", "nt", "mb", "lk", "rn"),
    "lmnrskdtz",
)
_MIX = 2_654_435_761  # prime, so that multiplying by it permutes the words of every kind


def spell_word(index: int, kind: int) -> str:
    """Return a made-up word; words of equal kind with different indexes differ, up to the number of such words.

    Kind 0 are values; first and last names, teams, places, projects and nicknames have other lengths or endings.
    """
    heads, tails, many, count = _HALVES[kind]
    left, which = divmod((index * _MIX + kind) % count, many)
    return heads[which] + tails[left]


def _joined(*parts: Iterable[str]) -> list[str]:
    return ["".join(chosen) for chosen in product(*parts)]


_SHORT = _joined(_ONSETS.upper(), _VOWELS)
_LONG = _joined(_SHORT, _ONSETS, _VOWELS)
_KINDS = (
    (_LONG, _joined(_MIDDLES, _VOWELS, _ENDS)),
    (_LONG, list(_ENDS)),
    (_SHORT, _joined(_MIDDLES, _VOWELS, _ENDS, ("er", "ow", "ay"))),
    (_SHORT, _joined(_MIDDLES, _VOWELS, "x")),
    (_SHORT, _joined(_MIDDLES, _VOWELS, "f")),
    (_SHORT, _joined(_MIDDLES, _VOWELS, "v")),
    (_SHORT, _joined(_MIDDLES, "y")),
)
_HALVES = tuple((heads, tails, len(heads), len(heads) * len(tails)) for heads, tails in _KINDS)


def spell_noise(index: int) -> str:
    """Return a made-up word that is no value of any world: it ends in a letter that values never end in."""
    letters = []
    for part in ("bdfghklmnprstvwz", "aeiou", "bdfgklmnprstvz", "aeiou", ("lv", "rz", "sk", "dr"), ("o", "a")):
        index, which = divmod(index, len(part))
        letters.append(part[which])
    return "".join(letters).capitalize()
