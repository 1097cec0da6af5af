"""Harbor trials: one run for each folder, its outcome from the verifier, its turns from ATIF or from episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.trajectory import LoggedUsage, Recording
from tests.vestige.formats.logs import as_json, only_run, read_with, who_recognizes

FORMAT = "harbor"
ATIF: dict[str, Any] = {
    "schema_version": "ATIF-v1.5",
    "session_id": "s1",
    "agent": {"name": "terminus-2", "model_name": "m"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "Go"},
        {"step_id": 2, "source": "agent", "message": "Done.", "metrics": {"prompt_tokens": 9, "completion_tokens": 1}},
    ],
}


def trial(folder: Path, **result: Any) -> Path:
    facts = {"id": "1", "task_name": "hello", "trial_name": folder.name, "agent_info": {"name": "x", "version": "1"}}
    as_json(folder / "config.json", {"trial_name": folder.name})
    return as_json(folder / "result.json", facts | result)


def rewarded(reward: float) -> dict[str, Any]:
    return {"verifier_result": {"rewards": {"reward": reward}}, "agent_result": {"n_input_tokens": 9, "cost_usd": 0.1}}


def test_a_job_has_one_run_for_each_trial(tmp_path: Path) -> None:
    job = tmp_path / "jobs" / "2026-01-01__00-00-00"
    as_json(job / "result.json", {"id": "1", "n_total_trials": 2, "stats": {"n_trials": 2}})
    as_json(job / "config.json", {"job_name": "x"})
    (job / "job.log").write_text("started")
    for name, reward in (("hello__a1", 1.0), ("hello__b2", 0.0)):
        trial(job / name, **rewarded(reward))
        as_json(job / name / "agent" / "trajectory.json", ATIF)
        as_json(job / name / "agent" / "command-0" / "log.json", {"x": 1})
    runs = list(read_corpus([tmp_path / "jobs"]))
    assert all(isinstance(run, Recording) for run in runs), runs
    told = [
        (run.run_id, run.task_id, run.format, run.resolved, run.reward) for run in runs if isinstance(run, Recording)
    ]
    assert told == [("hello__a1", "hello", "harbor", True, 1.0), ("hello__b2", "hello", "harbor", False, 0.0)]


def test_a_trial_in_atif(tmp_path: Path) -> None:
    ended = {"exception_info": {"exception_type": "AgentTimeoutError", "exception_message": "x"}}
    path = trial(tmp_path / "hello__a1", **rewarded(0.5), **ended)
    as_json(tmp_path / "hello__a1" / "agent" / "trajectory.json", ATIF)
    as_json(tmp_path / "hello__a1" / "agent" / "trajectory.cont-1.json", ATIF)
    assert who_recognizes(path) == [FORMAT]
    run = only_run(FORMAT, path)
    assert (run.prompt, run.model, run.exit_status, run.resolved) == ("Go", "m", "AgentTimeoutError", False)
    assert [(turn.text, turn.broken) for turn in run.turns] == [("Done.", None), ("Done.", "compaction")]
    assert run.details["agent_result"] == {"n_input_tokens": 9.0, "cost_usd": 0.1}


def test_the_trajectory_of_a_trial_is_read_alone_wherever_its_schema_stands(tmp_path: Path) -> None:
    """Keys may come in any order, and a long task can put the schema behind what is looked at."""
    task = {"step_id": 1, "source": "user", "message": "Go" * 50_000}
    behind = {"steps": [task, *ATIF["steps"][1:]], "agent": ATIF["agent"], "schema_version": "ATIF-v1.5"}
    for number, content in enumerate((ATIF, behind, {key: ATIF[key] for key in ("agent", "steps")})):
        path = as_json(tmp_path / str(number) / "agent" / "trajectory.json", content)
        assert who_recognizes(path) == ["atif"]
        (run,) = read_corpus([path])
        assert isinstance(run, Recording)
        assert [turn.text for turn in run.turns] == ["Done."]


def test_sub_agents_of_a_trial_are_runs_of_their_own_without_its_outcome(tmp_path: Path) -> None:
    deep = ATIF | {"trajectory_id": "deep"}
    child = ATIF | {"trajectory_id": "child", "subagent_trajectories": [deep]}
    path = trial(tmp_path / "hello__a1", **rewarded(1.0))
    as_json(tmp_path / "hello__a1" / "agent" / "trajectory.json", ATIF | {"subagent_trajectories": [child]})
    runs = [run for run in read_with(FORMAT, path) if isinstance(run, Recording)]
    assert [(run.run_id, run.task_id, run.resolved, run.details.get("parent_run")) for run in runs] == [
        ("hello__a1", "hello", True, None),
        ("hello__a1/child", "hello", None, "hello__a1"),
        ("hello__a1/child/deep", "hello", None, "hello__a1/child"),
    ]
    assert {(run.format, run.source) for run in runs} == {(FORMAT, runs[0].source)}


@pytest.mark.parametrize(
    "result, text, reward",
    [
        ({"verifier_result": {"reward": 1}}, None, 1.0),
        ({"verifier_result": {"rewards": {"score": 0.25}}}, None, 0.25),
        ({"verifier_result": None}, "1\n", 1.0),
        ({"verifier_result": None}, "unknown", None),
        ({"verifier_result": None}, "nan", None),
        ({"verifier_result": None}, None, None),
    ],
)
def test_where_a_reward_is_found(tmp_path: Path, result: Any, text: str | None, reward: float | None) -> None:
    path = trial(tmp_path / "t__1", **result)
    as_json(tmp_path / "t__1" / "agent" / "trajectory.json", ATIF)
    if text is not None:
        (tmp_path / "t__1" / "verifier").mkdir()
        (tmp_path / "t__1" / "verifier" / "reward.txt").write_text(text)
    run = only_run(FORMAT, path)
    assert run.reward == reward
    assert run.resolved == (None if reward is None else reward >= 1)


def episode(trial_folder: Path, number: int, messages: int, *, results: Any = None) -> None:
    folder = trial_folder / "agent" / "episodes" / f"episode-{number}"
    use = {"type": "tool_use", "id": f"c{number}", "name": "bash", "input": {"command": f"ls {number}"}}
    spoken = [{"role": "user", "content": f"Message {place}"} for place in range(messages)]
    as_json(folder / "request.json", {"model": "claude-x", "system": "Be brief.", "messages": spoken})
    usage = {"input_tokens": 10, "output_tokens": 2}
    as_json(folder / "response.json", {"content": [{"type": "text", "text": str(number)}, use], "usage": usage})
    answer = [{"type": "tool_result", "tool_use_id": f"c{number}", "content": f"out {number}"}]
    as_json(folder / "tool-results.json", answer if results is None else results(answer))


def test_a_trial_in_episodes(tmp_path: Path) -> None:
    folder = tmp_path / "t__1"
    path = trial(folder, **rewarded(1))
    for number, messages in ((1, 1), (2, 3), (9, 5), (10, 2), (11, 4)):
        episode(folder, number, messages, results=(lambda answer: {"results": answer}) if number == 2 else None)
    as_json(folder / "agent" / "compactions" / "compaction-1.json", {"summary": "So far."})
    run = only_run(FORMAT, path)
    assert [turn.text for turn in run.turns] == ["1", "2", "9", "10", "11"]  # 10 comes after 9
    assert [turn.calls[0].output for turn in run.turns] == ["out 1", "out 2", "out 9", "out 10", "out 11"]
    assert [(turn.broken, turn.carried) for turn in run.turns][3] == ("compaction", "So far.")
    assert [turn.broken for turn in run.turns].count(None) == 4
    assert (run.model, run.prompt, run.turns[0].usage) == ("claude-x", "Be brief.\n\nMessage 0", LoggedUsage(10, 2))


def test_a_damaged_episode_costs_itself_alone(tmp_path: Path) -> None:
    folder = tmp_path / "t__1"
    path = trial(folder, **rewarded(1))
    episode(folder, 1, 1)
    episode(folder, 2, 3)
    (folder / "agent" / "episodes" / "episode-1" / "response.json").write_text("{")
    damaged, run = read_with(FORMAT, path)
    assert isinstance(damaged, Skipped)
    assert damaged.source == "agent/episodes/episode-1/response.json"
    assert isinstance(run, Recording)
    assert [turn.text for turn in run.turns] == ["2"]


def test_a_trial_without_turns_says_so(tmp_path: Path) -> None:
    path = trial(tmp_path / "t__1", **rewarded(1))
    (nothing,) = read_with(FORMAT, path)
    assert isinstance(nothing, Skipped)
    assert "agent/trajectory.json" in nothing.reason


def test_links_out_of_the_trial_are_not_followed(tmp_path: Path) -> None:
    elsewhere = as_json(tmp_path / "elsewhere" / "trajectory.json", ATIF)
    path = trial(tmp_path / "t__1", **rewarded(1))
    (tmp_path / "t__1" / "agent").mkdir()
    (tmp_path / "t__1" / "agent" / "trajectory.json").symlink_to(elsewhere)
    (nothing,) = read_with(FORMAT, path)
    assert isinstance(nothing, Skipped)
