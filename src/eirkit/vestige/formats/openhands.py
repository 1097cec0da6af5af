"""Reads OpenHands completions, and parses what all OpenHands logs share.

The lines that OpenHands appends to a command's output (exit code, working directory, interpreter, and in old versions
the command itself and a prompt) are removed and kept as facts of the call.

The last file of a task's folder is its run, with the response appended; the others are prefixes of it and are not read.
The usage is therefore that of the last response only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from eirkit.errors import InputFileError
from eirkit.vestige.formats.messages import message_usage, read_conversation, shell_name, usage_of
from eirkit.vestige.formats.run_builder import items_of, mapping_of, read_one_run, string_of
from eirkit.vestige.sources.documents import LogDocument, Skipped, open_document
from eirkit.vestige.sources.members import Folder
from eirkit.vestige.trajectory import MARKED, Call, LoggedUsage, Recording, formats

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


_FIRST_KEY = re.compile(rb'\s*\{\s*"messages"\s*:\s*\[\s*\{')
_TIME = re.compile(r"-(\d{9,12}(?:\.\d{1,9})?)\.json\b")
_KEYS = (b'"response":', b'"choices":')


@formats.add("openhands-completions")
class OpenHandsCompletions:
    """Files of `llm_completions/<task>/` of OpenHands."""

    def recognizes(self, document: LogDocument) -> int:
        """Return whether messages are followed by a response, or the file's name has a request's time."""
        return MARKED if is_completion(document) else 0

    def claims(self, folder: Folder, names: Sequence[str]) -> Collection[str]:
        """Return all completions of a task but the last, which repeats them."""
        timed = {name: float(found[1]) for name in names if (found := _TIME.search(name))}
        if len(timed) < 2:
            return ()
        last = max(timed, key=lambda name: (timed[name], name))
        try:
            is_ours = is_completion(open_document(folder / last))
        except InputFileError:
            return ()
        return timed.keys() - {last} if is_ours else ()

    def read(self, document: LogDocument) -> Iterator[Recording | Skipped]:
        """Yield the run up to this completion."""
        return read_one_run(document, _recording)


def is_completion(document: LogDocument) -> bool:
    """Return whether the document is a request with its response, as OpenHands stores them."""
    head = document.head
    if _FIRST_KEY.match(head) is None:
        return False
    # The response follows the messages, usually beyond the part that was read; then the name decides.
    return all(key in head for key in _KEYS) or (b"\n" not in head.strip() and _TIME.search(document.name) is not None)


def _recording(content: Mapping[str, Any], document: LogDocument) -> Recording:
    # For models without tool calls a second pair holds the same exchange with them.
    pair = ("fncall_messages", "fncall_response") if "fncall_messages" in content else ("messages", "response")
    messages, response = content.get(pair[0]), mapping_of(content.get(pair[1]))
    if not isinstance(messages, list):
        raise InputFileError("has no list of messages; restore the file")
    choices = items_of(response.get("choices"))
    last = mapping_of(choices[0].get("message")) if choices else {}

    def usage(message: Mapping[str, Any]) -> LoggedUsage | None:
        return usage_of(response.get("usage")) if message is last else message_usage(message)

    said = read_conversation([*messages, last] if last else messages, make_call=OpenHandsCalls(), usage=usage)
    task = _task(document)
    return Recording(
        run_id=task,
        task_id=task,
        format="openhands-completions",
        source=document.source,
        turns=said.turns,
        model=string_of(response.get("model")),
        prompt=said.prompt,
        root=repository_root(said.prompt),
    )


def _task(document: LogDocument) -> str:
    if isinstance(document.parent, Path):
        return document.parent.resolve().name or document.name
    folders = PurePosixPath(document.source.rpartition(":")[2]).parts[:-1]
    return folders[-1] if folders else document.name or "run"
