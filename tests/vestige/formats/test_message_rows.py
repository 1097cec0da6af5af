"""Rows of messages from several data sets, in JSON lines and Parquet."""

from __future__ import annotations

import pytest

from eirkit.vestige.sources.documents import Skipped
from tests.vestige.formats.logs import as_json, as_lines, only_run, read_with, who_recognizes
from tests.vestige.formats.samples import message_rows as sample
from tests.vestige.formats.samples import write_sample

FORMAT = "message-rows"


@pytest.fixture
def paths(tmp_path):
    return {path.name: path for path in write_sample(FORMAT, tmp_path)}


def called(run):
    return [[(c.tool, dict(c.arguments), c.output, c.exit_code) for c in turn.calls] for turn in run.turns]


@pytest.mark.parametrize("name", ["rebench.jsonl", "rebench.parquet"])
def test_openhands_rows(paths, name):
    run = only_run(FORMAT, paths[name])
    assert (run.run_id, run.task_id, run.resolved, run.exit_status) == ("chatcmpl-1", "owner__repo-1", True, "submit")
    assert (run.submission, run.root, run.source) == (sample.PATCH, "/workspace/repo__1.0", f"{name}:1")
    assert called(run) == [
        [("think", {"thought": "hm"}, "Your thought has been logged.", None), ("bash", {"command": "ls"}, "a.py", 0)],
        [("str_replace_editor", {"command": "view", "path": "/x/a.py"}, "1\tx = 1", None)],
    ]


@pytest.mark.parametrize("name", ["coderforge.jsonl", "coderforge.parquet"])
def test_messages_and_calls_as_text(paths, name):
    run = only_run(FORMAT, paths[name])
    assert (run.run_id, run.task_id) == ("owner__repo-2_run1", "images/owner__repo-2")
    assert (run.reward, run.resolved, run.exit_status) == (0.0, False, "stop")
    view = {"command": "view", "path": "/x/a.py", "view_range": [1, 9]}
    assert called(run) == [[("str_replace_editor", view, "1\tx = 1", None)]]
    assert run.turns[0].text == "<think>hm</think>"


def test_rows_of_other_scaffolds(paths):
    swe, mini = read_with(FORMAT, paths["nebius.jsonl"])
    assert (swe.task_id, swe.model, swe.resolved) == ("owner__repo-3", "maker/model-1", False)
    assert swe.prompt.startswith("SETTING\n\nthe issue")
    assert called(swe) == [
        [("open", {"path": "a.py"}, "[File: a.py (9 lines total)]\n1:x", None)],
        [("submit", {}, "", None)],
    ]
    assert swe.turns[0].calls[0].working_folder == "/repo"
    assert called(mini) == [[("bash", {"command": "ls"}, "a.py\n", 0)]]


def test_a_list_of_rows_is_read_as_well(tmp_path):
    path = as_json(tmp_path / "rows.json", [sample.REBENCH, sample.CODERFORGE])
    assert who_recognizes(path) == [FORMAT]
    assert len(read_with(FORMAT, path)) == 2


def test_a_damaged_row_costs_no_other(tmp_path):
    torn, empty = '{"trajectory_id": "x", "trajectory": [{"ro', {"trajectory_id": "x", "messages": "[{"}
    bad = {**sample.REBENCH, "trajectory": [3]}
    items = read_with(FORMAT, as_lines(tmp_path / "r.jsonl", [sample.REBENCH, torn, empty, bad, "[]", sample.REBENCH]))
    assert [isinstance(item, Skipped) for item in items] == [False, True, True, True, True, False]


def test_rows_longer_than_the_beginning_are_recognized(tmp_path):
    long = {**sample.REBENCH["trajectory"][0], "content": "x" * 100_000}
    row = {"messages": [long, *sample.REBENCH["trajectory"]], "instance_id": "owner__repo-1"}
    path = as_lines(tmp_path / "r.jsonl", [row])
    assert who_recognizes(path) == [FORMAT]
    named = {"instance_id": "owner__repo-1", **row}
    assert who_recognizes(as_lines(path, [named])) == [FORMAT]
