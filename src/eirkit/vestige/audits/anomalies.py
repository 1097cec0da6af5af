"""Recognizes failed tests and edits and repeated commands in outputs (signatures), and samples them for review.

Only explicit summary lines count, and only the end of an output is searched, because runners print their result last
and scaffolds keep the end.

The patterns: an edit that the tool could not apply; a command repeated with the same output although none of its inputs
was written and nothing was dropped from the context; an edit repeated after a failed test; a submission after a failed
test. Failures of the test runner or the machine do not count. A pattern says what happened, never why.
"""

from __future__ import annotations

import json
import re
from typing import Literal, TypeAlias

from eirkit.records.analysis import Anomaly
from eirkit.vestige.trajectory import Call, FileWrite, Recording, Trajectory, Turn

Verdict = Literal["passed", "failed"]

_TAIL = 4_000  # characters at the end of an output that are searched
_DIGITS = 9  # most digits of a number of tests
_NOTICE = 2_000  # characters at its beginning, where edit tools report errors

_RUNNERS = (
    *("pytest", "py.test", "unittest", "nosetests", "runtests", "manage.py test", "setup.py test", "bin/test", "tox"),
    *("jest", "vitest", "mocha", "rspec", "phpunit", "ctest"),
)
_TEST_COMMAND = re.compile(
    r"(?:go|cargo|npm|yarn|pnpm|mvn|gradle|gradlew|make|dotnet|swift|mix|bazel|rake) (?:run )?(?:[\w:-]{0,40} )?test"
    r"|python3?(?:\.\d+)? \S{0,80}test\w{0,40}\.py"
)
# The commands of a line with quoted texts in one piece, and commands that only show a runner's name.
_PARTS = re.compile(r"""(?:"(?:[^"\\]++|\\.)*+"?|'[^']*+'?|[^;&|\n"']++)++""", re.DOTALL)
_SHOWING = re.compile(
    r"[\s({!]*(?:\w{1,40}=\S{0,200}\s+){0,9}"
    r"(?:cat|head|tail|nl|less|more|sed|awk|e?grep|rg|ls|wc|echo|printf|which|vim?|pip3?"
    r"|git(?!\s+bisect)|find(?!.* -exec))\b"
)
_COLOR = re.compile(r"\x1b\[[\d;]{0,20}m")
# Summary lines, as plain strings: most outputs are not of tests, and this is faster than a regex.
_FAILED = ("\nFAILED (", "test result: FAILED", "\n--- FAIL:", "\nFAIL\n", "\nFAIL\t", "\nFAILURES!\n")
_PASSED = ("\nOK\n", "\nOK (", "test result: ok", "\nok  \t", " 0 failures")
_FAILED_AFTER_NUMBER = (" failed", " failing", " failure")
_PASSED_AFTER_NUMBER = (" passed", " passing")

# The runner or the machine failed, not a test.
_WORLD = (
    *("command not found", "No such file or directory", "Permission denied", "No space left", "Connection refused"),
    *("timed out", "TimeoutError", "ModuleNotFoundError", "ImportError", "No module named", "could not connect"),
    *("Failed to import test module", " during collection", "no tests ran", "INTERNALERROR", "UsageError"),
    *("unrecognized arguments", "ImproperlyConfigured", "AppRegistryNotReady", "Killed", "MemoryError"),
    *("OperationalError", "externally-managed-environment", "'ascii' codec can't decode"),
)

# Messages of edit tools when the text to replace is missing or ambiguous.
_NOT_APPLIED = re.compile(
    r"No replacement was performed|String to replace not found|did not appear verbatim|has been modified since read"
    r"|matches of the string to replace|Failed to find (?:expected lines|context)|Invalid Context"
    r"|could not find the string|changes have NOT been applied|edit command was not applied|0 occurrences found"
    r"|old_str(?:ing)? not found|File has not been read yet|Failed to edit, "
)
_PATCH_COMMAND = re.compile(r"\bgit (?:-C \S{1,200} )?apply\b|(?:^|[|;&\s])patch\s|\bapply_patch\b")
_PATCH_FAILED = re.compile(
    r"^error: (?:patch failed|corrupt patch|[^\n]{1,300}: patch does not apply)|^Hunk #\d+ FAILED"
    r"|(?<!\d)\d++ out of \d++ hunks? FAILED|^patch: \*{4} (?:malformed|Only garbage)"
    r"|Failed to find (?:expected lines|context)",
    re.MULTILINE,
)


def runner_verdict(command: str, output: str) -> Verdict | None:
    """Return the result of a test run; None for anything else, and if the runner or its environment failed."""
    if not _may_run_tests(command):
        return None
    tail = f"\n{output[-_TAIL:]}\n"
    if not (
        " fail" in tail or "FAIL" in tail or " pass" in tail or "\nOK" in tail or "\nok " in tail or "ult: " in tail
    ):
        return None
    if "\x1b" in tail:
        tail = _COLOR.sub("", tail)
    if any(map(tail.__contains__, _FAILED)) or any(_counted(tail, word) for word in _FAILED_AFTER_NUMBER):
        return "failed" if _runs_tests(command) and not failed_around(tail) else None
    if any(map(tail.__contains__, _PASSED)) or any(_counted(tail, word) for word in _PASSED_AFTER_NUMBER):
        return "passed" if _runs_tests(command) else None
    return None


def _may_run_tests(command: str) -> bool:
    """Return False quickly for most commands that run no tests; the name of a testbed folder is not a test run."""
    at = command.find("test")
    while at >= 0:
        if not command.startswith("bed", at + 4):
            return True
        at = command.find("test", at + 7)
    return "tox" in command or "jest" in command or "mocha" in command or "rspec" in command or "phpunit" in command


def _counted(text: str, word: str) -> bool:
    """Return whether a word follows a number other than 0."""
    at = text.find(word)
    while at >= 0:
        number = text[max(0, at - _DIGITS) : at]
        if number[-1:].isdigit() and number[len(number.rstrip("0123456789")) :].strip("0"):
            return True
        at = text.find(word, at + 1)
    return False


def _runs_tests(command: str) -> bool:
    return any(_names_runner(part) and not _SHOWING.match(part) for part in _PARTS.findall(command))


def _names_runner(command: str) -> bool:
    return any(runner in command for runner in _RUNNERS) or _TEST_COMMAND.search(command) is not None


def failed_around(output: str) -> bool:
    """Return whether an output shows a failure of the machine or a runner."""
    return any(map(output[-_TAIL:].__contains__, _WORLD))


def edit_not_applied(command: str | None, output: str) -> bool:
    """Return whether a tool reports that an edit could not be applied; `command` is set for shell calls only."""
    if command is None:
        return _NOT_APPLIED.search(output[:_NOTICE]) is not None
    tail = output[-_TAIL:]
    if not ("patch" in tail or "FAILED" in tail or "Failed to find" in tail):  # each pattern below has one of these
        return False
    return _PATCH_COMMAND.search(command) is not None and _PATCH_FAILED.search(tail) is not None


_EXCERPT = 400  # characters of evidence
_SHELLS = frozenset(
    {"bash", "execute_bash", "shell", "run", "run_shell_command", "exec_command", "local_shell", "Bash"}
)
_SILENT = frozenset({"think", "finish", "submit", "wait", "done"})  # tools that neither read nor change anything
_SUBMITTING = frozenset({"finish", "submit", "done", "mark_task_complete"})

# A program may read files that its command line does not name, so repeating it may be reasonable.
_PROGRAM = re.compile(
    r"(?:^|[\s;&|(])(?:python[\d.]*|py\.?test|tox|node|npm|npx|yarn|pnpm|make|cmake|cargo|go|ruby|perl|php|java|mvn"
    r"|gradle|bash|sh|git|\./\S)(?=[\s;&|)]|$)"
)

# These undo a change; combined with an edit in one command they may also make one.
_UNDONE = re.compile(r"\bgit (?:checkout|restore|reset|stash|revert)\b")
_EDITING = ("sed -i", "python", "perl", "patch", "apply", "<<")
_SCRIPT = re.compile(r"\b(?:python[\d.]*|bash|sh|perl|node) (?!-)\S{1,200}")  # runs a file, which may have changed

_Key: TypeAlias = tuple[str, ...]


def anomalies(trajectory: Trajectory) -> tuple[Anomaly, ...]:
    """Return all events of a run, by turn."""
    watch = _Watch()
    for turn in trajectory.turns:
        if not turn.recorded.rejected:
            watch.turn(turn)
    watch.end(trajectory.recording)
    return tuple(watch.found)


class _Watch:
    """The part of a run's history that the patterns need."""

    def __init__(self) -> None:
        self.found: list[Anomaly] = []
        self._calls: dict[_Key, tuple[int, str]] = {}  # by command: the turn of its last call, and its output
        self._written: dict[str, int] = {}  # by path: the last turn that wrote it
        self._last_write = self._last_whole = 0  # the last turns that wrote anything, and a whole file
        self._edits: dict[_Key, int] = {}
        self._failed_test: tuple[int, str, str] | None = None  # the last failed test
        self._standing = False  # it was the last test, and only deletions have followed it

    def turn(self, turn: Turn) -> None:
        if turn.recorded.broken is not None:
            self._calls.clear()  # what they showed may be gone, so asking for it again is not in vain
        tests: list[tuple[Call, str]] = []
        for call in turn.recorded.calls:
            command = _shell_command(call)
            self._call(turn, call, command)
            if command is not None and _may_run_tests(command):
                tests.append((call, command))
        for write in turn.writes:
            self._write(turn, write)
        for call, command in tests:
            verdict = runner_verdict(command, call.output)
            if verdict == "failed":
                self._failed_test = (turn.number, *_excerpts(call))
            if verdict is not None:
                self._standing = verdict == "failed"

    def end(self, recording: Recording) -> None:
        if self._standing and self._failed_test is not None and _was_submitted(recording):
            earlier, command, output = self._failed_test
            self.found.append(Anomaly(len(recording.turns), "submit_after_failed_test", earlier, command, output))

    def _call(self, turn: Turn, call: Call, command: str | None) -> None:
        may_patch = command is None or "patch" in command or "apply" in command
        if may_patch and edit_not_applied(command, call.output):
            self.found.append(Anomaly(turn.number, "edit_failure", None, *_excerpts(call)))
        if call.tool in _SILENT:
            return
        key = _key(call)
        before = self._calls.get(key)
        self._calls[key] = (turn.number, call.output)
        if before is None or before[1] != call.output or _failed_around(call, command):
            return
        if self._unchanged(turn, command, before[0]):
            self.found.append(Anomaly(turn.number, "repeated_command", before[0], *_excerpts(call)))

    def _unchanged(self, turn: Turn, command: str | None, since: int) -> bool:
        """Return whether no input was written since the earlier turn; the inputs of a program are unknown."""
        if since == turn.number and turn.writes:
            return False
        if not turn.reads or (command is not None and _PROGRAM.search(command)):
            return self._last_write < since
        return all(self._written.get(read.path, 0) < since for read in turn.reads)

    def _write(self, turn: Turn, write: FileWrite) -> None:
        self._written[write.path] = self._last_write = turn.number
        if write.kind == "delete":
            return
        self._standing = False
        key = _edit_key(turn, write)
        earlier = self._edits.get(key)
        self._edits[key] = turn.number
        if earlier is not None and self._failed_test is not None and earlier <= self._failed_test[0] < turn.number:
            command = _excerpts(turn.recorded.calls[0])[0] if turn.recorded.calls else write.path
            if not self._differs(turn, write, earlier):
                self.found.append(Anomaly(turn.number, "repeated_edit", earlier, command, self._failed_test[2]))
        if write.kind == "whole":
            self._last_whole = turn.number

    def _differs(self, turn: Turn, write: FileWrite, earlier: int) -> bool:
        """Return whether equal commands made different edits: one undid a change, or ran a script rewritten since."""
        if any(_texts(write)):
            return False
        commands = [command for call in turn.recorded.calls if (command := _shell_command(call))]
        rewritten = self._last_whole > earlier
        return any(_takes_back(command) or (rewritten and _SCRIPT.search(command)) for command in commands)


def _shell_command(call: Call) -> str | None:
    if call.tool not in _SHELLS:
        return None
    command = call.arguments.get("command", call.arguments.get("cmd", ""))
    return command if isinstance(command, str) else " ".join(map(str, command)) if isinstance(command, list) else ""


def _failed_around(call: Call, command: str | None) -> bool:
    # A file that is only shown may contain the words of any error.
    ran = call.failed or call.exit_code not in (0, None) or (command is not None and _PROGRAM.search(command))
    return bool(ran) and failed_around(call.output)


def _key(call: Call) -> _Key:
    if len(call.arguments) == 1:
        [(name, value)] = call.arguments.items()
        if isinstance(value, str):
            return call.tool, name, value
    return call.tool, json.dumps(call.arguments, sort_keys=True, default=str)


def _edit_key(turn: Turn, write: FileWrite) -> _Key:
    """Return what identifies an edit: its texts, or the call that made it where the log shows no text."""
    texts = _texts(write)
    if any(texts):
        return write.path, write.kind, *texts
    return write.path, *(part for call in turn.recorded.calls for part in _key(call))


def _takes_back(command: str) -> bool:
    return _UNDONE.search(command) is not None and not any(word in command for word in _EDITING)


def _texts(write: FileWrite) -> tuple[str, str, str]:
    return write.content or "", write.removed or "", write.added or ""


def _was_submitted(recording: Recording) -> bool:
    last = recording.turns[-1].calls[-1].tool if recording.turns and recording.turns[-1].calls else ""
    return bool(recording.submission) or "submit" in recording.exit_status.lower() or last in _SUBMITTING


def _excerpts(call: Call) -> tuple[str, str]:
    command = _shell_command(call)
    given = command if command is not None else f"{call.tool} {_key(call)[-1]}"
    return given[:_EXCERPT], call.output[-_EXCERPT:]
