"""One cause, one name, one share, one color: the same folder on every surface."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from statistics import fmean

import pytest

from eirkit.cli import run
from eirkit.lacuna.findings.measures import CAUSE_MEASURES, KIND_MEASURES, OUTCOME_MEASURES
from eirkit.records.runs import CAUSES, OUTCOMES
from eirkit.report.comparison import compare_folders, comparison_page
from eirkit.report.document import plain_data
from eirkit.report.exports import write_tables
from eirkit.report.folders import page_for
from eirkit.report.glossary import GLOSSARY
from eirkit.report.table import LATEX, share
from eirkit.report.viewer.logs import LogFolders
from eirkit.report.viewer.routes import Viewer
from tests import runs
from tests.report.folders import command, make_remembered, make_sweep

LATER = 4_000_000_000.0  # seconds; long after anything was written
ROUNDING = 1e-9  # of means over a few runs, summed in another order
OLD_NAMES = ("own mistake", "missing state", "never answered", "from an earlier error", "state supply", "out of sight")
# Agents that run out of actions, that lose records, and that have no memory at all.
SWEEPS = {
    "limited": (
        *("--workload", "store-recall", "--m", 8, "--h", 4, "--seeds", "0:3", "--model", "reference/recoverer"),
        *("--memory", "bm25", "--actions", 60, "--no-control"),
    ),
    "lossy": (
        *("--workload", "stepwise-sum", "--m", 8, "--n", 24, "--h", 4, "--seeds", "0:4"),
        *("--model", "reference/recoverer", "--memory", "broken-drops", "--no-control"),
    ),
    "plain": (
        *("--workload", "stepwise-sum", "--m", 8, "--n", 24, "--h", 4, "--seeds", "0:3"),
        *("--model", "reference/sloppy", "--no-control"),
    ),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocabulary")
    for name, how in SWEEPS.items():
        command("lacuna", "run", *how, "--out", folder / name, "--json")
    return folder


def causes_by_hand(folder: Path) -> dict[str, float]:
    """Return the share of scored steps of each cause, mean over runs, from kinds alone: none of our sums is read."""
    kinds = {
        "state_supply": ("missing", "declined", "misinformed"),
        "cascade": ("propagated", "never_submitted"),
        "not_answered": ("unanswered", "unreached"),
        "malformed": ("protocol",),
        "truncated": ("truncated_reply",),
        "undetermined": ("uncertain",),
        "computation": ("correct_inputs", "on_corrupted", "not_fetched"),
    }
    scores = [record.score for record in runs.records(folder)]
    return {
        cause: fmean(sum(score.kinds.get(kind, 0) for kind in of) / score.steps for score in scores)
        for cause, of in kinds.items()
    }


def fates_by_hand(folder: Path) -> dict[str, float]:
    counts = [record.memory.outcomes for record in runs.records(folder) if record.memory is not None]
    needing = [(own, needed) for own in counts if (needed := sum(own.values()))]
    if not needing:
        return {}
    return {outcome: fmean(own.get(outcome, 0) / needed for own, needed in needing) for outcome in OUTCOMES}


def close(found: dict, expected: dict[str, float]) -> bool:
    return {key: found[key] for key in expected} == pytest.approx(expected, abs=ROUNDING)


@pytest.mark.parametrize("name", SWEEPS)
def test_records_and_rows_give_the_share_that_is_counted_by_hand(root, name):
    row = json.loads((root / name / "summary.json").read_text("utf-8"))["rows"][0]
    assert set(row["errors"]) == set(CAUSES)
    assert close(row["error_shares"], causes_by_hand(root / name))
    assert sum(row["errors"].values()) + round(row["accuracy"] * row["steps"]) == row["steps"]
    if row["memory_system"] is not None:
        assert close(row["memory_system"]["outcome_shares"], fates_by_hand(root / name))


@pytest.mark.parametrize("name", SWEEPS)
def test_headline_chart_and_table_of_a_page_agree(root, name):
    page, expected = page_for(root / name), causes_by_hand(root / name)
    first = page.headline.sentences[0]
    for cause in CAUSES:
        told = f"{CAUSE_MEASURES[cause].label} {share(expected[cause])}"
        assert (told in first) == bool(expected[cause])
    assert page.answers.losses.error_shares == pytest.approx(expected, abs=ROUNDING)
    (chart,) = [chart for chart in page.charts() if chart.id == "causes"]
    for series in chart.series:
        one = GLOSSARY[series.measure]
        assert (series.name, series.color) == (one.label, one.color)
        assert series.y == pytest.approx((expected[one.id],), abs=ROUNDING)
        assert f"{one.label} {share(expected[one.id])}" in chart.alt
    assert "share of scored steps" in chart.y.title
    (table,) = [table for table in page.tables() if table.id == "causes-by-cell"]
    titles = {column.key: column.title for column in table.columns}
    assert {cause: titles[cause] for cause in CAUSES} == {one.id: one.label for one in CAUSE_MEASURES}
    assert close(table.rows[0], expected)


@pytest.mark.parametrize("name", ["limited", "lossy"])
def test_fates_of_a_page_agree(root, name):
    page, expected = page_for(root / name), fates_by_hand(root / name)
    (chart,) = [chart for chart in page.charts() if chart.id == "fates"]
    assert {series.measure for series in chart.series} == {fate for fate, value in expected.items() if value}
    for series in chart.series:
        one = OUTCOME_MEASURES[series.measure]
        assert (series.name, series.color) == (one.label, one.color)
        assert series.y == pytest.approx((expected[one.id],), abs=ROUNDING)
    (table,) = [table for table in page.tables() if table.id == "outcomes"]
    assert close(table.rows[0], expected)
    occurred = {one.label for one in OUTCOME_MEASURES if expected.get(one.id)}
    assert {column.title for column in table.columns} >= occurred
    lost = 1 - sum(expected[fate] for fate in ("used", "not_used", "returned", "unclear"))
    assert page.answers.losses.lost_share == pytest.approx(lost, abs=ROUNDING)


@pytest.mark.parametrize("name", SWEEPS)
def test_csv_has_identifiers_and_latex_has_labels(root, name, tmp_path):
    page, expected = page_for(root / name), causes_by_hand(root / name)
    write_tables(page, tmp_path, "csv")
    (line,) = csv.DictReader(io.StringIO((tmp_path / "causes-by-cell.csv").read_text("utf-8")))
    assert {cause: float(line[cause]) for cause in CAUSES} == pytest.approx(expected, abs=ROUNDING)
    write_tables(page, tmp_path, "latex")
    text = (tmp_path / "causes-by-cell.tex").read_text("utf-8").replace(r" \\ ", " ")  # headings of several lines
    for one in CAUSE_MEASURES:
        assert one.label in text
        assert f"{expected[one.id]:.1%}".translate(str.maketrans(LATEX)) in text


@pytest.mark.parametrize("name", SWEEPS)
def test_a_comparison_gives_the_same_names_and_shares(root, name):
    found = compare_folders(root / name, root / name)
    expected = {**causes_by_hand(root / name), **fates_by_hand(root / name)}
    document = plain_data(found.document())
    rows = {one["measure"]: one for one in document["overall"]}
    assert set(rows) <= {one.id for one in GLOSSARY}
    for key, value in expected.items():
        assert (rows[key]["label"], rows[key]["b"]) == (GLOSSARY[key].label, pytest.approx(value, abs=ROUNDING))
    shown = {row["label"]: row["b"] for table in comparison_page(found, root, root).tables() for row in table.rows
             if "label" in row}  # fmt: skip
    assert {key: shown[GLOSSARY[key].label] for key in expected} == pytest.approx(expected, abs=ROUNDING)


@pytest.mark.parametrize("name", SWEEPS)
def test_the_viewer_gives_the_same_names_and_shares(root, name):
    viewer, asked = Viewer(root, LogFolders(), lambda: LATER), {"at": [name]}
    fields = {field.key: field for field in viewer.overview(asked).fields}
    for one in CAUSE_MEASURES:
        assert (fields[one.id].title, fields[one.id].kind) == (one.label, "share")
        assert fields[one.id].meaning == one.description
    rows = viewer.runs(asked).rows
    found = {cause: fmean(row[cause] for row in rows) for cause in CAUSES}
    assert found == pytest.approx(causes_by_hand(root / name), abs=ROUNDING)
    run_page = viewer.run({**asked, "run": [rows[0]["run"]]})
    causes = [step.cause for step in run_page.steps if step.cause]
    assert {cause: causes.count(cause) for cause in CAUSES} == run_page.score.errors


@pytest.mark.parametrize("name", SWEEPS)
def test_the_terminal_gives_the_same_names_and_shares(root, name, capsys):
    expected = causes_by_hand(root / name)
    assert run(["lacuna", "run", "--resume", str(root / name), "--explain"]) == 0
    shown = capsys.readouterr().out
    for one in CAUSE_MEASURES:
        assert (f"{one.label}: {one.meaning}" in " ".join(shown.split())) == bool(expected[one.id])
        assert not expected[one.id] or f"{expected[one.id]:.1%}" in shown
    for one in OUTCOME_MEASURES:
        told = f"{one.label}: {one.meaning}" in " ".join(shown.split())
        assert told == bool(fates_by_hand(root / name).get(one.id))
    assert run(["watch", str(root / name), "--once"]) == 0
    shown = capsys.readouterr().out
    assert all(f"{value:.1%}" in shown for value in expected.values() if value)
    assert run(["compare", str(root / name), str(root / name)]) == 0
    shown = capsys.readouterr().out
    assert all(f"{one.label} " in shown and f"{expected[one.id]:.1%}" in shown for one in CAUSE_MEASURES)
    assert run(["report", str(root / name)]) == 0
    shown += capsys.readouterr().out + (root / name / "report.html").read_text("utf-8")
    assert not [old for old in OLD_NAMES if old in shown.casefold()]


def test_steps_that_no_answer_was_given_to_are_one_cause_of_their_own(root):
    expected = causes_by_hand(root / "limited")
    assert expected["not_answered"] > 0.6
    assert expected["computation"] == expected["state_supply"] == expected["cascade"] == 0
    first = page_for(root / "limited").headline.sentences[0]
    wrong = share(expected["not_answered"])
    assert first.endswith(f"; {wrong} of steps were wrong: {CAUSE_MEASURES['not_answered'].label} {wrong}.")


def test_a_rescue_and_an_analysis_have_the_declared_words(planted, tmp_path):
    rescue = page_for(make_remembered(tmp_path / "rescue", "broken-drops"))
    (chart,) = [chart for chart in rescue.charts() if chart.id == "rescue"]
    assert [(series.measure, series.name) for series in chart.series] == [
        (key, GLOSSARY[key].label) for key in ("control", "sham", "oracle")
    ]
    titles = {column.key: column.title for table in page_for(planted).tables() for column in table.columns}
    declared = {key: title for key, title in titles.items() if key in GLOSSARY and key not in ("failed", "runs")}
    assert {"peak_demand_tokens", "repeat_tokens", "later_used_peak"} <= set(declared)
    assert declared == {key: GLOSSARY[key].heading for key in declared}


def test_every_declared_column_of_a_page_is_called_as_declared(root):
    for name in SWEEPS:
        page = page_for(root / name)
        for table in page.tables():
            for column in table.columns:
                if column.key in GLOSSARY and table.id not in ("eir-pressure",):
                    assert column.title == GLOSSARY[column.key].heading, f"{table.id}: {column.key}"


def test_a_grid_of_cells_names_its_causes_alike(tmp_path):
    page = page_for(make_sweep(tmp_path / "sweep"))
    (chart,) = [chart for chart in page.charts() if chart.id == "causes"]
    met = {series.measure for series in chart.series}
    assert {"state_supply", "computation"} <= met
    assert [(series.name, series.color) for series in chart.series] == [
        (one.label, one.color) for one in CAUSE_MEASURES if one.id in met
    ]


def test_the_ways_in_which_a_step_is_wrong_name_their_causes_as_reports_do():
    for way, cause in (("missing", "state_supply"), ("propagated", "cascade")):
        assert KIND_MEASURES[way].label.startswith(f"{CAUSE_MEASURES[cause].label}, ")
