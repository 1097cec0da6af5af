"""The syntax tree of a parsed shell command, and the short skeleton that the grammar parses.

A here-document becomes `< MARK0`, a here-string `< STRING…`, a long quoted text `'MARK1'`. Here-documents end where
bash ends them: at a line that consists of the delimiter. Linear in the command's length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msgspec import Struct

FED = "<("  # text of an unknown piece that represents a process substitution
PieceKind = Literal["plain", "open", "name", "split", "unknown"]
Connector = Literal[";", "&&", "||"]


class WordPiece(Struct, frozen=True, gc=False):
    """Part of a word: quoted text, text with active globs, a variable (quoted or not), or something unknown."""

    kind: PieceKind
    text: str = ""


Word: TypeAlias = str | tuple[WordPiece, ...]


class Redirect(Struct, frozen=True, gc=False):
    """One redirection; a here-document or here-string has its text in `target`."""

    operator: str  # < > >> &> &>> >| or here
    target: Word
    descriptor: int | None = None


class Command(Struct, frozen=True, gc=False):
    """A simple command."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, tuple[Word, ...]], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    inner: tuple[Node, ...] = ()  # command and process substitutions in its words


class Pipeline(Struct, frozen=True, gc=False):
    """Commands whose outputs feed one another."""

    stages: tuple[Node, ...]


class Chain(Struct, frozen=True, gc=False):
    """Commands one after the other; the connector precedes its command."""

    items: tuple[tuple[Connector, Node], ...]


class Group(Struct, frozen=True, gc=False):
    """A body with its own redirections: a subshell, braces, a branch, or a loop without a list."""

    body: Node
    subshell: bool = False
    redirects: tuple[Redirect, ...] = ()
    source: str = ""  # of a command substitution: its text
    feeds: bool = False  # a process substitution: its output is read like a file


class Loop(Struct, frozen=True, gc=False):
    """A body that runs once for every word."""

    variable: str
    words: tuple[Word, ...]
    body: Node


class FunctionDefinition(Struct, frozen=True, gc=False):
    """A shell function."""

    name: str
    body: Node


Node: TypeAlias = Command | Pipeline | Chain | Group | Loop | FunctionDefinition
EMPTY = Chain(())


_WORD = r"""(?:[\w./:,@%+-][\w./:,@%+=-]*+|'[^'\r]*+'|"[^"\\$`\r]*+")"""
_PLAIN = re.compile(rf"{_WORD}(?: ++{_WORD})*+(?: ++\| ++{_WORD}(?: ++{_WORD})*+)*+\s*+", re.ASCII)
_TOKEN = re.compile(rf"{_WORD}|\|", re.ASCII)
_GRAMMAR_WORDS = frozenset(
    {"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "function", "select",
     "in", "coproc", "declare", "export", "local", "readonly", "typeset", "unset", "unsetenv", "test", "let"}
)  # fmt: skip
_LONGEST = 2000


def parse_plain(command: str) -> Node | None:
    """Return the syntax nodes of a simple command without quoting or expansion, None for any other."""
    if len(command) > _LONGEST or _PLAIN.fullmatch(command) is None:
        return None
    quoted = "'" in command or '"' in command
    tokens = _TOKEN.findall(command) if quoted else command.split()
    if "|" not in tokens:  # most of them
        return _plain_stage(tokens, quoted)
    stages: list[Command] = []
    start = 0
    while start < len(tokens):
        end = tokens.index("|", start) if "|" in tokens[start:] else len(tokens)
        stage = _plain_stage(tokens[start:end], quoted)
        if stage is None:
            return None
        stages.append(stage)
        start = end + 1
    return Pipeline(tuple(stages))


def _plain_stage(words: list[str], quoted: bool) -> Command | None:
    if "=" in words[0] or words[0] in _GRAMMAR_WORDS:
        return None
    return Command(tuple(word[1:-1] if word[0] in "'\"" else word for word in words) if quoted else tuple(words))


MARK = "\ue000"  # private-use characters, which have no meaning in a shell
STRING = "\ue001"
_LONG = 120  # shortest quoted text that is replaced
_SKELETON_TOKEN = re.compile(
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
        while found := _SKELETON_TOKEN.search(command, position):
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
