"""Every condition by its name: it makes a session that ends, shows what it should, and refuses what it must."""

from __future__ import annotations

import asyncio

import pytest

from eirkit.errors import UnknownNameError, UsageError
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.reference import make_reference
from eirkit.lacuna.memories.factory import make_memory
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.cells import plan_of
from eirkit.lacuna.runs.sessions import (
    CONDITIONS,
    check_access,
    condition_names,
    default_reads,
    find_condition,
    make_session,
)
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.policy import policies
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.settings import Access

SPEC = TaskSpec("store-recall", n=12, m=4)
NAMED = ["floor", "fifo", "window", "lru", "lfu", "belady", "kv", "scratch", "scratch-lru", "paging", "compaction"]


def access(condition: str, **more: object) -> Access:
    policy = "window" if condition == "controlled" else None
    memory = "key-value" if condition == "external" else None
    return Access(condition, policy, memory, h=2, reads=default_reads(condition), **more)  # type: ignore[arg-type]


def accuracy(given: Access, agent: str = "recoverer") -> float:
    task = generate(SPEC)
    session = make_session(given, task, prepare(SPEC))
    memory = make_memory(plan) if (plan := plan_of(given)) else None
    trace = asyncio.run(drive(session, make_reference(agent, ModelOptions()), memory))
    assert trace.ending == "finished"
    return sum(d.submitted == task.step(d.t).answer for d in trace.decisions) / SPEC.n


def test_the_paper_s_conditions_and_every_policy_have_a_name():
    assert set(NAMED) | {"controlled", "external"} | set(policies.names()) == set(condition_names())


@pytest.mark.parametrize("name", condition_names())
def test_every_condition_runs_to_its_end(name):
    check_access(access(name))
    assert 0 < accuracy(access(name)) <= 1


@pytest.mark.parametrize("policy", policies.names())
def test_controlled_retention_takes_any_policy(policy):
    check_access(Access("controlled", policy, h=2))
    assert 0 < accuracy(Access("controlled", policy, h=2), "calculator") <= 1


def test_exact_memories_are_perfect_and_the_floor_is_not():
    assert accuracy(access("paging")) == accuracy(access("external")) == 1.0
    assert accuracy(Access("external", None, "null", h=2)) == accuracy(access("floor")) < 1


def test_reads_within_a_budget_repair_a_cache():
    assert accuracy(Access("fifo", None, h=2, reads=None)) == 1.0 > accuracy(access("fifo"))


def test_the_floor_and_the_window_are_the_same_store():
    assert accuracy(access("floor")) == accuracy(access("window")) == accuracy(access("controlled"), "calculator")


def test_a_condition_may_be_a_policy_of_one_s_own():
    assert find_condition("eirkit.lacuna.tasks.policies:Lru").reads == 0
    with pytest.raises(UnknownNameError, match="did you mean 'scratch'"):
        find_condition("scrach")


@pytest.mark.parametrize(
    "wrong",
    [
        Access("controlled", "lru", memory="null"),
        Access("controlled", "lru", recomputations=None),
        Access("lru", "lru"),
        Access("external", None),
        Access("lru", None, memory="null"),
        Access("floor", None, reads=None),
        Access("lru", None, h=0),
    ],
    ids=repr,
)
def test_contradictions_are_refused(wrong):
    with pytest.raises(UsageError):
        check_access(wrong)


def test_compaction_takes_its_limit():
    assert CONDITIONS["compaction"].reads == 0
    check_access(access("compaction", context_tokens=64))
    assert accuracy(access("compaction", context_tokens=64)) > 0


def test_compaction_asks_in_the_given_words():
    given = access("compaction", context_tokens=64, summary_prompt="Squeeze it into {characters} characters.")
    check_access(given)
    task = generate(TaskSpec("stepwise-sum", n=40, m=8))
    session = make_session(given, task, prepare(task.spec))
    trace = asyncio.run(drive(session, make_reference("recoverer", ModelOptions())))
    asked = [exchange.request.messages[-1].content for exchange in trace.exchanges]
    assert any("Squeeze it into 128 characters." in text for text in asked)
    with pytest.raises(UsageError, match="apply to the compaction"):
        check_access(access("lru", summary_prompt="Squeeze."))
