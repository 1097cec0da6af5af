"""A model that adds correctly 95% of the time: errors compound, and what it can do at a step is shown beside it."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections import Counter

import pytest

from tests.lacuna.running import eirkit
from tests.lacuna.servers import ModelServer, answers_as
from tests.runs import records

SLIPS = 0.05
TASK = ("stepwise-sum", "--n", "48", "--m", "8", "--h", "8,2", "--seeds", "100:160", "--control")
SHORT = ("stepwise-sum", "--n", "12", "--m", "8", "--h", "4", "--seeds", "0:2", "--control")  # too few steps to tell


@pytest.fixture(scope="module")
def adder():
    """Serves a model that is off by one in 5% of its sums, drawn from the prompt."""
    with ModelServer(answers_as("sloppy", p=str(SLIPS))) as server:
        yield ("--model", "openai/adder", "--base-url", server.url, "--protocol", "text")


@pytest.fixture(scope="module")
def sweep(adder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("adder") / "out"
    assert eirkit("lacuna", "run", *TASK, *adder, "--out", str(folder)) == 0
    return folder


@pytest.fixture(scope="module")
def short(adder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("short") / "out"
    assert eirkit("lacuna", "run", *SHORT, *adder, "--out", str(folder)) == 0
    return folder


def summary_of(folder):
    return json.loads((folder / "summary.json").read_text("utf-8"))


def told(capsys, *words):
    """Return what a command prints in a terminal, without line breaks."""
    capsys.readouterr()
    assert eirkit(*words) == 0
    return " ".join(capsys.readouterr().out.split())


def test_a_run_shows_what_the_model_can_do_at_a_step_beside_what_compounds(sweep, capsys):
    said = told(capsys, "lacuna", "run", "--resume", str(sweep))
    for row in summary_of(sweep)["rows"]:
        # The truth is the server's: 95% of its sums are right, whatever h is. Four standard errors: one seed in 10,000.
        error = math.sqrt(SLIPS * (1 - SLIPS) / row["informed"])
        assert abs(row["informed_accuracy"] - (1 - SLIPS)) < 4 * error
        assert row["informed_low"] < row["informed_accuracy"] < row["informed_high"]
        share = f"{row['informed_accuracy']:.3f} ({row['informed_low']:.2f}–{row['informed_high']:.2f})"
        assert f"{row['accuracy']:.3f}±{row['accuracy_sd']:.3f} {share}" in said
    assert "±: standard deviation over runs; in parentheses: 95% interval." in said
    whole, *_ = summary_of(sweep)["rows"]
    assert whole["h"] == 8
    assert whole["informed_accuracy"] == pytest.approx(0.95, abs=0.01)
    assert whole["accuracy"] == pytest.approx(0.448, abs=0.05), "nothing was missing, and errors compound"


def test_the_page_shows_both(sweep, capsys):
    told(capsys, "report", str(sweep))
    page = (sweep / "report.html").read_text("utf-8")
    assert "Accuracy given right inputs: 95% to 96%." in page
    assert "stepwise-sum, given right inputs" in page
    whole, *_ = summary_of(sweep)["rows"]
    for gate in whole["control"]["gates"]:
        assert f"{gate['estimate']:.3f}" in page
    assert "No model here answers well enough" not in page


def test_both_gates_are_side_by_side_and_only_one_that_ours_fails_is_excluded(sweep):
    whole, *_ = summary_of(sweep)["rows"]
    ours, papers = whole["control"]["gates"]
    assert (ours["measure"], ours["threshold"], ours["verdict"]) == ("informed_accuracy", 0.9, "undecided")
    assert (papers["measure"], papers["threshold"], papers["verdict"]) == ("accuracy", 0.75, "fails")
    assert not whole["claims"]
    assert summary_of(sweep)["excluded"] == []


def test_an_undecided_gate_is_shown_and_marked_and_its_command_decides(short, capsys):
    said = told(capsys, "lacuna", "run", "--resume", str(short))
    (row,) = summary_of(short)["rows"]
    ours, _ = row["control"]["gates"]
    assert (ours["verdict"], row["claims"], ours["is_enough"]) == ("undecided", False, True)
    assert f"95% interval {ours['low']:.3f} to {ours['high']:.3f}" in said
    assert f"run `{ours['command']}`" in said
    assert "withheld" not in said
    told(capsys, "report", str(short))
    page = (short / "report.html").read_text("utf-8")
    assert "is undecided, so this describes and claims nothing about lost information" in page
    assert "answers well enough" not in page
    assert ours["command"] in page
    assert eirkit(*shlex.split(ours["command"])[1:], "--json") == 0
    (cell,) = json.loads(capsys.readouterr().out)["rows"]
    assert cell["gates"][0]["verdict"] == "passes"


def test_a_gate_that_more_seeds_do_not_decide_names_more_of_them(adder, capsys):
    capsys.readouterr()
    task = ("stepwise-sum", "--n", "6", "--windows", "4", "--no-calculator", *adder)
    assert eirkit("lacuna", "capability", *task, "--threshold", "0.95", "--seeds", "0:2", "--json") == 3
    (cell,) = json.loads(capsys.readouterr().out)["rows"]
    first = cell["gates"][0]
    assert eirkit(*shlex.split(first["command"])[1:], "--json") == 3, "its true share is the threshold"
    (cell,) = json.loads(capsys.readouterr().out)["rows"]
    again = cell["gates"][0]
    seeds = [int(re.search(r"--seeds 0:(\d+)", gate["command"])[1]) for gate in (first, again)]
    assert seeds[1] > seeds[0] > 2


def test_what_a_memory_returns_is_at_hand_and_what_it_loses_is_not(tmp_path):
    task = ("store-recall", "--n", "32", "--m", "8", "--h", "4", "--seeds", "0:2", "--model", "reference/recoverer")
    assert eirkit("lacuna", "run", *task, "--memory", "key-value,null", "--out", str(tmp_path / "out")) == 0
    kept, lost = summary_of(tmp_path / "out")["rows"]
    needed = sum(kept["memory_system"]["outcomes"].values())
    assert kept["informed"] - lost["informed"] == needed > 0
    assert (kept["informed_accuracy"], lost["informed_accuracy"]) == (1.0, 1.0), "the agent itself makes no errors"


def test_a_question_counts_where_every_needed_statement_was_shown(tmp_path):
    task = ("words", "--preset", "small+questions=6", "--memory", "text,bm25", "--model", "scripted/reader")
    assert eirkit("lacuna", "run", *task, "--seeds", "0:2", "--no-control", "--out", str(tmp_path / "out")) == 0
    missed = Counter(run.cell for run in records(tmp_path / "out") for _ in run.conversation.missed)
    for row in summary_of(tmp_path / "out")["rows"]:
        assert row["informed"] == row["conversation"]["asked"] - missed[row["cell"]]
