"""Parses one action line of SWE-agent into a tool call, in every variant of its tools.

`str_replace_editor …` and the tools of the windowed viewer (`open`, `goto`, `scroll_up`, `edit`, `create`, …) become
calls of that name with named arguments; the file that was open in the viewer is added as `path` where a tool works on
it. Anything else is a shell command. Lines are split by shell rules, without running a shell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eirkit.vestige.trajectory import Call

_WORD = re.compile(r"""[ \t\r\n]*((?:[^\s'"\\]++|'[^']*+'|"(?:[^"\\]++|\\.)*+"|\\.)++)""", re.DOTALL)
_PART = re.compile(r"""[^\s'"\\]++|'[^']*+'|"(?:[^"\\]++|\\.)*+"|\\.""", re.DOTALL)
_ESCAPE = re.compile(r'\\(["\\$`\n])')
_STATE = re.compile(r"(?m)^\(Open file: ([^\n]{0,1000})\)\n\(Current directory: ([^\n]{0,1000})\)\n(?:bash-)?\$\s*\Z")
_STATE_CHARACTERS = 2200
_LINES_EDIT = re.compile(r"edit[ \t]+(\d{1,9}):(\d{1,9})[ \t\r]*\n?")
_OPTION_WORDS = {"view_range": 2}  # number of words after an option; one unless listed here
_FAILURES = (
    "Your proposed edit has introduced new syntax error",
    "Your edit was not applied",
    "No replacement was performed",
    "ERROR:",
    "Error:",
    "Usage:",
    "No file open",
    "Text not found",
    "Invalid `",
    "The path ",
    "The parent directory ",
    "File already exists at",
    "No edit history found",
)


@dataclass(frozen=True, slots=True)
class SweAgentState:
    """The shell's directory and the file that is open in the viewer."""

    folder: str | None = None
    open_file: str | None = None


def call_of(action: str, observation: str, before: SweAgentState, after: SweAgentState) -> Call | None:
    """Return the call of an action line; None for an empty line."""
    action = action.strip()
    if not action:
        return None
    tool, arguments = parse_action(action, after.open_file or before.open_file)
    output = observation.replace("\r\n", "\n")
    failed = tool != "bash" and output.lstrip().startswith(_FAILURES)
    return Call(tool, arguments, output, failed=failed, working_folder=before.folder)


def parse_action(action: str, open_file: str | None) -> tuple[str, Mapping[str, Any]]:
    """Return the tool and the arguments of an action line."""
    name = action.split(None, 1)[0]
    by_lines = _LINES_EDIT.match(action)
    if by_lines:
        text = action[by_lines.end() :].removesuffix("end_of_edit").removesuffix("\n")
        span = {"start_line": int(by_lines[1]), "end_line": int(by_lines[2])}
        return "edit", _with_file({**span, "new_str": text}, open_file)
    known = _TOOLS.get(name)
    words = split_words(action) if known is not None else None
    if known is None or words is None:
        return "bash", {"command": action}
    return name, known(words[1:], open_file)


def split_words(line: str) -> list[str] | None:
    """Return the words of a line as a shell splits them, without expansion; None for an unclosed quote."""
    words, position, end = [], 0, len(line.rstrip())
    while position < end:
        found = _WORD.match(line, position)
        if found is None:
            return None
        words.append("".join(map(_unquoted, _PART.findall(found[1]))))
        position = found.end()
    return words


def _unquoted(part: str) -> str:
    if part[0] == "'":
        return part[1:-1]
    if part[0] == '"':
        return _ESCAPE.sub(lambda found: found[1].removeprefix("\n"), part[1:-1])
    return part[1:].removeprefix("\n") if part[0] == "\\" else part


def _editor(words: Sequence[str], open_file: str | None) -> Mapping[str, Any]:
    arguments: dict[str, Any] = {}
    positions, index = iter(("command", "path")), 0
    while index < len(words):
        word = words[index]
        index += 1
        if word.startswith("--"):
            name, joined, value = word[2:].partition("=")
            count = _OPTION_WORDS.get(name, 1) - bool(joined)
            values = ([value] if joined else []) + list(words[index : index + count])
            index += count
            arguments[name] = _option(name, values)
        else:
            name = next(positions, "")
            if name:
                arguments[name] = word
    return arguments


def _option(name: str, values: Sequence[str]) -> Any:
    if name == "view_range":
        numbers = [int(value) for part in values for value in re.findall(r"-?\d{1,9}", part)]
        return numbers or " ".join(values)
    text = values[0] if values else ""
    return int(text) if name == "insert_line" and re.fullmatch(r"\d{1,9}", text) else text


def _edit(words: Sequence[str], open_file: str | None) -> Mapping[str, Any]:
    names = ("old_str", "new_str") if len(words) > 1 else ("new_str",)
    return _with_file(dict(zip(names, words, strict=False)), open_file)


def _naming(*names: str, on_open_file: bool = False) -> Callable[[Sequence[str], str | None], Mapping[str, Any]]:
    """Return what gives the words of an action these names, with the open file as the path of what works on it."""

    def arguments_of(words: Sequence[str], open_file: str | None) -> Mapping[str, Any]:
        arguments = _numbered(dict(zip(names, words, strict=False)))
        return _with_file(arguments, open_file) if on_open_file else arguments

    return arguments_of


def _numbered(arguments: dict[str, Any]) -> dict[str, Any]:
    for name in ("line_number", "insert_line"):
        if re.fullmatch(r"\d{1,9}", str(arguments.get(name, ""))):
            arguments[name] = int(arguments[name])
    return arguments


def _with_file(arguments: dict[str, Any], open_file: str | None) -> dict[str, Any]:
    return {"path": open_file, **arguments} if open_file and "path" not in arguments else arguments


_TOOLS = {
    **dict.fromkeys(("str_replace_editor", "str_replace_based_edit_tool"), _editor),
    "open": _naming("path", "line_number"),
    **dict.fromkeys(("goto", "scroll_up", "scroll_down"), _naming("line_number", on_open_file=True)),
    **dict.fromkeys(("create", "filemap"), _naming("path")),
    "edit": _edit,
    "insert": _naming("new_str", "insert_line", on_open_file=True),
    "search_file": _naming("pattern", "path", on_open_file=True),
    **dict.fromkeys(("search_dir", "find_file"), _naming("pattern", "folder")),
    "submit": _naming(),
}


def split_state(text: str) -> tuple[str, SweAgentState]:
    """Return an observation without the trailing lines about the shell's state, and that state."""
    found = _STATE.search(text, max(0, len(text) - _STATE_CHARACTERS))
    if found is None:
        return text, SweAgentState()
    return text[: found.start()].rstrip(), path_or_none(found[2], found[1])


def path_or_none(folder: object, open_file: object) -> SweAgentState:
    """Return a path from a log; `n/a` is None."""
    known = [value if isinstance(value, str) and value not in ("", "n/a") else None for value in (folder, open_file)]
    return SweAgentState(*known)


def fenced_action(text: str) -> tuple[str, str]:
    """Return the prose of a reply and the action in its last fenced block, empty if there is none."""
    end = text.rfind("```")
    start = text.rfind("```", 0, max(0, end))
    line_end = text.find("\n", start) if start >= 0 else -1
    if not 0 <= start < line_end < end:
        return text, ""
    return text[:start].rstrip() + text[end + 3 :], text[line_end + 1 : end]
