"""Belady against every online policy and against an exhaustive search, where it must win and where it need not."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.lacuna.tasks.policy import Outlook, Structure, policies
from eirkit.lacuna.tasks.simulation.batch import Batch, count_misses
from eirkit.lacuna.tasks.simulation.plain import replay
from eirkit.lacuna.tasks.workload import draw_references
from tests.lacuna.strategies import graphs

INSTANCES = 100_000
SHAPES = [(n, reach, fan_in) for n in (8, 12, 16) for reach in (3, 8) for fan_in in (1, 2, 3)]
ONLINE = [name for name in policies.names() if name not in ("belady", "unbounded")]
CAPACITIES = (1, 2, 3, 5)


def structure(n: int) -> Structure:
    return Structure(("compute",) * n, (True,) * n, (n,) * n)


def test_with_recovery_no_online_policy_misses_fewer_references_than_belady():
    each = -(-INSTANCES // len(SHAPES))
    for number, (n, reach, fan_in) in enumerate(SHAPES):
        seeds = np.arange(number * each, (number + 1) * each, dtype=np.uint64)
        batch = Batch.of(structure(n), seeds, draw_references(seeds, n, reach, fan_in))
        best = count_misses(batch, policies.get("belady"), CAPACITIES, recovery="direct").references
        for name in ONLINE:
            found = count_misses(batch, policies.get(name), CAPACITIES, recovery="direct").references
            assert (found >= best).all(), (name, n, reach, fan_in)


def stores_after(held: frozenset[int], offered: Iterable[int], h: int) -> list[frozenset[int]]:
    """Return every store that any choice can reach; holding fewer records than possible never helps."""
    available = sorted(held.union(offered))
    return [frozenset(kept) for kept in combinations(available, min(h, len(available)))]


def fewest_misses(stream: tuple[tuple[int, ...], ...], h: int, *, returns: bool, per_step: bool) -> int:
    """Return the fewest misses that any policy with hindsight can have, by trying all."""
    best = {frozenset[int](): 0}
    for t, refs in enumerate(stream, 1):
        following: dict[frozenset[int], int] = {}
        for held, misses in best.items():
            absent = set(refs) - held
            total = misses + (bool(absent) if per_step else len(absent))
            for after in stores_after(held, chain([t], absent if returns else ()), h):
                following[after] = min(total, following.get(after, total))
        best = following
    return min(best.values())


def misses(name: str, stream: tuple[tuple[int, ...], ...], h: int, recovery) -> tuple[int, int]:
    outlook = Outlook(structure(len(stream)), 0, stream)
    outcome = replay(outlook, policies.get(name).for_task(outlook), h, recovery=recovery)
    return outcome.missed_references, outcome.missed_steps


@settings(max_examples=60)
@given(stream=graphs(largest=9), h=st.integers(1, 3))
def test_with_recovery_belady_is_the_exhaustive_optimum_per_reference(stream, h):
    optimum = fewest_misses(stream, h, returns=True, per_step=False)
    assert misses("belady", stream, h, "direct")[0] == optimum


@settings(max_examples=60)
@given(stream=graphs(largest=9), h=st.integers(1, 3), name=st.sampled_from([*ONLINE, "belady"]))
def test_without_recovery_no_policy_beats_the_exhaustive_optimum(stream, h, name):
    references, steps = misses(name, stream, h, "off")
    assert references >= fewest_misses(stream, h, returns=False, per_step=False)
    assert steps >= fewest_misses(stream, h, returns=False, per_step=True)


@pytest.mark.parametrize(
    ("stream", "recovery", "per_step", "optimum", "belady"),
    [
        # Nothing returns: keeping 1 for its two later uses is worth the one miss of 3.
        (((), (1,), (1,), (3,), (1,), (1,)), "off", False, 1, 2),
        # Per step: with one slot step 3 is lost whatever is kept, so keep 1 for step 4. Belady keeps 2, needed as soon.
        (((), (), (1, 2), (1,)), "off", True, 1, 2),
        # The same with recovery: step 4 is lost, so keep 1 for step 5. Belady keeps what step 4 needs.
        (((), (), (), (2, 3), (1,)), "direct", True, 1, 2),
    ],
)
def test_where_belady_is_not_optimal(stream, recovery, per_step, optimum, belady):
    assert fewest_misses(stream, 1, returns=recovery == "direct", per_step=per_step) == optimum
    assert misses("belady", stream, 1, recovery)[per_step] == belady
