"""Plain caches over arbitrary traces: against a readable loop, by hand, and request for request against libcachesim."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.errors import SpecError, UnknownNameError
from eirkit.tasks.generation import prepare
from eirkit.tasks.policy import policies
from eirkit.tasks.simulation import trace_kernels
from eirkit.tasks.simulation.batch import Batch, count_misses
from eirkit.tasks.simulation.plain import structure_of
from eirkit.tasks.simulation.traces import TRACE_POLICIES, LabelledTrace, simulate_trace
from eirkit.tasks.task import TaskSpec

NO_MORE = 1 << 40  # next request of an object that is not requested again; beyond every trace here


def next_requests(ids: list[int]) -> list[int]:
    seen: dict[int, int] = {}
    following = []
    for position in range(len(ids) - 1, -1, -1):
        following.append(seen.get(ids[position], NO_MORE))
        seen[ids[position]] = position
    return following[::-1]


def plain_cache(ids: list[int], policy: str, capacity: int) -> list[bool]:
    """The readable loop: a miss evicts by the policy's key, smallest first, and enters."""
    held: dict[int, list[int]] = {}  # id -> entered, used, uses, next
    hits = []
    keys = {
        "fifo": lambda facts: facts[0],
        "lru": lambda facts: facts[1],
        "lfu": lambda facts: (facts[2], facts[1]),
        "belady": lambda facts: -facts[3],
    }
    for position, (x, following) in enumerate(zip(ids, next_requests(ids), strict=True)):
        hits.append(x in held)
        if x in held:
            held[x][1:] = [position, held[x][2] + 1, following]
        else:
            if len(held) == capacity:
                del held[min(held, key=lambda y: keys[policy](held[y]))]
            held[x] = [position, position, 1, following]
    return hits


def test_a_trace_worked_out_by_hand():
    # capacity 2: a b a c a b c
    #   fifo    miss miss hit miss(a out) miss(b out) miss(c out) miss(a out)
    #   lru     miss miss hit miss(b out) hit miss(c out) miss(a out)
    #   lfu     as lru until b: c (1 use) leaves for b, then b (1) for c; a stays
    #   belady  at c: a is next at 4, b at 5: b out; at b: a is not needed again: a out; c hits
    trace = LabelledTrace.of([-5, 9, -5, 2**62, -5, 9, 2**62])
    hits = {name: simulate_trace(trace, name, 2).astype(int).tolist() for name in TRACE_POLICIES}
    assert hits == {
        "fifo": [0, 0, 1, 0, 0, 0, 0],
        "lru": [0, 0, 1, 0, 1, 0, 0],
        "lfu": [0, 0, 1, 0, 1, 0, 0],
        "belady": [0, 0, 1, 0, 1, 0, 1],
    }


@settings(max_examples=150)
@given(
    ids=st.lists(st.sampled_from([0, -1, 7, 8, 2**63 - 1, -(2**63), 64, 128, 3, 5, 11]), max_size=150),
    capacity=st.integers(1, 13),
    policy=st.sampled_from(list(TRACE_POLICIES)),
)
def test_kernels_equal_the_readable_loop(ids, capacity, policy):
    trace = LabelledTrace.of(np.array(ids, np.int64))
    hits, expected = simulate_trace(trace, policy, capacity).tolist(), plain_cache(ids, policy, capacity)
    assert hits == expected  # for Belady too: whom it drops among objects never needed again changes no hit


def test_labels_are_one_to_one_and_survive_growth():
    ids = np.random.default_rng(0).integers(-(2**63), 2**63, 20_000)[
        np.random.default_rng(1).integers(0, 20_000, 60_000)
    ]
    trace = LabelledTrace.of(ids)
    known, expected = np.unique(ids, return_inverse=True)
    assert trace.count == len(known) == len(set(zip(trace.labels.tolist(), expected.tolist(), strict=True)))
    assert set(trace.labels.tolist()) == set(range(1, trace.count + 1))


def test_interpreted_kernels_agree_with_compiled_ones():
    ids = np.random.default_rng(2).zipf(1.3, 1500) % 200
    trace = LabelledTrace.of(ids)
    for name in ("fifo", "lru", "lfu"):
        kernel = getattr(trace_kernels, name)
        assert np.array_equal(kernel(trace.labels, trace.count, 20), simulate_trace(trace, name, 20))


@pytest.mark.parametrize("ids", [[[1, 2]], [1.5, 2.0], ["a"]])
def test_what_is_no_trace_is_refused(ids):
    with pytest.raises(SpecError, match="flat array"):
        LabelledTrace.of(ids)


def test_wrong_usage_is_refused():
    trace = LabelledTrace.of([1, 2, 3])
    with pytest.raises(SpecError, match="capacity 0"):
        simulate_trace(trace, "lru", 0)
    with pytest.raises(UnknownNameError, match="fifo"):
        simulate_trace(trace, "lucky", 3)


def theirs(ids: list[int], policy: str, capacity: int) -> list[bool]:
    """Ask libcachesim, one request at a time; each is annotated with the next request of its object."""
    libcachesim = pytest.importorskip("libcachesim", reason="the peer is for development only")
    kind = {"fifo": "FIFO", "lru": "LRU", "lfu": "LFU", "belady": "Belady"}[policy]
    cache = getattr(libcachesim, kind)(capacity, hashpower=10)
    return [
        cache.get(libcachesim.Request(obj_id=x, obj_size=1, clock_time=position, next_access_vtime=following))
        for position, (x, following) in enumerate(zip(ids, next_requests(ids), strict=True))
    ]


@pytest.mark.parametrize("capacity", [2, 5, 20, 150])
@pytest.mark.parametrize("policy", TRACE_POLICIES)
def test_every_request_of_a_zipf_trace_agrees_with_libcachesim(policy, capacity):
    rng = np.random.default_rng(capacity)
    popular = rng.integers(1, 2**62, 400)
    ids = popular[np.minimum(rng.zipf(1.2, 6000) - 1, 399)]
    assert simulate_trace(LabelledTrace.of(ids), policy, capacity).tolist() == theirs(ids.tolist(), policy, capacity)


@pytest.mark.parametrize("policy", ["fifo", "lru"])
@pytest.mark.parametrize("workload", ["store-recall", "stepwise-max", "full-lookup"])
def test_streams_of_single_references_agree_with_libcachesim(workload, policy):
    """With one reference a step and direct recovery our request loop is a plain cache; entries are requests too."""
    spec = TaskSpec(workload, fan_in=1)
    seeds = np.arange(5, dtype=np.uint64)
    batch = Batch.of(structure_of(spec), seeds, prepare(spec).references(spec, seeds))
    ours = count_misses(batch, policies.get(policy), [2, 8], recovery="direct").references
    for row, requests in enumerate(batch.streams.requests):
        flat = [(int(record), column == 0) for step in requests for column, record in enumerate(step) if record]
        for place, h in enumerate((2, 8)):
            hits = theirs([record for record, _ in flat], policy, h)
            missed = sum(is_reference and not hit for hit, (_, is_reference) in zip(hits, flat, strict=True))
            assert ours[row, place] == missed
