"""Puts into words what a compaction is likely to have dropped and the session still needs, within a few hundred tokens.

Instructions come first and word for word, then open to-dos, then files with the lines that were shown and why they are
likely to be needed. What does not fit is in a file that the text names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eirkit.live.guard import LIKELY
from eirkit.live.working_set import WorkingFile, WorkingSet
from eirkit.show.table import clean

MOST_BYTES = 2_000  # agents show more only as a preview
FEWEST = 3  # files that are named even if none of them is likely to be used again
_RULES_BYTES, _TODOS_BYTES = 900, 400  # of these, as long as files need the rest
_HEAD = (
    "The context was compacted. From the log of this session, so that nothing has to be guessed "
    "(a note of eirkit guard, not a request):"
)
_RULES = "What the user ruled or decided, word for word; some of it may be settled by now:"
_TODOS = "Open to-dos:"
_FILES = "Files in use that may be gone from the context; read them again before you rely on them:"


@dataclass(frozen=True, slots=True)
class RestoredText:
    """What is said to the agent, and everything that is known."""

    text: str  # at most MOST_BYTES
    whole: str
    files: tuple[str, ...]  # paths in the text
    is_cut: bool  # the text leaves something out


def restored_text(working: WorkingSet, root: str, rest: str) -> RestoredText | None:
    """Return what to say after a compaction; None if nothing is known that could be lost.

    Args:
        root: the session's folder, to which paths are relative.
        rest: the name of the file that will hold everything.
    """
    rules, todos = [_item(text) for text in working.rules], [_item(text) for text in working.todos]
    needed = [file for place, (chance, file) in enumerate(working.ranked()) if chance >= LIKELY or place < FEWEST]
    files = [file_line(working, file, root) for file in needed]
    if not (rules or todos or files):
        return None
    everything = [file_line(working, file, root) for _, file in working.ranked()]
    whole = "\n".join([_HEAD, *_block(_RULES, rules), *_block(_TODOS, todos), *_block("All files:", everything)])
    room = MOST_BYTES - _size([_HEAD, _more(rest)])
    kept_rules = _fitting(rules, min(room, _RULES_BYTES + (0 if files else room)) - _size([_RULES]))
    room -= _size(_block(_RULES, kept_rules))
    kept_todos = _fitting(todos, min(room, _TODOS_BYTES) - _size([_TODOS]))
    room -= _size(_block(_TODOS, kept_todos))
    kept_files = _fitting(files, room - _size([_FILES]))
    parts = [_HEAD, *_block(_RULES, kept_rules), *_block(_TODOS, kept_todos), *_block(_FILES, kept_files)]
    is_cut = (len(kept_rules), len(kept_todos), len(kept_files)) != (len(rules), len(todos), len(everything))
    text = "\n".join([*parts, *([_more(rest)] if is_cut else [])])
    return RestoredText(text, whole, tuple(file.path for file in needed[: len(kept_files)]), is_cut)


def sham_text(size: int, paths: Iterable[str]) -> str:
    """Return a text of the same form and about the same size about files that the session has not used."""
    lines = _fitting([_item(f"{path}: part of the project") for path in paths], size - _size([_HEAD, _FILES]))
    return "\n".join([_HEAD, _FILES, *lines])


def file_line(working: WorkingSet, file: WorkingFile, root: str) -> str:
    """Return one file with the lines that were shown and why it may be needed."""
    ago = working.turns - file.last_turn
    when = "in the last turn" if ago == 0 else f"{ago} {'turn' if ago == 1 else 'turns'} ago"
    turns = f"used in {file.uses} {'turn' if file.uses == 1 else 'turns'}"
    lines = f", {file.lines()}" if file.lines() else ""
    verb = "edited" if file.is_written else "read"
    why = f"{verb}, {turns}, last {when}; {working.chance(file):.0%} of such files are used again"
    return _item(f"{_relative(file.path, root)}{lines}: {why}")


def _item(text: str) -> str:
    """Return a line of a list; a name with line breaks in it must not look like instructions of the user."""
    return f"- {clean(' '.join(text.splitlines()))}"


def _relative(path: str, root: str) -> str:
    return path.removeprefix(f"{root.rstrip('/')}/") if root else path


def _more(rest: str) -> str:
    return f"Everything that was open: {rest}"


def _block(title: str, lines: Sequence[str]) -> list[str]:
    return [title, *lines] if lines else []


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)


def _fitting(lines: Sequence[str], room: int) -> list[str]:
    """Return the first lines that fit; a line that does not is left out whole, since half an instruction misleads."""
    kept: list[str] = []
    for line in lines:
        size = _size([line])
        if size <= room:
            kept.append(line)
            room -= size
    return kept


def other_files(folder: Path, used: Iterable[str], most: int = 400) -> Iterator[str]:
    """Yield files below a folder that a session has not used, in the order of their names, hidden ones left out."""
    known = {path.rpartition("/")[2] for path in used}
    waiting, found = [folder], 0
    while waiting and found < most:
        try:
            entries = sorted(waiting.pop(0).iterdir())
        except OSError:
            continue
        for entry in (one for one in entries if not one.name.startswith(".") and one.name != "node_modules"):
            if entry.is_dir() and not entry.is_symlink():
                waiting.append(entry)
            elif entry.name not in known and found < most:
                found += 1
                yield str(entry.relative_to(folder))
