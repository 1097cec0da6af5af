"""tau-bench and tau2-bench: runs named by domain, task and trial, outcomes from the reward, damage kept apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eirkit.vestige.demand.entities import task_entities
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.trajectory import LoggedUsage, Recording
from tests.vestige.formats.logs import as_json, read_with, who_recognizes
from tests.vestige.recorded import recorded

TRAJ = [
    {"role": "system", "content": "# Retail agent policy\nBe kind."},
    {"role": "user", "content": "Hello"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "get_order_details", "arguments": '{"order_id": "#W1"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "name": "get_order_details", "content": "Error: order not found"},
    {"role": "assistant", "content": "I am sorry."},
]
TASK = {"user_id": "u_1", "instruction": "You are u_1.", "actions": [{"name": "a", "kwargs": {"order_id": "#W1"}}]}
RUN = {"task_id": 3, "reward": 1.0, "info": {"task": TASK}, "traj": TRAJ, "trial": 2}


def test_a_tau_run(tmp_path: Path) -> None:
    path = as_json(tmp_path / "gpt.json", [RUN, RUN | {"trial": 3, "reward": 0.5}])
    assert who_recognizes(path) == ["tau-bench"]
    run, other = read_with("tau-bench", path)
    assert isinstance(run, Recording)
    assert isinstance(other, Recording)
    assert (run.run_id, run.task_id, run.domain) == ("gpt/retail-3/2", "retail-3", "entities")
    assert (run.resolved, other.resolved, other.run_id) == (True, False, "gpt/retail-3/3")
    assert [(call.tool, call.arguments, call.failed) for call in run.turns[0].calls] == [
        ("get_order_details", {"order_id": "#W1"}, True)
    ]
    assert run.details["actions"] == [{"name": "a", "arguments": {"order_id": "#W1"}}]
    assert run.details["instruction"] == "You are u_1."


def test_a_tau_run_without_its_task_names_no_entities_rather_than_none(tmp_path: Path) -> None:
    told, untold = read_with("tau-bench", as_json(tmp_path / "gpt.json", [RUN, RUN | {"info": {}, "trial": 3}]))
    assert isinstance(told, Recording)
    assert isinstance(untold, Recording)
    assert task_entities(told) is not None
    assert task_entities(untold) is None


def test_damaged_tau_runs_cost_themselves_alone(tmp_path: Path) -> None:
    failed = {"task_id": 4, "reward": 0.0, "info": {"error": "Timeout\ntrace"}, "traj": [], "trial": 0}
    path = as_json(tmp_path / "gpt.json", [RUN, failed, 7, RUN | {"traj": [3]}, RUN | {"trial": 9}])
    found = read_with("tau-bench", path)
    assert [type(each) for each in found] == [Recording, Skipped, Skipped, Skipped, Recording]
    assert isinstance(found[1], Skipped)
    assert found[1].source == "gpt.json:2"
    assert "Timeout" in found[1].reason


def message(role: str, content: str | None, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "tool_calls": None, **fields}


def flat(id: str, name: str, requestor: str, **arguments: Any) -> dict[str, Any]:
    return {"id": id, "name": name, "arguments": arguments, "requestor": requestor}


SIMULATION = {
    "id": "sim",
    "task_id": "5",
    "trial": 1,
    "reward_info": {"reward": 0.0},
    "termination_reason": "user_stop",
    "messages": [
        message("assistant", "Hi!"),
        message("user", None, tool_calls=[flat("u1", "toggle_data", "user")]),
        {"id": "u1", "role": "tool", "content": "on", "requestor": "user", "error": False},
        message("user", "It is on."),
        message(
            "assistant",
            None,
            tool_calls=[flat("c1", "get_line", "assistant", line_id="L1"), flat("c2", "get_bill", "assistant")],
            usage={"prompt_tokens": 9, "completion_tokens": 2},
        ),
        {"id": "c2", "role": "tool", "content": "no", "requestor": "assistant", "error": True},
        {"id": "c1", "role": "tool", "content": "{}", "requestor": "assistant", "error": False},
    ],
}
INFO = {
    "num_trials": 1,
    "user_info": {"llm": "u"},
    "agent_info": {"llm": "gpt-x"},
    "environment_info": {"domain_name": "telecom", "policy": "Be kind."},
}
TASKS = [
    {
        "id": "5",
        "user_scenario": {"instructions": {"known_info": "You are Ann.", "unknown_info": None}},
        "evaluation_criteria": {
            "actions": [flat("1", "get_line", "assistant", line_id="L1"), flat("2", "toggle_data", "user")]
        },
    }
]


def test_a_tau2_simulation(tmp_path: Path) -> None:
    broken = SIMULATION | {"messages": None}
    path = as_json(tmp_path / "x.json", {"info": INFO, "tasks": TASKS, "simulations": [broken, SIMULATION]})
    assert who_recognizes(path) == ["tau2-bench"]
    skipped, run = read_with("tau2-bench", path)
    assert isinstance(skipped, Skipped)
    assert skipped.source == "x.json:1"
    assert isinstance(run, Recording)
    assert (run.run_id, run.model, run.resolved, run.prompt) == ("x/telecom-5/1", "gpt-x", False, "Be kind.")
    assert (len(run.turns), run.turns[1].usage) == (2, LoggedUsage(9, 2))
    assert [(call.tool, call.output, call.failed) for call in run.turns[1].calls] == [
        ("get_line", "{}", False),
        ("get_bill", "no", True),
    ]
    assert run.details["actions"] == [{"name": "get_line", "arguments": {"line_id": "L1"}}]
    assert run.details["instruction"] == "You are Ann."


@pytest.mark.parametrize("folder, format, runs", [("tau-bench", "tau-bench", 300), ("tau2-bench", "tau2-bench", 20)])
def test_recorded_runs_agree_with_a_separate_count(folder: str, format: str, runs: int) -> None:
    ids: set[str] = set()
    for path in sorted(recorded(folder).glob("*.json")):
        told = json.loads(path.read_text())
        expected = told["simulations"] if isinstance(told, dict) else told
        assert who_recognizes(path) == [format]
        for source, run in zip(expected, read_with(format, path), strict=True):
            assert isinstance(run, Recording)
            messages = source.get("traj") or source["messages"]
            replies = [each for each in messages if each["role"] == "assistant"]
            assert len(run.turns) == len(replies)
            assert sum(len(turn.calls) for turn in run.turns) == sum(
                len(each.get("tool_calls") or ()) for each in replies
            )
            answers = [each["content"] for each in messages if each["role"] == "tool"]
            assert sorted(call.output for turn in run.turns for call in turn.calls) == sorted(answers)
            reward = source["reward"] if "reward" in source else source["reward_info"]["reward"]
            assert run.resolved == (reward >= 1)
            ids.add(run.run_id)
    assert len(ids) == runs
