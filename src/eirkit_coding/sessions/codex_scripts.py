"""Codex's code mode: the calls inside a script that the model gave to the tool `exec`.

The rollout has an event for every command and patch that a script ran, with its whole output; what the model saw is the
output of the script. Calls that have no event are found in the script itself, which is parsed and never executed.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eirkit.vestige.formats.messages import text_of
from eirkit.vestige.formats.run_builder import items_of, mapping_of, string_of

_TOOL = re.compile(r"\btools\s{0,20}+\.\s{0,20}+([A-Za-z_$][\w$]{0,100}+)\s{0,20}+\(\s{0,100}+")
_STRING = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|`(?:[^`\\]|\\.)*+(?:`|\Z)|String\.raw`[^`]*+(?:`|\Z)", re.DOTALL
)
_NO_CODE = re.compile(_STRING.pattern + r"|//[^\n]*+", re.DOTALL)
_BOUND = re.compile(r"\b(?:const|let|var)\s{1,20}+([A-Za-z_$][\w$]{0,100}+)\s{0,20}+=\s{0,100}+")
_KEY = re.compile(
    r"\s{0,100}+(?:([A-Za-z_$][\w$]{0,100}+)|\"([^\"\\\n]{1,100})\"|'([^'\\\n]{1,100})')\s{0,20}+(?=[:,}])"
)
_NAME = re.compile(r"[A-Za-z_$][\w$]{0,100}")
_COMMA = re.compile(r"\s{0,100}+,")
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?|true|false|null")
_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r?\n|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_HEADER = re.compile(r"\AScript (?:completed|failed|running)[^\n]*\n")
_MOST_CALLS = 200
_COMMAND, _PATCH = "exec_command", "apply_patch"


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """One call in a script, with what the model saw of its result."""

    tool: str
    arguments: Mapping[str, Any]
    output: str = ""
    full_output: str = ""
    exit_code: int | None = None
    folder: str | None = None
    failed: bool = False


@dataclass(slots=True)
class CodexScript:
    """A script that runs, and the events of the calls in it."""

    call_id: str
    source: str
    made: list[ScriptCall]
    turn: int = 1  # that started it

    def awaits(self, item: Mapping[str, Any]) -> bool:
        """Return whether the script states a command or patch that an event tells of, and had no event of it yet."""
        is_command = item.get("type") == "CommandExecution"
        tool = _COMMAND if is_command else _PATCH
        fits = _same_command(item.get("command")) if is_command else _same_files(mapping_of(item.get("changes")))
        stated = sum(fits(call.arguments) for call in calls_in(self.source) if call.tool == tool)
        return stated > sum(fits(call.arguments) for call in self.made if call.tool == tool)

    def take(self, item: Mapping[str, Any]) -> None:
        """Add the event of a completed command or patch."""
        if item.get("type") == "CommandExecution":
            self.made.append(_command(item))
        elif item.get("type") == "FileChange":
            self.made.append(_change(item))

    def end(self, output: object) -> list[ScriptCall]:
        """Return the calls of the script once its output is known; none if nothing in it was understood."""
        shown = [text_of([block]) for block in items_of(output)] if isinstance(output, list) else [text_of(output)]
        text = "\n".join(block for block in shown if not _HEADER.match(block))
        stated = list(calls_in(self.source))
        with_events = {_COMMAND, _PATCH} if self.made else set()
        others = [call for call in stated if call.tool not in with_events]
        failed = bool(shown) and shown[0].startswith("Script failed")
        calls = _as_seen([*self.made, *others], text)
        return [replace(call, failed=call.failed or (failed and not self.made)) for call in calls]


def _same_command(command: object) -> Callable[[Mapping[str, Any]], bool]:
    """Return the test for a call of a command, which a script has as the text that a shell runs, or as one line."""
    words = [string_of(word) for word in command] if isinstance(command, list) else [string_of(command)]
    forms = (words, words[-1:], [shlex.join(words)])

    def fits(arguments: Mapping[str, Any]) -> bool:
        cmd = arguments.get("cmd")
        return (cmd if isinstance(cmd, list) else [cmd]) in forms

    return fits


def _same_files(changes: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], bool]:
    """Return the test for a call of a patch that names the files of a change."""
    names = [path.rpartition("/")[2] for path in changes]
    return lambda arguments: bool(names) and all(name in string_of(arguments.get("input")) for name in names)


def _command(item: Mapping[str, Any]) -> ScriptCall:
    words = item.get("command")
    code = item.get("exit_code")
    return ScriptCall(
        _COMMAND,
        {"cmd": words if isinstance(words, list) else string_of(words)},
        full_output=string_of(item.get("aggregated_output")),
        exit_code=code if isinstance(code, int) and not isinstance(code, bool) else None,
        folder=string_of(item.get("cwd")).removeprefix("file://") or None,
        failed=item.get("status") == "declined",
    )


def _change(item: Mapping[str, Any]) -> ScriptCall:
    failed = string_of(item.get("status")) in ("failed", "declined")
    patch = change_as_patch(mapping_of(item.get("changes")))
    return ScriptCall(_PATCH, {"input": patch}, full_output=string_of(item.get("stdout")), failed=failed)


def change_as_patch(changes: Mapping[str, Any]) -> str:
    """Return the changes of files, by path, as a patch of `apply_patch`."""
    parts = []
    for path, change in changes.items():
        known = mapping_of(change)
        kind, content = string_of(known.get("type")), string_of(known.get("content"))
        if kind == "add":
            added = "".join(f"+{line}\n" for line in content.splitlines())
            parts.append(f"*** Add File: {path}\n{added}")
        elif kind == "delete":
            parts.append(f"*** Delete File: {path}\n")
        else:
            target = string_of(known.get("move_path"))
            moved = f"*** Move to: {target}\n" if target else ""
            diff = re.sub(r"(?m)^@@[^\n]*", "@@", string_of(known.get("unified_diff")))
            parts.append(f"*** Update File: {path}\n{moved}{diff}")
    return f"*** Begin Patch\n{''.join(parts)}*** End Patch\n"


def _as_seen(calls: Sequence[ScriptCall], text: str) -> list[ScriptCall]:
    """Give each call the part of the script's output that is its own; what is no whole output goes to the one left."""
    if len(calls) == 1:
        return [replace(calls[0], output=text)]
    seen, left = [], []
    for call in calls:
        body = call.full_output.strip("\n")
        if body and body in text:
            text = text.replace(body, "", 1)
            seen.append(replace(call, output=call.full_output))
        else:
            left.append(len(seen))
            seen.append(call)
    readers = [place for place in left if seen[place].tool == _COMMAND]
    if len(readers) == 1 and text.strip():
        seen[readers[0]] = replace(seen[readers[0]], output=text.strip("\n"))
    return seen


def calls_in(source: str) -> Iterator[ScriptCall]:
    """Yield the calls that a script states, with the arguments that are written in it as constants."""
    strings = [(found.start(), found.end()) for found in _NO_CODE.finditer(source)]
    constants: dict[str, Any] = {}
    for bound in _BOUND.finditer(source):
        value, _ = _value(source, bound.end(), constants)
        if value is not None:
            constants[bound[1]] = value
    made = 0
    for found in _TOOL.finditer(source):
        if made >= _MOST_CALLS or any(start <= found.start() < end for start, end in strings):
            continue  # a call in a text or a comment is no call
        made += 1
        value, _ = _value(source, found.end(), constants)
        tool = found[1]
        if isinstance(value, dict):
            yield ScriptCall(tool, value, folder=string_of(value.get("workdir")) or None)
        elif isinstance(value, str):
            yield ScriptCall(tool, {"cmd" if tool == _COMMAND else "input": value})
        else:
            yield ScriptCall(tool, {})


def _value(source: str, place: int, constants: Mapping[str, Any]) -> tuple[Any, int]:
    """Return the constant at a place and where it ends; None for anything that only a run of the script could tell."""
    if source.startswith("{", place):
        return _object(source, place + 1, constants)
    if found := _STRING.match(source, place):
        return _text(found[0]), found.end()
    if found := _PLAIN.match(source, place):
        return json.loads(found[0]), found.end()
    if found := _NAME.match(source, place):
        return constants.get(found[0]), found.end()
    return None, place


def _object(source: str, place: int, constants: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    made: dict[str, Any] = {}
    while key := _KEY.match(source, place):
        name = key[1] or key[2] or key[3]
        place = key.end()
        if source.startswith(":", place):
            start = place + 1 + len(source[place + 1 :]) - len(source[place + 1 :].lstrip())
            nested = source.startswith("{", start)
            value, place = (None, start) if nested else _value(source, start, constants)
        else:
            value = constants.get(name)  # {cmd} is short for {cmd: cmd}
        if value is not None:
            made[name] = value
        rest = _COMMA.match(source, place)
        if rest is None:
            break
        place = rest.end()
    return made, place


def _text(literal: str) -> str | None:
    if literal.startswith("String.raw"):
        return None if "${" in literal else literal[len("String.raw`") : -1]
    if literal[0] == "`" and "${" in literal:
        return None
    return _ESCAPE.sub(_unescaped, literal[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    mark = found[1]
    if mark[0] in "ux" and len(mark) > 1:
        code = int(mark.strip("ux{}"), 16)
        return chr(code) if code < 0x110000 else "\ufffd"
    return "" if mark in ("\n", "\r\n") else _ESCAPED.get(mark, mark)
