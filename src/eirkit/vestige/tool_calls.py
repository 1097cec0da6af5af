"""What a call of an agent's tool was given and whether it worked: arguments by their many names, refusals in words.

A tool that says itself that it failed has written nothing; a file that is shown may begin with any words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from eirkit.vestige.shell.place import Place
from eirkit.vestige.trajectory import Call, Touches

Tool = Callable[[Call, Place], Touches]

NOTHING_TOUCHED = Touches()
PATHS = (
    "path",
    "file_path",
    "filepath",
    "absolute_path",
    "file",
    "filename",
    "target_file",
    "relative_path",
    "notebook_path",
)
_REFUSALS = (
    "ERROR", "Error", "error:", "<tool_use_error>", "Traceback (most recent call last)", "No replacement was performed",
    "String to replace not found", "File has not been read yet", "File has been modified since read", "Found 0 matches",
    "Failed to edit", "File does not exist", "Invalid `", "The path ", "Parameter `", "Your edit was not applied",
    "Your proposed edit has introduced", "Text not found", "No file open", "Usage:", "Could not find",
    "No matches found",
    "apply_patch verification failed", "Invalid patch", "Failed to find expected lines", "File not found",
    "The user doesn't want to proceed", "Permission to use", "No changes to make", "Cannot ", "Ran into ",
    "File already exists at", "No edit history found", "The parent directory ", "Multiple occurrences of",
)  # fmt: skip
_REFUSED_LATER = (
    "No replacement was performed",
    "apply_patch verification failed",
    "RuntimeError: No active exception",
)
_DONE = re.compile(r"The file [^\n]{1,1000} has been (?:edited|updated|created|changed)")
_NO_CONTENT = (
    "Here's the files and directories",
    "Here are the files and directories",
    "File unchanged since last read",
    "<tool_use_error>",
)
_UNREADABLE = (
    "ERROR:", "Error:", "error:", "Error reading", "File does not exist", "File not found", "Invalid `", "The path ",
    "Parameter `", "Could not ", "Cannot ", "Failed to ", "Ran into ", "The user doesn't want to proceed",
    "Permission to use", "Access denied", "Traceback (most recent call last)", "MCP error", "EISDIR",
)  # fmt: skip
_REFUSAL_LINES = 4


def failed(call: Call) -> bool:
    """True if a tool reports in its own words, or by the log's flag, that it did nothing."""
    if call.failed or call.exit_code:
        return True
    start = call.output[:400].lstrip()
    if start.startswith(_REFUSALS):
        return True
    # The lines that a successful edit shows may hold any words.
    return any(words in call.output[:4000] for words in _REFUSED_LATER) and not _DONE.match(start)


def shows_nothing(call: Call) -> bool:
    """True if no content of a file came back: a refusal, the names in a folder, or a word that nothing has changed.

    A file may begin with any words, so what a failed view says must be all that it says.
    """
    start = call.output[:400].lstrip()
    if call.failed or start.startswith(_NO_CONTENT):
        return True
    return start.startswith(_UNREADABLE) and call.output.strip().count("\n") < _REFUSAL_LINES


def first_of(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first text among arguments of some names that is not empty."""
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def text_of(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first text among arguments of some names; it may be empty."""
    return next((arguments[name] for name in names if isinstance(arguments.get(name), str)), None)


def path_of(call: Call, place: Place) -> str | None:
    """Return the file that a call names, or the one that is open."""
    named = first_of(call.arguments, PATHS)
    return place.resolve(named) if named is not None else place.open_file
