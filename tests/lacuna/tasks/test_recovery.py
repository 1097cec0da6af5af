"""The planner: worked by hand, and against every plan of small graphs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.errors import SpecError, TooLargeError
from eirkit.lacuna.tasks.cones import cone_of
from eirkit.lacuna.tasks.recovery import RecoveryAction, RecoveryBudget, RecoveryPlan, plan_recovery
from eirkit.lacuna.tasks.workload import Graph, as_tuples, draw_references
from tests.lacuna.strategies import graphs

DIAMOND: Graph = ((), (1,), (1,), (2, 3), (4,), (3,))  # 1 ← 2, 3 ← 4 ← 5, and 3 ← 6


def needed_with(
    graph: Graph, wanted: Collection[int], resident: Collection[int], retrieved: frozenset[int]
) -> set[int]:
    """What must be obtained if exactly these results may be handed over and all else is computed."""
    needed: set[int] = set()
    waiting = [t for t in wanted if t not in resident]
    while waiting:
        t = waiting.pop()
        if t not in needed:
            needed.add(t)
            waiting += [] if t in retrieved else [r for r in graph[t - 1] if r not in resident]
    return needed


def all_plans(
    graph: Graph, wanted: Collection[int], resident: Collection[int], retrievable: Collection[int]
) -> Iterator[tuple[int, int]]:
    """The (retrievals, recomputations) of every plan without useless retrievals."""
    choices = sorted(set(retrievable) - set(resident))
    for size in range(len(choices) + 1):
        for chosen in map(frozenset, combinations(choices, size)):
            needed = needed_with(graph, wanted, resident, chosen)
            if chosen <= needed:
                yield len(chosen), len(needed - chosen)


def check_executable(graph: Graph, wanted: Collection[int], resident: Collection[int], plan: RecoveryPlan) -> None:
    """Carry the plan out: every recomputed step must find its references."""
    in_context = set(resident)
    for read in plan.reads:
        assert read.t not in in_context
        assert read.how == "retrieve" or set(graph[read.t - 1]) <= in_context
        in_context.add(read.t)
    assert set(wanted) <= in_context


@settings(max_examples=400, deadline=None)
@given(graph=graphs(largest=9), data=st.data())
def test_no_plan_of_a_small_graph_is_cheaper(graph: Graph, data: st.DataObject) -> None:
    steps = st.integers(1, len(graph))
    wanted = data.draw(st.sets(steps, max_size=3))
    resident = data.draw(st.sets(steps, max_size=3))
    retrievable = data.draw(st.just(set(range(1, len(graph) + 1))) | st.sets(steps))
    budget = RecoveryBudget(data.draw(st.none() | st.integers(0, 4)), data.draw(st.none() | st.integers(0, 6)))
    plan = plan_recovery(graph, wanted, budget, resident=resident, retrievable=retrievable)
    check_executable(graph, wanted, resident, plan)
    assert set(plan.retrieved) <= retrievable

    most_retrievals = 99 if budget.retrievals is None else budget.retrievals
    most_recomputations = 99 if budget.recomputations is None else budget.recomputations
    allowed = [p for p in all_plans(graph, wanted, resident, retrievable) if p[0] <= most_retrievals]
    cost = (len(plan.retrieved), len(plan.recomputed))
    assert cost in allowed
    # Fewest recomputations, then fewest retrievals; and with that the fewest reads of any kind.
    assert cost[::-1] == min(p[::-1] for p in allowed)
    assert plan.cost == min(map(sum, allowed))
    # A plan within both budgets is found whenever there is one.
    assert plan.within_budget == any(recomputed <= most_recomputations for _, recomputed in allowed)


def test_direct_retrieval_costs_one_read_whatever_the_cone() -> None:
    graph = as_tuples(draw_references([0], 64, 8, 4)[0])
    plan = plan_recovery(graph, [64], RecoveryBudget(retrievals=1, recomputations=0))
    assert (plan.reads, plan.cost, plan.within_budget) == ((RecoveryAction(64, "retrieve"),), 1, True)


@given(graphs(largest=20), st.data())
def test_without_retrieval_the_plan_is_the_cone(graph: Graph, data: st.DataObject) -> None:
    target = data.draw(st.integers(1, len(graph)))
    resident = data.draw(st.sets(st.integers(1, len(graph))))
    cone = cone_of(graph, target, resident)
    plan = plan_recovery(graph, [target], RecoveryBudget(0, cone.size), resident=resident)
    assert (plan.recomputed, plan.depth, plan.within_budget) == (cone.nodes, cone.depth, True)
    assert (
        cone.size == 0
        or not plan_recovery(graph, [target], RecoveryBudget(0, cone.size - 1), resident=resident).within_budget
    )


def test_both_interfaces_mix() -> None:
    """Steps 5 and 6 are wanted and one retrieval is allowed. Retrieving 5 leaves 6, 3, 1; retrieving 3, deep inside,
    leaves 6 and 5, 4, 2, 1. So: retrieve 5, recompute three."""
    plan = plan_recovery(DIAMOND, [5, 6], RecoveryBudget(1, 3))
    assert plan.reads == (
        RecoveryAction(1, "recompute"),
        RecoveryAction(3, "recompute"),
        RecoveryAction(5, "retrieve"),
        RecoveryAction(6, "recompute"),
    )
    assert (plan.depth, plan.within_budget) == (3, True)


def test_an_inner_result_can_be_the_one_to_retrieve() -> None:
    """Only 1, 2 and 3 were written to the store: with two retrievals, 2 and 3 serve both 5 and 6."""
    plan = plan_recovery(DIAMOND, [5, 6], RecoveryBudget(2, 3), retrievable=(1, 2, 3))
    assert (plan.retrieved, plan.recomputed, plan.depth) == ((2, 3), (4, 5, 6), 2)


def test_beyond_the_budget_the_plan_says_what_it_would_take() -> None:
    plan = plan_recovery(DIAMOND, [5], RecoveryBudget(0, 4))
    assert (plan.recomputed, plan.within_budget) == ((1, 2, 3, 4, 5), False)


def test_what_is_resident_costs_nothing() -> None:
    plan = plan_recovery(DIAMOND, [4], RecoveryBudget(0, 0), resident=[4])
    assert (plan.reads, plan.depth, plan.within_budget) == ((), 0, True)


@pytest.mark.parametrize("fan_in", [2, 4])
@pytest.mark.parametrize("retrievals", range(4))
def test_full_size_graphs_agree_with_every_choice_of_retrievals(fan_in: int, retrievals: int) -> None:
    """The references of the last step of a 40-step graph, four of them kept; choices of up to three by brute force."""
    graph = as_tuples(draw_references([6], 40, 8, fan_in)[0])
    resident = (37, 38, 39, 36)
    wanted = graph[39]
    plan = plan_recovery(graph, wanted, RecoveryBudget(retrievals), resident=resident)
    check_executable(graph, wanted, resident, plan)
    cone = sorted(needed_with(graph, wanted, resident, frozenset()))
    best = min(
        len(needed_with(graph, wanted, resident, frozenset(chosen)) - set(chosen))
        for chosen in combinations(cone, min(retrievals, len(cone)))
    )
    assert len(plan.recomputed) == best


def test_long_graphs_without_retrieval_need_no_search() -> None:
    n = 100_000
    chain = tuple((t - 1,) if t > 1 else () for t in range(1, n + 1))
    assert plan_recovery(chain, [n], RecoveryBudget(0)).cost == n


def test_a_search_without_end_is_refused() -> None:
    graph = as_tuples(draw_references([1], 400, 60, 4)[0])
    with pytest.raises(TooLargeError, match=r"the cheapest plan was not found within \d+ states; allow"):
        plan_recovery(graph, [400], RecoveryBudget(12), retrievable=range(1, 399, 2))


@pytest.mark.parametrize("field", ["retrievals", "recomputations"])
def test_a_negative_budget_is_refused(field: str) -> None:
    with pytest.raises(SpecError, match=f"{field} = -1 is out of range; choose 0 or more"):
        RecoveryBudget(**{field: -1})


def test_a_step_outside_the_graph_is_refused() -> None:
    with pytest.raises(SpecError, match="step 9 is outside 1 … 6; choose steps of the graph"):
        plan_recovery(DIAMOND, [9], RecoveryBudget())
