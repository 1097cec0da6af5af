"""SWE-agent in its dialects, small logs and the recorded ones."""

from __future__ import annotations

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.vestige.formats.swe_agent_actions import (
    SweAgentState,
    call_of,
    fenced_action,
    parse_action,
    split_state,
    split_words,
)
from eirkit.vestige.sources.documents import Skipped
from tests.timing import UNITS_IN_A_SECOND, cost
from tests.vestige.formats.logs import as_json, only_run, read_with
from tests.vestige.formats.samples import swe_agent as sample
from tests.vestige.formats.samples import write_sample
from tests.vestige.recorded import recorded

FORMAT = "swe-agent"
LONGEST = 20 * UNITS_IN_A_SECOND  # such a line takes a twentieth of it; a quadratic pattern takes hours


@pytest.fixture
def runs(tmp_path):
    return [only_run(FORMAT, path) for path in write_sample(FORMAT, tmp_path)]


def called(run):
    return [(c.tool, dict(c.arguments), c.failed, c.working_folder) for turn in run.turns for c in turn.calls]


def test_thought_and_action(runs):
    run = runs[0]
    assert (run.run_id, run.root, run.exit_status, run.submission) == (
        "owner__repo-1",
        "/repo",
        "submitted",
        sample.DIFF,
    )
    assert run.prompt == "SETTING\n\na demonstration\n\nthe issue"
    path = "/repo/pkg/a.py"
    assert called(run) == [
        ("open", {"path": "pkg/a.py", "line_number": 3}, False, "/repo"),
        ("edit", {"path": path, "start_line": 1, "end_line": 1, "new_str": "x = 2"}, False, "/repo"),
        ("edit", {"path": path, "start_line": 1, "end_line": 1, "new_str": "x = ("}, True, "/repo"),
        ("bash", {"command": "python -m pytest"}, False, "/repo"),
        ("submit", {}, False, "/repo"),
    ]
    assert run.turns[-1].calls[0].output == ""
    assert run.details["model_stats"]["tokens_sent"] == 1000


def test_function_calling(runs):
    run = runs[1]
    assert (run.task_id, run.model, run.root) == ("owner__repo-2", "maker/model-1", "/testbed")
    assert called(run) == [
        ("bash", {"command": "cd pkg && ls"}, False, None),
        (
            "str_replace_editor",
            {"command": "view", "path": "/testbed/pkg/a.py", "view_range": [1, 20]},
            False,
            "/testbed/pkg",
        ),
        (
            "str_replace_editor",
            {"command": "str_replace", "path": "/testbed/a.py", "old_str": "x = '1'", "new_str": 'x = "2"'},
            False,
            "/testbed/pkg",
        ),
        ("bash", {"command": "str_replace_editor create /testbed/b.py --file_text 'open quote"}, False, "/testbed/pkg"),
        ("submit", {}, False, "/testbed/pkg"),
    ]
    assert run.turns[0].calls[0].output == "a.py\n"


def test_a_bare_history(runs):
    run = runs[2]
    assert called(run) == [("open", {"path": "pkg/a.py"}, False, "/repo"), ("submit", {}, False, "/repo")]
    assert run.turns[0].calls[0].output == "[File: pkg/a.py (9 lines total)]\n1:x = 1"
    assert (run.submission, run.root) == (sample.DIFF, "/repo")


def test_attempts_without_a_choice_are_runs_of_their_own(tmp_path):
    attempts = {"attempts": [sample.OLD, {"trajectory": [3]}, sample.NEW]}
    first, torn, third = read_with(FORMAT, as_json(tmp_path / "a.traj", attempts))
    assert (first.run_id, third.run_id) == ("a#1", "owner__repo-2#3")
    assert torn == Skipped("a.traj:#2", "step 1 is not a JSON object; repair it or leave the run out")


@given(st.lists(st.text("ab '\"\\\n\t$`-=", max_size=8), max_size=4))
def test_words_are_what_a_shell_quoted(words):
    assert split_words(shlex.join(words)) == words


@pytest.mark.parametrize("line", ["it's", 'a "b', "a\\"])
def test_an_open_quote_gives_no_words(line):
    assert split_words(line) is None


@pytest.mark.parametrize(
    "action, expected",
    [
        ("goto 12", ("goto", {"path": "/a", "line_number": 12})),
        ("scroll_down", ("scroll_down", {"path": "/a"})),
        ("create b.py", ("create", {"path": "b.py"})),
        ("insert 'x\ny' 4", ("insert", {"path": "/a", "new_str": "x\ny", "insert_line": 4})),
        ("edit 'a' 'b'", ("edit", {"path": "/a", "old_str": "a", "new_str": "b"})),
        ("search_file foo", ("search_file", {"path": "/a", "pattern": "foo"})),
        ("search_dir foo src", ("search_dir", {"pattern": "foo", "folder": "src"})),
        ("openssl version", ("bash", {"command": "openssl version"})),
        ("str_replace_editor insert /b --insert_line 3 --new_str=--x", None),
    ],
)
def test_actions_of_the_viewer(action, expected):
    if expected is None:
        expected = ("str_replace_editor", {"command": "insert", "path": "/b", "insert_line": 3, "new_str": "--x"})
    assert parse_action(action, "/a") == expected


@pytest.mark.parametrize(
    "answer",
    ["File already exists at: /a.", "No edit history found for /a.", "The parent directory /b does not exist."],
)
def test_a_refused_edit_has_failed(answer):
    call = call_of("str_replace_editor undo_edit /a", answer, SweAgentState(), SweAgentState())
    assert call is not None
    assert call.failed


@pytest.mark.parametrize("piece", ["'\"'\"'", '"\\x', "x", " '", "\\"])
def test_a_long_line_takes_no_time(piece):
    line = "str_replace_editor create /a --file_text " + piece * (1_000_000 // len(piece))
    assert cost(lambda: parse_action(line, None)) < LONGEST


def test_the_state_is_split_off():
    text = "out\n(Open file: n/a)\n(Current directory: /repo)\nbash-$"
    assert split_state(text) == ("out", SweAgentState("/repo", None))
    assert split_state("out") == ("out", SweAgentState())


def test_the_last_block_is_the_action():
    assert fenced_action("see ```\nx\n``` then\n```\nls\n```") == ("see ```\nx\n``` then", "ls\n")
    assert fenced_action("nothing") == ("nothing", "")


def test_recorded_runs_agree_with_a_separate_count():
    paths = sorted(recorded("swe-agent").iterdir())
    assert len(paths) == 3
    for path in paths:
        content, run = json.loads(path.read_bytes()), only_run(FORMAT, path)
        replies = sum(m["role"] == "assistant" and not m.get("is_demo") for m in content["history"])
        steps = content.get("trajectory")
        stated = content.get("info", {}).get("model_stats", {}).get("api_calls", replies)
        assert len(run.turns) == replies == stated == (len(steps) if steps is not None else replies)
        assert all(len(turn.calls) == 1 for turn in run.turns)
