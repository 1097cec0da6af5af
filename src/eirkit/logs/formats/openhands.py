"""Parses what all OpenHands logs share: the output of its tools, and the folder of the repository.

The lines that OpenHands appends to a command's output (exit code, working directory, interpreter, and in old versions
the command itself and a prompt) are removed and kept as facts of the call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from eirkit.logs.formats.messages import shell_name
from eirkit.logs.trajectory import Call

_EXIT_CODE = re.compile(r"\[(?:The command completed|Command finished) with exit code (-?\d{1,9})\.?\]")
_FOLDER = re.compile(
    r"\[Current working directory: ([^\n\]]{1,1000})\]|\n[^\n@\s]{1,100}@[^\n:\s]{1,100}:([^\n]{1,1000}) [#$] *\n"
)
_TRAILER = re.compile(
    r"\[(?:The command completed|Command finished) with exit code -?\d{1,9}\.?\]\Z"
    r"|\[(?:Current working directory|Python [Ii]nterpreter): [^\n\]]{0,1000}\]\Z"
    r"|\n[^\n@\s]{1,100}@[^\n:\s]{1,100}:[^\n]{1,1000} [#$]\Z"
)
_CELL_TRAILER = re.compile(r"(?:\A|\n)\[Jupyter (?:current working directory|Python interpreter): [^\n\]]{0,1000}\]\Z")
_TRAILER_CHARACTERS = 3000
IPYTHON = frozenset({"run_ipython", "execute_ipython_cell"})  # the action, and the tool that requests it
IPYTHON_CALL = "execute_ipython_cell"
_UPLOADED = re.compile(r"<uploaded_files>\s{0,10}(/[^\s<]{1,1000})")
_UPLOADED_WITHIN = 100_000


def repository_root(prompt: str) -> str | None:
    """Return the folder that a prompt names as the uploaded repository."""
    found = _UPLOADED.search(prompt, 0, _UPLOADED_WITHIN)
    return found[1].rstrip("/") or None if found else None


class OpenHandsCalls:
    """Makes calls from requests and results; it tracks the shell's directory, so each run needs its own instance."""

    def __init__(self) -> None:
        self.folder: str | None = None  # the shell's directory after the last call that reported it

    def __call__(self, tool: str, arguments: Mapping[str, Any], output: str, answer: Mapping[str, Any]) -> Call:
        name, began = shell_name(tool, arguments), self.folder
        if tool in IPYTHON:
            return Call(IPYTHON_CALL, arguments, cell_result(output), working_folder=began)
        if name != "bash":
            failed = output.startswith(("ERROR:", "Error:", "Error validating"))
            return Call(name, arguments, output, failed=failed, working_folder=began)
        code, folder, text = command_result(output, str(arguments["command"]))
        self.folder = folder or began
        return Call(name, arguments, text, code, working_folder=began)


def cell_result(output: str) -> str:
    """Return what a notebook cell printed, without the lines about its interpreter."""
    while output.endswith("]") and (added := _CELL_TRAILER.search(output, max(0, len(output) - _TRAILER_CHARACTERS))):
        output = output[: added.start()]
    return output


def command_result(output: str, command: str) -> tuple[int | None, str | None, str]:
    """Return a command's exit code, the shell's directory after it, and its output without the appended lines."""
    tail = output[-_TRAILER_CHARACTERS:]
    code, folder = None, None
    for found in _EXIT_CODE.finditer(tail):
        code = int(found[1])
    for found in _FOLDER.finditer(tail):
        folder = found[1] or found[2]
    if code is None and folder is None:
        return None, None, output
    rest = output[: -len(tail)] if tail else output
    while added := _TRAILER.search(stripped := tail.rstrip()):
        tail = stripped[: added.start()]
    text = (rest + tail).replace("\r\n", "\n").removesuffix("\n")
    if command and text.strip() == command.strip():
        return code, folder, ""  # nothing but the command itself was printed
    return code, folder, text.removeprefix(command + "\n") if command else text
