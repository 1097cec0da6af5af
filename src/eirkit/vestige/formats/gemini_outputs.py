"""What Gemini CLI writes around the output of a command: a text comes in; what was printed, and the exit code, which
stands only there, go out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TRAILER = re.compile(
    r"(?:\nError: \(none\))?(?:\nExit Code: (?P<code>-?\d{1,9}|\(none\)))?(?P<signal>\nSignal: [^\n]{1,40})?"
    r"(?:\nBackground PIDs: [^\n]{0,1000})?\nProcess Group PGID: [^\n]{1,40}\s*\Z"
)
_TRAILER_CHARACTERS = 1400
_COMMAND, _FOLDER, _OUTPUT, _STDOUT, _STDERR = "Command: ", "\nDirectory: ", "Output: ", "Stdout: ", "\nStderr: "
_NOTHING = "(empty)"


@dataclass(frozen=True, slots=True)
class ShellResult:
    """What a command printed, and how it ended."""

    text: str
    exit_code: int | None = None


def shell_result(output: str) -> ShellResult:
    """Return a command's result; an output that was not wrapped is its own text."""
    if not output.startswith((_COMMAND, _OUTPUT)):
        return ShellResult(output)
    trailer = _TRAILER.search(output, max(0, len(output) - _TRAILER_CHARACTERS))
    body = _without_heading(output[: trailer.start()] if trailer else output)
    if trailer is None or body is None:
        return ShellResult(output)
    return ShellResult(body, _exit_code(trailer))


def _without_heading(text: str) -> str | None:
    if text.startswith(_COMMAND):
        at = text.find(_FOLDER)
        text = text[text.find("\n", at + 1) + 1 :] if at >= 0 else ""
    if text.startswith(_OUTPUT):
        return _printed(text.removeprefix(_OUTPUT))
    if not text.startswith(_STDOUT):
        return None
    out, _, complaint = text.removeprefix(_STDOUT).rpartition(_STDERR)
    parts = [part for part in (_printed(out), _printed(complaint)) if part]
    return "\n".join(part.removesuffix("\n") for part in parts) if len(parts) > 1 else "".join(parts)


def _printed(text: str) -> str:
    return "" if text == _NOTHING else text


def _exit_code(trailer: re.Match[str]) -> int | None:
    if trailer["code"] is not None:
        return None if trailer["code"] == "(none)" else int(trailer["code"])
    return 0 if trailer["signal"] is None else None  # newer versions tell a code only where it is not 0
