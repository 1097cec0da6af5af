"""Agent tools that show or search files; names of their arguments, and replies that mean a refusal or no result.

A tool that reports its own failure has written nothing. File content may begin with any words, so an error counts only
where it is the whole reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from eirkit.vestige.shell.outputs import CHOSEN, reads_of
from eirkit.vestige.shell.state import Flow, ShellState
from eirkit.vestige.trajectory import Call, FileRead, Lines, Touches
from eirkit.vestige.viewer_output import clip_marks, numbered, untitled, view_of

Tool = Callable[[Call, ShellState], Touches]

NOTHING_TOUCHED = Touches()
PATHS = (
    "path",
    "file_path",
    "filepath",
    "filePath",
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
    "[Code executed successfully with no output]",  # OpenHands: its editor said nothing, so it did nothing
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
    """Return whether a tool reports, in its reply or by the log's flag, that it did nothing."""
    if call.failed or call.exit_code:
        return True
    start = call.output[:400].lstrip()
    if start.startswith(_REFUSALS):
        return True
    # A successful edit shows lines of the file, which may contain the words of any error.
    return any(words in call.output[:4000] for words in _REFUSED_LATER) and not _DONE.match(start)


def shows_nothing(call: Call) -> bool:
    """Return whether a reply shows no file content: an error, a directory listing, or a note that nothing has changed.

    A file may begin with any words, so an error message counts only if it is the whole reply.
    """
    start = call.output[:400].lstrip()
    if call.failed or start.startswith(_NO_CONTENT):
        return True
    return start.startswith(_UNREADABLE) and call.output.strip().count("\n") < _REFUSAL_LINES


def first_of(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first non-empty text among the arguments of these names."""
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def text_of(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first text among the arguments of these names; it may be empty."""
    return next((arguments[name] for name in names if isinstance(arguments.get(name), str)), None)


def path_of(call: Call, state: ShellState) -> str | None:
    """Return the file that a call names, or the file that is open in the viewer."""
    named = first_of(call.arguments, PATHS)
    return state.resolve(named) if named is not None else state.open_file


_NO_MATCH = ("No match", "Found 0 ", "No files found")
_OPENED = re.compile(r"\[File: ((?:(?!\[File: )[^\n]){1,1000}?) \(\d++ lines total\)\]")
_MANY = re.compile(r"(?m)^--- ([^\n]{1,1000}) ---\n")
_NAMED = re.compile(r"(?:\A|(?<=\n)---\n)([^\n:]{1,1000}):\n")
_MATCHED = re.compile(r"(?m)^ {0,4}(?:Line |L)(\d{1,9})[:-] ?(.*)$")
# The name of a file over its matches, as Gemini CLI and opencode print it.
_LISTED = re.compile(r"(?m)^(?:File: ([^\n]{1,1000})\n(?=L\d)|(\S[^\n]{0,1000}):\n(?=  Line \d))")
_BARE_LINE = re.compile(r"\d{1,9}[:-]")


def view(call: Call, state: ShellState) -> Touches:
    """A file shown in whole or in part; a directory shows names only."""
    path = path_of(call, state)
    if path is None or path == "." or shows_nothing(call):
        return NOTHING_TOUCHED
    seen = view_of(call)
    if not seen.text.strip():
        return NOTHING_TOUCHED
    state.note_read(path)
    asked = CHOSEN if seen.picked or "tail" in call.arguments else seen.asked
    lines = None if "tail" in call.arguments else seen.lines
    return Touches((FileRead(path, content=seen.text, lines=lines, requested=asked, clipped=seen.clipped),))


def view_many(call: Call, state: ShellState) -> Touches:
    """Several files shown one after the other, each after its name."""
    if call.failed:
        return NOTHING_TOUCHED
    names = list((_MANY if _MANY.search(call.output) else _NAMED).finditer(call.output))
    reads = []
    for found, after in zip(names, [*names[1:], None], strict=False):
        path = state.resolve(found[1].strip())
        text = call.output[found.end() : after.start() if after else len(call.output)].strip("\n")
        if path is not None and text:
            reads.append(FileRead(path, content=text, clipped=bool(clip_marks(text))))
    return Touches(tuple(reads))


def windowed(call: Call, state: ShellState) -> Touches:
    """SWE-agent's windowed viewer; its output says which file is open."""
    found = _OPENED.search(call.output[-200_000:])
    named = first_of(call.arguments, PATHS)
    path = state.resolve(found[1]) if found else state.resolve(named) if named else state.open_file
    if path is None or (failed(call) and not found):
        return NOTHING_TOUCHED
    state.open_file = path
    lines = numbered(call.output)
    if not lines:
        return NOTHING_TOUCHED
    shown = Lines(min(lines), max(lines))
    text = untitled(call.output)
    return Touches((FileRead(path, content=text, lines=lines, requested=shown, clipped=bool(clip_marks(text))),))


def search_file(call: Call, state: ShellState) -> Touches:
    """A search in one file, with the matching lines."""
    path = path_of(call, state)
    found = {int(number): line for number, line in _MATCHED.findall(call.output)}
    if path is None or failed(call) or not found:
        return NOTHING_TOUCHED
    return Touches((FileRead(path, content=call.output, lines=found, requested=CHOSEN),))


def search(call: Call, state: ShellState) -> Touches:
    """A search in a directory: the names before the lines say which files were shown."""
    if shows_nothing(call) or call.output.lstrip().startswith(_NO_MATCH):
        return NOTHING_TOUCHED
    if call.tool.lower() == "grep" and call.arguments.get("output_mode", "content") != "content":
        return NOTHING_TOUCHED
    if call.tool == "Grep" and "output_mode" not in call.arguments:
        return NOTHING_TOUCHED  # by default it prints names only
    named = first_of(call.arguments, (*PATHS, "dir_path"))
    if _LISTED.search(call.output):
        return _listed(call, state, named)
    if named is not None and _is_file(named, call.output, state):
        flow = Flow("files", files=tuple(state.resolve_all([named])), chosen=True, numbering="colon")
    else:
        flow = Flow("search", folder=state.folder, on_windows=state.folder[1:2] == ":" and "\\" in call.output)
    return Touches(tuple(reads_of([flow], call.output, state)) if flow.files or flow.kind == "search" else ())


def _is_file(named: str, output: str, state: ShellState) -> bool:
    """Return whether a search covered one file, by its name, by lines without a name, or because it was seen before."""
    if "." in named.replace("\\", "/").rpartition("/")[2].strip(".") or _BARE_LINE.match(output):
        return True
    return state.resolve(named) in state.shown


def _listed(call: Call, state: ShellState, named: str | None) -> Touches:
    """Return matches that are listed under the name of their file, relative to the directory that was searched."""
    folder = state.absolute(named) if named and not _is_file(named, "", state) else None
    reads: dict[str, dict[int, str]] = {}
    headings = list(_LISTED.finditer(call.output))
    for found, after in zip(headings, [*headings[1:], None], strict=True):
        name = found[1] or found[2]
        is_whole = named is not None and found[2] and name.startswith(f"{named.rstrip('/')}/")
        path = state.resolve(name, None if is_whole else folder)
        part = call.output[found.end() : after.start() if after else len(call.output)]
        lines = {int(number): line for number, line in _MATCHED.findall(part)}
        if path is not None and lines:
            reads.setdefault(path, {}).update(lines)
    return Touches(
        tuple(
            FileRead(path, content="\n".join(lines.values()) + "\n", lines=lines, requested=CHOSEN)
            for path, lines in reads.items()
        )
    )
