"""The inner loop of chain counting, repeated sums over larger vectors, in NumPy, numba or torch.

All three return the same integers; NumPy is the reference, numba and torch are optional.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from eirkit.errors import MissingExtraError, UnknownNameError

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
    known = {"numpy": with_numpy, "numba": with_numba, "torch": with_torch}
    if backend not in ("auto", *known):
        raise UnknownNameError("backend", backend, ("auto", *known))
    if sum(len(rows) for rows, _ in raises) < SMALL:
        return with_numpy
    if backend == "auto":
        backend = "numba" if importlib.util.find_spec("numba") else "numpy"
    return known[backend]


def with_numpy(raises: Raises, start: Counts, modulus: Counts, levels: int) -> Counts:
    return _iterate(_add, raises, start, modulus, levels)


def with_numba(raises: Raises, start: Counts, modulus: Counts, levels: int) -> Counts:
    return _iterate(_compiled_add(), raises, start, modulus, levels)


def _iterate(add: Add, raises: Raises, start: Counts, modulus: Counts, levels: int) -> Counts:
    found = np.empty((levels + 1, start.shape[1]), dtype=np.int64)
    chains, found[0] = start, start[0]
    for level in range(1, levels + 1):
        total = chains.copy()
        for rows, above in raises:
            add(total, rows, above)
        total -= chains
        total %= modulus
        chains, found[level] = total, total[0]
    return found


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


def with_torch(raises: Raises, start: Counts, modulus: Counts, levels: int) -> Counts:
    try:
        import torch
    except ImportError:
        raise MissingExtraError("the torch backend", "gpu") from None
    device = "cuda" if torch.cuda.is_available() else "cpu"
    pairs = [tuple(torch.from_numpy(side.astype(np.int64)).to(device) for side in pair) for pair in raises]
    chains = torch.from_numpy(start).to(device)
    divisor = torch.from_numpy(modulus).to(device)
    found = [chains[0]]
    for _ in range(levels):
        total = chains.clone()
        for rows, above in pairs:
            total[rows] += total[above]
        chains = (total - chains) % divisor
        found.append(chains[0])
    answer: Counts = torch.stack(found).cpu().numpy()
    return answer
