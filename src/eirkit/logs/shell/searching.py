"""grep and its kin: which files a search shows follows from the names before the lines that it printed."""

from __future__ import annotations

import re
from collections.abc import Callable

from eirkit.logs.shell.flow import OTHER, Flow, chosen
from eirkit.logs.shell.walk import Invocation, Walk
from eirkit.logs.shell.words import UNKNOWN, Glob, Parsed, split_options

VALUED = {"grep": "efmABCdD", "rg": "efmABCgtTjMr", "ag": "ABCmGg", "ack": "ABCm"}
LONG_VALUED = (
    "--regexp", "--file", "--max-count", "--context", "--after-context", "--before-context", "--glob", "--type",
    "--type-not", "--include", "--exclude", "--exclude-dir", "--max-columns", "--color",
)  # fmt: skip
NAMES_ONLY = (
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
_LITERAL = re.compile(r"[\w\s\"'=,:;/<>@#%&!~-]+")  # in any dialect
_BASIC_LITERAL = re.compile(r"[\w\s\"'=,:;/<>@#%&!~(){}+?|-]+")  # without -E brackets stand for themselves


def grep(walk: Walk, call: Invocation) -> Flow:
    """Search files, folders or the input for lines."""
    kind = call.name if call.name in VALUED else "grep"
    options = split_options(call.arguments, VALUED[kind], LONG_VALUED)
    operands = list(options.operands)
    if not options.has("-e", "-f", "--regexp", "--file") and not options.has("--files"):
        pattern, operands = operands[:1], operands[1:]
    else:
        pattern = options.values.get("-e", []) + options.values.get("--regexp", [])
    if options.has(*NAMES_ONLY):
        return OTHER
    recursive = kind != "grep" or call.name == "rgrep" or options.has("-r", "-R", "--recursive")
    if operands in ([], ["-"]) and not (recursive and call.stdin.kind == "none"):
        return _filtered(call.stdin, options)
    return _searched(walk, options, operands, recursive, _sought(call.name, options, pattern))


def _sought(name: str, options: Parsed, patterns: list[str]) -> tuple[str, ...]:
    """Return texts of which each matching line has one; none where the pattern says no more than a program can tell."""
    if options.has("-i", "-v", "-f", "-x", "--ignore-case", "--invert-match", "--file", "-S", "--smart-case"):
        return ()
    if options.has("-F", "--fixed-strings") or name == "fgrep":
        return tuple(patterns)
    basic = name in ("grep", "rgrep", "zgrep", "ggrep") and not options.has("-E", "-P", "--extended-regexp")
    literal = _BASIC_LITERAL if basic else _LITERAL
    parts = [part for pattern in patterns for part in pattern.split("\\|" if basic else "|")]
    return tuple(parts) if all(literal.fullmatch(part) for part in parts) and name not in ("ag", "ack") else ()


def _filtered(stdin: Flow, options: Parsed) -> Flow:
    flow = chosen(stdin)
    if options.has("-n", "--line-number") and flow.kind == "files" and not flow.numbering and not stdin.chosen:
        return flow._replace(numbering="colon", offset=stdin.first - 1)
    return flow


def _searched(walk: Walk, options: Parsed, operands: list[str], recursive: bool, sought: tuple[str, ...]) -> Flow:
    nameless = options.has("-h", "--no-filename")
    named = options.has("-H", "--with-filename")
    plain = [word for word in operands if not isinstance(word, Glob) and UNKNOWN not in word]
    alone = len(plain) == 1 and len(operands) == 1
    if alone and not named and (not recursive or _is_file(plain[0])):
        numbering = "colon" if options.has("-n", "--line-number") else ""
        files = walk.paths(plain)
        flow = Flow("files", files=files, chosen=True, numbering=numbering, sought=sought)  # type: ignore[arg-type]
        return flow if files else OTHER
    if nameless and not options.has("-H"):
        files = () if recursive else walk.paths(plain)
        return Flow("files", files=files, chosen=True, sought=sought) if files else OTHER
    bases = tuple(operands) if len(plain) == len(operands) else ()
    return Flow("search", folder=walk.folder, bases=bases, sought=sought)


def _is_file(word: str) -> bool:
    return "." in word.rpartition("/")[2].strip(".")


def git_grep(walk: Walk, call: Invocation) -> Flow:
    """`git grep` looks through the whole repository unless it is told where."""
    return grep(walk, call._replace(name="rgrep", stdin=Flow("none")))


SEARCHERS: dict[str, Callable[[Walk, Invocation], Flow]] = dict.fromkeys(
    ("grep", "egrep", "fgrep", "rgrep", "zgrep", "rg", "ag", "ack", "ggrep"), grep
)
