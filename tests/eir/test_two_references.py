"""Top-k with two references: the theorem on classes against refined vectors, and counts against inputs and windows."""

from __future__ import annotations

import importlib.util
from itertools import combinations, product
from math import comb, log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.eir.counting import count_chains, count_chains_to, valid_vectors
from eirkit.eir.frontier import EXACT, count_cut
from eirkit.eir.two_references import count_two_references
from eirkit.eir.windows import count_classes, vector_labels, window_at
from eirkit.lacuna.tasks.generation import generate, graph_of
from eirkit.lacuna.tasks.task import TaskSpec
from tests.eir.test_frontier import brute_force, graphs


def observed(vector: tuple[int, ...], k: int, full: bool, left: int) -> object:
    """Name the class of a vector as Theorem C does."""
    least = [min(vector[:i] + vector[i + 1 :]) for i in range(len(vector))]
    raised = tuple(k if own + other >= k else own for own, other in zip(vector, least, strict=True))
    short = [i for i, own in enumerate(raised) if own < k]
    sums = {(i, j): raised[i] + raised[j] for i, j in combinations(short, 2) if raised[i] + raised[j] < k}
    if not sums:
        return "saturated"
    if any({(a, b), (b, c), (a, c)} <= set(sums) for a, b, c in combinations(short, 3)):
        return raised
    stays = [raised[i] for i in short if not (full and i == 0)]
    revealed = left > 1 and any(own + min(sums.values()) < k for own in stays)
    return raised if revealed else tuple(sums.items())


@pytest.mark.parametrize("left", [1, 2, 3])
@pytest.mark.parametrize(("k", "size"), [(2, 3), (2, 4), (3, 2), (3, 3), (3, 4), (4, 3), (4, 4), (5, 3), (6, 3)])
def test_classes_of_vectors_are_what_the_theorem_says(k: int, size: int, left: int) -> None:
    for reach in (size, size + 1):
        labels = vector_labels(k, 2, reach, size, left).tolist()
        vectors = product(range(k + 1), repeat=size)
        named = [observed(vector, k, reach == size, left) for vector in vectors]
        assert len(set(zip(named, labels, strict=True))) == len(set(named)) == len(set(labels))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_three_values_are_counted_exactly(data: st.DataObject) -> None:
    reach, left = data.draw(st.integers(2, 4)), data.draw(st.integers(1, 4))
    graph = data.draw(graphs(6, reach, 2))
    window, q = window_at(graph, reach, len(graph)), data.draw(st.sampled_from((2, 3, 4, 9, 10**4)))
    if len(window) > 1:
        found, method = count_cut(window, reach, 2, 3, left, q)
        assert (found.lower, found.upper, method) == (*(count_classes(window, 3, 2, reach, left, q),) * 2, EXACT)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_three_values_agree_with_enumerated_inputs(data: st.DataObject) -> None:
    reach, left = data.draw(st.integers(2, 4)), data.draw(st.integers(1, 3))
    graph = data.draw(graphs(3, reach, 2))
    window, q = window_at(graph, reach, len(graph)), data.draw(st.integers(2, 3))
    if len(window) > 1:
        assert count_two_references(window, 3, reach, left, q).lower == brute_force(graph, reach, 2, 3, left, q)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_bounds_hold_for_more_values_and_theorem_b_is_a_special_case(data: st.DataObject) -> None:
    k, left = data.draw(st.sampled_from((2, 4, 5))), data.draw(st.integers(1, 3))
    reach = data.draw(st.integers(2, 5 if k == 2 else 4 if k == 4 else 3))
    graph = data.draw(graphs(6, reach, 2))
    window, q = window_at(graph, reach, len(graph)), data.draw(st.sampled_from((2, 3, 5, 50)))
    if len(window) > 1:
        found = count_two_references(window, k, reach, left, q)
        assert found.lower <= count_classes(window, k, 2, reach, left, q) <= found.upper
        assert found.is_exact or k > 3
        if k == 2:
            assert found == count_cut(window, reach, 2, 2, left, q)[0]


def test_large_windows_are_pinned_and_narrow() -> None:
    """Golden values: a change here changes published numbers."""
    graph = graph_of(generate(TaskSpec("stepwise-topk", k=3, seed=2)))
    window = window_at(graph, 16, 40)
    assert log2(count_two_references(window, 3, 16, 24, 10**4).lower) == pytest.approx(514.588240, abs=1e-6)
    four = count_two_references(window, 4, 16, 24, 10**4)
    assert four.upper_bits - four.lower_bits < 0.1


def test_two_frontiers_and_one_step_left_show_only_their_union() -> None:
    for k, q in product((2, 3, 4), (2, 5, 10**4)):
        assert count_two_references(((), (0,)), k, 2, 1, q).lower == comb(q + k - 1, k)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_chains_are_the_same_forwards_and_backwards(backend: str) -> None:
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    vectors = valid_vectors(window_at(((), (1,), (1, 2), (), (4,), (4, 5), (2, 6)), 7, 7), 3)
    full = (vectors.held == 3).sum(axis=1)
    forwards = count_chains_to(vectors, [full], backend)[0]
    labels = range(int(full.max()) + 1)
    backwards = [count_chains(vectors, (full == label)[:, None])[0] for label in labels]
    assert forwards == backwards
