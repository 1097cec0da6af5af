"""git: what its commands show of files, and what they restore, apply, move or remove.

`git diff` shows lines of the current files, and `git show` and `git log -p` those of earlier ones; both count as read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from eirkit.vestige.shell.copy_commands import move
from eirkit.vestige.shell.search_commands import grep_tracked
from eirkit.vestige.shell.state import NOTHING, OTHER, Flow
from eirkit.vestige.shell.walk import Invocation, ShellWrite, Walk
from eirkit.vestige.shell.words import split_options
from eirkit.vestige.shell.write_commands import patch_text, patched_files, remove
from eirkit.vestige.trajectory import FileWrite, WriteKind

_NO_CONTENT = ("--stat", "--name-only", "--name-status", "--numstat", "--shortstat", "--summary", "--quiet", "--check")
_REVISION = re.compile(
    r"HEAD(?:[~^]\d*)*|ORIG_HEAD|stash@\{\d+\}|[0-9a-f]{7,40}|(?:origin/)?(?:master|main|develop)"
    r"|[\w/@^~-]{0,200}\.{2,3}[\w/@^~-]{0,200}"
)
_BACK = re.compile(r"(?:HEAD|@)(?:~(\d{0,2})|(\^+))")
_ON_BRANCH = ("Switched to ", "HEAD is now at ", "Already on ")
_UPDATED = re.compile(r"(?m)^Updated (\d{1,6}) paths? from ")
_COUNT = re.compile(r"(?m)^ (\d{1,6}) files? changed")
_MERGED = re.compile(r"(?m)^(?:Auto-merging |CONFLICT \([^)\n]{1,40}\): Merge conflict in )([^\n]+)$")
_STAT = re.compile(r"(?m)^ (\S[^\n|]*+)(?<= )\| ++(?:\d++ [+-]*+|Bin .*+)$")


def git(walk: Walk, call: Invocation) -> Flow:
    """Interpret a git command."""
    arguments, folder = list(call.arguments), walk.folder
    while arguments and arguments[0].startswith("-"):
        option = arguments.pop(0)
        if option in ("-C", "-c", "--git-dir", "--work-tree") and arguments:
            value = arguments.pop(0)
            walk.folder = walk.state.absolute(value, walk.folder) if option == "-C" and value else walk.folder
    handler = _VERBS.get(arguments[0]) if arguments else None
    flow = handler(walk, replace(call, arguments=arguments[1:])) if handler else OTHER
    walk.folder = folder
    return flow


def _diff(walk: Walk, call: Invocation) -> Flow:
    if any(word.partition("=")[0] in _NO_CONTENT for word in call.arguments):
        alone = call.arguments == ["--name-only"]
        tracked = [path for path in _changed(walk, []) if path not in walk.state.created] if alone else []
        return Flow("other", listed=tuple(map(walk.word_for, tracked)))
    if "--no-index" in call.arguments:
        files = walk.paths([word for word in call.arguments if not word.startswith("-")])
        return Flow("files", files=files, chosen=True) if files else OTHER
    words = _after_dashes(call.arguments)
    before = call.arguments[: call.arguments.index("--")] if "--" in call.arguments else call.arguments
    named = walk.paths([word for word in words if "." in word.strip("./")])
    if any(word != "HEAD" and _REVISION.fullmatch(word) for word in before):
        # Differences from an older commit are known only for files named explicitly.
        return Flow("diff", files=named, folder=_top(walk))
    files = named if len(named) == len(words) == 1 else _changed(walk, words)
    return Flow("diff", files=files, folder=walk.folder if "--relative" in call.arguments else _top(walk))


def _top(walk: Walk) -> str:
    """Return the folder to which names in a diff are relative; another repository begins where the command stands."""
    here = walk.folder
    outside = here[:1] == "/" and walk.state.relative(here) == here
    return here if outside or not walk.state.roots else walk.state.roots[0]


def _after_dashes(arguments: list[str]) -> list[str]:
    if "--" in arguments:
        return arguments[arguments.index("--") + 1 :]
    return [word for word in arguments if not word.startswith("-") and not _REVISION.fullmatch(word)]


def _changed(walk: Walk, words: list[str]) -> tuple[str, ...]:
    """Return the changed files at or below the given paths; all of them if none is given."""
    now = [*walk.state.changed, *(done.write.path for done in walk.written)]
    inside = [path for path in dict.fromkeys(now) if not path.startswith(("/", "~"))]
    if not words:
        return tuple(inside)
    asked = walk.paths(words)
    return tuple(p for p in inside if any(p == a or a == "." or p.startswith(f"{a}/") for a in asked))


def _show(walk: Walk, call: Invocation) -> Flow:
    if any(word.partition("=")[0] in _NO_CONTENT for word in call.arguments):
        return OTHER
    named = [word.partition(":")[2] for word in call.arguments if not word.startswith("-") and ":" in word]
    files = tuple(walk.state.resolve_all([word for word in named if word], _top(walk)))
    if files:
        return Flow("files", files=files)
    quiet = any(word in ("-s", "--no-patch", "--oneline-only") for word in call.arguments)
    return OTHER if quiet else Flow("diff", folder=_top(walk))


def _log(walk: Walk, call: Invocation) -> Flow:
    """`git log -p` shows the changes of commits, `-L` those of some lines."""
    shows = any(word in ("-p", "-u", "--patch") or word[:2] in ("-L", "-U") for word in call.arguments)
    return Flow("diff", folder=_top(walk)) if shows else OTHER


def _blame(walk: Walk, call: Invocation) -> Flow:
    options = split_options(call.arguments, "LSC")
    files = walk.paths([word for word in options.operands if not _REVISION.fullmatch(word)][-1:])
    return Flow("files", files=files, chosen=True) if files else OTHER


def _checkout(walk: Walk, call: Invocation) -> Flow:
    """`git checkout`: restored files; switching branches restores nothing that can be known, unless forced."""
    options = split_options(call.arguments)
    if options.has("-b", "-B", "--orphan", "-p", "--patch"):
        return NOTHING
    words = _after_dashes(call.arguments)
    if "--" not in call.arguments and any(sign in walk.output for sign in _ON_BRANCH):
        words = [word for word in words if _changed(walk, [word])]
    done = [_put_back(walk, call, word) for word in words]
    if options.has("-f", "--force") and not any(done):
        _undo(walk, call, _changed(walk, []))
    return NOTHING


def _restore(walk: Walk, call: Invocation) -> Flow:
    """`git restore`: restored files, unless it changes only the index."""
    options = split_options(call.arguments, "s", ("--source",))
    index_alone = options.has("--staged", "-S") and not options.has("--worktree", "-W")
    if not index_alone and not options.has("-p", "--patch"):
        for word in options.operands:
            _put_back(walk, call, word)
    return NOTHING


def _switch(walk: Walk, call: Invocation) -> Flow:
    if split_options(call.arguments).has("-f", "--force", "--discard-changes"):
        _undo(walk, call, _changed(walk, []))
    return NOTHING


def _undo(walk: Walk, call: Invocation, paths: Iterable[str]) -> None:
    """Record that files are restored from the last commit; files that the run created stay as they are."""
    for path in paths:
        if path not in walk.state.created:
            walk.write_path(call, path, restored=True)
            walk.cleaned[path] = None


def _put_back(walk: Walk, call: Invocation, word: str) -> bool:
    """Record the files that an operand restores; False if it names no file."""
    below = _changed(walk, [word])
    paths = walk.paths([word])
    _admit(walk, paths)
    updated = _UPDATED.search(walk.output)
    if updated and int(updated[1]) == len(below):
        _admit(walk, below)
    _undo(walk, call, below)
    looks_like_file = "/" in word or "." in word.strip("./")
    if below or not looks_like_file or word.endswith("/"):
        return bool(below)
    for path in paths:
        walk.write_path(call, path, restored=True)
    return True


def _admit(walk: Walk, paths: Iterable[str]) -> None:
    """Assume that a commit contains files that git accepted by name: the run overwrote them and did not create them."""
    if walk.exit_code == 0 or _UPDATED.search(walk.output):
        for path in paths:
            walk.state.created.pop(path, None)


def _stash(walk: Walk, call: Invocation) -> Flow:
    options = split_options(call.arguments, "m", ("--message",))
    verb, words = options.operands[0] if options.operands else "push", options.operands[1:]
    stashed = walk.state.stashed
    if call.arguments[:1] == ["--"]:
        verb, words = "push", options.operands
    if verb in ("push", "save") and "No local changes" not in walk.output:
        _set_aside(walk, call, words if verb == "push" else [], options.has("-u", "-a", "--include-untracked", "--all"))
    elif verb in ("pop", "apply") and stashed and not words:
        for path, kind in (stashed.pop() if verb == "pop" else stashed[-1]).items():
            walk.write_path(call, path, kind)
    elif verb in ("drop", "clear") and stashed:
        del stashed[0 if verb == "clear" else -1 :]
    return OTHER


def _set_aside(walk: Walk, call: Invocation, words: list[str], untracked: bool) -> None:
    """Stash changed files; of files that the run created, only if the command includes untracked ones."""
    files = _changed(walk, words)
    if words and not untracked:
        _admit(walk, walk.paths(words))
    made = [path for path in files if path in walk.state.created] if untracked else []
    kept: dict[str, WriteKind] = {path: "edit" for path in files if path not in walk.state.created}
    _undo(walk, call, kept)
    for path in made:
        walk.write_path(call, path, "delete")
    walk.state.stashed.append({**kept, **dict.fromkeys(made, "whole")})


def _reset(walk: Walk, call: Invocation) -> Flow:
    if "--hard" in call.arguments:
        _undo(walk, call, _changed(walk, []))
        back = next((found for word in call.arguments if (found := _BACK.fullmatch(word))), None)
        for _ in range(_steps(back) if back else 0):
            _take_back(walk, call)
    return OTHER


def _steps(back: re.Match[str]) -> int:
    return int(back[1] or 1) if back[1] is not None else len(back[2])


def _take_back(walk: Walk, call: Invocation) -> None:
    """Record that the last commit is undone, if the run made it and its files are known."""
    files = walk.state.committed.pop() if walk.state.committed else ()
    walk.state.leave_unnamed(not files)
    for path in files:
        walk.write_path(call, path, restored=True)
        walk.cleaned[path] = None


def _revert(walk: Walk, call: Invocation) -> Flow:
    """`git revert HEAD` names no files; they are known if the run made that commit."""
    if split_options(call.arguments, "m").operands == ["HEAD"]:
        _take_back(walk, call)
    else:
        walk.state.leave_unnamed()
    return OTHER


def _clean(walk: Walk, call: Invocation) -> Flow:
    options = split_options(call.arguments, "e")
    if options.has("-f", "--force") and not options.has("-n", "--dry-run"):
        # Without -d it skips folders that contain no tracked file.
        new = () if options.has("-d") else tuple(f"{folder}/" for folder in walk.state.folders)
        for path in _changed(walk, options.operands):
            if path in walk.state.created and not path.startswith(new):
                walk.write_path(call, path, "delete")
    return OTHER


def _apply(walk: Walk, call: Invocation) -> Flow:
    options = split_options(call.arguments, "pC", ("--directory", "--exclude", "--include"))
    checks = options.has("--check", "--stat", "--numstat", "--summary") and not options.has("--apply")
    if checks or (options.has("--cached") and not options.has("--index")):
        return OTHER
    level = options.first("-p") or "1"
    strip = int(level) if level.isdigit() and len(level) < 3 else 1
    below = options.first("--directory")
    sources: list[str | None] = [*options.operands] or [None]
    for source in sources:
        text = patch_text(walk, call, source)
        by_git = text is None or "diff --git " in text
        for name in patched_files(walk, call, source, strip):
            path = walk.state.resolve(f"{below}/{name}", _top(walk)) if below else _from_top(walk, name, by_git)
            if path is not None:
                walk.write_path(call, path)
    return OTHER


def _from_top(walk: Walk, name: str, by_git: bool) -> str | None:
    """Return the file that a name in a patch means to `git apply`.

    Names are relative to the top of the repository. Run in a subfolder, it skips files of git patches elsewhere, and
    takes names in other patches as relative to that folder.
    """
    path = walk.state.resolve(name, _top(walk))
    here = walk.state.resolve(walk.folder, walk.folder) if walk.folder else "."
    if path is None or here is None or here == "." or here.startswith(("/", "~")) or path.startswith(f"{here}/"):
        return path
    return None if by_git else walk.state.resolve(name, walk.folder)


def _merging(walk: Walk, call: Invocation) -> Flow:
    """A merge names the files that it merges, also where they conflict, and lists others in its summary."""
    names = [name.strip() for name in (*_MERGED.findall(walk.output), *_STAT.findall(walk.output))]
    for name in dict.fromkeys(names):
        # A long name is cut in the summary, and that of a renamed file holds both.
        if name.startswith(".../") or " => " in name or (path := walk.state.resolve(name, _top(walk))) is None:
            continue
        walk.record(ShellWrite(FileWrite(path), call.step, call.name, path, firm=False))
    return OTHER


def _commit(walk: Walk, call: Invocation) -> Flow:
    """After a commit nothing differs from it; its files are known if git reports the same number."""
    if walk.exit_code == 0:
        files, counted = _changed(walk, []), _COUNT.search(walk.output)
        walk.state.committed.append(files if counted and int(counted[1]) == len(files) else ())
        walk.cleaned.update(walk.state.changed)
        walk.cleaned.update(dict.fromkeys(files))
    return OTHER


def _remove(walk: Walk, call: Invocation) -> Flow:
    return NOTHING if "--cached" in call.arguments else remove(walk, call)


_VERBS: dict[str, Callable[[Walk, Invocation], Flow]] = {
    "diff": _diff,
    "show": _show,
    "log": _log,
    "blame": _blame,
    "annotate": _blame,
    "grep": grep_tracked,
    "checkout": _checkout,
    "restore": _restore,
    "switch": _switch,
    "revert": _revert,
    "commit": _commit,
    "stash": _stash,
    "reset": _reset,
    "clean": _clean,
    "apply": _apply,
    "am": _apply,
    "merge": _merging,
    **dict.fromkeys(("pull", "rebase", "cherry-pick"), _merging),
    "mv": move,
    "rm": _remove,
    "add": lambda walk, call: NOTHING,
}
