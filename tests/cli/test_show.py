"""`eirkit show`: one step, the wrong steps of a run, and errors in one line."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from eirkit.cli import run as command_line
from eirkit.report.viewer.logs import LogFolders
from eirkit.report.viewer.routes import Viewer
from tests import runs
from tests.report.folders import command, make_probe, make_rescue


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("show") / "out"
    grid = ("--workload", "stepwise-sum", "--memory", "broken-drops,broken-labels", "--model", "reference/recoverer")
    command("lacuna", "run", *grid, "--m", 8, "--n", 16, "--h", 3, "--seeds", "0:3", "--no-control", "--out", out)
    return out


def said(capsys, *words: object, code: int = 0) -> str:
    capsys.readouterr()
    assert command_line([str(word) for word in words]) == code
    printed = capsys.readouterr()
    return printed.err if code else printed.out


def data(capsys, *words: object) -> dict:
    return json.loads(said(capsys, *words, "--json"))


def test_without_a_step_the_wrong_ones_are_listed(folder, capsys):
    for record in runs.records(folder):
        found = data(capsys, "show", folder, record.run)
        assert len(found["wrong"]) == record.score.steps - record.score.correct
        text = said(capsys, "show", folder, record.run)
        assert all(len(line) <= 80 for line in text.splitlines() if not line.startswith("next: "))
        if found["wrong"]:
            assert text.splitlines()[-1] == f"next: eirkit show {folder} {record.run} {found['wrong'][0]['t']}"


def test_a_step_reads_as_its_data_and_names_the_others(folder, capsys):
    record = runs.records(folder)[0]
    first = data(capsys, "show", folder, record.run)["wrong"][0]["t"]
    card = data(capsys, "show", folder, record.run, first)
    text = " ".join(said(capsys, "show", folder, record.run, first).split())
    for sentence in (*card["sentences"], card["similar"]["sentence"]):
        assert sentence in text
    for one in card["inputs"]:
        for heading, words in one["lines"]:
            assert f"{heading} {words}" in text
        if one["fate"]:
            assert f"eirkit show {folder} {record.run} {one['step']} # where {one['name']} was given" in text
    for one in card["similar"]["examples"]:
        assert f"eirkit show {folder} {one['run']} {one['t']} # a similar failure" in text


def test_similar_failures_are_counted_over_the_whole_folder(folder, capsys):
    records = runs.records(folder)
    for record in records[::2]:
        for row in data(capsys, "show", folder, record.run)["wrong"][:3]:
            card = data(capsys, "show", folder, record.run, row["t"])
            alike, way = card["similar"], card["way"]
            counts = [{**one.score.kinds, **one.memory.outcomes}.get(way, 0) for one in records]
            assert (alike["count"], alike["runs"], alike["of_runs"]) == (sum(counts), sum(map(bool, counts)), 6)
            for other in alike["examples"]:
                assert data(capsys, "show", folder, other["run"], other["t"])["way"] == way
                assert (other["run"], other["t"]) != (record.run, row["t"])


def test_the_viewer_has_the_same_card(folder, capsys):
    viewer = Viewer(folder, LogFolders(), lambda: 4e9)
    record = runs.records(folder)[1]
    asked = {"at": ["."], "run": [record.run]}
    for row in data(capsys, "show", folder, record.run)["wrong"]:
        told = data(capsys, "show", folder, record.run, row["t"])
        at = {**asked, "t": [str(row["t"])]}
        assert viewer.answer("/api/step", at)["card"] == {key: told[key] for key in viewer_keys(told)}
        assert json.loads(json.dumps(viewer.answer("/api/similar", at)["similar"])) == told["similar"]


def viewer_keys(told: dict) -> list[str]:
    return [key for key in told if key not in ("folder", "run", "similar")]


def test_a_run_is_found_by_its_beginning_and_by_its_seed(folder, tmp_path, capsys):
    name = runs.records(folder)[0].run
    assert data(capsys, "show", folder, f"{name[:4]}…{name[-3:]}")["run"] == name
    out = tmp_path / "out"
    how = ("--model", "reference/calculator", "--n", 12, "--m", 6, "--h", 2, "--seeds", "3:5", "--no-control")
    command("lacuna", "run", "stepwise-sum", *how, "--out", out)
    assert data(capsys, "show", out, "4")["run"] == runs.records(out)[1].run


def test_every_block_of_a_narrow_table_has_the_number_of_the_step(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    name = next(row["run"] for row in data(capsys, "show", folder)["runs"] if row["accuracy"] < 1)
    heads = [line for line in said(capsys, "show", folder, name).splitlines() if "submitted" in line]
    assert len(heads) > 1
    assert all(line.split()[0] == "step" for line in heads)


def test_without_a_run_the_runs_are_listed(folder, capsys):
    found = data(capsys, "show", folder)["runs"]
    told = {record.run: record.score.correct / record.score.steps for record in runs.records(folder)}
    assert {row["run"]: row["accuracy"] for row in found} == told
    assert [row["accuracy"] for row in found] == sorted(told.values())
    assert said(capsys, "show", folder).splitlines()[-1] == f"next: eirkit show {folder} {found[0]['run']}"


def test_runs_are_listed_by_memory_seed_and_fate(folder, capsys):
    of = {record.run: (record.setting.access.memory, record.seed) for record in runs.records(folder)}
    found = data(capsys, "show", folder, "--memory", "broken-drops", "--seeds", "0:2")
    assert {of[row["run"]] for row in found["runs"]} == {("broken-drops", 0), ("broken-drops", 1)}
    assert (found["of"], found["listed"]) == (6, 2)
    fates = {record.run: record.memory.outcomes.get("not_stored", 0) for record in runs.records(folder)}
    for name in ("not_stored", "written, not stored", "Written, not stored"):
        rows = data(capsys, "show", folder, "--only", name)["runs"]
        assert {row["run"]: row["failures"] for row in rows} == {run: count for run, count in fates.items() if count}
    first = rows[0]["run"]
    ways = {row["way"] for row in data(capsys, "show", folder, first, "--only", name)["wrong"]}
    assert ways == {"written, not stored"}
    assert data(capsys, "show", folder, "0", "--memory", "broken-labels")["run"] in of


def test_a_long_list_says_how_much_of_it_is_shown(folder, capsys, monkeypatch):
    monkeypatch.setattr("eirkit.cli.show.LISTED", 2)
    assert "Runs, the least accurate first; 2 of 6, --all lists every one" in said(capsys, "show", folder)
    every = said(capsys, "show", folder, "--all")
    assert "--all" not in every
    assert all(record.run in every for record in runs.records(folder))


def test_similar_failures_of_the_same_memory_come_first(folder, capsys):
    of = {record.run: record.setting.access.memory for record in runs.records(folder)}
    told = 0
    for name, memory in of.items():
        for row in data(capsys, "show", folder, name)["wrong"][:2]:
            alike = data(capsys, "show", folder, name, row["t"])["similar"]
            same = [of[one["run"]] == memory for one in alike["examples"]]
            assert same == sorted(same, reverse=True)
            assert alike["memory"] == memory
            assert f"{alike['of_memory']:,} of them with {memory}" in alike["sentence"]
            told += False in same
    assert told, "no failure has one like it in another memory"


def test_a_rescue_has_cards_too(tmp_path, capsys):
    out = make_rescue(tmp_path / "rescue")
    wrong = [(record.run, data(capsys, "show", out, record.run)["wrong"]) for record in runs.records(out)]
    name, rows = next((name, rows) for name, rows in wrong if rows)
    assert data(capsys, "show", out, name, rows[0]["t"])["similar"]["count"] > 0
    then = said(capsys, "show", out, name).splitlines()[-1]
    assert shlex.split(then) == ["next:", "eirkit", "show", str(out), name, str(rows[0]["t"])]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("{out}", "0"), "several runs of {out} fit '0'; name one of "),
        (("{out}", "nobody"), "no run of {out} is named 'nobody'; name one of "),
        (("{out}", "{run}", "17"), "run {run} has no step 17; give one from 1 to 16"),
        (("{out}", "{run}", "0"), "0 is not in the range"),
        (("{out}/none",), "{out}/none is no folder; give one that"),
        (("{out}", "--memory", "mem0"), "no run of {out} has --memory mem0; known: broken-drops and broken-labels"),
        (("{out}", "--only", "bored"), "no outcome is named 'bored'; runs of {out} have "),
    ],
)
def test_mistakes_are_one_line(folder, capsys, words, expected):
    places = {"out": str(folder), "run": runs.records(folder)[0].run}
    printed = said(capsys, "show", *(word.format(**places) for word in words), code=2)
    assert len(printed.splitlines()) == 1
    assert expected.format(**places) in printed


def test_a_probe_has_no_steps_to_explain(tmp_path, capsys):
    out = make_probe(tmp_path / "probe")
    assert "is a probe, which answers no steps" in said(capsys, "show", out, runs.records(out)[0].run, code=2)
