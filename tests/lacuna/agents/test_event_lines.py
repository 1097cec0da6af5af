"""Lines written out by hand are the bytes that the general way makes, whatever an agent says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.lacuna.agents.reference import AGENTS
from eirkit.lacuna.agents.session import ActionTaken, Decision
from eirkit.lacuna.agents.telemetry import SCHEMA, Consultation, Exchange, Trace, event_lines, event_records
from eirkit.lacuna.memories.memory import MemoryCall
from eirkit.lacuna.models.model import Message, Reply, Request, ToolCall, Usage
from eirkit.records.lines import encode
from tests.lacuna.sessions import CONDITIONS, controlled, managed, run_reference, task_of


def general(trace: Trace, run: str, texts: bool) -> bytes:
    return b"".join(encode(SCHEMA, record) for record in event_records(trace, run, texts=texts))


@pytest.mark.parametrize("texts", [True, False])
@pytest.mark.parametrize("agent", sorted(AGENTS))
def test_real_runs_are_written_alike(agent, texts):
    task = task_of("stepwise-sum")
    traces = [run_reference(agent, managed(task, condition, 2, reads=5)) for condition in CONDITIONS]
    inject = lambda step, missing, own: tuple((r, (1,)) for r in missing)  # noqa: E731
    traces += [run_reference(agent, controlled(task, 2)), run_reference(agent, controlled(task, 2, inject=inject))]
    for trace in traces:
        assert event_lines(trace, "cell-7", texts=texts) == general(trace, "cell-7", texts)


ANY_TEXT = st.text(st.characters(), max_size=20)  # control characters and halves of surrogates included
NUMBERS = st.lists(st.integers(0, 2**70), max_size=4).map(tuple)
DECISIONS = st.builds(
    Decision,
    t=st.integers(0, 10**6),
    required=NUMBERS,
    retained=NUMBERS,
    missing=NUMBERS,
    unavailable=NUMBERS,
    restored=st.lists(st.tuples(st.integers(1, 99), NUMBERS), max_size=2).map(tuple),
    submitted=st.none() | NUMBERS,
    fault=st.none() | ANY_TEXT,
    fetched=NUMBERS,
    reads=st.integers(0, 99),
)
USAGES = st.builds(Usage, st.integers(0, 9), cost_usd=st.none() | st.floats(0, 9)) | st.just(Usage())
REPLIES = st.builds(Reply, ANY_TEXT) | st.builds(
    Reply,
    ANY_TEXT,
    st.lists(st.builds(ToolCall, ANY_TEXT, st.dictionaries(ANY_TEXT, ANY_TEXT)), max_size=2).map(tuple),
    USAGES,
    st.floats(0, 9),
)
MESSAGES = st.lists(st.builds(Message, st.sampled_from(["system", "user"]), ANY_TEXT), max_size=3).map(tuple)
ENTRIES = (
    DECISIONS
    | st.builds(Exchange, st.integers(0, 99), st.builds(Request, MESSAGES), REPLIES)
    | st.builds(ActionTaken, st.integers(0, 9), st.integers(0, 9), ANY_TEXT, st.just("fault"), ANY_TEXT)
    | st.builds(
        Consultation,
        st.integers(0, 9),
        st.builds(MemoryCall, st.just("search"), ANY_TEXT),
        st.lists(ANY_TEXT, max_size=2).map(tuple),
        st.floats(0, 9),
    )
)


@given(st.lists(ENTRIES, max_size=4), ANY_TEXT, st.booleans())
def test_whatever_is_said_is_written_alike(entries, run, texts):
    assert event_lines(Trace(entries), run, texts=texts) == general(Trace(entries), run, texts)


def test_a_name_that_cannot_be_encoded_is_escaped_as_everywhere():
    trace = Trace([ActionTaken(0, 0, "", "fault", "é")])
    assert event_lines(trace, "\ud800", texts=False) == general(trace, "\ud800", False)
