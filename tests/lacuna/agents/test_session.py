"""Controlled Retention: one decision a step, what is shown and what is not, and every misuse of the answer line."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.lacuna.models.model import Reply, ToolCall
from eirkit.lacuna.tasks.policy import policies
from eirkit.lacuna.tasks.simulation.plain import simulate
from eirkit.lacuna.tasks.task import TaskInstance
from eirkit.lacuna.tasks.workload import workloads
from eirkit.records.events import ActionTaken, Decision
from tests.lacuna.agents.test_protocol import arguments, hostile, names
from tests.lacuna.sessions import controlled, play, script, task_of

STEP = re.compile(r"^STEP (\d+)", re.MULTILINE)
RECORD = re.compile(r"^A_(\d+) = ([\d ]+)$", re.MULTILINE)


def answer(values: str):
    """Return an agent that answers every step with the same values."""
    return lambda request: Reply(f"ANSWER {STEP.search(request.messages[-1].content).group(1)} {values}")


@pytest.mark.parametrize("policy", policies.names())
@pytest.mark.parametrize("workload", workloads.names())
def test_missing_records_are_those_of_the_simulator(workload, policy):
    for seed in range(3):
        task = task_of(workload, seed)
        for h in (1, 3, 8):
            width = len(task.steps[0].answer)
            played = play(controlled(task, h, policy), answer("1 " * width))
            assert tuple(d.missing for d in played.decisions) == simulate(task, policy, h).missing
            assert all(d.unavailable == d.missing for d in played.decisions)
            assert all(len(d.retained) <= h for d in played.decisions) or policy == "unbounded"


def corrupted(task: TaskInstance) -> TaskInstance:
    """Return the same task with every answer replaced by another."""
    steps = [msgspec.structs.replace(s, answer=tuple((v + 1) % task.spec.q for v in s.answer)) for s in task.steps]
    return replace(task, steps=tuple(steps))


@pytest.mark.parametrize("workload", workloads.names())
def test_the_truth_never_enters(workload):
    task = task_of(workload)
    agent = answer("5 " * len(task.steps[0].answer))
    runs = [play(controlled(given_task, 3), agent) for given_task in (task, corrupted(task))]
    assert runs[0] == runs[1]


@given(st.lists(hostile, max_size=30), st.integers(1, 8), st.sampled_from(workloads.names()))
def test_nothing_printed_can_crash_or_stall_and_only_submitted_records_are_shown(replies, h, workload):
    task = task_of(workload)
    width = len(task.steps[0].answer)
    said = iter(replies)

    def agent(request):
        honest = answer("7 " * width)(request)
        return Reply(next(said, honest.text))

    played = play(controlled(task, h), agent)
    assert [d.t for d in played.decisions] == list(range(1, task.spec.n + 1))
    assert played.actions == []
    own = {d.t: d.submitted for d in played.decisions}
    for prompt in played.prompts:
        shown = RECORD.findall(prompt)
        assert len(shown) <= h
        assert all(own[int(t)] == tuple(map(int, values.split())) for t, values in shown)


@given(st.lists(st.builds(ToolCall, names, arguments), max_size=20))
@settings(max_examples=50)
def test_tool_calls_cannot_crash_it_either(calls):
    task = task_of(n=8)
    played = play(controlled(task, 2), lambda request: Reply("", tuple(calls)))
    assert len(played.decisions) == 8


MISUSE = [
    ("I do not know.", "malformed"),
    ("", "empty"),
    (" \n", "empty"),
    ("ANSWER one 0042", "malformed"),
    ("NEXT", "malformed"),
    ("ANSWER 2 0042", "wrong-id"),
    ("ANSWER 1 0042 0043", "wrong-width"),
    ("ANSWER 1 10000", "out-of-range"),
    ("ANSWER 1 " + "9" * 5000, "out-of-range"),
    ("ANSWER 1 0042\nANSWER 1 10000", "out-of-range"),
]


@pytest.mark.parametrize(("text", "fault"), MISUSE)
def test_an_answer_that_cannot_be_recorded_leaves_its_fault(text, fault):
    session = controlled(task_of(n=3, m=2), 2)
    played = play(session, script(text, "ANSWER 2 5", "ANSWER 3 6"))
    first = played.decisions[0]
    assert (first.submitted, first.fault) == (None, fault)
    assert session.submitted == {2: (5,), 3: (6,)}
    # Nothing was submitted for step 1, so it is neither retained nor lost.
    for later in played.decisions[1:]:
        assert 1 not in later.retained
        assert 1 not in later.missing
    never = {d.t for d in played.decisions if d.submitted is None}
    assert never == {1}


def test_of_several_answers_the_last_counts():
    played = play(controlled(task_of(n=2, m=1), 1), script("ANSWER 1 5\nno\nANSWER 1 6", "hm"))
    assert [(d.submitted, d.answers) for d in played.decisions] == [((6,), 1), (None, 0)]


def test_top_k_answers_are_kept_in_their_one_form():
    session = controlled(task_of("stepwise-topk", n=1, m=1), 1)
    play(session, script("ANSWER 1 3 9"))
    assert session.submitted == {1: (9, 3)}


def test_a_reply_that_nobody_asked_for_is_the_drivers_fault():
    session = controlled(task_of(), 2)
    with pytest.raises(ValueError, match="call request first"):
        session.receive(Reply("ANSWER 1 5"))
    session.request()
    session.receive(Reply("ANSWER 1 5"))
    with pytest.raises(ValueError, match="call request first"):
        session.receive(Reply("ANSWER 2 5"))
    with pytest.raises(ValueError, match="no external memory"):
        session.receive_memory(None)


def test_an_action_after_the_end_is_noted_and_changes_nothing():
    session = controlled(task_of(n=1, m=1), 1)
    assert session.position == 1
    play(session, script("ANSWER 1 5"))
    session.receive(Reply("ANSWER 1 6\nNEXT"))
    late = session.drain()
    assert [(e.number, e.t, e.action, e.outcome, e.reason) for e in late] == [
        (0, 1, "ANSWER 1 6", "late", "late"),
        (0, 1, "NEXT", "late", "late"),
    ]
    assert session.submitted == {1: (5,)}
    assert session.ending == "finished"
    assert session.request() is None


def test_injections_are_shown_and_neither_enter_nor_touch_retention():
    task = task_of(seed=1)
    plain = play(controlled(task, 3), answer("7"))
    injected = play(
        controlled(task, 3, inject=lambda step, missing, own: tuple((r, (9999,)) for r in missing)), answer("7")
    )
    assert [d.missing for d in plain.decisions] == [d.missing for d in injected.decisions]
    assert any(d.restored for d in injected.decisions)
    for decision, prompt in zip(injected.decisions, injected.prompts, strict=True):
        assert tuple(t for t, _ in decision.restored) == decision.missing
        assert prompt.count("= 9999") == len(decision.missing)


def test_events_are_plain_facts():
    played = play(controlled(task_of(n=2, m=1), 1), answer("7"))
    assert all(isinstance(event, Decision | ActionTaken) for event in played.events)
    assert played.decisions[1] == Decision(
        t=2, required=(1,), retained=(1,), missing=(), unavailable=(), restored=(), submitted=(7,), fault=None
    )
