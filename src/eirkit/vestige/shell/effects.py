"""The table of all shell commands by name; what one shell call read and wrote, from command, output and exit code.

It holds the table of commands, and decides which of the requested writes failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from eirkit.vestige.shell.git_commands import git
from eirkit.vestige.shell.grammar import parse
from eirkit.vestige.shell.outputs import reads_of
from eirkit.vestige.shell.powershell_commands import POWERSHELL, as_shell, is_windows
from eirkit.vestige.shell.run_commands import RUNNERS
from eirkit.vestige.shell.search_commands import SEARCHERS
from eirkit.vestige.shell.state import Flow, ShellState
from eirkit.vestige.shell.view_commands import VIEWERS
from eirkit.vestige.shell.walk import NOT_FOUND, Invocation, ShellWrite, Walk
from eirkit.vestige.shell.words import UNKNOWN
from eirkit.vestige.shell.write_commands import CHANGERS
from eirkit.vestige.trajectory import FileRead, FileWrite, Touches

COMMANDS: Mapping[str, Callable[[Walk, Invocation], Flow]] = {
    **VIEWERS,
    **CHANGERS,
    **RUNNERS,
    **SEARCHERS,
    **POWERSHELL,
    "git": git,
}
_COMPLAINTS = (
    "No such file",
    "not found",
    "cannot",
    "can't",
    "annot ",
    "error",
    "Error",
    "denied",
    "directory",
    "FAILED",
    "****",
    "unterminated",
)
_FRAME = re.compile(r'(?:File "(?:<stdin>|<string>|[^"\n]*)"|Cell In\[\d{1,6}\]), line (\d{1,7})(?:, in <module>)?')
_SED_SCRIPT = re.compile(r"(?m)^sed: -e expression")
_GIT_REFUSED = re.compile(
    r"(?m)^error: (?:patch failed|corrupt patch|unrecognized input|No valid patches|[^\n]*: patch does not apply)"
)

# Claude Code adds the exit code and where the next command starts; no command printed them.
_NOTES = ("Exit code ", "Shell cwd was reset to ")
_SCAFFOLD_NOTE = re.compile(rf"\A{_NOTES[0]}\d{{1,3}}(?:\n|\Z)|^{_NOTES[1]}[^\n]*+\n?", re.MULTILINE)

# Commands whose error message always means a non-zero exit code.
_STRICT = frozenset({"rm", "cp", "mv", "sed", "cat", "cd", "mkdir", "touch", "ln", "head", "tail", "ls", "patch"})
# The shell rejected the whole command: a syntax error in its first line, or an unclosed quote.
_UNPARSED = re.compile(
    r"(?m)^(?:/bin/|/usr/bin/)?(?:ba|da|z)?sh: (?:-c: )?(?:line )?"
    r"(?:1: [Ss]yntax error|\d+: unexpected EOF|\d+: Syntax error: Unterm)"
)


def shell_touches(command: str, output: str, exit_code: int, state: ShellState) -> Touches:
    """Return what a command touched, and update `state` for the next one."""
    if output.startswith(_NOTES[0]) or _NOTES[1] in output:
        output = _SCAFFOLD_NOTE.sub("", output)
    state.effort.begin(len(command) + len(output))
    state.is_unnamed = False
    walk = Walk(state, COMMANDS, output, exit_code)
    folder = state.folder
    has_drive = folder[1:2] == ":"
    if has_drive or folder[:1] == "/" or not folder:
        walk.variables["PWD"] = folder or "."
    if exit_code == 0 or "sh: " not in output or not _UNPARSED.search(output):
        state.on_windows = state.on_windows or has_drive or is_windows(command)
        line = as_shell(command, on_windows=True) if state.on_windows else command
        walk.run(parse(line, state.effort))
    shown = NOT_FOUND.sub("", output) if walk.missing else output
    reads = tuple(reads_of(walk.shown, shown, state)) if walk.shown else ()
    if shown and any(_is_unnamed(flow, shown, reads) for flow in walk.shown) and not shown.isspace():
        state.is_unnamed = True
    writes = tuple(done.write for done in _completed_writes(walk, output, exit_code)) if walk.written else ()
    # Reads are recorded last: a file that this call created and showed did not exist before.
    for write in writes:
        remember(state, write)
    if writes and reads:
        new = {write.path for write in writes if walk.is_new.get(write.path)}
        reads = tuple(replace(read, rewritten=True) if read.path in new else read for read in reads)
    gone = {write.path for write in writes if write.kind == "delete"} if writes else ()
    for read in reads:
        if read.path not in gone:
            state.note_read(read.path)
            if read.requested is None and read.lines is not None and not read.clipped:
                state.lengths[read.path] = len(read.lines)
    # A command told of a link, if no other one can have printed the output.
    if walk.told is not None and sum(name != "cd" for name in walk.names) == 1:
        state.link(*walk.told)
    if walk.cleaned:
        _clean(state, walk, {write.path for write in writes})
    if state.keeps_folder and UNKNOWN not in walk.folder:
        state.folder = walk.folder
    if output:
        state.note_output(output, state.folder)
        if exit_code == 0 and ("grep" in command or "find " in command or "rg " in command):
            state.note_listing(command, output, folder)
    return Touches(reads, writes)


def _is_unnamed(flow: Flow, shown: str, reads: tuple[FileRead, ...]) -> bool:
    """Return whether a stream showed files without names; a search of several files prints them."""
    return flow.is_unnamed and flow.may_be_in(shown) and not (flow.kind == "search" and reads)


def _clean(state: ShellState, walk: Walk, written: set[str]) -> None:
    """Forget changes that git undid or committed, except those whose undo failed."""
    asked = {done.write.path for done in walk.written}
    for path in walk.cleaned:
        if path in written or path not in asked:
            state.changed.pop(path, None)
            state.created.pop(path, None)


def remember(state: ShellState, write: FileWrite) -> None:
    """Record what a write reveals about a file: its text, and that it differs from the last commit."""
    path = write.path
    state.lengths.pop(path, None)
    if write.kind == "delete":
        state.forget(path)
        if path in state.created:
            state.created.pop(path)
            state.changed.pop(path, None)
        else:
            state.changed[path] = None
        return
    if write.content is not None:
        state.keep_text(path, write.content)
    elif path in state.texts:
        state.keep_text(path, _edited(state.texts[path], write))
    # A file shown before is overwritten, not created.
    if write.kind == "whole" and path not in state.changed and path not in state.shown:
        state.created[path] = None
    state.changed[path] = None
    state.note_file(path)


def _edited(text: str, write: FileWrite) -> str:
    if write.removed is not None and write.added is not None:
        return text.replace(write.removed, write.added, 1)
    # An edit that cannot be reproduced rarely changes which files a script writes, so the old text stays.
    return text + (write.added or "")


def _completed_writes(walk: Walk, output: str, exit_code: int) -> list[ShellWrite]:
    """Return the writes that happened, in order."""
    if exit_code == 0 and not walk.failed and not any(map(output.__contains__, _COMPLAINTS)):
        return walk.written
    done = [done for done in walk.written if not _failed(done, output, exit_code, walk.last_step)]
    done = [one for one in done if one.step not in walk.failed or _is_selective(one, output)]
    return [one for one in done if not _skipped(one.step, walk, output)] if exit_code else done


def _skipped(step: int, walk: Walk, output: str) -> bool:
    """Return whether a command before `&&` reported a failure, so that this one never ran."""
    while step := walk.guards.get(step, 0):
        name = walk.names[step - 1]
        if name in _STRICT and _complains(name, "", output):
            return True
    return False


def _failed(done: ShellWrite, output: str, exit_code: int, last_step: int) -> bool:
    if not done.firm:
        return _refused(done.word, output)
    name = done.command
    if name.startswith("python"):
        if "Traceback (most recent call last)" in output:
            frame = _FRAME.search(output, output.find("Traceback (most recent call last)"))
            return frame is not None and exit_code != 0 and done.line >= int(frame[1])
        if exit_code != 0 and done.step == last_step:
            return True
        return "SyntaxError:" in output and exit_code != 0
    if name in ("sed", "gsed") and _SED_SCRIPT.search(output):
        return exit_code != 0
    if name == "git" and _GIT_REFUSED.search(output):
        return True
    if _complains(name, done.word, output):
        return True
    return exit_code != 0 and done.step == last_step and not _is_selective(done, output)


def _is_selective(done: ShellWrite, output: str) -> bool:
    """Return whether the command reports an error about another file, so that it has processed this one."""
    return done.command != "git" and _complains(done.command, "", output)


def _refused(word: str, output: str) -> bool:
    """Return whether the shell could not open the target of a redirection."""
    index = output.find(f"{word}: ")
    while index >= 0:
        rest = output[index + len(word) + 2 : index + len(word) + 60]
        start = output.rfind("\n", 0, index) + 1
        if rest.startswith(
            ("No such file", "Permission denied", "Is a directory", "Directory nonexistent", "Not a dir")
        ):
            return output[start:index].lstrip().startswith(("bash", "sh", "/bin/", "-bash", "zsh", "cannot create"))
        index = output.find(f"{word}: ", index + 1)
    return False


def _complains(name: str, word: str, output: str) -> bool:
    at = output.find(f"{name}: ") if name != "git" else output.find("error: pathspec")
    while at >= 0:
        end = output.find("\n", at)
        if word in output[at : end if end >= 0 else len(output)] and (at == 0 or output[at - 1] in "\n/"):
            return True
        at = output.find(f"{name}: ", at + 1)
    return False
