"""Recognizes line numbers and truncation notices in the outputs of file viewers.

Some viewers report any partial view as "truncated"; where it shows exactly the requested lines, nothing was cut.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from eirkit.vestige.trajectory import Call, Lines

# A word of every marker, by a part of it that is looked for first.
_ELIDED, _CLIPPED, _OMITTED = ("</elided_chars>", " elided"), ("response clipped>",), (" omitted",)
_TRUNCATED, _IN_CAPITALS, _TOO_LONG = ("runcated",), ("TRUNCATED]",), ("too long", "too large")
_NONE: tuple[str, ...] = ()
_BEFORE, _AFTER = 160, 480  # characters around a word that contain any whole marker
_KEPT = 256  # cached texts: a run's audits ask for the same texts again
_STEP = 320  # words closer than this are searched together
_N = r"[\d,]{1,15}"
_MARKS = re.compile(
    r"(?=[<\[.…OTRCI])(?:"  # first characters of all markers: one test instead of fourteen
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
_NUMBER = re.compile(r"\A\s*+\d{1,7}+(?:[\t:|→]| {1,2})\s?")  # a line number as file viewers print it
_LONGER_BEFORE = re.compile(r"[\w.+]|\w-")  # before a name in a text: it is the end of a longer name
_LONGER_AFTER = re.compile(r"[\w+]|[.-]\w")  # after it: the start of a longer name; a full stop ends a sentence


class ClipMark(Struct, frozen=True, gc=False):
    """One truncation marker in a text."""

    kind: str
    start: int
    end: int


@lru_cache(maxsize=_KEPT)
def clip_marks(text: str) -> tuple[ClipMark, ...]:
    """Return the truncation markers in a text, in order."""
    # Nearly every output ends here, so this is unrolled: a loop over the words takes twice as long. One character is
    # found ten times as fast as a word, and only two markers have none of these three.
    if not ("<" in text or "[" in text or "…" in text or "runcated" in text or "too long" in text):
        return ()
    words = (
        *(_ELIDED if "elided" in text else _NONE),
        *(_CLIPPED if "clipped" in text else _NONE),
        *(_TRUNCATED if "runcated" in text else _NONE),
        *(_IN_CAPITALS if "TRUNCATED" in text else _NONE),
        *(_OMITTED if "omitted" in text else _NONE),
        *(_TOO_LONG if "too l" in text else _NONE),
    )
    if not words:
        return ()
    return tuple(
        ClipMark(str(found.lastgroup), found.start(), found.end())
        for start, end in _neighborhoods(text, words)
        for found in _MARKS.finditer(text, start, end)
    )


def around(text: str) -> list[str]:
    """Return the pieces of a text between its truncation markers."""
    marks = clip_marks(text)
    starts, ends = [0, *(mark.end for mark in marks)], [*(mark.start for mark in marks), len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def _neighborhoods(text: str, words: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return the ranges around words, merged where they overlap; the regex is slow on a whole text."""
    places = []
    for word in words:
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


_TO_THE_END = 1 << 30
_HEADING = re.compile(
    r"\A\s{0,4}IMPORTANT: The file content has been truncated\.\n(?:Status: Showing lines (\d{1,9})-(\d{1,9})"
    r" of (\d{1,9}) total lines\.)?[^\0]{0,2000}?--- FILE CONTENT \(truncated\) ---\n"
)
_TITLE = re.compile(
    r"\A(?:Here's the result of running `cat -n` on [^\n]*\n|\[File: [^\n]*\n(?:\(\d+ more lines above\)\n)?)"
)
_NUMBERED = re.compile(r"(?m)^ {0,12}L?(\d{1,9})(?:\t|→| ?\| ?|: ?)(.*)$")
_MAPPED = re.compile(r"(?m)^ {0,5}(\d{1,9}) (?!\.\.\. eliding lines )(.*)$")


class View(Struct, frozen=True, gc=False):
    """What a viewer showed."""

    text: str  # without headings and notices
    lines: Mapping[int, str] | None  # by line number, where known
    asked: Lines | None  # None: the whole file
    picked: bool  # lines were selected by content, as in an outline of the file
    clipped: bool


class _Heading(Struct, frozen=True, gc=False):
    """The range that a heading reports, and the file's number of lines; zeros if it does not say."""

    first: int
    last: int
    total: int
    end: int  # offset of the file's own text


def view_of(call: Call) -> View:
    """Return what a call that shows one file showed of it."""
    heading, marks = _heading(call.output), cuts(call)
    asked = asked_lines(call, from_zero=heading is not None)
    text = call.output[heading.end :] if heading else _TITLE.sub("", call.output)
    text = text.partition("<system-reminder>")[0]
    outlined = "... eliding lines " in text
    lines = {int(number): line for number, line in _MAPPED.findall(text)} if outlined else _mostly_numbered(text)
    if lines is None and (not marks or (heading and len(marks) == 1)):
        first = (heading.first if heading else 0) or (asked.first if asked else 1)
        lines = dict(enumerate(text.removesuffix("\n").split("\n"), first))
    return View(text, lines or None, asked, outlined and not marks, bool(marks))


def cuts(call: Call) -> tuple[ClipMark, ...]:
    """Return the truncation markers in a call's output, except a heading over exactly the requested lines."""
    marks = clip_marks(call.output)
    if not marks or marks[0].kind != "truncated_view" or (heading := _heading(call.output)) is None:
        return marks
    asked = asked_lines(call, from_zero=True)
    whole = asked is not None and (heading.first, heading.last) == (asked.first, min(asked.last, heading.total))
    return marks[1:] if whole else marks


def asked_lines(call: Call, *, from_zero: bool = False) -> Lines | None:
    """Return the range of lines that a viewer's arguments request; `offset` may count from 0."""
    given = call.arguments.get("view_range")
    if isinstance(given, str):
        given = [int(number) for number in re.findall(r"-?\d{1,9}", given)]
    if isinstance(given, list) and len(given) == 2 and all(isinstance(number, int) for number in given):
        return Lines(max(1, given[0]), given[1] if given[1] > 0 else _TO_THE_END)
    first = _first_number(call, ("start_line", "line_start"))
    if first is None and (skipped := _first_number(call, ("offset",))) is not None:
        first = skipped + from_zero
    last, limit = _first_number(call, ("end_line", "line_end")), _first_number(call, ("limit", "head"))
    if first is None and last is None and limit is None:
        return None
    start = max(1, first or 1)
    return Lines(start, last if last is not None else start + limit - 1 if limit else _TO_THE_END)


def numbered(text: str) -> dict[int, str]:
    """Return the lines of a text that begin with their numbers."""
    return {int(number): line for number, line in _NUMBERED.findall(text)}


def untitled(text: str) -> str:
    """Return a view without the line that names the file."""
    return _TITLE.sub("", text)


def _mostly_numbered(text: str) -> dict[int, str] | None:
    found = _NUMBERED.findall(text)
    return {int(number): line for number, line in found} if 2 * len(found) > text.count("\n") else None


def _heading(output: str) -> _Heading | None:
    found = _HEADING.match(output) if "IMPORTANT: " in output[:20] else None
    if found is None:
        return None
    first, last, total = (int(number or 0) for number in found.groups())
    return _Heading(first, last, total, found.end())


def _first_number(call: Call, names: tuple[str, ...]) -> int | None:
    return next((_number(call.arguments[name]) for name in names if name in call.arguments), None)


def _number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isdigit() and len(value) < 10 else None


def names_file(text: str, path: str) -> bool:
    """Return whether a text names the file, and not one with a longer name."""
    name, start = path.rpartition("/")[2], -1
    while name and (start := text.find(name, start + 1)) >= 0:
        end = start + len(name)
        if not (_is_longer_before(text, start) or _LONGER_AFTER.match(text, end)):
            return True
    return False


def _is_longer_before(text: str, start: int) -> bool:
    return any(start >= n and _LONGER_BEFORE.fullmatch(text, start - n, start) for n in (1, 2))


def without_number(line: str) -> str:
    """Return a line without a number that a file viewer printed before it."""
    return _NUMBER.sub("", line, count=1)
