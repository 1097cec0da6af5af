"""Events come back from their lines as they were, whatever an agent says; a small run is stored in known bytes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import InputFileError
from eirkit.lacuna.agents.reference import AGENTS
from eirkit.lacuna.agents.telemetry import events_of
from eirkit.records.events import (
    ActionTaken,
    Decision,
    Event,
    MemoryExchange,
    ModelExchange,
    RequestedCall,
    Verdicts,
    WrongStep,
    decode_events,
    encode_events,
    pack,
    unpack,
    with_stores,
)
from tests.lacuna.sessions import CONDITIONS, controlled, managed, run_reference, task_of

ANY_TEXT = st.text(st.characters(), max_size=20)  # control characters and halves of surrogates included
STEPS = st.lists(st.integers(0, 2**62), max_size=4).map(tuple)
RECORDS = st.lists(st.tuples(st.integers(1, 99), STEPS), max_size=2).map(tuple)
SECONDS = st.floats(0, 9)
TEXTS = st.none() | st.lists(ANY_TEXT, max_size=2).map(tuple)
ARGUMENTS = st.dictionaries(ANY_TEXT, ANY_TEXT | st.integers(0, 9) | st.lists(ANY_TEXT, max_size=2), max_size=2)
EVENTS: dict[type, st.SearchStrategy[Any]] = {
    Decision: st.builds(
        Decision,
        t=st.integers(0, 10**6),
        required=STEPS,
        retained=STEPS,
        missing=STEPS,
        unavailable=STEPS,
        restored=RECORDS,
        submitted=st.none() | STEPS,
        fault=st.none() | ANY_TEXT,
        fetched=STEPS,
        reads=st.integers(0, 99),
        recomputations=st.integers(0, 99),
        recovery_depth=st.integers(0, 99),
        actions=st.integers(0, 99),
        answers=st.integers(0, 99),
        uncertain=STEPS,
        stated=RECORDS,
    ),
    ActionTaken: st.builds(
        ActionTaken,
        st.integers(0, 9),
        st.integers(0, 9),
        ANY_TEXT,
        st.sampled_from(["done", "refused", "fault", "late"]),
        ANY_TEXT,
        st.none() | st.integers(0, 9),
        ANY_TEXT,
    ),
    ModelExchange: st.builds(
        ModelExchange,
        st.integers(0, 9),
        ANY_TEXT,
        reply_sha256=st.none() | ANY_TEXT,
        latency_seconds=SECONDS,
        cost_usd=st.none() | SECONDS,
        from_cache=st.booleans(),
        finish=ANY_TEXT,
        prompt=st.none() | ANY_TEXT,
        reply=st.none() | ANY_TEXT,
        reasoning=ANY_TEXT,
        calls=st.lists(st.builds(RequestedCall, ANY_TEXT, ARGUMENTS), max_size=2).map(tuple),
        carried=st.lists(ARGUMENTS, max_size=2).map(tuple),
    ),
    MemoryExchange: st.builds(
        MemoryExchange,
        st.integers(0, 9),
        st.sampled_from(["write", "search", "observe", "recall"]),
        latency_seconds=SECONDS,
        lacking=STEPS,
        held=STEPS,
        mislabeled=STEPS,
        uncertain=STEPS,
        records=st.none() | st.integers(0, 9),
        bytes=st.none() | st.integers(0, 9),
        text=st.none() | ANY_TEXT,
        found=TEXTS,
        stored=TEXTS,
    ),
    Verdicts: st.builds(
        Verdicts,
        st.lists(
            st.builds(
                WrongStep,
                st.integers(1, 9),
                st.sampled_from(["cascade", "computation"]),
                st.none() | st.just("missing"),
            ),
            max_size=3,
        ).map(tuple),
    ),
}


def readable(value: Any) -> Any:
    """The same with a question mark for each half of a surrogate pair, which UTF-8 cannot hold."""
    if isinstance(value, str):
        return "".join("?" if "\ud800" <= letter <= "\udfff" else letter for letter in value)
    if isinstance(value, (list, tuple)):
        return [readable(part) for part in value]
    return {readable(key): readable(part) for key, part in value.items()} if isinstance(value, dict) else value


def test_every_type_of_event_is_tried():
    assert set(EVENTS) == set(Event.__args__)


@given(st.lists(st.one_of(*EVENTS.values()), max_size=4))
def test_whatever_is_said_comes_back(events):
    lines = encode_events(events)
    assert lines.count(b"\n") == len(events)
    read = decode_events(unpack(pack(lines), "here"), "here")
    assert [type(event) for event in read] == [type(event) for event in events]
    assert readable(msgspec.to_builtins(read)) == readable(msgspec.to_builtins(events))


@pytest.mark.parametrize("texts", [True, False])
@pytest.mark.parametrize("agent", sorted(AGENTS))
def test_real_runs_come_back(agent, texts):
    task = task_of("stepwise-sum")
    traces = [run_reference(agent, managed(task, condition, 2, reads=5)) for condition in CONDITIONS]
    inject = lambda step, missing, own: tuple((r, (1,)) for r in missing)  # noqa: E731
    traces += [run_reference(agent, controlled(task, 2)), run_reference(agent, controlled(task, 2, inject=inject))]
    for trace in traces:
        events = events_of(trace, texts=texts)
        assert decode_events(encode_events(events), "here") == with_stores(events)


def test_the_bytes_of_a_small_run():
    """Golden: what others compare are digests of these bytes, so they change with the schema only."""
    trace = run_reference("calculator", controlled(task_of("store-recall", n=3, m=1), 1))
    assert encode_events([*events_of(trace), Verdicts()]).decode() == GOLDEN.lstrip()


GOLDEN = r"""
{"type":"exchange","t":1,"prompt_sha256":"bf5e43fda8921a88e42205d2c94a6919491c60a41ef6a1ed28c1d4142d460e7c","prompt":"RETAINED 0\nSTEP 1 store\nINPUT 3056","reply":"ANSWER 1 3056"}
{"type":"decision","t":1,"submitted":[3056]}
{"type":"exchange","t":2,"prompt_sha256":"7688b87ab818a737cfe383f4f6fb63380bcb6a12e09e0bf701ff6597ae1f6a04","prompt":"RETAINED 1\nA_1 = 3056\nSTEP 2 recall\nREFS A_1","reply":"ANSWER 2 3056"}
{"type":"decision","t":2,"required":[1],"retained":[1],"submitted":[3056]}
{"type":"exchange","t":3,"prompt_sha256":"786f223ca351209df6fa23ec9d0407216c11a8efbedbbec19c9f5bc01d2f6f92","prompt":"RETAINED 1\nA_2 = 3056\nSTEP 3 store\nINPUT 9517","reply":"ANSWER 3 9517"}
{"type":"decision","t":3,"retained":[2],"submitted":[9517]}
{"type":"verdicts"}
"""  # noqa: E501


@pytest.mark.parametrize(
    "lines",
    [
        b"no line\n",
        b'{"type":"unknown"}\n',
        b'{"type":"decision"}\n',
        b'{"type":"decision","t":"1"}\n',
        b'{"type":"action","number":1,"t":1,"action":"NEXT","outcome":"perhaps","detail":""}\n',
        b"\xff\n",
        b"[" * 100_000,
    ],
)
def test_lines_that_are_no_events_are_refused(lines):
    with pytest.raises(InputFileError, match="here: not the events of a run"):
        decode_events(lines, "here")
