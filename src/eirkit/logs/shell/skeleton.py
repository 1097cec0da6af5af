"""Replaces here-documents and long quoted texts in a command by marks, so that the grammar parses a short skeleton.

A here-document becomes `< MARK0`, a here-string `< STRING…`, a long quoted text `'MARK1'`. Here-documents end where
bash ends them: at a line that consists of the delimiter. Linear in the command's length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MARK = "\ue000"  # private-use characters, which have no meaning in a shell
STRING = "\ue001"
_LONG = 120  # shortest quoted text that is replaced
_TOKEN = re.compile(
    r"'(?P<single>[^']*)'"
    r'|"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"'
    r"|\\."
    r"|(?<![^\s;&|(])\#[^\n]*"
    r"|<<<"
    r"|<<(?P<dash>-?)[ \t]*(?:'(?P<raw>[^'\n]+)'|\"(?P<quoted>[^\"\n]+)\"|(?P<escape>\\?)(?P<bare>[\w.!+-]+))"
    r"|\n",
    re.DOTALL,
)
_DOUBLE_ESCAPE = re.compile(r'\\(["\\$`])')


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """A text that was replaced by a mark."""

    text: str
    expands: bool = False  # variables in it are expanded: a here-document with an unquoted delimiter


@dataclass(frozen=True, slots=True)
class CommandSkeleton:
    """A command without its long texts."""

    skeleton: str
    bodies: tuple[ExtractedText, ...] = ()


@dataclass(frozen=True, slots=True)
class _Pending:
    delimiter: str
    tabs: bool
    index: int
    expands: bool


def extract_long_texts(command: str) -> CommandSkeleton:
    """Return the skeleton of a command and the texts that its marks represent."""
    command = command.replace("\r\n", "\n")
    if MARK in command or STRING in command:
        command = command.replace(MARK, "\ufffd").replace(STRING, "\ufffd")
    if "<<" not in command and len(command) < 2 * _LONG:
        return CommandSkeleton(command)
    return _Lifting(command).run()


def unquote_double(text: str) -> str:
    """Return the text between double quotes with its escapes resolved."""
    if "\\" not in text:
        return text
    return _DOUBLE_ESCAPE.sub(r"\1", text.replace("\\\n", ""))


class _Lifting:
    def __init__(self, command: str) -> None:
        self.command = command
        self.kept: list[str] = []
        self.bodies: list[ExtractedText] = []
        self.pending: list[_Pending] = []

    def run(self) -> CommandSkeleton:
        position, command = 0, self.command
        while found := _TOKEN.search(command, position):
            self.kept.append(command[position : found.start()])
            position = self._take(found)
        self.kept.append(command[position:])
        return CommandSkeleton("".join(self.kept), tuple(self.bodies))

    def _take(self, found: re.Match[str]) -> int:
        token = found[0]
        if token == "\n" and self.pending:
            self.kept.append("\n")
            return self._take_bodies(found.end())
        if token == "<<<":
            self.kept.append(f"< {STRING}")
            return _skip_blanks(self.command, found.end())
        if token.startswith("<<") and self._announce(found):
            return found.end()
        self.kept.append(self._shortened(found))
        return found.end()

    def _shortened(self, found: re.Match[str]) -> str:
        single, double = found["single"], found["double"]
        if single is not None and len(single) >= _LONG:
            return f"'{self._mark(ExtractedText(single))}'"
        if double is not None and len(double) >= _LONG and "$" not in double and "`" not in double:
            return f"'{self._mark(ExtractedText(unquote_double(double)))}'"
        return found[0]

    def _mark(self, body: ExtractedText) -> str:
        self.bodies.append(body)
        return f"{MARK}{len(self.bodies) - 1}"

    def _announce(self, found: re.Match[str]) -> bool:
        delimiter = found["raw"] or found["quoted"] or found["bare"]
        if delimiter.isdigit() and f"\n{delimiter}\n" not in f"{self.command}\n":
            return False  # an arithmetic shift
        expands = found["bare"] is not None and not found["escape"]
        mark = self._mark(ExtractedText("", expands))
        self.pending.append(_Pending(delimiter, bool(found["dash"]), len(self.bodies) - 1, expands))
        self.kept.append(f"< {mark} ")
        return True

    def _take_bodies(self, position: int) -> int:
        for pending in self.pending:
            end, after = _body_end(self.command, position, pending)
            text = self.command[position:end]
            if pending.tabs:
                text = re.sub(r"(?m)^\t+", "", text)
            self.bodies[pending.index] = ExtractedText(text, pending.expands)
            position = after
        self.pending = []
        return position


def _body_end(command: str, start: int, pending: _Pending) -> tuple[int, int]:
    """Return where a here-document ends and where the command continues; an unterminated one takes the rest."""
    delimiter, position = pending.delimiter, start
    while (position := command.find(delimiter, position)) >= 0:
        line = command.rfind("\n", 0, position) + 1
        line_end = command.find("\n", position)
        line_end = len(command) if line_end < 0 else line_end
        text = command[line:line_end]
        if line >= start and (text.lstrip("\t") if pending.tabs else text) == delimiter:
            return line, min(line_end + 1, len(command))
        position = line_end
    return len(command), len(command)


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t":
        position += 1
    return position
