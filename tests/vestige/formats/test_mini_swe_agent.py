"""mini-SWE-agent 1 and 2, small logs and the recorded ones."""

from __future__ import annotations

import json
import re

import pytest

from eirkit.vestige.formats.mini_swe_agent import fenced_command, read_turns
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.trajectory import LoggedUsage
from tests.vestige.formats.logs import as_json, only_run, read_with
from tests.vestige.formats.samples import mini_swe_agent as sample
from tests.vestige.formats.samples import write_sample
from tests.vestige.recorded import recorded

FORMAT = "mini-swe-agent"


@pytest.fixture
def runs(tmp_path):
    return [only_run(FORMAT, path) for path in write_sample(FORMAT, tmp_path)]


def test_a_run_of_version_one(runs):
    run = runs[0]
    assert (run.run_id, run.task_id, run.model, run.root) == (
        "owner__repo-1",
        "owner__repo-1",
        "maker/model-1",
        "/testbed",
    )
    assert (run.exit_status, run.submission) == ("Submitted", sample.DIFF)
    assert run.prompt == "You work in a shell.\n\nSolve the task."
    look, refused, clipped, stopped, last = run.turns
    assert look.text == "THOUGHT: look."
    assert look.usage == LoggedUsage(100, 7, 40)
    assert [(c.tool, c.arguments, c.output, c.exit_code) for c in look.calls] == [
        ("bash", {"command": "ls pkg"}, "a.py</output>\n", 1)
    ]
    assert refused.rejected
    assert refused.calls == ()
    assert clipped.calls[0].output == "first\n<elided_chars>\n27 characters elided\n</elided_chars>\nlast\n"
    assert (stopped.calls[0].output, stopped.calls[0].exit_code, stopped.calls[0].failed) == ("half\n", None, True)
    assert (last.calls[0].output, last.rejected) == ("", False)


def test_a_run_of_version_two(runs):
    both, refused, last = runs[1].turns
    first, second = both.calls
    assert (first.arguments, first.exit_code, first.failed, first.full_output) == (
        {"command": "cat a.py"},
        -1,
        True,
        None,
    )
    assert (second.exit_code, second.failed) == (0, False)
    assert second.full_output == "first" + "x" * 60 + "last\n"
    assert "27 characters elided" in second.output
    assert (refused.rejected, refused.text, refused.calls) == (True, "no call at all", ())
    assert last.calls[0].output == ""
    assert runs[1].submission == sample.DIFF


def test_a_run_through_the_responses_interface(runs):
    (turn,) = runs[2].turns
    assert (turn.text, turn.usage) == ("Look.", LoggedUsage(30, 4, 0))
    assert [(c.arguments, c.output, c.exit_code) for c in turn.calls] == [({"command": "ls"}, "a.py\n", 0)]
    assert runs[2].task_id == "owner__repo-3"


@pytest.mark.parametrize(
    "text, found, command",
    [
        ("no block", 0, ""),
        ("```bash\nls\n```", 1, "ls"),
        ("```bash \n\n ls -l\n\n```\n", 1, "ls -l"),
        ("```python\nx\n```", 0, ""),
        ("```bash\nls", 0, ""),
        ("```bash\nls\n``` and ```bash\npwd\n```", 2, "ls"),
        ("```mswea_bash_command\nls\n```", 1, "ls"),
    ],
)
def test_blocks_are_counted_as_the_scaffold_counts(text, found, command):
    assert fenced_command(text)[:2] == (found, command)


def test_an_observation_in_other_words_is_kept_as_it_is():
    said = [{"role": "user", "content": "Observation: 3 files"}, {"role": "user", "content": "the end"}]
    reply = {"role": "assistant", "content": "```bash\nls\n```"}
    _, turns = read_turns([reply, said[0], reply, said[1]])
    assert [turn.calls[0].output for turn in turns] == ["Observation: 3 files", ""]


def test_damage_is_named(tmp_path):
    broken = {**sample.V1, "messages": [*sample.V1["messages"], "torn"]}
    assert read_with(FORMAT, as_json(tmp_path / "x.traj.json", broken)) == [
        Skipped("x.traj.json", "message 13 is not a JSON object; repair it or leave the run out")
    ]
    assert isinstance(read_with(FORMAT, as_json(tmp_path / "y.traj.json", {"info": {}}))[0], Skipped)


@pytest.mark.parametrize("name, expected", [("mini-swe-agent-v1", 246), ("mini-swe-agent-v2", 53)])
def test_recorded_runs_agree_with_a_separate_count(name, expected):
    paths = sorted((recorded(name) / "trajs").iterdir())
    assert len(paths) == expected
    for path in paths:
        content, run = json.loads(path.read_bytes()), only_run(FORMAT, path)
        replies = [message for message in content["messages"] if message["role"] == "assistant"]
        assert len(run.turns) == content["info"]["model_stats"]["api_calls"] == len(replies)
        # The scaffold's own pattern and its refusals, counted apart from the reader.
        refusals = sum(
            message["content"].startswith("Please always provide EXACTLY ONE") for message in content["messages"]
        )
        blocks = [len(re.findall(r"```bash\s*\n(.*?)\n```", reply["content"] or "", re.DOTALL)) for reply in replies]
        native = sum(len(reply.get("tool_calls") or []) for reply in replies)
        assert sum(len(turn.calls) for turn in run.turns) == (native or blocks.count(1))
        assert sum(turn.rejected for turn in run.turns) == refusals == (0 if native else len(blocks) - blocks.count(1))
        assert run.submission == content["info"]["submission"]
        assert sum(turn.usage.input_tokens for turn in run.turns) == sum(
            reply["extra"]["response"]["usage"]["prompt_tokens"] for reply in replies
        )
