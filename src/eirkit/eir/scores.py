"""What histories earn by each answer to each question, the table behind lossy EIR; also if some results may be fetched.

A question is all that the reader of a memory sees when it must respond: a future of a finite contract, or the moves of
a process so far. Questions that divide the histories alike, in the same proportions, are one question with their joint
probability; histories that earn alike are one atom.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.eir.contract import (
    LIMIT,
    FiniteContract,
    Process,
    acceptable,
    ask,
    ask_all,
    call,
    check_value,
    collect,
    collect_both,
    supplied,
)
from eirkit.errors import ContractError, TooLargeError

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

CELLS = 20_000_000  # numbers held in one array: 160 MB
_DIGITS = 12  # proportions that agree to this many digits are equal; differences are rounding
EQUAL = 1e-12  # differences of sums of shares that are rounding


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTable:
    """Probabilities of meeting each question after each history, in the column of each right answer."""

    histories: tuple[Any, ...]
    weights: Floats  # probability of each history
    atoms: Numbers  # the row of each history in `gains`
    gains: Floats  # (atoms, columns); sums to 1 where one answer is right
    starts: Numbers  # the first column of each question
    asked: dict[Any, tuple[int, tuple[Any, ...]]]  # question -> its first column, and its answers in their order

    @property
    def masses(self) -> Floats:
        """The probability of each atom."""
        found: Floats = np.bincount(self.atoms, self.weights, minlength=len(self.gains)).astype(np.float64)
        return found

    def values(self, sums: Floats) -> Floats:
        """Return what the best answers earn for sums of rows, shape (…, columns)."""
        best: Floats = np.maximum.reduceat(sums, self.starts, axis=-1).sum(axis=-1)
        return best

    def best_columns(self, sums: Floats) -> Numbers:
        """Return the column of the best answer to each question, shape (rows, questions); the first among equals."""
        ends = np.append(self.starts[1:], sums.shape[1])
        parts = [sums[:, a:b].argmax(axis=1) + a for a, b in zip(self.starts, ends, strict=True)]
        return np.stack(parts, axis=1)


def score_table(contract: FiniteContract | Process, *, limit: int = LIMIT, apart: Numbers | None = None) -> ScoreTable:
    """Return the table of a contract; histories with different rows of `apart` are different atoms.

    Histories and futures are equally likely unless the contract has `history_weight(history)`, `future_weight(future)`
    or, for a process, `move_weight(state, move)`; weights need not sum to 1.

    Raises:
        ContractError: the contract raised an error, or its weights are no probabilities.
        TooLargeError: there are more evaluations than the limit, or more numbers than fit.
    """
    asking = _Questions()
    if isinstance(contract, Process):
        histories = list(dict.fromkeys(collect(contract, "states", limit)))
        weights = _law(contract, "history_weight", histories)
        _ask_process(contract, histories, weights, asking, limit)
    else:
        found, futures = collect_both(contract, limit)
        histories = list(found)
        weights = _law(contract, "history_weight", histories)
        values = [supplied(contract, history) for history in histories]
        for future, weight in zip(futures, _law(contract, "future_weight", futures), strict=True):
            answers = [acceptable(contract, history, future) for history in histories]
            for value in dict.fromkeys(values):  # whoever answers sees what is given, so each value is a question
                question = (value, future) if hasattr(contract, "given") else future
                asking.add(question, answers, weights * weight * np.array([found == value for found in values]))
    return asking.table(tuple(histories), weights, np.zeros((len(histories), 0), np.int64) if apart is None else apart)


class _Questions:
    """Questions collected so far; those that divide the histories alike are kept once."""

    def __init__(self) -> None:
        self.kept: dict[tuple[bytes, bytes], tuple[Numbers, Floats]] = {}  # (history, answer) pairs, chances
        self.members: dict[tuple[bytes, bytes], list[tuple[Any, tuple[Any, ...]]]] = {}

    def add(self, question: Any, answers: Sequence[tuple[Any, ...]], weights: Floats) -> None:
        """Add a question with each history's right answers and probability of meeting it, unless nobody meets it."""
        total = float(weights.sum())
        if total <= 0:
            return
        numbers: dict[Any, int] = {}
        cells = np.array(
            [
                (row, numbers.setdefault(a, len(numbers)))
                for row, (right, w) in enumerate(zip(answers, weights, strict=True))
                if w
                for a in right
            ]
        ).T
        key = (cells.tobytes(), np.round(weights / total, _DIGITS).tobytes())
        known = self.kept.get(key)
        self.kept[key] = (cells, weights if known is None else known[1] + weights)
        self.members.setdefault(key, []).append((question, tuple(numbers)))
        if len(weights) * len(self.kept) > CELLS:
            raise TooLargeError(f"more than {CELLS:,} numbers to hold; use fewer histories, futures or steps")

    def table(self, histories: tuple[Any, ...], weights: Floats, apart: Numbers) -> ScoreTable:
        """Return the table; histories that differ in a column of `apart` are never one atom."""
        columns = sum(len(self.members[key][0][1]) for key in self.kept)
        if len(histories) * columns > CELLS:
            raise TooLargeError(
                f"{len(histories):,} histories × {columns:,} answers exceed {CELLS:,} numbers; use a smaller alphabet"
            )
        gains = np.zeros((len(histories), columns))
        starts, asked = [], {}
        first = 0
        total = 0.0
        for key, ((rows, places), chances) in self.kept.items():
            gains[rows, first + places] = chances[rows]
            total += float(chances.sum())
            starts.append(first)
            for question, answers in self.members[key]:
                asked[question] = first, answers
            first += len(self.members[key][0][1])
        gains /= total
        shares = np.divide(gains, weights[:, None], out=np.zeros_like(gains), where=weights[:, None] > 0)
        shares = np.concatenate((shares, apart.reshape(len(histories), -1)), axis=1)
        _, places, atoms = np.unique(np.round(shares, _DIGITS), axis=0, return_index=True, return_inverse=True)
        order = np.argsort(np.argsort(places))  # atoms in the order of their first history
        atoms = order[atoms.ravel()]
        merged = np.zeros((len(places), columns))
        np.add.at(merged, atoms, gains)
        return ScoreTable(histories, weights, atoms, merged, np.array(starts), asked)


def _ask_process(process: Process, states: Sequence[Any], weights: Floats, asking: _Questions, limit: int) -> None:
    """Add every sequence of moves within the horizon; the reader also sees which moves are open."""
    if process.horizon is None:
        raise ContractError("a process without end has no expected share of right responses; set its horizon")
    steps = 0
    nodes: list[tuple[tuple[Any, ...], list[Any], Floats]] = [((), list(states), weights)]
    for _ in range(process.horizon):
        following: list[tuple[tuple[Any, ...], list[Any], Floats]] = []
        for seen, now, chances in nodes:
            reached: dict[Any, tuple[list[tuple[Any, ...]], list[Any], Floats]] = {}
            for number, (state, chance) in enumerate(zip(now, chances, strict=True)):
                if not chance:
                    continue
                moves = list(dict.fromkeys(ask_all(limit, process.moves, state)))
                steps += len(moves)
                if steps > limit:
                    raise TooLargeError(
                        f"more than {limit:,} steps to evaluate; use a shorter horizon, fewer moves or a higher --limit"
                    )
                for move, weight in zip(moves, _law(process, "move_weight", moves, state), strict=True):
                    output, after = ask(process.step, state, move)
                    check_value(output, process.step, state, move)
                    key = (*seen, (frozenset(moves), move))
                    outputs, states_after, likely = reached.setdefault(
                        key, ([()] * len(now), [None] * len(now), np.zeros(len(now)))
                    )
                    outputs[number], states_after[number], likely[number] = (output,), after, chance * weight
            for key, (outputs, states_after, likely) in reached.items():
                asking.add(key, outputs, likely)
                following.append((key, states_after, likely))
        nodes = following
    if not asking.kept:
        raise ContractError("no response is ever asked for; give a horizon of at least one step, and moves")


def _law(contract: Any, name: str, items: Sequence[Any], *before: Any) -> Floats:
    """Return probabilities from the declared weights; equal ones if none are declared."""
    verb: Callable[..., Any] | None = getattr(contract, name, None)
    if verb is None or not items:
        return np.full(len(items), 1 / max(1, len(items)))
    weights = []
    for item in items:
        weight = ask(verb, *before, item)
        if not isinstance(weight, (int, float)) or not (0 <= weight < math.inf):
            raise ContractError(f"{call(verb, *before, item)} returned {weight!r}; return a number of at least 0")
        weights.append(float(weight))
    if not (total := math.fsum(weights)):
        raise ContractError(f"every {name} is 0; give at least one above 0")
    return np.array(weights) / total


class Retrievals:
    """What every set of atoms earns by each question, with 0, 1, … retrievals left; for small contracts only.

    Results are fetched one by one, once the question is known; the place to look at next may depend on what the
    earlier ones showed. `tests/eir/test_covering.py` compares with every order of retrievals.
    """

    def __init__(self, table: ScoreTable, sums: Floats, shown: Sequence[Sequence[Any]], budget: int) -> None:
        """Take the sums of gains over every set of atoms, and what each place shows after each history."""
        self.table, self.sums = table, sums
        self.places: list[dict[Any, int]] = []  # what a place shows -> the atoms after which it does
        for place in range(len(shown[0])):
            sets: dict[Any, int] = {}
            for atom, found in zip(table.atoms.tolist(), shown, strict=True):
                sets[found[place]] = sets.get(found[place], 0) | 1 << atom
            self.places.append(sets)
        every = np.arange(len(sums))
        self.levels: list[Floats] = [np.maximum.reduceat(sums, table.starts, axis=1)]
        for _ in range(min(budget, len(self.places))):  # no place shows anything new the second time
            now = self.levels[-1]
            looked: list[Floats] = [
                sum((now[every & part] for part in sets.values()), np.zeros_like(now)) for sets in self.places
            ]
            self.levels.append(np.maximum.reduce([now, *looked]))

    @property
    def value(self) -> Floats:
        """What each set of atoms earns by all questions."""
        total: Floats = self.levels[-1].sum(axis=1)
        return total

    def answer(self, atoms: int, question: int, fetch: Callable[[int], Any]) -> int:
        """Return the column of the best answer to a question, `fetch(place)` being how a result is retrieved."""
        for left in range(len(self.levels) - 1, 0, -1):
            before = self.levels[left - 1][:, question]
            if self.levels[left][atoms, question] <= before[atoms] + EQUAL:
                continue  # one retrieval less does as well
            worth = [sum(before[atoms & part] for part in sets.values()) for sets in self.places]
            place = int(np.argmax(worth))
            atoms &= self.places[place].get(fetch(place), 0)
        first = int(self.table.starts[question])
        last = int(self.table.starts[question + 1]) if question + 1 < len(self.table.starts) else self.sums.shape[1]
        return first + int(self.sums[atoms, first:last].argmax())
