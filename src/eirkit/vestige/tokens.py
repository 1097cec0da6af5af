"""Counts the tokens of a text: exactly, with the bundled o200k_base vocabulary, or as an estimate by characters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeAlias

from eirkit.errors import MissingExtraError

Counter: TypeAlias = Callable[[str], int]

ENCODING = "o200k_base"
CHARACTERS_A_TOKEN = 4  # used by the estimate
_PIECE = 1 << 20  # characters counted at once
_SEAMS_TRIED = 1 << 6  # line ends that are tried as cut positions
_ID_BYTES = 4
_BAR, _CONTROL = "|", "<|"  # the second is the prefix of every control token, which in a log is ordinary text


class ExactCounter:
    """Counts with the vocabulary; counts of parts add up if the text is cut at `is_token_boundary`.

    Args:
        encode_flat: returns the ids of a text as bytes, and reads control tokens.
        encode_ordinary: returns the ids of a text as a list, and takes control tokens for ordinary text.
    """

    __slots__ = ("_flat", "_ordinary")

    def __init__(self, encode_flat: Callable[[str], bytes], encode_ordinary: Callable[[str], list[int]]) -> None:
        self._flat, self._ordinary = encode_flat, encode_ordinary

    def __call__(self, text: str) -> int:
        if len(text) > _PIECE:
            return sum(map(self, _pieces(text)))
        try:
            # One character is found much faster than two, and most texts have none.
            if _BAR in text and _CONTROL in text:
                return len(self._ordinary(text))
            return len(self._flat(text)) // _ID_BYTES
        except UnicodeEncodeError:
            # Logs contain lone surrogates where a tool cut a text; each counts as one replacement character.
            return self(text.encode("utf-8", "replace").decode())


@cache
def exact_counter() -> Counter:
    """Return a counter that works offline; all callers share one vocabulary."""
    try:
        from splintr import Tokenizer
    except ImportError:
        raise MissingExtraError("counting tokens", "vestige") from None
    tokenizer = Tokenizer.from_pretrained(ENCODING)
    return ExactCounter(tokenizer.encode_flat, tokenizer.encode_ordinary)


def estimating_counter() -> Counter:
    """Return a counter that divides characters by four, rounded up."""
    return lambda text: -(-len(text) // CHARACTERS_A_TOKEN)


class _Counts(dict[str, int]):
    """Tokens by text; a text that is asked for first is counted."""

    __slots__ = ("_count",)

    def __init__(self, count: Counter) -> None:
        self._count = count

    def __missing__(self, text: str) -> int:
        tokens = self[text] = self._count(text)
        return tokens


class CachedCounter:
    """Counts equal texts once; create one per run, since the cache is unbounded."""

    __slots__ = ("_adds_up", "_count", "_known")

    def __init__(self, count: Counter) -> None:
        self._count, self._adds_up = count, isinstance(count, ExactCounter)
        self._known = _Counts(count)

    def __call__(self, text: str) -> int:
        return self._known[text]

    def with_parts(self, text: str, parts: Iterable[str]) -> int:
        """Return the tokens of a text; parts of it, in order, are cached too where that is free."""
        if not self._adds_up or len(text) > _PIECE or text in self._known:
            return self(text)
        tokens = start = 0
        for part in parts:
            at = text.find(part, start)
            end = at + len(part)
            if at >= 0 and part and is_token_boundary(text, at) and is_token_boundary(text, end):
                tokens += self._count(text[start:at]) + self(part)
                start = end
        tokens += self._count(text[start:] if start else text)
        self._known[text] = tokens
        return tokens


def is_token_boundary(text: str, at: int) -> bool:
    """Return whether the text can be cut here without changing its tokens.

    Tokens of the vocabulary end with a line, except that they include blank lines and slashes at the start of the next.
    """
    if at in (0, len(text)):
        return True
    if text[at - 1] != "\n" or text[at] == "/":
        return False
    line = text[at : end if (end := text.find("\n", at)) >= 0 else len(text)]
    indent = line[: len(line) - len(line.lstrip())]
    return len(indent) < len(line) and "\r" not in indent


def _pieces(text: str) -> list[str]:
    """Split a huge text at token boundaries if it has any, so that a count holds at most about four megabytes."""
    pieces, start = [], 0
    while len(text) - start > _PIECE:
        # The piece ends at its last token boundary; if none is near, at its last line end, or at its full length.
        stop = start + _PIECE
        at = last = text.rfind("\n", start, stop) + 1
        for _ in range(_SEAMS_TRIED):
            if at <= start or is_token_boundary(text, at):
                break
            at = text.rfind("\n", start, at - 1) + 1
        end = next((place for place in (at, last) if place > start), stop)
        pieces.append(text[start:end])
        start = end
    return [*pieces, text[start:]]
