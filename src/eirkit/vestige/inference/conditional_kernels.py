"""The conditional likelihood of who failed, given how many did: sums over all subsets, by recursion on the rows.

Adding a row with odds e to a stratum turns the sum B(k) over subsets of size k into B(k) + e·B(k−1); first and second
derivatives obey the same rule. `with_loops` is compiled where numba is installed, `with_numpy` runs all strata abreast.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from eirkit.compilation import compiled, has_compiler
from eirkit.vestige.inference.design import Codes, Floats

Kernel = Callable[[Floats, Floats, Codes, Codes, Floats, Floats, Floats], float]
LARGEST_STRATUM = 900  # rows: sums over the subsets of more leave the range of floats
_BLOCK_FLOATS = 1 << 15  # second derivatives held at once by the NumPy kernel: what a cache holds


def kernel() -> Kernel:
    """Return the fastest kernel that can be had here."""
    return compiled(with_loops, error_model="numpy") if has_compiler() else with_numpy


def with_loops(
    linear: Floats,
    matrix: Floats,
    starts: Codes,
    cases: Codes,
    weights: Floats,
    gradient: Floats,
    information: Floats,
) -> float:
    """Return the weighted log denominators, summed; add their gradient and second derivatives to the last two.

    Args:
        linear: log odds per row.
        starts: first row of each stratum, and the number of rows at the end.
        cases: rows with the outcome, per stratum.
    """
    width, most = matrix.shape[1], 0
    for s in range(len(cases)):
        most = max(most, cases[s])
    b, d, h = np.zeros(most + 1), np.zeros((most + 1, width)), np.zeros((most + 1, width, width))
    total = 0.0
    for s in range(len(cases)):
        m, first, last, peak = cases[s], starts[s], starts[s + 1], -np.inf
        if weights[s] == 0.0:
            continue
        for k in range(m + 1):
            b[k] = 1.0 if k == 0 else 0.0
            for p in range(width):
                d[k, p] = 0.0
                for q in range(p + 1):
                    h[k, p, q] = 0.0
        for i in range(first, last):
            peak = max(peak, linear[i])
        for i in range(first, last):
            e = np.exp(linear[i] - peak)
            # A subset of size m needs m − k more rows, so smaller k cannot matter once too few are left.
            for k in range(min(m, i - first + 1), max(0, m - (last - i)), -1):
                for p in range(width):
                    x = matrix[i, p]
                    for q in range(p + 1):
                        z = matrix[i, q]
                        h[k, p, q] += e * (h[k - 1, p, q] + x * d[k - 1, q] + z * d[k - 1, p] + x * z * b[k - 1])
                for p in range(width):
                    d[k, p] += e * (d[k - 1, p] + matrix[i, p] * b[k - 1])
                b[k] += e * b[k - 1]
        total += weights[s] * (np.log(b[m]) + m * peak) if b[m] > 0.0 else np.inf
        for p in range(width):
            gradient[p] += weights[s] * d[m, p] / b[m]
            for q in range(p + 1):
                second = weights[s] * (h[m, p, q] / b[m] - d[m, p] / b[m] * (d[m, q] / b[m]))
                information[p, q] += second
                information[q, p] += second if p != q else 0.0
    return total


def with_numpy(
    linear: Floats,
    matrix: Floats,
    starts: Codes,
    cases: Codes,
    weights: Floats,
    gradient: Floats,
    information: Floats,
) -> float:
    """Do the same as `with_loops`, over blocks of strata of similar size."""
    live = np.flatnonzero(weights != 0)
    order = live[np.lexsort((cases[live], np.diff(starts)[live]))]
    total, width = 0.0, matrix.shape[1]
    block = max(1, _BLOCK_FLOATS // ((int(cases.max(initial=0)) + 1) * (width + 1) ** 2))
    for first in range(0, len(order), block):
        strata = order[first : first + block]
        total += _block(
            linear, matrix, (starts[strata], starts[strata + 1]), cases[strata], weights[strata], gradient, information
        )
    return total


def _block(
    linear: Floats,
    matrix: Floats,
    span: tuple[Codes, Codes],
    cases: Codes,
    weights: Floats,
    gradient: Floats,
    information: Floats,
) -> float:
    odds, rows, peaks = _padded(linear, matrix, span)
    count, most, width = len(cases), int(cases.max()), matrix.shape[1]
    b, d = np.zeros((count, most + 1)), np.zeros((count, most + 1, width))
    h = np.zeros((count, most + 1, width, width))
    b[:, 0] = 1.0
    for i in range(odds.shape[1]):
        e, x = odds[:, i, None], rows[:, i, None, :]
        cross = x[..., :, None] * d[:, :-1, None, :]
        square = (x[..., :, None] * x[..., None, :]) * b[:, :-1, None, None]
        h[:, 1:] += e[..., None, None] * (h[:, :-1] + cross + np.swapaxes(cross, -1, -2) + square)
        d[:, 1:] += e[..., None] * (d[:, :-1] + x * b[:, :-1, None])
        b[:, 1:] += e * b[:, :-1]
    own = np.arange(count), cases
    if (b[own] <= 0).any():
        return float("inf")
    slope = d[own] / b[own][:, None]
    second = h[own] / b[own][:, None, None] - slope[:, :, None] * slope[:, None, :]
    gradient += weights @ slope
    information += np.tensordot(weights, second, axes=1)
    return float(weights @ (np.log(b[own]) + cases * peaks))


def _padded(linear: Floats, matrix: Floats, span: tuple[Codes, Codes]) -> tuple[Floats, Floats, Floats]:
    """Return odds and columns as strata × rows, rows that a stratum does not have at odds zero."""
    longest = int((span[1] - span[0]).max())
    places = span[0][:, None] + np.arange(longest)
    inside: NDArray[np.bool_] = places < span[1][:, None]
    places = np.where(inside, places, span[0][:, None])
    values = np.where(inside, linear[places], -np.inf)
    peaks: Floats = values.max(axis=1)
    return np.exp(values - peaks[:, None]), matrix[places], peaks
