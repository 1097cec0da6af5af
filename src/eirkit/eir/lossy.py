"""Lossy EIR: the best share of right responses that a memory of K states can reach, and an encoder that reaches it.

Small contracts are solved exactly, over all partitions of their atoms. For larger ones an encoder is constructed, which
bounds the best accuracy from below, and `ceiling.py` bounds it from above. `tests/eir/test_lossy.py` compares both with
every encoder of thousands of small contracts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import Any

import numpy as np

from eirkit.eir.ceiling import Ceiling, ceiling
from eirkit.eir.contract import LIMIT, ContractCount, FiniteContract, Process, collect_both, supplied
from eirkit.eir.covering import Cover, count_any, covers_of, retrievable
from eirkit.eir.scores import Floats, Numbers, Retrievals, ScoreTable, score_table
from eirkit.errors import TooLargeError, UsageError

MOST_EXACT_ATOMS = 14  # 3^14 / 2 pairs of a set and a part of it: a second
EXACT_CELLS = 8_000_000  # sets of atoms × columns
CANDIDATES = 300  # atoms whose own answers are tried as decoders when an encoder is constructed
ROUNDS = 100  # improvements of one encoder
EQUAL = 1e-9  # accuracies closer than this are the same; their difference is rounding


@dataclass(frozen=True, slots=True, eq=False)
class Encoder:
    """A memory of K states: the code that it keeps of each history, and what it answers from a code."""

    table: ScoreTable
    atom_codes: Numbers
    columns: Numbers  # (codes, questions): the column that each code answers with
    accuracy: float  # expected share of right responses
    retrievals: Retrievals | None = None  # how results are fetched, where some may be

    @property
    def states(self) -> int:
        return len(self.columns)

    @property
    def codes(self) -> tuple[int, ...]:
        """The code of each history, in the order of the contract."""
        return tuple(self.atom_codes[self.table.atoms].tolist())

    def decode(self, code: int, question: Any, fetch: Callable[[int], Any] | None = None) -> Any:
        """Return the answer to a future, to (given, future), or to the (open moves, move) pairs of a process so far.

        `fetch(place)` retrieves one result, where some may be.
        """
        first, answers = self.table.asked[question]
        place = int(np.searchsorted(self.table.starts, first))
        if self.retrievals is None or fetch is None:
            return answers[int(self.columns[code, place]) - first]
        atoms = sum(1 << int(atom) for atom in np.flatnonzero(self.atom_codes == code))
        return answers[self.retrievals.answer(atoms, place, fetch) - first]


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """What memories of K states can reach."""

    states: int
    lower: float  # share of right responses; an encoder reaches it
    upper: float  # no encoder exceeds it
    run: float  # the best probability that every response is right, whatever is asked
    run_upper: float  # the same, unless several responses are acceptable and the contract is large

    @property
    def bits(self) -> float:
        return math.log2(self.states)

    @property
    def exact(self) -> bool:
        return self.upper - self.lower <= EQUAL


@dataclass(frozen=True, slots=True)
class StateInterval:
    """Bounds on the least number of states with at most a given error."""

    lower: int
    upper: int


class Frontier:
    """The accuracy that memories of one contract can reach, for any number of states."""

    def __init__(
        self,
        contract: FiniteContract | Process,
        *,
        limit: int = LIMIT,
        exact_atoms: int = MOST_EXACT_ATOMS,
        retrievals: int = 0,
    ):
        self.count: ContractCount = count_any(contract, limit=limit, retrievals=retrievals)
        self.exact_atoms = exact_atoms
        self._known: dict[int, Encoder] = {}
        self._shown: list[tuple[Any, ...]] = []
        if retrievals and not isinstance(contract, Process):
            self._shown = [retrievable(contract, x) for x in collect_both(contract, limit)[0]]
        self.table = score_table(contract, limit=limit, apart=_numbered(self._shown) if retrievals else None)
        if retrievals and not self.solved:
            raise TooLargeError(
                f"{self.atoms} histories that differ; with retrievals every set of at most {exact_atoms} is tried; "
                "use a smaller contract, or `eirkit eir count`"
            )
        self._covers: list[Cover] = []
        if not isinstance(contract, Process) and (retrievals or hasattr(contract, "accept")):
            self._covers = covers_of(contract, limit=limit, retrievals=retrievals, weights=self.table.weights.tolist())[
                0
            ]
        self._values = [None if isinstance(contract, Process) else supplied(contract, x) for x in self.table.histories]

    @property
    def atoms(self) -> int:
        """Histories that differ in what they earn; as many states are always right."""
        return len(self.table.gains)

    @cached_property
    def solved(self) -> bool:
        """True if the contract is small enough for all partitions of its atoms."""
        return self.atoms <= self.exact_atoms and self.table.gains.shape[1] << self.atoms <= EXACT_CELLS

    def encoder(self, states: int) -> Encoder:
        """Return the best encoder with at most this many states that is known; the best of all where `solved`."""
        k = min(states, self.atoms)
        if k not in self._known:
            codes = self._search.codes(k) if self.solved else _construct(self.table, k, self._order)
            self._known[k] = self._fetching(_encoder(self.table, codes))
        return self._known[k]

    def _fetching(self, encoder: Encoder) -> Encoder:
        """Return the encoder with its retrievals, if there are any."""
        if not self.count.retrievals:
            return encoder
        found = self._search.retrievals
        sets = [sum(1 << int(i) for i in np.flatnonzero(encoder.atom_codes == c)) for c in range(encoder.states)]
        return replace(encoder, accuracy=min(1.0, math.fsum(self._search.value[sets])), retrievals=found)

    def point(self, states: int) -> FrontierPoint:
        """Return the accuracy that `states` states can reach, or certified bounds on it."""
        lower = self.encoder(states).accuracy
        upper = lower if self.solved else max(lower, self.ceiling(min(states, self.atoms)))
        return FrontierPoint(states, lower, min(upper, 1.0), *self.run_accuracy(states))

    def run_accuracy(self, states: int) -> tuple[float, float]:
        """Return bounds on the best probability that all is right, whatever is asked: of the likeliest classes.

        They are equal unless several responses are acceptable and there are many histories.
        """
        if self._covers:
            pairs = [cover.likeliest(states) for cover in self._covers]
            return min(1.0, math.fsum(low for low, _ in pairs)), min(1.0, math.fsum(high for _, high in pairs))
        exact = min(1.0, math.fsum(self._classes[:states]))
        return exact, exact

    def states_for(self, error: float) -> StateInterval:
        """Return bounds on the least number of states whose expected share of wrong responses is at most `error`."""
        _check_error(error)
        enough = 1 - error - EQUAL
        upper = _least(self.atoms, lambda k: self.encoder(k).accuracy >= enough)
        if self.solved:
            return StateInterval(upper, upper)
        return StateInterval(min(upper, _least(self.atoms, lambda k: self.ceiling(k) >= enough)), upper)

    def states_for_run(self, error: float) -> StateInterval:
        """Return the least number of states with which a whole run is wrong with at most this probability."""
        _check_error(error)
        enough, most = 1 - error - EQUAL, self.count.classes
        lower = _least(most, lambda k: self.run_accuracy(k)[1] >= enough)
        upper = _least(most, lambda k: self.run_accuracy(k)[0] >= enough)
        return StateInterval(lower, upper)

    @cached_property
    def ceiling(self) -> Ceiling:
        """The certified upper bound of a contract that is too large to solve."""
        grid = tuple(dict.fromkeys((*(1 << i for i in range(self.atoms.bit_length())), self.atoms)))
        return ceiling(self.table, grid, np.stack([_earned(self.table, self.encoder(k)) for k in grid]))

    @cached_property
    def _classes(self) -> list[float]:
        """Probabilities of the classes, the likeliest first; those of different given values share a state."""
        cases = zip(self.table.histories, self.table.weights.tolist(), self._values, strict=True)
        weight = {_key(x): (w, value) for x, w, value in cases}
        masses: dict[Any, list[float]] = {value: [] for value in self._values}
        for group in self.count.groups:
            found: dict[Any, float] = {}
            for w, value in (weight[_key(x)] for x in group):
                found[value] = found.get(value, 0.0) + w
            for value, mass in found.items():
                masses[value].append(mass)
        ranked = (sorted(of_value, reverse=True) for of_value in masses.values())
        return [math.fsum(level) for level in zip_longest(*ranked, fillvalue=0.0)]

    @cached_property
    def _search(self) -> _Partitions:
        return _Partitions(self.table, self._shown, self.count.retrievals)

    @cached_property
    def _order(self) -> list[int]:
        return _greedy_order(self.table)


def _check_error(error: float) -> None:
    if not 0 <= error < 1:
        raise UsageError(f"an error of {error} is no share; give at least 0 and less than 1")


def _least(most: int, reaches: Callable[[int], bool]) -> int:
    """Return the least of 1 … most that reaches the aim by bisection; `most` does."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle + 1, high)
    return high


class _Partitions:
    """The best partition of all sets of atoms into at most K blocks: exact, by dynamic programming over sets."""

    def __init__(self, table: ScoreTable, shown: list[tuple[Any, ...]], retrievals: int) -> None:
        atoms = len(table.gains)
        sums = np.zeros((1, table.gains.shape[1]))
        for row in table.gains:  # set number S holds atom i if bit i of S is set
            sums = np.concatenate((sums, sums + row))
        self.retrievals = Retrievals(table, sums, shown, retrievals) if retrievals else None
        self.value = table.values(sums) if self.retrievals is None else self.retrievals.value
        self.best = np.full((atoms + 1, 1 << atoms), -np.inf)
        self.best[:, 0] = 0.0
        for chosen in range(1, 1 << atoms):
            first, rest = self._blocks(chosen)
            self.best[1:, chosen] = (self.value[first] + self.best[:-1, rest]).max(axis=1)

    @staticmethod
    def _blocks(chosen: int) -> tuple[Numbers, Numbers]:
        """Return every block that holds the lowest atom of a set, and what it leaves."""
        lowest = chosen & -chosen
        others = np.zeros(1, dtype=np.int64)
        left = chosen ^ lowest
        while left:
            bit = left & -left
            others = np.concatenate((others, others | bit))
            left ^= bit
        return others | lowest, (chosen ^ lowest) ^ others

    def codes(self, states: int) -> Numbers:
        """Return the code of each atom in a best partition."""
        atoms = self.best.shape[0] - 1
        codes = np.zeros(atoms, dtype=np.int64)
        left, block = (1 << atoms) - 1, 0
        while left:
            first, rest = self._blocks(left)
            choice = int((self.value[first] + self.best[states - block - 1, rest]).argmax())
            codes[[i for i in range(atoms) if int(first[choice]) >> i & 1]] = block
            left, block = int(rest[choice]), block + 1
        return codes


def _encoder(table: ScoreTable, codes: Numbers) -> Encoder:
    numbered = np.unique(codes, return_inverse=True)[1]
    sums = np.zeros((int(numbered.max()) + 1, table.gains.shape[1]))
    np.add.at(sums, numbered, table.gains)
    return Encoder(table, numbered, table.best_columns(sums), min(1.0, float(table.values(sums).sum())))


def _earned(table: ScoreTable, encoder: Encoder) -> Floats:
    """Return what an encoder earns by each question."""
    chosen = encoder.columns[encoder.atom_codes]
    earned: Floats = np.take_along_axis(table.gains, chosen, axis=1).sum(axis=0)
    return earned


def _construct(table: ScoreTable, states: int, order: list[int]) -> Numbers:
    """Return codes with at most `states` values: the best of several starts, each improved until it is stable."""
    starts = [_by_questions(table, states)]
    if len(order) >= states:
        starts.append(_assign(table, _own_columns(table)[order[:states]]))
    improved = (_improve(table, codes) for codes in starts)
    return max(improved, key=lambda codes: _encoder(table, codes).accuracy)


def _improve(table: ScoreTable, codes: Numbers) -> Numbers:
    """Alternate between the best answers of each code and the best code of each atom, as long as that gains."""
    best, accuracy = codes, _encoder(table, codes).accuracy
    for _ in range(ROUNDS):
        codes = _assign(table, _encoder(table, best).columns)
        found = _encoder(table, codes).accuracy
        if found <= accuracy + EQUAL:
            break
        best, accuracy = codes, found
    return best


def _assign(table: ScoreTable, columns: Numbers) -> Numbers:
    codes: Numbers = _scores(table, columns).argmax(axis=1)
    return codes


def _scores(table: ScoreTable, columns: Numbers) -> Floats:
    """Return what each atom earns with each decoder, shape (atoms, decoders)."""
    chosen = np.zeros((table.gains.shape[1], len(columns)))
    chosen[columns.T, np.arange(len(columns))[None, :]] = 1.0
    return table.gains @ chosen


def _own_columns(table: ScoreTable) -> Numbers:
    """Return each atom's right answers; the likeliest answer where it never meets a question."""
    return table.best_columns(table.gains + table.gains.sum(axis=0) * 1e-9)


def _greedy_order(table: ScoreTable) -> list[int]:
    """Return atoms in the order in which their own answers add most to what is covered."""
    heaviest = np.argsort(-table.masses, kind="stable")[:CANDIDATES]
    scores = _scores(table, _own_columns(table)[heaviest])
    covered = np.zeros(len(scores))
    order: list[int] = []
    for _ in range(len(heaviest)):
        added = np.maximum(scores - covered[:, None], 0).sum(axis=0)
        choice = int(added.argmax())
        if added[choice] <= 0:
            break
        order.append(int(heaviest[choice]))
        covered = np.maximum(covered, scores[:, choice])
    return order


def _by_questions(table: ScoreTable, states: int) -> Numbers:
    """Return codes that answer as many questions exactly as the states allow, the likeliest questions first.

    What is left of the states tells apart the likeliest answers to the next question.
    """
    ends = np.append(table.starts[1:], table.gains.shape[1])
    likely = np.add.reduceat(table.gains.sum(axis=0), table.starts)
    codes = np.zeros(len(table.gains), dtype=np.int64)
    for question in np.argsort(-likely, kind="stable").tolist():
        block = table.gains[:, table.starts[question] : ends[question]]
        answers = block.argmax(axis=1)
        used = int(codes.max()) + 1
        room = states // used
        if room < 2:
            break
        rank = np.argsort(np.argsort(-block.sum(axis=0), kind="stable"))[answers]
        codes = np.unique(codes * block.shape[1] + np.minimum(rank, room - 1), return_inverse=True)[1]
    return codes


def _numbered(shown: list[tuple[Any, ...]]) -> Numbers:
    """Return what each place shows after each history, as numbers."""
    numbers: dict[Any, int] = {}
    return np.array([[numbers.setdefault(value, len(numbers)) for value in row] for row in shown])


def _key(history: Any) -> Any:
    try:
        hash(history)
    except TypeError:
        return repr(history)
    return history


def capacities(atoms: int, most: int = 16) -> Iterable[int]:
    """Return the numbers of states worth a row: all of them if few, else the powers of two and the last."""
    if atoms <= most:
        return range(1, atoms + 1)
    return dict.fromkeys((*(1 << i for i in range(atoms.bit_length())), atoms))
