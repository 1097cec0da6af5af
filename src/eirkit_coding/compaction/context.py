"""The context of an agent as messages, and its lines with tokens and a key.

Equal lines have equal keys, however a tool printed them. Tokens are counted line by line, so that they add up: what a
selection of lines costs is the sum of its lines.

Compactors import this in environments of their own, so it needs nothing beyond the standard library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from eirkit.vestige.lines import normalized_line
from eirkit.vestige.tokens import Counter

ContextRole = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[ContextRole, ...] = get_args(ContextRole)
MESSAGE_TOKENS = 4  # of a message besides its text: role and delimiters
# What tools print before a line of a file: its number, the name and number of a search result, the mark of a diff.
_PRINTED_BEFORE = re.compile(r"\d{1,7}+(?:[:|→-] ?| )|[^\s:]{1,200}+:\d{1,7}+[:-] ?|\+ ?(?=\S)")
_MOST_MARKS = 4  # before one line, such as that of a diff of a numbered listing


@dataclass(frozen=True, slots=True)
class ContextCall:
    """A tool call of the agent."""

    id: str
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ContextMessage:
    """One message of a context."""

    role: ContextRole
    text: str = ""
    calls: tuple[ContextCall, ...] = ()  # of the agent
    call_id: str = ""  # of a tool's result: the call that it answers
    tool: str = ""  # of a tool's result: the tool
    turn: int = field(default=0, compare=False)  # the turn that it comes from; 0 if it is of no turn


def texts_of(message: ContextMessage) -> Iterator[str]:
    """Yield the texts that a message puts into the context; a call that its text contains is not counted twice."""
    if message.text:
        yield message.text
    for call in message.calls:
        yield call.tool
        for value in call.arguments.values():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            if text and text not in message.text:
                yield text


def split_opening(messages: Sequence[ContextMessage]) -> tuple[tuple[ContextMessage, ...], tuple[ContextMessage, ...]]:
    """Return the opening of a context, and the messages after it."""
    place = next((place for place, message in enumerate(messages) if message.role != "system"), len(messages))
    return tuple(messages[:place]), tuple(messages[place:])


def fault_of(messages: Sequence[Any]) -> str:
    """Return why a model's API would not accept these messages; empty if it would.

    Every result of a tool must follow the message with its call, and every call must have its result.
    """
    waiting: set[str] = set()
    for place, message in enumerate(messages, 1):
        if not isinstance(message, ContextMessage):
            return f"item {place} is a {type(message).__name__}, not a ContextMessage; return ContextMessage objects"
        if message.role not in ROLES or not isinstance(message.text, str):
            return f"message {place} has no valid role and text; use {', '.join(ROLES)} and a string"
        if message.role == "tool":
            if message.call_id not in waiting:
                return f"message {place} is a result whose call is not before it; keep a call and its result together"
            waiting.remove(message.call_id)
        elif waiting:
            return f"message {place} comes before the result of a call; keep a call and its result together"
        waiting |= {call.id for call in message.calls}
    return "the last call has no result; keep a call and its result together" if waiting else ""


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
