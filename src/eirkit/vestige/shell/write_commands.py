"""Shell commands that create, change or remove files, and the files that a patch changes."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from eirkit.vestige.shell.copy_commands import ARCHIVERS, copy, make_folder, move, physical
from eirkit.vestige.shell.state import NOTHING, OTHER, Flow
from eirkit.vestige.shell.view_commands import edit_in_place
from eirkit.vestige.shell.walk import Handler, Invocation, Walk
from eirkit.vestige.shell.words import split_options
from eirkit.vestige.trajectory import WriteKind

_HEADER = re.compile(
    r"(?m)^(?:\+\+\+ ([^\t\n]+)|--- ([^\t\n]+)|\*\*\* (Add|Update|Delete) File: ([^\n]+)|\*\*\* Move to: ([^\n]+))"
)
_RUBY_READS = re.compile(r"""\b(?:File|IO)\.(?:read|readlines|foreach)[( ]['"]([^'"#\n]{1,400})['"]""")
_PRODUCT = re.compile(r"(?:\.(?:py[co]|o|obj|l?a|so|dylib|dll|class|gc(?:da|no)|egg-info)|(?:^|/)__pycache__)/?\Z")
_PLIST_CHANGES = frozenset({"-replace", "-insert", "-remove", "-convert"})
_KINDS: dict[str, WriteKind] = {"Add": "whole", "Update": "edit", "Delete": "delete"}


@dataclass(frozen=True, slots=True)
class FilePatch:
    """What a patch does to one file."""

    path: str  # as named in the patch, without the first component (`-p1`)
    kind: WriteKind
    removed: str = ""
    added: str = ""


def files_in_diff(text: str, strip: int = 1) -> list[str]:
    """Return the files that a unified diff changes, creates or removes, in order."""
    found: dict[str, None] = {}
    old = ""
    for match in _HEADER.finditer(text):
        if match[2]:
            old = match[2].strip()
        elif match[1]:
            new = match[1].strip()
            name = old if new == "/dev/null" else new
            if name and name != "/dev/null":
                found[stripped(name, strip)] = None
    return list(found)


def stripped(name: str, strip: int = 1) -> str:
    """Return a name in a diff without its first components."""
    name = name.strip('"')
    if name.startswith("/"):
        return name
    parts = name.split("/")
    return "/".join(parts[strip:]) if len(parts) > strip and (strip != 1 or parts[0] in _PREFIXES) else name


_PREFIXES = ("a", "b", "i", "w", "c", "o", "old", "new", "orig")


def file_patches(text: str) -> Iterator[FilePatch]:
    """Yield the files of a `*** Begin Patch` text; a move removes one file and creates another."""
    marks = [match for match in _HEADER.finditer(text) if match[3] or match[5]]
    for index, match in enumerate(marks):
        if match[3] is None:
            continue
        path = match[4].strip()
        moved = marks[index + 1][5] if index + 1 < len(marks) else None
        body_start = marks[index + 1].end() if moved else match.end()
        after = index + 2 if moved else index + 1
        body = text[body_start : marks[after].start() if after < len(marks) else len(text)]
        removed, added = _sides(body)
        if moved:
            yield FilePatch(path, "delete")
            yield FilePatch(moved.strip(), "edit", removed, added)
        else:
            yield FilePatch(path, _KINDS[match[3]], removed, added)


def _sides(body: str) -> tuple[str, str]:
    lines = body.split("\n")
    removed = [line[1:] for line in lines if line.startswith("-")]
    added = [line[1:] for line in lines if line.startswith("+")]
    return "\n".join(removed), "\n".join(added)


_PATCHED = re.compile(r"(?m)^(?:patching|checking) file '?([^\n'(]+?)'?(?: \(.*)?$")
_REJECTED = re.compile(r"(\d{1,5}) out of (\d{1,5}) hunks? (?:FAILED|ignored)(?:[^\n]*rejects to file ([^\n]+))?")


def tee(walk: Walk, call: Invocation) -> Flow:
    """`tee` writes its input to files."""
    options = split_options(call.arguments)
    text = call.stdin.text if call.stdin.kind == "text" else None
    if options.has("-a", "--append"):
        walk.write(call, options.operands, "edit", added=text)
    else:
        walk.write(call, options.operands, "whole", content=text)
    return call.stdin


def remove(walk: Walk, call: Invocation) -> Flow:
    """`rm`; of a folder, every file in it that the run has written or seen, since a folder itself is not a file."""
    options = split_options(call.arguments)
    is_deep = options.has("-r", "-R", "--recursive")
    known = dict.fromkeys([*_files(walk), *walk.state.shown])
    for word in options.operands:
        # What was built and never met is nothing that the run knew.
        for path in walk.paths([word]) if _PRODUCT.search(word) else walk.removed(word):
            walk.state.folders.pop(path, None)
            below = [file for file in known if file.startswith(f"{path}/")]
            for file in below:
                walk.write_path(call, file, "delete")
            if not below and (path in known or not is_deep or _is_source(path)):
                walk.write_path(call, path, "delete")
    return NOTHING


def remove_folder(walk: Walk, call: Invocation) -> Flow:
    """`rmdir`: a folder is not a file."""
    for path in walk.paths(split_options(call.arguments).operands):
        walk.state.folders.pop(path, None)
    return NOTHING


def _files(walk: Walk) -> list[str]:
    """Return the files that the run has written and not removed."""
    before = [path for path in walk.state.changed if path in walk.state.met]
    now = [done.write.path for done in walk.written if done.write.kind != "delete"]
    return list(dict.fromkeys([*before, *now]))


def touch(walk: Walk, call: Invocation) -> Flow:
    """`touch` writes a file only if it creates it."""
    options = split_options(call.arguments, "dtr", ("--date", "--reference"))
    known = {*walk.state.met, *_files(walk)}
    for word in options.operands:
        for path in walk.paths([word]):
            if path not in known:
                walk.write_path(call, path, "whole", "")
    return NOTHING


def perl(walk: Walk, call: Invocation) -> Flow:
    """`perl -pi -e` and `ruby -pi -e` change files in place; without `-i` they show them."""
    operands: list[str] = []
    edits, has_program, waiting = False, False, False
    for word in call.arguments:
        if waiting:
            waiting = False
        elif word.startswith("-") and not operands:
            letters = re.match(r"-[a-zA-Z0-9]*", word)
            edits = edits or "i" in (letters[0] if letters else "")
            waiting = word[-1] in "eE"
            has_program = has_program or waiting
        else:
            operands.append(word)
    if not has_program:
        return OTHER
    if edits:
        edit_in_place(walk, call, operands)
        return NOTHING
    shown = [name for name in _RUBY_READS.findall(" ".join(call.arguments)) if call.name == "ruby"]
    files = walk.paths([*operands, *shown])
    return Flow("files", files=files, chosen=True) if files else call.stdin


_UNCHANGED = re.compile(r"(?m)^(\S{1,400}) \d{1,9}ms \(unchanged\)$")  # as prettier reports it
_FORMATTER_VALUES = (
    *("--line-length", "--config", "--select", "--profile", "--ignore-path", "--parser", "--plugin", "--ext"),
    *("--rule", "--local", "--edition", "--config-path"),
)


def formatter(unless: tuple[str, ...] = (), only: tuple[str, ...] = (), command: str = "") -> Handler:
    """Return a command that rewrites the files it is given, except with or only with certain options."""

    def run(walk: Walk, call: Invocation) -> Flow:
        options = split_options(call.arguments, "l" if call.name == "black" else "", _FORMATTER_VALUES)
        operands = options.operands
        if command and operands[:1] == [command]:
            operands = operands[1:]
        elif only and not options.has(*only):
            return OTHER
        if not options.has(*unless):
            same = set(_UNCHANGED.findall(walk.output))
            walk.write(call, [word for word in operands if _is_source(word) and word.removeprefix("./") not in same])
        return OTHER

    return run


def _is_source(word: str) -> bool:
    return "." in posixpath.basename(word.rstrip("/")).strip(".")


def patch(walk: Walk, call: Invocation) -> Flow:
    """`patch`: the files that its text or its output names."""
    options = split_options(call.arguments, "pidoRB", ("--input", "--directory", "--strip"))
    if options.has("--dry-run"):
        return OTHER
    level = options.first("-p", "--strip") or ""
    strip = int(level) if level.isdigit() and len(level) < 3 else 0
    source = options.first("-i", "--input") or (options.operands[1] if len(options.operands) > 1 else None)
    folder = options.first("-d", "--directory")
    told = list(_told(walk.output))
    targets = told or options.operands[:1] or patched_files(walk, call, source, strip)
    walk.write(call, [f"{folder}/{word}" for word in targets] if folder else targets, firm=not told)
    return OTHER


def _told(output: str) -> Iterator[str]:
    """Yield the files that `patch` reports as changed, and the reject files of failed hunks."""
    names = list(_PATCHED.finditer(output))
    for found, after in zip(names, [*names[1:], None], strict=False):
        name, report = found[1].strip(), output[found.end() : after.start() if after else len(output)]
        rejected = _REJECTED.search(report)
        if rejected is None or rejected[1] != rejected[2]:
            yield name
        if "Hunk #" in report or "FAILED" in report:  # applied with fuzz, so `patch` keeps a copy of the old file
            yield f"{name}.orig"
        if rejected is not None and rejected[3]:
            yield rejected[3].strip().rstrip(".") if rejected[3].endswith("..") else rejected[3].strip()


def patched_files(walk: Walk, call: Invocation, source: str | None, strip: int = 1) -> list[str]:
    """Return the files that a patch changes, from the file or the input that holds it."""
    if text := patch_text(walk, call, source):
        return files_in_diff(text, strip)
    if call.stdin.kind == "diff" and source in (None, "-"):
        return list(call.stdin.files)
    for path in _patch_paths(walk, call, source):
        if path in walk.state.patches:
            return list(walk.state.patches[path])
    return []


def patch_text(walk: Walk, call: Invocation, source: str | None) -> str | None:
    """Return the text of a patch in a file or on the input, where it is known."""
    if source in (None, "-") and call.stdin.kind == "text":
        return call.stdin.text
    return next((text for path in _patch_paths(walk, call, source) if (text := walk.text_of(path))), None)


def _patch_paths(walk: Walk, call: Invocation, source: str | None) -> Iterable[str]:
    if source is None or source == "-":
        return call.stdin.files if call.stdin.kind == "files" else ()
    return walk.paths([source])


def apply_patch(walk: Walk, call: Invocation) -> Flow:
    """`apply_patch` with its patch as an argument or on its input."""
    text = call.arguments[0] if call.arguments else call.stdin.text
    for change in file_patches(text or ""):
        content = change.added if change.kind == "whole" else None
        for path in walk.paths([change.path]):
            walk.write_path(call, path, change.kind, content)
            if change.kind == "edit":
                done = walk.written[-1]
                shown = replace(done.write, removed=change.removed, added=change.added)
                walk.written[-1] = replace(done, write=shown)
    return OTHER


def fetch(walk: Walk, call: Invocation) -> Flow:
    """`curl -o` and `wget -O` write a file."""
    options = split_options(call.arguments, "oOHXdu", ("--output", "--output-document"))
    target = options.first("-o", "--output") if call.name == "curl" else options.first("-O", "--output-document")
    if target and target != "-":
        walk.write(call, [target], "whole")
    return OTHER


def property_list(walk: Walk, call: Invocation) -> Flow:
    """`plutil` and `PlistBuddy` of macOS print a property list, or change it."""
    words = call.arguments
    asked = _after(words, "-c").lower()
    if asked.startswith(("set", "add", "delete")) or not _PLIST_CHANGES.isdisjoint(words):
        target = _after(words, "-o") or words[-1]
        walk.write(call, [target] if target != "-" else [])
        return OTHER
    shows = asked.startswith("print") or "-p" in words or "-extract" in words
    return Flow("files", files=walk.paths(words[-1:]), chosen=True) if shows else OTHER


def _after(words: list[str], option: str) -> str:
    return words[words.index(option) + 1] if option in words[:-1] else ""


def convert_text(walk: Walk, call: Invocation) -> Flow:
    """`textutil -convert` of macOS writes the file after `-output`, or one beside its file."""
    words = call.arguments
    suffix, target = _after(words, "-convert"), _after(words, "-output")
    if suffix and "-stdout" not in words:
        walk.write(call, [target or f"{words[-1].rpartition('.')[0]}.{suffix}"], "whole")
    return OTHER


def truncate(walk: Walk, call: Invocation) -> Flow:
    """`truncate`, `shred`, `dos2unix` and similar commands."""
    walk.write(call, split_options(call.arguments, "sr").operands)
    return NOTHING


def dd(walk: Walk, call: Invocation) -> Flow:
    """`dd of=…` writes; without it the input is shown."""
    targets = [word[3:] for word in call.arguments if word.startswith("of=")]
    files = walk.paths([word[3:] for word in call.arguments if word.startswith("if=")])
    walk.write(call, targets, "whole")
    return Flow("files", files=files, chosen=True) if files and not targets else OTHER


def editor(walk: Walk, call: Invocation) -> Flow:
    """`ed` and `ex`, which take their commands from the input or from `-c`."""
    options = split_options(call.arguments, "cp")
    if call.stdin.kind == "text" or options.has("-c"):
        walk.write(call, [word for word in options.operands if not word.startswith("+")])
    return OTHER


CHANGERS: dict[str, Callable[[Walk, Invocation], Flow]] = {
    **ARCHIVERS,
    "tee": tee,
    "sponge": tee,
    **dict.fromkeys(("cp", "ditto"), copy),
    **dict.fromkeys(("plutil", "PlistBuddy"), property_list),
    "textutil": convert_text,
    "install": copy,
    "ln": copy,
    **dict.fromkeys(("pwd", "readlink", "realpath"), physical),
    "mv": move,
    "rm": remove,
    "unlink": remove,
    "touch": touch,
    "truncate": truncate,
    "dos2unix": truncate,
    "unix2dos": truncate,
    "shred": truncate,
    "dd": dd,
    "perl": perl,
    "ruby": perl,
    "patch": patch,
    "apply_patch": apply_patch,
    "applypatch": apply_patch,
    "curl": fetch,
    "wget": fetch,
    "ed": editor,
    "ex": editor,
    "vim": editor,
    "vi": editor,
    "black": formatter(("--check", "--diff")),
    "isort": formatter(("--check", "--check-only", "-c", "--diff")),
    "yapf": formatter(only=("-i", "--in-place")),
    "autopep8": formatter(only=("-i", "--in-place")),
    "ruff": formatter(("--check", "--diff"), only=("--fix",), command="format"),
    **dict.fromkeys(("prettier", "prettierd"), formatter(("--check", "--list-different"), only=("--write", "-w"))),
    **dict.fromkeys(("gofmt", "goimports", "gofumpt"), formatter(only=("-w",))),
    **dict.fromkeys(("eslint", "stylelint", "tslint", "standard"), formatter(("--fix-dry-run",), only=("--fix",))),
    "biome": formatter(only=("--write", "--apply", "--fix")),
    "rustfmt": formatter(("--check",)),
    "clang-format": formatter(only=("-i",)),
    "2to3": formatter(only=("-w",)),
    "mkdir": make_folder,
    **dict.fromkeys(("chmod", "chown", "chgrp"), lambda walk, call: NOTHING),
    "rmdir": remove_folder,
}
