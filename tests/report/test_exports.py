"""Figures and tables for papers: every kind of chart is drawn, the same bytes each time; tables keep their cells."""

import csv
import io
import re
import shutil
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from eirkit.errors import UsageError
from eirkit.report.document import Axis, Chart, Figure, Headline, Page, Section, Series
from eirkit.report.drawing import METADATA, MOST_NUMBERS, draw, named_places, power, save, shades_of
from eirkit.report.exports import FIGURES, TABLES, WIDTHS, write_figures, write_tables
from eirkit.report.latex import latex_float
from eirkit.report.runs.page import page_of
from eirkit.report.table import Column, Table, one_line
from tests.processes import completed

NAMES = ("a name of some length", "b", "$x_1$ & more")
CHARTS = {
    "line": (Axis("x"), (Series("a", "line", (1.0, 2.0, 3.0), (1.0, None, 3.0), (0.5, None, 2.0), (2.0, None, 4.0)),)),
    "step": (Axis("x", low=0.0, high=4.0), (Series("a", "step", (1.0, 2.0), (1.0, 3.0), dashed=True),)),
    "log": (Axis("x", "log"), (Series("a", "points", (1.0, 10.0, 100.0), (1.0, 2.0, 3.0)),)),
    "points": (
        Axis("x", "category"),
        (Series("a", "points", NAMES, (0.1, 0.2, 0.3), (0.0, 0.1, 0.2), (0.2, 0.3, 0.4)),),
    ),
    "bars": (Axis("x", "category"), tuple(Series(n, "bars", ("p", "q"), (1.0, 2.0)) for n in "ab")),
    "names": (Axis("x", "category"), tuple(Series(n, "bars", NAMES, (1.0, None, 2.0)) for n in "ab")),
    "cells": (Axis("x", "category"), (Series("v", "cells", ("p", "q"), ("r", "s"), value=(1.0, None)),)),
    "rule": (
        Axis("x"),
        (Series("a", "line", (0.0, 1.0), (0.0, 1.0)), Series("r", "rule", (0.5,)), Series("h", "rule", (0.0,), (0.5,))),
    ),
}


def chart(name: str) -> Chart:
    axis, series = CHARTS[name]
    return Chart(name, f"chart {name}", "alt", axis, Axis("y", percent=name == "points"), series)


@pytest.mark.parametrize("name", CHARTS)
def test_every_kind_of_chart_is_drawn(tmp_path, name):
    text = save(chart(name), tmp_path / f"{name}.svg").read_text("utf-8")
    assert text.count("<svg") == 1
    assert len(text) > 4_000  # axes alone are more


@pytest.mark.parametrize("ending", METADATA)
def test_equal_charts_give_equal_bytes(tmp_path, ending):
    figure = Figure("f", "panels", (chart("line"), chart("bars"), chart("cells"), chart("names")))
    first, second = (save(figure, tmp_path / f"{n}{ending}").read_bytes() for n in "ab")
    assert first == second


@pytest.mark.parametrize("width", WIDTHS)
def test_a_figure_has_the_width_that_papers_ask_for(tmp_path, width):
    figure = Figure("f", "panels", (chart("line"), chart("bars"), chart("points")))
    page = Page("t", Headline("", "", ()), (Section("s", (), (figure, chart("names"))),))
    for path in write_figures(page, tmp_path, "svg", width):
        points = float(re.search(r'<svg[^>]* width="([\d.]+)pt"', path.read_text("utf-8"))[1])
        assert points == pytest.approx(72 * WIDTHS[width])


def test_the_data_of_every_chart_is_written(tmp_path):
    figure = Figure("f", "panels", (chart("line"), chart("bars")))
    page = Page("t", Headline("", "", ()), (Section("s", (), (figure, chart("points"))),))
    written = write_figures(page, tmp_path, "csv")
    assert [path.name for path in written] == ["f-line.csv", "f-bars.csv", "points.csv"]
    assert [path.read_text("utf-8") for path in written] == [chart(name).csv() for name in ("line", "bars", "points")]


def test_marks_at_the_ends_of_an_axis_are_drawn_whole():
    from matplotlib.figure import Figure as Canvas

    for top, is_clipped in ((1.0, False), (1.5, True)):
        place = Canvas().subplots()
        series = Series("a", "points", (1.0, 2.0), (0.0, top))
        draw(place, Chart("c", "c", "alt", Axis("x"), Axis("y", low=0.0, high=1.0, percent=True), (series,)))
        assert [line.get_clip_on() for line in place.lines] == [is_clipped]


def test_a_table_for_a_paper_has_a_caption_and_a_label():
    table = Table("by_h", "Accuracy & h", (Column("a", "a"),), ({"a": 1},), "95% intervals.")
    lines = latex_float(table).splitlines()
    assert lines[3:5] == [r"\caption{Accuracy \& h. 95\% intervals.}", r"\label{tab:by-h}"]
    assert (lines[0], lines[1], lines[-1]) == (r"% wants \usepackage{booktabs}", r"\begin{table}", r"\end{table}")


def wide_tables():
    """Tables that are too wide in every way: long texts, paths and hashes, many columns, long headings."""
    said = "What restoring missed records does, measured over all worlds, and why nothing else can be concluded from it"
    texts = tuple({"a": "reference/calculator", "b": f"{said} {n}", "c": "0f" * 32, "d": n / 7} for n in range(3))
    yield Table("texts", said, tuple(Column(key, f"{key} {said[:30]}") for key in "abcd"), texts)
    many = [Column(f"k{n}", f"returned with another value {n}", percent=True) for n in range(20)]
    rows = tuple({"w": "stepwise-sum", "h": h, **{one.key: 1.0 for one in many}} for h in (2, 4, 8))
    yield Table("many", "Many & more", (Column("w", "workload"), Column("h", "h"), *many), rows)
    yield Table("word", "One word", (Column("a", "unbroken_" * 12),), ({"a": "b"},))
    yield Table("none", "No columns", (), ({},))
    marks = ({"a": "[1, 2]", "b": "*"}, {"a": "*[2pt]", "b": "[x]"})
    yield Table("marks", "[Marks]*", (Column("a", "[a]"), Column("b", "*b")), marks)


def test_a_table_that_is_too_wide_is_divided_with_what_names_its_rows():
    _, many, *_ = wide_tables()
    text = latex_float(many)
    parts = text.count(r"\begin{tabular}{")
    assert parts > 1
    assert text.count("stepwise-sum") == parts * len(many.rows)
    assert [text.count(rf"stepwise-sum & {h} &") for h in (2, 4, 8)] == [parts] * 3
    assert text.count(r"100.0\%") == 20 * len(many.rows)


def test_no_cell_of_latex_begins_with_an_argument_of_the_line_before():
    *_, marks = wide_tables()
    for text in (marks.latex(), latex_float(marks)):
        assert r"{[}1, 2] & {*} \\" in text
        assert not re.search(r"^[\[*]", text, re.MULTILINE)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX")
def test_wide_tables_fit_papers_of_one_and_of_two_columns(tmp_path):
    *_, none, marks = wide_tables()
    floats = "\n".join([*map(latex_float, wide_tables()), none.latex(), marks.latex()])
    for columns in ("onecolumn", "twocolumn"):
        start = rf"\documentclass[{columns}]{{article}}\usepackage{{booktabs}}\begin{{document}}"
        (tmp_path / "a.tex").write_text("\n".join([start, floats, r"\end{document}"]))
        done = completed(["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "a.tex"], cwd=tmp_path)
        assert (done.returncode, "Overfull" in done.stdout) == (0, False), done.stdout


def test_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"end the name in \.svg, \.png, \.pdf"):
        save(chart("line"), tmp_path / "x.gif")


@pytest.mark.parametrize("high", [5.0, 900.0, 2.0e6, 3.0e10])
def test_a_logarithmic_axis_is_in_plain_words(tmp_path, high):
    """Names may hold dollar signs, so that nothing is read as mathematics; then no label may be written as such."""
    series = Series("a", "points", (1.0, high), (1.0, high))
    drawn = Chart("log", "log", "alt", Axis("x", "log"), Axis("y", "log"), (series,))
    text = save(drawn, tmp_path / "log.svg").read_text("utf-8")
    labels = re.findall(r"<!-- (.*?) -->", text)
    assert not [label for label in labels if "math" in label or "$" in label]
    assert {"1"} < set(labels)


@pytest.mark.parametrize(
    ("value", "words"), [(1e-6, "10⁻⁶"), (0.01, "0.01"), (1.0, "1"), (1000.0, "1,000"), (1e4, "10⁴"), (1e12, "10¹²")]
)
def test_powers_as_people_read_them(value, words):
    assert power(value) == words


@given(st.integers(1, 5000), st.integers(0, 3))
def test_few_numbers_stand_under_a_panel_at_equal_distances(count, first):
    named = named_places(range(first, first + count))
    assert 1 <= len(named) <= MOST_NUMBERS + 1
    assert all(first + position == int(name) for position, name in named.items())
    assert len({b - a for a, b in pairwise(named)}) <= 1


def test_names_are_never_left_out():
    assert len(named_places([f"run {n}" for n in range(40)])) == 40


def test_one_color_means_one_value_in_every_panel():
    """A panel in which everything is right is as light as the right ones of its neighbors."""
    grids = [(0.0, 0.0), (0.0, 2.0)]
    panels = [
        replace(chart("cells"), series=(Series("v", "cells", ("p", "q"), ("r", "r"), value=grid),)) for grid in grids
    ]
    assert shades_of(panels) == (0.0, 2.0)
    assert shades_of(panels[:1]) == (0.0, 1.0)


def test_colors_are_explained_beside_every_panel(tmp_path):
    figure = Figure("f", "panels", (chart("cells"), chart("line"), chart("cells"), chart("line")))
    labels = re.findall(r"<!-- (.*?) -->", save(figure, tmp_path / "f.svg").read_text("utf-8"))
    assert labels.count("v") == 2


def test_stacked_bars_stand_on_each_other(tmp_path):
    _, series = CHARTS["bars"]
    axes = Axis("x", "category"), Axis("y")
    apart, stacked = (Chart("c", "c", "c", *axes, series, stacked=flag) for flag in (False, True))
    assert save(apart, tmp_path / "a.svg").read_bytes() != save(stacked, tmp_path / "b.svg").read_bytes()


def test_a_page_is_exported_whole(tmp_path, chain):
    page = page_of(chain)
    for form in FIGURES[:1]:
        assert len(write_figures(page, tmp_path, form)) == len(page.charts())
    for form in TABLES:
        assert len(write_tables(page, tmp_path, form)) == len(page.tables())
    rows = list(csv.DictReader(io.StringIO((tmp_path / "accuracy-by-cell.csv").read_text("utf-8"))))
    by_h = sorted(chain.rows, key=lambda row: row.h)  # rows of one model stand in the order of h
    assert [float(row["accuracy"]) for row in rows] == [row.accuracy for row in by_h]


@given(st.lists(st.tuples(st.text(max_size=12), st.floats(allow_nan=False)), max_size=5))
def test_csv_gives_back_every_cell(rows):
    table = Table(
        "t", "t", (Column("a", "a"), Column("b", "b")), tuple({"a": text, "b": value} for text, value in rows)
    )
    listed = list(csv.reader(io.StringIO(table.csv(), newline="")))[1:]
    assert [float(line[1]) for line in listed] == [value for _, value in rows]
    # A text that a spreadsheet would take for a formula carries an apostrophe; line ends are all of one kind.
    for (given_text, _), line in zip(rows, listed, strict=True):
        text = given_text.replace("\r\n", "\n").replace("\r", "\n")
        assert line[0] == (f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\n")) else text)


@pytest.mark.parametrize(
    ("cell", "column", "text"),
    [
        (0.0004, Column("p", "p", 3, least=0.001), "< 0.001"),
        (0.5, Column("p", "p", 3, least=0.001), "0.500"),
        (1 / 3, Column("s", "s", 3, percent=True), "33.3%"),
        (None, Column("s", "s"), "–"),
        (True, Column("s", "s"), "yes"),
        (1234567, Column("s", "s"), "1,234,567"),
    ],
)
def test_cells_as_people_read_them(cell, column, text):
    assert column.text(cell) == text


def test_latex_and_markdown_stay_tables():
    table = Table("t", "t", (Column("a|b", "a_b"), Column("n", "n")), ({"a|b": "50% & $x$ | y", "n": 1},))
    assert r"50\% \& \$x\$ | y & 1 \\" in table.latex()
    assert r"| 50% & $x$ \| y | 1 |" in table.markdown()


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), min_size=1, max_size=4))
@example([("a\n\n# H ![x](http://host/x)", "\\|"), ("&lt;b&gt; \\", "| --- |"), ("---", "---:")])
def test_whatever_a_cell_holds_it_stays_one_cell_of_text(rows):
    made = Table("t", "t", (Column("a", "a"), Column("b", "b")), tuple({"a": a, "b": b} for a, b in rows))
    document = MarkdownIt("commonmark").enable("table").parse(made.markdown())
    kinds = {token.type.removesuffix("_open").removesuffix("_close") for token in document}
    assert kinds == {"table", "thead", "tbody", "tr", "th", "td", "inline"}
    cells = [token for token in document if token.type == "inline"][2:]
    assert {child.type for cell in cells for child in cell.children} <= {"text", "text_special"}
    shown = ["".join(child.content for child in cell.children) for cell in cells]
    assert shown == [one_line(text) for row in rows for text in row]
    lines = made.latex().splitlines()
    assert len(lines) == 6 + len(rows)
    assert all(line.endswith(r" \\") for line in lines[4:-2])
