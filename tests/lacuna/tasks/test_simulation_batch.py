"""The batch simulator equals the plain loop to the unit: compiled and interpreted, for every policy and capacity."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.errors import SpecError, install_command
from eirkit.lacuna.tasks.generation import generate, needed_references, prepare
from eirkit.lacuna.tasks.policies import Belady, TheoryInformed
from eirkit.lacuna.tasks.policy import NEVER, Outlook, Policy, Ranked, Structure, policies
from eirkit.lacuna.tasks.simulation.batch import Batch, Misses, count_misses
from eirkit.lacuna.tasks.simulation.kernels import FACTS, Rank, fill_upcoming, missed_counts, needed_capacities
from eirkit.lacuna.tasks.simulation.plain import replay, simulate, structure_of
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import workloads
from eirkit.packages import PATIENCE_SECONDS, advise, compiled, has_compiler, hint_if_slow
from tests.lacuna.strategies import graphs, specs
from tests.processes import completed

RECOVERIES = ["off", "direct"]


def batch_of(spec: TaskSpec, seeds: list[int]) -> Batch:
    keys = np.array(seeds, dtype=np.uint64)
    return Batch.of(structure_of(spec), keys, needed_references(prepare(spec), spec, keys))


@st.composite
def streams(draw: st.DrawFn) -> Batch:
    """One task with any references; any of its records may stay out of the store or be worth little."""
    graph = draw(graphs(largest=12))
    n = len(graph)
    references = np.zeros((1, n, 4), np.int32)
    for t, refs in enumerate(graph):
        references[0, t, : len(refs)] = refs
    structure = Structure(
        kinds=tuple(draw(st.lists(st.sampled_from(["store", "compute"]), min_size=n, max_size=n))),
        takes_slot=tuple(draw(st.lists(st.booleans(), min_size=n, max_size=n))),
        last_use=tuple(draw(st.lists(st.integers(0, n), min_size=n, max_size=n))),
    )
    return Batch.of(structure, np.array([draw(st.integers(0, 2**64 - 1))], np.uint64), references)


def by_plain_loop(batch: Batch, name: str, capacities: list[int], recovery) -> list[list[tuple[int, int]]]:
    rows = []
    for row in range(len(batch.seeds)):
        outlook = batch.outlook(row)
        outcomes = [replay(outlook, policies.get(name).for_task(outlook), h, recovery=recovery) for h in capacities]
        rows.append([(outcome.missed_steps, outcome.missed_references) for outcome in outcomes])
    return rows


def pairs(misses: Misses) -> list[list[tuple[int, int]]]:
    return [list(zip(*row, strict=True)) for row in zip(misses.steps.tolist(), misses.references.tolist(), strict=True)]


@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize("name", policies.names())
@settings(max_examples=40)
@given(batch=streams(), capacities=st.lists(st.integers(1, 14), min_size=1, max_size=5))
def test_any_stream_equals_the_plain_loop(name, recovery, batch, capacities):
    found = count_misses(batch, policies.get(name), capacities, recovery=recovery)
    assert pairs(found) == by_plain_loop(batch, name, capacities, recovery)


@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize("workload", workloads.names())
@settings(max_examples=15)
@given(data=st.data())
def test_every_workload_equals_the_plain_loop(workload, recovery, data):
    spec = data.draw(specs(workload))
    batch = batch_of(spec, data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=3)))
    capacities = data.draw(st.lists(st.integers(1, 22), min_size=1, max_size=4))
    name = data.draw(st.sampled_from(policies.names()))
    found = count_misses(batch, policies.get(name), capacities, recovery=recovery)
    assert pairs(found) == by_plain_loop(batch, name, capacities, recovery)


@pytest.mark.parametrize("name", policies.names())
def test_the_papers_streams_equal_the_plain_loop(name):
    spec, capacities = TaskSpec("stepwise-sum"), [16, 12, 8, 4]
    found = count_misses(batch_of(spec, [0, 1, 2]), policies.get(name), capacities)
    for seed in range(3):
        outcomes = [simulate(generate(spec.with_seed(seed)), name, h) for h in capacities]
        assert found.steps[seed].tolist() == [outcome.missed_steps for outcome in outcomes]


@settings(max_examples=40)
@given(batch=streams(), name=st.sampled_from(["fifo", "lru", "lfu", "belady", "window"]), direct=st.booleans())
def test_compiled_and_interpreted_kernels_agree(batch, name, direct):
    n = batch.streams.requests.shape[1]
    policy = policies.get(name)
    results = []
    for made in (lambda kernel: kernel, compiled):
        facts = np.zeros((n + 1, len(FACTS)), np.int64)
        facts[:, 0] = np.arange(n + 1)
        rank = Rank(FACTS.index(policy.lowest), FACTS.index(policy.ties), facts)
        upcoming = np.empty_like(batch.streams.upcoming)
        made(fill_upcoming)(batch.streams.requests, upcoming)
        counts = [np.zeros((1, 5), np.int32), np.zeros((1, 5), np.int32), np.zeros((1, 2), np.int64)]
        made(needed_capacities)(batch.streams, rank, *counts[:2])
        made(missed_counts)(batch.streams, rank, 3, direct, np.empty((1, 0), np.int64), counts[2])
        results.append([upcoming.tolist(), *(count.tolist() for count in counts)])
    assert results[0] == results[1]


def test_counts_do_not_depend_on_the_company_of_other_tasks():
    spec = TaskSpec("stepwise-sum")
    together = count_misses(batch_of(spec, list(range(50))), policies.get("lru"), [8])
    alone = count_misses(batch_of(spec, [17]), policies.get("lru"), [8])
    assert together.steps[17] == alone.steps[0]


def test_capacities_may_come_in_any_order_and_twice():
    batch = batch_of(TaskSpec("stepwise-sum"), [0, 1])
    once = count_misses(batch, policies.get("lru"), [4, 8]).steps
    assert np.array_equal(count_misses(batch, policies.get("lru"), [8, 4, 8]).steps, once[:, [1, 0, 1]])


def test_a_capacity_of_nothing_is_refused():
    with pytest.raises(SpecError, match="h = 0"):
        count_misses(batch_of(TaskSpec("stepwise-sum"), [0]), policies.get("lru"), [4, 0])


class Wayward(TheoryInformed):
    """Ranked, with a victim of its own: a kernel that trusted `lowest` would be wrong."""

    def victim(self, candidates, step):
        return candidates[-1].id


class Prophet(Ranked):
    """A worth that looks at the future differs from task to task."""

    lowest = "worth"

    @classmethod
    def for_task(cls, outlook: Outlook):
        uses = [sum(t in refs for refs in outlook.future) for t in range(1, len(outlook.future) + 1)]
        return cls(uses)


class Fractional(Ranked):
    """A worth that an integer cannot hold."""

    lowest = "worth"

    @classmethod
    def worths(cls, structure):
        return [1 / t for t in range(1, len(structure.kinds) + 1)]


class ShortSighted(Belady):
    """Hindsight that ends after four steps."""

    def next_use(self, record, step):
        known = super().next_use(record, step)
        return known if known <= step + 4 else NEVER


class Enormous(Ranked):
    """A worth that does not fit beside the tie-breaker in one word."""

    lowest = "worth"

    @classmethod
    def worths(cls, structure):
        return [t << 40 for t in structure.last_use]


@pytest.mark.parametrize("policy", [Wayward, Prophet, Fractional, ShortSighted, Enormous])
def test_policies_that_the_kernels_cannot_rank_are_asked(policy: type[Policy]):
    batch = batch_of(TaskSpec("stepwise-sum", n=24), [0, 1, 2])
    found = count_misses(batch, policy, [3, 6])
    for row in range(3):
        outlook = batch.outlook(row)
        outcomes = [replay(outlook, policy.for_task(outlook), h) for h in (3, 6)]
        assert found.steps[row].tolist() == [outcome.missed_steps for outcome in outcomes]


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None  # as if it were not installed
from eirkit.lacuna.tasks.simulation.table import sweep
from eirkit.lacuna.tasks.task import TaskSpec
for recovery in ("off", "direct"):
    for row in sweep(TaskSpec("stepwise-sum", n=24), range(4), ["lru", "random", "belady"], [8, 4], recovery=recovery):
        print(row)
"""


@pytest.mark.skipif(not has_compiler(), reason="needs the extra `fast`")
def test_without_numba_the_results_are_the_same():
    with_numba = WITHOUT_NUMBA.replace('sys.modules["numba"] = None', "pass")
    slow, fast = (completed([sys.executable, "-c", code], check=True) for code in (WITHOUT_NUMBA, with_numba))
    assert slow.stdout == fast.stdout
    assert "pip install" not in slow.stderr, "nobody had to wait"
    assert fast.stderr == ""


@pytest.mark.parametrize(
    ("seconds", "is_compiled", "said"),
    [(PATIENCE_SECONDS / 2, False, 0), (PATIENCE_SECONDS * 2, False, 1), (PATIENCE_SECONDS * 2, True, 0)],
)
def test_advice_is_given_to_those_who_waited(caplog, seconds, is_compiled, said):
    advise.cache_clear()
    clock = iter((0.0, seconds) * 3)
    for _ in range(3):
        with hint_if_slow(lambda: next(clock), lambda: is_compiled):
            pass
    assert caplog.text.count(install_command("fast")) == said, "once, however often"
