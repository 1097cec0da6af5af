"""Counts the tokens of a text: exactly, with the o200k_base vocabulary that comes with the extra, or as an estimate."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from eirkit.errors import MissingExtraError

Counter: TypeAlias = Callable[[str], int]

ENCODING = "o200k_base"
CHARACTERS_A_TOKEN = 4  # of the estimate
_PIECE = 1 << 22  # characters that are counted at once


@cache
def exact_counter() -> Counter:
    """Return a counter that works offline; all callers share one vocabulary."""
    try:
        with warnings.catch_warnings():
            # The vendor's module opens its own data in a way that Python 3.11 and 3.12 call outdated.
            warnings.simplefilter("ignore", DeprecationWarning)
            from bpe_openai._bindings import tokenizer_for_encoding
    except ImportError:
        raise MissingExtraError("counting tokens", "vestige") from None
    vocabulary = tokenizer_for_encoding(ENCODING).count

    def count(text: str) -> int:
        if not text:
            return 0
        if len(text) > _PIECE:
            return sum(count(piece) for piece in _pieces(text))
        try:
            return int(vocabulary(text))
        except UnicodeEncodeError:
            # Logs hold halves of surrogate pairs where a tool cut a text; each stands for one unreadable character.
            return int(vocabulary(text.encode("utf-8", "replace").decode()))

    return count


def estimating_counter() -> Counter:
    """Return a counter that divides characters by four, rounded up."""
    return lambda text: -(-len(text) // CHARACTERS_A_TOKEN)


def remembering(count: Counter) -> Counter:
    """Return a counter that counts equal texts once; make a new one for each run, it forgets nothing."""
    known: dict[str, int] = {}

    def remembered(text: str) -> int:
        tokens = known.get(text)
        if tokens is None:
            tokens = known[text] = count(text)
        return tokens

    return remembered


def _pieces(text: str) -> list[str]:
    """Split a huge text at line ends where it has any, so that no count holds more than a few megabytes."""
    pieces, start = [], 0
    while len(text) - start > _PIECE:
        end = text.rfind("\n", start + 1, start + _PIECE) + 1 or start + _PIECE
        pieces.append(text[start:end])
        start = end
    return [*pieces, text[start:]]
