"""Reads aider's chat history (`.aider.chat.history.md`): prompts, replies with their edits, and what aider said.

Every prompt of aider holds the files of the chat as they are then, so a reply has read those that were added or changed
since the last one. The history names them and does not show them: their content is known from edits alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from msgspec import structs

from eirkit.errors import InputFileError
from eirkit.vestige.formats.run_builder import RunBuilder, skipped
from eirkit.vestige.sources.documents import LogDocument, Skipped
from eirkit.vestige.trajectory import NAMED, FileRead, FileWrite, LoggedUsage, Recording, Touches, formats

_START = "# aider chat started at "
_ADDED = re.compile(r"Added (?!\d{1,9} lines of output )(.{1,1000}) to the chat(?: \(read-only\))?\.")
_LEFT = re.compile(r"Removed (?:read-only file )?(.{1,1000}) from the chat")
_OFFER = re.compile(r"Add file to the chat\? .{0,80}: [ya]", re.IGNORECASE)
_APPLIED = re.compile(r"Applied edit to (.{1,1000})")
_MODEL = re.compile(r"(?:Main model|Model): (\S{1,200}) with .{1,60} edit format")
_TOKENS = re.compile(
    r"Tokens: ([\d.,]{1,12})([kM]?) sent(?:, ([\d.,]{1,12})([kM]?) cache write)?"
    r"(?:, ([\d.,]{1,12})([kM]?) cache hit)?, ([\d.,]{1,12})([kM]?) received"
)
_BLOCK = re.compile(r"(?m)^(?:<{5,9} SEARCH>?|={5,9}|>{5,9} REPLACE)[ \t]{0,9}$\n?")


@formats.add("aider")
class Aider:
    """Chat histories of aider."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether the text begins with the start of a chat."""
        return NAMED if document.head.lstrip().startswith(_START.encode()) else 0

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the run of each chat; one in which nothing was asked of the model is no run."""
        try:
            text = document.text().replace("\r\n", "\n")
            chats = f"\n{text}".split(f"\n{_START}")[1:]
        except InputFileError as error:
            yield skipped(document, error)
            return
        found = [_Chat(text).recording(document, str(number)) for number, text in enumerate(chats, 1)]
        yield from [item for item in found if isinstance(item, Recording)] or found[:1]


class _Chat:
    """The state while a chat is read."""

    def __init__(self, text: str) -> None:
        self.builder = RunBuilder()
        self.model = self.version = ""
        self.reply: list[str] = []
        self.fenced = False  # inside a block of code, whose lines may begin like anything
        self.files: dict[str, bool] = {}  # of the chat, and whether the model has seen them as they are
        self.reads: list[tuple[str, ...]] = []  # by turn
        self.writes: list[list[FileWrite]] = []
        self.named = ""  # the file on the line before an offer to add it
        started, _, rest = text.partition("\n")
        self.started = started.strip()
        for line in rest.split("\n"):
            self._take(line.removesuffix("  "))

    def _take(self, line: str) -> None:
        if not self.fenced and line.startswith("#### "):
            self._end_reply()
            self.builder.request(line.removeprefix("#### "))
        elif not self.fenced and (line == ">" or line.startswith("> ")):
            self._end_reply()
            self._note(line[2:])
        else:
            self.fenced ^= line.lstrip().startswith("```")
            self.reply.append(line)

    def _end_reply(self) -> None:
        text, self.reply = "\n".join(self.reply).strip("\n"), []
        if not text:
            return
        self.builder.begin()
        self.builder.say(text)
        self.reads.append(tuple(path for path, seen in self.files.items() if not seen))
        self.writes.append([])
        self.files = dict.fromkeys(self.files, True)

    def _note(self, said: str) -> None:
        """Take note of what aider said."""
        if found := _ADDED.fullmatch(said):
            self.files.setdefault(found[1], False)
        elif found := _LEFT.match(said):
            self.files.pop(found[1], None)
        elif _OFFER.match(said) and self.named:
            self.files.setdefault(self.named, False)
        elif found := _MODEL.fullmatch(said):
            self.model = self.model or found[1]
        elif said.startswith("Aider v"):
            self.version = self.version or said.removeprefix("Aider v")
        elif not self.writes:
            return
        elif found := _APPLIED.fullmatch(said):
            self.writes[-1] += _edits(found[1], self.builder.said)
            self.files[found[1]] = False
        elif found := _TOKENS.match(said):
            counts = [_count(found[at], found[at + 1]) for at in (1, 5, 7)]
            self.builder.use(LoggedUsage(counts[0], counts[2], min(counts[0], counts[1])))
        self.named = said

    def recording(self, document: LogDocument, place: str) -> Recording | Skipped:
        """Return the run."""
        self._end_reply()
        name = f"{document.name.removesuffix('.md').lstrip('.')} {self.started}"
        run = self.builder.recording(document, "aider", name, place=place, model=self.model, agent_version=self.version)
        if isinstance(run, Skipped):
            return run
        touches = [
            Touches(tuple(map(FileRead, reads)), tuple(writes))
            for reads, writes in zip(self.reads, self.writes, strict=True)
        ]
        return replace(
            run, turns=tuple(map(lambda turn, touched: structs.replace(turn, touches=touched), run.turns, touches))
        )


def _edits(path: str, reply: str) -> list[FileWrite]:
    """Return the edits of a file: the blocks below its name, or one of unknown content."""
    found: list[FileWrite] = []
    marks = list(_BLOCK.finditer(reply))
    for begin, middle, end in zip(marks, marks[1:], marks[2:], strict=False):
        if begin[0][0] + middle[0][0] + end[0][0] != "<=>":
            continue
        above = [line.strip(" `*#:") for line in reply[: begin.start()].split("\n")[-4:]]
        if path in above:
            removed, added = reply[begin.end() : middle.start()], reply[middle.end() : end.start()]
            found.append(
                FileWrite(path, removed=removed, added=added) if removed else FileWrite(path, "whole", content=added)
            )
    return found or [FileWrite(path)]


def _count(number: str | None, unit: str | None) -> int:
    try:
        return round(float((number or "0").replace(",", "")) * {"k": 1_000, "M": 1_000_000}.get(unit or "", 1))
    except ValueError:
        return 0
