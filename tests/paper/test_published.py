"""The published figures as data: whole, well-formed, and, where the paper's source is present, equal to it.

The source of the paper is not part of the repository. It is looked for in EIRKIT_PAPER and in ../shared/paper.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from eirkit_paper.published import figures_by_id, half_digit, published_figures, published_models
from eirkit_paper.studies.catalog import BY_ID

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import published  # noqa: E402 - the tool is no module of the package

PAPER = Path(os.environ.get("EIRKIT_PAPER", ROOT.parent / "shared" / "paper" / "paper.tex"))
needs_paper = pytest.mark.skipif(not PAPER.is_file(), reason=f"the paper's source is not at {PAPER}")


def test_every_figure_is_whole():
    figures, models = published_figures(), published_models()
    assert len({figure.id for figure in figures}) == len(figures)
    for figure in figures:
        assert figure.study in BY_ID, figure
        assert figure.rounding > 0
        assert not figure.models or figure.models in models.pools or figure.models in models.names, figure
        assert bool(figure.cells) == bool(figure.measure), figure
        assert not figure.same_as or figure.same_as in figures_by_id(), figure
        assert (figure.low is None) == (figure.high is None)
        assert figure.low is None or figure.low <= figure.value <= figure.high


def test_what_is_not_compared_says_why():
    """A figure of models is computed from cells, or says why it is not."""
    for figure in published_figures():
        assert not figure.models or figure.cells or figure.reason, figure.id


@pytest.mark.parametrize(
    ("text", "half"), [("0.113", 0.0005), ("13", 0.5), ("4.4e4", 500.0), ("22.4%", 0.05), (".541", 0.0005)]
)
def test_a_figure_is_known_to_half_a_unit_of_its_last_digit(text, half):
    assert half_digit(text) == pytest.approx(half)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai/gpt-4.1-mini", "GPT-4.1 Mini"),
        ("openai/gpt-4.1-mini-2025-04-14", "GPT-4.1 Mini"),
        ("anthropic/claude-opus-4-6", "Claude Opus 4.6"),
        ("openrouter/anthropic/claude-haiku-4.5", "Claude Haiku 4.5"),
        ("openai/gpt-5.6", "GPT-5.6"),
        ("openai/gpt-4.1", None),
        ("anthropic/claude-opus-4-5", None),
        ("bundled/lacuna-tiny", None),
    ],
)
def test_models_are_found_by_their_names(model, name):
    assert published_models().find(model) == name


# Numbers of ours that a figure happens to equal: a threshold, quartiles, and what reference agents do.
OUR_OWN = {"0.05", "0.25", "0.75", "0.02", "0.40", "0.37", "0.000"}


def test_no_study_has_a_published_figure_of_its_own():
    """Figures of two or more decimals, or of thousands, stand in the file alone; studies look them up."""
    printed = {
        abs(value)
        for figure in published_figures()
        for value in (figure.value, figure.sd, figure.low, figure.high, figure.p)
        if value is not None
    }
    again = re.compile(r"(?<![\w.,])(?:\d+\.\d{2,}|\d{4,}|\d{1,3}[_,]\d{3}|\d+(?:\.\d+)?e\d+)(?![\w,.]*\d)")
    for path in sorted((ROOT / "src/eirkit_paper/studies").glob("*.py")):
        code = path.read_text("utf-8")
        for number in again.findall(code):
            value = float(number.replace("_", "").replace(",", ""))
            assert number in OUR_OWN or value not in printed, f"{path.name}: {number}; look it up with value_of"


@needs_paper
def test_the_file_is_the_paper():
    assert published.check(PAPER.read_text("utf-8")) == []


@needs_paper
def test_the_check_finds_a_changed_a_missing_and_an_added_number():
    paper = PAPER.read_text("utf-8")
    changed = paper.replace(r"\texttt{ClaudeOpus46}   & 0.176", r"\texttt{ClaudeOpus46}   & 0.177")
    assert changed != paper
    assert len(published.check(changed)) == 2  # printed and not kept; kept and not printed
    swapped = paper.replace("A-MEM & 24/24 & 0.436", "A-MEM & 24/24 & 0.767").replace(
        "Graphiti & 24/24 & 0.767", "Graphiti & 24/24 & 0.436"
    )
    assert published.check(swapped) == ["tab:rq4-extended-architectures: its numbers are in the file in another order"]
    assert published.check(paper.replace("0.487", "0.486"))
    assert published.check(paper.replace(r"\end{tabular}", r"& 0.5 \\ \end{tabular}"))


# An independent count: a scanner that follows braces, where the tool uses patterns.


def scan(source: str, place: int, stop: str) -> tuple[list[list[str]], int]:
    """Return the rows of cells from a place to \\end{tabular}; braces nest and a backslash escapes."""
    rows, cell, depth, row = [], "", 0, []
    while not source.startswith(stop, place):
        two = source[place : place + 2]
        if two == "\\\\" and depth == 0:
            rows.append([*row, cell])
            row, cell, place = [], "", place + 2
        elif source[place] == "&" and depth == 0 and source[place - 1] != "\\":
            row, cell, place = [*row, cell], "", place + 1
        else:
            depth += (source[place] == "{") - (source[place] == "}")
            cell, place = cell + source[place], place + 1
    return rows, place


def value_count(cell: str) -> int:
    """Count the numbers of a cell: runs of digits with their separators, letters and exponents apart."""
    cell = cell.replace("{,}", "").split("cellcolor{red!12}")[-1]
    for power in ("{\\times}10^{", "\\times10^{"):
        cell = cell.replace(power, "e")
    count, inside, previous = 0, False, " "
    for here in cell:
        is_part = here.isdigit() or (here == "." and inside) or (inside and here == "e")
        starts = (here.isdigit() or here == ".") and not inside and not previous.isalpha()
        count += starts
        inside = is_part if inside else starts
        previous = here
    return count


IS_COORDINATE = {
    "tab:rq5-cross": {1},
    "tab:rq2": {0, 1},
    "tab:full-lookup-pressure": {0, 1},
    "tab:rq2-agg-capacity": {1},
}
IN_WORDS = {"tab:lacuna-workloads", "tab:eir-anchors"}  # their cells are formulas and names


def printed_counts(source: str) -> Counter[str]:
    """Return how many numbers each table prints in columns that are not coordinates or names."""
    counts: Counter[str] = Counter()
    label, place = "", 0
    while place < len(source):
        if source.startswith("\\label{tab:", place):
            label = source[place + 7 : source.index("}", place)]
        if source.startswith("\\begin{tabular}", place):
            depth, place = 0, place + len("\\begin{tabular}")
            while True:  # the column types
                depth += (source[place] == "{") - (source[place] == "}")
                place += 1
                if depth == 0:
                    break
            rows, place = scan(source, place, "\\end{tabular}")
            if label not in IN_WORDS:
                names = {0} if label not in ("tab:rq2", "tab:full-lookup-pressure") else set()
                skipped = IS_COORDINATE.get(label, set()) | names
                data = [row for row in rows[1:] if len(row) > 1]  # below the heading
                counts[label] += sum(
                    value_count(cell) for row in data for at, cell in enumerate(row) if at not in skipped
                )
        place += 1
    return counts


@needs_paper
def test_an_independent_count_over_the_tables_is_the_count_of_the_file():
    ours: Counter[str] = Counter()
    for figure in published_figures():
        if figure.place.startswith("tab:") and figure.place not in IN_WORDS:
            ours[figure.place] += figure.numbers + (figure.column == "Scored")  # 12/24 are two numbers
    counted = printed_counts(PAPER.read_text("utf-8"))
    assert counted == ours
    assert len(counted) == 16
    repeated = [figure for figure in published_figures() if figure.same_as and figure.place.startswith("tab:")]
    assert len(repeated) == 24  # Store–Recall and Top-k of four systems, printed in two tables
    assert {figure.place for figure in repeated} == {"tab:rq4-extended-architectures"}
    for figure in repeated:
        assert figure.value == figures_by_id()[figure.same_as].value
