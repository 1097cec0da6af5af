"""Lists the files that a patch changes: unified diffs, and the `*** Begin Patch` format with its files and hunks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from eirkit.logs.trajectory import WriteKind

_HEADER = re.compile(
    r"(?m)^(?:\+\+\+ ([^\t\n]+)|--- ([^\t\n]+)|\*\*\* (Add|Update|Delete) File: ([^\n]+)|\*\*\* Move to: ([^\n]+))"
)
_KINDS: dict[str, WriteKind] = {"Add": "whole", "Update": "edit", "Delete": "delete"}


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What a patch does to one file."""

    path: str  # as named in the patch, without the first component (`-p1`)
    kind: WriteKind
    removed: str = ""
    added: str = ""


def files_in_diff(text: str, strip: int = 1) -> list[str]:
    """Return the files that a unified diff changes, creates or removes, in order."""
    found: dict[str, None] = {}
    old = ""
    for match in _HEADER.finditer(text):
        if match[2]:
            old = match[2].strip()
        elif match[1]:
            new = match[1].strip()
            name = old if new == "/dev/null" else new
            if name and name != "/dev/null":
                found[stripped(name, strip)] = None
    return list(found)


def stripped(name: str, strip: int = 1) -> str:
    """Return a name in a diff without its first components."""
    name = name.strip('"')
    if name.startswith("/"):
        return name
    parts = name.split("/")
    return "/".join(parts[strip:]) if len(parts) > strip and (strip != 1 or parts[0] in _PREFIXES) else name


_PREFIXES = ("a", "b", "i", "w", "c", "o", "old", "new", "orig")


def file_patches(text: str) -> Iterator[FilePatch]:
    """Yield the files of a `*** Begin Patch` text; a move removes one file and creates another."""
    marks = [match for match in _HEADER.finditer(text) if match[3] or match[5]]
    for index, match in enumerate(marks):
        if match[3] is None:
            continue
        path = match[4].strip()
        moved = marks[index + 1][5] if index + 1 < len(marks) else None
        body_start = marks[index + 1].end() if moved else match.end()
        after = index + 2 if moved else index + 1
        body = text[body_start : marks[after].start() if after < len(marks) else len(text)]
        removed, added = _sides(body)
        if moved:
            yield FilePatch(path, "delete")
            yield FilePatch(moved.strip(), "edit", removed, added)
        else:
            yield FilePatch(path, _KINDS[match[3]], removed, added)


def _sides(body: str) -> tuple[str, str]:
    lines = body.split("\n")
    removed = [line[1:] for line in lines if line.startswith("-")]
    added = [line[1:] for line in lines if line.startswith("+")]
    return "\n".join(removed), "\n".join(added)
