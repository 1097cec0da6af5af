"""Shell commands that copy, move, archive or split files, and the rules that tell folders from files.

A copied or moved folder stands for the files in it that the run has met, possibly none.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from eirkit.vestige.shell.state import NOTHING, OTHER, Flow
from eirkit.vestige.shell.walk import Invocation, ShellWrite, Walk
from eirkit.vestige.shell.words import UNKNOWN, ParsedOptions, is_unknown, split_options
from eirkit.vestige.trajectory import FileWrite

_FOLDERS = frozenset({".", "..", "/", "~", "/tmp", "/root", "/home", "/opt", "/var/tmp", "/usr/local/bin"})


def copy(walk: Walk, call: Invocation) -> Flow:
    """`cp`, `install` and `ln`: the copy is written; the agent does not read the source."""
    options = split_options(call.arguments, "tSmog", ("--target-directory", "--mode"))
    if call.name == "install" and options.has("-d", "--directory"):
        return make_folder(walk, call)
    _put_all(walk, call, options)
    return NOTHING


def move(walk: Walk, call: Invocation) -> Flow:
    """`mv` removes one file and writes another; the file is gone even where it is unknown which it became."""
    options = split_options(call.arguments, "tS", ("--target-directory",))
    done = _put_all(walk, call, options)
    for path, word in done:
        _note(walk, call, FileWrite(path, "delete"), word)
    for word in options.operands[:-1] if not done else ():
        for path in walk.paths([word]):
            if _is_file(walk, path) and not is_folder(walk, path):
                _note(walk, call, FileWrite(path, "delete"), _complaint(walk.output, word, options.operands[-1]))
    return NOTHING


def make_folder(walk: Walk, call: Invocation) -> Flow:
    """`mkdir`: a folder is not a file, but copies to it go inside."""
    for path in walk.paths(split_options(call.arguments, "mZ", ("--mode",)).operands):
        walk.state.folders[path] = None
    return NOTHING


def _put_all(walk: Walk, call: Invocation, options: ParsedOptions) -> list[tuple[str, str]]:
    """Record the copies, and return the copied files, each with the word by which errors name it."""
    given = options.first("-t", "--target-directory")
    sources = options.operands if given else options.operands[:-1]
    target = given or (options.operands[-1] if options.operands else "")
    goal = walk.state.resolve(target, walk.folder) if sources else None
    if goal is None:
        walk.state.is_unnamed = walk.state.is_unnamed or (bool(sources) and is_unknown(target, walk.output))
        return []
    into = bool(given) or len(sources) > 1 or target.endswith(("/", "/.")) or is_folder(walk, goal)
    into = into or f" -> '{target}/" in walk.output
    done: list[tuple[str, str]] = []
    for source in sources:
        word = _complaint(walk.output, source, target)
        pairs = _pairs(walk, options, source, goal, into) if call.name != "ln" else _links(walk, source, goal, into)
        for path, to in list(pairs):
            _note(walk, call, FileWrite(to, "whole", content=walk.text_of(path)), word)
            done.append((path, word))
            if call.name == "ln" and options.has("-s", "--symbolic") and "ln: " not in walk.output:
                _follow(walk, source, to)
        if not done and UNKNOWN in source and not into and _has_suffix(goal):
            _note(walk, call, FileWrite(goal, "whole"), word)  # whatever it was, it is this file now
    return done


def _follow(walk: Walk, source: str, link: str) -> None:
    """Note where a link leads: a relative target is one from the folder of the link."""
    folder = posixpath.dirname(walk.state.absolute(link, "" if link[:1] == "/" else (*walk.state.roots, "")[0]))
    target = walk.state.resolve(source, folder)
    if target is not None:
        walk.state.link(link, target)


def physical(walk: Walk, call: Invocation) -> Flow:
    """`pwd -P`, `readlink -f` and `realpath` print where links lead."""
    options, shown = split_options(call.arguments), walk.output.strip()
    words = [walk.folder] if call.name == "pwd" else options.operands
    is_told = shown[:1] == "/" and "\n" not in shown and (call.name != "pwd" or options.has("-P"))
    if is_told and len(words) == 1 and words[0] and not is_unknown(words[0], ""):
        walk.told = _same(walk, words[0], shown)
    return OTHER


def _same(walk: Walk, word: str, shown: str) -> tuple[str, str] | None:
    """Return two names of a path, if it has two; the second, inside the repository, is the one to use."""
    logical, real = walk.state.resolve(word, walk.folder), walk.state.relative(shown)
    if logical is None or real is None or logical == real:
        return None
    if real[:1] == "/":
        return real, logical if logical != "." else next(iter(walk.state.roots), "")
    return logical, real


def _complaint(output: str, *words: str) -> str:
    """Return how an error would name a file, without matching the start of a longer name."""
    ways = [way for word in words for way in (f"'{word}'", f" {word}: ")]
    return next((way for way in ways if way in output), ways[0])


def _note(walk: Walk, call: Invocation, write: FileWrite, word: str) -> None:
    walk.record(ShellWrite(write, call.step, call.name, word))


def _pairs(walk: Walk, options: ParsedOptions, word: str, goal: str, into: bool) -> Iterator[tuple[str, str]]:
    """Yield each file that an operand stands for, and its destination."""
    for path in walk.touched(word):
        inside = files_below(walk, path)
        # `folder/.` means the content of the folder.
        to = _joined(goal, posixpath.basename(path)) if into and not word.endswith("/.") else goal
        deep = options.has("-r", "-R", "-a", "--recursive") and not _is_file(walk, path)
        if inside:
            yield from ((file, _joined(to, file[len(path) + 1 :])) for file in inside)
        elif (
            path not in walk.state.folders and not deep and (into or _is_file(walk, path, goal) or _is_new(walk, goal))
        ):
            yield path, to
        else:
            walk.state.leave_unnamed()


def _links(walk: Walk, word: str, goal: str, into: bool) -> Iterator[tuple[str, str]]:
    for path in walk.paths([word]):
        yield path, _joined(goal, posixpath.basename(path)) if into else goal


def _joined(folder: str, name: str) -> str:
    return name if folder == "." else f"{folder.rstrip('/')}/{name}"


def is_folder(walk: Walk, path: str) -> bool:
    """Return whether a path is a folder by its name, by what the run created, or by a known file below it."""
    return path in _FOLDERS or path in walk.state.folders or bool(files_below(walk, path))


def files_below(walk: Walk, path: str) -> list[str]:
    """Return the existing files in a folder that the run has named, written or seen."""
    start = "" if path == "." else f"{path}/"
    now = {done.write.path: done.write.kind for done in walk.written if done.write.path.startswith(start)}
    if any(file.startswith(start) for file in walk.state.texts) or not _has_suffix(path):
        known = [file for file in walk.state.known() if file.startswith(start)]
    else:
        known = [file for file in walk.state.met if file.startswith(start)]
    made = [file for file, kind in now.items() if kind != "delete"]
    return [file for file in dict.fromkeys([*known, *made]) if now.get(file) != "delete"]


def _is_file(walk: Walk, path: str, goal: str = "") -> bool:
    """Return whether a path that is not a known folder is a file: a known one, or one that looks like a file.

    `cp a.py docs` may write `docs` or `docs/a.py`, so a copy from a name with a suffix to one without is ambiguous.
    """
    if any(done.write.path == path for done in walk.written) or path in walk.state.met:
        return not goal or _has_suffix(goal) or not _has_suffix(path)
    if not goal:
        return _has_suffix(path)
    return _has_suffix(goal) or (not _has_suffix(path) and posixpath.basename(path)[:1].isupper())


def _is_new(walk: Walk, goal: str) -> bool:
    """Return whether a path is no folder because the run made the folder that it is in, and not this one."""
    return posixpath.dirname(goal) in walk.state.folders


def _has_suffix(path: str) -> bool:
    return "." in posixpath.basename(path).strip(".")


_UNZIPPED = re.compile(r"(?m)^ *+(?:inflating|extracting): ([^\n]+)$")
_NAME = re.compile(r"[\w.@+~/ -]{1,400}")
_PACKED = {
    **dict.fromkeys(("gzip", "gunzip"), ".gz"),
    **dict.fromkeys(("bzip2", "bunzip2"), ".bz2"),
    **dict.fromkeys(("xz", "unxz"), ".xz"),
    "zstd": ".zst",
}


def tar(walk: Walk, call: Invocation) -> Flow:
    """`tar`: the archive that it creates, or the files that it reports as extracted."""
    words = list(call.arguments)
    if words and re.fullmatch(r"[a-zA-Z]{1,8}", words[0]):
        words[0] = f"-{words[0]}"
    options = split_options(words, "fCTXI", ("--file", "--directory", "--exclude"))
    archive = options.first("-f", "--file")
    if options.has("-c", "--create", "-r", "--append", "-u", "--update"):
        walk.write(call, [archive] if archive and archive != "-" else [], "whole")
    elif options.has("-x", "--extract"):
        names = walk.output.split("\n") if options.has("-v", "--verbose") and walk.exit_code == 0 else []
        _unpack(walk, call, names, options.first("-C", "--directory"))
    return OTHER


def _unpack(walk: Walk, call: Invocation, names: list[str], folder: str | None) -> None:
    """Record extracted files, if nothing else is printed among their names."""
    files = [name for name in names if name and not name.endswith("/")]
    if not files or not all(_NAME.fullmatch(name) for name in files):
        walk.state.leave_unnamed()
        return
    walk.write(call, [f"{folder}/{name}" for name in files] if folder else files, "whole")


def pack(walk: Walk, call: Invocation) -> Flow:
    """`zip` writes its archive."""
    words = split_options(call.arguments, "xit").operands
    if words and words[0] != "-":
        walk.write(call, [words[0] if "." in posixpath.basename(words[0]) else f"{words[0]}.zip"], "whole")
    return OTHER


def unpack(walk: Walk, call: Invocation) -> Flow:
    """`unzip` names what it extracts, including the folder."""
    options = split_options(call.arguments, "dx")
    if options.has("-l", "-p", "-t", "-v", "-Z"):
        return OTHER
    names = [name.rstrip() for name in _UNZIPPED.findall(walk.output)]
    walk.state.leave_unnamed(not names)
    walk.write(call, names, "whole")
    return OTHER


def compress(walk: Walk, call: Invocation) -> Flow:
    """`gzip` and similar commands replace each file by a packed one."""
    options = split_options(call.arguments, "ST")
    if options.has("-c", "-l", "-t", "--stdout", "--list", "--test"):
        return OTHER
    suffix = _PACKED[call.name]
    unpacks = options.has("-d", "--decompress") or "un" in call.name
    for word in options.operands:
        goal = word.removesuffix(suffix) if unpacks else word + suffix
        if goal != word:
            walk.write(call, [goal], "whole")
            walk.write(call, [word] if not options.has("-k", "--keep") and call.name != "zstd" else [], "delete")
    return NOTHING


def split(walk: Walk, call: Invocation) -> Flow:
    """`split` and `csplit` create an unknown number of files."""
    walk.state.leave_unnamed()
    return OTHER


ARCHIVERS = {
    "tar": tar,
    "zip": pack,
    "unzip": unpack,
    **dict.fromkeys(_PACKED, compress),
    "split": split,
    "csplit": split,
}
