"""Traces by the GenAI conventions, current and older, as runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eirkit.vestige.sources.documents import Skipped, open_document
from eirkit.vestige.trajectory import Call, LoggedUsage, Recording, formats
from tests.vestige.formats.samples import as_lines
from tests.vestige.formats.samples.otlp import (
    AGENT,
    DONE,
    FIRST,
    LAST,
    MEMORY,
    MESSAGE,
    TOOL,
    TRACE,
    attribute,
    export,
    span,
)


def read(tmp_path: Path, *exports: dict[str, Any], content: bytes | None = None) -> list[Recording | Skipped]:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(as_lines(*exports) if content is None else content)
    return list(formats.get("otlp")().read(open_document(path)))


def one(tmp_path: Path, *spans: dict[str, Any]) -> Recording:
    (run,) = read(tmp_path, export(*spans))
    assert isinstance(run, Recording)
    return run


def test_an_agent_is_a_run_whatever_the_order_of_its_spans(tmp_path):
    run = one(tmp_path, LAST, AGENT, MEMORY, FIRST, TOOL)
    assert (run.run_id, run.model, run.details["agent"]) == (TRACE, "m1", "mender")
    assert run.prompt == "You mend.\n\nMend a.py."
    first, last = run.turns
    assert first.text == "I look at the file."
    assert first.usage == LoggedUsage(100, 20, 40)
    assert first.calls == (
        Call("bash", {"command": "cat a.py"}, "print(1)"),
        Call("search_memory", {"query": "a.py"}, "a.py prints"),
    )
    assert (last.text, last.calls, last.usage) == ("Done.", (), None)


@pytest.mark.parametrize("indent", [None, 2])
def test_one_document_is_read_like_lines(tmp_path, indent):
    (lines,) = read(tmp_path, export(AGENT, FIRST, TOOL), export(LAST))
    document = json.dumps([export(AGENT, FIRST, TOOL), export(LAST)], indent=indent).encode()
    assert read(tmp_path, content=document) == [lines]
    (whole,) = read(tmp_path, export(AGENT, FIRST, TOOL, LAST))
    assert read(tmp_path, content=json.dumps(export(AGENT, FIRST, TOOL, LAST), indent=indent).encode()) == [whole]


def test_the_answer_to_a_call_is_found_in_the_next_request_too(tmp_path):
    answered = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": {"lines": 1}}]}]
    later = span(6, 1, "chat m1", 6, operation__name="chat", input__messages=answered)
    assert one(tmp_path, AGENT, FIRST, later).turns[0].calls[0].output == '{"lines": 1}'
    # A tool's own span comes first and wins.
    assert one(tmp_path, AGENT, FIRST, TOOL, later).turns[0].calls[0].output == "print(1)"


def test_ids_that_begin_anew_with_every_reply_are_other_calls(tmp_path):
    second = [{"role": "assistant", "parts": [{**MESSAGE[0]["parts"][1], "arguments": {"command": "cat b.py"}}]}]
    answers = [
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": text}]} for text in "xy"
    ]
    asks = span(6, 1, "chat m1", 6, operation__name="chat", output__messages=second, input__messages=answers[:1])
    ends = span(7, 1, "chat m1", 7, operation__name="chat", output__messages=DONE, input__messages=answers)
    shown = [
        [(call.arguments["command"], call.output) for call in turn.calls]
        for turn in one(tmp_path, AGENT, FIRST, asks, ends).turns
    ]
    assert shown == [[("cat a.py", "x")], [("cat b.py", "y")], []]
    # The same from the spans of tools alone.
    again = span(8, 1, "tool", 8, operation__name="execute_tool", tool__name="bash", tool__call__id="call_1",
                 tool__call__arguments={"command": "cat b.py"}, tool__call__result="y")  # fmt: skip
    silent = span(6, 1, "chat m1", 6, operation__name="chat")
    turns = one(tmp_path, AGENT, FIRST, TOOL, silent, again).turns
    assert [len(turn.calls) for turn in turns] == [1, 1]


def test_spans_that_were_delivered_twice_count_once(tmp_path):
    spans = (AGENT, FIRST, TOOL, MEMORY, LAST)
    (once,) = read(tmp_path, export(*spans))
    assert read(tmp_path, export(*spans), export(*spans)) == [once]


def test_a_tool_without_an_id_answers_the_oldest_call_that_waits(tmp_path):
    nameless = {**TOOL, "attributes": [pair for pair in TOOL["attributes"] if pair["key"] != "gen_ai.tool.call.id"]}
    assert one(tmp_path, AGENT, FIRST, nameless).turns[0].calls == (Call("bash", {"command": "cat a.py"}, "print(1)"),)


def test_a_failed_tool_has_failed(tmp_path):
    failed = {**TOOL, "status": {"code": 2}}
    assert one(tmp_path, AGENT, FIRST, failed).turns[0].calls[0].failed


def test_agents_of_agents_are_runs_of_their_own(tmp_path):
    helper = span(7, 3, "invoke_agent helper", 3, operation__name="invoke_agent", agent__name="helper")
    inner = span(8, 7, "chat m2", 4, operation__name="chat", request__model="m2")
    outer, own = read(tmp_path, export(AGENT, FIRST, TOOL, LAST, helper, inner))
    assert (len(outer.turns), outer.details["parent_run"]) == (2, "")
    assert (own.model, len(own.turns), own.details["parent_run"]) == ("m2", 1, outer.run_id)


def test_without_agents_a_conversation_is_a_run(tmp_path):
    talks = [
        span(number, 0, "chat", number, operation__name="chat", conversation__id=name)
        for number, name in enumerate("aab", 1)
    ]
    runs = read(tmp_path, *map(export, talks))
    assert [(run.run_id, len(run.turns)) for run in runs] == [("a", 2), ("b", 1)]


def test_several_invocations_of_one_conversation_are_one_run_and_two_agents_are_two(tmp_path):
    def invoked(number: int, agent: str) -> list[dict[str, Any]]:
        facts = {"operation__name": "invoke_agent", "agent__name": agent, "conversation__id": "c"}
        above = span(number, 0, f"invoke_agent {agent}", number, **facts)
        return [above, span(number + 1, number, "chat", number, operation__name="chat")]

    (run,) = read(tmp_path, export(*invoked(10, "a")), export(*invoked(20, "a")))
    assert (run.run_id, len(run.turns)) == ("c", 2)
    runs = read(tmp_path, export(*invoked(10, "a")), export(*invoked(20, "b")))
    assert [run.run_id for run in runs] == ["c/a", "c/b"]


def test_evaluations_say_whether_it_was_resolved(tmp_path):
    result = {
        "name": "gen_ai.evaluation.result",
        "attributes": [
            {"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": 0.75}},
            attribute("gen_ai.evaluation.score.label", "fail"),
        ],
    }
    run = one(tmp_path, {**AGENT, "events": [result]}, FIRST)
    assert (run.reward, run.resolved) == (0.75, False)


def test_older_instrumentations_number_their_attributes(tmp_path):
    older = span(
        2,
        0,
        "openai.chat",
        1,
        operation__name="chat",
        prompt__0__role="user",
        prompt__0__content="Mend a.py.",
        completion__0__content="I look.",
        completion__0__tool_calls__0__id="c1",
        completion__0__tool_calls__0__name="bash",
        completion__0__tool_calls__0__arguments='{"command": "ls"}',
        usage__prompt_tokens=7,
        usage__completion_tokens=3,
    )
    older["attributes"] = [
        {**pair, "key": pair["key"].replace("tool.calls", "tool_calls")} for pair in older["attributes"]
    ]
    (turn,) = one(tmp_path, older).turns
    assert (turn.text, turn.usage) == ("I look.", LoggedUsage(7, 3))
    assert turn.calls == (Call("bash", {"command": "ls"}),)


def test_structured_attributes_and_other_spellings(tmp_path):
    def wrapped(value: Any) -> dict[str, Any]:
        if isinstance(value, dict):
            return {"kvlist_value": {"values": [{"key": key, "value": wrapped(item)} for key, item in value.items()]}}
        if isinstance(value, list):
            return {"array_value": {"values": list(map(wrapped, value))}}
        return {"string_value": value}

    said = [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}]
    chat = {
        "trace_id": "ab",
        "span_id": "cd",
        "start_time_unix_nano": 5,
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"string_value": "chat"}},
            {"key": "gen_ai.output.messages", "value": wrapped(said)},
            {"key": "gen_ai.usage.input_tokens", "value": {"int_value": 5}},
        ],
    }
    (run,) = read(tmp_path, {"resource_spans": [{"scope_spans": [{"spans": [chat]}]}]})
    assert (run.turns[0].text, run.turns[0].usage) == ("Done.", LoggedUsage(5))


def test_spans_of_something_else_are_no_run(tmp_path):
    (skipped,) = read(tmp_path, export({**AGENT, "attributes": []}))
    assert isinstance(skipped, Skipped)
    assert "no span of an agent or a model" in skipped.reason


def test_spans_above_one_another_in_a_circle_do_no_harm(tmp_path):
    circle = [span(1, 2, "a", 1, operation__name="chat"), span(2, 1, "b", 2, operation__name="execute_tool")]
    assert len(one(tmp_path, *circle).turns) == 1
