"""Values in an abstractly interpreted Python program: the texts they may be, and the files whose content they carry."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from eirkit.vestige.trajectory import WriteKind

_MOST_TEXTS = 64  # texts that one value may be
_LONGEST_TEXT = 1 << 18
MOST_ITEMS = 200  # items of a list that are followed
GLOB = "\1"  # suffix of a text that stands for the files which match it


@dataclass(frozen=True, slots=True)
class ProgramValue:
    """What is known of a value; all fields empty means nothing."""

    texts: tuple[str, ...] = ()
    carries: frozenset[str] = frozenset()  # files whose content went into it
    opened: tuple[str, ...] = ()  # of an open file: its paths
    items: tuple[ProgramValue, ...] = ()  # of a literal list or tuple: its items; of a dictionary: its keys
    values: tuple[ProgramValue, ...] = ()  # of a literal dictionary: its values


UNKNOWN_VALUE = ProgramValue()


@dataclass(frozen=True, slots=True)
class ProgramWrite:
    """A file that a program writes."""

    path: str
    kind: WriteKind
    content: str | None = None
    line: int = 0  # line of the top-level statement
    command: tuple[str, ...] = ()  # of a copy, move and similar: the equivalent shell command


@dataclass(frozen=True, slots=True)
class ProgramEffects:
    """What a program does to files."""

    writes: tuple[ProgramWrite, ...] = ()
    shown: tuple[str, ...] = ()  # files whose content it prints
    commands: tuple[str, ...] = ()  # shell commands that it starts
    said: frozenset[str] = frozenset()  # literal lines that it prints
    looked: int = 0  # values that were looked at
    is_whole: bool = True  # it was followed to its end
    is_unnamed: bool = False  # it changed a file whose name is made at run time


NO_EFFECTS = ProgramEffects()


def union(values: Iterable[ProgramValue]) -> ProgramValue:
    """Return the value that may be any of several."""
    texts: dict[str, None] = {}
    carries: frozenset[str] = frozenset()
    opened: dict[str, None] = {}
    for value in values:
        texts.update(dict.fromkeys(value.texts[: _MOST_TEXTS - len(texts)]))
        carries |= value.carries
        opened.update(dict.fromkeys(value.opened))
    return ProgramValue(tuple(texts), carries, tuple(opened))


def carried(values: Iterable[ProgramValue]) -> ProgramValue:
    """Return a value of which only the content carried over from others is known."""
    carries: frozenset[str] = frozenset()
    for value in values:
        carries |= value.carries
    return ProgramValue(carries=carries) if carries else UNKNOWN_VALUE


def combined(make: Callable[..., str], values: Sequence[ProgramValue]) -> ProgramValue:
    """Return the value of a function of texts, for every combination of what they may be."""
    choices = [value.texts[:8] for value in values]
    if not all(choices):
        return carried(values)
    made: dict[str, None] = {}
    for picked in product(*choices):
        if len(made) >= _MOST_TEXTS or sum(map(len, picked)) > _LONGEST_TEXT:
            break
        made[make(*picked)] = None
    return ProgramValue(tuple(made), carried(values).carries)


def replaced(text: str, old: str, new: str) -> str:
    """Return a text with all occurrences of a part replaced; None if it would grow too large."""
    return text.replace(old, new) if text.count(old) * len(new) <= _LONGEST_TEXT else ""


def joined_path(*parts: str) -> str:
    """Return parts of a path joined as by `os.path.join` and `/`."""
    return posixpath.join(*parts) if parts else ""


def parent(path: str) -> str:
    """Return the folder of a path."""
    return posixpath.dirname(path) or "."


def one_of(source: ProgramValue) -> ProgramValue:
    """Return what a loop's variable may be."""
    if not source.items:
        return carried([source])
    width = len(source.items[0].items)
    if width and all(len(item.items) == width for item in source.items):
        return ProgramValue(items=tuple(union(item.items[index] for item in source.items) for index in range(width)))
    return union([*source.items, carried([source])])


def dictionary(pairs: tuple[ProgramValue, ...]) -> ProgramValue:
    """Return a mapping; iterating over it yields its keys."""
    keys, values = tuple(pair.items[0] for pair in pairs), tuple(pair.items[1] for pair in pairs)
    return ProgramValue(items=keys, values=values, carries=carried(values).carries)


def viewed(method: str, mapping: ProgramValue) -> ProgramValue:
    """Return the `items`, `keys` or `values` of a literal dictionary."""
    if method == "keys":
        return replace(mapping, values=())
    if method == "values":
        return ProgramValue(items=mapping.values, carries=mapping.carries)
    pairs = zip(mapping.items, mapping.values, strict=True)
    return ProgramValue(items=tuple(ProgramValue(items=pair) for pair in pairs), carries=mapping.carries)


def matching(patterns: ProgramValue) -> ProgramValue:
    """Return the list of files that patterns match; which ones is known only to the shell state."""
    texts = tuple(text + GLOB for text in patterns.texts if "**" not in text)
    return ProgramValue(items=(ProgramValue(texts),)) if texts else UNKNOWN_VALUE


def iterated(name: str, arguments: list[ProgramValue]) -> ProgramValue:
    """Return the result of a function that only rearranges its arguments."""
    if name == "enumerate":
        return ProgramValue(items=(ProgramValue(items=(UNKNOWN_VALUE, one_of(arguments[0]))),))
    if name == "zip":
        return ProgramValue(items=(ProgramValue(items=tuple(one_of(argument) for argument in arguments)),))
    return arguments[0]


SAME: Callable[[str], str] = str
PATH_FUNCTIONS: dict[str, Callable[..., str]] = {
    "os.path.join": joined_path,
    "os.path.dirname": parent,
    "os.path.basename": posixpath.basename,
    "os.path.abspath": SAME,
    "os.path.realpath": SAME,
    "os.path.normpath": SAME,
    "os.path.expanduser": SAME,
    "Path": joined_path,
    "pathlib.Path": joined_path,
    "PurePath": joined_path,
    "str": SAME,
    "os.fspath": SAME,
    "repr": SAME,
}
PATH_METHODS: dict[str, Callable[..., str]] = {
    "joinpath": joined_path,
    "resolve": SAME,
    "absolute": SAME,
    "expanduser": SAME,
    "as_posix": SAME,
    "strip": lambda text, *cut: text.strip(*cut[:1]),
    "with_suffix": lambda text, suffix: posixpath.splitext(text)[0] + suffix,
    "with_name": lambda text, name: joined_path(posixpath.dirname(text), name),
}
# Their results describe content but do not show it.
NOT_CONTENT = frozenset(
    {"len", "isinstance", "type", "hash", "id", "bool", "any", "all", "hasattr", "exists", "is_file", "count", "find",
     "index", "rfind", "startswith", "endswith", "isdigit", "stat", "getsize", "range", "sum", "name", "write",
     "writelines", "tell", "seek"}
)  # fmt: skip
# Functions and modules whose results still show the content they are given.
PASSING = frozenset(
    {"str", "repr", "list", "tuple", "set", "sorted", "reversed", "next", "iter", "map", "filter", "dict", "join",
     "format", "re", "json", "textwrap", "yaml", "toml", "tomllib", "csv", "itertools", "max", "min", "zip",
     "enumerate", "ast"}
)  # fmt: skip
