"""Finds labels and words in texts and measures their size; shared by the built-in memories."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from eirkit.agents.memory import MemoryUsage

_LABEL = re.compile(r"A_0*(\d+)")
_WORD = re.compile(r"[^\W_]+(?:_[^\W_]+)*")


def find_labels(text: str) -> list[str]:
    """Return the distinct labels in a text in order, without leading zeros: A_7."""
    return list(dict.fromkeys(f"A_{number}" for number in _LABEL.findall(text)))


def find_words(text: str) -> list[str]:
    """Return the words of a text in lower case, labels without leading zeros."""
    return [_LABEL.sub(r"A_\1", word).lower() for word in _WORD.findall(text)]


def usage_of_texts(texts: Collection[str]) -> MemoryUsage:
    """Return the number of texts and their bytes as the usage of a memory."""
    return MemoryUsage(len(texts), sum(len(text.encode("utf-8", "surrogatepass")) for text in texts))


def newest_first(texts: Iterable[str], limit: int) -> list[str]:
    """Return the last `limit` distinct texts, newest first."""
    return list(dict.fromkeys(reversed(list(texts))))[:limit]
