"""Codex rollouts: calls and outputs of every version, usage once, compaction, rollback and forks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eirkit.vestige.actions.touches import coverage_of, interpret
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.trajectory import KeptContext, LoggedUsage, Recording
from eirkit_coding.sessions.codex import CodexOutput, as_call, as_output
from tests.vestige.formats.logs import as_lines, only_run, read_with, who_recognizes

FORMAT = "codex"
Line = dict[str, Any]


def line(kind: str, **payload: Any) -> Line:
    return {"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload}


def item(kind: str, **payload: Any) -> Line:
    return line("response_item", type=kind, **payload)


def said(role: str, text: str) -> Line:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


def shell(id: str, script: str) -> Line:
    arguments = {"command": ["bash", "-lc", script], "workdir": "/repo/sub"}
    return item("function_call", name="shell", arguments=json.dumps(arguments), call_id=id)


def output(id: str, text: Any) -> Line:
    return item("function_call_output", call_id=id, output=text)


def counted(total: int, prompt: int, cached: int, written: int) -> Line:
    last = {"input_tokens": prompt, "cached_input_tokens": cached, "output_tokens": written}
    return line(
        "event_msg", type="token_count", info={"total_token_usage": {"total_tokens": total}, "last_token_usage": last}
    )


META = line("session_meta", id="t1", cwd="/repo", originator="codex_cli_rs", cli_version="0.60.0", source="cli")
CONTEXT = line("turn_context", cwd="/repo", model="gpt-x", approval_policy="never")
WORD = line("event_msg", type="user_message", message="Go")


def test_a_rollout_is_one_run(tmp_path: Path) -> None:
    lines = [
        META,
        said("user", "<environment_context/>"),
        CONTEXT,
        said("user", "Go"),
        WORD,
        item("reasoning", summary=[], encrypted_content="…"),
        said("assistant", "Looking."),
        shell("c1", "cat a.py"),
        shell("c2", "cat b.py"),
        counted(110, 100, 40, 10),
        output("c1", "Exit code: 0\nWall time: 0.1 seconds\nOutput:\none"),
        output("c2", json.dumps({"output": "no such file", "metadata": {"exit_code": 1, "duration_seconds": 0.1}})),
        counted(110, 100, 40, 10),
        item("custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c3", status="completed"),
        item("custom_tool_call_output", call_id="c3", output="Success. Updated the following files:\nM a.py"),
        counted(330, 200, 90, 20),
        said("assistant", "Done."),
    ]
    path = as_lines(tmp_path / "rollout-2026-01-01T00-00-00-t1.jsonl", lines)
    assert who_recognizes(path) == [FORMAT]
    run = only_run(FORMAT, path)
    first, second, third = run.turns
    assert (run.run_id, run.model, run.root) == ("t1", "gpt-x", "/repo")
    assert run.prompt == "<environment_context/>\n\nGo"
    assert [(call.tool, call.arguments["command"], call.output, call.exit_code) for call in first.calls] == [
        ("bash", "cat a.py", "one", 0),
        ("bash", "cat b.py", "no such file", 1),
    ]
    assert first.calls[0].working_folder == "/repo/sub"
    assert (first.usage, second.usage, third.usage) == (LoggedUsage(100, 10, 40), LoggedUsage(200, 20, 90), None)
    assert (second.calls[0].tool, second.calls[0].arguments) == ("apply_patch", {"input": "*** Begin Patch"})
    assert third.text == "Done."


@pytest.mark.parametrize(
    "given, tool, command",
    [
        ({"type": "function_call", "name": "shell_command", "arguments": '{"command": "ls"}'}, "bash", "ls"),
        ({"type": "function_call", "name": "exec_command", "arguments": '{"cmd": "ls"}'}, "bash", "ls"),
        ({"type": "function_call", "name": "shell", "arguments": '{"command": ["rg", "a b"]}'}, "bash", "rg 'a b'"),
        ({"type": "local_shell_call", "action": {"type": "exec", "command": ["/bin/bash", "-c", "ls"]}}, "bash", "ls"),
        ({"type": "function_call", "name": "update_plan", "arguments": "not JSON"}, "update_plan", None),
        ({"type": "function_call", "name": "shell", "arguments": '{"command": 3}'}, "bash", ""),
    ],
)
def test_calls_of_every_version(given: Line, tool: str, command: str | None) -> None:
    call = as_call(given)
    assert (call.tool, call.arguments.get("command")) == (tool, command)


def test_a_patch_given_to_the_shell_is_a_patch() -> None:
    arguments = json.dumps({"command": ["apply_patch", "*** Begin Patch"]})
    assert as_call({"type": "function_call", "name": "shell", "arguments": arguments}).tool == "apply_patch"


@pytest.mark.parametrize(
    "given, expected",
    [
        ("text", CodexOutput("text")),
        ([{"type": "input_text", "text": "text"}, {"type": "input_image"}], CodexOutput("text")),
        ({"content": "no", "success": False}, CodexOutput("no", failed=True)),
        ("Chunk ID: a\nWall time: 1.0 seconds\nProcess exited with code 3\nOutput:\nx", CodexOutput("x", 3)),
        ("Output:\nno header", CodexOutput("Output:\nno header")),
        ('{"output": 3}', CodexOutput('{"output": 3}')),
        ("apply_patch verification failed: x", CodexOutput("apply_patch verification failed: x", failed=True)),
        (None, CodexOutput("")),
    ],
)
def test_outputs_of_every_version(given: Any, expected: CodexOutput) -> None:
    assert as_output(given) == expected


def test_a_compaction_is_one_break_however_often_it_is_told(tmp_path: Path) -> None:
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "So far: one."}]}]
    lines = [
        META,
        said("user", "Go"),
        said("assistant", "One."),
        line("compacted", message="", replacement_history=history),
        line("event_msg", type="context_compacted"),
        said("assistant", "Two."),
        line("compacted", message="A summary."),
        said("assistant", "Three."),
    ]
    run = only_run(FORMAT, as_lines(tmp_path / "rollout.jsonl", lines))
    assert [(turn.text, turn.broken, turn.carried) for turn in run.turns] == [
        ("One.", None, ""),
        ("Two.", "compaction", "So far: one."),
        ("Three.", "compaction", "A summary."),
    ]


def test_two_compactions_without_a_reply_between_are_two(tmp_path: Path) -> None:
    told = [line("compacted", message="A summary."), line("event_msg", type="context_compacted")]
    lines = [META, said("user", "Go"), said("assistant", "One."), *told, *told, said("assistant", "Two.")]
    run = only_run(FORMAT, as_lines(tmp_path / "rollout.jsonl", lines))
    assert [turn.breaks("compaction") for turn in run.turns] == [0, 2]


def test_turns_that_were_rolled_back_are_left_out(tmp_path: Path) -> None:
    lines = [
        META,
        WORD,
        said("assistant", "One."),
        WORD,
        said("assistant", "Wrong."),
        said("user", "x"),
        said("assistant", "Wrong too."),
        line("event_msg", type="thread_rolled_back", num_turns=1),
        WORD,
        said("assistant", "Two."),
    ]
    run = only_run(FORMAT, as_lines(tmp_path / "rollout.jsonl", lines))
    assert [turn.text for turn in run.turns] == ["One.", "Two."]


def test_the_older_kind_without_envelopes(tmp_path: Path) -> None:
    lines = [
        {"id": "t0", "timestamp": "2025-05-01T00:00:00.000Z", "instructions": None, "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go"}]},
        {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls"]}', "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": '{"output": "a", "metadata": {"exit_code": 0}}'},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
    ]
    path = as_lines(tmp_path / "rollout.jsonl", lines)
    assert who_recognizes(path) == [FORMAT]
    run = only_run(FORMAT, path)
    assert (run.run_id, run.prompt) == ("t0", "Go")
    assert [(len(turn.calls), turn.text) for turn in run.turns] == [(1, ""), (0, "Done.")]


def test_forks_and_sub_agents_name_where_they_come_from(tmp_path: Path) -> None:
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "t1", "depth": 1}}}
    meta = line("session_meta", id="t2", cwd="/repo", forked_from_id="t1", source=spawned)
    run = only_run(FORMAT, as_lines(tmp_path / "rollout.jsonl", [meta, META, said("assistant", "One.")]))
    assert run.run_id == "t2"
    assert (run.details["parent_run"], run.details["forked_from"]) == ("t1", "t1")


def test_damage_and_silence_are_named(tmp_path: Path) -> None:
    damaged, run = read_with(
        FORMAT, as_lines(tmp_path / "a.jsonl", [META, '{"type": "resp', said("assistant", "One.")])
    )
    (nothing,) = read_with(FORMAT, as_lines(tmp_path / "b.jsonl", [META, said("user", "Go")]))
    assert isinstance(damaged, Skipped)
    assert damaged.source == "a.jsonl:2"
    assert isinstance(run, Recording)
    assert isinstance(nothing, Skipped)
    assert "no reply" in nothing.reason


def test_a_replacement_history_says_what_stayed_and_what_cannot_be_known(tmp_path: Path) -> None:
    started = line("event_msg", type="task_started", model_context_window=258_400)
    clear = line("compacted", message="", replacement_history=[said("user", "Go")["payload"]])
    sealed = line("compacted", message="", replacement_history=[{"type": "compaction", "encrypted_content": "gAAA"}])
    lines = [META, started, said("assistant", "One."), clear, said("assistant", "Two."), sealed]
    run = only_run(FORMAT, as_lines(tmp_path / "a.jsonl", [*lines, said("assistant", "Three.")]))
    assert (run.window, run.agent_version) == (258_400, "0.60.0")
    assert run.turns[1].kept == KeptContext("history", ("Go",), is_complete=True)
    assert run.turns[2].kept == KeptContext("history", is_opaque=True)


def test_what_a_command_prints_while_it_runs_belongs_to_it(tmp_path: Path) -> None:
    # As Codex 0.166 logs it: the first output has a session, and `write_stdin` returns what was printed since.
    def asked(id: str, tool: str, **given: object) -> dict[str, object]:
        return item("function_call", name=tool, arguments=json.dumps(given), call_id=id)

    def told(id: str, state: str, output: str) -> dict[str, object]:
        head = f"Chunk ID: 891f70\nWall time: 0.5 seconds\n{state}\nOriginal token count: 9\nOutput:\n"
        return item("function_call_output", call_id=id, output=head + output)

    running = "Process running with session ID 8432"
    lines = [
        META,
        asked("c1", "exec_command", cmd="sleep 3; cat a.py; sleep 3; echo x > b.py", yield_time_ms=500),
        told("c1", running, ""),
        asked("c2", "write_stdin", session_id=8432, chars="", yield_time_ms=4000),
        told("c2", running, "x = 1\n"),
        asked("c3", "write_stdin", session_id=8432, chars="", yield_time_ms=4000),
        told("c3", "Process exited with code 0", "y = 2\n"),
        said("assistant", "Done."),
    ]
    run = only_run("codex", as_lines(tmp_path / "rollout-1.jsonl", lines))
    assert [(call.tool, call.output, call.exit_code) for turn in run.turns for call in turn.calls] == [
        ("bash", "x = 1\ny = 2\n", 0),
        ("write_stdin", "", None),
        ("write_stdin", "", None),
    ]
    turns = interpret(run, len).turns
    assert [(read.path, read.content) for turn in turns for read in turn.reads] == [("a.py", "x = 1\ny = 2\n")]
    assert [write.path for turn in turns for write in turn.writes] == ["b.py"]
    assert all(tool.calls == tool.understood for tool in coverage_of(run))
