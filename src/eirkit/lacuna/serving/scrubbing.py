"""Keeps keys out of everything that is written or shown: text goes in, the same text without them comes out.

Lone halves of surrogate pairs go too, because no UTF-8 file could hold them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

HIDDEN = "[key]"
SHORTEST_SECRET = 8  # characters; a shorter one stands for no key, such as "none", and may occur in honest text
DEEPEST_VALUE = 32  # levels of nesting
LONGEST_EXCERPT = 240  # characters of foreign text in a message

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Scrubber:
    """Replaces known secrets."""

    secrets: tuple[str, ...] = ()  # longest first, so that no part of one survives

    @classmethod
    def knowing(cls, *secrets: str | None) -> Scrubber:
        """Return a scrubber for these; what could be a number or stands for no key is not taken for a secret."""
        real = {s for s in secrets if s and len(s) >= SHORTEST_SECRET and not s.isdigit()}
        return cls(tuple(sorted(real, key=lambda s: (-len(s), s))))

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Scrubber:
        """Return a scrubber for every variable whose name says that it holds a secret."""
        return cls.knowing(*(value for name, value in environment.items() if _SECRET_NAME.search(name)))

    def text(self, text: str) -> str:
        """Return the text without secrets and without lone surrogates."""
        for secret in self.secrets:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")

    def value(self, value: Any, depth: int = DEEPEST_VALUE) -> Any:
        """Return a JSON value with every text in it scrubbed, keys included.

        Raises:
            RecursionError: it is nested deeper than anything honest, so deep that writing it could fail later.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (dict, list)) and depth == 0:
            raise RecursionError("nested too deeply")
        if isinstance(value, dict):
            return {self.text(key): self.value(item, depth - 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, depth - 1) for item in value]
        return value

    def excerpt(self, text: str) -> str:
        """Return one short printable line of foreign text, fit for a message or a terminal."""
        clean = self.text(text)  # before cutting: half a key must not survive the cut
        line = " ".join("".join(c if c.isprintable() else " " for c in clean).split())
        return line if len(line) <= LONGEST_EXCERPT else f"{line[:LONGEST_EXCERPT]}…"
