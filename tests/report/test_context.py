"""Accuracy over prompt tokens, and the sentence on whether the whole conversation does without a memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import structs
from studies.prompt_budgets import read_points, write_points

from eirkit.cli import run
from eirkit.records.sweeps import CellRow
from eirkit.report.runs.context import context_chart, context_section, named_rows, points_of, whole_words
from eirkit.report.runs.folder import read_sweep
from tests.runs import records


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("context") / "sweep"
    words = ["lacuna", "run", "conversation", "--preset", "small", "--model", "scripted/reader", "--seeds", "0:2"]
    words += [
        "--memory",
        "bm25,whole,truncated",
        "--budget",
        "tokens=100,tokens=400",
        "--no-control",
        "--out",
        str(out),
    ]
    assert run(words) == 0
    return out


@pytest.fixture(scope="module")
def rows(folder: Path) -> tuple[CellRow, ...]:
    return read_sweep(folder).rows


def changed(row: CellRow, accuracy: float, tokens: float) -> CellRow:
    """Return a row as if it had answered and shown so much."""
    assert row.conversation is not None
    every = structs.replace(row.conversation.abilities[0], accuracy=accuracy)
    retrieval = structs.replace(row.conversation.retrieval, prompt_tokens=tokens)
    told = structs.replace(row.conversation, abilities=(every,), retrieval=retrieval)
    return structs.replace(row, conversation=told)


def said(rows: Sequence[CellRow], whole: tuple[float, float], bm25: Sequence[tuple[float, float]]) -> list[str]:
    text = next(row for row in rows if row.condition == "whole")
    memories = [row for row in rows if row.memory == "bm25"]
    found = [changed(row, *figures) for row, figures in zip(memories, bm25, strict=True)]
    return list(whole_words(named_rows([changed(text, *whole), *found])))


def test_the_sentence_on_the_whole_conversation_is_true_of_its_rows(rows):
    """Compared is the best budget of the best memory, the shorter prompt of two that are as good."""
    (alike,) = said(rows, (1.0, 5_300.4), [(1.0, 1_900.0), (1.0, 7_000.0)])
    assert alike == (
        "With the whole conversation in the prompt (5,300 tokens a question) 100.0% of the answers were right, as "
        "often as with the best memory, bm25 at 100 tokens (100.0%, 1,900 tokens)."
    )
    (better,) = said(rows, (0.99, 5_300.0), [(0.97, 100.0), (0.98, 400.0)])
    assert "99.0% of the answers were right, more often than with the best memory, bm25 at 400 tokens (98.0%" in better
    (cheaper,) = said(rows, (0.9, 300.0), [(0.85, 100.0), (0.95, 400.0)])
    assert "90.0% of the answers were right, less often, but shorter, than with the best memory" in cheaper
    assert said(rows, (0.9, 5_000.0), [(0.85, 100.0), (0.95, 400.0)]) == [], "a memory is needed, so nothing is said"
    assert list(whole_words(named_rows([row for row in rows if row.condition != "whole"]))) == []


def test_the_chart_has_a_line_for_each_memory_and_the_floor(rows, folder):
    chart = context_chart(points_of(named_rows(rows)))
    series = {one.name: one for one in chart.series}
    assert {name: one.mark for name, one in series.items() if one.mark != "rule"} == {
        "bm25": "line", "the whole conversation": "points", "the end of the conversation": "line",
    }  # fmt: skip
    for name, memory, budgets in (
        ("bm25", "bm25", ("tokens=100", "tokens=400")),
        ("the end of the conversation", None, ("tokens=100", "tokens=400")),
        ("the whole conversation", None, ("documented",)),
    ):
        for place, budget in enumerate(budgets):
            condition = {"bm25": "external", "the end of the conversation": "truncated"}.get(name, "whole")
            own = [
                record.conversation
                for record in records(folder)
                if (record.setting.access.memory, record.setting.access.condition, record.setting.access.budget)
                == (memory, condition, budget)
            ]
            characters = [one.characters for told in own for one in told.retrieval]
            counts = [count for told in own for count in told.abilities.values()]
            assert series[name].x[place] == pytest.approx(sum(characters) / len(characters) / 4)
            right = sum(count.right for count in counts) / sum(count.asked for count in counts)
            assert series[name].y[place] == pytest.approx(right)
    (rule,) = [one for one in chart.series if one.mark == "rule"]
    floors = {record.seed: record.conversation.floor_bytes for record in records(folder)}
    assert rule.x[0] == pytest.approx(sum(floors.values()) / len(floors) / 4)


def test_the_page_has_the_section_and_a_single_setting_has_none(folder, rows, tmp_path, capsys):
    assert run(["report", str(folder), "--out", str(tmp_path / "page.html")]) == 0
    assert "Accuracy over prompt tokens" in (tmp_path / "page.html").read_text("utf-8")
    assert context_section(named_rows(rows[:1])) is None


def test_the_figures_of_the_readme_are_those_of_the_study(tmp_path):
    points = read_points()
    write_points(points, tmp_path / "again.csv")
    assert read_points(tmp_path / "again.csv") == points
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    whole = next(point for point in points if point.setting == "whole")
    best = max((point for point in points if point.setting == "bm25"), key=lambda point: point.accuracy)
    assert f"the whole conversation {whole.accuracy:.1%} with {whole.tokens:,.0f} tokens" in readme
    assert f"BM25 {best.accuracy:.1%} with {best.tokens:,.0f}" in readme
    short = next(point for point in points if point.setting == "mem0" and point.budget == "tokens=500")
    assert f"Mem0 {short.accuracy:.1%} with {short.tokens:,.0f}" in readme
