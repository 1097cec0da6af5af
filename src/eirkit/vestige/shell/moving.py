"""The commands that copy and move files and make folders, and what tells a folder from a file.

A folder that is copied or moved stands for the files in it that the run has met, be they none.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from eirkit.vestige.shell.flow import NOTHING, Flow
from eirkit.vestige.shell.options import Parsed, split_options
from eirkit.vestige.shell.walk import Invocation, Walk, Written
from eirkit.vestige.trajectory import Write

_FOLDERS = frozenset({".", "..", "/", "~", "/tmp", "/root", "/home", "/opt", "/var/tmp", "/usr/local/bin"})


def copy(walk: Walk, call: Invocation) -> Flow:
    """`cp`, `install` and `ln`: the copy is written, the source is not read by the agent."""
    options = split_options(call.arguments, "tSmog", ("--target-directory", "--mode"))
    if call.name == "install" and options.has("-d", "--directory"):
        return make_folder(walk, call)
    _put_all(walk, call, options)
    return NOTHING


def move(walk: Walk, call: Invocation) -> Flow:
    """`mv` removes one file and writes another."""
    for path, word in _put_all(walk, call, split_options(call.arguments, "tS", ("--target-directory",))):
        _note(walk, call, Write(path, "delete"), word)
    return NOTHING


def make_folder(walk: Walk, call: Invocation) -> Flow:
    """`mkdir`: a folder is no file, but what is copied to it lands inside."""
    for path in walk.paths(split_options(call.arguments, "mZ", ("--mode",)).operands):
        walk.place.folders[path] = None
    return NOTHING


def _put_all(walk: Walk, call: Invocation, options: Parsed) -> list[tuple[str, str]]:
    """Note what copies write, and return the files that were copied, each with the word that complaints name it by."""
    given = options.first("-t", "--target-directory")
    sources = options.operands if given else options.operands[:-1]
    target = given or (options.operands[-1] if options.operands else "")
    goal = walk.place.resolve(target, walk.folder) if sources else None
    if goal is None:
        return []
    into = bool(given) or len(sources) > 1 or target.endswith(("/", "/.")) or is_folder(walk, goal)
    into = into or f" -> '{target}/" in walk.output
    done: list[tuple[str, str]] = []
    for source in sources:
        word = _complaint(walk.output, source, target)
        pairs = _pairs(walk, options, source, goal, into) if call.name != "ln" else _links(walk, source, goal, into)
        for path, to in list(pairs):
            _note(walk, call, Write(to, "whole", content=walk.text_of(path)), word)
            done.append((path, word))
    return done


def _complaint(output: str, *words: str) -> str:
    """Return the way in which a complaint would name a file, which must not be taken for the start of another name."""
    ways = [way for word in words for way in (f"'{word}'", f" {word}: ")]
    return next((way for way in ways if way in output), ways[0])


def _note(walk: Walk, call: Invocation, write: Write, word: str) -> None:
    walk.written.append(Written(write, call.step, call.name, word))


def _pairs(walk: Walk, options: Parsed, word: str, goal: str, into: bool) -> Iterator[tuple[str, str]]:
    """Yield each file that a word stands for, and where it goes."""
    for path in walk.paths([word]):
        inside = files_below(walk, path)
        # `folder/.` means what is in the folder, not the folder.
        to = _joined(goal, posixpath.basename(path)) if into and not word.endswith("/.") else goal
        deep = options.has("-r", "-R", "-a", "--recursive") and not _is_file(walk, path)
        if inside:
            yield from ((file, _joined(to, file[len(path) + 1 :])) for file in inside)
        elif path not in walk.place.folders and not deep and (into or _is_file(walk, path, goal)):
            yield path, to
        else:
            walk.place.unresolved += 1


def _links(walk: Walk, word: str, goal: str, into: bool) -> Iterator[tuple[str, str]]:
    for path in walk.paths([word]):
        yield path, _joined(goal, posixpath.basename(path)) if into else goal


def _joined(folder: str, name: str) -> str:
    return name if folder == "." else f"{folder.rstrip('/')}/{name}"


def is_folder(walk: Walk, path: str) -> bool:
    """True if a path is a folder by its name, by what the run made, or by a file below it that the run has met."""
    return path in _FOLDERS or path in walk.place.folders or bool(files_below(walk, path))


def files_below(walk: Walk, path: str) -> list[str]:
    """Return the files in a folder that the run has named, written or was shown and that are still there."""
    start = "" if path == "." else f"{path}/"
    now = {done.write.path: done.write.kind for done in walk.written if done.write.path.startswith(start)}
    if any(file.startswith(start) for file in walk.place.texts) or not _has_suffix(path):
        known = [file for file in walk.place.known() if file.startswith(start)]
    else:
        known = [file for file in walk.place.met if file.startswith(start)]
    made = [file for file, kind in now.items() if kind != "delete"]
    return [file for file in dict.fromkeys([*known, *made]) if now.get(file) != "delete"]


def _is_file(walk: Walk, path: str, goal: str = "") -> bool:
    """True if a path that is no known folder is a file: a known one, or one that looks it and goes where a file goes.

    `cp a.py docs` may write `docs` or `docs/a.py`, so a name with an ending that goes to one without is not told.
    """
    if any(done.write.path == path for done in walk.written) or path in walk.place.met:
        return not goal or _has_suffix(goal) or not _has_suffix(path)
    if not goal:
        return _has_suffix(path)
    return _has_suffix(goal) or (not _has_suffix(path) and posixpath.basename(path)[:1].isupper())


def _has_suffix(path: str) -> bool:
    return "." in posixpath.basename(path).strip(".")
