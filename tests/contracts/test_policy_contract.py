"""What every policy owes its users, checked for all of the registry and for a user's own file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.tasks.generation import generate, prepare
from eirkit.tasks.policy import Outlook, Policy, Record, Structure, find_policy, policies
from eirkit.tasks.retention import Retention
from eirkit.tasks.simulation.batch import Batch, count_misses
from eirkit.tasks.simulation.plain import outlook_of, replay, structure_of
from eirkit.tasks.task import TaskSpec
from eirkit.tasks.workload import workloads
from tests.lacuna.strategies import graphs, specs

USERS_OWN = f"{Path(__file__).parents[2] / 'examples' / 'most_recently_used.py'}:MostRecentlyUsed"

every_policy = pytest.mark.parametrize("name", [*policies.names(), pytest.param(USERS_OWN, id="user's own")])


@st.composite
def outlooks(draw: st.DrawFn) -> Outlook:
    graph = draw(graphs(largest=12))
    n = len(graph)
    kinds = tuple(draw(st.lists(st.sampled_from(["compute", "store", "recall"]), min_size=n, max_size=n)))
    last_use = tuple(draw(st.lists(st.integers(0, n), min_size=n, max_size=n)))
    return Outlook(Structure(kinds, (True,) * n, last_use), draw(st.integers(0, 2**64 - 1)), graph)


class Watched(Policy):
    """A policy with a witness: every choice is written down."""

    def __init__(self, inner: Policy) -> None:
        self.inner = inner
        self.choices: list[tuple[tuple[Record, ...], int, int]] = []

    def victim(self, candidates, step):
        chosen = self.inner.victim(candidates, step)
        self.choices.append((tuple(candidates), step, chosen))
        return chosen

    def capacity(self, h):
        return self.inner.capacity(h)


@every_policy
@settings(max_examples=50)
@given(outlook=outlooks(), h=st.integers(1, 6), recovery=st.sampled_from(["off", "direct"]))
def test_a_victim_is_a_candidate_and_the_same_on_every_asking(name, outlook, h, recovery):
    watched = Watched(find_policy(name).for_task(outlook))
    replay(outlook, watched, h, recovery=recovery)
    for candidates, step, chosen in watched.choices:
        assert chosen in [record.id for record in candidates]
        assert find_policy(name).for_task(outlook).victim(candidates, step) == chosen


@every_policy
@settings(max_examples=50)
@given(outlook=outlooks(), h=st.integers(1, 6))
def test_a_store_never_holds_more_than_its_capacity(name, outlook, h):
    policy = find_policy(name).for_task(outlook)
    store = Retention(policy, h)
    assert store.capacity == policy.capacity(h) >= h
    for step, references in enumerate(outlook.future, 1):
        absent = store.missing(references)
        store.touch(references)
        for record in (*absent, step):
            before = {held.id for held in store.records}
            left = store.admit(record, step)
            after = {held.id for held in store.records}
            assert after == (before | {record}) - {left}
            assert len(store) == len(after) <= store.capacity


@every_policy
@given(data=st.data(), workload=st.sampled_from(workloads.names()))
def test_nothing_is_missed_where_everything_fits(name, data, workload):
    outlook = outlook_of(generate(data.draw(specs(workload))))
    policy = find_policy(name).for_task(outlook)
    assert replay(outlook, policy, len(outlook.future)).missed_references == 0


@every_policy
@pytest.mark.parametrize("recovery", ["off", "direct"])
def test_a_batch_equals_the_plain_loop(name, recovery):
    spec, seeds = TaskSpec("store-recall", n=20, m=8), np.arange(4, dtype=np.uint64)
    batch = Batch.of(structure_of(spec), seeds, prepare(spec).references(spec, seeds))
    found = count_misses(batch, find_policy(name), [1, 3, 6], recovery=recovery)
    for row in range(4):
        outlook = batch.outlook(row)
        outcomes = [replay(outlook, find_policy(name).for_task(outlook), h, recovery=recovery) for h in (1, 3, 6)]
        assert found.steps[row].tolist() == [outcome.missed_steps for outcome in outcomes]
        assert found.references[row].tolist() == [outcome.missed_references for outcome in outcomes]


@every_policy
def test_a_policy_says_what_it_does(name):
    assert (find_policy(name).__doc__ or "").strip()
