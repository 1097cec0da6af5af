"""Interprets a parsed command without running it: what each part shows and writes, in which folder.

The table of commands is a constructor argument. Loops, functions and nesting are followed up to fixed limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from eirkit.limits import check_time
from eirkit.vestige.shell.state import NOTHING, OTHER, UNNAMED, Flow, ShellState, chosen, files_complained_of, merged
from eirkit.vestige.shell.syntax import EMPTY, FED, Chain, Command, Group, Loop, Node, Pipeline, Redirect
from eirkit.vestige.shell.words import UNKNOWN, Glob, assigned, expand, expand_text, is_unknown
from eirkit.vestige.trajectory import FileWrite, WriteKind

_MOST_STEPS = 2000  # most commands interpreted in one call
_WORDS_PER_COMMAND = 8  # so many words of a command cost as much as another command
_TESTS = frozenset({"test", "["})
_SPEAKERS = frozenset({"echo", "printf", "diff", "write-output", "write-host"})
# Of bash, dash and zsh, which Claude Code runs as `(eval)`.
NOT_FOUND = re.compile(
    r"(?m)^(?:(?:[\w./-]{0,40}sh|\(eval\)): ?(?:line )?(?:\d{1,6}: ?)?(?:command not found: (\S{1,100})"
    r"|(\S{1,100}): (?:command )?not found))(?:\n|\Z)"
)
_NO_MATCHES = re.compile(r"(?m)^(?:zsh|\(eval\)):(?:\d{1,6}:)? no matches found: (\S{1,400})$")
_DEEPEST = 12  # deepest nesting of functions, scripts and shells


class ShellWrite(Struct, frozen=True, gc=False):
    """A write, and what decides whether it happened."""

    write: FileWrite
    step: int  # index of its command among all that ran
    command: str  # the command's name, as printed in errors
    word: str  # its target as spelled on the command line
    firm: bool = True  # it happens only if its command succeeds; a redirection happens regardless
    line: int = 0  # line of the script, to compare with the line in a traceback


class Invocation(Struct, frozen=True, gc=False):
    """One command with its arguments."""

    name: str
    arguments: list[str]
    stdin: Flow
    step: int


Handler: TypeAlias = "Callable[[Walk, Invocation], Flow]"


class Walk:
    """The interpretation of one call."""

    steps = rounds = depth = 0  # commands, iterations of loops, and nesting of functions, scripts and shells
    last_step = 0  # the command that determines the call's exit code
    hushed = 0  # the last step whose errors do not reach the agent
    told: tuple[str, str] | None = None  # a path and where it leads, if the output is that of the command that says so
    missing: frozenset[str] = frozenset()
    unmatched: frozenset[str] = frozenset()
    is_over = False

    def __init__(
        self, state: ShellState, commands: Mapping[str, Handler], output: str = "", exit_code: int = 0
    ) -> None:
        self.state, self.commands, self.output, self.exit_code = state, commands, output, exit_code
        self.folder = state.folder
        self.variables: dict[str, str] = {}
        self.functions: dict[str, Node] = {}
        self.shown: list[Flow] = []
        self.written: list[ShellWrite] = []
        self.targets: set[str] = set()  # files that were written
        self.is_new: dict[str, bool] = {}  # of each file that was shown: whether it had been written before
        self.names: list[str] = []  # names of the commands, by step
        self.cleaned: dict[str, None] = {}  # files restored to the last commit
        self.held: dict[str, Flow] = {}  # variables that hold a stream, as after `x=$(cat f)` or `read`
        self.guards: dict[int, int] = {}  # steps that run only if an earlier one succeeded
        self.failed: set[int] = set()  # steps after whose `||` something was printed
        if " found" in output:
            self.missing = frozenset(found[1] or found[2] for found in NOT_FOUND.finditer(output))
            self.unmatched = frozenset(_NO_MATCHES.findall(output))

    def run(self, node: Node, stdin: Flow = NOTHING) -> None:
        """Interpret a node whose output goes to the call's output."""
        if isinstance(node, Command):
            self.show(self.command(node, stdin))
        elif isinstance(node, Chain):
            self._chain(node, stdin)
        elif isinstance(node, Pipeline):
            self._pipeline(node, stdin)
        elif isinstance(node, Loop):
            self._loop(node, stdin)
        elif isinstance(node, Group):
            self._group(node, stdin)
        else:
            self.functions[node.name] = node.body

    def show(self, flow: Flow) -> None:
        """Let a stream reach the agent."""
        if flow.kind == "none":
            return
        flows = flow.parts if flow.kind == "mixed" else (flow,)
        self.shown.extend(flows)
        for one in flows:
            for path in one.files:
                self.is_new[path] = path in self.targets and self.is_new.get(path, True)

    def capture(self, node: Node, stdin: Flow = NOTHING) -> Flow:
        """Interpret a node and return its output instead of showing it."""
        if isinstance(node, Command):
            return self.command(node, stdin)
        outer, self.shown = self.shown, []
        self.run(node, stdin)
        inner, self.shown = self.shown, outer
        return merged(inner)

    def invoke(self, words: Sequence[str], stdin: Flow = NOTHING) -> Flow:
        """Interpret a command given by its words, as run by `xargs` or `sudo`."""
        if not words or self.depth >= _DEEPEST or not self._may_go_on(1 + len(words) // _WORDS_PER_COMMAND):
            return OTHER
        if self.steps:  # before the first command the call was checked
            check_time()
        name = words[0].rpartition("/")[2].removesuffix(".exe")
        self.steps += 1
        self.last_step = self.steps
        self.names.append(name)
        self.depth += 1
        flow = self._dispatch(name, Invocation(name, list(words[1:]), stdin, self.steps), words[0])
        self.depth -= 1
        return flow

    def _may_go_on(self, cost: int) -> bool:
        """Return whether another command, or iteration of a loop, may be interpreted in this call; it is paid for."""
        effort = self.state.effort
        if self.steps >= _MOST_STEPS or self.rounds >= _MOST_STEPS:
            effort.is_cut = True
            return False
        return effort.spend(cost)

    def _dispatch(self, name: str, call: Invocation, word: str) -> Flow:
        body = self.functions.get(name)
        if body is not None:
            outer = self.variables
            positional = {str(index): word for index, word in enumerate(call.arguments[:9], 1)}
            self.variables = {**outer, **positional, "@": " ".join(call.arguments)}
            flow = self.capture(body, call.stdin)
            self.variables = outer
            return flow
        handler = self.commands.get(name) or (self.commands.get(name.lower()) if "-" in name else None)
        if name in self.missing:
            return NOTHING
        if handler is None and name.startswith("python"):
            handler = self.commands["python"]
        if handler is None and "/" in word:
            handler = self.commands["./"]
            call = replace(call, arguments=[word, *call.arguments])
        return handler(self, call) if handler else OTHER

    def within(self, node: Node, stdin: Flow = NOTHING) -> Flow:
        """Interpret a node in a subshell, whose folder and variables end with it."""
        folder, variables = self.folder, self.variables
        self.variables = dict(variables)
        flow = self.capture(node, stdin)
        self.folder, self.variables = folder, variables
        return flow

    def write(
        self,
        call: Invocation,
        words: Sequence[str],
        kind: WriteKind = "edit",
        *,
        content: str | None = None,
        added: str | None = None,
        firm: bool = True,
        line: int = 0,
    ) -> None:
        """Record that a command writes the files that words name."""
        for word in words:
            for path in self.touched(word) if kind != "delete" else self.removed(word):
                change = FileWrite(path, kind, content=content, added=added)
                self.record(ShellWrite(change, call.step, call.name, word, firm, line))

    def write_path(
        self,
        call: Invocation,
        path: str,
        kind: WriteKind = "edit",
        content: str | None = None,
        *,
        restored: bool = False,
    ) -> None:
        """Record that a command writes a file with a known path, or puts its committed content back."""
        change = FileWrite(path, kind, content=content, restored=restored)
        self.record(ShellWrite(change, call.step, call.name, path))

    def record(self, done: ShellWrite) -> None:
        """Record a write."""
        self.written.append(done)
        self.targets.add(done.write.path)

    def paths(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the files that words name."""
        return tuple(self.state.resolve_all(words, self.folder))

    def removed(self, word: str) -> tuple[str, ...]:
        """Return the files that a word names, of a command that removes them; a link is removed, not its target."""
        path = self.state.inside(self.state.absolute(word, self.folder)) if self.state.links and word else ""
        return (path,) if path in self.state.links and self.state.link(path, None) else self.touched(word)

    def touched(self, word: str) -> tuple[str, ...]:
        """Return the files that a word names, of a command that changes them; note where these are not known."""
        paths = self.paths([word])
        self.state.is_unnamed = self.state.is_unnamed or (not paths and is_unknown(word, self.output))
        return paths

    def text_of(self, path: str) -> str | None:
        """Return a file's text if the run itself wrote it, in this call or before."""
        for done in reversed(self.written):
            if done.write.path == path:
                return done.write.content
        return self.state.texts.get(path)

    def command(self, node: Command, stdin: Flow) -> Flow:
        """Interpret a simple command and return its output, as far as it is not redirected."""
        seen = [self._substituted(inner) for inner in node.inner] if node.inner else ()
        if not node.words:
            for name, values in node.assignments:
                self.variables[name] = assigned(values, self.variables)
                self.held.pop(name, None)
            if len(node.assignments) == len(seen) == 1 and seen[0].shows_files:
                self.held[node.assignments[0][0]] = seen[0]
        words = expand(node.words, self.variables)
        if self.unmatched and not self.unmatched.isdisjoint(words):
            self.is_over = True  # zsh ends a line where a glob matches nothing
        if self.is_over:
            return NOTHING
        if node.redirects:
            stdin = self._input(node.redirects, stdin)
        if seen and any(isinstance(part, Group) and part.feeds for part in node.inner):
            words, stdin = self._fed(node, seen, stdin)
        flow = self._spoken(node, words, seen) if seen or self.held else NOTHING
        if flow is NOTHING and words:
            flow = self.invoke(words, stdin)
            if words[0] == "read" and stdin.shows_files:
                self.held.update(dict.fromkeys(words[1:], chosen(stdin)))
        return self._output(node.redirects, flow) if node.redirects else flow

    def _substituted(self, inner: Node) -> Flow:
        """Interpret a substitution, and keep its value where that is known."""
        flow = self.within(inner)
        if isinstance(inner, Group) and inner.source:
            known = flow.text if flow.kind == "text" else "\n".join(flow.listed) or None
            self.variables[inner.source] = UNKNOWN if known is None else known.rstrip("\n")
        return flow

    def _fed(self, node: Command, seen: Sequence[Flow], stdin: Flow) -> tuple[list[str], Flow]:
        """Return the words and the input of a command that reads `<(…)` as if it were its input."""
        fed = [flow for part, flow in zip(node.inner, seen, strict=True) if isinstance(part, Group) and part.feeds]
        words = ["-" if isinstance(word, tuple) and word[0].text == FED else word for word in node.words]
        return expand(words, self.variables), merged(fed)

    def _spoken(self, node: Command, words: Sequence[str], seen: Sequence[Flow]) -> Flow:
        """Return what `echo` and similar commands pass on: outputs of other commands, or variables that hold them."""
        if not words or words[0].lower() not in _SPEAKERS:
            return NOTHING
        names = (piece.text for word in node.words if isinstance(word, tuple) for piece in word)
        passed = [*seen, *(self.held[name] for name in dict.fromkeys(names) if name in self.held)]
        return chosen(merged(passed)) if passed else NOTHING

    def _input(self, redirects: Sequence[Redirect], stdin: Flow) -> Flow:
        for redirect in redirects:
            if redirect.operator == "here":
                text = expand_text(redirect.target, self.variables, unknown="")
                is_string = text.startswith("\ue001")
                stdin = Flow("text", text=f"{text[1:]}\n" if is_string else text)
            elif redirect.operator == "<":
                words = expand([redirect.target], self.variables)
                paths = self.paths(words)
                is_unnamed = not paths and any(is_unknown(word, self.output) for word in words)
                stdin = Flow("files", files=paths) if len(paths) == 1 else UNNAMED if is_unnamed else OTHER
        return stdin

    def _output(self, redirects: Sequence[Redirect], flow: Flow) -> Flow:
        for redirect in redirects:
            if redirect.operator in ("<", "here"):
                continue
            words = expand([redirect.target], self.variables)
            to_error = redirect.descriptor == 2 and not redirect.operator.startswith("&")
            self.hushed = self.steps if to_error else self.hushed
            content = "" if to_error else (flow.text if flow.kind == "text" else "" if flow.kind == "none" else None)
            call = Invocation("", [], NOTHING, self.steps)
            if words != ["/dev/null"] and words != ["/dev/stderr"]:
                self._redirected(call, words, redirect.operator.endswith(">>"), None if to_error else content)
            if flow.kind == "diff" and not to_error:
                self.state.patches.update(dict.fromkeys(self.paths(words), flow.files))
            if not to_error and words not in (["/dev/stderr"], ["/dev/stdout"], ["/dev/tty"]):
                flow = NOTHING
        return flow

    def _redirected(self, call: Invocation, words: list[str], appends: bool, content: str | None) -> None:
        targets = [word for word in words if not isinstance(word, Glob)]
        if appends:
            self.write(call, targets, "edit", added=content, firm=False)
        else:
            self.write(call, targets, "whole", content=content, firm=False)

    def _chain(self, chain: Chain, stdin: Flow) -> None:
        start, step = len(self.shown), self.steps
        left: Node = EMPTY
        for connector, node in chain.items:
            if connector == "&&":
                self.guards[self.steps + 1] = self.steps
            if connector == "||":
                self._otherwise(node, stdin, self._left_held(self.shown[start:], left, step))
            else:
                self.run(node, stdin)
            left = node

    def _otherwise(self, node: Node, stdin: Flow, held: bool | None) -> None:
        """Interpret what follows `||`; None if it is unknown which side was printed."""
        before, tried = len(self.shown), self.steps
        self.run(node, stdin)
        after = self.shown[before:]
        if any(flow.kind == "text" and self._printed(flow.text or "") for flow in after):
            while tried and self.names[tried - 1] in ("echo", "printf"):  # which do not fail
                tried -= 1
            self.failed.add(tried)
        if held is None:
            held = not any(flow.shows_files for flow in after)
        # Names with a commit before them are those of a search in that commit.
        held = held and not any(f"\n{revision}:" in f"\n{self.output}" for flow in after for revision in flow.revisions)
        # A text that may not have been printed still separates two files if it is found.
        self.shown[before:] = [replace(flow, optional=True) for flow in after if not held or flow.kind == "text"]

    def _printed(self, text: str) -> bool:
        """Return whether the output has a text as lines of its own."""
        return bool(text.strip()) and f"\n{text.strip()}\n" in f"\n{self.output}\n"

    def _left_held(self, left: Sequence[Flow], node: Node, step: int) -> bool | None:
        """Return whether what precedes `||` showed a file and the call succeeded, so the right side did not run."""
        if self.exit_code or not self.output or not left or not left[-1].shows_files:
            return False
        last = left[-1]
        if last.sought is not None:
            return last.may_be_in(self.output)
        if isinstance(node, Pipeline) and len(node.stages) > 1:
            return True  # its last command only passes its input on
        if files_complained_of(self.output, last.files, self.state):
            return False
        doubtful = self.hushed > step or _TESTS.intersection(self.names[step:])
        return None if doubtful and not self._met(last.files) else True

    def _met(self, paths: Sequence[str]) -> bool:
        """Return whether the run has seen or written every one of these files."""
        state = self.state
        return all(path in state.shown or path in state.changed or path in state.texts for path in paths)

    def _pipeline(self, pipeline: Pipeline, stdin: Flow) -> None:
        folder = self.folder
        for stage in pipeline.stages[:-1]:
            stdin = self.capture(stage, stdin)
        if pipeline.stages:
            self.run(pipeline.stages[-1], stdin)
        if len(pipeline.stages) > 1:
            self.folder = folder

    def _loop(self, loop: Loop, stdin: Flow) -> None:
        self.held.pop(loop.variable, None)
        for word in expand(loop.words, self.variables) or [UNKNOWN]:
            names = self.state.match(word, self.folder) if isinstance(word, Glob) else [word]
            for name in names or [UNKNOWN]:
                self.rounds += 1  # an iteration may contain no command
                if not self._may_go_on(1):
                    return
                self.variables[loop.variable] = self.word_for(name) if names and isinstance(word, Glob) else name
                self.run(loop.body, stdin)

    def word_for(self, path: str) -> str:
        """Return a path as a word that means the same file in any folder."""
        return path if path.startswith(("/", "~")) or not self.state.roots else f"{self.state.roots[0]}/{path}"

    def _group(self, group: Group, stdin: Flow) -> None:
        stdin = self._input(group.redirects, stdin)
        if any(redirect.operator not in ("<", "here") for redirect in group.redirects):
            flow = self.within(group.body, stdin) if group.subshell else self.capture(group.body, stdin)
            self.show(NOTHING if self.is_over else self._output(group.redirects, flow))
        elif group.subshell:
            folder, variables = self.folder, self.variables
            self.variables = dict(variables)
            self.run(group.body, stdin)
            self.folder, self.variables = folder, variables
        else:
            self.run(group.body, stdin)
