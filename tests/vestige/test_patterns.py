"""No regular expression that touches a log takes more than linear time: texts built to stall each are matched."""

from __future__ import annotations

import re
from typing import Any

import pytest

from eirkit.logs.shell.effects import shell_touches
from eirkit.logs.shell.state import ShellState
from eirkit.logs.shell.words import Glob
from tests.timing import UNITS_IN_A_SECOND, cost
from tests.vestige.attacks import FoundPattern, TooSlowError, attacks, cpu_limit, modules, patterns_of, seconds

PACKAGES = ("eirkit.logs", "eirkit.bridges", "eirkit.live", "eirkit.show")
LENGTHS = (1024, 8192)
GROWTH = 24  # in a text eight times as long: 8 if a pattern is linear, 64 if it is quadratic
TRIES = (3, 20, 60)
LEAST_SECONDS = 500e-6  # for the longer text; a quadratic pattern takes at least 3 ms on the fastest machine
MADE_LATER = {"eirkit.logs.shell.state"}  # globs of commands, tried below
FOUND = [found for name in PACKAGES for found in patterns_of(list(modules(name)))]
# How these patterns were written when a log of some kilobytes stalled an analysis.
ONCE = (
    r"(?m)^diff (?:--git|--cc|-\w*r?\w*) [^\n]*\n|^--- [^\n]+\n(?=\+\+\+ )",
    r"(?m)^ *(?:inflating|extracting): ([^\n]+?) *$",
    r"(?s)(?<!<)<{6,} ?SEARCH\n(.*?)\n?======+\n(.*?)\n?>>>>>>+ ?REPLACE",
    r"(?m)(?:^|[;{])\s*(?:(?:\d{1,9}|\$|/[^/\n]*/)(?:\s*,\s*(?:\d{1,9}|\$|/[^/\n]*/))?)?\s*w\s+([^\n;}]+)",
    r"\s*NR\s*(>=|>|==)\s*(\d{1,9})(?:\s*&&\s*NR\s*(<=|<)\s*(\d{1,9}))?\s*(?:\{\s*print(?:\s+\$0)?;?\s*\})?\s*",
    r"\{([^{}]*,[^{}]*|-?\d{1,18}\.\.-?\d{1,18})\}",
    r"(?:a+)+b",
    r"(?:a|a)*b",
)


def slow_text(pattern: re.Pattern[Any], method: str) -> Any:
    """Return a text whose time grows faster than its length, at every try; None if there is none."""
    for attack in attacks(pattern):
        short, long = (attack.text(length, pattern) for length in LENGTHS)
        try:
            with cpu_limit(5):  # a linear pattern takes a millisecond
                if seconds(pattern, method, long) >= LEAST_SECONDS and _grows(pattern, method, short, long):
                    return long
        except TooSlowError:
            return long
    return None


def _grows(pattern: re.Pattern[Any], method: str, short: Any, long: Any) -> bool:
    """Compare the shortest times, which a busy machine hardly changes; only what seems slow is measured often."""
    least_short = least_long = float("inf")
    for tries in TRIES:
        for _ in range(tries):
            least_short = min(least_short, seconds(pattern, method, short))
            least_long = min(least_long, seconds(pattern, method, long))
        if least_long < GROWTH * least_short:
            return False
    return True


def test_every_pattern_is_found() -> None:
    """The enumeration sees patterns in modules, in functions and in flags, and nothing hides from it unseen."""
    assert len(FOUND) > 140
    assert {found.place.partition(":")[0] for found in FOUND if not found.methods} == MADE_LATER


@pytest.mark.parametrize("found", [one for one in FOUND if one.methods], ids=lambda found: found.place)
def test_a_pattern_is_linear(found: FoundPattern) -> None:
    for method in sorted(found.methods - {"compile"}):
        text = slow_text(found.pattern, method)
        assert text is None, f"{found.place}: {found.pattern.pattern!r} is slow on {text[:60]!r}… with {method}"


@pytest.mark.parametrize("text", ONCE)
def test_a_pattern_that_stalled_an_analysis_is_caught(text: str) -> None:
    assert any(slow_text(re.compile(text), method) is not None for method in ("findall", "fullmatch"))


@pytest.mark.parametrize("glob", ["*a*a*a*a*a*a*a*a*a*a*a*b", "[a-" * 60, "**/" * 60, "?*" * 90, "{*,a}" * 30])
def test_a_glob_is_matched_in_time(glob: str) -> None:
    state = ShellState(met=dict.fromkeys("a" * 900 + str(number) for number in range(200)))
    assert cost(lambda: state.match(Glob(glob))) < 5 * UNITS_IN_A_SECOND


STALLING = {
    "diff": ("git diff", "diff -" + "a" * 60_000),
    "unzip": ("unzip a.zip", " inflating: a" + " " * 60_000 + "\0"),
    "awk": ("awk 'NR>=1" + " " * 60_000 + "x' a.py", "a\n"),
    "sed": ("sed -n '" + "\n" * 3900 + "w ;' a.py", "a\n"),
    "braces": ("cat {" + "a," * 30_000 + "b", "a\n"),
    "many-braces": ("cat x{" + "a," * 30_000 + "}" + "y" * 30_000, "a\n"),
    "zip": ("zip a.zip b", "=" * 60_000),
}


@pytest.mark.parametrize("name", STALLING)
def test_a_small_log_does_not_stall(name: str) -> None:
    command, output = STALLING[name]
    assert cost(lambda: shell_touches(command, output, 0, ShellState(folder="/repo"))) < 2 * UNITS_IN_A_SECOND
