"""Lines of PowerShell and cmd, in the form that the grammar of shells parses.

Only what decides about files is put into another form: slashes in paths, here-strings, variables, loops over names that
the line spells out, and blocks. A line that shows no sign of Windows stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

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
