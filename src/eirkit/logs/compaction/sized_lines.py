"""Lines of texts with their tokens and a key under which equal lines are found, however a tool printed them.

Tokens are counted line by line, so that they add up: what a selection of lines costs is the sum of its lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from eirkit.logs.audits.lines import DISTINCTIVE_CHARACTERS, normalized_line
from eirkit.logs.compaction.context import ContextMessage, texts_of
from eirkit.logs.tokens import Counter

MESSAGE_TOKENS = 4  # of a message besides its text: role and delimiters
# What tools print before a line of a file: its number, the name and number of a search result, the mark of a diff.
_PRINTED_BEFORE = re.compile(r"\d{1,7}+(?:[:|→-] ?| )|[^\s:]{1,200}+:\d{1,7}+[:-] ?|\+ ?(?=\S)")
_MOST_MARKS = 4  # before one line, such as that of a diff of a numbered listing


class SizedLine(NamedTuple):
    """One line that is not blank."""

    key: str
    tokens: int
    text: str


def key_of(line: str) -> str:
    """Return a line without white space around and what tools print before it; equal keys are equal lines."""
    key = normalized_line(line)
    for _ in range(_MOST_MARKS):
        mark = _PRINTED_BEFORE.match(key)
        if mark is None or mark.end() == len(key):
            break
        key = key[mark.end() :].lstrip()
    return key


def identifies(key: str) -> bool:
    """Return whether a line is long enough to identify the text that it comes from."""
    return len(key) >= DISTINCTIVE_CHARACTERS


class LineCounter:
    """Splits texts into lines and counts their tokens, equal texts once; create one per run.

    Args:
        count: counts the tokens of a text.
    """

    def __init__(self, count: Counter) -> None:
        self._count = count
        self._texts: dict[str, tuple[SizedLine, ...]] = {}
        self._lines: dict[str, SizedLine] = {}
        self._tokens: dict[str, int] = {}

    def lines(self, text: str) -> tuple[SizedLine, ...]:
        """Return the lines of a text that are not blank."""
        found = self._texts.get(text)
        if found is None:
            found = tuple(self._line(line) for line in text.splitlines() if line and not line.isspace())
            self._texts[text] = found
            self._tokens[text] = sum(line.tokens for line in found)
        return found

    def tokens(self, text: str) -> int:
        """Return the tokens of a text, line by line."""
        if text not in self._tokens:
            self.lines(text)
        return self._tokens[text]

    def message_lines(self, messages: Iterable[ContextMessage]) -> Iterable[SizedLine]:
        """Yield the lines of messages in order."""
        for message in messages:
            for text in texts_of(message):
                yield from self.lines(text)

    def message_tokens(self, message: ContextMessage) -> int:
        """Return the tokens of a message, with what it takes besides its text."""
        return MESSAGE_TOKENS + sum(map(self.tokens, texts_of(message)))

    def cheapest(self, line: SizedLine) -> SizedLine:
        """Return the line as it is or without what was printed before it, whichever has fewer tokens."""
        bare = self._line(line.key)
        return bare if bare.tokens < line.tokens and bare.key == line.key else line

    def _line(self, line: str) -> SizedLine:
        known = self._lines.get(line)
        if known is None:
            known = self._lines[line] = SizedLine(key_of(line), self._count(f"{line}\n"), line)
        return known


class KnownLine(NamedTuple):
    """A line of a context, wherever and however often it stands there."""

    key: str
    tokens: int  # in the form with the fewest
    text: str  # in this form
    copies: tuple[int, ...]  # tokens of each place where it stands


def known_lines(messages: Sequence[ContextMessage], counter: LineCounter) -> dict[str, KnownLine]:
    """Return the lines of messages by key, in order of appearance."""
    places: dict[str, list[SizedLine]] = {}
    for line in counter.message_lines(messages):
        places.setdefault(line.key, []).append(line)
    found: dict[str, KnownLine] = {}
    for key, lines in places.items():
        shortest = min((counter.cheapest(lines[0]), *lines), key=lambda line: line.tokens)
        found[key] = KnownLine(key, shortest.tokens, shortest.text, tuple(line.tokens for line in lines))
    return found
