"""What a call of an agent's tool showed of files: viewers and searchers, each an entry in the table of tools.

A call and where the run stands come in; what was read goes out.
"""

from __future__ import annotations

import re

from eirkit.vestige.markers import clip_marks
from eirkit.vestige.shell.flow import Flow
from eirkit.vestige.shell.outputs import CHOSEN, reads_of
from eirkit.vestige.shell.place import Place
from eirkit.vestige.tool_calls import NOTHING_TOUCHED, PATHS, failed, first_of, path_of, shows_nothing
from eirkit.vestige.trajectory import Call, Read, Span, Touches
from eirkit.vestige.views import numbered, untitled, view_of

_NO_MATCH = ("No match", "Found 0 ", "No files found")
_OPENED = re.compile(r"\[File: ([^\n]{1,1000}?) \(\d+ lines total\)\]")
_MANY = re.compile(r"(?m)^--- ([^\n]{1,1000}) ---\n")
_NAMED = re.compile(r"(?:\A|(?<=\n)---\n)([^\n:]{1,1000}):\n")
_MATCHED = re.compile(r"(?m)^(?:Line |L)(\d{1,9})[:-] ?(.*)$")
_LISTED = re.compile(r"(?m)^File: ([^\n]{1,1000})\n(?=L\d)")
_BARE_LINE = re.compile(r"\d{1,9}[:-]")


def view(call: Call, place: Place) -> Touches:
    """A file shown whole or in part; a folder shows names only."""
    path = path_of(call, place)
    if path is None or shows_nothing(call):
        return NOTHING_TOUCHED
    seen = view_of(call)
    if not seen.text.strip():
        return NOTHING_TOUCHED
    place.note_read(path)
    asked = CHOSEN if seen.picked or "tail" in call.arguments else seen.asked
    lines = None if "tail" in call.arguments else seen.lines
    return Touches((Read(path, content=seen.text, lines=lines, requested=asked, clipped=seen.clipped),))


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


def windowed(call: Call, place: Place) -> Touches:
    """SWE-agent's windowed viewer: which file is open, its output says best."""
    found = _OPENED.search(call.output[-200_000:])
    named = first_of(call.arguments, PATHS)
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


def search_file(call: Call, place: Place) -> Touches:
    """A search in one file, with the lines it found."""
    path = path_of(call, place)
    found = {int(number): line for number, line in _MATCHED.findall(call.output)}
    if path is None or failed(call) or not found:
        return NOTHING_TOUCHED
    return Touches((Read(path, content=call.output, lines=found, requested=CHOSEN),))


def search(call: Call, place: Place) -> Touches:
    """A search in a folder: the names before the lines say which files were shown."""
    if shows_nothing(call) or call.output.lstrip().startswith(_NO_MATCH):
        return NOTHING_TOUCHED
    if call.tool.lower() == "grep" and call.arguments.get("output_mode", "content") != "content":
        return NOTHING_TOUCHED
    if call.tool == "Grep" and "output_mode" not in call.arguments:
        return NOTHING_TOUCHED  # its default gives names only
    named = first_of(call.arguments, (*PATHS, "dir_path"))
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
