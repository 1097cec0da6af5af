"""What commands say first, held against the rows below it, and what they propose next, tried.

The truth of a headline is in the tables of the same document: every number must be there or follow from them by one
count, sum or difference, and a superlative must hold in its column. A proposed command must be accepted.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import click
import pytest
from click.testing import CliRunner

from eirkit.cli import ROOT
from tests.coding.compactors.planted_sessions import write_sessions
from tests.coding.week.week_home import write_home
from tests.report.folders import make_plain

SEEDS = ("--seeds", "0:6", "--no-control")
NUMBERS = ("stepwise-sum", "--n", "12", "--m", "6")
LOOKUPS = ("store-recall", "--n", "12", "--m", "6", "--h", "2", "--model", "reference/recoverer")
TOLD = ("words", "--preset", "small", "--model", "scripted/reader")
# In the order in which they are run: later ones read the folders of earlier ones.
COMMANDS: Mapping[str, Sequence[str]] = {
    "one setting": ("lacuna", "run", *NUMBERS, "--h", "2", "--model", "reference/calculator", *SEEDS, "--out", "one"),
    "several h": ("lacuna", "run", *NUMBERS, "--h", "2,4,6", "--model", "reference/calculator", *SEEDS, "--out", "h"),
    "memories": ("lacuna", "run", *LOOKUPS, "--memory", "text,bm25,null", *SEEDS, "--out", "memories"),
    "conversations": ("lacuna", "run", *TOLD, "--memory", "text,bm25,null", *SEEDS, "--out", "told"),
    "two conversations": ("lacuna", "run", *TOLD, "--memory", "text,bm25", "--seeds", "0:2", "--out", "two"),
    "rescue": ("lacuna", "rescue", *NUMBERS, "--h", "2", "--model", "reference/calculator", *SEEDS, "--out", "rescue"),
    "rescue of conversations": ("lacuna", "rescue", *TOLD, "--memory", "bm25", *SEEDS, "--out", "rescued"),
    "capability": (
        "lacuna",
        "capability",
        *NUMBERS,
        "--seeds",
        "0:3",
        "--model",
        "reference/calculator",
        "--out",
        "able",
    ),
    "probe": ("lacuna", "probe", "stepwise-sum", "--n", "24", "--seeds", "0:3", "--model", "reference/recoverer"),
    "audit": ("lacuna", "audit", "--instances", "2"),
    "choose over h": ("choose", "h"),
    "choose over memories": ("choose", "memories"),
    "choose over conversations": ("choose", "told"),
    "choose of too few": ("choose", "two"),
    "report of h": ("report", "h"),
    "report of memories": ("report", "memories"),
    "report of conversations": ("report", "told"),
    "report of a rescue": ("report", "rescue"),
    "report of a capability": ("report", "able"),
    "compare": ("compare", "h", "one"),
    "show": ("show", "memories"),
    "compact": ("vestige", "compact", "logs", "--context-tokens", "600,1200", "--at", "every:5", "--out", "compact"),
    "report of a compaction": ("report", "compact"),
    "analysis": ("vestige", "analyze", "plain/runs.jsonl", "--out", "analysis"),
    "one run": ("show", "analysis", "run-000"),
    "report of an analysis": ("report", "analysis"),
    "week": ("week", "--until", "2026-11-16T20:00:00"),
    "curve": ("eir", "curve", "running-max", "--n", "8", "--m", "4"),
    "simulation": ("lacuna", "simulate", "stepwise-sum", "--n", "16", "--m", "8", "--h", "4", "--seeds", "0:4"),
}
OFTEN = {"0", "1", "95", "100"}  # bounds of shares, the level of intervals
UNDECIDED = 3  # exit code of a control that decides nothing
_NUMBER = re.compile(r"(?<![\w.:/-])[+−]?\d[\d,]*(?:\.\d+)?")
_SUPERLATIVE = re.compile(r"\b(best|most|highest|largest|least|fewest|lowest|worst)\b")
_BEST, _LEAST = {"best", "most", "highest", "largest"}, {"least", "fewest", "lowest", "worst"}


@dataclass(frozen=True)
class Shown:
    """What one command printed: its words, and its tables."""

    command: Sequence[str]
    text: str
    tables: Sequence[Sequence[Mapping[str, str]]]  # with full precision
    data: object

    @property
    def headline(self) -> str:
        """The first paragraph without commands and paths."""
        return " ".join(re.sub(r"`[^`]*`", "", self.text.partition("\n\n")[0]).split())

    @property
    def body(self) -> str:
        return re.sub(r"\nnext: .*", "", self.text.partition("\n\n")[2])

    @property
    def proposed(self) -> list[str]:
        """Every command of eirkit that is proposed, as the last line or within the text."""
        flat = " ".join(self.text.partition("\nnext: ")[0].split())
        inside = [found for found in re.findall(r"`(eirkit [^`]*)`", flat) if not re.search(r"\b[A-Z]{3,}\b|…", found)]
        return [*inside, *re.findall(r"^next: (eirkit .*)$", self.text, re.M)]

    def columns(self) -> Iterator[list[float]]:
        for table in self.tables:
            for key in table[0] if table else ():
                yield [float(row[key]) for row in table if _is_number(row.get(key))]

    def known(self) -> set[float]:
        """Numbers of the tables, of the rest of the text and of the data, and what one step makes of a column."""
        known = {_value(found) for found in _NUMBER.findall(self.body)}
        known |= {_value(found) for word in self.command for found in _NUMBER.findall(word)}
        known |= set(_numbers(self.data))
        for column in self.columns():
            known |= {*column, sum(column), float(len(column))}
            known |= {abs(a - b) for a, b in combinations(column, 2)}
            known |= {sum(column) / len(column)} if column else set()
        for table in self.tables:
            known |= {float(len(table))}
            known |= {float(sum(row[key] != "" for row in table)) for key in (table[0] if table else ())}
            for row in table:
                found = [float(cell) for cell in row.values() if _is_number(cell)]
                known |= {a / b for a in found for b in found if b}
        return known


def _is_number(text: str | None) -> bool:
    return bool(text) and re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", text or "") is not None


def _value(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def _numbers(data: object) -> Iterator[float]:
    if isinstance(data, (int, float)):
        yield float(data)
    elif isinstance(data, dict):
        yield float(len(data))
        for value in data.values():
            yield from _numbers(value)
    elif isinstance(data, list):
        yield float(len(data))
        for value in data:
            yield from _numbers(value)


def call(words: Sequence[str]) -> tuple[int, str]:
    done = CliRunner().invoke(ROOT, list(words), catch_exceptions=False)
    return done.exit_code, done.stdout


def show(words: Sequence[str]) -> Shown:
    code, text = call(words)
    assert code in (0, UNDECIDED), (words, text)
    again = list(words)
    if "--out" in words and words[1] != "compact":
        place = words.index("--out")
        again[place + 1] += "-again"
    tables = list(_tables(call([*again, "--format", "csv"])[1]))
    if "--out" in words and words[1] != "compact":
        again[place + 1] += "-2"
    return Shown(words, text, tables, json.loads(call([*again, "--json"])[1]))


def _tables(text: str) -> Iterator[list[dict[str, str]]]:
    for part in re.split(r"\n\n(?=#)|\A", text):
        lines = [line for line in part.splitlines() if not line.startswith("# ")]
        yield list(csv.DictReader(io.StringIO("\n".join(lines))))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterable[dict[str, Shown]]:
    folder = tmp_path_factory.mktemp("headlines")
    write_sessions(folder / "logs", ["ada", "ben", "cleo", "dora", "emil", "fay"])
    make_plain(folder / "plain")
    write_home(folder / "home", 1_794_646_800.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "500")
        patch.setenv("HOME", str(folder / "home"))
        patch.setenv("EIRKIT_HOME", str(folder / "own"))
        for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME"):
            patch.delenv(name, raising=False)
        yield {name: show(words) for name, words in COMMANDS.items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_number_of_a_headline_is_in_the_rows(corpus, name):
    shown = corpus[name]
    assert shown.headline
    known = {scaled for value in shown.known() for scaled in (value, 100 * value, 100 - 100 * value)}
    for found in _NUMBER.findall(shown.headline):
        digits = len(found.partition(".")[2])
        half = 0.500001 * 10**-digits
        near = any(abs(abs(value) - abs(_value(found))) <= half for value in known)
        assert near or found in OFTEN, f"{found} in “{shown.headline}” is nowhere below it"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_superlative_of_a_headline_holds_in_its_column(corpus, name):
    shown = corpus[name]
    for sentence in re.split(r"(?<=[a-z\d)])[.;] ", shown.headline):
        word = _SUPERLATIVE.search(sentence)
        if word is None or re.search(r"at (most|least)", sentence):
            continue
        assert any(_is_extreme(word[0], sentence, table) for table in shown.tables) or not _NUMBER.search(sentence), (
            sentence
        )


def _is_extreme(word: str, sentence: str, table: Sequence[Mapping[str, str]]) -> bool:
    """Return True if a row that the sentence names has the extreme of a column, and the sentence gives its value."""
    said = set(_NUMBER.findall(sentence))
    for key in table[0] if table else ():
        rows = [row for row in table if _is_number(row.get(key))]
        values = [float(row[key]) for row in rows]
        if not values:
            continue
        ends = {max(values), min(values)} if word in _BEST | _LEAST else set()
        for row in rows:
            named = any(
                f"{name} = {cell}" in sentence if _is_number(cell) else cell in sentence
                for name, cell in row.items()
                if cell
            )
            value = float(row[key])
            given = any(
                abs(scaled - _value(one)) <= 0.500001 * 10 ** -len(one.partition(".")[2])
                for one in said
                for scaled in (value, 100 * value)
            )
            if named and given and value in ends:
                return True
    return False


def test_a_superlative_that_the_rows_refute_is_found():
    table = [{"compactor": "keep-last", "kept": "0.46"}, {"compactor": "random", "kept": "0.555"}]
    table.append({"compactor": "none", "kept": "0.1"})
    assert not _is_extreme("most", "keep-last keeps the most: 46%", table)
    assert _is_extreme("most", "random keeps the most: 55.5%", table)


def parsed(line: str) -> click.Context:
    """Return the context of a command line, parsed as typed."""
    program, *words = shlex.split(line)
    assert program == "eirkit"
    command: click.Command = ROOT
    context = None
    while isinstance(command, click.Group):
        context = command.make_context(words[0], [], parent=context, resilient_parsing=True)
        found = command.get_command(context, words[0])
        assert found is not None, line
        command, words = found, words[1:]
    return command.make_context(command.name, list(words), parent=context, resilient_parsing="-h" in words)


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_proposed_is_accepted_and_is_not_what_was_run(corpus, name):
    shown = corpus[name]
    for line in shown.proposed:
        context = parsed(line)
        assert shlex.split(line)[1:] != list(shown.command), line
        if line.endswith(" -h"):
            continue
        if any("--dry-run" in parameter.opts for parameter in context.command.params):
            code, _ = call([*shlex.split(line)[1:], "--dry-run"])
            assert code == 0, line
        elif context.command.name in ("report", "choose", "show", "compare"):
            assert call(shlex.split(line)[1:])[0] == 0, line
