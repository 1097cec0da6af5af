"""Selections of lines against brute force: the best one, and the chances of a random one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.vestige.tokens import exact_counter
from eirkit_coding.compaction.context import ContextMessage, LineCounter, known_lines
from eirkit_coding.compaction.cuts import ContextCut, NeededLine, best_kept, judge
from eirkit_coding.compaction.selection import RandomKeeping, best_selection, random_selection
from eirkit_coding.compactors.built_in import BestLines
from eirkit_coding.compactors.compactor import TokenBudget

SIZES = st.lists(st.integers(0, 12), max_size=9)
MANY_LINES, DRAWS = 200, 1_000
# Of a mean of shares over DRAWS independent draws, whose deviation is at most 1/2; six of them never occur by chance.
SIX_DEVIATIONS = 6 * 0.5 / math.sqrt(DRAWS)


@settings(deadline=None, max_examples=150)
@given(SIZES, st.integers(0, 60))
def test_the_best_selection_is_the_largest_sum_that_fits(sizes, capacity):
    chosen = best_selection(sizes, capacity)
    sums = (sum(part) for some in range(len(sizes) + 1) for part in itertools.combinations(sizes, some))
    assert sum(sizes[place] for place in chosen) == max(total for total in sums if total <= capacity)
    assert len(set(chosen)) == len(chosen)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 400), min_size=150, max_size=400), st.integers(0, 20_000))
def test_a_large_selection_is_as_good_as_a_table_of_all_sums(sizes, capacity):
    reachable = 1
    for size in sizes:
        reachable |= reachable << size
    most = next(total for total in range(min(capacity, sum(sizes)), -1, -1) if reachable >> total & 1)
    assert sum(sizes[place] for place in best_selection(sizes, capacity)) == most


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(0, 25), st.data())
def test_the_chance_of_a_line_is_its_share_of_all_orders(sizes, capacity, data):
    several = data.draw(st.integers(1, len(sizes)))
    hits = sum(
        any(place < several for place in _fitting(order, sizes, capacity))
        for order in itertools.permutations(range(len(sizes)))
    )
    keeping = RandomKeeping(sizes, [(1, tuple(sizes[:several]))])
    assert keeping.expected(capacity) == pytest.approx(hits / math.factorial(len(sizes)), abs=1e-12)


def _fitting(order, sizes, capacity):
    ends = itertools.accumulate(sizes[place] for place in order)
    return [place for place, end in zip(order, ends, strict=True) if end <= capacity]


@pytest.mark.parametrize("share", [0.05, 0.4, 0.9])
def test_the_chance_among_many_lines_is_that_of_drawn_selections(share):
    sizes = np.random.default_rng(5).integers(2, 40, MANY_LINES).tolist()
    capacity = int(share * sum(sizes))
    needed = [tuple(sizes[:1]), tuple(sizes[1:4]), *((size,) for size in sizes[4:40])]
    worth = sum(map(min, needed))
    expected = RandomKeeping(sizes, [(min(copies), copies) for copies in needed]).expected(capacity)
    places = [range(1), range(1, 4), *(range(place, place + 1) for place in range(4, 40))]
    kept = 0
    for seed in range(DRAWS):
        drawn = set(random_selection(sizes, capacity, seed))
        kept += sum(min(c) for c, where in zip(needed, places, strict=True) if not drawn.isdisjoint(where))
    assert kept / DRAWS / worth == pytest.approx(expected / worth, abs=SIX_DEVIATIONS)


@pytest.mark.parametrize("seed", range(4))
def test_no_selection_of_lines_of_a_small_cut_keeps_more_than_the_best(seed):
    """Every set of lines of the context is tried, in the shortest form of each, as one message."""
    draw, counter = np.random.default_rng(seed), LineCounter(exact_counter())
    lines = [f"value_{number} = compute({number}, {'x' * int(draw.integers(1, 30))})" for number in range(8)]
    shown = [*lines, *(f"{number}: {lines[number]}" for number in draw.integers(0, 8, 3))]
    messages = tuple(ContextMessage("user", text) for text in shown)
    known = known_lines(messages, counter)
    chosen = [line for line in known.values() if draw.random() < 0.6]
    needed = {line.key: NeededLine(line.key, line.tokens, line.text, ("a.py",), "read") for line in chosen}
    cut = ContextCut("small", 1, messages, known, needed, sum(map(counter.message_tokens, messages)), 0, (), (), (), {})
    sets = [some for size in range(len(known) + 1) for some in itertools.combinations(known.values(), size)]
    texts = ["\n".join(line.text for line in some) for some in sets]
    for budget in (0, 10, 30, 60, 120):
        outcomes = [judge(cut, budget, [ContextMessage("user", text)], counter) for text in texts]
        best = max((one.state.kept_tokens for one in outcomes if one.status == "ok"), default=0)
        assert best == best_kept(cut, budget)
        found = BestLines.knowing(cut).compact(messages, TokenBudget(budget, counter))
        assert judge(cut, budget, found, counter).state.kept_tokens == best, "its regret is 0"


def test_a_random_selection_is_the_same_for_a_seed_and_another_for_another():
    sizes = [3] * 50
    assert random_selection(sizes, 60, 1) == random_selection(sizes, 60, 1)
    assert random_selection(sizes, 60, 1) != random_selection(sizes, 60, 2)
    assert len(random_selection(sizes, 60, 1)) == 20
