"""Refinement by arrays against refinement with dictionaries and against Algorithm 1, over random processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.eir.bisimulation import count_process, group_columns, tabulate
from eirkit.eir.contract import count_signatures
from eirkit.errors import ContractError, TooLargeError
from eirkit.seeds import words
from tests.eir.processes import MaxWindow, SumWindow, TopKWindow, count_classes, unrolled


@dataclass(frozen=True)
class Machine:
    """A process as a table: edges[state][move] = (output, next state)."""

    edges: tuple[dict[int, tuple[int, int]], ...]
    states: tuple[int, ...]
    horizon: int | None

    def moves(self, state: int) -> Iterator[int]:
        return iter(self.edges[state])

    def step(self, state: int, move: int) -> tuple[int, int]:
        return self.edges[state][move]


@st.composite
def machines(draw: st.DrawFn, *, same_moves: bool = False) -> Machine:
    size = draw(st.integers(1, 12))
    targets = st.tuples(st.integers(0, 1), st.integers(0, size - 1))
    if same_moves:
        edges = [dict(enumerate(draw(st.lists(targets, min_size=2, max_size=2)))) for _ in range(size)]
    else:
        edges = [draw(st.dictionaries(st.integers(0, 2), targets, max_size=3)) for _ in range(size)]
    states = draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=size))
    return Machine(tuple(edges), tuple(states), draw(st.none() | st.integers(0, 5)))


@given(machines())
def test_arrays_and_dictionaries_agree(machine: Machine) -> None:
    counted = count_process(machine)
    assert counted.classes == count_classes(machine)
    assert counted.histories == len(set(machine.states))
    assert sorted(state for group in counted.groups for state in group) == sorted(set(machine.states))


@given(machines(same_moves=True), st.integers(0, 4))
def test_a_horizon_is_algorithm_one_over_all_move_sequences(machine: Machine, horizon: int) -> None:
    bounded = Machine(machine.edges, machine.states, horizon)
    assert count_process(bounded).classes == count_signatures(unrolled(bounded))


@given(machines(same_moves=True))
def test_for_ever_is_as_many_steps_as_there_are_states(machine: Machine) -> None:
    def classes(horizon: int | None) -> int:
        return count_process(Machine(machine.edges, machine.states, horizon)).classes

    assert classes(None) == classes(len(machine.edges))
    assert all(classes(h) <= classes(h + 1) for h in range(4))


@pytest.mark.parametrize("horizon", [0, 1, 2, 3, None])
@pytest.mark.parametrize("model", [SumWindow(3, 3, 2), MaxWindow(4, 3, 2), MaxWindow(3, 4, 3), TopKWindow(3, 2, 2, 2)])
def test_workloads_agree_while_filling_and_full(model: Any, horizon: int | None) -> None:
    for t in range(model.reach + 2):
        process = model.at(model.after(t, t).states, horizon)
        assert count_process(process).classes == count_classes(process)


def test_no_step_left_leaves_one_class_and_plays_nothing() -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("no step is left")

    counted = count_process(SimpleNamespace(states="abc", horizon=0, moves=refuse, step=refuse))
    assert (counted.classes, counted.bits, counted.evaluations) == (1, 0, 0)


def test_the_open_moves_are_seen() -> None:
    ends = Machine(({0: (0, 1)}, {}), (0, 1), 1)
    assert count_process(ends).classes == 2
    assert count_process(Machine(ends.edges, ends.states, 0)).classes == 1


def test_a_horizon_bounds_what_is_explored() -> None:
    # A counter that never repeats: only five steps from the cut can matter, and only they are played.
    asked: list[int] = []

    def step(state: int, move: str) -> tuple[int, int]:
        asked.append(state)
        return state // 4, state + 1

    counter = SimpleNamespace(states=range(3), horizon=5, moves=lambda state: ("tick",), step=step)
    counted = count_process(counter)
    assert max(asked) == 2 + 4
    # Outputs n // 4 of five ticks from 0, 1, 2: 00001, 00011, 00111.
    assert counted.classes == 3
    assert count_process(SimpleNamespace(**{**vars(counter), "horizon": 2})).classes == 1


def test_a_long_horizon_stops_when_nothing_splits() -> None:
    assert count_process(SumWindow(3, 2, 2).after(2, 10**9)).classes == 9


def test_equal_columns_get_equal_numbers_even_when_hashes_collide() -> None:
    first, second = (int(factor) for factor in words([0], 2, "refinement")[0] | np.uint64(1))
    # (second, 0) and (0, first) have the same hash, first × second, at the first attempt.
    rows = [np.array([second, 0, second], dtype=np.uint64), np.array([0, first, 0], dtype=np.uint64)]
    numbers = group_columns(rows, 3).tolist()
    assert numbers[0] == numbers[2] != numbers[1]


def test_no_rows_make_one_group() -> None:
    assert group_columns([], 4).tolist() == [0, 0, 0, 0]


def endless(**changes: Any) -> Any:
    parts = {"states": (0,), "horizon": None, "moves": lambda s: (1,), "step": lambda s, m: (0, s + m)}
    return SimpleNamespace(**{**parts, **changes})


def test_an_infinite_process_is_refused_with_numbers() -> None:
    with pytest.raises(TooLargeError, match=r"more than 1,000 states at a limit of 1,000 evaluations; .*--limit"):
        count_process(endless(), limit=1000)
    with pytest.raises(TooLargeError, match="1,000,000,000,000 states"):
        count_process(endless(states=range(10**12)))
    with pytest.raises(TooLargeError, match="more than 1,000 steps in 1 states"):
        count_process(endless(moves=lambda s: count()), limit=1000)
    with pytest.raises(TooLargeError, match="more than 1,000 steps"):
        count_process(endless(moves=lambda s: range(99)), limit=1000)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"moves": lambda s: 1 / 0}, r"\(0\) raised ZeroDivisionError"),
        ({"moves": lambda s: (1 / m for m in (1, 0))}, r"\(0\) raised ZeroDivisionError"),
        ({"moves": lambda s: ([],)}, r"\(0\) returned \[\]"),
        ({"step": lambda s, m: {}[m]}, r"\(0, 1\) raised KeyError: 1"),
        ({"step": lambda s, m: s}, r"\(0, 1\) returned 0; return \(output, next state\)"),
        ({"step": lambda s, m: (s, [s])}, r"\(0, 1\) returned \[0\]"),
        ({"step": lambda s, m: ([s], s)}, r"\(0, 1\) returned .*\[0\]"),
        ({"step": lambda s, m: (float("nan"), s)}, r"nan"),
        ({"step": lambda s, m: (object(), s)}, r"\(0, 1\) returned .*, then .*; make it depend"),
        ({"states": []}, "states is empty"),
        ({"states": [[1]]}, r"states returned \[1\]"),
    ],
)
def test_a_broken_process_is_one_line_with_a_remedy(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ContractError, match=complaint):
        count_process(endless(**changes))


def test_states_at_the_cut_are_counted_once_and_first() -> None:
    table = tabulate(Machine(({0: (0, 1)}, {0: (0, 0)}), (1, 1), None))
    assert (table.cut, table.within, table.closed) == ((1,), (1, 2, 2), True)
