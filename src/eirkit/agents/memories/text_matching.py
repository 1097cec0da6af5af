"""What the built-in memories share: the labels and words in a text, and how much some texts weigh."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from eirkit.agents.memory import MemoryUsage

_LABEL = re.compile(r"A_0*(\d+)")
_WORD = re.compile(r"[^\W_]+(?:_[^\W_]+)*")


def find_labels(text: str) -> list[str]:
    """Return the labels in a text, each as A_7 whatever zeros it was written with, in order and once."""
    return list(dict.fromkeys(f"A_{number}" for number in _LABEL.findall(text)))


def find_words(text: str) -> list[str]:
    """Return the words of a text in lower case, labels as they are compared: without leading zeros."""
    return [_LABEL.sub(r"A_\1", word).lower() for word in _WORD.findall(text)]


def usage_of_texts(texts: Collection[str]) -> MemoryUsage:
    """Return how many records there are and how many bytes of text."""
    return MemoryUsage(len(texts), sum(len(text.encode("utf-8", "surrogatepass")) for text in texts))


def newest_first(texts: Iterable[str], limit: int) -> list[str]:
    """Return the last few different texts, the newest first."""
    return list(dict.fromkeys(reversed(list(texts))))[:limit]
