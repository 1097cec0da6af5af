"""PowerShell: its commands that show and write files, and its lines in the form that the grammar of shells parses.

Names of commands and options ignore case; a path may have backslashes and a drive letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from eirkit.logs.shell.copy_commands import copy, move
from eirkit.logs.shell.state import NOTHING, OTHER, Flow, chosen, last_lines, window
from eirkit.logs.shell.view_commands import contents
from eirkit.logs.shell.walk import Invocation, Walk
from eirkit.logs.shell.words import UNKNOWN
from eirkit.logs.shell.write_commands import remove

_CMDLET = re.compile(
    r"(?i)(?:^|[\s;|&{(])(?:(?:get|set|add|clear)-content|select-string|out-file|tee-object|(?:new|remove|copy|move)-item"
    r"|select-object|get-childitem|foreach-object)(?=[\s;|)}]|$)"
)
_OPENING = re.compile(r"@(['\"])\r?\n")
_FLAGS = frozenset(
    {"-raw", "-force", "-recurse", "-append", "-nonewline", "-wait", "-noclobber", "-quiet", "-list", "-simplematch"}
    | {
        "-casesensitive",
        "-allmatches",
        "-notmatch",
        "-unique",
        "-passthru",
        "-confirm",
        "-whatif",
        "-directory",
        "-file",
    }
)


def as_shell(command: str) -> str:
    """Return a PowerShell line as a line of a shell: slashes in paths, here-strings as quoted words."""
    if not _CMDLET.search(command):
        return command
    parts = _with_here_strings(command.replace("\r\n", "\n")).split("'")
    # Quoted texts stay as they are unless they are paths; a backtick ends a line that goes on.
    for place in range(0, len(parts), 2):
        parts[place] = parts[place].replace("`\n", " ").replace("\\", "/")
    for place in range(1, len(parts), 2):
        if "\\" in parts[place] and " " not in parts[place] and "\n" not in parts[place]:
            parts[place] = parts[place].replace("\\", "/")
    return "'".join(parts)


def _with_here_strings(command: str) -> str:
    """Return a line with `@'…'@` as a command that prints it."""
    done, at = "", 0
    while found := _OPENING.search(command, at):
        end = command.find(f"\n{found[1]}@", found.end() - 1)
        if end < 0:
            break
        text = command[found.end() : end].replace("'", """'"'"'""")
        done, at = f"{done}{command[at : found.start()]}Write-Output '{text}'", end + 3
    return done + command[at:]


class _Options(NamedTuple):
    operands: list[str]
    values: dict[str, str]
    flags: set[str]

    def first(self, *names: str) -> str | None:
        return next((self.values[name] for name in names if name in self.values), None)

    def files(self, *names: str) -> list[str]:
        """Return the files of the first of these options, or the operands."""
        given = self.first(*names)
        words = given.split(",") if given is not None else [part for word in self.operands for part in word.split(",")]
        return [word.strip() for word in words if word.strip()]


def _split(arguments: Sequence[str]) -> _Options:
    operands, values, flags = list[str](), dict[str, str](), set[str]()
    waiting = ""
    for word in arguments:
        if waiting:
            values[waiting], waiting = word, ""
        elif len(word) > 1 and word[0] == "-" and word[1].isalpha():
            name, has_value, value = word.lower().partition(":")
            if name in _FLAGS:
                flags.add(name)
            elif has_value:
                values[name] = value
            else:
                waiting = name
        else:
            operands.append(word)
    return _Options(operands, values, flags)


def get_content(walk: Walk, call: Invocation) -> Flow:
    """`Get-Content` shows files, `-TotalCount` the first and `-Tail` the last lines."""
    options = _split(call.arguments)
    return _some(contents(walk, options.files("-path", "-literalpath"), call.stdin), options)


def _some(flow: Flow, options: _Options) -> Flow:
    first, last = options.first("-totalcount", "-head", "-first"), options.first("-tail", "-last")
    skipped = options.first("-skip") or "0"
    if not skipped.isdigit() or len(skipped) > 8 or any(word and not word.isdigit() for word in (first, last)):
        return chosen(flow)
    if last and len(last) < 9:
        return last_lines(flow, int(last))
    start = int(skipped)
    return window(flow, start + 1, start + int(first) if first and len(first) < 9 else None)


def select_object(walk: Walk, call: Invocation) -> Flow:
    """`Select-Object` passes lines of its input on."""
    options = _split(call.arguments)
    picks = options.first("-first", "-last", "-skip") is not None
    return _some(call.stdin, options) if picks else chosen(call.stdin)


def select_string(walk: Walk, call: Invocation) -> Flow:
    """`Select-String` prints `file:line:text` for files, and matching lines of its input."""
    options = _split(call.arguments)
    if options.flags & {"-quiet", "-list"}:
        return OTHER
    words = options.operands if "-pattern" in options.values else options.operands[1:]
    named = options.first("-path", "-literalpath")
    words = named.split(",") if named is not None else [part for word in words for part in word.split(",")]
    words = [word.strip() for word in words if word.strip()]
    if not words:
        return chosen(call.stdin)
    files = walk.paths(words)
    if len(files) == 1 and "*" not in words[0]:
        # One file: its name stands before every line all the same, without its folder.
        return Flow("files", files=files, chosen=True)
    return Flow("search", folder=walk.folder)


def set_content(walk: Walk, call: Invocation) -> Flow:
    """`Set-Content` and `Out-File` write their value or input; `Add-Content` and `-Append` add it."""
    options = _split(call.arguments)
    value = options.first("-value", "-inputobject")
    words = options.files("-path", "-literalpath", "-filepath")
    if not {"-path", "-literalpath", "-filepath"} & options.values.keys():
        words, rest = words[:1], options.operands[1:]
        value = rest[0] if value is None and rest else value
    known = value if value is not None else call.stdin.text if call.stdin.kind == "text" else None
    text = None if known is None or UNKNOWN in known else known if known.endswith("\n") else f"{known}\n"
    if call.name.lower() in ("add-content", "ac") or "-append" in options.flags:
        walk.write(call, words, "edit", added=text, firm=True)
    else:
        walk.write(call, words, "whole", content=text)
    return call.stdin if call.name.lower() == "tee-object" else NOTHING


def clear_content(walk: Walk, call: Invocation) -> Flow:
    """`Clear-Content` empties files."""
    walk.write(call, _split(call.arguments).files("-path", "-literalpath"), "whole", content="")
    return NOTHING


def new_item(walk: Walk, call: Invocation) -> Flow:
    """`New-Item` makes an empty file, or one with `-Value`; folders are not files."""
    options = _split(call.arguments)
    if (options.first("-itemtype", "-type") or "file").lower() != "file":
        return OTHER
    name, words = options.first("-name"), options.files("-path")
    words = [f"{words[0] if words else '.'}/{name}"] if name else words
    walk.write(call, words, "whole", content=options.first("-value") or "")
    return OTHER


def _as_unix(handler: Callable[[Walk, Invocation], Flow]) -> Callable[[Walk, Invocation], Flow]:
    """Return a command that takes its operands in the order of its Unix counterpart."""

    def run(walk: Walk, call: Invocation) -> Flow:
        options = _split(call.arguments)
        words = [*filter(None, [options.first("-path", "-literalpath")]), *options.operands]
        words += filter(None, [options.first("-destination", "-newname")])
        deep = ["-r"] if "-recurse" in options.flags else []
        return handler(walk, call._replace(arguments=[*deep, *words]))

    return run


def say(walk: Walk, call: Invocation) -> Flow:
    """`Write-Output` and `Write-Host` print their words."""
    text = " ".join(_split(call.arguments).operands)
    return OTHER if UNKNOWN in text else Flow("text", text=f"{text}\n")


POWERSHELL: dict[str, Callable[[Walk, Invocation], Flow]] = {
    **dict.fromkeys(("get-content", "gc", "type"), get_content),
    **dict.fromkeys(("set-content", "out-file", "add-content", "ac", "tee-object"), set_content),
    **dict.fromkeys(("select-string", "sls"), select_string),
    **dict.fromkeys(("write-output", "write-host"), say),
    "select-object": select_object,
    "out-string": lambda walk, call: call.stdin,
    "clear-content": clear_content,
    "new-item": new_item,
    "remove-item": _as_unix(remove),
    "copy-item": _as_unix(copy),
    "move-item": _as_unix(move),
    "rename-item": _as_unix(move),
    **dict.fromkeys(("get-childitem", "gci", "test-path", "measure-object"), lambda walk, call: OTHER),
}
