"""Which of the writes that a command asks for did not happen, by its exit code and by what its parts complained of."""

from __future__ import annotations

import re

from eirkit.logs.shell.walk import ShellWrite, Walk

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

# Commands that end badly whenever they complain.
_STRICT = frozenset({"rm", "cp", "mv", "sed", "cat", "cd", "mkdir", "touch", "ln", "head", "tail", "ls", "patch"})


def happened(walk: Walk, output: str, exit_code: int) -> list[ShellWrite]:
    """Return the writes that happened, in order."""
    if exit_code == 0 and not any(word in output for word in _COMPLAINTS):
        return walk.written
    done = [done for done in walk.written if not _failed(done, output, exit_code, walk.last_step)]
    return [one for one in done if not _skipped(one.step, walk, output)] if exit_code else done


def _skipped(step: int, walk: Walk, output: str) -> bool:
    """True if a command before `&&` failed by its own words, so that this one never ran."""
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
        return _python_failed(done, output, exit_code, last_step)
    if name in ("sed", "gsed") and _SED_SCRIPT.search(output):
        return exit_code != 0
    if name == "git" and _GIT_REFUSED.search(output):
        return True
    if _complains(name, done.word, output):
        return True
    # A command that complains of one of its files has dealt with the others.
    selective = name != "git" and _complains(name, "", output)
    return exit_code != 0 and done.step == last_step and not selective


def _refused(word: str, output: str) -> bool:
    """True if the shell could not open the target of a redirection."""
    place = output.find(f"{word}: ")
    while place >= 0:
        rest = output[place + len(word) + 2 : place + len(word) + 60]
        start = output.rfind("\n", 0, place) + 1
        if rest.startswith(
            ("No such file", "Permission denied", "Is a directory", "Directory nonexistent", "Not a dir")
        ):
            return output[start:place].lstrip().startswith(("bash", "sh", "/bin/", "-bash", "zsh", "cannot create"))
        place = output.find(f"{word}: ", place + 1)
    return False


def _complains(name: str, word: str, output: str) -> bool:
    at = output.find(f"{name}: ") if name != "git" else output.find("error: pathspec")
    while at >= 0:
        end = output.find("\n", at)
        if word in output[at : end if end >= 0 else len(output)] and (at == 0 or output[at - 1] in "\n/"):
            return True
        at = output.find(f"{name}: ", at + 1)
    return False


def _python_failed(done: ShellWrite, output: str, exit_code: int, last_step: int) -> bool:
    """A program that was stopped by an error did what stands before the line that raised it."""
    if "Traceback (most recent call last)" in output:
        frame = _FRAME.search(output, output.find("Traceback (most recent call last)"))
        return frame is not None and exit_code != 0 and done.line >= int(frame[1])
    if exit_code != 0 and done.step == last_step:
        return True
    return "SyntaxError:" in output and exit_code != 0
