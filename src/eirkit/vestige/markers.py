"""The words by which scaffolds say that they left out part of an output: a text comes in, their places go out.

The marks are strict: a file that merely speaks of truncation carries none of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_FIRST_WORDS = (
    "response clipped>",
    "</elided_chars>",
    "runcated",
    "TRUNCATED]",
    " omitted",
    " elided",
    "too long",
    "too large",
)
_BEFORE, _AFTER = 160, 480  # characters around a first word that hold the whole of any mark
_KEPT = 256  # texts whose marks are remembered: those of a run are asked for again by its audits
_STEP = 320  # first words closer to each other are looked at together
_N = r"[\d,]{1,15}"
_MARKS = re.compile(
    r"(?=[<\[.…OTRCI])(?:"  # what a mark can begin with: one look instead of fourteen
    r"(?P<response_clipped><response clipped>(?:\s{0,4}<NOTE>[^<]{0,300}</NOTE>)?)"
    r"|(?P<elided_middle><elided_chars>[^<]{0,80}</elided_chars>)"
    r"|(?P<observation>\[\.\.\. ?Observation truncated[^\]\n]{0,200}\])"
    rf"|(?P<counted>(?:\.\.\. ?|… ?)?\[(?:\.\.\. ?|… ?)?{_N} (?:more )?(?:characters|chars|lines|bytes|tokens)"
    r" (?:were )?(?:truncated|omitted|elided|clipped)[^\]\n]{0,100}\])"
    rf"|(?P<spread>…{_N} (?:tokens|chars|characters|lines) truncated…)"
    rf"|(?P<codex>\[\.\.\. (?:omitted {_N} of {_N} lines|output truncated)[^\]\n]{{0,100}}\])"
    r"|(?P<bracketed>\[(?:\.\.\.|…) ?(?:output |content )?truncated ?(?:\.\.\.|…)?[^\]\n]{0,100}\])"
    r"|(?P<capital>(?:\.\.\. ?)?\[(?:CONTENT |OUTPUT )?TRUNCATED\](?: ?\.\.\.)?)"
    r"|(?P<content>\[File content truncated[^\]\n]{0,300}\])"
    r"|(?P<note><(?:NOTE|note|warning)>[^<\n]{0,80}(?:too long|truncated)[^<]{0,400}</(?:NOTE|note|warning)>)"
    r"|(?P<abbreviated><NOTE>This file is too large to display entirely[^<]{0,300}</NOTE>)"
    r"|(?P<saved><persisted-output>\s{0,4}Output too large \([^()\n]{1,20}\)\. Full output saved to[^\n]{0,300})"
    r"|(?P<truncated_view>IMPORTANT: The file content has been truncated\.\nStatus: Showing (?:lines \d|partial))"
    r"|(?P<stated>(?m:^)(?:Output|The output|Result|Command output) (?:was |is )?(?:too long|truncated)[^\n]{0,200}))",
)


@dataclass(frozen=True, slots=True)
class ClipMark:
    """One place at which a text was cut."""

    kind: str
    start: int
    end: int


@lru_cache(maxsize=_KEPT)
def clip_marks(text: str) -> tuple[ClipMark, ...]:
    """Return the marks of clipping in a text, in order."""
    # Nearly every output ends here, and there are as many as turns: a loop over the words would cost twice as much.
    if not (
        "elided" in text
        or "clipped" in text
        or "runcated" in text
        or "TRUNCATED" in text
        or "omitted" in text
        or "too l" in text
    ):
        return ()
    return tuple(
        ClipMark(str(found.lastgroup), found.start(), found.end())
        for start, end in _neighbourhoods(text)
        for found in _MARKS.finditer(text, start, end)
    )


def _neighbourhoods(text: str) -> list[tuple[int, int]]:
    """Return the stretches around the first words, joined where they overlap; the pattern is slow on a whole text."""
    places = []
    for word in _FIRST_WORDS:
        place = text.find(word)
        while place >= 0:
            places.append(place)
            place = text.find(word, place + _STEP)
    joined: list[tuple[int, int]] = []
    for place in sorted(places):
        start, end = max(0, place - _BEFORE), place + _STEP + _AFTER
        if joined and start <= joined[-1][1]:
            start = joined.pop()[0]
        joined.append((start, end))
    return joined
