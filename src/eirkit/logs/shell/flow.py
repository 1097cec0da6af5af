"""Streams between commands: which content an output carries, so that pipes and outputs can be attributed to files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple

from eirkit.logs.shell.state import ShellState

FlowKind = Literal["none", "text", "files", "search", "diff", "other", "mixed"]
Numbering = Literal["", "tab", "colon"]
_MATCH = re.compile(r"(?m)^\d{1,9}:")
SHOWING = frozenset({"files", "search", "diff", "mixed"})  # kinds of stream that may carry file content


class Flow(NamedTuple):
    """A stream of text between commands.

    `none` carries nothing, `text` literal text of the command, `files` the content of files, `search` lines prefixed by
    the name of their file, `diff` a patch, `mixed` several streams, `other` anything else. A named tuple, because one
    is created for every command.
    """

    kind: FlowKind
    files: tuple[str, ...] = ()
    text: str | None = None
    first: int = 1  # the first requested line; the stream starts there
    last: int | None = None  # the last requested line; None: to the end
    chosen: bool = False  # lines are selected by content, so their numbers are unknown
    numbering: Numbering = ""  # how line numbers are printed before the lines
    offset: int = 0  # added to a printed number
    folder: str = ""  # folder to which names in the stream are relative
    bases: tuple[str, ...] = ()  # of a search: the operands with which names begin
    parts: tuple[Flow, ...] = ()  # of a mixed stream
    optional: bool = False  # whether it was printed depends on an earlier command
    headed: bool = False  # file names are printed between its files, as by `head`
    sought: tuple[str, ...] | None = None  # of a search: every match contains one of these texts

    listed: tuple[str, ...] = ()  # files whose names it prints, where they are known without output

    @property
    def shows_files(self) -> bool:
        """Return whether the stream may carry file content."""
        return self.kind in SHOWING

    def may_be_in(self, text: str) -> bool:
        """Return False for a search that cannot match anything in a text."""
        if self.sought is None:
            return True
        if self.numbering == "colon" and not _MATCH.search(text):
            return False
        return not self.sought or any(sought in text for sought in self.sought)


NOTHING = Flow("none")
OTHER = Flow("other")


def window(flow: Flow, first: int, last: int | None) -> Flow:
    """Return the stream restricted to some lines, by their position in it."""
    if flow.kind == "text":
        return flow._replace(kind="other", text=None)
    if flow.headed or flow.listed or flow.kind == "mixed":
        return chosen(flow)
    if flow.chosen or flow.kind != "files" or len(flow.files) != 1:
        return flow
    start = flow.first + first - 1
    ends = [end for end in (flow.last, None if last is None else flow.first + last - 1) if end is not None]
    return flow._replace(first=start, last=min(ends) if ends else None)


def last_lines(flow: Flow, count: int) -> Flow:
    """Return the stream restricted to its last lines."""
    if flow.kind == "files" and flow.last is not None and not flow.chosen and len(flow.files) == 1:
        return flow._replace(first=max(flow.first, flow.last - count + 1))
    return chosen(flow)


def chosen(flow: Flow) -> Flow:
    """Return the stream restricted to lines selected by content."""
    if flow.kind == "text" or flow.listed:
        return flow._replace(kind="other", text=None, listed=())
    if flow.kind == "mixed":
        return flow._replace(chosen=True, parts=tuple(map(chosen, flow.parts)))
    return flow._replace(chosen=True, sought=None) if flow.shows_files else flow


def merged(flows: list[Flow]) -> Flow:
    """Return several consecutive streams as one."""
    kept = [part for flow in flows for part in (flow.parts or (flow,)) if part.kind != "none"]
    if len(kept) <= 1:
        return kept[0] if kept else NOTHING
    if all(flow.kind == "text" and flow.text is not None for flow in kept):
        return Flow("text", text="".join(flow.text or "" for flow in kept))
    files = tuple(dict.fromkeys(path for flow in kept for path in flow.files))
    return Flow("mixed", files=files, parts=tuple(kept)) if any(flow.shows_files for flow in kept) else OTHER


_TOOLS = (
    "cat|head|tail|sed|gsed|nl|e?f?grep|[gm]?awk|less|more|diff|ls|rg|sort|uniq|cut|paste|tac|rev|fold|column|comm|join|od"
    "|xxd|hexdump|strings|jq|wc|dd|batcat|bat|bash|sh|/bin/sh|/bin/bash|/usr/bin/bash"
)
_COMPLAINT = re.compile(
    rf"(?m)^(?:[\w./-]+: )?(?:line \d+: )?(?:{_TOOLS}): ([^\n]*?)"
    r"(?:No such file or directory|cannot open|can't read|Is a directory|Not a directory|Permission denied)([^\n]*)\n?"
    r"|^([^\s:]+): No such file or directory()\n?"  # pagers print no command name
    r"|^fatal: ([^\n]*(?:does not exist|no such path|exists on disk, but not)[^\n]*)()\n?"
)
_NAME = re.compile(r"[^\s:'\"`‘’()]+")


def may_complain(output: str) -> bool:
    """Return quickly whether an output may contain an error message about a file."""
    if "directory" in output and ("No such file" in output or " a directory" in output):
        return True
    return "Permission denied" in output or "fatal: " in output


def without_complaints(flows: Sequence[Flow], output: str, state: ShellState) -> tuple[Sequence[Flow], str]:
    """Return the streams without files that an error names, and the output without these errors."""
    missing = files_complained_of(output, {path for flow in flows for path in flow.files}, state)
    output = _COMPLAINT.sub("", output)
    return (tuple(_without(flows, missing)) if missing else flows), output


def files_complained_of(output: str, paths: Collection[str], state: ShellState) -> set[str]:
    """Return the files, of those given, that an error message names."""
    if not paths or not may_complain(output):
        return set()
    named = {
        word for found in _COMPLAINT.finditer(output) for part in found.groups() if part for word in _NAME.findall(part)
    }
    found = (_closest(name, paths, state) for name in named)
    return {path for path in found if path is not None}


def _closest(name: str, paths: Collection[str], state: ShellState) -> str | None:
    """Return the file that a name refers to, as spelled on the command line, which may have changed folder before."""
    path = state.relative(state.absolute(name))
    if path in paths:
        return path
    end = f"/{name.removeprefix('./')}"
    return min((path for path in paths if path.endswith(end)), key=len, default=None)


def _without(flows: Sequence[Flow], missing: Collection[str]) -> Iterator[Flow]:
    for flow in flows:
        left = tuple(path for path in flow.files if path not in missing)
        if left == flow.files:
            yield flow
        elif left:
            yield flow._replace(files=left)
