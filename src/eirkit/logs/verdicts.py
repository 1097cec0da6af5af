"""Classifies the output of test runners and edit tools: passed, failed, edit not applied, or an infrastructure failure.

Only explicit summary lines count, and only the end of an output is searched, because runners print their result last
and scaffolds keep the end.
"""

from __future__ import annotations

import re
from typing import Literal

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
_PARTS = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|[^;&|\n"'])+""", re.DOTALL)
_SHOWING = re.compile(
    r"[\s({!]*(?:\w{1,40}=\S{0,200}\s+){0,9}"
    r"(?:cat|head|tail|nl|less|more|sed|awk|e?grep|rg|ls|wc|echo|printf|which|vim?|pip3?"
    r"|git(?!\s+bisect)|find(?!.* -exec))\b"
)
_COLOUR = re.compile(r"\x1b\[[\d;]{0,20}m")
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
    r"|old_str(?:ing)? not found"
)
_PATCH_COMMAND = re.compile(r"\bgit (?:-C \S{1,200} )?apply\b|(?:^|[|;&\s])patch\s|\bapply_patch\b")
_PATCH_FAILED = re.compile(
    r"^error: (?:patch failed|corrupt patch|[^\n]{1,300}: patch does not apply)|^Hunk #\d+ FAILED"
    r"|\d+ out of \d+ hunks? FAILED|^patch: \*{4} (?:malformed|Only garbage)|Failed to find (?:expected lines|context)",
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
        tail = _COLOUR.sub("", tail)
    if any(mark in tail for mark in _FAILED) or any(_counted(tail, word) for word in _FAILED_AFTER_NUMBER):
        return "failed" if _runs_tests(command) and not failed_around(tail) else None
    if any(mark in tail for mark in _PASSED) or any(_counted(tail, word) for word in _PASSED_AFTER_NUMBER):
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
    tail = output[-_TAIL:]
    return any(words in tail for words in _WORLD)


def edit_not_applied(command: str | None, output: str) -> bool:
    """Return whether a tool reports that an edit could not be applied; `command` is set for shell calls only."""
    if command is None:
        return _NOT_APPLIED.search(output[:_NOTICE]) is not None
    if "patch" not in command and "apply" not in command:
        return False
    tail = output[-_TAIL:]
    if not ("patch" in tail or "FAILED" in tail or "Failed to find" in tail):  # each pattern below has one of these
        return False
    return _PATCH_COMMAND.search(command) is not None and _PATCH_FAILED.search(tail) is not None
