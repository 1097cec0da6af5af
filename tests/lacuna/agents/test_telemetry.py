"""What a run leaves behind: every entry becomes an event, and decisions come back as they were."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eirkit.lacuna.agents.telemetry import Exchange, Trace, events_of, trace_of
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import Reply, Request, ToolCall, Usage, prompt_hash
from eirkit.lacuna.runs.attempt import usage_of_run
from eirkit.records.events import MemoryExchange, ModelExchange, RequestedCall, decode_events, encode_events
from eirkit.records.runs import RunUsage
from tests.lacuna.agents.test_protocol import arguments
from tests.lacuna.sessions import CONDITIONS, controlled, managed, run_reference, task_of

ASKED = Request((Message("system", "rules"), Message("user", "state")))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_decisions_and_actions_come_back(condition):
    task = task_of("stepwise-sum")
    inject = lambda step, missing, own: tuple((r, (1,)) for r in missing)  # noqa: E731
    runs = [
        run_reference("recoverer", managed(task, condition, 2, reads=5, recomputations=3)),
        run_reference("acknowledger", controlled(task, 2, inject=inject)),
    ]
    for trace in runs:
        read = decode_events(encode_events(events_of(trace)), "a run")
        again = trace_of(read, trace.ending)
        assert (again.decisions, again.actions, again.ending) == (trace.decisions, trace.actions, trace.ending)
        assert len(read) == len(trace.log)


def test_an_exchange_is_known_by_its_hashes_with_or_without_texts():
    reply = Reply("ANSWER 1 7", (ToolCall("next", {"t": 1}),), Usage(10, 5, 2, 0.25, True), 0.1234567)
    trace = Trace([Exchange(1, ASKED, reply)])
    (full,), (bare,) = events_of(trace), events_of(trace, texts=False)
    assert isinstance(full, ModelExchange)
    assert isinstance(bare, ModelExchange)
    assert full.prompt_sha256 == bare.prompt_sha256 == prompt_hash(ASKED)
    assert (full.prompt, full.reply) == ("state", "ANSWER 1 7")
    assert full.calls == (RequestedCall("next", {"t": 1}),)
    assert full.reply_sha256 is None  # of no use beside the reply, and nothing compresses it
    assert bare.reply_sha256 == sha256(b"ANSWER 1 7").hexdigest()
    assert (bare.prompt, bare.reply, bare.calls) == (None, None, ())
    assert b"ANSWER" not in encode_events([bare])
    assert (bare.input_tokens, bare.output_tokens, bare.cached_tokens) == (10, 5, 2)
    assert (bare.cost_usd, bare.from_cache, bare.latency_seconds) == (0.25, True, 0.123457)


@given(st.text(), st.lists(st.builds(ToolCall, st.text(max_size=5), arguments), max_size=4))
def test_whatever_a_model_said_can_be_written(text, calls):
    request = replace(ASKED, messages=(Message("user", text),))
    trace = Trace([Exchange(1, request, Reply(text, tuple(calls)))])
    for texts in (True, False):
        (event,) = decode_events(encode_events(events_of(trace, texts=texts)), "x")
        assert isinstance(event, ModelExchange)


def test_arguments_that_are_no_json_fit_no_tool():
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for strange in ({"t": float("nan")}, {"t": object()}, [1], None, {"t": 10**5000}, {"t": deep}):
        (event,) = events_of(Trace([Exchange(1, ASKED, Reply("", (ToolCall("read", strange),)))]))
        assert isinstance(event, ModelExchange)
        assert event.calls == (RequestedCall("read", {"": "arguments that are no JSON"}),)
        assert decode_events(encode_events([event]), "x") == [event]


def usage_of(trace: Trace) -> RunUsage:
    return usage_of_run(trace, trace.exchanges)


def test_what_a_run_cost_is_added_up():
    replies = [Reply("", usage=usage) for usage in (Usage(1, 2, 1, 0.5, True), Usage(10, 20, 0, 0.25))]
    found = usage_of(Trace([Exchange(1, ASKED, reply) for reply in replies]))
    assert (found.calls, found.cache_hits, found.cost_usd) == (2, 1, 0.75)
    assert (found.input_tokens, found.output_tokens, found.cached_tokens) == (11, 22, 1)
    assert usage_of(Trace([Exchange(1, ASKED, Reply("", usage=Usage(cost_usd=None)))])).cost_usd is None
    assert usage_of(Trace()) == RunUsage()


def test_memory_calls_are_written_down():
    trace = run_reference("recoverer", managed(task_of("store-recall", n=8), "external", 1))
    calls = [event for event in events_of(trace) if isinstance(event, MemoryExchange)]
    assert {event.verb for event in calls} == {"write", "search"}
    found = next(event for event in calls if event.verb == "search")
    assert found.passages == len(found.found or ()) == 1
    bare = [event for event in events_of(trace, texts=False) if isinstance(event, MemoryExchange)]
    assert bare == [replace(event, text=None, found=None) for event in calls]
