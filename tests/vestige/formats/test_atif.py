"""ATIF: copied context, scripted steps, summaries, continuations and sub-agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.audits.instructions import instruction_fates
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.trajectory import LoggedUsage, Recording
from tests.vestige.formats.logs import as_json, only_run, read_with, who_recognizes
from tests.vestige.recorded import recorded

FORMAT = "atif"
Step = dict[str, Any]


def agent(message: str, *calls: Step, results: list[Step] | None = None, **fields: Any) -> Step:
    step: Step = {"source": "agent", "message": message, "tool_calls": list(calls), **fields}
    return step | ({"observation": {"results": results}} if results is not None else {})


def call(id: str, name: str, **arguments: Any) -> Step:
    return {"tool_call_id": id, "function_name": name, "arguments": arguments}


def said(source: str, message: str, **fields: Any) -> Step:
    return {"source": source, "message": message, **fields}


def trajectory(*steps: Step, version: str = "1.5", **fields: Any) -> dict[str, Any]:
    numbered = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
    facts = {"schema_version": f"ATIF-v{version}", "session_id": "s1", "agent": {"name": "x", "model_name": "m"}}
    return {**facts, "steps": numbered, **fields}


@pytest.mark.parametrize("version", [f"1.{minor}" for minor in range(9)])
def test_every_version_is_read(tmp_path: Path, version: str) -> None:
    told = trajectory(said("user", "Go"), agent("Done."), version=version, something_new={"a": 1})
    path = as_json(tmp_path / "t.json", told)
    assert who_recognizes(path) == [FORMAT]
    run = only_run(FORMAT, path)
    assert (run.run_id, run.model, run.prompt, len(run.turns)) == ("s1", "m", "Go", 1)


def test_results_find_their_calls(tmp_path: Path) -> None:
    metrics = {"prompt_tokens": 100, "completion_tokens": 7, "cached_tokens": 60}
    step = agent(
        "Both.",
        call("c1", "execute_bash", command="cat a"),
        call("c2", "view", path="b"),
        results=[
            {"source_call_id": "c2", "content": [{"type": "text", "text": "two"}]},
            {"source_call_id": "c1", "content": "one", "extra": {"is_error": True}},
        ],
        metrics=metrics,
    )
    (turn,) = only_run(FORMAT, as_json(tmp_path / "t.json", trajectory(said("user", "Go"), step))).turns
    assert [(each.tool, each.output, each.failed) for each in turn.calls] == [
        ("bash", "one", True),
        ("view", "two", False),
    ]
    assert turn.usage == LoggedUsage(100, 7, 60)


def test_ids_that_begin_anew_in_every_step_are_other_calls(tmp_path: Path) -> None:
    steps = [
        agent(name, call("call_1", "bash", command=command), results=[{"source_call_id": "call_1", "content": name}])
        for name, command in (("one", "cat a"), ("two", "cat b"), ("three", "cat a"))
    ]
    run = only_run(FORMAT, as_json(tmp_path / "t.json", trajectory(said("user", "Go"), *steps)))
    assert [[(one.arguments["command"], one.output) for one in turn.calls] for turn in run.turns] == [
        [("cat a", "one")],
        [("cat b", "two")],
        [("cat a", "three")],
    ]


def test_typed_commands_with_one_screen_are_one_call(tmp_path: Path) -> None:
    typed = [call("c1", "bash_command", keystrokes="cd x\n"), call("c2", "bash_command", keystrokes="cat a\n")]
    run = only_run(FORMAT, as_json(tmp_path / "t.json", trajectory(agent("", *typed, results=[{"content": "one"}]))))
    (only,) = run.turns[0].calls
    assert (only.tool, only.arguments["command"], only.output) == ("bash", "cd x\ncat a", "one")


def test_commands_spelled_in_the_reply_are_calls(tmp_path: Path) -> None:
    spelled = json.dumps({"analysis": "", "plan": "", "commands": [{"keystrokes": "ls\n", "duration": 0.1}]})
    (turn,) = only_run(
        FORMAT, as_json(tmp_path / "t.json", trajectory(agent(spelled, results=[{"content": "a"}])))
    ).turns
    assert [(each.tool, each.arguments["command"], each.output) for each in turn.calls] == [("bash", "ls", "a")]


def test_copied_and_scripted_steps(tmp_path: Path) -> None:
    metrics = {"prompt_tokens": 10, "completion_tokens": 1}
    told = trajectory(
        said("user", "Go", is_copied_context=True),
        agent("Old.", is_copied_context=True, metrics=metrics),
        agent("", call("c1", "view", path="a"), results=[{"content": "one"}], llm_call_count=0, metrics=metrics),
        agent("New.", llm_call_count=1, metrics=metrics),
    )
    run = only_run(FORMAT, as_json(tmp_path / "t.json", told))
    assert [(len(turn.calls), turn.usage) for turn in run.turns] == [(1, None), (0, LoggedUsage(10, 1))]


@pytest.mark.parametrize(
    "note, broken",
    [
        ({"extra": {"context_management": {"type": "compaction", "boundary": "replace"}}}, "compaction"),
        ({"extra": {"context_management": {"type": "clear"}}}, "clear"),
        ({"observation": {"results": [{"subagent_trajectory_ref": [{"session_id": "s"}]}]}}, "compaction"),
        ({}, None),
    ],
)
def test_a_managed_context_breaks_the_run(tmp_path: Path, note: Step, broken: str | None) -> None:
    told = trajectory(
        said("user", "Go"),
        agent("One."),
        said("system", "Performed context summarization.", **note),
        said("user", "So far: one."),
        agent("Two."),
    )
    run = only_run(FORMAT, as_json(tmp_path / "t.json", told))
    assert [turn.broken for turn in run.turns] == [None, broken]
    assert run.turns[1].carried == ("So far: one." if broken else "")


def test_what_a_summary_made_elsewhere_left_of_the_prompt_is_unknown(tmp_path: Path) -> None:
    reference = {"observation": {"results": [{"subagent_trajectory_ref": [{"session_id": "s"}]}]}}
    steps = [
        said("user", "Never edit a.py."),
        agent("One."),
        said("system", "Performed context summarization.", **reference),
        said("user", "Here are the answers."),
        agent("Two."),
    ]
    run = only_run(FORMAT, as_json(tmp_path / "t.json", trajectory(*steps)))
    assert [one.survival for one in instruction_fates(interpret(run, len))] == ["unknown"]
    told = [said("user", text, is_copied_context=True) for text in ("Never edit a.py.", "Here are the answers.")]
    whole = only_run(FORMAT, as_json(tmp_path / "u.json", trajectory(*steps[:3], *told, agent("Two."))))
    assert [one.survival for one in instruction_fates(interpret(whole, len))] == ["verbatim"]


def test_a_continuation_is_read_with_its_beginning(tmp_path: Path) -> None:
    beginning = trajectory(said("user", "Go"), agent("One."), continued_trajectory_ref="t.cont-1.json")
    rest = trajectory(said("user", "So far: one.", is_copied_context=True), agent("Two."))
    as_json(tmp_path / "t.json", beginning)
    as_json(tmp_path / "t.cont-1.json", rest)
    as_json(tmp_path / "other.cont-1.json", rest)  # its beginning is elsewhere
    runs = list(read_corpus([tmp_path]))
    assert all(isinstance(run, Recording) for run in runs)
    whole = next(run for run in runs if isinstance(run, Recording) and run.source.endswith("/t.json"))
    assert len(runs) == 2
    assert [(turn.text, turn.broken, turn.carried) for turn in whole.turns] == [
        ("One.", None, ""),
        ("Two.", "compaction", "So far: one."),
    ]


def test_a_damaged_continuation_is_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    as_json(tmp_path / "t.json", trajectory(agent("One.")))
    (tmp_path / "t.cont-1.json").write_text('{"schema_version": "ATIF-v1.5", "steps": [')
    damaged, run = read_with(FORMAT, tmp_path / "t.json")
    assert isinstance(damaged, Skipped)
    assert damaged.source == "t.cont-1.json"
    assert isinstance(run, Recording)
    assert len(run.turns) == 1


def test_embedded_sub_agents_are_runs_of_their_own(tmp_path: Path) -> None:
    inner = trajectory(agent("Deep."), version="1.7", trajectory_id="deep")
    child = trajectory(agent("Child."), version="1.7", trajectory_id="child", subagent_trajectories=[inner])
    told = trajectory(agent("Top."), version="1.7", trajectory_id="top", subagent_trajectories=[child, 3])
    runs = read_with(FORMAT, as_json(tmp_path / "t.json", told))
    named = [(run.run_id, run.details.get("parent_run")) for run in runs if isinstance(run, Recording)]
    assert named == [("top", None), ("top/child", "top"), ("top/child/deep", "top/child")]


def test_sub_agents_of_a_continuation_are_runs_too(tmp_path: Path) -> None:
    first, second = (trajectory(agent("Child."), trajectory_id=name) for name in ("a", "b"))
    as_json(tmp_path / "t.json", trajectory(agent("One."), trajectory_id="top", subagent_trajectories=[first]))
    as_json(tmp_path / "t.cont-1.json", trajectory(agent("Two."), trajectory_id="x", subagent_trajectories=[second]))
    runs = read_with(FORMAT, tmp_path / "t.json")
    assert [run.run_id for run in runs if isinstance(run, Recording)] == ["top", "top/a", "top/b"]


def test_what_is_no_step_is_named(tmp_path: Path) -> None:
    told = trajectory(agent("One."))
    told["steps"].append("two")
    odd, run = read_with(FORMAT, as_json(tmp_path / "t.json", told))
    assert isinstance(odd, Skipped)
    assert odd.source == "t.json:step 2"
    assert isinstance(run, Recording)


def test_recorded_trajectories_agree_with_a_separate_count() -> None:
    paths = [path for path in sorted(recorded("atif").glob("*.json")) if b'"ATIF-v' in path.read_bytes()]
    assert len(paths) == 9
    for path in paths:
        steps = [step for part in parts_of(path) for step in part["steps"] if step["source"] == "agent"]
        own = [step for step in steps if not step.get("is_copied_context")]
        run = only_run(FORMAT, path)
        assert len(run.turns) == len(own), path.name
        prompt = sum(step["metrics"]["prompt_tokens"] for step in own)
        assert sum(turn.usage.input_tokens for turn in run.turns if turn.usage) == prompt, path.name
        typed = sum(len(step.get("tool_calls") or spelled_calls(step["message"])) for step in own)
        assert sum(len(turn.calls) for turn in run.turns) == typed, path.name


def parts_of(path: Path) -> list[dict[str, Any]]:
    beside = path.with_suffix("").with_suffix(".trajectory.cont-1.json") if path.name.endswith("y.json") else path
    paths = [path, beside] if beside != path and beside.is_file() else [path]
    return [json.loads(each.read_text()) for each in paths]


def spelled_calls(message: str) -> list[Any]:
    return list(json.loads(message)["commands"]) if message.startswith("{") else []


def test_a_summarized_run_and_its_helpers_use_what_the_file_totals() -> None:
    folder, stem = recorded("atif"), "hello-world-context-summarization.trajectory"
    helpers = [folder / f"{stem}.summarization-1-{kind}.json" for kind in ("summary", "questions", "answers")]
    runs = [only_run(FORMAT, path) for path in (folder / f"{stem}.json", *helpers)]
    total = json.loads((folder / f"{stem}.json").read_text())["final_metrics"]["total_prompt_tokens"]
    assert sum(turn.usage.input_tokens for run in runs for turn in run.turns if turn.usage) == total
    assert [turn.broken for turn in runs[0].turns].count("compaction") == 1


def test_a_reply_that_the_scaffold_refused_is_rejected() -> None:
    run = only_run(FORMAT, recorded("atif") / "hello-world-invalid-json.trajectory.json")
    assert [turn.rejected for turn in run.turns] == [True, False, False, False]
    assert run.turns[0].calls == ()
