"""What a run leaves behind: every entry becomes a record that can be written, and decisions come back as they were."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.lacuna.agents.session import ActionTaken, Decision
from eirkit.lacuna.agents.telemetry import SCHEMA, Exchange, Trace, event_records, trace_of
from eirkit.lacuna.models.model import Message, Reply, Request, ToolCall, Usage, prompt_hash
from eirkit.lacuna.runs.attempt import usage_record
from eirkit.records.lines import append_records, encode, read_records
from tests.lacuna.agents.test_protocol import arguments
from tests.lacuna.sessions import CONDITIONS, controlled, managed, run_reference, task_of

ASKED = Request((Message("system", "rules"), Message("user", "state")))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_records_survive_a_file_and_decisions_come_back(condition, tmp_path):
    task = task_of("stepwise-sum")
    inject = lambda step, missing, own: tuple((r, (1,)) for r in missing)  # noqa: E731
    runs = [
        run_reference("recoverer", managed(task, condition, 2, reads=5, recomputations=3)),
        run_reference("acknowledger", controlled(task, 2, inject=inject)),
    ]
    for number, trace in enumerate(runs):
        path = tmp_path / f"{number}.jsonl"
        append_records(path, SCHEMA, event_records(trace, "a-run"))
        read = list(read_records(path, SCHEMA))
        assert trace_of(read, None).decisions == trace.decisions
        assert {record["run"] for record in read} == {"a-run"}
        assert len(read) == len(trace.log)


def test_every_field_of_an_event_is_in_its_record():
    decision = Decision(3, (1, 2), (2,), (1,), (), ((1, (5,)),), (7,), None, (1,), 1, 2, 3, 4, 5, (2,), ((1, (6,)),))
    action = ActionTaken(9, 3, "READ 1", "refused", "no reads are left", 2, "over-budget")
    for entry, kind in ((decision, "decision"), (action, "action")):
        (record,) = event_records(Trace([entry]), "x")
        fields = {name: getattr(entry, name) for name in type(entry).__slots__}
        assert record == {"run": "x", "type": kind, **fields}


def test_an_exchange_is_known_by_its_hashes_with_or_without_texts():
    reply = Reply("ANSWER 1 7", (ToolCall("next", {"t": 1}),), Usage(10, 5, 2, 0.25, True), 0.1234567)
    trace = Trace([Exchange(1, ASKED, reply)])
    (full,) = event_records(trace, "x")
    (bare,) = event_records(trace, "x", texts=False)
    assert full["prompt_sha256"] == bare["prompt_sha256"] == prompt_hash(ASKED)
    assert (full["prompt"], full["reply"]) == ("state", "ANSWER 1 7")
    assert full["calls"] == [{"name": "next", "arguments": {"t": 1}}]
    assert set(full) - set(bare) == {"prompt", "reply", "calls"}
    assert set(bare) - set(full) == {"reply_sha256"}  # of no use beside the reply, and nothing compresses it
    assert bare["reply_sha256"] == sha256(b"ANSWER 1 7").hexdigest()
    assert "ANSWER" not in json.dumps(bare)
    assert (bare["input_tokens"], bare["output_tokens"], bare["cached_tokens"]) == (10, 5, 2)
    assert (bare["cost_usd"], bare["from_cache"], bare["latency_seconds"]) == (0.25, True, 0.123457)


@given(st.text(), st.lists(st.builds(ToolCall, st.text(max_size=5), arguments), max_size=4))
def test_whatever_a_model_said_can_be_written(text, calls):
    request = replace(ASKED, messages=(Message("user", text),))
    trace = Trace([Exchange(1, request, Reply(text, tuple(calls)))])
    for texts in (True, False):
        (record,) = event_records(trace, "x", texts=texts)
        assert json.loads(encode(SCHEMA, record))["type"] == "exchange"


def test_arguments_that_are_no_json_fit_no_tool():
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for strange in ({"t": float("nan")}, {"t": object()}, [1], None, {"t": 10**5000}, {"t": deep}):
        (record,) = event_records(Trace([Exchange(1, ASKED, Reply("", (ToolCall("read", strange),)))]), "x")
        assert record["calls"] == [{"name": "read", "arguments": {"": "arguments that are no JSON"}}]
        encode(SCHEMA, record)


def usage_of(trace):
    return usage_record(trace, trace.exchanges)


def test_what_a_run_cost_is_added_up():
    replies = [Reply("", usage=usage) for usage in (Usage(1, 2, 1, 0.5, True), Usage(10, 20, 0, 0.25))]
    found = usage_of(Trace([Exchange(1, ASKED, reply) for reply in replies]))
    tokens = [found[name] for name in ("input_tokens", "output_tokens", "cached_tokens")]
    assert (found["calls"], found["cache_hits"], tokens, found["cost_usd"]) == (2, 1, [11, 22, 1], 0.75)
    assert usage_of(Trace([Exchange(1, ASKED, Reply("", usage=Usage(cost_usd=None)))]))["cost_usd"] is None
    assert not any(usage_of(Trace()).values())


def test_memory_calls_are_written_down():
    trace = run_reference("recoverer", managed(task_of("store-recall", n=8), "external", 1))
    records = [record for record in event_records(trace, "x") if record["type"] == "memory"]
    assert {record["verb"] for record in records} == {"write", "search"}
    found = next(record for record in records if record["verb"] == "search")
    assert found["passages"] == len(found["found"]) == 1
    bare = [record for record in event_records(trace, "x", texts=False) if record["type"] == "memory"]
    said = {"returned_characters", "lacking", "held", "mislabelled", "uncertain", "records", "bytes"}
    assert {frozenset(record) for record in bare} == {
        frozenset({"run", "type", "t", "verb", "passages", "latency_seconds"} | said)
    }
