"""grep and its kin: which files a search shows follows from the names before the lines that it printed."""

from __future__ import annotations

from collections.abc import Callable

from eirkit.vestige.shell.flow import OTHER, Flow, chosen
from eirkit.vestige.shell.options import Parsed, split_options
from eirkit.vestige.shell.walk import Invocation, Walk
from eirkit.vestige.shell.words import UNKNOWN, Glob

_VALUED = {"grep": "efmABCdD", "rg": "efmABCgtTjMr", "ag": "ABCmGg", "ack": "ABCm"}
_LONG_VALUED = (
    "--regexp", "--file", "--max-count", "--context", "--after-context", "--before-context", "--glob", "--type",
    "--type-not", "--include", "--exclude", "--exclude-dir", "--max-columns", "--color",
)  # fmt: skip
_NAMES_ONLY = (
    "-l",
    "-L",
    "-c",
    "-q",
    "--files-with-matches",
    "--files-without-match",
    "--count",
    "--quiet",
    "--silent",
    "--files",
)


def grep(walk: Walk, call: Invocation) -> Flow:
    """Search files, folders or the input for lines."""
    kind = call.name if call.name in _VALUED else "grep"
    options = split_options(call.arguments, _VALUED[kind], _LONG_VALUED)
    operands = list(options.operands)
    if not options.has("-e", "-f", "--regexp", "--file") and not options.has("--files"):
        operands = operands[1:]
    if options.has(*_NAMES_ONLY):
        return OTHER
    recursive = kind != "grep" or call.name == "rgrep" or options.has("-r", "-R", "--recursive")
    if not operands and not (recursive and call.stdin.kind == "none"):
        return _filtered(call.stdin, options)
    return _searched(walk, options, operands, recursive)


def _filtered(stdin: Flow, options: Parsed) -> Flow:
    flow = chosen(stdin)
    if options.has("-n", "--line-number") and flow.kind == "files" and not flow.numbering and not stdin.chosen:
        return flow._replace(numbering="colon", offset=stdin.first - 1)
    return flow


def _searched(walk: Walk, options: Parsed, operands: list[str], recursive: bool) -> Flow:
    nameless = options.has("-h", "--no-filename")
    named = options.has("-H", "--with-filename")
    plain = [word for word in operands if not isinstance(word, Glob) and UNKNOWN not in word]
    alone = len(plain) == 1 and len(operands) == 1
    if alone and not named and (not recursive or _is_file(plain[0])):
        numbering = "colon" if options.has("-n", "--line-number") else ""
        files = walk.paths(plain)
        return Flow("files", files=files, chosen=True, numbering=numbering) if files else OTHER  # type: ignore[arg-type]
    if nameless and not options.has("-H"):
        files = () if recursive else walk.paths(plain)
        return Flow("files", files=files, chosen=True) if files else OTHER
    return Flow("search", folder=walk.folder, bases=tuple(operands) if len(plain) == len(operands) else ())


def _is_file(word: str) -> bool:
    return "." in word.rpartition("/")[2].strip(".")


def git_grep(walk: Walk, call: Invocation) -> Flow:
    """`git grep` looks through the whole repository unless it is told where."""
    return grep(walk, call._replace(name="rgrep", stdin=Flow("none")))


SEARCHERS: dict[str, Callable[[Walk, Invocation], Flow]] = dict.fromkeys(
    ("grep", "egrep", "fgrep", "rgrep", "zgrep", "rg", "ag", "ack", "ggrep"), grep
)
