"""Texts that no longer hold: how a memory marks them, and how the mark is shown to agents and read again."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date

_UNTIL, _NO_LONGER = "(until ", "(no longer valid)"
_MARK = re.compile(r" \((?:until (\d{4}-\d\d-\d\d)|no longer valid)\)$", re.MULTILINE)


class EndedText(str):
    """A text of which a memory says that it no longer holds, as agents see it: every line ends in the mark.

    Args:
        text: what held before.
        until: the day on which it ended, as 2031-01-13; empty if it is not known.
    """

    __slots__ = ("text", "until")
    text: str
    until: str

    def __new__(cls, text: str, until: str = "") -> EndedText:
        mark = f"{_UNTIL}{date.fromisoformat(until)})" if until else _NO_LONGER
        made = super().__new__(cls, "\n".join(f"{line} {mark}" if line else "" for line in text.split("\n")))
        made.text, made.until = text, until
        return made

    def __reduce__(self) -> tuple[type[EndedText], tuple[str, str]]:
        return EndedText, (self.text, self.until)  # a copy is not marked once more


def with_text(passage: str, change: Callable[[str], str]) -> str:
    """Return a passage whose text was changed; if it has ended, so has the changed one."""
    return EndedText(change(passage.text), passage.until) if isinstance(passage, EndedText) else change(passage)


def split_passage(passage: str, characters: int) -> tuple[str, str]:
    """Return the beginning of a passage and the rest; if it has ended, both say so."""
    if len(passage) <= characters:
        return passage, ""
    if not isinstance(passage, EndedText):
        return passage[:characters], passage[characters:]
    end = max(0, characters - (len(passage) - len(passage.text)))
    return with_text(passage, lambda text: text[:end]), with_text(passage, lambda text: text[end:])


def read_mark(text: str) -> tuple[str, str | None]:
    """Return a text without marks, and its last mark: a day, an empty text if the day is unknown, None without one."""
    marks = _MARK.findall(text) if _is_marked(text) else ()
    return (_MARK.sub("", text), marks[-1]) if marks else (text, None)


def split_ended(text: str) -> tuple[str, str]:
    """Return the lines of a text that are not marked as ended, and those that are."""
    if not _is_marked(text):
        return text, ""
    lines = [(line, _MARK.search(line) is None) for line in text.split("\n")]
    return "\n".join(line for line, holds in lines if holds), "\n".join(line for line, holds in lines if not holds)


def _is_marked(text: str) -> bool:
    return _UNTIL in text or _NO_LONGER in text  # most texts are not, and patterns take longer
