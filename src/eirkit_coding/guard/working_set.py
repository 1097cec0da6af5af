"""What a session works with (files with lines, rules, to-dos), and the text by which a hook restores it.

Instructions come first and word for word, then open to-dos, then files with the lines that were shown and why they are
likely to be needed, within a few hundred tokens. What does not fit is in a file that the text names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eirkit.report.table import clean
from eirkit.vestige.actions.view_tools import PATHS, first_of
from eirkit.vestige.audits.instructions import MOST, Instruction, instructions_in, todos_after
from eirkit.vestige.demand.costs import read_tokens
from eirkit.vestige.tokens import estimating_counter
from eirkit.vestige.trajectory import FileRead, Trajectory, Turn
from eirkit_coding.guard.guard import LIKELY, FileHistory, reuse_chance

MOST_FILES = 400  # that are followed; those used last
MOST_RANGES = 12  # of one file; more are joined into one
_TO_END = 1 << 30  # the last line of a range that has no end

# As the bench shows it: Claude Code puts the files back that its own tools used last since the last compaction.
_PUTS_BACK = {"claude": 5}
_LARGEST_PUT_BACK = 5_000  # tokens; of a larger file it puts a part back
_OWN_TOOLS = ("Read", "Edit", "MultiEdit", "Write", "NotebookEdit")

Range = tuple[int, int]
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


@dataclass(slots=True)
class WorkingFile:
    """One file that a session uses."""

    path: str
    uses: int = 0  # turns that read or wrote it
    last_turn: int = 0
    is_written: bool = False
    is_whole: bool = False  # it was shown from beginning to end
    ranges: list[Range] = field(default_factory=list)  # lines that were shown
    tokens: int = 0  # of the largest view
    viewed: int = 0  # rank of its last use by a tool of the agent's own since the last compaction; 0: none
    is_put_back: bool = False  # the agent puts it back by itself after the last compaction

    def show(self, read: FileRead, tokens: int) -> None:
        """Take note of a view."""
        self.tokens = max(self.tokens, tokens)
        if read.requested is not None and read.requested.last < read.requested.first:
            return  # matches of a search or parts of a diff: no range that one could ask for again
        if read.requested is not None:
            self.ranges = joined([*self.ranges, (read.requested.first, read.requested.last)])
        elif read.lines and (first := min(read.lines)) > 1:
            self.ranges = joined([*self.ranges, (first, max(read.lines))])
        else:
            self.is_whole = True

    def lines(self) -> str:
        """Return which lines were shown, in words."""
        if self.is_whole or not self.ranges:
            return ""
        ranges = (f"{first}–" if last >= _TO_END else f"{first}–{last}" for first, last in self.ranges)
        return f"lines {', '.join(ranges)}"


def joined(ranges: list[Range]) -> list[Range]:
    """Return ranges in order, with those that touch joined; too many become one."""
    found: list[Range] = []
    for first, last in sorted((max(1, first), max(first, last)) for first, last in ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return found if len(found) <= MOST_RANGES else [(found[0][0], found[-1][1])]


@dataclass(slots=True)
class WorkingSet:
    """What a session works with."""

    turns: int = 0
    files: dict[str, WorkingFile] = field(default_factory=dict)  # by path, those used last at the end
    rules: dict[str, int] = field(default_factory=dict)  # the user's words, and the turn after them
    todos: list[str] = field(default_factory=list)  # that are open
    task_ids: list[str] = field(default_factory=list)  # of these, where they have one
    views: int = 0  # uses of files by tools of the agent's own

    def take(self, trajectory: Trajectory) -> None:
        """Add the turns that came since the last time."""
        for turn in trajectory.turns:
            self.turns += 1
            self.hear(turn.recorded.asked)
            self._touch(turn)
            known = [Instruction("todo", text, 0, id=id) for text, id in zip(self.todos, self.task_ids, strict=True)]
            after = todos_after(turn, known)
            self.todos, self.task_ids = [todo.text for todo in after], [todo.id for todo in after]
        while len(self.files) > MOST_FILES:
            del self.files[next(iter(self.files))]

    def hear(self, asked: str) -> None:
        """Add what the user rules in a prompt."""
        for rule in instructions_in(asked, self.turns) if asked else ():
            if len(self.rules) < MOST:
                self.rules.setdefault(rule.text, self.turns)

    def _touch(self, turn: Turn) -> None:
        count = estimating_counter()
        written = {write.path: write.kind for write in turn.writes}
        for path in {**dict.fromkeys(read.path for read in turn.reads), **written}:
            if written.get(path) == "delete":
                self.files.pop(path, None)
                continue
            file = self.files.pop(path, None) or WorkingFile(path)
            file.uses, file.last_turn = file.uses + 1, self.turns
            file.is_written = file.is_written or path in written
            self.files[path] = file
        for read in turn.reads:
            if read.path in self.files:
                self.files[read.path].show(read, read_tokens(read, count))
        for call in turn.recorded.calls:
            named = first_of(call.arguments, PATHS) if call.tool in _OWN_TOOLS else None
            for path in ({read.path for read in turn.reads} | written.keys()) & self.files.keys():
                if named is not None and (named == path or named.endswith(f"/{path}")):
                    self.views += 1
                    self.files[path].viewed = self.views

    def compact(self, agent: str) -> None:
        """Note which files the agent puts back by itself after a compaction, before its transcript says so."""
        latest = sorted(self.files.values(), key=lambda file: -file.viewed)[: _PUTS_BACK.get(agent, 0)]
        back = {file.path for file in latest if file.viewed and file.tokens <= _LARGEST_PUT_BACK}
        for file in self.files.values():
            file.viewed, file.is_put_back = 0, file.path in back

    def chance(self, file: WorkingFile) -> float:
        """Return the share of files with such a history that recorded runs used again."""
        return reuse_chance(FileHistory(file.uses, self.turns - file.last_turn, file.is_written))

    def ranked(self) -> list[tuple[float, WorkingFile]]:
        """Return the files that are not put back with the chance that each is needed again, the likeliest first."""
        found = [(self.chance(file), file) for file in self.files.values() if not file.is_put_back]
        return sorted(found, key=lambda ranked: (-ranked[0], -ranked[1].last_turn, ranked[1].path))


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
        for entry in entries:
            if entry.name.startswith(".") or entry.name == "node_modules":
                continue
            if entry.is_dir() and not entry.is_symlink():
                waiting.append(entry)
            elif entry.name not in known and found < most:
                found += 1
                yield str(entry.relative_to(folder))
