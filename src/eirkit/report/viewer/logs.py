"""Finds the original logs of analyzed runs below the --logs folders and returns their turns and raw text.

Only documents that the analysis names are opened, only below folders given with --logs, and only on request. Formats
named as a file or module are run only with --plugins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from eirkit.errors import EirkitError, InputFileError
from eirkit.report.folders import foreign
from eirkit.report.viewer.excerpts import Text
from eirkit.vestige.corpus.reader import CorpusReader
from eirkit.vestige.sources.documents import LineRange, ReadLimits, StoredDocument, open_document, open_lines
from eirkit.vestige.trajectory import Call, RecordedTurn, Recording, formats

LARGEST = ReadLimits(document_bytes=1 << 28, line_bytes=1 << 28)  # limits of reading for one request
SHORTEST_CLUE = 12  # characters; shorter texts may occur anywhere
LONGEST_CLUE = 160
_ITEM = re.compile(r":(\d+)$")


class LoggedRun(Protocol):
    """What identifies a run in its log; rows of runs have it."""

    @property
    def run_id(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def format(self) -> str: ...


@dataclass(frozen=True, slots=True)
class LogFolders:
    """Folders and files that were given with --logs."""

    roots: tuple[Path, ...] = ()
    plugins: bool = False  # whether a format that a row names as a file or module may be run

    def recording(self, run: LoggedRun) -> Recording:
        """Read the log of a run again and return the recording.

        Raises:
            InputFileError: no root holds its source, or the run is no longer in it.
        """
        return _recording(self, run.source, run.run_id, self._format(run.format))

    def text(self, run: LoggedRun) -> str:
        """Return the raw text of the document that a run was read from; if each line is a run, only its line."""
        return _text(self, run.source, self._format(run.format))

    def _format(self, name: str) -> str:
        if foreign([name]) and not self.plugins:
            raise InputFileError(f"{name} is code beside the logs; start the viewer with --plugins to run it")
        return name

    def find(self, source: str) -> tuple[Path, Path]:
        """Return the --logs root and the file of a source such as `logs/a/run.json:3`."""
        if not self.roots:
            raise InputFileError("the logs were not given; start the viewer with --logs and what was analyzed")
        label = source
        for root in self.roots:
            for name in dict.fromkeys((label, _ITEM.sub("", label))):
                path = _below(root.resolve(), name)
                if path is not None:
                    return root, path
        raise InputFileError(f"{source} is not below what --logs names; give what was analyzed")


def _below(root: Path, name: str) -> Path | None:
    """Return the file with a label, if it is below a root; labels begin with the name of the root."""
    first, _, rest = name.partition("/")
    if first != root.name:
        return None
    path = root / rest if rest else root
    try:
        inside = path.resolve().is_relative_to(root) and path.is_file()
    except (OSError, RuntimeError):
        return None
    return path if inside else None


def _document(root: Path, path: Path, source: str, format: str) -> StoredDocument:
    """Return the document of a source; if each line is a run, only that line."""
    name = _ITEM.sub("", source)
    whole = open_document(path, LARGEST, name)
    item = _ITEM.search(source)
    lines = path.name.lower().endswith((".jsonl", ".ndjson")) and getattr(formats.get(format), "run_per_line", False)
    if item is None or not lines:
        return whole
    return open_lines(path, _line_span(path, int(item[1])), LARGEST, name)


def _line_span(path: Path, number: int) -> LineRange:
    start = 0
    with path.open("rb") as stream:
        for place, line in enumerate(stream, 1):
            if place == number:
                return LineRange(start, start + len(line), number - 1)
            start += len(line)
    raise InputFileError(f"{path.name} has fewer than {number} lines; it has changed since it was analyzed")


@lru_cache(maxsize=8)
def _recording(logs: LogFolders, source: str, run_id: str, format: str) -> Recording:
    root, path = logs.find(source)
    reader = CorpusReader(outcomes=None, format=format, limits=LARGEST)
    found = None
    for item in reader.read(_document(root, path, source, format), root, format):
        if isinstance(item, Recording) and item.source == source:
            if item.run_id == run_id or run_id.startswith(f"{item.run_id}@"):
                return item
            found = found or item
    if found is None:
        raise InputFileError(f"{source} no longer holds the run; it has changed since it was analyzed")
    return found


@lru_cache(maxsize=2)
def _text(logs: LogFolders, source: str, format: str) -> str:
    root, path = logs.find(source)
    try:
        return _document(root, path, source, format).text()
    except EirkitError as error:
        raise InputFileError(f"{source} cannot be shown as text: {error}") from error


class Argument(Struct, frozen=True):
    """One argument of a call; a value that is no text is written as JSON."""

    name: str
    value: Text


class LoggedCall(Struct, frozen=True):
    """One call of a tool, as the log has it."""

    tool: str
    arguments: tuple[Argument, ...]
    output: Text
    full_output: Text | None
    exit_code: int | None
    failed: bool | None


class LoggedTurn(Struct, frozen=True):
    """The text and the calls of one turn, with the log's source."""

    turn: int
    text: Text
    calls: tuple[LoggedCall, ...]
    broken: str | None
    carried: Text | None
    rejected: bool
    prompt: Text  # of the user, in the first turn
    source: str


def logged_turn(logs: LogFolders, run: LoggedRun, turn: int) -> LoggedTurn:
    """Return one turn of a run."""
    recording = logs.recording(run)
    if not 1 <= turn <= len(recording.turns):
        raise InputFileError(f"the log has {len(recording.turns)} turns, and none numbered {turn}; reload the page")
    said = recording.turns[turn - 1]
    prompt = recording.prompt if turn == 1 else ""
    calls = tuple(map(_call, said.calls))
    return LoggedTurn(turn, said.text, calls, said.broken, said.carried, said.rejected, prompt, run.source)


def _call(call: Call) -> LoggedCall:
    arguments = tuple(
        Argument(str(name), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in call.arguments.items()
    )
    return LoggedCall(call.tool, arguments, call.output, call.full_output, call.exit_code, call.failed)


def place_of(text: str, turns: Sequence[RecordedTurn], turn: int) -> int | None:
    """Return the offset of a turn in a log's text, found by searching for its text; None if it is not found.

    Earlier turns are located first, so that text that occurs twice is found after them.
    """
    at = 0
    for number, said in enumerate(turns[:turn], 1):
        found = _first(text, _clues(said), at)
        if found is not None:
            at = found
        if number == turn:
            return found
        at += found is not None
    return None


def _clues(said: RecordedTurn) -> list[str]:
    texts = [
        said.text,
        *(str(value) for call in said.calls for value in call.arguments.values() if isinstance(value, str)),
    ]
    outputs = [call.output for call in said.calls]
    return [clue for one in (*texts, *outputs) if len(clue := one.strip()[:LONGEST_CLUE]) >= SHORTEST_CLUE]


def _first(text: str, clues: Sequence[str], start: int) -> int | None:
    """Return the offset of the first clue that occurs, verbatim or escaped as JSON."""
    for clue in clues:
        for form in (clue, json.dumps(clue, ensure_ascii=False)[1:-1], json.dumps(clue)[1:-1]):
            if (found := text.find(form, start)) >= 0:
                return found
    return None


LINE_CHARACTERS = 4_000  # of one line that are shown


class LogLine(Struct, frozen=True):
    """One line of a log, cut if it is long."""

    number: int
    text: str
    here: bool  # the offset lies in it
    at: int | None  # where in the text
    before: int  # characters that are left out
    after: int


class LogExcerpt(Struct, frozen=True):
    """The numbered lines around an offset of a log."""

    lines: tuple[LogLine, ...]
    line: int
    lines_total: int
    characters: int
    source: str
    offset: int


def lines_around(text: str, offset: int, source: str = "", before: int = 12, after: int = 40) -> LogExcerpt:
    """Return the lines around an offset."""
    number = text.count("\n", 0, offset) + 1
    start = offset
    for _ in range(before + 1):
        start = text.rfind("\n", 0, start)
        if start < 0:
            break
    first = number - text.count("\n", max(0, start + 1), offset)
    lines: list[LogLine] = []
    at = max(0, start + 1)
    while at <= len(text) and len(lines) <= before + after:
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        lines.append(_line(text, at, stop, offset, first + len(lines)))
        at = stop + 1
    return LogExcerpt(tuple(lines), number, text.count("\n") + 1, len(text), source, offset)


def _line(text: str, start: int, stop: int, offset: int, number: int) -> LogLine:
    here = start <= offset <= stop
    begin = start
    if stop - start > LINE_CHARACTERS and here:
        begin = max(start, min(offset - LINE_CHARACTERS // 4, stop - LINE_CHARACTERS))
    shown = text[begin : min(stop, begin + LINE_CHARACTERS)]
    return LogLine(number, shown, here, offset - begin if here else None, begin - start, stop - begin - len(shown))
