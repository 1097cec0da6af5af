"""One shell call: its command, its output and its exit code come in; what it read and wrote goes out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from eirkit.logs.shell.changing import CHANGERS
from eirkit.logs.shell.failures import happened
from eirkit.logs.shell.flow import Flow
from eirkit.logs.shell.git import git
from eirkit.logs.shell.grammar import parse
from eirkit.logs.shell.outputs import reads_of
from eirkit.logs.shell.running import RUNNERS
from eirkit.logs.shell.searching import SEARCHERS
from eirkit.logs.shell.state import ShellState
from eirkit.logs.shell.viewing import VIEWERS
from eirkit.logs.shell.walk import Invocation, Walk
from eirkit.logs.trajectory import FileWrite, Touches

COMMANDS: Mapping[str, Callable[[Walk, Invocation], Flow]] = {
    **VIEWERS,
    **SEARCHERS,
    **CHANGERS,
    **RUNNERS,
    "git": git,
}


# The shell refused the whole command: a first line that it cannot parse, or a quote that is never closed.
_UNPARSED = re.compile(
    r"(?m)^(?:/bin/|/usr/bin/)?(?:ba|da|z)?sh: (?:-c: )?(?:line )?"
    r"(?:1: [Ss]yntax error|\d+: unexpected EOF|\d+: Syntax error: Unterm)"
)


def shell_touches(command: str, output: str, exit_code: int, place: ShellState) -> Touches:
    """Return what a command touched, and leave in `place` what the next one needs to know."""
    walk = Walk(place, COMMANDS, output, exit_code)
    folder = place.folder
    if place.folder[:1] == "/":
        walk.variables["PWD"] = place.folder
    if exit_code == 0 or not _UNPARSED.search(output):
        walk.run(parse(command))
    reads = tuple(reads_of(walk.shown, output, place)) if walk.shown else ()
    writes = tuple(done.write for done in happened(walk, output, exit_code)) if walk.written else ()
    # Reads are noted last: a file that this very call made and showed was not there before.
    for write in writes:
        remember(place, write)
    gone = {write.path for write in writes if write.kind == "delete"} if writes else ()
    for read in reads:
        if read.path not in gone:
            place.note_read(read.path)
    if walk.cleaned:
        _clean(place, walk, {write.path for write in writes})
    if place.keeps_folder:
        place.folder = walk.folder
    if output:
        place.note_output(output, place.folder)
        if exit_code == 0 and ("grep" in command or "find " in command or "rg " in command):
            place.note_listing(command, output, folder)
    return Touches(reads, writes)


def _clean(place: ShellState, walk: Walk, written: set[str]) -> None:
    """Forget changes that git undid or committed, save those that were to be undone and were not."""
    asked = {done.write.path for done in walk.written}
    for path in walk.cleaned:
        if path in written or path not in asked:
            place.changed.pop(path, None)
            place.created.pop(path, None)


def remember(place: ShellState, write: FileWrite) -> None:
    """Keep what a write tells about a file: its text, and that it differs from the last commit."""
    path = write.path
    if write.kind == "delete":
        place.forget(path)
        if path in place.created:
            place.created.pop(path)
            place.changed.pop(path, None)
        else:
            place.changed[path] = None
        return
    if write.content is not None:
        place.keep_text(path, write.content)
    elif path in place.texts:
        place.keep_text(path, _edited(place.texts[path], write))
    # What was shown before is overwritten, not made.
    if write.kind == "whole" and path not in place.changed and path not in place.shown:
        place.created[path] = None
    place.changed[path] = None
    place.note_file(path)


def _edited(text: str, write: FileWrite) -> str:
    if write.removed is not None and write.added is not None:
        return text.replace(write.removed, write.added, 1)
    # An edit that cannot be followed rarely changes which files a script writes, so the old text is kept.
    return text + (write.added or "")
