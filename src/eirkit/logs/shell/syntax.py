"""The syntax tree of a parsed shell command: words that may need expansion, and the ways in which commands combine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from eirkit.facts import fact

FED = "<("  # text of an unknown piece that represents a process substitution
PieceKind = Literal["plain", "open", "name", "split", "unknown"]
Connector = Literal[";", "&&", "||"]


@fact
class WordPiece:
    """Part of a word: quoted text, text with active globs, a variable (quoted or not), or something unknown."""

    kind: PieceKind
    text: str = ""


Word: TypeAlias = str | tuple[WordPiece, ...]


@fact
class Redirect:
    """One redirection; a here-document or here-string has its text in `target`."""

    operator: str  # < > >> &> &>> >| or here
    target: Word
    descriptor: int | None = None


@fact
class Command:
    """A simple command."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, tuple[Word, ...]], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    inner: tuple[Node, ...] = ()  # command and process substitutions in its words


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands whose outputs feed one another."""

    stages: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """Commands one after the other; the connector precedes its command."""

    items: tuple[tuple[Connector, Node], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A body with its own redirections: a subshell, braces, a branch, or a loop without a list."""

    body: Node
    subshell: bool = False
    redirects: tuple[Redirect, ...] = ()
    source: str = ""  # of a command substitution: its text
    feeds: bool = False  # a process substitution: its output is read like a file


@dataclass(frozen=True, slots=True)
class Loop:
    """A body that runs once for every word."""

    variable: str
    words: tuple[Word, ...]
    body: Node


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """A shell function."""

    name: str
    body: Node


Node: TypeAlias = Command | Pipeline | Chain | Group | Loop | FunctionDefinition
EMPTY = Chain(())


_WORD = r"""(?:[\w./:,@%+-][\w./:,@%+=-]*|'[^'\r]*'|"[^"\\$`\r]*")"""
_PLAIN = re.compile(rf"{_WORD}(?: +{_WORD})*(?: +\| +{_WORD}(?: +{_WORD})*)*\s*", re.ASCII)
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
    stages: list[Command] = []
    start = 0
    while start < len(tokens):
        end = tokens.index("|", start) if "|" in tokens[start:] else len(tokens)
        words = tokens[start:end]
        if "=" in words[0] or words[0] in _GRAMMAR_WORDS:
            return None
        stages.append(Command(tuple([_bare(word) for word in words] if quoted else words)))
        start = end + 1
    return stages[0] if len(stages) == 1 else Pipeline(tuple(stages))


def _bare(word: str) -> str:
    return word[1:-1] if word[0] in "'\"" else word
