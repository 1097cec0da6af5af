"""What a call of an agent's own tool read and wrote, by a table of tools: editors, viewers, searchers, patches.

Tools are known by their names and arguments as the scaffolds give them. A tool that says itself that it failed has
written nothing, and shown at most the lines as they still are. Shell commands are not here: `shell/` follows those.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from eirkit.vestige.markers import clip_marks
from eirkit.vestige.shell.flow import Flow
from eirkit.vestige.shell.outputs import CHOSEN, reads_of
from eirkit.vestige.shell.patches import file_patches, files_in_diff
from eirkit.vestige.shell.place import Place
from eirkit.vestige.trajectory import Call, Read, Span, Touches, Write

NOTHING_TOUCHED = Touches()
_TO_THE_END = 1 << 30
_PATHS = (
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
_OLD = ("old_str", "old_string", "old_text", "old", "search")
_NEW = ("new_str", "new_string", "new_text", "new", "replacement", "new_source", "replace")
_CONTENT = ("file_text", "content", "contents", "text", "code_edit", "code")
_REFUSALS = (
    "ERROR", "Error", "error:", "<tool_use_error>", "Traceback (most recent call last)", "No replacement was performed",
    "String to replace not found", "File has not been read yet", "File has been modified since read", "Found 0 matches",
    "Failed to edit", "File does not exist", "Invalid `", "The path ", "Parameter `", "Your edit was not applied",
    "Your proposed edit has introduced", "Text not found", "No file open", "Usage:", "Could not find",
    "No matches found",
    "apply_patch verification failed", "Invalid patch", "Failed to find expected lines", "File not found",
    "The user doesn't want to proceed", "Permission to use", "No changes to make", "Cannot ", "Ran into ",
)  # fmt: skip
_REFUSED_LATER = (
    "No replacement was performed",
    "apply_patch verification failed",
    "RuntimeError: No active exception",
)
_NUMBERED = re.compile(r"(?m)^ {0,12}(\d{1,9})(?:\t|→|\| ?|: ?)(.*)$")
_HEADER = re.compile(
    r"\A(?:Here's the result of running `cat -n` on [^\n]*\n|\[File: [^\n]*\n(?:\(\d+ more lines above\)\n)?)"
)
_OPENED = re.compile(r"\[File: ([^\n]{1,1000}?) \(\d+ lines total\)\]")
_MANY = re.compile(r"(?m)^--- ([^\n]{1,1000}) ---\n")
_MATCHED = re.compile(r"(?m)^(?:Line |L)(\d{1,9}): ?(.*)$")
_BLOCK = re.compile(r"(?<!<)<{6,} ?SEARCH\n(.*?)\n?======+\n(.*?)\n?>>>>>>+ ?REPLACE", re.DOTALL)

_AS_IT_IS = "This is the original code before your edit"

Tool = Callable[[Call, Place], Touches]


def failed(call: Call) -> bool:
    """True if a tool reports in its own words, or by the log's flag, that it did nothing."""
    if call.failed:
        return True
    start = call.output[:400].lstrip()
    return start.startswith(_REFUSALS) or any(words in call.output[:4000] for words in _REFUSED_LATER)


def _first(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def _text(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((arguments[name] for name in names if isinstance(arguments.get(name), str)), None)


def _path(call: Call, place: Place) -> str | None:
    named = _first(call.arguments, _PATHS)
    return place.resolve(named) if named is not None else place.open_file


def _number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isdigit() and len(value) < 10 else None


def view(call: Call, place: Place) -> Touches:
    """A file shown whole or in part; a folder shows names only."""
    path = _path(call, place)
    text = _HEADER.sub("", call.output).partition("<system-reminder>")[0]
    if path is None or failed(call) or not text.strip() or _shows_folder(call.output):
        return NOTHING_TOUCHED
    place.note_read(path)
    asked = _asked(call.arguments)
    found = _NUMBERED.findall(text)
    lines = {int(number): line for number, line in found} if 2 * len(found) > text.count("\n") else None
    clipped = bool(clip_marks(call.output))
    if lines is None and not clipped:
        lines = dict(enumerate(text.removesuffix("\n").split("\n"), asked.first if asked else 1))
    return Touches((Read(path, content=text, lines=lines or None, requested=asked, clipped=clipped),))


def _shows_folder(output: str) -> bool:
    return output.startswith(("Here's the files and directories", "Here are the files and directories"))


def _asked(arguments: Mapping[str, Any]) -> Span | None:
    """Return the range of lines that the arguments of a viewer ask for."""
    given = arguments.get("view_range")
    if isinstance(given, str):
        given = [int(number) for number in re.findall(r"-?\d{1,9}", given)]
    if isinstance(given, list) and len(given) == 2 and all(isinstance(number, int) for number in given):
        return Span(max(1, given[0]), given[1] if given[1] > 0 else _TO_THE_END)
    first = next(
        (_number(arguments[name]) for name in ("start_line", "line_start", "offset") if name in arguments), None
    )
    last = next((_number(arguments[name]) for name in ("end_line", "line_end") if name in arguments), None)
    limit = _number(arguments.get("limit"))
    if first is None and last is None and limit is None:
        return None
    start = max(1, first or 1)
    return Span(start, last if last is not None else start + limit - 1 if limit else _TO_THE_END)


def create(call: Call, place: Place) -> Touches:
    """A file made or overwritten whole."""
    path = _path(call, place)
    if path is None or failed(call):
        return NOTHING_TOUCHED
    return Touches(writes=(Write(path, "whole", content=_text(call.arguments, _CONTENT) or ""),))


def replace_text(call: Call, place: Place) -> Touches:
    """A part of a file replaced by another; several parts where the tool takes a list of edits."""
    path = _path(call, place)
    if path is None or failed(call):
        return NOTHING_TOUCHED
    edits = call.arguments.get("edits")
    if isinstance(edits, list) and edits:
        given = [edit for edit in edits if isinstance(edit, Mapping)]
        return Touches(writes=tuple(_edit(path, edit) for edit in given[:1000]))
    diff = _text(call.arguments, ("diff", "patch"))
    if diff is not None and (blocks := _BLOCK.findall(diff)):
        return Touches(writes=tuple(Write(path, removed=old, added=new) for old, new in blocks))
    return Touches(writes=(_edit(path, call.arguments),))


def _edit(path: str, arguments: Mapping[str, Any]) -> Write:
    removed, added = _text(arguments, _OLD), _text(arguments, _NEW)
    if removed is None and added is None:
        added = _text(arguments, _CONTENT)
    if removed == "" and added is not None:
        return Write(path, "whole", content=added)  # replacing nothing makes the file
    return Write(path, "edit", removed=removed, added=added)


def insert(call: Call, place: Place) -> Touches:
    """Lines put into a file."""
    path = _path(call, place)
    if path is None or failed(call):
        return NOTHING_TOUCHED
    return Touches(writes=(Write(path, "edit", removed="", added=_text(call.arguments, (*_NEW, *_CONTENT))),))


def change(call: Call, place: Place) -> Touches:
    """An edit that shows neither what left nor what came, such as an undone one."""
    path = _path(call, place)
    return NOTHING_TOUCHED if path is None or failed(call) else Touches(writes=(Write(path),))


def delete(call: Call, place: Place) -> Touches:
    """A file removed."""
    path = _path(call, place)
    return NOTHING_TOUCHED if path is None or failed(call) else Touches(writes=(Write(path, "delete"),))


def editor(call: Call, place: Place) -> Touches:
    """`str_replace_editor` and its relatives, whose `command` says which of several tools they are."""
    verb = _EDITOR_VERBS.get(str(call.arguments.get("command", "")))
    return verb(call, place) if verb else NOTHING_TOUCHED


def windowed(call: Call, place: Place) -> Touches:
    """SWE-agent's windowed viewer: which file is open, its output says best."""
    found = _OPENED.search(call.output[-200_000:])
    named = _first(call.arguments, _PATHS)
    path = place.resolve(found[1]) if found else place.resolve(named) if named else place.open_file
    if path is None or (failed(call) and not found):
        return NOTHING_TOUCHED
    place.open_file = path
    lines = {int(number): line for number, line in _NUMBERED.findall(call.output)}
    if not lines:
        return NOTHING_TOUCHED
    shown = Span(min(lines), max(lines))
    text = _HEADER.sub("", call.output)
    return Touches((Read(path, content=text, lines=lines, requested=shown, clipped=bool(clip_marks(text))),))


def edit_event(call: Call, place: Place) -> Touches:
    """`edit` as OpenHands and SWE-agent mean it: by command, by lines, or by texts."""
    if "command" in call.arguments:
        return editor(call, place)
    path = _path(call, place)
    if path is None or failed(call):
        return _refused(call, path)
    return Touches(writes=(_edit(path, call.arguments),))


def _refused(call: Call, path: str | None) -> Touches:
    """SWE-agent refuses an edit that does not compile, and shows the lines as they are."""
    _, _, text = call.output.partition(_AS_IT_IS)
    lines = {int(number): line for number, line in _NUMBERED.findall(text)}
    if path is None or not lines:
        return NOTHING_TOUCHED
    return Touches((Read(path, content=text, lines=lines, requested=Span(min(lines), max(lines))),))


def make_file(call: Call, place: Place) -> Touches:
    """SWE-agent's `create`, which also opens the new file."""
    touches = create(call, place)
    if touches.writes:
        place.open_file = touches.writes[0].path
    return touches


def search_file(call: Call, place: Place) -> Touches:
    """A search in one file, with the lines it found."""
    path = _path(call, place)
    found = {int(number): line for number, line in _MATCHED.findall(call.output)}
    if path is None or failed(call) or not found:
        return NOTHING_TOUCHED
    return Touches((Read(path, content=call.output, lines=found, requested=CHOSEN),))


def search(call: Call, place: Place) -> Touches:
    """A search in a folder: the names before the lines say which files were shown."""
    if failed(call) or (call.arguments.get("output_mode", "content") != "content" and call.tool.lower() == "grep"):
        return NOTHING_TOUCHED
    if call.tool == "Grep" and "output_mode" not in call.arguments:
        return NOTHING_TOUCHED  # its default gives names only
    named = _first(call.arguments, _PATHS)
    if named is not None and "." in named.rpartition("/")[2].strip("."):
        flow = Flow("files", files=tuple(place.resolve_all([named])), chosen=True, numbering="colon")
    else:
        flow = Flow("search", folder=place.folder)
    return Touches(tuple(reads_of([flow], call.output, place)) if flow.files or flow.kind == "search" else ())


def view_many(call: Call, place: Place) -> Touches:
    """Several files shown one after the other, each after its name."""
    if failed(call):
        return NOTHING_TOUCHED
    names = list(_MANY.finditer(call.output))
    reads = []
    for found, after in zip(names, [*names[1:], None], strict=False):
        path = place.resolve(found[1].strip())
        text = call.output[found.end() : after.start() if after else len(call.output)].strip("\n")
        if path is not None and text:
            reads.append(Read(path, content=text, clipped=bool(clip_marks(text))))
    return Touches(tuple(reads))


def patch(call: Call, place: Place) -> Touches:
    """`apply_patch`: the files of its patch, whatever the name of the argument that holds it."""
    texts = [value for value in call.arguments.values() if isinstance(value, str)]
    text = max(texts, key=len, default="")
    if failed(call):
        return NOTHING_TOUCHED
    writes = []
    for part in file_patches(text):
        path = place.resolve(part.path)
        if path is not None and part.kind == "whole":
            writes.append(Write(path, "whole", content=part.added))
        elif path is not None:
            is_edit = part.kind == "edit"
            writes.append(
                Write(path, part.kind, removed=part.removed if is_edit else None, added=part.added if is_edit else None)
            )
    if not writes:
        writes = [Write(path) for path in place.resolve_all(files_in_diff(text))]
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
    **dict.fromkeys(("str_replace_editor", "str_replace_based_edit_tool", "edit_tool", "file_editor"), editor),
    **dict.fromkeys(("edit", "Edit", "edit_file_by_lines"), edit_event),
    **dict.fromkeys(
        ("read", "view", "read_file", "view_file", "cat_file", "open_file", "fs_read", "get_file", "notebookread"), view
    ),
    **dict.fromkeys(
        ("write", "write_file", "create_file", "write_to_file", "fs_write", "new_file", "save_file"), create
    ),
    **dict.fromkeys(
        ("replace", "multiedit", "replace_in_file", "edit_file", "search_replace", "str_replace", "notebookedit"),
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
    "read_many_files": view_many,
}
