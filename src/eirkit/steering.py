"""Replaces the characters that steer a terminal, a parser or the direction of writing, in everything that is shown."""

from __future__ import annotations

import re

_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def clean(text: str) -> str:
    """Return a text with control characters replaced by the replacement character."""
    return _STEERING.sub("\ufffd", text)
