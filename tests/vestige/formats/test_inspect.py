"""Inspect logs: archives, unfinished ones, the single JSON file, scores, usage, attachments and compaction."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.trajectory import LoggedUsage, Recording
from tests.vestige.formats.logs import as_json, only_run, read_with, who_recognizes
from tests.vestige.formats.samples import write_sample
from tests.vestige.recorded import recorded

FORMAT = "inspect"
HEADER = {
    "version": 2,
    "status": "success",
    "eval": {"eval_id": "e1", "run_id": "r1", "task": "suite/task", "task_id": "x", "model": "openai/m"},
}


def call(id: str, function: str, **arguments: Any) -> dict[str, Any]:
    return {"id": id, "function": function, "arguments": arguments, "type": "function"}


def model_event(text: str, *calls: Any, **usage: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "tool_calls": list(calls)}
    return {"event": "model", "input": [], "output": {"choices": [{"message": message}], "usage": usage}}


SAMPLE: dict[str, Any] = {
    "id": "task-1",
    "epoch": 2,
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Go"}]},
        {
            "role": "assistant",
            "content": "Two.",
            "tool_calls": [call("c1", "bash", cmd="ls"), call("c2", "python", code="1")],
        },
        {"role": "tool", "content": "a.py", "tool_call_id": "c1", "function": "bash"},
        {"role": "tool", "content": "", "tool_call_id": "c2", "error": {"type": "timeout", "message": "Too slow"}},
        {"role": "assistant", "content": "Done."},
    ],
    "events": [
        model_event("Two.", input_tokens=10, output_tokens=3, input_tokens_cache_read=4, total_tokens=17),
        model_event("Done.", input_tokens=20, output_tokens=5, input_tokens_cache_read=4, total_tokens=25),
    ],
    "scores": {"includes": {"value": "C"}},
    "model_usage": {"openai/m": {"input_tokens": 30}},
}


def log(path: Path, *samples: Any, header: str = "header.json") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, sample in enumerate(samples, 1):
            text = sample if isinstance(sample, str) else json.dumps(sample)
            archive.writestr(f"samples/{number}_epoch_1.json", text)
        archive.writestr("summaries.json", "[]")
        archive.writestr(header, json.dumps(HEADER))
    return path


@pytest.mark.parametrize("header", ["header.json", "_journal/start.json"])
def test_a_sample_is_a_run(tmp_path: Path, header: str) -> None:
    path = log(tmp_path / "log.eval", SAMPLE, header=header)
    assert who_recognizes(path) == [FORMAT]
    run = only_run(FORMAT, path)
    first, second = run.turns
    assert (run.run_id, run.task_id, run.model) == ("e1/task-1/2", "task-1", "openai/m")
    assert (run.resolved, run.reward, run.prompt) == (True, 1.0, "Be brief.\n\nGo")
    assert [(each.tool, each.arguments, each.output, each.failed) for each in first.calls] == [
        ("bash", {"command": "ls"}, "a.py", False),
        ("python", {"code": "1"}, "Too slow", True),
    ]
    # 10 + 4 + 3 is the first total, so that cached input lies beside the input; 20 + 5 is the second, so within it.
    assert (first.usage, second.usage) == (LoggedUsage(14, 3, 4), LoggedUsage(20, 5, 4))


def test_the_standard_tools_are_followed(tmp_path: Path) -> None:
    for path in write_sample(FORMAT, tmp_path):
        turns = interpret(only_run(FORMAT, path), len).turns
        assert [[read.path for read in turn.reads] for turn in turns] == [[], ["a.py"], ["b.py"], ["d.py"]]
        assert [write.path for turn in turns for write in turn.writes] == ["c.py"]
        (typed,) = turns[3].recorded.calls
        assert (typed.tool, typed.arguments, typed.output) == ("bash", {"command": "cat /repo/d.py"}, "d\n")


@pytest.mark.parametrize(
    ("arguments", "tool"),
    [
        ({"action": "type_submit", "input": "ls"}, "bash"),
        ({"action": "type", "input": "ls\n"}, "bash"),
        ({"action": "type", "input": "l"}, "bash_session"),
        ({"action": "interrupt"}, "bash_session"),
    ],
)
def test_what_is_typed_into_a_session_is_a_command_once_it_is_entered(
    tmp_path: Path, arguments: dict[str, str], tool: str
) -> None:
    typed = call("c1", "bash_session", **arguments)
    messages = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": "", "tool_calls": [typed]}]
    (each,) = only_run(FORMAT, log(tmp_path / "log.eval", SAMPLE | {"messages": messages})).turns[0].calls
    assert each.tool == tool


def test_the_single_file(tmp_path: Path) -> None:
    path = as_json(tmp_path / "log.json", HEADER | {"samples": [SAMPLE, 3, SAMPLE | {"id": 7, "epoch": 1}]})
    assert who_recognizes(path) == [FORMAT]
    first, odd, last = read_with(FORMAT, path)
    assert isinstance(first, Recording)
    assert isinstance(odd, Skipped)
    assert odd.source == "log.json:2"
    assert isinstance(last, Recording)
    assert (first.source, last.run_id) == ("log.json:1", "e1/7/1")


def test_a_damaged_sample_costs_itself_alone(tmp_path: Path) -> None:
    broken = SAMPLE | {"messages": ["x", *SAMPLE["messages"]]}
    first, second, run = read_with(FORMAT, log(tmp_path / "log.eval", "{", broken, SAMPLE))
    assert isinstance(first, Skipped)
    assert first.source == "log.eval:samples/1_epoch_1.json"
    assert isinstance(second, Skipped)
    assert isinstance(run, Recording)


@pytest.mark.parametrize(
    "scores, reward",
    [
        ({"a": {"value": "I"}}, 0.0),
        ({"a": {"value": "P"}}, 0.5),
        ({"a": {"value": True}}, 1.0),
        ({"a": {"value": {"x": 1}}, "b": {"value": 0.75}}, 0.75),
        ({"a": {"value": "free text"}}, None),
        (None, None),
    ],
)
def test_scores(tmp_path: Path, scores: Any, reward: float | None) -> None:
    run = only_run(FORMAT, log(tmp_path / "log.eval", SAMPLE | {"scores": scores}))
    assert run.reward == reward
    assert run.resolved == (None if reward is None else reward >= 1)


def test_a_compacted_sample_is_told_by_its_events(tmp_path: Path) -> None:
    events = [
        model_event("attachment://h1", call("c1", "bash", cmd="attachment://h2")),
        {"event": "tool", "id": "c1", "function": "bash", "result": "attachment://h3"},
        {"event": "compaction", "type": "summary"},
        {"event": "info", "data": 1},
        model_event("Done."),
    ]
    events[-1]["input"] = [{"role": "user", "content": "So far."}]
    attachments = {"h1": "Looking.", "h2": "cat a.py", "h3": "text of a.py"}
    left = {"messages": [{"role": "assistant", "content": "Done."}], "events": events, "attachments": attachments}
    run = only_run(FORMAT, log(tmp_path / "log.eval", SAMPLE | left))
    first, second = run.turns
    assert (first.text, first.calls[0].arguments, first.calls[0].output) == (
        "Looking.",
        {"command": "cat a.py"},
        "text of a.py",
    )
    assert (second.text, second.broken, second.carried) == ("Done.", "compaction", "So far.")


@pytest.mark.parametrize("stays", [False, True])
def test_only_a_session_keeps_its_folder(tmp_path: Path, stays: bool) -> None:
    def typed(id: str, command: str) -> dict[str, Any]:
        arguments = {"action": "type_submit", "input": command} if stays else {"cmd": command}
        return call(id, "bash_session" if stays else "bash", **arguments)

    messages = [
        {"role": "assistant", "content": "", "tool_calls": [typed("c1", "cd src && cat a.py")]},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "assistant", "content": "", "tool_calls": [typed("c2", "cat b.py")]},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
    ]
    run = interpret(only_run(FORMAT, log(tmp_path / "log.eval", SAMPLE | {"messages": messages, "events": []})), len)
    assert [read.path for turn in run.turns for read in turn.reads] == ["src/a.py", "src/b.py" if stays else "b.py"]


def test_archives_of_other_things_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("folder/header.json", "{}")
    assert who_recognizes(path) == []


def test_recorded_samples_agree_with_a_separate_count() -> None:
    path = recorded("inspect") / "ctf-agent.eval"
    runs = {run.source.partition(":")[2]: run for run in read_with(FORMAT, path) if isinstance(run, Recording)}
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.startswith("samples/")]
        samples = {name: json.loads(archive.read(name)) for name in names}
    assert set(runs) == set(samples)
    assert len(runs) == 15
    for name, sample in samples.items():
        turns = runs[name].turns
        replies = [message for message in sample["messages"] if message["role"] == "assistant"]
        assert len(turns) == len(replies)
        assert sum(len(turn.calls) for turn in turns) == sum(len(each.get("tool_calls") or []) for each in replies)
        used = sample["model_usage"]["openai/gpt-4o"]
        assert sum(turn.usage.input_tokens for turn in turns if turn.usage) == used["input_tokens"]
        assert sum(turn.usage.output_tokens for turn in turns if turn.usage) == used["output_tokens"]
        assert runs[name].resolved == (sample["scores"]["includes"]["value"] == "C")
