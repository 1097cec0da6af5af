"""Counts the classes of a step-by-step process by partition refinement of its states.

The process is tabulated once with integers, as far as its horizon reaches. Rounds of refinement then split states by
their moves, outputs and next blocks. After h rounds the blocks are the classes for h remaining steps; when nothing
splits any more they are the greatest fixed point. `tests/eir/processes.py` has the reference implementation.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.eir.contract import (
    LIMIT,
    ContractCount,
    Process,
    ask,
    ask_all,
    call,
    check_repeats,
    collect,
    look_up,
    most_held,
)
from eirkit.errors import ContractError, TooLargeError
from eirkit.seeds import Words, words

Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StateRows:
    """The states that admit the same moves."""

    states: NDArray[np.int32]  # ascending
    observed: Labels  # equal for states with equal outputs to every move
    following: NDArray[np.int32]  # (moves, states)


@dataclass(frozen=True, slots=True)
class TransitionTable:
    """A process with integers for states, moves and outputs; states are numbered breadth first from the cut."""

    cut: tuple[Any, ...]  # the distinct states at the cut, as the user gave them
    within: tuple[int, ...]  # how many states lie within 0, 1, … steps of the cut
    closed: bool  # no step leads out of the table
    rows: tuple[StateRows, ...]
    steps: int  # evaluations of `step`


def count_process(process: Process, *, limit: int = LIMIT) -> ContractCount:
    """Return the classes of the process's states over its remaining horizon.

    Raises:
        ContractError: the process raised an error or returned values that cannot be compared.
        TooLargeError: there are more states or steps than the limit allows.
    """
    table = tabulate(process, limit)
    labels = refine(table, process.horizon)[: table.within[0]]
    order = np.argsort(labels, kind="stable")
    ends = np.flatnonzero(np.diff(labels[order])) + 1
    blocks = sorted(part.tolist() for part in np.split(order, ends))
    groups = tuple(tuple(table.cut[number] for number in block) for block in blocks)
    return ContractCount(
        classes=len(groups),
        groups=groups,
        futures=None,
        horizon=process.horizon,
        evaluations=table.steps,
        method=f"process: {table.within[-1]:,} states refined "
        + ("until stable" if process.horizon is None else f"for a horizon of {process.horizon}"),
    )


def refine(table: TransitionTable, horizon: int | None) -> Labels:
    """Return the block of every state after `horizon` rounds, or once stable; meaningless beyond the horizon."""
    labels: Labels = np.zeros(table.within[-1], dtype=np.int64)
    blocks = 1
    for left in count() if horizon is None else range(horizon - 1, -1, -1):
        # Only states within `left` steps of the cut have been tabulated this deep, and only they are asked for.
        seen = table.within[-1] if table.closed else table.within[left]
        labels, found = _refine_once(table, labels, seen)
        if table.closed and found == blocks:
            break
        blocks = found
    return labels


def _refine_once(table: TransitionTable, labels: Labels, seen: int) -> tuple[Labels, int]:
    refined = np.zeros_like(labels)
    blocks = 0
    for rows in table.rows:
        here = int(np.searchsorted(rows.states, seen))
        if here:
            following = (labels[row] for row in rows.following[:, :here])
            found = group_columns([rows.observed[:here], *following], here)
            refined[rows.states[:here]] = found + blocks
            blocks += int(found.max()) + 1
    return refined, blocks


def group_columns(rows: list[NDArray[Any]], width: int) -> Labels:
    """Return one number per column, equal exactly for equal columns.

    Columns are grouped by a hash, then compared: a collision costs another attempt, never a wrong count.
    """
    for attempt in count():
        factors = _factors(attempt, 1 << (len(rows) - 1).bit_length())[: len(rows)]
        key = np.zeros(width, dtype=np.uint64)
        for factor, row in zip(factors, rows, strict=True):
            key += row.astype(np.uint64) * factor
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        likeness = first[inverse]
        if all(np.array_equal(row, row[likeness]) for row in rows):
            return inverse.astype(np.int64)
    raise AssertionError("unreachable")


@lru_cache(maxsize=32)
def _factors(attempt: int, size: int) -> Words:
    """Return odd multipliers for a hash of columns: drawing them took longer than grouping a small table."""
    factors: Words = words([attempt], size, "refinement")[0] | np.uint64(1)
    return factors


def tabulate(process: Process, limit: int = LIMIT) -> TransitionTable:
    """Explore every move from every state within the horizon and number states, moves and outputs."""
    return _Exploration(process, limit).run()


class _Exploration:
    """The numbering of states, moves and outputs while a process is explored."""

    def __init__(self, process: Process, limit: int) -> None:
        self.process, self.limit = process, limit
        self.numbers: dict[Any, int] = {}
        self.states: list[Any] = []
        self.moves: dict[Any, int] = {}
        self.outputs: dict[Any, int] = {}
        self.rows: dict[tuple[int, ...], tuple[array[int], array[int], array[int]]] = {}
        self.steps = 0

    def run(self) -> TransitionTable:
        for state in collect(self.process, "states", self.limit):
            self._number_state(state, "states")
        if self.process.horizon != 0:
            self._check_repeatable(self.states[0])
        within = [len(self.states)]
        expanded = 0
        while expanded < len(self.states) and len(within) - 1 != self.process.horizon:
            for number in range(expanded, within[-1]):
                self._expand(number)
            expanded = within[-1]
            within.append(len(self.states))
        cut = tuple(self.states[: within[0]])
        return TransitionTable(cut, tuple(within), expanded == len(self.states), tuple(self._packed()), self.steps)

    def _check_repeatable(self, state: Any) -> None:
        once, again = (self._open_moves(state) for _ in range(2))
        check_repeats(set(once), set(again), self.process.moves, state)
        step = self.process.step
        for move in once:
            check_repeats(ask(step, state, move), ask(step, state, move), step, state, move)

    def _expand(self, number: int) -> None:
        played = self._play(self.states[number])
        shape = tuple(move for move, _, _ in played)
        states, outputs, following = self.rows.setdefault(shape, (array("i"), array("i"), array("i")))
        states.append(number)
        outputs.extend(output for _, output, _ in played)
        following.extend(state for _, _, state in played)

    def _play(self, state: Any) -> list[tuple[int, int, int]]:
        """Return (move, output, next state) for every open move, by numbers and in their order."""
        step = self.process.step
        played = []
        for move in self._open_moves(state):
            result = ask(step, state, move)
            if not isinstance(result, tuple) or len(result) != 2:
                raise ContractError(f"{call(step, state, move)} returned {short(result)}; return (output, next state)")
            output = _number(self.outputs, result[0], step, state, move)
            played.append((self.moves[move], output, self._number_state(result[1], step, state, move)))
        self.steps += len(played)
        return sorted(played)

    def _open_moves(self, state: Any) -> Iterable[Any]:
        left = self.limit - self.steps
        found = ask_all(left, self.process.moves, state)
        if len(found) > left:
            raise TooLargeError(
                _too_large(f"more than {self.limit:,} steps in {len(self.states):,} states", self.limit)
            )
        for move in found:
            _number(self.moves, move, self.process.moves, state)
        return dict.fromkeys(found)

    def _number_state(self, state: Any, *origin: Any) -> int:
        number = _number(self.numbers, state, *origin)
        if number == len(self.states):
            if number == (most := most_held(self.limit)):
                raise TooLargeError(_too_large(f"more than {most:,} states", self.limit))
            self.states.append(state)
        return number

    def _packed(self) -> Iterator[StateRows]:
        for shape, columns in self.rows.items():
            states, outputs, following = (np.frombuffer(column, dtype=np.int32) for column in columns)
            by_move = (len(states), len(shape))
            observed = group_columns(list(outputs.reshape(by_move).T), len(states))
            yield StateRows(states, observed, np.ascontiguousarray(following.reshape(by_move).T))


def _number(numbers: dict[Any, int], value: Any, *origin: Any) -> int:
    number = look_up(numbers, value, *origin)
    if number is None:
        number = numbers[value] = len(numbers)
    return number


def _too_large(what: str, limit: int) -> str:
    return (
        f"{what} at a limit of {limit:,} evaluations; count a smaller alphabet or window and lift, "
        "set a horizon, or raise the limit (--limit)"
    )
