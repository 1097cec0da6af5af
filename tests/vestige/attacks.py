"""Finds the regular expressions of a package in its source, and builds texts on which each may take super-linear time.

An attack repeats what some part of a pattern matches and then fails: the beginning of the pattern up to a repetition,
then many copies of what that repetition, or anything after it, matches, then a text that matches nothing.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import random
import re
import re._constants as ops  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

ANCHORED = ("match", "fullmatch")
_CALLS = ("compile", "match", "fullmatch", "search", "findall", "finditer", "sub", "subn", "split")
_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)
_CATEGORIES = {
    ops.CATEGORY_DIGIT: "0",
    ops.CATEGORY_NOT_DIGIT: "a",
    ops.CATEGORY_SPACE: " ",
    ops.CATEGORY_NOT_SPACE: "a",
    ops.CATEGORY_WORD: "a",
    ops.CATEGORY_NOT_WORD: ".",
}
_SUFFIXES = ("\0", "\n", "a")  # what most classes, or an end that is required, do not accept
_MOST = 1200  # attacks on one pattern, drawn at random from all
_COMMON = "a0 .\n\"'/-"


@dataclass(frozen=True)
class FoundPattern:
    """A regular expression in the source, and how it is used there."""

    place: str  # module:line
    pattern: re.Pattern[Any]
    methods: frozenset[str]


def modules(package: str) -> Iterator[ModuleType]:
    """Yield a package and all its modules; those that need a package which is not installed are left out."""
    root = importlib.import_module(package)
    yield root
    for found in pkgutil.walk_packages(root.__path__, f"{package}."):
        try:
            yield importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("eirkit"):
                raise


def patterns_of(found: Sequence[ModuleType]) -> Iterator[FoundPattern]:
    """Yield every regular expression that some modules write down, without methods if its text is made at run time."""
    for module in found:
        text = Path(module.__file__ or "").read_text("utf-8")
        if not re.search(r"\bre\s*\.", text):
            continue
        nodes = list(ast.walk(ast.parse(text)))
        uses = _uses(nodes)
        named = {id(node.value): node.targets[0] for node in nodes if isinstance(node, ast.Assign)}
        for node in nodes:
            if (method := _method(node)) is None:
                continue
            assert isinstance(node, ast.Call)
            place = f"{module.__name__}:{node.lineno}"
            if (pattern := _evaluated(node, module)) is None:
                yield FoundPattern(place, re.compile(""), frozenset())
                continue
            target = named.get(id(node))
            name = target.id if isinstance(target, ast.Name) else ""
            # A pattern that others import, or that is passed on, may be used in any way.
            methods = uses.get(name, frozenset({"finditer"})) if method == "compile" else frozenset({method})
            yield FoundPattern(place, pattern, methods | ({"finditer"} if name[:1] not in ("", "_") else set()))


def _method(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    owner = node.func.value
    known = isinstance(owner, ast.Name) and owner.id == "re" and node.func.attr in _CALLS
    return node.func.attr if known else None


def _evaluated(node: ast.Call, module: ModuleType) -> re.Pattern[Any] | None:
    assert isinstance(node.func, ast.Attribute)
    place = {"compile": 1, "split": 3, "sub": 4, "subn": 4}.get(node.func.attr, 2)
    flags = [*node.args[place : place + 1], *(word.value for word in node.keywords if word.arg == "flags")]
    try:
        values = [
            eval(compile(ast.Expression(part), "pattern", "eval"), dict(vars(module)))
            for part in (node.args[0], *flags)
        ]
    except NameError:
        return None
    return re.compile(*values)


def _uses(nodes: Sequence[ast.AST]) -> dict[str, frozenset[str]]:
    """Return the methods that are called on each name of a module; any other use counts as a search."""
    called = {id(node.value): node.attr for node in nodes if isinstance(node, ast.Attribute) and node.attr in _CALLS}
    uses: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            uses.setdefault(node.id, set()).add(called.get(id(node), "finditer"))
    return {name: frozenset(found) for name, found in uses.items()}


@dataclass(frozen=True)
class Attack:
    """A text of any length: a beginning, copies of a unit, an end."""

    before: str
    unit: str
    after: str = ""

    def text(self, length: int, pattern: re.Pattern[Any]) -> Any:
        text = self.before + self.unit * (length // len(self.unit)) + self.after
        return text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text


def attacks(pattern: re.Pattern[Any]) -> list[Attack]:
    """Return texts that a pattern may be slow on; of very many, a draw that depends on the pattern alone."""
    is_bytes = isinstance(pattern.pattern, bytes)
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE if is_bytes else pattern.flags)
    alphabet = sorted(set(_COMMON) | set(_characters(tree)))
    made = list(dict.fromkeys(_attacks(tree, alphabet)))
    return random.Random(repr(pattern.pattern)).sample(made, min(_MOST, len(made)))


def _attacks(tree: Any, alphabet: list[str]) -> Iterator[Attack]:
    for before, bodies, rest in dict.fromkeys(_repeats(tree, "", ())):
        failing = tuple(f"{text[:-1]}\0" for text in rest)
        for pump in dict.fromkeys((*bodies, *alphabet, *rest)):
            if pump:
                for after in (*_SUFFIXES, *(failing if pump in bodies else ())):
                    yield Attack(before, pump, after)
        for pump in dict.fromkeys(("", *bodies, *rest, *(one + other for one in bodies for other in rest))):
            if unit := before + pump:
                yield from (Attack("", unit, after) for after in ("", *_SUFFIXES))


def _repeats(
    tree: Any, before: str, following: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Yield what comes before each repetition, what may be repeated there, and what may follow it."""
    items = list(tree)
    for index, (op, value) in enumerate(items):
        rest = tuple(_sample(items[index + 1 : end]) for end in range(index + 2, min(len(items), index + 7) + 1))
        if op in _REPEATS:
            body = _samples(value[2])
            yield before, body, (*rest, *following)
            yield from _repeats(value[2], before, (*body, *rest))
        elif op is ops.SUBPATTERN:
            yield from _repeats(value[3], before, (*rest, *following))
        elif op is ops.ATOMIC_GROUP:
            yield from _repeats(value, before, (*rest, *following))
        elif op is ops.BRANCH:
            for branch in value[1]:
                yield from _repeats(branch, before, (*rest, *following))
        elif op in (ops.ASSERT, ops.ASSERT_NOT):
            yield from _repeats(value[1], before, rest)
        before += _sample([(op, value)])
    yield before, following, ()


def _samples(tree: Any) -> tuple[str, ...]:
    """Return texts that a tree matches, one for each branch at its top."""
    for op, value in tree:
        if op is ops.BRANCH:
            return tuple(dict.fromkeys(_sample(branch) for branch in value[1]))
        if op is ops.SUBPATTERN and len(tree) == 1:
            return _samples(value[3])
    return (_sample(tree), *(text for text in _class(tree)))


def _class(tree: Any) -> Iterator[str]:
    if len(tree) == 1 and tree[0][0] in (ops.IN, ops.ANY, ops.NOT_LITERAL):
        yield from (character for character in _COMMON if _accepts(tree[0], character))


def _accepts(item: tuple[Any, Any], character: str) -> bool:
    if item[0] is ops.ANY:
        return character != "\n"
    if item[0] is ops.NOT_LITERAL:
        return ord(character) != item[1]
    negated = item[1][0][0] is ops.NEGATE
    return negated != any(_one(part, character) for part in item[1])


def _one(part: tuple[Any, Any], character: str) -> bool:
    op, value = part
    if op is ops.LITERAL:
        return bool(ord(character) == value)
    if op is ops.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    if op is ops.CATEGORY:
        text = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}
        name = str(value).removeprefix("CATEGORY_")
        matches = re.match(text[name.removeprefix("NOT_")], character) is not None
        return matches != name.startswith("NOT_")
    return False


def _sample(tree: Any) -> str:
    """Return a short text that a tree matches, apart from what it looks ahead and back for."""
    return "".join(_sampled(op, value) for op, value in tree)


def _sampled(op: Any, value: Any) -> str:
    if op is ops.LITERAL:
        return chr(value)
    if op in (ops.IN, ops.ANY, ops.NOT_LITERAL):
        own = (chr(part[1]) for part in value if part[0] is ops.LITERAL) if op is ops.IN else ()
        tried = (*_COMMON, *own, *map(chr, range(33, 127)))
        return next((one for one in tried if _accepts((op, value), one)), "a")
    if op is ops.BRANCH:
        return _sample(value[1][0])
    if op is ops.SUBPATTERN:
        return _sample(value[3])
    if op is ops.ATOMIC_GROUP:
        return _sample(value)
    if op in _REPEATS:
        return _sample(value[2]) * max(1, min(int(value[0]), 20))
    return ""


def _characters(tree: Any) -> Iterator[str]:
    """Yield one character of each kind that the classes of a tree tell apart."""
    for op, value in tree:
        if op is ops.NOT_LITERAL:
            yield chr(value)
        elif op is ops.IN:
            for kind, part in value:
                if kind in (ops.LITERAL, ops.RANGE):
                    yield chr(part if kind is ops.LITERAL else part[0])
                elif kind is ops.CATEGORY:
                    yield _CATEGORIES[part]
        elif op is ops.BRANCH:
            for branch in value[1]:
                yield from _characters(branch)
        elif op is ops.SUBPATTERN:
            yield from _characters(value[3])
        elif op is ops.ATOMIC_GROUP:
            yield from _characters(value)
        elif op in (ops.ASSERT, ops.ASSERT_NOT):
            yield from _characters(value[1])
        elif op in _REPEATS:
            yield from _characters(value[2])


class TooSlowError(Exception):
    """A match took longer than anything linear can on any machine."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise TooSlowError after some seconds of processor time; the matcher of `re` looks for signals."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def seconds(pattern: re.Pattern[Any], method: str, text: Any) -> float:
    """Return the processor time that one use of a pattern on a text takes."""
    start = time.thread_time()
    if method in ("sub", "subn"):
        pattern.sub(text[:0], text)
    elif method in ("finditer", "findall", "split"):
        for _ in pattern.finditer(text):
            pass
    else:
        getattr(pattern, method)(text)
    return time.thread_time() - start
