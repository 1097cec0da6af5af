"""The one loop that waits: it alternates, records everything in order, and lets the world's failures through."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count

import pytest

from eirkit.errors import InfrastructureError, PluginError
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.reference import make_reference
from eirkit.lacuna.agents.telemetry import Consultation, Exchange, Trace
from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.memories.validity import EndedText
from eirkit.lacuna.models.model import ModelOptions, Reply
from eirkit.records.events import ActionTaken, Decision
from tests.lacuna.sessions import accuracy, controlled, managed, play, run_reference, task_of


class Broken:
    """A model that works a few times."""

    def __init__(self, good: int) -> None:
        self.good = good

    async def reply(self, request):
        self.good -= 1
        if self.good < 0:
            raise RuntimeError("out of luck")
        return Reply("NEXT")

    async def close(self):
        pass

    def settings(self):
        return {}


def test_a_controlled_run_is_one_exchange_and_one_decision_a_step():
    trace = run_reference("calculator", controlled(task_of(n=5, m=2), 2))
    assert [type(entry) for entry in trace.log] == [Exchange, Decision] * 5
    assert [entry.t for entry in trace.log] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert trace.ending == "finished"


def test_the_driver_adds_nothing_to_the_session():
    task = task_of(n=12)
    trace = run_reference("recoverer", managed(task, "fifo", 2, reads=None))
    said = iter([exchange.reply for exchange in trace.exchanges])
    played = play(managed(task, "fifo", 2, reads=None), lambda request: next(said))
    assert played.requests == [exchange.request for exchange in trace.exchanges]
    assert played.events == [entry for entry in trace.log if isinstance(entry, Decision | ActionTaken)]


def test_memory_calls_are_recorded_with_their_time_and_what_they_found():
    ticks = count()
    session = managed(task_of("store-recall", n=6), "external", 1)
    model = make_reference("recoverer", ModelOptions())
    trace = asyncio.run(drive(session, model, KeyValue(), clock=lambda: float(next(ticks))))
    consulted = [entry for entry in trace.log if isinstance(entry, Consultation)]
    assert trace.consultations == consulted != []
    assert {entry.latency_seconds for entry in consulted} == {1.0}
    assert all((entry.passages == ()) == (entry.call.verb == "write") for entry in consulted)
    assert all(entry.call.text in entry.passages[0] for entry in consulted if entry.passages)


class Superseding(KeyValue):
    """Returns with every record a value that it says was there before, or says so of the record itself."""

    ends_records = False

    async def search(self, query: str, limit: int) -> Sequence[str]:
        found = await super().search(query, limit)
        if self.ends_records:
            return [EndedText(text) for text in found]
        return [one for text in found for one in (EndedText(f"{text.partition(' = ')[0]} = 1"), text)][:limit]


def test_an_agent_believes_a_record_beside_what_has_ended_and_none_that_has_ended_itself():
    task, memory = task_of("store-recall", n=12), Superseding()
    assert accuracy(task, run_reference("recoverer", managed(task, "external", 1), memory)) == 1
    memory.ends_records = True
    trace = run_reference("recoverer", managed(task, "external", 1), memory)
    assert accuracy(task, trace) < 1
    assert not any(one.lacking or one.stated for one in trace.consultations), "it came back, though not as valid"


def test_a_session_that_needs_a_memory_gets_one_or_fails():
    session = managed(task_of(), "external")
    with pytest.raises(InfrastructureError, match="--memory"):
        asyncio.run(drive(session, make_reference("recoverer", ModelOptions())))


def test_what_the_world_breaks_leaves_what_there_was():
    trace = Trace()
    with pytest.raises(PluginError, match="RuntimeError: out of luck"):
        asyncio.run(drive(managed(task_of(), "fifo"), Broken(3), trace=trace))
    assert len(trace.exchanges) == 3
    assert len(trace.decisions) == 2
    assert trace.ending is None
