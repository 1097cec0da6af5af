"""No regular expression that reads foreign text takes more than linear time: texts built to stall each are matched."""

from __future__ import annotations

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import eirkit
from eirkit import extensions
from eirkit.lacuna.conversation.language import load_language
from eirkit.vestige.shell.effects import shell_touches
from eirkit.vestige.shell.state import ShellState
from eirkit.vestige.shell.words import Glob
from tests.timing import UNITS_IN_A_SECOND, cost
from tests.vestige.attacks import FoundPattern, TooSlowError, attacks, cpu_limit, modules, patterns_of, seconds

OWN = "eirkit.testing.selftest"  # reads only what it has written itself
LENGTHS = (1024, 8192)
GROWTH = 24  # in a text eight times as long: 8 if a pattern is linear, 64 if it is quadratic
FIRST, REST = slice(150), slice(150, None)  # of the texts for a pattern, which are drawn in random order
TRIES = 3  # of the short text, before the long one is tried again
MORE_TRIES = (20, 60)
LEAST_SECONDS = (30e-6, 500e-6)  # a quadratic pattern takes at least 45 µs and 3 ms on the fastest machine
# Made at run time: globs and sentences are tried below; the others are single words, escaped.
MADE_LATER = {
    "eirkit.vestige.shell.state": "globs",
    "eirkit.lacuna.conversation.language": "sentences",
    "eirkit.lacuna.models.chat_server": "words",
    "eirkit.lacuna.models.scrubber": "words",
    "eirkit.report.viewer.conversation": "words",
}
ROOT = Path(eirkit.__file__).parents[1]
READERS = [
    path for path in sorted(ROOT.rglob("*.py")) if "selftest" not in path.parts and "re." in path.read_text("utf-8")
]
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


def slow_text(pattern: re.Pattern[Any], method: str, drawn: slice = FIRST) -> Any:
    """Return a text whose time grows faster than its length, at every try; None if there is none."""
    for attack in attacks(pattern)[drawn]:
        short = long = attack.text(LENGTHS[0], pattern)
        try:
            with cpu_limit(0.3):  # a linear pattern takes a millisecond
                if seconds(pattern, method, short) < LEAST_SECONDS[0]:
                    continue
                long = attack.text(LENGTHS[1], pattern)
                taken = seconds(pattern, method, long)
            with cpu_limit(1):
                if taken >= LEAST_SECONDS[1] and _grows(pattern, method, short, long, taken):
                    return long
        except TooSlowError:
            return long
    return None


def _grows(pattern: re.Pattern[Any], method: str, short: Any, long: Any, least_long: float) -> bool:
    """Compare the shortest times, which a busy machine hardly changes; only what seems slow is measured often."""
    least_short = min(seconds(pattern, method, short) for _ in range(TRIES))
    for tries in MORE_TRIES:
        if least_long < GROWTH * least_short:
            return False
        for _ in range(tries):
            least_short = min(least_short, seconds(pattern, method, short))
            least_long = min(least_long, seconds(pattern, method, long))
    return least_long >= GROWTH * least_short


@cache
def patterns() -> dict[str, list[FoundPattern]]:
    """Return the patterns of each file: found once, and not by every process that collects the tests."""
    packages = sorted(extensions.OURS)
    everything = [module for package in packages for module in modules(package) if not module.__name__.startswith(OWN)]
    return {str(module.__file__): list(patterns_of([module])) for module in everything}


def test_every_pattern_is_found() -> None:
    """The enumeration sees what a search of the source for `re.` sees, and knows what is made later."""
    everything = [found for of_file in patterns().values() for found in of_file]
    assert {found.place.partition(":")[0] for found in everything if not found.methods} == MADE_LATER.keys()
    assert {path for path, of_file in patterns().items() if of_file} <= set(map(str, READERS))
    written = sum(
        len(
            re.findall(
                r"\bre\.(?:compile|(?:full)?match|search|find(?:all|iter)|subn?|split)\(", path.read_text("utf-8")
            )
        )
        for path in READERS
    )
    assert len(everything) == written


def test_the_module_re_has_no_other_name() -> None:
    """Under another name, or through another library, a pattern would not be seen."""
    for path in ROOT.rglob("*.py"):
        text = path.read_text("utf-8")
        if not re.search(r"import[^\n]*\bre\b|\bre(?:gex|2)\b", text):
            continue
        for node in ast.walk(ast.parse(text)):
            names = [alias.name for alias in node.names if alias.asname] if isinstance(node, ast.Import) else []
            source = node.module if isinstance(node, ast.ImportFrom) else None
            assert not {"re", "regex", "re2"} & {*names, source}, path


PLANTED = """
import re
from re import IGNORECASE

_INNER = "[a-z]"
NAMED = re.compile(r"(?:x+)+y")
_BUILT = re.compile(rf"(?:{_INNER}+,?)+;", IGNORECASE)
TABLE = {"entry": re.compile(r"\\s*:?\\s*z")}


class Reader:
    pattern = re.compile(r"(?:a|a)*b")

    def read(self, text):
        return re.sub(r"=\\W*$", "", _BUILT.sub("", text))


def reads(text):
    return NAMED.match(text)
"""


def test_a_planted_pattern_is_found_and_caught_wherever_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    path.write_text(PLANTED)
    spec = importlib.util.spec_from_file_location("planted", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = list(patterns_of([module]))
    assert len(found) == PLANTED.count("re.compile(") + PLANTED.count("re.sub(") == 5
    for one in found:
        assert any(slow_text(one.pattern, method) is not None for method in one.methods - {"compile"}), one.pattern


@pytest.mark.parametrize(
    "drawn", [pytest.param(FIRST, id="first"), pytest.param(REST, id="rest", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("path", READERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_pattern_of_a_file_is_linear(path: Path, drawn: slice) -> None:
    for found in patterns().get(str(path), ()):  # none if the file needs a package that is not installed
        for method in sorted(found.methods - {"compile"}):
            text = slow_text(found.pattern, method, drawn)
            assert text is None, f"{found.place}: {found.pattern.pattern!r} is slow on {text[:60]!r}… with {method}"


@pytest.mark.parametrize("text", ONCE)
def test_a_pattern_that_stalled_an_analysis_is_caught(text: str) -> None:
    assert any(slow_text(re.compile(text), method) is not None for method in ("findall", "fullmatch"))


@pytest.mark.parametrize("kind", ["statements", "questions", "others"])
def test_a_sentence_of_a_language_is_looked_for_in_time(kind: str) -> None:
    """They are matched at the beginning of each sentence of a text; the longest of each kind have the most slots."""
    language = load_language()
    groups = getattr(language, kind)
    sentences = [one for group in groups.values() for one in group] if kind != "others" else list(groups)
    for one in sorted(sentences, key=lambda one: -len(one.pattern.pattern))[:4]:
        assert slow_text(one.pattern, "match") is None, one.text


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
