"""The names that one command lists for another: `grep -l`, `find` and `ls` before `xargs`, `-exec` or in `$(…)`.

What a listing prints into a pipe stands in no log. It is known where the run ran the same search before and was shown
its answer, where a glob matches files that the run has met, or where the words spell it out; else nobody can tell.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from eirkit.logs.shell.flow import NOTHING, OTHER, Flow, merged
from eirkit.logs.shell.grammar import parse
from eirkit.logs.shell.searching import LONG_VALUED, NAMES_ONLY, VALUED
from eirkit.logs.shell.searching import grep as search
from eirkit.logs.shell.syntax import Chain, Command, Node
from eirkit.logs.shell.walk import Invocation, Walk
from eirkit.logs.shell.words import UNKNOWN, Glob, expand, split_options
from eirkit.logs.views import clip_marks

_MOST_NAMES = 64  # of one listing; an edit of more files is a sweep that leaves most of them as they were
_MOST_NUMBERS = 64
_FOUND = re.compile(r"([^:\n]{1,400}):")
_LISTERS = frozenset({"grep", "egrep", "fgrep", "rgrep", "rg", "find"})
_ACTIONS = frozenset({"-exec", "-execdir", "-ok", "-print", "-print0", "-delete"})
_PICKS = ("-i", "-w", "-x", "-v", "-L", "--ignore-case", "--word-regexp", "--files-without-match", "--invert-match")
_LIMITS = ("--include", "--exclude", "--exclude-dir", "-g", "--glob", "-t", "--type")
_CONTEXT = ("-A", "-B", "-C", "-h", "-c", "-q", "-o", "-m", "--max-count")


def grep(walk: Walk, call: Invocation) -> Flow:
    """Search files; where only names are printed, say which they are if the run has been told before."""
    flow = search(walk, call)
    if flow.kind == "other" and ("l" in "".join(word for word in call.arguments if word.startswith("-"))):
        return flow._replace(listed=_recalled(walk, [call.name, *call.arguments]))
    return flow


def grep_tracked(walk: Walk, call: Invocation) -> Flow:
    """`git grep`, which looks through the whole folder unless it is told where."""
    return grep(walk, call._replace(name="rgrep", stdin=NOTHING))


def find(walk: Walk, call: Invocation) -> Flow:
    """`find` shows names; `-exec` starts a command on files that are known only where they have been listed."""
    words = call.arguments
    names = _recalled(walk, ["find", *words]) or _by_name(walk, words)
    for option in ("-exec", "-execdir", "-ok"):
        if option in words:
            inner = words[words.index(option) + 1 :]
            ends = [place for place, word in enumerate(inner) if word in (";", "+")]
            command = inner[: ends[0] if ends else len(inner)]
            return _on_each(walk, command, "{}", names or (UNKNOWN,), NOTHING)
    if "-delete" in words:
        walk.place.unresolved += not names
        walk.write(call, names, "delete")
        return OTHER
    return Flow("other", listed=names)


def xargs(walk: Walk, call: Invocation) -> Flow:
    """`xargs` starts a command with words from its input, where these are known."""
    words = list(call.arguments)
    replaces = None
    while words and words[0].startswith("-") and len(words[0]) > 1:
        option = words.pop(0)
        if option[1] == "I" or option.startswith("--replace"):
            replaces = option[2:] or (words.pop(0) if words else "{}")
        elif option in ("-n", "-P", "-L", "-d", "-s", "-E", "-a") and words:
            words.pop(0)
    spelt = call.stdin.text.split() if call.stdin.kind == "text" and call.stdin.text else ()
    given = spelt or call.stdin.listed or (UNKNOWN,)
    if replaces:
        return _on_each(walk, words, replaces, given[:_MOST_NAMES], NOTHING)
    flow = walk.invoke([*words, *given[:200]] if words else ["echo", *given])
    return flow._replace(bases=()) if flow.kind == "search" else flow


def _on_each(walk: Walk, words: Sequence[str], mark: str, names: Sequence[str], stdin: Flow) -> Flow:
    runs = [[name if word == mark else word.replace(mark, name) for word in words] for name in names]
    return merged([walk.invoke(run, stdin) for run in runs])


def ls(walk: Walk, call: Invocation) -> Flow:
    """`ls` shows names: of globs, those that the run has met."""
    options = split_options(call.arguments, "I")
    if options.has("-l", "-R", "-s", "-i") or not any(isinstance(word, Glob) for word in options.operands):
        return OTHER
    names = [walk.word_for(path) for path in walk.paths(options.operands)]
    return Flow("other", listed=tuple(names[:_MOST_NAMES]))


def seq(walk: Walk, call: Invocation) -> Flow:
    """`seq` spells out numbers."""
    words = split_options(call.arguments, "sf").operands
    if len(words) != len(call.arguments) or not all(re.fullmatch(r"\d{1,9}", word) for word in words) or not words:
        return OTHER
    first, step = (int(words[0]) if len(words) > 1 else 1), (int(words[1]) if len(words) == 3 else 1)
    numbers = range(first, int(words[-1]) + 1, step or 1)
    return Flow("text", text="".join(f"{one}\n" for one in numbers)) if len(numbers) <= _MOST_NUMBERS else OTHER


def name_part(walk: Walk, call: Invocation) -> Flow:
    """`basename` and `dirname` of one path spell it out."""
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
    """Return the files that `find DIR -name NAME` finds, where the name is spelt out and the run has met one."""
    plain = [word for word in words if word not in ("-type", "f", "-print")]
    if len(plain) < 3 or plain[1] != "-name" or (len(plain) > 3 and plain[3] not in _ACTIONS):
        return ()
    name, folder = plain[2], walk.place.resolve(plain[0], walk.folder)
    if folder is None or re.search(r"[*?\[/\0]", name):
        return ()
    start = "" if folder == "." else f"{folder}/"
    ends = [path for path in walk.place.known() if path.startswith(start) and posixpath.basename(path) == name]
    return tuple(map(walk.word_for, ends[:_MOST_NAMES]))


def _recalled(walk: Walk, words: Sequence[str]) -> tuple[str, ...]:
    """Return what a search printed when the run was last shown its answer, as paths that hold in any folder."""
    wanted = _key(walk, words, walk.folder)
    if wanted is None:
        return ()
    sign = max((word for word in _before_actions(words)[1:] if word[0] != "-"), key=len, default="")
    for command, output, folder in reversed(walk.place.listings):
        if sign not in command:  # a quick look, before it is parsed
            continue
        earlier, at = _alone(parse(command), folder, walk)
        if earlier and _key(walk, earlier, at) == wanted:
            names = () if clip_marks(output) else tuple(dict.fromkeys(_names(earlier, output)))
            return tuple(walk.place.absolute(name, at) for name in names) if len(names) <= _MOST_NAMES else ()
    return ()


def _alone(node: Node, folder: str, walk: Walk) -> tuple[list[str], str]:
    """Return the words of the one search in a command that does nothing else but `cd`, and the folder it ran in."""
    parts = [part for _, part in node.items] if isinstance(node, Chain) else [node]
    for part in parts[:-1]:
        if not isinstance(part, Command) or part.words[:1] != ("cd",) or len(part.words) != 2:
            return [], folder
        folder = walk.place.absolute(expand(part.words[1:], {})[0] or ".", folder)
    words = expand(parts[-1].words, {}) if parts and isinstance(parts[-1], Command) else []
    if words[:2] == ["git", "grep"]:
        words = ["rgrep", *words[2:]]
    return (words if words and words[0] in _LISTERS else []), folder


def _key(walk: Walk, words: Sequence[str], folder: str) -> tuple[object, ...] | None:
    """Return what decides which files a search finds: two searches of one key find the same."""
    if not all(words) or any(UNKNOWN in word for word in words):
        return None
    if words[0] == "find":
        return (folder, *_before_actions(words))
    options = split_options(words[1:], VALUED.get(words[0], VALUED["grep"]), LONG_VALUED)
    given = options.values.get("-e", []) + options.values.get("--regexp", [])
    patterns, operands = (given, options.operands) if given else (options.operands[:1], options.operands[1:])
    where = tuple(sorted(walk.place.absolute(word or ".", folder) for word in operands or ["."]))
    limits = tuple(sorted(value for name in _LIMITS for value in options.values.get(name, ())))
    deep = words[0] in ("rg", "rgrep") or options.has("-r", "-R", "--recursive")
    dialect = "F" if options.has("-F") else "E" if options.has("-E", "-P") or words[0] in ("egrep", "rg") else ""
    return (tuple(patterns), where, limits, deep, dialect, tuple(one for one in _PICKS if options.has(one)))


def _before_actions(words: Sequence[str]) -> Sequence[str]:
    if words[0] != "find":
        return words
    return words[: next((place for place, word in enumerate(words) if word in _ACTIONS), len(words))]


def _names(words: Sequence[str], output: str) -> Iterator[str]:
    """Yield the files that a search's answer names."""
    options = split_options(words[1:], VALUED.get(words[0], VALUED["grep"]), LONG_VALUED)
    lines = [line for line in output.split("\n") if line]
    if words[0] == "find" or options.has("-l", "--files-with-matches"):
        yield from (line for line in lines if len(line) < 400 and ": " not in line)
    elif not options.has(*_CONTEXT, *NAMES_ONLY):
        yield from (found[1] for line in lines if (found := _FOUND.match(line)))


LISTERS = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "rgrep", "rg"), grep),
    "find": find,
    "xargs": xargs,
    "ls": ls,
    "seq": seq,
    "basename": name_part,
    "dirname": name_part,
}
