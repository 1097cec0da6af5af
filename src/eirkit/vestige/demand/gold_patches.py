"""Parses reference patches (`--gold`): the files and old lines that they change, with test files marked.

Patches are looked up by task in a folder `<task>/gold.patch`, or in JSON lines or Parquet rows with `instance_id` and
`patch`. Task names come from logs and are only compared, never joined to a path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from eirkit.errors import InputFileError
from eirkit.vestige.sources.documents import LogDocument, StoredDocument, open_document

OldLines: TypeAlias = Mapping[str, Mapping[int, str]]  # by path and number: lines that the patch deletes or replaces
_NOWHERE = "/dev/null"
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_SIMPLE_ESCAPES = dict(
    zip(
        [b"a", b"b", b"t", b"n", b"v", b"f", b"r", b'"', b"\\"],
        [b"\a", b"\b", b"\t", b"\n", b"\v", b"\f", b"\r", b'"', b"\\"],
        strict=True,
    )
)
_ESCAPE = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_PREFIXES = frozenset({"a/", "b/", "c/", "i/", "o/", "w/"})  # git's own and its mnemonic ones
_TEST_FOLDERS = frozenset({"test", "tests", "testing", "__tests__", "spec", "specs", "e2e", "testdata", "test_data"})
_TEST_NAMES = re.compile(
    r"(?:tests?|conftest|test_.*|.*_tests?)\.[a-z]+|.*_spec\.rb|.*\.(?:test|spec)\.[cm]?[jt]sx?"
    r"|.*(?:Test|Tests|TestCase|Spec)\.(?:java|kt|cs|scala|php|swift|groovy)"
)


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a patch does to one file."""

    path: str  # its new name; the old one if the patch removes it
    old_path: str | None  # its old name; None if the patch creates it
    removed: Mapping[int, str]  # old lines that are deleted or replaced, by number from 1
    additions: int  # lines
    deletions: int


@dataclass(frozen=True)
class Patch:
    """A parsed unified diff; a renamed file counts under both names."""

    changes: tuple[FileChange, ...]

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Every file that the patch touches, test files too, in the order of the patch."""
        names = (name for change in self.changes for name in (change.old_path, change.path) if name)
        return tuple(dict.fromkeys(names))

    @cached_property
    def test_files(self) -> tuple[str, ...]:
        """Those of `files` that are tests by their path."""
        return tuple(path for path in self.files if is_test_file(path))

    @cached_property
    def changed_lines(self) -> Mapping[str, Mapping[int, str]]:
        """For every file that existed before, the old lines deleted or replaced, by number from 1."""
        return {change.old_path: change.removed for change in self.changes if change.old_path}

    @property
    def additions(self) -> int:
        """Lines added."""
        return sum(change.additions for change in self.changes)

    @property
    def deletions(self) -> int:
        """Lines deleted."""
        return sum(change.deletions for change in self.changes)


def is_test_file(path: str) -> bool:
    """Return whether a path looks like a test file.

    Either a folder on the way is called test, tests, testing, spec, specs, e2e, __tests__, testdata or test_data, or
    the file is called as test runners expect: `test_x.py`, `x_test.go`, `x.test.ts`, `XTest.java`, `conftest.py`.
    """
    *folders, name = path.split("/")
    return not _TEST_FOLDERS.isdisjoint(folders) or _TEST_NAMES.fullmatch(name) is not None


def read_patch(text: str) -> Patch:
    """Return what a unified diff changes; text around it is ignored, and an incomplete hunk is read to its end."""
    found: list[_OpenChange] = []
    lines = iter(text.split("\n"))  # other separators, such as form feeds, are part of a line
    for line in lines:
        line = line.removesuffix("\r")
        if line.startswith("diff --git "):
            found.append(_OpenChange(*_names_of_header(line)))
        elif line.startswith("--- "):
            if not found or found[-1].has_old_name:
                found.append(_OpenChange(None, None))
            found[-1].old, found[-1].has_old_name = _name(line[4:]), True
        elif found:
            _take_line(found[-1], line, lines)
    return Patch(tuple(change.close() for change in found if change.is_real))


class _OpenChange:
    """A change while its lines are being read."""

    def __init__(self, old: str | None, new: str | None) -> None:
        self.old, self.new = old, new
        self.has_old_name = self.has_new_name = False  # from the lines that begin with --- and +++
        self.is_real = False  # this is a change and not text that resembles the start of one
        self.removed: dict[int, str] = {}
        self.additions = self.deletions = 0

    def close(self) -> FileChange:
        path = self.new or self.old or ""
        return FileChange(path, self.old, self.removed, self.additions, self.deletions)


def _take_line(change: _OpenChange, line: str, lines: Iterator[str]) -> None:
    if line.startswith("@@ ") and change.has_new_name:
        hunk = _HUNK.match(line)
        if hunk:
            _take_hunk(change, hunk, lines)
    elif line.startswith("+++ ") and change.has_old_name:
        change.new, change.has_new_name, change.is_real = _name(line[4:]), True, True
        _drop_prefixes(change)
    elif line.startswith(("rename from ", "copy from ")):
        change.old, change.is_real = _unquoted(line.partition(" from ")[2]), True
    elif line.startswith(("rename to ", "copy to ")):
        change.new, change.is_real = _unquoted(line.partition(" to ")[2]), True
    elif line.startswith("new file mode "):
        change.old, change.is_real = None, True
    elif line.startswith("deleted file mode "):
        change.new, change.is_real = None, True
    elif line.startswith(("Binary files ", "GIT binary patch", "old mode ", "new mode ")):
        change.is_real = True


def _take_hunk(change: _OpenChange, hunk: re.Match[str], lines: Iterator[str]) -> None:
    number = int(hunk[1])
    old_left, new_left = (1 if size is None else int(size) for size in hunk.group(2, 3))
    while old_left > 0 or new_left > 0:
        line = next(lines, None)
        if line is None:
            return
        mark = line[:1]
        if mark == "-":
            change.removed[number] = line[1:].removesuffix("\r")
            change.deletions += 1
        elif mark == "+":
            change.additions += 1
        elif mark not in (" ", "", "\r", "\\"):
            return  # an incomplete hunk
        if mark == "\\":
            continue
        if mark != "+":
            number, old_left = number + 1, old_left - 1
        if mark != "-":
            new_left -= 1


def _names_of_header(line: str) -> tuple[str | None, str | None]:
    """Return the two names after `diff --git`; if they contain spaces, only equal names can be separated."""
    names = line.removeprefix("diff --git ")
    if names.startswith('"'):
        first, _, second = names[1:].partition('" ')
        return _without_prefix(_unquoted(f'"{first}"')), _without_prefix(_unquoted(second))
    half = len(names) // 2
    first, second = names[:half], names[half + 1 :]
    if first[2:] != second[2:]:
        first, _, second = names.partition(" ")
    return _without_prefix(first), _without_prefix(_unquoted(second))


def _name(field: str) -> str | None:
    if not field.startswith('"'):
        field = field.partition("\t")[0].rstrip()  # diff appends a time to the name
    name = _unquoted(field)
    return None if name == _NOWHERE else name


def _drop_prefixes(change: _OpenChange) -> None:
    # A folder may itself be called "a", so prefixes are removed only if both sides look like them.
    names = [name for name in (change.old, change.new) if name]
    if all(name[:2] in _PREFIXES for name in names) and len({name[:2] for name in names}) == len(names):
        change.old = change.old and change.old[2:]
        change.new = change.new and change.new[2:]


def _without_prefix(name: str) -> str:
    return name[2:] if name[:2] in _PREFIXES else name


def _unquoted(name: str) -> str:
    if not name.startswith('"'):
        return name
    end = name.rfind('"')
    body = name[1 : end if end > 0 else None].encode("utf-8", "replace")
    return _ESCAPE.sub(_byte_of, body).decode("utf-8", "replace")


def _byte_of(escape: re.Match[bytes]) -> bytes:
    code = escape[1]
    return _SIMPLE_ESCAPES[code] if code in _SIMPLE_ESCAPES else bytes([int(code, 8) & 0xFF])


class GoldPatches:
    """Reference patches by task; each is parsed on first use."""

    def __init__(self, patches: Mapping[str, StoredDocument | str], source: str) -> None:
        self.patches, self.source = patches, source

    def get(self, task_id: str) -> Patch | None:
        """Return the patch of a task, or None if there is none.

        Raises:
            InputFileError: the task's patch is not a unified diff.
        """
        stored = self.patches.get(task_id)
        if stored is None:
            return None
        patch = read_patch(stored if isinstance(stored, str) else stored.text())
        if not patch.changes:
            raise InputFileError(f"{self.source}: the patch of {task_id} is not a unified diff; restore it")
        return patch

    def tasks(self) -> frozenset[str]:
        """The tasks that have a patch."""
        return frozenset(self.patches)


def old_lines(patch: Patch | None, goal: Collection[str]) -> OldLines:
    """Return the old lines that a patch changes in goal files, by the trajectory's names of these files."""
    if patch is None:
        return {}
    found = {}
    for file, lines in patch.changed_lines.items():
        path = file if file in goal else next((path for path in sorted(goal) if path.endswith(f"/{file}")), None)
        if path is not None and lines:
            found[path] = lines
    return found


def open_gold_patches(path: Path) -> GoldPatches:
    """Return the reference patches in a folder, or in a file of JSON lines, JSON or Parquet.

    Raises:
        InputFileError: the path is missing, or holds no patches.
    """
    patches: dict[str, Any] = _from_folder(path) if path.is_dir() else _from_rows(open_document(path))
    if not patches:
        raise InputFileError(
            f"{path} holds no reference patches; give a folder of <task>/gold.patch, or rows of instance_id and patch"
        )
    return GoldPatches(patches, str(path))


def _from_folder(folder: Path) -> dict[str, StoredDocument]:
    patches: dict[str, StoredDocument] = {}
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = Path(entry.path)
        if entry.is_dir() and (path / "gold.patch").is_file():
            patches[entry.name] = open_document(path / "gold.patch")
        elif entry.is_file() and path.suffix in (".patch", ".diff"):
            patches[path.stem] = open_document(path)
    return patches


def _from_rows(document: LogDocument) -> dict[str, str]:
    patches = {}
    for row in _rows(document):
        task, patch = row.get("instance_id"), row.get("patch")
        if isinstance(task, str) and isinstance(patch, str):
            patches[task] = patch
    return patches


def _rows(document: LogDocument) -> Iterator[Mapping[str, Any]]:
    if document.head.startswith(b"PAR1"):
        for number, found in document.rows():
            if isinstance(found, Exception):
                raise InputFileError(f"{document.source}:{number}: {found}")
            yield found
    elif document.head.lstrip().startswith(b"["):
        yield from (row for row in document.json() if isinstance(row, dict))
    else:
        for number, row in document.lines():
            if not isinstance(row, dict):
                reason = str(row) if isinstance(row, Exception) else "not an object; give instance_id and patch"
                raise InputFileError(f"{document.source}:{number}: {reason}")
            yield row
