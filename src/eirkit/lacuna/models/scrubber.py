"""Decides what is a secret, and removes it from everything that is written or shown.

Lone surrogates are removed too, because UTF-8 cannot encode them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

HIDDEN = "[key]"
SHORTEST_SECRET = 8  # characters; shorter strings may occur in ordinary text
LONGEST_VALUE = 9  # digits of a value; longer numbers do not occur in answers
SHORTEST_DOUBT = 4  # characters; shorter values, such as "1" or "no", are flags
DEEPEST_VALUE = 32  # levels of nesting
LONGEST_EXCERPT = 240  # characters of foreign text in a message

_SECRET_WORDS = {
    *("KEY", "KEYS", "APIKEY", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS"),
    *("PWD", "CREDENTIAL", "CREDENTIALS", "AUTH", "AUTHORIZATION", "BEARER", "COOKIE", "PAT", "PRIVATE", "SIGNATURE"),
}  # fmt: skip
_SECRET_ENDINGS = ("KEY", "TOKEN", "SECRET", "PASSWORD")  # of names written as one word, such as PGPASSWORD
_PLAIN = {"PWD", "OLDPWD"}  # every shell sets them
_PLACEHOLDERS = {"none", "null", "true", "false", "empty", "dummy", "unset", "default", "test", "auto"}
_IN_URL = re.compile(r"://[^/@\s:]*:([^/@\s]+)@")  # the password of user:password@host


def names_secret(name: str) -> bool:
    """True if the name of a variable contains a word for secrets."""
    upper = name.upper()
    words = set(re.split(r"[^A-Z0-9]+", upper))
    return upper not in _PLAIN and (bool(words & _SECRET_WORDS) or upper.endswith(_SECRET_ENDINGS))


@dataclass(frozen=True, slots=True)
class Scrubber:
    """Replaces known secrets.

    A secret that cannot occur in an answer is replaced everywhere. One that could, because it is short or looks like a
    number, is replaced in messages only, so that replies are not altered.
    """

    secrets: tuple[str, ...] = ()  # longest first, so that no part of one survives
    doubtful: tuple[str, ...] = ()

    @classmethod
    def knowing(cls, *secrets: str | None) -> Scrubber:
        """Return a scrubber for these secrets; placeholders for "no key" are ignored."""
        real = {s for s in secrets if s and len(s) >= SHORTEST_DOUBT and s.lower() not in _PLACEHOLDERS}
        certain = {s for s in real if len(s) > LONGEST_VALUE or (len(s) >= SHORTEST_SECRET and not s.isdigit())}
        return cls(_longest_first(certain), _longest_first(real - certain))

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Scrubber:
        """Return a scrubber for all variables whose names denote secrets, and for passwords in URLs."""
        named = (value for name, value in environment.items() if names_secret(name))
        return cls.knowing(*named, *(found for value in environment.values() for found in _IN_URL.findall(value)))

    def also(self, *secrets: str | None) -> Scrubber:
        """Return a scrubber with additional secrets."""
        return Scrubber.knowing(*self.secrets, *self.doubtful, *secrets)

    def text(self, text: str) -> str:
        """Return the text without secrets and without lone surrogates."""
        for secret in self.secrets:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")

    def value(self, value: Any, depth: int = DEEPEST_VALUE) -> Any:
        """Return a JSON value with every text in it scrubbed, keys included.

        Raises:
            RecursionError: it is nested so deeply that writing it could fail.
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
        """Return a short printable line of third-party text for a message or a terminal."""
        clean = self.text(text)  # before cutting: half a key must not survive the cut
        for secret in self.doubtful:
            clean = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", HIDDEN, clean)
        line = " ".join("".join(c if c.isprintable() else " " for c in clean).split())
        return line if len(line) <= LONGEST_EXCERPT else f"{line[:LONGEST_EXCERPT]}…"


def _longest_first(secrets: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(secrets, key=lambda s: (-len(s), s)))
