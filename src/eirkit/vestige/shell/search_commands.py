"""Shell commands that search for lines or list names: grep, rg, find, ls, xargs, seq, basename.

Which files a search shows follows from the names before the lines that it printed. The names that one command passes to
another (`xargs`, `-exec`, `$(…)`) are not in the log; they are known if the run was shown the result of the same search
before, if a glob matches files that the run has met, or if the command spells them out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from eirkit.vestige.shell.grammar import parse
from eirkit.vestige.shell.state import NOTHING, OTHER, Flow, chosen, merged
from eirkit.vestige.shell.syntax import Chain, Command, Node
from eirkit.vestige.shell.walk import Invocation, Walk
from eirkit.vestige.shell.words import UNKNOWN, Glob, ParsedOptions, expand, is_unknown, split_options
from eirkit.vestige.viewer_output import clip_marks

_LISTED_PER_COMMAND = 2000  # characters of an earlier search that are looked through in the time of a command
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
_LITERAL = re.compile(r"[\w\s\"'=,:;/<>@#%&!~-]+")  # literal in any regular expression syntax
_BASIC_LITERAL = re.compile(r"[\w\s\"'=,:;/<>@#%&!~(){}+?|-]+")  # without -E brackets are literal
_MOST_NAMES = 64  # names taken from one listing; an edit of more leaves most files unchanged
_MOST_NUMBERS = 64
_FOUND = re.compile(r"([^:\n]{1,400}):")
_LISTERS = frozenset({"grep", "egrep", "fgrep", "rgrep", "rg", "find"})
_ACTIONS = frozenset({"-exec", "-execdir", "-ok", "-print", "-print0", "-delete"})
_PICKS = ("-i", "-w", "-x", "-v", "-L", "--ignore-case", "--word-regexp", "--files-without-match", "--invert-match")
_LIMITS = ("--include", "--exclude", "--exclude-dir", "-g", "--glob", "-t", "--type")
_CONTEXT = ("-A", "-B", "-C", "-h", "-c", "-q", "-o", "-m", "--max-count")


def grep(walk: Walk, call: Invocation) -> Flow:
    """Search files; where only names are printed, return them if the run has seen them before."""
    flow = _grep_lines(walk, call)
    if flow.kind == "other" and ("l" in "".join(word for word in call.arguments if word.startswith("-"))):
        return replace(flow, listed=_recalled(walk, [call.name, *call.arguments]))
    return flow


def _grep_lines(walk: Walk, call: Invocation) -> Flow:
    """Search files, folders or the input for lines."""
    kind = call.name if call.name in _VALUED else "grep"
    options = split_options(call.arguments, _VALUED[kind], _LONG_VALUED)
    operands = list(options.operands)
    if not options.has("-e", "-f", "--regexp", "--file") and not options.has("--files"):
        pattern, operands = operands[:1], operands[1:]
    else:
        pattern = options.values.get("-e", []) + options.values.get("--regexp", [])
    if options.has(*_NAMES_ONLY):
        return OTHER
    recursive = kind != "grep" or call.name == "rgrep" or options.has("-r", "-R", "--recursive")
    if operands in ([], ["-"]) and not (recursive and call.stdin.kind == "none"):
        return _filtered(call.stdin, options)
    return _searched(walk, options, operands, recursive, _sought(call.name, options, pattern))


def _sought(name: str, options: ParsedOptions, patterns: list[str]) -> tuple[str, ...]:
    """Return texts of which every matching line contains one; none if the pattern is not literal."""
    if options.has("-i", "-v", "-f", "-x", "--ignore-case", "--invert-match", "--file", "-S", "--smart-case"):
        return ()
    if options.has("-F", "--fixed-strings") or name == "fgrep":
        return tuple(patterns)
    basic = name in ("grep", "rgrep", "zgrep", "ggrep") and not options.has("-E", "-P", "--extended-regexp")
    literal = _BASIC_LITERAL if basic else _LITERAL
    parts = [part for pattern in patterns for part in pattern.split("\\|" if basic else "|")]
    return tuple(parts) if all(literal.fullmatch(part) for part in parts) and name not in ("ag", "ack") else ()


def _filtered(stdin: Flow, options: ParsedOptions) -> Flow:
    flow = chosen(stdin)
    if options.has("-n", "--line-number") and flow.kind == "files" and not flow.numbering and not stdin.chosen:
        return replace(flow, numbering="colon", offset=stdin.first - 1)
    return flow


def _searched(
    walk: Walk, options: ParsedOptions, operands: list[str], recursive: bool, sought: tuple[str, ...]
) -> Flow:
    nameless = options.has("-h", "--no-filename")
    named = options.has("-H", "--with-filename")
    plain = [word for word in operands if not isinstance(word, Glob) and UNKNOWN not in word]
    alone = len(plain) == 1 and len(operands) == 1
    is_folder = alone and f"\n{plain[0].rstrip('/')}/" in f"\n{walk.output}"  # names of files in it precede lines
    if alone and not named and not is_folder and (not recursive or _looks_like_file(plain[0])):
        numbering = "colon" if options.has("-n", "--line-number") else ""
        files = walk.paths(plain)
        flow = Flow("files", files=files, chosen=True, numbering=numbering, sought=sought)  # type: ignore[arg-type]
        return flow if files else OTHER
    is_unnamed = any(not isinstance(word, Glob) and is_unknown(word, walk.output) for word in operands)
    if nameless and not options.has("-H"):
        files = () if recursive else walk.paths(operands)
        flow = Flow("files", files=files, chosen=True, sought=sought) if files else OTHER
        return replace(flow, is_unnamed=is_unnamed or not files)
    bases = tuple(operands) if len(plain) == len(operands) else ()
    if walk.state.on_windows and "\\" in walk.output:
        return Flow("search", folder=walk.folder, on_windows=True)
    return Flow("search", folder=walk.folder, bases=bases, sought=sought, is_unnamed=is_unnamed)


def _looks_like_file(word: str) -> bool:
    return "." in word.rpartition("/")[2].strip(".")


def grep_tracked(walk: Walk, call: Invocation) -> Flow:
    """`git grep`, which searches the current folder unless paths are given; a commit precedes its names."""
    operands = split_options(call.arguments, _VALUED["grep"], _LONG_VALUED).operands
    lines = f"\n{walk.output}"
    revisions = tuple(word for word in operands[1:] if not _looks_like_file(word) and f"\n{word}:" in lines)
    if revisions:
        return Flow("search", folder=walk.folder, revisions=revisions)
    return grep(walk, replace(call, name="rgrep", stdin=NOTHING))


def find(walk: Walk, call: Invocation) -> Flow:
    """`find` shows names; `-exec` runs a command on files that are known only if they were listed before."""
    words = call.arguments
    names = _recalled(walk, ["find", *words]) or _by_name(walk, words)
    for option in ("-exec", "-execdir", "-ok"):
        if option in words:
            inner = words[words.index(option) + 1 :]
            ends = [index for index, word in enumerate(inner) if word in (";", "+")]
            command = inner[: ends[0] if ends else len(inner)]
            return _on_each(walk, command, "{}", names or (UNKNOWN,), NOTHING)
    if "-delete" in words:
        walk.state.leave_unnamed(not names)
        walk.write(call, names, "delete")
        return OTHER
    return Flow("other", listed=names)


def xargs(walk: Walk, call: Invocation) -> Flow:
    """`xargs` runs a command with words from its input, where these are known."""
    words = list(call.arguments)
    replaces = None
    while words and words[0].startswith("-") and len(words[0]) > 1:
        option = words.pop(0)
        if option[1] == "I" or option.startswith("--replace"):
            replaces = option[2:] or (words.pop(0) if words else "{}")
        elif option in ("-n", "-P", "-L", "-d", "-s", "-E", "-a") and words:
            words.pop(0)
    spelled = call.stdin.text.split() if call.stdin.kind == "text" and call.stdin.text else ()
    given = spelled or call.stdin.listed or (UNKNOWN,)
    if replaces:
        return _on_each(walk, words, replaces, given[:_MOST_NAMES], NOTHING)
    flow = walk.invoke([*words, *given[:200]] if words else ["echo", *given])
    return replace(flow, bases=()) if flow.kind == "search" else flow


def _on_each(walk: Walk, words: Sequence[str], mark: str, names: Sequence[str], stdin: Flow) -> Flow:
    runs = [[name if word == mark else word.replace(mark, name) for word in words] for name in names]
    return merged([walk.invoke(run, stdin) for run in runs])


def ls(walk: Walk, call: Invocation) -> Flow:
    """`ls` shows names; of globs, those that the run has met."""
    options = split_options(call.arguments, "I")
    if options.has("-l", "-R", "-s", "-i") or not any(isinstance(word, Glob) for word in options.operands):
        return OTHER
    names = [walk.word_for(path) for path in walk.paths(options.operands)]
    return Flow("other", listed=tuple(names[:_MOST_NAMES]))


def seq(walk: Walk, call: Invocation) -> Flow:
    """`seq` prints numbers."""
    words = split_options(call.arguments, "sf").operands
    if len(words) != len(call.arguments) or not all(re.fullmatch(r"\d{1,9}", word) for word in words) or not words:
        return OTHER
    first, step = (int(words[0]) if len(words) > 1 else 1), (int(words[1]) if len(words) == 3 else 1)
    numbers = range(first, int(words[-1]) + 1, step or 1)
    return Flow("text", text="".join(f"{number}\n" for number in numbers)) if len(numbers) <= _MOST_NUMBERS else OTHER


def name_part(walk: Walk, call: Invocation) -> Flow:
    """`basename` and `dirname` of one path."""
    words = call.arguments
    if not words or words[0].startswith("-") or any(UNKNOWN in word or isinstance(word, Glob) for word in words):
        return OTHER
    path = words[0].rstrip("/") or "/"
    if call.name == "dirname":
        return Flow("text", text=f"{posixpath.dirname(path) or '.'}\n") if len(words) == 1 else OTHER
    name = posixpath.basename(path)
    cut = name.removesuffix(words[1]) if len(words) == 2 else name
    return Flow("text", text=f"{cut or name}\n")


def _by_name(walk: Walk, words: Sequence[str]) -> tuple[str, ...]:
    """Return the files that `find DIR -name NAME` finds, if the name is literal and the run has met one."""
    plain = [word for word in words if word not in ("-type", "f", "-print")]
    if len(plain) < 3 or plain[1] != "-name" or (len(plain) > 3 and plain[3] not in _ACTIONS):
        return ()
    name, folder = plain[2], walk.state.resolve(plain[0], walk.folder)
    if folder is None or re.search(r"[*?\[/\0]", name):
        return ()
    start = "" if folder == "." else f"{folder}/"
    ends = [path for path in walk.state.known() if path.startswith(start) and posixpath.basename(path) == name]
    return tuple(map(walk.word_for, ends[:_MOST_NAMES]))


def _recalled(walk: Walk, words: Sequence[str]) -> tuple[str, ...]:
    """Return what a search printed when the run last saw its result, as paths valid in any folder."""
    wanted = _key(walk, words, walk.folder)
    if wanted is None:
        return ()
    sign = max((word for word in _before_actions(words)[1:] if word[0] != "-"), key=len, default="")
    for command, output, folder in reversed(walk.state.listings):
        if sign not in command:  # a quick check before parsing
            continue
        if not walk.state.effort.spend(len(output) // _LISTED_PER_COMMAND):
            return ()
        earlier, at = _alone(parse(command, walk.state.effort), folder, walk)
        if earlier and _key(walk, earlier, at) == wanted:
            names = () if clip_marks(output) else tuple(dict.fromkeys(_names(earlier, output)))
            return tuple(walk.state.absolute(name, at) for name in names) if len(names) <= _MOST_NAMES else ()
    return ()


def _alone(node: Node, folder: str, walk: Walk) -> tuple[list[str], str]:
    """Return the words of the only search in a command that does nothing else but `cd`, and its folder."""
    parts = [part for _, part in node.items] if isinstance(node, Chain) else [node]
    for part in parts[:-1]:
        if not isinstance(part, Command) or part.words[:1] != ("cd",) or len(part.words) != 2:
            return [], folder
        folder = walk.state.absolute(expand(part.words[1:], {})[0] or ".", folder)
    words = expand(parts[-1].words, {}) if parts and isinstance(parts[-1], Command) else []
    if words[:2] == ["git", "grep"]:
        words = ["rgrep", *words[2:]]
    return (words if words and words[0] in _LISTERS else []), folder


def _key(walk: Walk, words: Sequence[str], folder: str) -> tuple[object, ...] | None:
    """Return what determines the files that a search finds: two searches with one key find the same files."""
    if not all(words) or any(UNKNOWN in word for word in words):
        return None
    if words[0] == "find":
        return (folder, *_before_actions(words))
    options = split_options(words[1:], _VALUED.get(words[0], _VALUED["grep"]), _LONG_VALUED)
    given = options.values.get("-e", []) + options.values.get("--regexp", [])
    patterns, operands = (given, options.operands) if given else (options.operands[:1], options.operands[1:])
    where = tuple(sorted(walk.state.absolute(word or ".", folder) for word in operands or ["."]))
    limits = tuple(sorted(value for name in _LIMITS for value in options.values.get(name, ())))
    deep = words[0] in ("rg", "rgrep") or options.has("-r", "-R", "--recursive")
    dialect = "F" if options.has("-F") else "E" if options.has("-E", "-P") or words[0] in ("egrep", "rg") else ""
    return (tuple(patterns), where, limits, deep, dialect, tuple(pick for pick in _PICKS if options.has(pick)))


def _before_actions(words: Sequence[str]) -> Sequence[str]:
    if words[0] != "find":
        return words
    return words[: next((index for index, word in enumerate(words) if word in _ACTIONS), len(words))]


def _names(words: Sequence[str], output: str) -> Iterator[str]:
    """Yield the files that a search's output names."""
    options = split_options(words[1:], _VALUED.get(words[0], _VALUED["grep"]), _LONG_VALUED)
    lines = [line for line in output.split("\n") if line]
    if words[0] == "find" or options.has("-l", "--files-with-matches"):
        yield from (line for line in lines if len(line) < 400 and ": " not in line)
    elif not options.has(*_CONTEXT, *_NAMES_ONLY):
        yield from (found[1] for line in lines if (found := _FOUND.match(line)))


SEARCHERS: dict[str, Callable[[Walk, Invocation], Flow]] = {
    **dict.fromkeys(("zgrep", "ag", "ack", "ggrep"), _grep_lines),
    **dict.fromkeys(("grep", "egrep", "fgrep", "rgrep", "rg"), grep),
    "find": find,
    "xargs": xargs,
    "ls": ls,
    "seq": seq,
    "basename": name_part,
    "dirname": name_part,
}
