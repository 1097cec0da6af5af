"""Infers from the syntax tree of a Python program which files it writes and which file content it prints.

Nothing is executed. Names bound to literal texts are followed through assignments, loops over lists, `with`, functions
called with known arguments, and path joins. A program that does not parse has no effects.
"""

from __future__ import annotations

import ast
import shlex
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from eirkit.vestige.shell.python_calls import ACTS, METHODS, SAVING, ProgramCall, ProgramFiles
from eirkit.vestige.shell.python_values import (
    MOST_ITEMS,
    NO_EFFECTS,
    NOT_CONTENT,
    PASSING,
    PATH_FUNCTIONS,
    PATH_METHODS,
    UNKNOWN_VALUE,
    ProgramEffects,
    ProgramValue,
    carried,
    combined,
    dictionary,
    iterated,
    joined_path,
    matching,
    one_of,
    parent,
    replaced,
    union,
    viewed,
)

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_ENDS = frozenset({"sys.exit", "exit", "quit", "os._exit"})
LONGEST_PROGRAM = 200_000  # characters
_MOST_STATEMENTS = 4000
_MOST_VALUES = 100_000  # that are looked at, as many as the longest program has; functions are followed at each call
_DEEPEST_CALL = 4
_DEEPEST_EXPRESSION = 60
_SIGNS = (
    "open(", "write_text", "read_text", "write_bytes", "read_bytes", "fileinput", "pathlib", "subprocess", "os.system",
    "os.popen", "os.re", "os.unlink", "os.symlink", "shutil.", ".unlink(", ".rename(", ".touch(", "FileInput",
    ".write(", ".save(", *(f".{name}(" for name in SAVING),
)  # fmt: skip
_RUNS = frozenset(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen", "getoutput"))


def effects_of(text: str, arguments: tuple[str, ...] = ()) -> ProgramEffects:
    """Return the effects of a program started with arguments, the first of which is its own name."""
    if len(text) > LONGEST_PROGRAM or not _may_touch(text):
        return NO_EFFECTS
    return _remembered(text, arguments)


@lru_cache(maxsize=64)
def _may_touch(text: str) -> bool:
    return any(map(text.__contains__, _SIGNS))


@lru_cache(maxsize=512)
def _remembered(text: str, arguments: tuple[str, ...]) -> ProgramEffects:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        return _Program(arguments).effects(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return NO_EFFECTS


class _Program:
    """One program, interpreted statement by statement."""

    def __init__(self, arguments: tuple[str, ...]) -> None:
        self.arguments = arguments
        self.names: dict[str, ProgramValue] = {}
        self.functions: dict[str, _Function] = {}
        self.methods: dict[str, _Function] = {}
        self.commands: list[str] = []
        self.ledger = ProgramFiles()
        self.depth = self.statements = self.looked = 0

    def effects(self, tree: ast.Module) -> ProgramEffects:
        self.block(tree.body)
        done = self.ledger
        is_whole = self.statements <= _MOST_STATEMENTS and self.looked <= _MOST_VALUES
        found = (tuple(done.settled()), tuple(done.shown), tuple(self.commands), frozenset(done.said))
        return ProgramEffects(*found, self.looked, is_whole, done.is_unnamed)

    def block(self, statements: Sequence[ast.stmt]) -> bool:
        """Interpret statements in order; return True if one of them leaves the block, so that the rest never runs."""
        for statement in statements:
            self.statements += 1
            if self.statements > _MOST_STATEMENTS or self.looked > _MOST_VALUES:
                return True
            if self.depth == 0:
                self.ledger.line = statement.lineno
            if self.statement(statement):
                return True
        return False

    def statement(self, node: ast.stmt) -> bool:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.functions[node.name] = node
        elif isinstance(node, ast.ClassDef):
            self._class(node)
        elif isinstance(node, ast.Assign):
            value = self.value(node.value)
            for target in node.targets:
                self.bind(target, value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            self._update(node)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            source = self.value(node.iter)
            self.bind(node.target, one_of(source))
            self.ledger.loops += 1
            self.block(node.body)
            self.ledger.loops -= 1
            self.block(node.orelse)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                value = self.value(item.context_expr)
                if item.optional_vars is not None:
                    self.bind(item.optional_vars, value)
            return self.block(node.body)
        elif isinstance(node, ast.Try):
            for body in (node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody):
                self.block(body)
        elif isinstance(node, (ast.If, ast.While, ast.Match)):
            self._branch(node)
        elif isinstance(node, ast.Expr):
            self.value(node.value)
            return isinstance(node.value, ast.Call) and _dotted(node.value.func) in _ENDS
        elif isinstance(node, ast.Return) and node.value is not None:
            value = self.value(node.value)
            self.names["return"] = union([self.names.get("return", UNKNOWN_VALUE), value])
        return isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue))

    def _branch(self, node: ast.If | ast.While | ast.Match) -> None:
        test = node.subject if isinstance(node, ast.Match) else node.test
        self.value(test)
        self.ledger.branches += 1
        if isinstance(node, ast.Match):
            for case in node.cases:
                self.block(case.body)
        else:
            if not (isinstance(test, ast.Constant) and not test.value):
                self.block(node.body)
            self.block(node.orelse)
        self.ledger.branches -= 1

    def _class(self, node: ast.ClassDef) -> None:
        """Keep a class's methods by name only; the class of a value is not tracked."""
        for inner in node.body:
            if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
                own = f"{node.name}()" if inner.name == "__init__" else inner.name
                self.methods[own] = inner
            elif isinstance(inner, ast.Assign) and all(isinstance(target, ast.Name) for target in inner.targets):
                value = self.value(inner.value)
                self.names.update({f"self.{target.id}": value for target in inner.targets})  # type: ignore[attr-defined]

    def _update(self, node: ast.AnnAssign | ast.AugAssign) -> None:
        if node.value is None or not isinstance(node.target, ast.Name):
            return
        value = self.value(node.value)
        if isinstance(node, ast.AugAssign):
            old = self.names.get(node.target.id, UNKNOWN_VALUE)
            value = combined(lambda a, b: a + b, [old, value])
        self.names[node.target.id] = value

    def bind(self, target: ast.expr, value: ProgramValue) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for index, inner in enumerate(target.elts):
                picked = value.items[index] if index < len(value.items) else carried([value])
                self.bind(inner, picked)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            name = target.value.id
            self.names[name] = union([self.names.get(name, UNKNOWN_VALUE), carried([value])])
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            self.names[f"{target.value.id}.{target.attr}"] = value

    def value(self, node: ast.expr, left: int = _DEEPEST_EXPRESSION) -> ProgramValue:
        """Return what is known of an expression, and record the effects of the calls in it."""
        self.looked += 1
        if left <= 0 or self.looked > _MOST_VALUES:
            return UNKNOWN_VALUE
        handler = _EXPRESSIONS.get(type(node))
        if handler is not None:
            return handler(self, node, left - 1)
        inner = [self.value(child, left - 1) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        return UNKNOWN_VALUE if isinstance(node, (ast.Compare, ast.Lambda)) else carried(inner)

    def constant(self, node: ast.Constant, left: int) -> ProgramValue:
        return ProgramValue((node.value,)) if isinstance(node.value, str) else UNKNOWN_VALUE

    def name(self, node: ast.Name, left: int) -> ProgramValue:
        if node.id == "__file__":
            return ProgramValue(self.arguments[:1])
        return self.names.get(node.id, UNKNOWN_VALUE)

    def sequence(self, node: ast.List | ast.Tuple | ast.Set, left: int) -> ProgramValue:
        items = tuple(self.value(item, left) for item in node.elts[:MOST_ITEMS])
        return ProgramValue(carries=carried(items).carries, items=items)

    def mapping(self, node: ast.Dict, left: int) -> ProgramValue:
        keys = [self.value(key, left) for key in node.keys if key is not None]
        values = [self.value(value, left) for value in node.values]
        pairs = tuple(ProgramValue(items=pair) for pair in zip(keys, values, strict=False))
        return dictionary(pairs)

    def joined(self, node: ast.JoinedStr, left: int) -> ProgramValue:
        parts = [self.value(part.value if isinstance(part, ast.FormattedValue) else part, left) for part in node.values]
        return combined(lambda *texts: "".join(texts), parts) if len(parts) < 20 else carried(parts)

    def operation(self, node: ast.BinOp, left: int) -> ProgramValue:
        sides = [self.value(node.left, left), self.value(node.right, left)]
        if isinstance(node.op, ast.Div):
            return combined(joined_path, sides)
        if isinstance(node.op, ast.Add):
            items = (sides[0].items + sides[1].items)[:MOST_ITEMS]
            return (
                ProgramValue(items=items, carries=carried(sides).carries)
                if items
                else combined(lambda a, b: a + b, sides)
            )
        if isinstance(node.op, ast.Mod) and sides[0].texts and sides[1].texts:
            return combined(lambda form, text: replaced(form, "%s", text), sides)
        return carried(sides)

    def attribute(self, node: ast.Attribute, left: int) -> ProgramValue:
        if isinstance(node.value, ast.Name) and (own := f"{node.value.id}.{node.attr}") in self.names:
            return self.names[own]
        base = self.value(node.value, left)
        if node.attr == "parent":
            return combined(parent, [base])
        return carried([base])

    def subscript(self, node: ast.Subscript, left: int) -> ProgramValue:
        base, index = self.value(node.value, left), node.slice
        if _dotted(node.value) == "sys.argv" and isinstance(index, ast.Constant) and isinstance(index.value, int):
            return ProgramValue(self.arguments[index.value : index.value + 1]) if index.value >= 0 else UNKNOWN_VALUE
        if base.values and isinstance(index, ast.Constant) and isinstance(index.value, str):
            pairs = zip(base.items, base.values, strict=True)
            return next((value for key, value in pairs if key.texts == (index.value,)), UNKNOWN_VALUE)
        if base.items and isinstance(index, ast.Constant) and isinstance(index.value, int):
            return base.items[index.value] if -len(base.items) <= index.value < len(base.items) else UNKNOWN_VALUE
        self.value(index, left)
        return carried([base])

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, left: int) -> ProgramValue:
        for part in node.generators:
            self.bind(part.target, one_of(self.value(part.iter, left)))
        element = self.value(node.elt, left)
        return replace(carried([element]), items=(element,)) if element.texts else carried([element])

    def call(self, node: ast.Call, left: int) -> ProgramValue:
        name = _dotted(node.func)
        base = self.value(node.func.value, left) if isinstance(node.func, ast.Attribute) else UNKNOWN_VALUE
        arguments = [self.value(argument, left) for argument in node.args]
        keywords = {word.arg: self.value(word.value, left) for word in node.keywords if word.arg}
        method = name.rpartition(".")[2]
        if (function := self.functions.get(name)) is not None:
            return self.run(function, arguments, keywords)
        own = f"{name}()" if isinstance(node.func, ast.Name) else method
        if own in self.methods and not base.texts and not base.opened:
            return self.run(self.methods[own], arguments, keywords, bound=True)
        act = ACTS.get(name) or (METHODS.get(method) if isinstance(node.func, ast.Attribute) else None)
        if act is not None:
            return act(self.ledger, ProgramCall(base, arguments, keywords))
        if name in PATH_FUNCTIONS and arguments:
            return combined(PATH_FUNCTIONS[name], arguments)
        if method in PATH_METHODS and base.texts:
            return combined(PATH_METHODS[method], [base, *arguments])
        if name in ("enumerate", "sorted", "list", "set", "tuple", "reversed", "zip") and arguments:
            return iterated(name, arguments)
        if method in ("items", "keys", "values") and base.values:
            return viewed(method, base)
        if method in ("glob", "iglob") and arguments:
            return matching(arguments[0] if not base.texts else combined(joined_path, [base, arguments[0]]))
        if name in ("os.getcwd", "Path.cwd", "pathlib.Path.cwd"):
            return ProgramValue((".",))
        if name in _RUNS or name in ("os.system", "os.popen"):
            return self._start(arguments)
        grown_list = node.func.value if isinstance(node.func, ast.Attribute) else None
        if method in ("append", "extend", "insert") and isinstance(grown_list, ast.Name):
            old = self.names.get(grown_list.id, UNKNOWN_VALUE)
            grown = union([old, carried(arguments)])
            self.names[grown_list.id] = replace(grown, items=(*old.items, *arguments[-1:])[:MOST_ITEMS])
        if method in NOT_CONTENT:
            return UNKNOWN_VALUE
        # The result of an unknown function need not show the content it was given; that of texts does.
        passes = base.carries or name.partition(".")[0] in PASSING or method in PASSING
        return carried([base, *arguments, *keywords.values()]) if passes else UNKNOWN_VALUE

    def _start(self, arguments: list[ProgramValue]) -> ProgramValue:
        if arguments and arguments[0].texts:
            self.commands.extend(arguments[0].texts[:8])
        elif arguments and arguments[0].items and all(item.texts for item in arguments[0].items):
            self.commands.append(shlex.join(item.texts[0] for item in arguments[0].items))
        return UNKNOWN_VALUE

    def run(
        self, function: _Function, arguments: list[ProgramValue], keywords: dict[str, ProgramValue], bound: bool = False
    ) -> ProgramValue:
        if self.depth >= _DEEPEST_CALL:
            return UNKNOWN_VALUE
        outer, self.names = self.names, dict(self.names)
        parameters = [*function.args.posonlyargs, *function.args.args]
        if bound and not any(_dotted(one) == "staticmethod" for one in function.decorator_list):
            parameters = parameters[1:]
        defaults = function.args.defaults
        for parameter, default in zip(parameters[len(parameters) - len(defaults) :], defaults, strict=False):
            self.names[parameter.arg] = self.value(default)
        for parameter, value in zip(parameters, arguments, strict=False):
            self.names[parameter.arg] = value
        self.names.update(keywords)
        self.names.pop("return", None)
        self.depth += 1
        self.block(function.body)
        self.depth -= 1
        result, inner, self.names = self.names.get("return", UNKNOWN_VALUE), self.names, outer
        if bound:
            self.names.update({name: value for name, value in inner.items() if name.startswith("self.")})
        return result


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "?")
    return ".".join(reversed(parts))


_EXPRESSIONS: dict[type[ast.expr], Callable[..., ProgramValue]] = {
    ast.Constant: _Program.constant,
    ast.Name: _Program.name,
    ast.List: _Program.sequence,
    ast.Tuple: _Program.sequence,
    ast.Set: _Program.sequence,
    ast.Dict: _Program.mapping,
    ast.JoinedStr: _Program.joined,
    ast.BinOp: _Program.operation,
    ast.Attribute: _Program.attribute,
    ast.Subscript: _Program.subscript,
    ast.ListComp: _Program.comprehension,
    ast.SetComp: _Program.comprehension,
    ast.GeneratorExp: _Program.comprehension,
    ast.Call: _Program.call,
}
