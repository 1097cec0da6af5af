"""Expands the words of a command: variables assigned in it, braces, tildes; a glob is marked, not matched.

What cannot be known from the text, such as the output of a command, becomes `UNKNOWN` inside the expanded word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from eirkit.vestige.shell.syntax import Piece, Word

UNKNOWN = "\0"
_MOST_WORDS = 64  # that one word may become
_SPECIAL = re.compile(r"[*?\[{~\\]")
_GLOB = re.compile(r"[*?\[]")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_VARIABLE = re.compile(r"\\([$`\\])|\$(\w+|[@*#?])|\$\{(\w+)(?:\[[@*]\])?(:-[^}]*)?\}")


class Glob(str):
    """An expanded word in which `*`, `?` or `[…]` still stand for names."""

    __slots__ = ()


def open_word(text: str) -> Word:
    """Return the word of an unquoted text."""
    return (Piece("open", text),) if _SPECIAL.search(text) else text


def document_word(text: str, split: bool = False) -> Word:
    """Return the word of a text in which variables stand, such as a here-document."""
    if "$" not in text and "\\" not in text:
        return text
    pieces: list[Piece] = []
    position = 0
    for found in _VARIABLE.finditer(text):
        pieces.append(Piece("plain", text[position : found.start()]))
        if found[1]:
            pieces.append(Piece("plain", found[1]))
        else:
            pieces.append(Piece("split" if split else "name", (found[2] or found[3])))
        position = found.end()
    pieces.append(Piece("plain", text[position:]))
    return tuple(piece for piece in pieces if piece.text)


def joined(words: Sequence[Word], quoted: bool = False) -> Word:
    """Return one word made of several; of none, a word that nobody can know."""
    if not words:
        return (Piece("unknown"),)
    pieces: list[Piece] = []
    for word in words:
        if isinstance(word, str):
            pieces.append(Piece("plain", word))
        else:
            pieces.extend(word)
    if all(piece.kind == "plain" for piece in pieces):
        return "".join(piece.text for piece in pieces)
    # `{a,b}` arrives in parts, none of which would expand alone.
    if not quoted and any(piece.kind == "open" for piece in pieces):
        pieces = [Piece("open", piece.text) if _is_bare(piece) else piece for piece in pieces]
    return tuple(pieces)


def _is_bare(piece: Piece) -> bool:
    return piece.kind == "plain" and not _SPECIAL.search(piece.text) and " " not in piece.text


def expand(words: Iterable[Word], variables: Mapping[str, str]) -> list[str]:
    """Return the arguments that words become."""
    arguments: list[str] = []
    for word in words:
        if isinstance(word, str):
            arguments.append(word)
        else:
            arguments.extend(_expand_one(word, variables))
    return arguments


def expand_text(word: Word, variables: Mapping[str, str], unknown: str = UNKNOWN) -> str:
    """Return the one text that a word becomes where it is not split, as in an assignment or a here-document."""
    if isinstance(word, str):
        return word
    parts = []
    for piece in word:
        if piece.kind in ("name", "split"):
            parts.append(variables.get(piece.text, unknown or f"${piece.text}"))
        elif piece.kind == "open":
            parts.append(_ESCAPE.sub(r"\1", piece.text))
        else:
            parts.append(unknown if piece.kind == "unknown" else piece.text)
    return "".join(parts)


def _expand_one(word: tuple[Piece, ...], variables: Mapping[str, str]) -> list[str]:
    if len(word) == 1 and word[0].kind == "split":
        value = variables.get(word[0].text, UNKNOWN)
        return [_marked(part, part) for part in value.split()[:_MOST_WORDS]]
    if len(word) == 1 and word[0].kind == "name" and word[0].text == "@":
        return variables.get("@", UNKNOWN).split()[:_MOST_WORDS]
    text, pattern = "", ""
    for piece in word:
        if piece.kind == "open":
            text, pattern = text + piece.text, pattern + piece.text
        elif piece.kind in ("name", "split"):
            value = variables.get(piece.text, UNKNOWN)
            text, pattern = text + value, pattern + (value if piece.kind == "split" else "")
        else:
            text += UNKNOWN if piece.kind == "unknown" else piece.text
    return [_marked(one, pattern) for one in _braces(text)] if "{" in pattern else [_marked(text, pattern)]


def _marked(text: str, pattern: str) -> str:
    if "\\" in pattern:
        return _ESCAPE.sub(r"\1", text)
    return Glob(text) if _GLOB.search(pattern) else text


def _braces(text: str) -> list[str]:
    done: list[str] = []
    waiting = [text]
    while waiting and len(done) + len(waiting) <= _MOST_WORDS:
        current = waiting.pop(0)
        found = _BRACES.search(current)
        if found is None:
            done.append(current)
        else:
            head, tail = current[: found.start()], current[found.end() :]
            waiting[:0] = [head + part + tail for part in found[1].split(",")[:_MOST_WORDS]]
    return done + waiting
