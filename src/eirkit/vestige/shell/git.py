"""git: what it shows of files' content, and what it puts back, applies, moves or removes.

What `git diff` shows are lines of the present files, so these count as read; old commits and their diffs do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from eirkit.vestige.shell.changing import move, patched_files, remove
from eirkit.vestige.shell.flow import NOTHING, OTHER, Flow
from eirkit.vestige.shell.options import split_options
from eirkit.vestige.shell.searching import git_grep
from eirkit.vestige.shell.walk import Invocation, Walk

_NO_CONTENT = ("--stat", "--name-only", "--name-status", "--numstat", "--shortstat", "--summary", "--quiet", "--check")
_REVISION = re.compile(r"HEAD(?:[~^]\d*)*|ORIG_HEAD|stash@\{\d+\}|[0-9a-f]{7,40}|(?:origin/)?(?:master|main|develop)")
_STAT = re.compile(r"(?m)^ (\S[^\n|]*?) +\| +(?:\d+ [+-]*|Bin .*)$")


def git(walk: Walk, call: Invocation) -> Flow:
    """Follow a git command."""
    arguments, folder = list(call.arguments), walk.folder
    while arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        if option in ("-C", "-c", "--git-dir", "--work-tree") and arguments:
            value = arguments.pop(0)
            walk.folder = walk.place.absolute(value, walk.folder) if option == "-C" and value else walk.folder
    handler = _VERBS.get(arguments[0]) if arguments else None
    flow = handler(walk, call._replace(arguments=arguments[1:])) if handler else OTHER
    walk.folder = folder
    return flow


def _diff(walk: Walk, call: Invocation) -> Flow:
    if any(word.partition("=")[0] in _NO_CONTENT for word in call.arguments):
        return OTHER
    return Flow("diff", files=_changed(walk, _after_dashes(call.arguments)), folder=_top(walk))


def _top(walk: Walk) -> str:
    """Return the folder that names in a diff start from."""
    return walk.place.roots[0] if walk.place.roots else walk.folder


def _after_dashes(arguments: list[str]) -> list[str]:
    if "--" in arguments:
        return arguments[arguments.index("--") + 1 :]
    return [word for word in arguments if not word.startswith("-") and not _REVISION.fullmatch(word)]


def _changed(walk: Walk, words: list[str]) -> tuple[str, ...]:
    """Return the changed files at or below some paths; all of them where none is given."""
    now = [*walk.place.changed, *(done.write.path for done in walk.written)]
    inside = [path for path in dict.fromkeys(now) if not path.startswith(("/", "~"))]
    if not words:
        return tuple(inside)
    asked = walk.paths(words)
    return tuple(p for p in inside if any(p == a or a == "." or p.startswith(f"{a}/") for a in asked))


def _show(walk: Walk, call: Invocation) -> Flow:
    if any(word.partition("=")[0] in _NO_CONTENT for word in call.arguments):
        return OTHER
    named = [word.partition(":")[2] for word in call.arguments if not word.startswith("-") and ":" in word]
    files = tuple(walk.place.resolve_all([word for word in named if word], _top(walk)))
    return Flow("files", files=files) if files else OTHER


def _blame(walk: Walk, call: Invocation) -> Flow:
    options = split_options(call.arguments, "LSC")
    files = walk.paths([word for word in options.operands if not _REVISION.fullmatch(word)][-1:])
    return Flow("files", files=files, chosen=True) if files else OTHER


def _restore(walk: Walk, call: Invocation) -> Flow:
    """`git checkout` and `git restore`: files put back; a branch puts back nothing that can be told."""
    if any(word in ("-b", "-B", "--orphan", "--staged", "-p") for word in call.arguments):
        return NOTHING
    options = split_options(call.arguments, "s", ("--source",))
    words = _after_dashes([word for word in call.arguments if word not in options.values.get("--source", ())])
    for word in words:
        for path in walk.paths([word]):
            _put_back(walk, call, path, word)
    return NOTHING


def _undo(walk: Walk, call: Invocation, paths: Iterable[str]) -> None:
    """Note that files are put back to what the last commit has; those that the run made stay as they are."""
    for path in paths:
        if path not in walk.place.created:
            walk.write_path(call, path, "edit")
            walk.cleaned[path] = None


def _put_back(walk: Walk, call: Invocation, path: str, word: str) -> None:
    below = _changed(walk, [word])
    _undo(walk, call, below)
    looks_like_file = "/" in word or "." in word.strip("./")
    if not below and looks_like_file and not word.endswith("/"):
        walk.write_path(call, path, "edit")


def _stash(walk: Walk, call: Invocation) -> Flow:
    verb = next((word for word in call.arguments if not word.startswith("-")), "push")
    if verb in ("push", "save") and "No local changes" not in walk.output:
        files = [path for path in _changed(walk, []) if path not in walk.place.created]
        walk.place.stashed.append(dict.fromkeys(files))
        _undo(walk, call, files)
    elif verb in ("pop", "apply") and walk.place.stashed:
        for path in walk.place.stashed.pop():
            walk.write_path(call, path, "edit")
    return OTHER


def _reset(walk: Walk, call: Invocation) -> Flow:
    if "--hard" in call.arguments:
        _undo(walk, call, _changed(walk, []))
    return OTHER


def _clean(walk: Walk, call: Invocation) -> Flow:
    options = split_options(call.arguments, "e")
    if options.has("-f") and not options.has("-n", "--dry-run"):
        for path in _changed(walk, options.operands):
            if path in walk.place.created:
                walk.write_path(call, path, "delete")
    return OTHER


def _apply(walk: Walk, call: Invocation) -> Flow:
    options = split_options(call.arguments, "pC", ("--directory", "--exclude", "--include"))
    if options.has("--check", "--stat", "--numstat", "--summary"):
        return OTHER
    level = options.first("-p") or "1"
    strip = int(level) if level.isdigit() and len(level) < 3 else 1
    sources: list[str | None] = [*options.operands] or [None]
    for source in sources:
        walk.write(call, patched_files(walk, call, source, strip))
    return OTHER


def _merging(walk: Walk, call: Invocation) -> Flow:
    """A merge names the files that it changed in the summary that it prints."""
    for name in _STAT.findall(walk.output):
        if (path := walk.place.resolve(name.strip(), _top(walk))) is not None:
            walk.write_path(call, path, "edit")
    return OTHER


def _commit(walk: Walk, call: Invocation) -> Flow:
    """After a commit nothing differs from the last one."""
    if walk.exit_code == 0:
        walk.cleaned.update(walk.place.changed)
    return OTHER


def _remove(walk: Walk, call: Invocation) -> Flow:
    return NOTHING if "--cached" in call.arguments else remove(walk, call)


_VERBS: dict[str, Callable[[Walk, Invocation], Flow]] = {
    "diff": _diff,
    "show": _show,
    "blame": _blame,
    "annotate": _blame,
    "grep": git_grep,
    "checkout": _restore,
    "restore": _restore,
    "commit": _commit,
    "stash": _stash,
    "reset": _reset,
    "clean": _clean,
    "apply": _apply,
    "am": _apply,
    "merge": _merging,
    "pull": _merging,
    "mv": move,
    "rm": _remove,
    "add": lambda walk, call: NOTHING,
}
