"""The table of agent tools by name (editors, viewers, searches, patches): what a call of each read and wrote.

Tools are identified by the names and arguments that scaffolds give them. A tool that reports its own failure has
written nothing, and shown at most the unchanged lines. Shell commands are interpreted in `logs/shell`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from eirkit.vestige.actions.view_tools import (
    NOTHING_TOUCHED,
    PATHS,
    Tool,
    failed,
    first_of,
    path_of,
    search,
    search_file,
    text_of,
    view,
    view_many,
    windowed,
)
from eirkit.vestige.shell.state import ShellState
from eirkit.vestige.shell.write_commands import file_patches, files_in_diff
from eirkit.vestige.trajectory import Call, FileRead, FileWrite, Lines, Touches
from eirkit.vestige.viewer_output import numbered

_OLD = ("old_str", "old_string", "old_text", "oldText", "oldString", "old", "search", "before")
_NEW = (
    "new_str",
    "new_string",
    "new_text",
    "newText",
    "newString",
    "new",
    "replacement",
    "new_source",
    "replace",
    "after",
)
_CONTENT = ("file_text", "content", "contents", "text", "code_edit", "code")
_MARKER = re.compile(r"(?<!<)<{6,}+ ?SEARCH\n|(?<!=)={6,}+\n|(?<!>)>{6,}+ ?REPLACE")
_FILE_SERVERS = ("filesystem", "files", "file", "fs")  # words in the names of MCP servers that read and write files
_AS_IT_IS = "This is the original code before your edit"


def _writer(write: Callable[[Call, str], FileWrite]) -> Tool:
    """Return a tool that writes the file which it names, unless it reports that it failed."""

    def touches(call: Call, state: ShellState) -> Touches:
        path = path_of(call, state)
        return NOTHING_TOUCHED if path is None or failed(call) else Touches(writes=(write(call, path),))

    return touches


create = _writer(lambda call, path: FileWrite(path, "whole", content=text_of(call.arguments, _CONTENT) or ""))
insert = _writer(
    lambda call, path: FileWrite(path, "edit", removed="", added=text_of(call.arguments, (*_NEW, *_CONTENT)))
)
# An edit that shows neither the old nor the new text, such as an undo.
change = _writer(lambda call, path: FileWrite(path))
delete = _writer(lambda call, path: FileWrite(path, "delete"))


def replace_text(call: Call, state: ShellState) -> Touches:
    """A part of a file replaced by another; several parts where the tool takes a list of edits."""
    path = path_of(call, state)
    if path is None or failed(call) or call.arguments.get("dryRun") is True:
        return NOTHING_TOUCHED
    edits = call.arguments.get("edits")
    if isinstance(edits, list) and edits:
        given = [edit for edit in edits if isinstance(edit, Mapping)]
        return Touches(writes=tuple(_edit(path, edit) for edit in given[:1000]))
    diff = text_of(call.arguments, ("diff", "patch"))
    if diff is not None and (blocks := list(_blocks(diff))):
        return Touches(writes=tuple(FileWrite(path, removed=old, added=new) for old, new in blocks))
    return Touches(writes=(_edit(path, call.arguments),))


def _blocks(diff: str) -> Iterator[tuple[str, str]]:
    """Yield the old and the new text of each block between markers such as those of a merge conflict."""
    parts: list[re.Match[str]] = []  # the markers of the block so far
    for found in _MARKER.finditer(diff):
        if found[0][0] == "<=>"[len(parts)]:
            parts.append(found)
        if len(parts) == 3:
            begin, middle, end = parts
            yield (
                diff[begin.end() : middle.start()].removesuffix("\n"),
                diff[middle.end() : end.start()].removesuffix("\n"),
            )
            parts = []


def _edit(path: str, arguments: Mapping[str, Any]) -> FileWrite:
    removed, added = text_of(arguments, _OLD), text_of(arguments, _NEW)
    if removed is None and added is None:
        added = text_of(arguments, _CONTENT)
    if removed == "" and added is not None:
        return FileWrite(path, "whole", content=added)  # replacing the empty text creates the file
    return FileWrite(path, "edit", removed=removed, added=added)


def move(call: Call, state: ShellState) -> Touches:
    """A file moved."""
    ends = [first_of(call.arguments, (name,)) for name in ("source", "destination")]
    old, new = (state.resolve(end) if end else None for end in ends)
    if old is None or new is None or failed(call):
        return NOTHING_TOUCHED
    return Touches(writes=(FileWrite(new, "whole", content=state.texts.get(old)), FileWrite(old, "delete")))


def editor(call: Call, state: ShellState) -> Touches:
    """`str_replace_editor` and similar tools, whose `command` argument selects one of several tools."""
    verb = _EDITOR_VERBS.get(str(call.arguments.get("command", "")))
    return verb(call, state) if verb else NOTHING_TOUCHED


def edit_event(call: Call, state: ShellState) -> Touches:
    """`edit` as OpenHands and SWE-agent use it: by command, by line range, or by text."""
    if "command" in call.arguments:
        return editor(call, state)
    path = path_of(call, state)
    if path is None or failed(call):
        return _refused(call, path)
    return Touches(writes=(_edit(path, call.arguments),))


def _refused(call: Call, path: str | None) -> Touches:
    """SWE-agent rejects an edit that does not compile and shows the unchanged lines."""
    _, _, text = call.output.partition(_AS_IT_IS)
    lines = numbered(text)
    if path is None or not lines:
        return NOTHING_TOUCHED
    shown = "".join(f"{number}:{line}\n" for number, line in lines.items())  # without the words around them
    return Touches((FileRead(path, content=shown, lines=lines, requested=Lines(min(lines), max(lines))),))


def make_file(call: Call, state: ShellState) -> Touches:
    """SWE-agent's `create`, which also opens the new file."""
    touches = create(call, state)
    if touches.writes:
        state.open_file = touches.writes[0].path
    return touches


def patch(call: Call, state: ShellState) -> Touches:
    """`apply_patch`: the files of its patch, whatever argument holds it."""
    texts = [value for value in call.arguments.values() if isinstance(value, str)]
    text = max(texts, key=len, default="")
    if failed(call):
        return NOTHING_TOUCHED
    writes = []
    for part in file_patches(text):
        path = state.resolve(part.path)
        if path is not None and part.kind == "whole":
            writes.append(FileWrite(path, "whole", content=part.added))
        elif path is not None:
            is_edit = part.kind == "edit"
            writes.append(
                FileWrite(
                    path, part.kind, removed=part.removed if is_edit else None, added=part.added if is_edit else None
                )
            )
    if not writes:
        writes = [FileWrite(path) for path in state.resolve_all(files_in_diff(text))]
    return Touches(writes=tuple(writes))


_EDITOR_VERBS: dict[str, Tool] = {
    "view": view,
    "create": create,
    "write": create,
    "str_replace": replace_text,
    "replace": replace_text,
    "insert": insert,
    "undo_edit": change,
    "delete": delete,
}
TOOLS: Mapping[str, Tool] = {
    **dict.fromkeys(
        ("str_replace_editor", "str_replace_based_edit_tool", "edit_tool", "file_editor", "text_editor"), editor
    ),
    **dict.fromkeys(("edit", "Edit", "edit_file_by_lines"), edit_event),
    **dict.fromkeys(
        (
            "read",
            "view",
            "read_file",
            "view_file",
            "cat_file",
            "open_file",
            "fs_read",
            "get_file",
            "notebookread",
            "read_text_file",
            "filemap",
        ),
        view,
    ),
    **dict.fromkeys(
        ("write", "write_file", "create_file", "write_to_file", "fs_write", "new_file", "save_file"), create
    ),
    **dict.fromkeys(
        (
            "replace",
            "multiedit",
            "replace_in_file",
            "edit_file",
            "search_replace",
            "str_replace",
            "notebookedit",
            "edit_block",
        ),
        replace_text,
    ),
    **dict.fromkeys(("insert", "insert_content", "insert_lines", "append_file"), insert),
    **dict.fromkeys(("open", "goto", "scroll_up", "scroll_down"), windowed),
    **dict.fromkeys(("grep", "search_file_content", "search_files", "grep_search", "search_code"), search),
    **dict.fromkeys(("apply_patch", "apply_diff", "applypatch"), patch),
    **dict.fromkeys(("delete_file", "remove_file"), delete),
    "undo_edit": change,
    "create": make_file,
    "search_file": search_file,
    **dict.fromkeys(("read_many_files", "read_multiple_files"), view_many),
    "move_file": move,
}


_ONE_FILE = {view, create, make_file, replace_text, edit_event, insert, change, delete}


def is_unclear(tool: Tool, call: Call, state: ShellState) -> bool:
    """Return whether a call that touched nothing did touch something, as far as one can tell: it did not fail.

    Its arguments then have names that the table does not know, such as those of a newer version of the agent.
    """
    if failed(call):
        return False
    if tool is editor:
        verb = _EDITOR_VERBS.get(str(call.arguments.get("command", "")))
        return verb is None or is_unclear(verb, call, state)
    if tool is move:
        return first_of(call.arguments, ("source",)) is None or first_of(call.arguments, ("destination",)) is None
    is_unnamed = first_of(call.arguments, PATHS) is None and state.open_file is None
    return tool is patch or (tool in _ONE_FILE and is_unnamed)


def tool_named(name: str) -> Tool | None:
    """Return the tool of that name, ignoring case and the prefix of an MCP server of files."""
    own = TOOLS.get(name)
    if own is None:
        own = TOOLS.get(name.lower()) or TOOLS.get(name_on_server(name.lower()))
    return own


def name_on_server(name: str) -> str:
    """Return the name that an MCP server of files gives a tool; any other name as it is.

    Claude Code writes `mcp__fs__read_file`, Gemini CLI `mcp_fs_read_file`, opencode `fs_read_file`, Copilot CLI
    `fs-read_file`. Servers of other names may store their files elsewhere, so theirs are not understood.
    """
    server, _, tool = name.removeprefix("mcp__").rpartition("__")
    if server:
        words = server.replace("-", "_").split("_")
        return tool if "filesystem" in server or not set(_FILE_SERVERS).isdisjoint(words) else name
    bare = name.removeprefix("mcp_")
    known = (word for word in _FILE_SERVERS if bare.startswith((f"{word}_", f"{word}-")))
    return bare[len(word) + 1 :] if (word := next(known, "")) else name
