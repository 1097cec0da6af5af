"""Parses a shell command with the tree-sitter grammar of bash into the nodes of `syntax.py`; it never raises.

Recovering from bad syntax takes the grammar a hundred times as long as parsing good syntax. So commands are parsed in
pieces of bounded size, a broken command only up to a limit, and a run may spend only so much on broken commands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from eirkit.errors import MissingExtraError
from eirkit.vestige.shell.state import Effort
from eirkit.vestige.shell.syntax import (
    EMPTY,
    FED,
    MARK,
    STRING,
    Chain,
    Command,
    Connector,
    ExtractedText,
    FunctionDefinition,
    Group,
    Loop,
    Node,
    Pipeline,
    Redirect,
    Word,
    WordPiece,
    extract_long_texts,
    parse_plain,
    unquote_double,
)
from eirkit.vestige.shell.words import ARRAY, document_word, joined, open_word

if TYPE_CHECKING:
    from tree_sitter import Node as TreeNode
    from tree_sitter import Parser, Tree

LONGEST_COMMAND = 1 << 20  # characters of a command that are parsed
_LONGEST_SKELETON = 1 << 15
_PIECE = 3000  # characters passed to the grammar at once
_MOST_BROKEN = 2 * _PIECE  # characters of a command in pieces with bad syntax, after which the rest is left out
_BROKEN_COST = 2  # a character of a piece with bad syntax takes up to 40 µs, two commands interpreted
_DEEPEST = 40  # deepest nesting that is followed
_CACHED = 10_000  # longest command that is cached
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_LISTING = re.compile(r"(?:\$\(|`)\s*(?:e?grep|rg|find|ls|git|echo|seq)\b")
_MARK = re.compile(MARK + r"(\d+)")


class ParsedCommand(NamedTuple):
    """The syntax nodes of a command, and what it took to find them."""

    node: Node
    broken: int  # characters in pieces with bad syntax
    is_whole: bool  # it was parsed to its end


def parse(command: str, effort: Effort) -> Node:
    """Return the syntax nodes of a command; what the grammar cannot parse is left out.

    A command is cut short if it is too long, too broken, or if its run has nothing left to spend on it.
    """
    plain = parse_plain(command)
    if plain is not None:
        return plain
    if not effort.spend(0):
        return EMPTY
    parsed = _remembered(command) if len(command) <= _CACHED else parse_with_grammar(command)
    if parsed.broken:
        effort.spend(parsed.broken * _BROKEN_COST)
    effort.is_cut = effort.is_cut or not parsed.is_whole
    return parsed.node


@cache
def _parser() -> Parser:
    try:
        import tree_sitter_bash
        from tree_sitter import Language, Parser
    except ImportError:
        raise MissingExtraError("reading shell commands", "vestige") from None
    return Parser(Language(tree_sitter_bash.language()))


def parse_with_grammar(command: str) -> ParsedCommand:
    """Return the syntax nodes of a command from the grammar, however simple the command is."""
    lifted = extract_long_texts(command[:LONGEST_COMMAND])
    nodes, broken = [], 0
    is_whole = len(command) <= LONGEST_COMMAND and len(lifted.skeleton) <= _LONGEST_SKELETON
    for piece in _pieces(lifted.skeleton[:_LONGEST_SKELETON].replace("\0", "")):
        if broken >= _MOST_BROKEN:
            is_whole = False
            break
        root = _tree(_ascii(piece)).root_node
        broken += len(piece) if root.has_error else 0
        nodes.append(_Builder(piece, lifted.bodies).sequence(root.children, _DEEPEST))
    node = nodes[0] if len(nodes) == 1 else Chain(tuple((";", node) for node in nodes))
    return ParsedCommand(node, broken, is_whole)


@lru_cache(maxsize=256)
def _tree(piece: bytes) -> Tree:
    # Recovering from bad syntax can take the grammar a tenth of a second, and hostile commands repeat themselves.
    return _parser().parse(piece)


_remembered = lru_cache(maxsize=4096)(parse_with_grammar)


def _ascii(text: str) -> bytes:
    # The grammar's scanner indexes a table of 256 characters and can crash on others. None of them
    # has a meaning in a shell, so each is replaced by a letter, and byte offsets equal text offsets.
    return (text if text.isascii() else _FOREIGN.sub("X", text)).encode("ascii")


def _pieces(source: str) -> Iterator[str]:
    while len(source) > _PIECE:
        cut = source.rfind("\n", 0, _PIECE) + 1 or _PIECE
        yield source[:cut]
        source = source[cut:]
    yield source


class _Builder:
    """Converts the nodes of one tree to ours; `left` counts down the nesting levels that may still be followed."""

    def __init__(self, source: str, bodies: Sequence[ExtractedText]) -> None:
        self.source, self.bodies = source, bodies

    def text(self, node: TreeNode) -> str:
        return self.source[node.start_byte : node.end_byte]

    def sequence(self, nodes: Sequence[TreeNode], left: int) -> Node:
        items: list[tuple[Connector, Node]] = []
        for node in nodes:
            if (part := self.part(node, left)) is not None:
                items.append((";", part))
        return items[0][1] if len(items) == 1 else Chain(tuple(items))

    def part(self, node: TreeNode, left: int) -> Node | None:
        build = _PARTS.get(node.type)
        return build(self, node, left - 1) if build and left > 0 else None

    def command(self, node: TreeNode, left: int) -> Node:
        words: list[Word] = []
        assignments: list[tuple[str, tuple[Word, ...]]] = []
        redirects: list[Redirect] = []
        inner: list[Node] = []
        for child in node.children:
            kind = child.type
            if kind == "variable_assignment":
                assignments.append(self.assignment(child, inner, left))
            elif kind == "file_redirect":
                self.redirect(child, redirects, words, inner, left)
            elif kind == "command_name":
                words.append(self.word(child.children[0], inner, left) if child.children else self.text(child))
            elif kind not in _SILENT:
                words.append(self.word(child, inner, left))
        return Command(tuple(words), tuple(assignments), tuple(redirects), tuple(inner))

    def assignment(self, node: TreeNode, inner: list[Node], left: int) -> tuple[str, tuple[Word, ...]]:
        children = node.children
        if len(children) < 3:
            return self.text(node).rstrip("="), ("",)
        name, value = self.text(children[0]), children[-1]
        adds = children[1].type == "+="
        if value.type == "array":
            old: tuple[Word, ...] = ((WordPiece("name", f"{name}[@]"),),) if adds else ()
            return name, (ARRAY, *old, *(self.word(child, inner, left) for child in value.named_children))
        word = self.word(value, inner, left)
        return name, (joined([(WordPiece("name", name),), word], quoted=True) if adds else word,)

    def redirect(
        self, node: TreeNode, redirects: list[Redirect], words: list[Word], inner: list[Node], left: int
    ) -> None:
        descriptor, operator, targets = None, "", []
        for child in node.children:
            if child.type == "file_descriptor":
                number = self.text(child)
                descriptor = int(number) if number.isdigit() and len(number) < 5 else None
            elif not child.is_named and not operator:
                operator = child.type
            else:
                targets.append(child)
        if not targets or operator in (">&", "<&", ">&-", "<&-"):
            return
        redirects.append(self.opened(operator, targets[0], descriptor, inner, left))
        # The grammar parses arguments after a redirection as further targets of it.
        words.extend(self.word(target, inner, left) for target in targets[1:])

    def opened(self, operator: str, target: TreeNode, descriptor: int | None, inner: list[Node], left: int) -> Redirect:
        text = self.text(target)
        if mark := _MARK.fullmatch(text):
            body = self.bodies[int(mark[1])]
            return Redirect("here", document_word(body.text) if body.expands else body.text)
        word = self.word(target, inner, left)
        if text.startswith(STRING):
            return Redirect("here", word)
        return Redirect(operator, word, descriptor)

    def word(self, node: TreeNode, inner: list[Node], left: int) -> Word:
        kind = node.type
        if kind in ("word", "number", "extglob_pattern", "variable_name", "special_variable_name"):
            return open_word(self.text(node))
        if kind == "raw_string":
            text = self.text(node)[1:-1]
            mark = _MARK.fullmatch(text)
            return self.bodies[int(mark[1])].text if mark and int(mark[1]) < len(self.bodies) else text
        if left <= 0:
            return joined(())
        if kind == "string":
            return self.string(node, inner, left - 1)
        if kind in ("concatenation", "test_operator", "brace_expression"):
            if kind != "concatenation":
                return open_word(self.text(node))
            return joined([self.word(child, inner, left - 1) for child in node.children])
        return self.expansion(node, inner, left - 1)

    def string(self, node: TreeNode, inner: list[Node], left: int) -> Word:
        children = node.children
        if all(child.type in ('"', "string_content") for child in children):
            return unquote_double(self.source[node.start_byte + 1 : node.end_byte - 1])
        parts: list[Word] = []
        position = node.start_byte + 1
        for child in children[1:]:
            # Blanks between two expansions belong to no node.
            parts.append(unquote_double(self.source[position : child.start_byte]))
            if child.type == "string_content":
                parts.append(unquote_double(self.text(child)))
            elif child.type != '"':
                parts.append(self.expansion(child, inner, left, quoted=True))
            position = child.end_byte
        return joined(parts, quoted=True)

    def expansion(self, node: TreeNode, inner: list[Node], left: int, quoted: bool = False) -> Word:
        kind = node.type
        if kind in ("simple_expansion", "expansion"):
            return document_word(self.text(node), split=not quoted)
        if kind == "command_substitution" and self.text(node) in ("$(pwd)", "`pwd`"):
            return document_word("$PWD", split=not quoted)
        if kind in ("command_substitution", "process_substitution"):
            feeds = self.text(node).startswith(FED)
            source = "" if feeds else self.text(node)
            inner.append(Group(self.sequence(node.children, left), True, feeds=feeds, source=source))
            if feeds:
                return (WordPiece("unknown", FED),)
            return (WordPiece("name" if quoted else "split", source),)
        if kind == "ansi_c_string":
            return _ANSI.sub(lambda found: _ANSI_MEANING.get(found[1], found[1]), self.text(node)[2:-1])
        if kind == "translated_string" and node.children:
            return self.word(node.children[-1], inner, left)
        if not node.is_named:
            return self.text(node)
        return joined(())

    def chain(self, node: TreeNode, left: int) -> Node:
        # A long list is nested to the left, one level per command, so it is unrolled in a loop.
        items: list[tuple[Connector, Node]] = []
        current: TreeNode | None = node
        while current is not None and current.type == "list":
            children = current.children
            connector: Connector = "||" if any(child.type == "||" for child in children) else "&&"
            if len(children) > 1 and (part := self.part(children[-1], left)) is not None:
                items.append((connector, part))
            current = children[0] if children else None
        if current is not None and (part := self.part(current, left)) is not None:
            items.append((";", part))
        return Chain(tuple(reversed(items)))

    def pipeline(self, node: TreeNode, left: int) -> Node:
        stages: list[TreeNode] = []
        current = node
        while current.type == "pipeline" and current.named_children:
            children = current.named_children
            stages[:0] = children[1:]
            current = children[0]
        parts = [self.part(stage, left) for stage in (current, *stages)]
        return Pipeline(tuple(part for part in parts if part is not None))

    def redirected(self, node: TreeNode, left: int) -> Node:
        redirects: list[Redirect] = []
        words: list[Word] = []
        inner: list[Node] = []
        body: Node | None = None
        for child in node.children:
            if child.type == "file_redirect":
                self.redirect(child, redirects, words, inner, left)
            elif body is None:
                body = self.part(child, left)
        if isinstance(body, Command):
            return Command(
                body.words + tuple(words),
                body.assignments,
                body.redirects + tuple(redirects),
                body.inner + tuple(inner),
            )
        if isinstance(body, Pipeline) and isinstance(last := body.stages[-1], Command):
            changed = Command(
                last.words + tuple(words), last.assignments, last.redirects + tuple(redirects), last.inner
            )
            return Pipeline((*body.stages[:-1], changed))
        fed = next((part for part in inner if isinstance(part, Group) and part.feeds), None)
        if fed is not None and body is not None:  # `done < <(…)` reads its input like a pipe
            others = tuple(redirect for redirect in redirects if redirect.operator != "<")
            return Pipeline((fed, Group(body, redirects=others)))
        return Group(body or EMPTY, redirects=tuple(redirects)) if body or redirects else EMPTY

    def loop(self, node: TreeNode, left: int) -> Node:
        variable, seen_in = "", False
        words: list[Word] = []
        inner: list[Node] = []
        body: Node = EMPTY
        for child in node.children:
            if child.type == "in":
                seen_in = True
            elif child.type == "variable_name" and not seen_in:
                variable = self.text(child)
            elif child.type in ("do_group", "compound_statement"):
                body = self.sequence(child.children, left)
            elif seen_in and child.is_named:
                words.append(self.word(child, inner, left))
        loop = Loop(variable, tuple(words), body)
        before: list[tuple[Connector, Node]] = [(";", part) for part in inner if not _lists(part)]
        if lists := tuple(part for part in inner if _lists(part)):
            before.append((";", Command((), inner=lists)))
        return Chain((*before, (";", loop))) if inner else loop

    def group(self, node: TreeNode, left: int) -> Node:
        return Group(self.sequence(node.children, left), subshell=node.type == "subshell")

    def function(self, node: TreeNode, left: int) -> Node:
        name = next((self.text(child) for child in node.children if child.type == "word"), "")
        return FunctionDefinition(name, self.sequence(node.named_children[1:], left))

    def lone_assignment(self, node: TreeNode, left: int) -> Node:
        inner: list[Node] = []
        found = [node] if node.type == "variable_assignment" else node.named_children
        pairs = [self.assignment(child, inner, left) for child in found if child.type == "variable_assignment"]
        return Command((), tuple(pairs), (), tuple(inner))


def _lists(part: Node) -> bool:
    """Return whether a substitution yields names or numbers to iterate over, so that none of its output is shown."""
    return isinstance(part, Group) and bool(_LISTING.match(part.source))


_ANSI = re.compile(r"\\(n|t|r|\\|'|\"|a|e)")
_ANSI_MEANING = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "e": "\x1b"}


_SILENT = frozenset({"comment", "\n", ";", "&", "herestring_redirect", "heredoc_redirect", "ERROR"})
_PARTS: dict[str, Callable[[_Builder, TreeNode, int], Node]] = {
    "command": _Builder.command,
    "list": _Builder.chain,
    "pipeline": _Builder.pipeline,
    "redirected_statement": _Builder.redirected,
    "for_statement": _Builder.loop,
    "c_style_for_statement": _Builder.group,
    "function_definition": _Builder.function,
    "variable_assignment": _Builder.lone_assignment,
    "variable_assignments": _Builder.lone_assignment,
    "declaration_command": _Builder.lone_assignment,
    "test_command": lambda builder, node, left: Command(("test",)),
    **dict.fromkeys(
        (
            "subshell",
            "compound_statement",
            "negated_command",
            "if_statement",
            "elif_clause",
            "else_clause",
            "while_statement",
            "do_group",
            "case_statement",
            "case_item",
            "ERROR",
        ),
        _Builder.group,
    ),
}
