"""The page of analyzed runs: its figures against the tables, its words, and the tests that it repeats."""

import json
from dataclasses import replace

import pytest
from msgspec import structs

from eirkit.records.analysis import BreakTotals, LaterUse, RunRow
from eirkit.report.demo.questions import EXAMPLE, example
from eirkit.report.demo.questions import planted as planted_here
from eirkit.report.folders import page_for
from eirkit.report.html import render
from eirkit.report.logs.analyzed import read_analyzed
from eirkit.report.logs.break_sentences import break_words
from eirkit.report.logs.needs import _bin, _bin_name, demand_chart
from eirkit.report.logs.page import headline_of, page_of, worst_section
from eirkit.report.logs.sentences import bounds
from eirkit.report.table import Table
from eirkit.vestige.corpus.planted_corpus import PlantedCorpus, write_plain
from eirkit.vestige.tables import read_rows
from tests.report.conftest import PLANTED
from tests.report.folders import HOSTILE, make_analysis, write_log
from tests.report.reading_pages import faults, read

ROUNDING = 1e-12  # a mean of a hundred numbers


@pytest.fixture(scope="module")
def page(planted):
    return page_for(planted)


def test_the_headline_is_the_mean_over_covered_runs(planted, page):
    rows = read_rows(planted, RunRow)
    peaks = [row.peak_demand_tokens for row in rows if row.goal_accessed]
    assert page.headline.number == f"{sum(peaks) / len(peaks):,.0f}"
    assert f"{sum(row.resolved for row in rows)} of {len(rows)} with a known outcome succeeded" in " ".join(
        page.headline.sentences
    )


def test_the_area_is_the_share_of_pairs_in_order(planted, page):
    # A second way: compare every failed run with every resolved one.
    everything = read_rows(planted, RunRow)
    rows = [row for row in everything if row.goal_accessed]
    failed = [row.peak_demand_tokens for row in rows if not row.resolved]
    resolved = [row.peak_demand_tokens for row in rows if row.resolved]
    wins = sum((f > r) + (f == r) / 2 for f in failed for r in resolved)
    area = wins / (len(failed) * len(resolved))
    assert read_analyzed(planted, tests=False).auc.estimate == pytest.approx(area, abs=ROUNDING)
    words = " ".join(page.headline.sentences)
    assert f"with probability {area:.2f}" in words
    assert f"{len(everything) - len(rows)} runs are left out" in words


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(0.497, 0.665, "0.497 to 0.665"), (0.52, 0.66, "0.52 to 0.66"), (0.41, 0.5, "0.410 to 0.500")],
)
def test_a_bound_at_a_threshold_is_not_rounded_onto_it(low, high, shown):
    assert bounds(low, high) == shown


def test_a_share_is_of_the_runs_that_can_have_a_goal(planted):
    found = read_analyzed(planted, tests=False)
    sources = {"own-edits": 370}
    known = {"goal_sources": sources, "goal_runs": 370, "covered_runs": 339, "goal_access": 339 / 370}
    mixed = structs.replace(found.summary, runs=690, **known)
    words = " ".join(headline_of(replace(found, summary=mixed)).sentences)
    assert "92% of 370 runs edited a file; of all 690 runs " in words


@pytest.mark.parametrize(
    ("compactions", "clears", "unmeasured", "said"),
    [
        (3, 4, 0, "3 compactions and 4 clears dropped 10 tokens that may have been needed."),
        (
            3,
            4,
            2,
            "3 compactions and 4 clears dropped 10 tokens that may have been needed; not measured for 2 of 7: "
            "no file was used.",
        ),
        (1, 0, 0, "1 compaction dropped 10 tokens that may have been needed."),
        (1, 1, 2, "1 compaction and 1 clear: what they dropped is not measured, since no file was used."),
    ],
)
def test_breaks_without_a_file_are_not_measured(compactions, clears, unmeasured, said):
    counts = dict.fromkeys(BreakTotals.__struct_fields__, 0) | {"compactions": compactions, "clears": clears}
    breaks = BreakTotals(**{**counts, "unmeasured": unmeasured, "dropped_tokens": 10})
    assert break_words(breaks) == said
    if unmeasured < compactions + clears:
        again = break_words(structs.replace(breaks, reread_dropped_tokens=4))
        assert "dropped 10 tokens that may have been needed; 4 of them were read again" in again
    if not unmeasured:
        assert "dropped nothing that may have been needed" in break_words(structs.replace(breaks, dropped_tokens=0))
    if unmeasured < compactions + clears:
        vague = break_words(structs.replace(breaks, dropped_tokens=0, unknown_tokens=5))
        assert (
            "dropped an unknown number of tokens that may have been needed; of 5 tokens the logs do not show" in vague
        )


@pytest.mark.parametrize(
    ("unit", "said"),
    [("entities", "Half of 300 runs held 2 entities"), ("tokens", "Half of 300 runs of three tool turns or more held")],
)
def test_the_headline_says_of_which_runs_half_held_so_much(planted, unit, said):
    found = read_analyzed(planted, tests=False)
    quantiles = LaterUse(300, 2.0, 5.0, 9.0, 1.0, 1.0, 1.0)
    summary = structs.replace(found.summary, runs=310, goal_access=None, later_used={unit: quantiles})
    assert headline_of(replace(found, summary=summary)).sentences[0].startswith(said)


@pytest.mark.parametrize("units", [("tokens",), ("tokens", "entities")])
def test_the_unit_is_a_column_where_there_are_two(planted, units):
    found = read_analyzed(planted, tests=False)
    run = found.summary.largest[0]
    summary = structs.replace(found.summary, largest=tuple(structs.replace(run, unit=unit) for unit in units))
    (table,) = worst_section(replace(found, summary=summary), "x").items
    assert ("unit" in {column.key for column in table.columns}) is (len(units) > 1)


def test_a_page_of_sessions_without_a_goal_draws_no_zero(tmp_path):
    session = {"run_id": "s", "turns": [{"reads": [{"path": "a.py", "tokens": 9}]}, {"reads": []}, {"reads": []}]}
    (tmp_path / "runs.jsonl").write_text(json.dumps(session) + "\n", "utf-8")
    page = page_for(make_analysis(tmp_path / "out", tmp_path / "runs.jsonl"))
    words = " ".join(page.headline.sentences)
    assert page.headline.number == "–"
    assert "none of 1 run edited a file" in words
    titles = [section.title for section in page.sections]
    assert "What had to be kept" not in titles
    assert "Runs to look at first" not in titles


def test_the_distribution_counts_every_run_once(planted):
    found = read_analyzed(planted, tests=False)
    chart = demand_chart(found.runs, "tokens")
    assert sum(count for series in chart.series for count in series.y) == PLANTED.runs
    assert [series.name for series in chart.series] == ["succeeded", "failed"]
    rows = read_rows(planted, RunRow)
    counts = dict(zip(chart.series[1].x, chart.series[1].y, strict=True))
    for name, count in counts.items():
        inside = [row for row in rows if not row.resolved and _bin_name(_bin(row.peak_demand_tokens)) == name]
        assert count == len(inside)


@pytest.mark.parametrize(("value", "name"), [(0, "0"), (1, "1"), (2, "2+"), (3, "2+"), (1024, "1k+"), (1 << 20, "1M+")])
def test_bins_double(value, name):
    assert _bin_name(_bin(value)) == name


def test_every_test_is_shown_or_its_absence_explained(planted, page):
    document = read_analyzed(planted).cohorts
    shown = render(page)
    words = [word for section in page.sections for word in section.words]
    stopped = " ".join(word for word in words if word.startswith("no estimate of "))
    for test in document.tests:
        if test.name.startswith("used-later-"):
            continue
        assert test.name in (shown if test.estimate is not None else stopped)
    assert any("exploratory" in word for word in words)


def test_tests_can_be_left_out(planted):
    titles = {section.title: section for section in page_for(planted, tests=False).sections}
    assert "eirkit vestige cohort" in titles["Tests"].words[0]


def test_the_page_is_in_order_and_the_same_twice(planted, page):
    made = render(page)
    assert faults(made) == []
    assert made == render(page_for(planted))


def test_a_hostile_log_is_shown_inert(tmp_path):
    write_log(tmp_path / "logs", "<img src=x onerror=alert(1)>.jsonl")
    lines = [
        json.dumps(
            {
                "run_id": HOSTILE,
                "goal_files": ["</script><b>.py"],
                "turns": [
                    {"reads": [{"path": "</script><b>.py", "tokens": 9}]},
                    {"reads": [{"path": "</script><b>.py", "tokens": 9}]},
                    {"writes": [{"path": "</script><b>.py", "tokens": 9}]},
                ],
            }
        )
    ]
    (tmp_path / "logs" / "plain.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    made = render(page_for(make_analysis(tmp_path / "out", tmp_path / "logs")))
    assert faults(made) == []
    assert not read(made)[0].all("img")
    assert "\x1b" not in made
    assert "\u202e" not in made


def test_runs_without_outcomes_say_what_is_missing(tmp_path):
    write_log(tmp_path / "logs")
    words = " ".join(page_for(make_analysis(tmp_path / "out", tmp_path / "logs")).headline.sentences)
    assert "not measured" in words
    assert "--outcomes" in words


def test_the_example_run_needs_what_its_log_says():
    run = example().run
    # By hand: before turn 8 live are README (620), __init__ (140), dates (2,480), tests (1,710), locale (3,200) and
    # rules (940), which the edits of rules.py and then dates.py depend on.
    assert (run.peak_cut, run.peak_demand_tokens) == (8, 620 + 140 + 2480 + 1710 + 3200 + 940)
    assert run.dead_read_tokens == 480  # docs/changes.md, read after the last edit
    assert EXAMPLE == "example.jsonl"


def test_the_planted_corpus_shows_what_was_planted():
    found = planted_here()
    assert found.auc.low > 0.5
    assert faults(render(page_of(found, "planted"))) == []


def test_a_cohort_too_small_for_any_test_says_so_in_one_sentence(tmp_path):
    write_plain(PlantedCorpus(2, 1, models=1), 0, tmp_path / "runs.jsonl")
    found = read_analyzed(make_analysis(tmp_path / "analysis", tmp_path / "runs.jsonl"))
    page = page_of(found, "analysis")
    (tests,) = [section for section in page.sections if section.title == "Tests"]
    assert (len(tests.words), tests.items) == (1, ())
    assert tests.words[0].endswith("tests has an estimate.")
    for section in page.sections:
        assert all(item.rows for item in section.items if isinstance(item, Table)), section.title
