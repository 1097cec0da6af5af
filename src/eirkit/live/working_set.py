"""What a session works with, kept up to date turn by turn: files with line ranges, instructions and open to-dos."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from eirkit.live.guard import FileHistory, reuse_chance
from eirkit.logs.audits.instructions import MOST, Instruction, instructions_in, todos_after
from eirkit.logs.demand.costs import read_tokens
from eirkit.logs.tokens import estimating_counter
from eirkit.logs.trajectory import FileRead, Trajectory, Turn

MOST_FILES = 400  # that are followed; those used last
MOST_RANGES = 12  # of one file; more are joined into one
_TO_END = 1 << 30  # the last line of a range that has no end

Range = tuple[int, int]


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
        told = (f"{first}–" if last >= _TO_END else f"{first}–{last}" for first, last in self.ranges)
        return f"lines {', '.join(told)}"


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

    def take(self, trajectory: Trajectory) -> None:
        """Add the turns that came since the last time."""
        for turn in trajectory.turns:
            self.turns += 1
            self.hear(turn.recorded.asked)
            self._touch(turn)
            known = [Instruction("todo", text, 0, id=id) for text, id in zip(self.todos, self.task_ids, strict=True)]
            after = todos_after(turn, known)
            self.todos, self.task_ids = [one.text for one in after], [one.id for one in after]
        while len(self.files) > MOST_FILES:
            del self.files[next(iter(self.files))]

    def hear(self, asked: str) -> None:
        """Add what the user rules in a prompt."""
        for one in instructions_in(asked, self.turns) if asked else ():
            if len(self.rules) < MOST:
                self.rules.setdefault(one.text, self.turns)

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

    def chance(self, file: WorkingFile) -> float:
        """Return the share of files with such a history that recorded runs used again."""
        return reuse_chance(FileHistory(file.uses, self.turns - file.last_turn, file.is_written))

    def ranked(self) -> list[tuple[float, WorkingFile]]:
        """Return all files with the chance that each is needed again, the likeliest first."""
        found = [(self.chance(file), file) for file in self.files.values()]
        return sorted(found, key=lambda one: (-one[0], -one[1].last_turn, one[1].path))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> WorkingSet:
        """Return the set that `as_json` described; raises TypeError or KeyError for anything else."""
        files = {
            path: WorkingFile(**{**file, "ranges": [(int(first), int(last)) for first, last in file["ranges"]]})
            for path, file in value["files"].items()
        }
        return cls(value["turns"], files, dict(value["rules"]), list(value["todos"]), list(value["task_ids"]))
