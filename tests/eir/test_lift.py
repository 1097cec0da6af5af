"""Counts at small alphabets lift to counts that were made at larger ones, and impostors are found out."""

from __future__ import annotations

from itertools import product
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.eir.bisimulation import count_process
from eirkit.eir.demand import stepwise_sum
from eirkit.errors import UsageError
from tests.eir.lifting import BinomialPolynomial, alphabets_needed, fit, lift
from tests.eir.processes import MaxWindow, OnlineWindow, Operator, SumWindow, TopKWindow

GRAPHS = {
    "apart": ((), (), (), ()),
    "chain": ((), (1,), (1, 2), (2, 3)),
    "fork": ((), (1,), (1,), (1, 3)),
    "two roots": ((), (), (1, 2), (1, 3)),
}


def ranked(q: int, rank: int) -> Operator:
    """The rank-th largest of the input and the operands: every such operator only compares."""

    def apply(fresh: int, operands: list[int]) -> int:
        present = sorted((fresh, *operands), reverse=True)
        return present[min(rank, len(present)) - 1]

    return Operator(tuple(range(q)), apply)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize("reach", [2, 3, 4])
@pytest.mark.parametrize("left", [0, 1, 2, None])
def test_stepwise_maximum_lifts(graph: tuple[tuple[int, ...], ...], reach: int, left: int | None) -> None:
    graph = graph if reach == 4 else graph[: reach + 1]

    def classes(q: int) -> int:
        model = MaxWindow(q, reach, 2)
        return count_process(model.at(model.after_graph(graph, len(graph)).states, left)).classes

    assert lift([classes(q) for q in range(1, reach + 1)], reach + 2, values=reach) == classes(reach + 2)


@pytest.mark.parametrize(("reach", "k", "left", "q"), [(1, 2, 1, 5), (2, 2, 1, 6), (2, 2, 2, 6), (1, 3, 2, 6)])
def test_top_k_lifts(reach: int, k: int, left: int, q: int) -> None:
    def classes(alphabet: int) -> int:
        process = TopKWindow(alphabet, reach, 2, k).after(reach, reach + left)
        return count_process(process).classes

    values = reach * k
    assert lift([classes(alphabet) for alphabet in range(1, values + 1)], q, values=values) == classes(q)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 5), st.integers(0, 3) | st.none())
def test_every_ranking_operator_lifts(reach: int, fan_in: int, rank: int, t: int, left: int | None) -> None:
    def classes(q: int) -> int:
        model = OnlineWindow(ranked(q, rank), reach, fan_in)
        return count_process(model.at(model.after(t, t).states, left)).classes

    values = min(t, reach)
    found = fit([classes(q) for q in range(1, alphabets_needed(values) + 1)], values=values)
    assert found(values + 2) == classes(values + 2)
    assert min(found.coefficients) >= 0


def test_a_coefficient_is_the_number_of_classes_that_depend_on_so_many_values() -> None:
    # Two values of which only the maximum will be seen: one class per value, none that depends on two.
    assert fit([1, 2], values=2).coefficients == (0, 1, 0)
    # All q^2 windows distinct: one class per value (both equal), and two orders for every pair of different values.
    assert fit([1, 4], values=2).coefficients == (0, 1, 2)


@given(st.lists(st.integers(0, 50), min_size=2, max_size=8), st.integers(1, 10**4))
def test_coefficients_come_back_exactly(tail: list[int], q: int) -> None:
    polynomial = BinomialPolynomial((0, 1, *tail))
    counts = [polynomial(small) for small in range(1, len(tail) + 2)]
    assert fit(counts, values=len(counts)) == polynomial
    assert lift(counts, q, values=len(counts)) == q + sum(a * comb(q, j) for j, a in enumerate(tail, 2))


@pytest.mark.parametrize("q", [1, 2, 10**4])
def test_no_demand_lifts_to_no_demand(q: int) -> None:
    assert lift([1], q, values=0) == 1
    assert lift([1, 1], q, values=1) == 1
    assert lift([1, 1, 1], q, values=3) == 1


def test_one_value_needs_two_alphabets() -> None:
    with pytest.raises(UsageError, match="count q = 1 … 2"):
        lift([1], 10**4, values=1)
    assert lift([1, 2], 10**4, values=1) == 10**4


def test_too_few_alphabets_are_refused() -> None:
    with pytest.raises(UsageError, match=r"3 counts cannot determine N for windows of 4 values; count q = 1 … 4"):
        lift([1, 4, 9], 10, values=4)


def test_an_extra_alphabet_finds_out_a_workload_that_does_arithmetic() -> None:
    counts = [stepwise_sum(q, 4, 3, 2, 3) for q in (2, 3, 4)]
    assert counts == [count_process(SumWindow(q, 3, 2).after(3, 4)).classes for q in (2, 3, 4)]
    with pytest.raises(UsageError, match="does more than compare 3 values"):
        lift([1, *counts], 10, values=3)


def test_negative_coefficients_count_no_classes() -> None:
    with pytest.raises(UsageError, match="are not class counts"):
        lift([1, 1, 2], 10, values=3)


def test_maximum_with_two_references_is_the_lattice_formula() -> None:
    # Design: order-preserving maps of the window whose minimum is attained at least twice. Four unrelated values:
    def attained_twice(q: int) -> int:
        return sum(w.count(min(w)) >= 2 for w in product(range(q), repeat=4))

    counts = []
    for q in range(1, 5):
        model = MaxWindow(q, 4, 2)
        counts.append(count_process(model.at(product(range(q), repeat=4), None)).classes)
        assert counts[-1] == attained_twice(q)
    assert lift(counts, 6, values=4) == attained_twice(6)
