"""Compares what was shown of files with other texts, line by line, and finds the names of files in a text."""

from __future__ import annotations

import re
from collections.abc import Container

from eirkit.logs.trajectory import FileRead, Turn

DISTINCTIVE_CHARACTERS = 8  # shorter lines, such as `else:`, occur in too many files to identify one
_NUMBER = re.compile(r"\A\s*+\d{1,7}+(?:[\t:|→]| {1,2})\s?")  # a line number as file viewers print it
_LONGER_BEFORE = re.compile(r"[\w.+]|\w-")  # before a name in a text: it is the end of a longer name
_LONGER_AFTER = re.compile(r"[\w+]|[.-]\w")  # after it: the start of a longer name; a full stop ends a sentence


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


def note_lines(turn: Turn, wanted: Container[str], seen: dict[str, set[str]]) -> None:
    """Record what the agent saw of each path's current version; an edit keeps most of it, any other write none."""
    for read in turn.reads:
        if read.path in wanted and not read.rewritten:
            seen.setdefault(read.path, set()).update(shown_lines(read))
    for write in turn.writes:
        if write.path in wanted:
            if write.kind != "edit":
                seen[write.path] = set()
            text = write.content if write.content is not None else write.added
            seen.setdefault(write.path, set()).update(map(normalized_line, (text or "").splitlines()))
    for read in turn.reads:
        if read.rewritten and read.path in wanted:
            seen.setdefault(read.path, set()).update(shown_lines(read))


def shown_lines(read: FileRead) -> set[str]:
    """Return the normalized lines that a read showed."""
    shown = read.lines.values() if read.lines is not None else (read.content or "").splitlines()
    return set(map(normalized_line, shown))


def text_lines(text: str) -> set[str]:
    """Return the normalized lines of a text, each also without a line number that a file viewer printed before it."""
    lines = text.splitlines()
    return {normalized_line(form) for line in lines for form in (line, _NUMBER.sub("", line, count=1))}


def share_kept(seen: set[str], kept: set[str]) -> float:
    """Return the share of a text's distinctive lines that another text contains."""
    telling = set(filter(is_distinctive, seen))
    return len(telling & kept) / len(telling) if telling else 0.0


def is_distinctive(line: str) -> bool:
    """Return whether a line is long enough to identify the text that it comes from."""
    return len(line) >= DISTINCTIVE_CHARACTERS


def normalized_line(line: str) -> str:
    """Return a line with its white space normalized, for comparison."""
    return " ".join(line.split())
