"""Plans the cheapest recovery of missing results by direct retrieval and recomputation under two budgets.

Intermediate results are kept until the recovery ends, and the input of every step can be read again.

*Cheapest*: at most B_oracle retrievals, then the fewest recomputed steps, then the fewest retrievals. No plan within
B_oracle has fewer reads in all, and it fits both budgets whenever any plan does. docs/recovery-cones.md has the
argument, and `tests/lacuna/tasks/test_recovery.py` compares every claim with all plans of small graphs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal

from eirkit.errors import SpecError, TooLargeError
from eirkit.lacuna.tasks.cones import LARGEST_GRAPH, ancestors
from eirkit.lacuna.tasks.workload import Graph

LARGEST_SEARCH = 200_000  # states; about a hundred megabytes and a few seconds


@dataclass(frozen=True, slots=True)
class RecoveryBudget:
    """What a condition permits; None means no limit."""

    retrievals: int | None = 0  # B_oracle: results handed over directly
    recomputations: int | None = None  # B: steps evaluated again

    def __post_init__(self) -> None:
        for name, limit in (("retrievals", self.retrievals), ("recomputations", self.recomputations)):
            if limit is not None and limit < 0:
                raise SpecError(f"{name} = {limit} is out of range; choose 0 or more")


@dataclass(frozen=True, slots=True)
class RecoveryAction:
    """One action of a recovery."""

    t: int
    how: Literal["retrieve", "recompute"]


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """The cheapest way to the wanted results, and whether the budgets allow it."""

    reads: tuple[RecoveryAction, ...]  # in an order in which every recomputed step finds its references at hand
    depth: int  # recomputed steps on the longest chain: the latency if independent steps run side by side
    within_budget: bool  # False: the result is unavailable; the plan then shows what would be needed

    @property
    def retrieved(self) -> tuple[int, ...]:
        return tuple(read.t for read in self.reads if read.how == "retrieve")

    @property
    def recomputed(self) -> tuple[int, ...]:
        return tuple(read.t for read in self.reads if read.how == "recompute")

    @property
    def cost(self) -> int:
        """Reads of both kinds."""
        return len(self.reads)


def plan_recovery(
    graph: Graph,
    wanted: Collection[int],
    budget: RecoveryBudget,
    *,
    resident: Collection[int] = (),
    retrievable: Collection[int] | None = None,
) -> RecoveryPlan:
    """Return the cheapest plan that makes all wanted results available.

    Args:
        wanted: the references of a step, or one target.
        resident: results at hand, which cost nothing.
        retrievable: results that direct retrieval can hand over; every one unless given.

    Raises:
        SpecError: a step is not in the graph.
        TooLargeError: the exact search would need more than `LARGEST_SEARCH` states.
    """
    n = len(graph)
    if strange := [t for t in (*wanted, *resident, *(retrievable or ())) if not 1 <= t <= n]:
        raise SpecError(f"step {strange[0]} is outside 1 … {n}; choose steps of the graph")
    search = _Search(graph, _as_bits(resident), _as_bits(range(1, n + 1) if retrievable is None else retrievable))
    retrievals = n if budget.retrievals is None else min(budget.retrievals, n)
    if retrievals:
        retrieved, recomputed = search.cheapest(_as_bits(wanted), retrievals)
    else:
        retrieved, recomputed = 0, _as_bits(ancestors(graph, wanted, resident))
    reads = [RecoveryAction(t, "retrieve") for t in _steps(retrieved)] + [
        RecoveryAction(t, "recompute") for t in _steps(recomputed)
    ]
    fits = budget.recomputations is None or recomputed.bit_count() <= budget.recomputations
    return RecoveryPlan(tuple(sorted(reads, key=lambda read: read.t)), _depth(graph, recomputed), fits)


class _Search:
    """A* over what is still needed, always deciding about the newest needed step; sets of steps are bits of integers.

    Everything that refers to the newest needed step is already decided, and its own references are older. So the rest
    of a plan depends on the needed set and the retrievals left, and on nothing else. With a lookback of m the needed
    set spans about m steps: no more than n · 2^m · B_oracle states.
    """

    def __init__(self, graph: Graph, resident: int, retrievable: int) -> None:
        self.graph, self.resident, self.retrievable = graph, resident, retrievable

    def cheapest(self, wanted: int, retrievals: int) -> tuple[int, int]:
        """Return the steps to retrieve and the steps to recompute."""
        start = (wanted & ~self.resident, retrievals)
        came_from: dict[tuple[int, int], tuple[tuple[int, int], int, bool] | None] = {start: None}
        done: set[tuple[int, int]] = set()
        best = {start: (0, 0)}
        queue = [(self._at_least(start), start)]
        while True:
            _, state = heappop(queue)
            if state in done:
                continue
            done.add(state)
            needed, left = state
            if needed & ~self.retrievable == 0 and needed.bit_count() <= left:
                break
            recomputed, reads = best[state]
            for follower, step, recompute in self._moves(state):
                spent = (recomputed + recompute, reads + 1)
                if follower not in best or spent < best[follower]:
                    best[follower], came_from[follower] = spent, (state, step, recompute)
                    bound = self._at_least(follower)
                    heappush(queue, ((spent[0] + bound[0], spent[1] + bound[1]), follower))
            self._refuse_beyond_limit(len(best))
        return self._unwind(came_from, state)

    def _moves(self, state: tuple[int, int]) -> Iterator[tuple[tuple[int, int], int, bool]]:
        needed, left = state
        newest = needed.bit_length() - 1
        rest = needed ^ (1 << newest)
        if left and self.retrievable >> newest & 1:
            yield (rest, left - 1), newest, False
        yield (rest | _as_bits(self.graph[newest - 1]) & ~self.resident, left), newest, True

    def _at_least(self, state: tuple[int, int]) -> tuple[int, int]:
        """Bound the recomputations and the reads still to come from below; a move lowers each by at most its price."""
        needed, left = state
        count = needed.bit_count()
        return max(count - left, (needed & ~self.retrievable).bit_count(), 0), count

    def _refuse_beyond_limit(self, states: int) -> None:
        limit = LARGEST_SEARCH if len(self.graph) <= LARGEST_GRAPH else LARGEST_SEARCH // 100
        if states > limit:
            raise TooLargeError(
                f"the cheapest plan was not found within {limit} states; allow 0 retrievals or one for each target"
            )

    @staticmethod
    def _unwind(
        came_from: dict[tuple[int, int], tuple[tuple[int, int], int, bool] | None], state: tuple[int, int]
    ) -> tuple[int, int]:
        retrieved, recomputed = state[0], 0  # everything that the last state needs is retrieved
        while (move := came_from[state]) is not None:
            state, step, recompute = move
            if recompute:
                recomputed |= 1 << step
            else:
                retrieved |= 1 << step
        return retrieved, recomputed


def _depth(graph: Graph, recomputed: int) -> int:
    depth: dict[int, int] = {}
    for t in _steps(recomputed):
        depth[t] = 1 + max((depth.get(r, 0) for r in graph[t - 1]), default=0)
    return max(depth.values(), default=0)


def _as_bits(steps: Iterable[int]) -> int:
    bits = 0
    for t in steps:
        bits |= 1 << t
    return bits


def _steps(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
