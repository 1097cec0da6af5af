"""The parts of a parsed command: words that may need expanding, and the few ways of putting commands together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from eirkit.facts import fact

FED = "<("  # the text of an unknown piece that stands for a process substitution
PieceKind = Literal["plain", "open", "name", "split", "unknown"]
Connector = Literal[";", "&&", "||"]


@fact
class Piece:
    """Part of a word: quoted text, text in which globs act, a variable (quoted or not), or anybody's guess."""

    kind: PieceKind
    text: str = ""


Word: TypeAlias = str | tuple[Piece, ...]


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
    """Commands one after the other; the connector stands before its command."""

    items: tuple[tuple[Connector, Node], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A body with its own redirections: a subshell, braces, a branch or a loop without a list."""

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
class Define:
    """A function."""

    name: str
    body: Node


Node: TypeAlias = Command | Pipeline | Chain | Group | Loop | Define
EMPTY = Chain(())
