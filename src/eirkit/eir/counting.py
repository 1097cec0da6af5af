"""Counts chains of valid threshold vectors for Stepwise Maximum and Top-k, in NumPy or numba.

Both return the same integers; NumPy is the reference, numba is optional. A GPU is not faster than numba: an H200 took
6.8 s for a curve that numba counts in 8.5 s, loading not included, because each of the many sums is small.

A window of frontiers, read from the largest value down, is a chain of vectors that say how full each frontier is. Valid
vectors are closed under the componentwise minimum, so the sum over all larger vectors takes one addition per vector
and free coordinate instead of one per pair. The argument is in docs/design/frontier-counting.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from math import comb, prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from eirkit.errors import MissingExtraError, TooLargeError, UnknownNameError

Counts = NDArray[np.int64]
Indices = NDArray[np.int32]
Raises = Sequence[tuple[Indices, Indices]]
Add = Callable[[Counts, Indices, Indices], None]

SMALL = 20_000  # additions per sweep; below it, compiling or moving data costs more than it saves


def sum_upwards(backend: str, raises: Raises, start: Counts, modulus: Counts, levels: int) -> Counts:
    """Apply "replace each row by the sum over all larger rows" `levels` times; return row 0 before and after each.

    Args:
        raises: pairs of row indices in an order that makes `total[rows] += total[above]`, done pair by pair, the sum
            over all rows at or above each row.
        start: shape (rows, columns).
        modulus: shape (columns,); small enough that a column's total over all rows fits into 63 bits.
    """
    return _choose(backend, raises)(raises, start, modulus, levels)


def _choose(backend: str, raises: Raises) -> Callable[[Raises, Counts, Counts, int], Counts]:
    known = {"numpy": with_numpy, "numba": with_numba}
    if backend not in ("auto", *known):
        raise UnknownNameError("backend", backend, ("auto", *known))
    if sum(len(rows) for rows, _ in raises) < SMALL:
        return with_numpy
    if backend == "auto":
        backend = "numba" if find_spec("numba") else "numpy"
    return known[backend]


def with_numpy(raises: Raises, start: Counts, modulus: Counts, levels: int) -> Counts:
    return _iterate(_add, raises, start, modulus, levels)


def with_numba(raises: Raises, start: Counts, modulus: Counts, levels: int) -> Counts:
    return _iterate(_compiled_add(), raises, start, modulus, levels)


def _iterate(add: Add, raises: Raises, start: Counts, modulus: Counts, levels: int) -> Counts:
    chains, found = start, [start[0]]
    for _ in range(levels):
        total = chains.copy()
        for rows, above in raises:
            add(total, rows, above)
        total -= chains
        total %= modulus
        chains = total
        found.append(total[0])
    return np.stack(found)


def _add(total: Counts, rows: Indices, above: Indices) -> None:
    total[rows] += total[above]


@cache
def _compiled_add() -> Add:
    try:
        import numba
    except ImportError:
        raise MissingExtraError("the numba backend", "fast") from None

    def add(total: Counts, rows: Indices, above: Indices) -> None:
        for i in range(len(rows)):
            for column in range(total.shape[1]):
                total[rows[i], column] += total[above[i], column]

    compiled: Any = numba.njit(add)
    return cast(Add, compiled)


Window = tuple[tuple[int, ...], ...]  # references of each step of the window, as positions inside it, oldest first
Levels = NDArray[np.uint8]

VECTOR_LIMIT = 4_000_000  # valid vectors; about 1 GB with their index


@dataclass(frozen=True, slots=True)
class VectorSet:
    """All valid vectors of a window in lexicographic order; row 0 is all empty, the last row all full."""

    k: int
    fresh: Levels  # (vectors, steps): fresh values a frontier holds so far, k meaning that it is full
    held: Levels  # (vectors, steps): values a frontier holds so far, inherited ones included
    raises: tuple[tuple[Indices, Indices], ...]  # in summing order: rows, and the least valid row above each

    def __len__(self) -> int:
        return len(self.fresh)


def valid_vectors(window: Window, k: int, limit: int = VECTOR_LIMIT) -> VectorSet:
    """Return the valid vectors of a window of k-value frontiers and the least valid row above each.

    Raises:
        TooLargeError: there are more than `limit`, or a vector does not fit into one machine word.
    """
    fresh, held = enumerate_vectors(window, k, limit)
    return VectorSet(k, fresh, held, tuple(_raises(window, k, fresh, held)))


def enumerate_vectors(window: Window, k: int, limit: int) -> tuple[Levels, Levels]:
    """Return the fresh and held levels of all valid vectors, in lexicographic order, oldest step first."""
    if (k + 1) ** len(window) >= 1 << 63:
        raise TooLargeError(f"{len(window)} frontiers of {k} values need more than 63 bits each; use a smaller m or k")
    fresh = np.zeros((1, 0), dtype=np.uint8)
    held = np.zeros((1, 0), dtype=np.uint8)
    for refs in window:
        inherited = held[:, list(refs)].sum(axis=1, dtype=np.int64)
        options = np.maximum(k - inherited, 0) + 1
        total = int(options.sum())
        if total > limit:
            raise TooLargeError(f"{total} or more vectors to count, the limit is {limit}; use a smaller m or k")
        parent = np.repeat(np.arange(len(fresh)), options)
        level = np.arange(total) - np.repeat(np.cumsum(options) - options, options)
        level = np.where(level == options[parent] - 1, k, level)
        holding = np.where(level == k, k, level + inherited[parent])
        fresh = np.column_stack((fresh[parent], level.astype(np.uint8)))
        held = np.column_stack((held[parent], holding.astype(np.uint8)))
    return fresh, held


def _raises(window: Window, k: int, fresh: Levels, held: Levels) -> list[tuple[Indices, Indices]]:
    """Return for each row the row it is raised to, newest step first and fullest level first."""
    weights = (k + 1) ** np.arange(len(window) - 1, -1, -1, dtype=np.int64)
    codes = fresh @ weights if len(window) else np.zeros(1, dtype=np.int64)
    made = []
    for step in range(len(window) - 1, -1, -1):
        for level in range(k, 0, -1):
            rows = np.flatnonzero(fresh[:, step] == level - 1)
            raised = _least_valid_above(window, k, fresh[rows], held[rows], step, level)
            above = np.searchsorted(codes, raised @ weights)
            made.append((rows.astype(np.int32), above.astype(np.int32)))
    return made


def _least_valid_above(window: Window, k: int, fresh: Levels, held: Levels, step: int, level: int) -> Levels:
    """Raise one coordinate, then fill every later frontier that has no room left."""
    fresh, held = fresh.copy(), held.copy()
    fresh[:, step] = level
    touched = {step}
    for t in range(step, len(window)):
        if t != step and touched.isdisjoint(window[t]):
            continue
        touched.add(t)
        holding = fresh[:, t].astype(np.int64) + held[:, list(window[t])].sum(axis=1, dtype=np.int64)
        full = (fresh[:, t] == k) | (holding >= k)
        fresh[full, t] = k
        held[:, t] = np.where(full, k, holding)
    return fresh


def count_chains(vectors: VectorSet, last: NDArray[np.bool_], backend: str = "auto") -> list[list[int]]:
    """Return for each column of `last` the strict chains of K = 0, 1, … steps from the empty vector to its rows."""
    primes = _primes(vectors)
    columns = last.shape[1]
    start = np.repeat(last.astype(np.int64), len(primes), axis=1)
    modulus = np.tile(np.array(primes, dtype=np.int64), columns)
    longest = vectors.k * vectors.fresh.shape[1]
    residues = sum_upwards(backend, vectors.raises, start, modulus, longest).reshape(longest + 1, columns, -1)
    return [[_combine(row, primes) for row in residues[:, column].tolist()] for column in range(columns)]


def count_chains_to(
    vectors: VectorSet, labels: Sequence[NDArray[np.int64]], backend: str = "auto"
) -> list[list[list[int]]]:
    """Return for each labeling of the rows, and each label, the strict chains of K = 0, 1, … steps to its rows.

    Chains start at the empty vector. All labels of all labelings are counted in one pass: the transpose of summing
    over larger rows, which passes what a row has on to the rows above it.
    """
    primes = _primes(vectors)
    modulus = np.array(primes, dtype=np.int64)
    add = _pass_on if _choose(backend, vectors.raises) is with_numpy else _compiled_add()
    groups = [_Groups.of(label) for label in labels]
    chains = np.zeros((len(vectors), len(primes)), dtype=np.int64)
    chains[0] = 1
    found = [[group.sums(chains)] for group in groups]
    for _ in range(vectors.k * vectors.fresh.shape[1]):
        total = chains.copy()
        for rows, above in reversed(vectors.raises):
            add(total, above, rows)
        total -= chains
        total %= modulus
        chains = total
        for own, group in zip(found, groups, strict=True):
            own.append(group.sums(chains))
    return [
        [[_combine(row[label] % modulus, primes) for row in own] for label in range(group.size)]
        for own, group in zip(found, groups, strict=True)
    ]


def _pass_on(total: Counts, above: Indices, rows: Indices) -> None:
    np.add.at(total, above, total[rows])  # several rows may have the same row above


@dataclass(frozen=True, slots=True)
class _Groups:
    """Rows sorted by label, so that the sums over all labels are one reduction."""

    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    present: NDArray[np.int64]  # labels that some row has
    size: int

    @classmethod
    def of(cls, label: NDArray[np.int64]) -> _Groups:
        order = np.argsort(label, kind="stable")
        present, starts = np.unique(label[order], return_index=True)
        return cls(order, starts, present, int(present[-1]) + 1)

    def sums(self, chains: Counts) -> Counts:
        found = np.zeros((self.size, chains.shape[1]), dtype=np.int64)
        found[self.present] = np.add.reduceat(chains[self.order], self.starts, axis=0)
        return found


def _primes(vectors: VectorSet) -> list[int]:
    """Return primes whose product exceeds every count and which are small enough to sum all vectors in 63 bits."""
    steps, k = vectors.fresh.shape[1], vectors.k
    largest = max((abs(c) for c in binomial_coefficients(lambda q: comb(q + k - 1, k) ** steps, k * steps)), default=1)
    candidate, found = min((1 << 62) // len(vectors), 1 << 61), list[int]()
    while prod(found) <= largest:
        candidate = _previous_prime(candidate)
        found.append(candidate)
    return found


def binomial_coefficients(polynomial: Callable[[int], int], degree: int) -> list[int]:
    """Return a_0 … a_degree with polynomial(q) = Σ a_j C(q, j), by finite differences."""
    row = [polynomial(q) for q in range(degree + 1)]
    found = []
    while row:
        found.append(row[0])
        row = [after - before for before, after in pairwise(row)]
    return found


def _combine(residues: Sequence[int], primes: Sequence[int]) -> int:
    """Return the only integer in range with these residues (Chinese remainders)."""
    total = prod(primes)
    return sum(int(r) * (total // p) * pow(total // p, -1, p) for r, p in zip(residues, primes, strict=True)) % total


def _previous_prime(below: int) -> int:
    candidate = below - 1
    while not _is_prime(candidate):
        candidate -= 1
    return candidate


def _is_prime(number: int) -> bool:
    # Miller–Rabin with the first twelve primes as bases is exact below 3.3e24.
    bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
    if number < 41:
        return number in bases
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(number, base, odd, twos) for base in bases)


def _passes(number: int, base: int, odd: int, twos: int) -> bool:
    power = pow(base, odd, number)
    if power in (1, number - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False
