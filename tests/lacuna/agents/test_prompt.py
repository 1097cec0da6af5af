"""The text that agents read: what stands in it, and that its length says nothing about values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eirkit.lacuna.agents.prompt import render, rules, state
from eirkit.lacuna.agents.protocol import USAGE
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.view import Budgets, PublicStep, PublicTask, Visible
from eirkit.lacuna.tasks.workload import workloads
from tests.lacuna.sessions import public, task_of
from tests.lacuna.strategies import specs

SPEC = TaskSpec("stepwise-sum", n=12, m=4, slots=2)
TASK = PublicTask(SPEC, prepare(SPEC), (PublicStep(11, "compute", (7, 8), (3, 9)),), 2)
LOOK = Visible(TASK, TASK.steps[0], False, ((9, (42, 1)),))


def test_a_step_of_controlled_retention_reads_like_this():
    system, user = render(LOOK)
    assert (system.role, user.role) == ("system", "user")
    assert system.content == (
        "You carry out a task of 12 steps, one step at a time.\n"
        "WORKLOAD stepwise-sum n=12 q=10000 width=2 k=2\n"
        "RULE The answer is the input plus all referenced answers, modulo 10000, value by value.\n"
        "Answers are called A_t. A value is a number from 0 to 9999, written with 4 digits.\n"
        "You see only what is shown below; earlier messages are gone.\n"
        "Reply with one line:\n"
        "ANSWER t v: submit the answer v of step t (several values separated by spaces)"
    )
    assert user.content == (
        "RETAINED 1\nA_09 = 0042 0001\nSTEP 11 compute\nINPUT 0007 0008\nREFS A_03 A_09"
    )  # fmt: skip


def test_everything_an_agent_may_be_shown_has_its_line():
    shown = replace(
        LOOK,
        answered=True,
        restored=((3, (5, 6)),),
        fetched=((2, (0, 1)),),
        notes="1. A_04 = 0001 0002",
        room="20 of 40 characters used",
        commands=("NEXT", "ANSWER", "READ", "NOTE", "DONE"),
        budgets=Budgets(180, 3, None),
        outcomes=("A_02 = 0000 0001", "refused: no reads are left"),
    )
    assert state(shown) == (
        "RETAINED 1\nA_09 = 0042 0001\n"
        "RESTORED\nA_03 = 0005 0006\n"
        "FETCHED\nA_02 = 0000 0001\n"
        "NOTES\n1. A_04 = 0001 0002\nEND NOTES\n"
        "MEMORY 20 of 40 characters used\n"
        "STEP 11 compute answered\nINPUT 0007 0008\nREFS A_03 A_09\n"
        "LEFT actions=180 reads=3 recomputations=unlimited\n"
        "RESULT A_02 = 0000 0001\nRESULT refused: no reads are left"
    )
    told = rules(TASK, shown.commands)
    assert all((usage in told) == (word in shown.commands) for word, usage in USAGE.items())


def test_before_the_first_step_there_is_none():
    assert state(Visible(TASK, None, False, ())) == "RETAINED 0\nSTEP none"


@pytest.mark.parametrize("workload", workloads.names())
def test_every_workload_states_its_rule(workload):
    task = public(task_of(workload))
    assert task.workload.rule(task.spec) in rules(task, ("ANSWER",))
    assert rules(task, ("ANSWER",)) == rules(public(task_of(workload, seed=77)), ("ANSWER",))


@given(st.data(), st.sampled_from(workloads.names()))
def test_prompts_of_equal_structure_have_equal_length(data, workload):
    spec = data.draw(specs(workload, largest_n=12))
    task = public(generate(spec))
    values = st.tuples(*[st.integers(0, spec.q - 1)] * task.width)

    def length(t: int) -> int:
        step = replace(task.steps[t - 1], input=data.draw(values) if task.steps[t - 1].input else None)
        held = tuple((r, data.draw(values)) for r in range(1, t))
        return sum(len(message.content) for message in render(Visible(task, step, False, held, held[:1])))

    t = data.draw(st.integers(1, spec.n))
    assert length(t) == length(t)
