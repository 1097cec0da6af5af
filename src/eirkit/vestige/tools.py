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
from eirkit.vestige.views import numbered, untitled, view_of

NOTHING_TOUCHED = Touches()
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
_OLD = ("old_str", "old_string", "old_text", "oldText", "old", "search")
_NEW = ("new_str", "new_string", "new_text", "newText", "new", "replacement", "new_source", "replace")
_CONTENT = ("file_text", "content", "contents", "text", "code_edit", "code")
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
_NO_MATCH = ("No match", "Found 0 ", "No files found")
_OPENED = re.compile(r"\[File: ([^\n]{1,1000}?) \(\d+ lines total\)\]")
_MANY = re.compile(r"(?m)^--- ([^\n]{1,1000}) ---\n")
_NAMED = re.compile(r"(?:\A|(?<=\n)---\n)([^\n:]{1,1000}):\n")
_MATCHED = re.compile(r"(?m)^(?:Line |L)(\d{1,9})[:-] ?(.*)$")
_LISTED = re.compile(r"(?m)^File: ([^\n]{1,1000})\n(?=L\d)")
_BARE_LINE = re.compile(r"\d{1,9}[:-]")
_BLOCK = re.compile(r"(?<!<)<{6,} ?SEARCH\n(.*?)\n?======+\n(.*?)\n?>>>>>>+ ?REPLACE", re.DOTALL)

_SERVER = re.compile(r"\Amcp__[\w-]{0,40}filesystem[\w-]{0,40}__")
_AS_IT_IS = "This is the original code before your edit"

Tool = Callable[[Call, Place], Touches]


def failed(call: Call) -> bool:
    """True if a tool reports in its own words, or by the log's flag, that it did nothing."""
    if call.failed or call.exit_code:
        return True
    start = call.output[:400].lstrip()
    if start.startswith(_REFUSALS):
        return True
    # The lines that a successful edit shows may hold any words.
    return any(words in call.output[:4000] for words in _REFUSED_LATER) and not _DONE.match(start)


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


def view(call: Call, place: Place) -> Touches:
    """A file shown whole or in part; a folder shows names only."""
    path = _path(call, place)
    if path is None or _unseen(call):
        return NOTHING_TOUCHED
    seen = view_of(call)
    if not seen.text.strip():
        return NOTHING_TOUCHED
    place.note_read(path)
    asked = CHOSEN if seen.picked or "tail" in call.arguments else seen.asked
    lines = None if "tail" in call.arguments else seen.lines
    return Touches((Read(path, content=seen.text, lines=lines, requested=asked, clipped=seen.clipped),))


def _unseen(call: Call) -> bool:
    """True if no content of a file came back: a refusal, the names in a folder, or a word that nothing has changed.

    A file may begin with any words, so what a failed view says must be all that it says.
    """
    start = call.output[:400].lstrip()
    if call.failed or start.startswith(_NO_CONTENT):
        return True
    return start.startswith(_UNREADABLE) and call.output.strip().count("\n") < _REFUSAL_LINES


def create(call: Call, place: Place) -> Touches:
    """A file made or overwritten whole."""
    path = _path(call, place)
    if path is None or failed(call):
        return NOTHING_TOUCHED
    return Touches(writes=(Write(path, "whole", content=_text(call.arguments, _CONTENT) or ""),))


def replace_text(call: Call, place: Place) -> Touches:
    """A part of a file replaced by another; several parts where the tool takes a list of edits."""
    path = _path(call, place)
    if path is None or failed(call) or call.arguments.get("dryRun") is True:
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


def move(call: Call, place: Place) -> Touches:
    """A file put elsewhere."""
    ends = [_first(call.arguments, (name,)) for name in ("source", "destination")]
    old, new = (place.resolve(end) if end else None for end in ends)
    if old is None or new is None or failed(call):
        return NOTHING_TOUCHED
    return Touches(writes=(Write(new, "whole", content=place.texts.get(old)), Write(old, "delete")))


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
    lines = numbered(call.output)
    if not lines:
        return NOTHING_TOUCHED
    shown = Span(min(lines), max(lines))
    text = untitled(call.output)
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
    lines = numbered(text)
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
    if _unseen(call) or call.output.lstrip().startswith(_NO_MATCH):
        return NOTHING_TOUCHED
    if call.tool.lower() == "grep" and call.arguments.get("output_mode", "content") != "content":
        return NOTHING_TOUCHED
    if call.tool == "Grep" and "output_mode" not in call.arguments:
        return NOTHING_TOUCHED  # its default gives names only
    named = _first(call.arguments, (*_PATHS, "dir_path"))
    if _LISTED.search(call.output):
        return _listed(call, place, named)
    if named is not None and _is_file(named, call.output, place):
        flow = Flow("files", files=tuple(place.resolve_all([named])), chosen=True, numbering="colon")
    else:
        flow = Flow("search", folder=place.folder)
    return Touches(tuple(reads_of([flow], call.output, place)) if flow.files or flow.kind == "search" else ())


def _is_file(named: str, output: str, place: Place) -> bool:
    """True if a search looked through one file: by its name, by lines without a name before them, or as seen before."""
    if "." in named.rpartition("/")[2].strip(".") or _BARE_LINE.match(output):
        return True
    return place.resolve(named) in place.shown


def _listed(call: Call, place: Place, named: str | None) -> Touches:
    """Matches under the name of each file, which is told from the folder that was searched."""
    folder = place.absolute(named) if named and not _is_file(named, "", place) else None
    reads: dict[str, dict[int, str]] = {}
    for part in call.output.split("\n---\n"):
        found = _LISTED.match(part)
        path = place.resolve(found[1], folder) if found else None
        lines = {int(number): line for number, line in _MATCHED.findall(part)} if path is not None else {}
        if path is not None and lines:
            reads.setdefault(path, {}).update(lines)
    return Touches(
        tuple(
            Read(path, content="\n".join(lines.values()) + "\n", lines=lines, requested=CHOSEN)
            for path, lines in reads.items()
        )
    )


def view_many(call: Call, place: Place) -> Touches:
    """Several files shown one after the other, each after its name."""
    if call.failed:
        return NOTHING_TOUCHED
    names = list((_MANY if _MANY.search(call.output) else _NAMED).finditer(call.output))
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
    **dict.fromkeys(("read_many_files", "read_multiple_files"), view_many),
    "move_file": move,
}


def tool_named(name: str) -> Tool | None:
    """Return the tool that goes by a name, whatever its case; a server of files offers its own under a prefix."""
    own = TOOLS.get(name)
    if own is None:
        own = TOOLS.get(_SERVER.sub("", name.lower()))
    return own
