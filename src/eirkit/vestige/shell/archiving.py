"""The commands that pack files into one and unpack them: what comes out is known where it is printed by name."""

from __future__ import annotations

import posixpath
import re

from eirkit.vestige.shell.flow import NOTHING, OTHER, Flow
from eirkit.vestige.shell.options import split_options
from eirkit.vestige.shell.walk import Invocation, Walk

_UNZIPPED = re.compile(r"(?m)^ *(?:inflating|extracting): ([^\n]+?) *$")
_NAME = re.compile(r"[\w.@+~/ -]{1,400}")
_PACKED = {
    **dict.fromkeys(("gzip", "gunzip"), ".gz"),
    **dict.fromkeys(("bzip2", "bunzip2"), ".bz2"),
    **dict.fromkeys(("xz", "unxz"), ".xz"),
    "zstd": ".zst",
}


def tar(walk: Walk, call: Invocation) -> Flow:
    """`tar`: the archive that it makes, or the files that it says it takes out."""
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
    """Note files that came out, if nothing else stands among their names."""
    files = [name for name in names if name and not name.endswith("/")]
    if not files or not all(_NAME.fullmatch(name) for name in files):
        walk.place.unresolved += 1
        return
    walk.write(call, [f"{folder}/{name}" for name in files] if folder else files, "whole")


def pack(walk: Walk, call: Invocation) -> Flow:
    """`zip` writes its archive."""
    words = split_options(call.arguments, "xit").operands
    if words and words[0] != "-":
        walk.write(call, [words[0] if "." in posixpath.basename(words[0]) else f"{words[0]}.zip"], "whole")
    return OTHER


def unpack(walk: Walk, call: Invocation) -> Flow:
    """`unzip` names what it takes out, with the folder it puts it in."""
    options = split_options(call.arguments, "dx")
    if options.has("-l", "-p", "-t", "-v", "-Z"):
        return OTHER
    names = _UNZIPPED.findall(walk.output)
    walk.place.unresolved += not names
    walk.write(call, names, "whole")
    return OTHER


def squeeze(walk: Walk, call: Invocation) -> Flow:
    """`gzip` and its like put a packed file in the place of each."""
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
    """`split` and `csplit` make files as many as the text asks for, which nobody can tell."""
    walk.place.unresolved += 1
    return OTHER


ARCHIVERS = {
    "tar": tar,
    "zip": pack,
    "unzip": unpack,
    **dict.fromkeys(_PACKED, squeeze),
    "split": split,
    "csplit": split,
}
