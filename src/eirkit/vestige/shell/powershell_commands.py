"""PowerShell and cmd: their lines in the form that the grammar of shells parses, and their commands on files.

Of a line only what decides about files is put into another form: slashes in paths, here-strings, variables, loops over
names that the line spells out, and blocks. A line that shows no sign of Windows stays as it is. Names of commands and
options ignore case; a path may have backslashes and a drive letter.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from eirkit.vestige.shell.copy_commands import copy, move
from eirkit.vestige.shell.state import NOTHING, OTHER, Flow, Numbering, chosen, last_lines, window
from eirkit.vestige.shell.view_commands import contents, look
from eirkit.vestige.shell.walk import Invocation, Walk
from eirkit.vestige.shell.words import UNKNOWN
from eirkit.vestige.shell.write_commands import remove

_MISSING = re.compile(r"Cannot find path '([^'\n]{1,400})'")
_NOT_THERE = "The system cannot find the "
_BUILTIN = re.compile(r"(?m)^\S{1,100} is (?:/|a (?:shell|function|alias)|aliased|hashed|an alias)")
_LISTERS = ("get-childitem", "gci", "get-item", "dir")
_NEAR = 4  # commands of a pipeline among which files may have been listed
_PASSING = (
    *("convertfrom-json", "convertto-json", "convertfrom-csv", "where-object", "where", "foreach-object", "foreach"),
    *("sort-object", "format-table", "ft", "format-list", "fl", "out-host"),
)
_RENAMES = ("rename-item", "rni", "ren", "rename")
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
_CMDLET = re.compile(
    r"(?i)(?:^|[\s;|&{(])(?:(?:get|set|add|clear)-content|select-string|out-(?:file|null|string)|tee-object"
    r"|(?:new|remove|copy|move|rename|get)-item|(?:select|where|foreach|sort|measure)-object|get-childitem|test-path"
    r"|(?:set|push|pop)-location|invoke-(?:webrequest|restmethod)|convert(?:from|to)-json|write-(?:output|host))"
    r"(?=[\s;|)}]|$)"
)
_NOUN = re.compile(  # of each of them; what begins with a fixed character is fast to look for
    r"(?i)-(?:content|string|file|null|object|item|childitem|path|location|webrequest|restmethod|json|output|host)"
)
_FILE_CLASS = re.compile(r"(?i)\[(?:System\.)?IO\.File\]::(\w{1,20})\(([^\n;|]{0,2000})")
# Not `e:\n`, which ends a line of quoted Python.
_PLACE = re.compile(r"(?:^|[\s=,;(])[\"']?(?:[A-Z]:\\(?!\\)|[a-z]:\\(?![nt])\w\w|\.{1,2}\\(?![nt]\b)\w)")
_DOS = re.compile(
    r"(?i)(?:^|[;|&(]) ?(?:type|del|erase|copy|move|ren|findstr|more|gc|sls|ni|ri|cmd(?:\.exe)? /c)"
    r" [^\n;|&]{0,400}?[\w.*]\\[\w.*]"
)
_OPENING = re.compile(r"@(['\"])\r?\n")
_QUOTED = re.compile(r"'[^']{0,20000}'|\"(?:[^\"`]|`(?s:.)){0,20000}\"")
_SLASH = re.compile(r"(?<=[\w.:~*)}%])\\(?=[\w.*$~-]|[ ,;|)]|$)")
_PATH = re.compile(
    r"(?:[A-Za-z]:|\.{1,2}|~|\$[\w:]{1,40}|%\w{1,40}%)\\[^\n|<>\"]{0,400}"
    r"|[\w .@+-]{1,100}(?:\\[\w .@+*-]{1,100}){1,20}\.\w{1,8}"
    r"|[\w@+-]{2,100}(?:\\[\w@+-]{2,100}){1,20}\\?\*?"
)
_MASK = "\ue010{}\ue011"
_MASKED = re.compile("\ue010(\\d{1,9})\ue011")
_Q = "\ue010\\d{1,9}\ue011"
_BLOCK = r"\{([^{}]{0,4000})\}"
_HASH = re.compile(r"@\{[^{}]{0,4000}\}")
_FILTER = re.compile(rf"(?i)\|[ \n]?(where-object|where|\?|sort-object|sort|foreach-object|foreach|%)[ \n]?{_BLOCK}")
_FOR = re.compile(rf"(?i)foreach ?\( ?\$(\w{{1,40}}) in @?\(?([^(){{}}]{{1,2000}})\)+[ \n]?{_BLOCK}")
_EACH = re.compile(
    rf"(?i)(?<!,)(?<!, )({_Q}(?:, ?{_Q}){{0,64}})[ \n]?\|[ \n]?(?:%|foreach|foreach-object)[ \n]?{_BLOCK}"
)
_KEYWORD = re.compile(r"(?i)(?<![\w$.-])(?:if|elseif|else|try|catch|finally|while|do|switch|param)(?= ?[({])")
_SET = re.compile(rf"(?:^|(?<=[;\n]))(?:\[\w{{1,20}}\])?\$(\w{{1,40}}) ?= ?(?:({_Q})(?=[;\n]|$)|([^;\n]{{0,4000}}))")
_SAID = re.compile(rf"(?:^|(?<=[;\n]))(\$\w{{1,40}}|{_Q})(?= ?(?:[;|\n]|$))")
_CALLED = re.compile(r"(?:^|(?<=[;\n|{(]))&(?= )")
_BLANKS = re.compile(r"(?<=[;\n|{(])[ \t]+|[ \t]+(?=[ \t])")


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
    words = [word for word in options.files("-path", "-literalpath") if not _is_missing(walk, word)]
    if call.name.lower() == "type" and (_BUILTIN.search(walk.output) or not words):
        return OTHER
    return _some(contents(walk, words, call.stdin), options) if words or not options.operands else OTHER


def _is_missing(walk: Walk, word: str) -> bool:
    """Return whether an error of PowerShell or cmd says that a file does not exist."""
    if _NOT_THERE in walk.output and walk.names == [walk.names[-1]]:
        return True
    name = word.replace("\\", "/").removeprefix("./")
    return any(found.replace("\\", "/").endswith(name) for found in _MISSING.findall(walk.output))


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
        listed = any(name.lower() in _LISTERS for name in walk.names[-_NEAR:])
        return Flow("search", folder=walk.folder, on_windows=True) if listed else chosen(call.stdin)
    return _matches(walk, words)


def _matches(walk: Walk, words: list[str], numbering: Numbering = "") -> Flow:
    """Return the lines found in files; of several files, each with its name."""
    files = walk.paths(words)
    if len(files) == len(words) == 1 and "*" not in words[0]:
        # One file: its name stands before every line of `Select-String` all the same, without its folder.
        return Flow("files", files=files, chosen=True, numbering=numbering)
    return Flow("search", folder=walk.folder, on_windows=True)


def findstr(walk: Walk, call: Invocation) -> Flow:
    """`findstr` prints matching lines, after the names of their files where there are several."""
    flags = {word[1:2].lower() for word in call.arguments if word[:1] == "/"}
    given = any(word[:3].lower() in ("/c:", "/g:") for word in call.arguments)
    words = [word for word in call.arguments if word[:1] != "/"][0 if given else 1 :]
    if "m" in flags:
        return OTHER
    if not words:
        return chosen(call.stdin)
    if "s" in flags:
        return Flow("search", folder=walk.folder, on_windows=True)
    return _matches(walk, words, "colon" if "n" in flags else "")


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
        words = [word for word in words if not re.fullmatch(r"/[A-Za-z-]{1,2}", word)]  # options of cmd
        deep = ["-r"] if "-recurse" in options.flags else []
        if call.name.lower() in _RENAMES and len(words) == 2 and "/" not in words[1]:
            words[1] = posixpath.join(posixpath.dirname(words[0]), words[1])
        return handler(walk, replace(call, arguments=[*deep, *words]))

    return run


def download(walk: Walk, call: Invocation) -> Flow:
    """`Invoke-WebRequest -OutFile` writes a file, and `Compress-Archive` its archive."""
    target = _split(call.arguments).first("-outfile", "-destinationpath", "-destination")
    walk.write(call, [target] if target else [], "whole")
    return OTHER


def join_path(walk: Walk, call: Invocation) -> Flow:
    """`Join-Path` prints one path."""
    options = _split(call.arguments)
    words = [*filter(None, [options.first("-path"), options.first("-childpath")]), *options.operands]
    return Flow("text", text="/".join(words)) if words and UNKNOWN not in "".join(words) else OTHER


def say(walk: Walk, call: Invocation) -> Flow:
    """`Write-Output` and `Write-Host` print their words, or their input."""
    if not call.arguments:
        return call.stdin
    text = " ".join(_split(call.arguments).operands)
    return OTHER if UNKNOWN in text else Flow("text", text=f"{text}\n")


POWERSHELL: dict[str, Callable[[Walk, Invocation], Flow]] = {
    **dict.fromkeys(("get-content", "gc", "type"), get_content),
    **dict.fromkeys(("set-content", "out-file", "add-content", "ac", "tee-object"), set_content),
    **dict.fromkeys(("select-string", "sls"), select_string),
    **dict.fromkeys(("write-output", "write-host"), say),
    **dict.fromkeys(("select-object", "select"), select_object),
    "out-string": lambda walk, call: call.stdin,
    "clear-content": clear_content,
    "findstr": findstr,
    "join-path": join_path,
    **dict.fromkeys(("format-hex", "import-csv", "import-clixml"), get_content),
    **dict.fromkeys(("new-item", "ni"), new_item),
    **dict.fromkeys(("remove-item", "ri", "del", "erase"), _as_unix(remove)),
    **dict.fromkeys(("copy-item", "cpi", "copy", "xcopy"), _as_unix(copy)),
    **dict.fromkeys(("move-item", "mi", "move", *_RENAMES), _as_unix(move)),
    **dict.fromkeys(
        ("invoke-webrequest", "iwr", "invoke-restmethod", "irm", "start-bitstransfer", "compress-archive"), download
    ),
    **dict.fromkeys(_PASSING, look),
    **dict.fromkeys((*_LISTERS, "test-path", "measure-object"), lambda walk, call: OTHER),
    "out-null": lambda walk, call: NOTHING,
}


@lru_cache(maxsize=16)  # asked twice about each command
def is_windows(command: str) -> bool:
    """Return whether a line can only be one of PowerShell or cmd."""
    if "<<" in command:  # neither has here-documents, whose text may be of any kind
        return False
    # Every command of every log comes here, so each sign is looked for only where a part of it occurs.
    if "\\" in command:
        if (":\\" in command or ".\\" in command) and _PLACE.search(command):
            return True
        if _DOS.search(command):
            return True
    if _NOUN.search(command) and _CMDLET.search(command):
        return True
    return "[" in command and _FILE_CLASS.search(command) is not None


def as_shell(command: str, *, on_windows: bool = False) -> str:
    """Return a line of PowerShell or cmd as a line of a shell; one that shows no sign of Windows as it is.

    Args:
        command: the line, or several.
        on_windows: other lines of the run show that they run on Windows.
    """
    if not (is_windows(command) or (on_windows and "\\" in command and "<<" not in command)):
        return command
    kept: list[str] = []

    def keep(word: str) -> str:
        kept.append(word)
        return _MASK.format(len(kept) - 1)

    def quoted(found: re.Match[str]) -> str:
        return keep(found[0].replace("\\", "/") if _PATH.fullmatch(found[0][1:-1]) else found[0])

    text = _without_here_strings(command.replace("\r\n", "\n"), keep)
    text = _SLASH.sub("/", _QUOTED.sub(quoted, text))
    if _CMDLET.search(text) or _FILE_CLASS.search(text):
        text = _structured(text)
    return _MASKED.sub(lambda found: kept[int(found[1])] if int(found[1]) < len(kept) else "", text)


def _structured(text: str) -> str:
    """Return a line of PowerShell with its blocks, variables and loops in the words of a shell."""
    text = _BLANKS.sub("", text.replace("`\n", " ").replace("\t", " ").strip()).replace("$null", "/dev/null")
    text = _HASH.sub("_", text).replace("$_", "$it_")
    text = _FILE_CLASS.sub(_file_class, text)
    text = _FOR.sub(lambda found: f"for {found[1]} in {found[2].replace(',', ' ')}; do {found[3]}; done", text)
    text = _EACH.sub(lambda found: f"for it_ in {found[1].replace(',', ' ')}; do {found[2]}; done", text)
    text = _FILTER.sub(lambda found: f"| {found[1] if found[1] not in '%?' else 'where-object'}", text)
    text = _KEYWORD.sub("", text).replace("{", ";").replace("}", ";")
    text = _BLANKS.sub("", _CALLED.sub("", text).replace("; ;", ";").replace(";;", ";").lstrip("; "))
    text = _SAID.sub(lambda found: f'echo "{found[1]}"' if found[1][0] == "$" else f"echo {found[1]}", text)
    return _SET.sub(_assignment, text)


def _assignment(found: re.Match[str]) -> str:
    name, literal, value = found[1], found[2], found[3] or ""
    if literal:
        return f"{name}={literal}"
    is_command = value[:1].isalpha() or value.startswith("(")
    return f"{name}=$({value if is_command else 'true'})"


def _file_class(found: re.Match[str]) -> str:
    """Return what `[IO.File]::ReadAllText(name)` and its like do as a command."""
    name = found[2].partition(",")[0].partition(")")[0].strip()
    verb = "Get" if found[1].startswith("Read") else "Add" if found[1].startswith("Append") else "Set"
    return f"{verb}-Content {name}" if found[1].startswith(("Read", "Append", "Write")) else found[0]


def _without_here_strings(command: str, keep: Callable[[str], str]) -> str:
    """Return a line in which what `keep` returns stands for each `@'…'@`, as a quoted word."""
    done, at = "", 0
    while found := _OPENING.search(command, at):
        end = command.find(f"\n{found[1]}@", found.end() - 1)
        if end < 0:
            break
        text = command[found.end() : end].replace("'", """'"'"'""")
        done, at = done + command[at : found.start()] + keep(f"'{text}'"), end + 3
    return done + command[at:]
