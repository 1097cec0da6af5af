"""Extrapolates class counts exactly from small alphabets to large ones, for workloads that only compare values.

Theorem (proof in docs/design/frontier-counting.md). Let answers be made from inputs and earlier answers by operations
that commute with every non-decreasing relabeling of values, such as maximum and top-k, and let a window hold D values.
Then either N(q) = 1 for every alphabet size q ≥ 1, or N(q) = Σ_{j=1..D} a_j C(q, j), where a_j ≥ 0 is the number of
classes that depend on exactly j given values. So counts at q = 1 … D determine all others; D = 1 needs q = 2 as well,
to tell N = q from N = 1. `tests/eir/test_lift.py` compares with counts at alphabets that were not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

from eirkit.eir.counting import binomial_coefficients
from eirkit.errors import UsageError


@dataclass(frozen=True, slots=True)
class BinomialPolynomial:
    """N(q) = Σ_j a_j C(q, j), with integer coefficients."""

    coefficients: tuple[int, ...]  # a_0, a_1, …

    def __call__(self, q: int) -> int:
        """Return the exact value at q ≥ 0."""
        return sum(a * comb(q, j) for j, a in enumerate(self.coefficients))


def alphabets_needed(values: int) -> int:
    """Return how many counts, at q = 1, 2, …, determine N for windows that hold `values` values (W·k of them)."""
    return max(2, values) if values else 1


def lift(counts: Sequence[int], q: int, *, values: int) -> int:
    """Return N(q) from counts[i] = N(i + 1), for windows that hold `values` values.

    Raises:
        UsageError: too few counts, or counts that no comparison-only workload has.
    """
    return fit(counts, values=values)(q)


def fit(counts: Sequence[int], *, values: int) -> BinomialPolynomial:
    """Return the polynomial through the counts; those beyond the number needed are used to check it."""
    needed = alphabets_needed(values)
    if len(counts) < needed:
        raise UsageError(
            f"{len(counts)} counts cannot determine N for windows of {values} values; count q = 1 … {needed}"
        )
    if all(count == 1 for count in counts):
        return BinomialPolynomial((1,))
    found = BinomialPolynomial(tuple(binomial_coefficients((0, *counts).__getitem__, values)))
    for q, count in enumerate(counts, 1):
        if found(q) != count:
            raise UsageError(
                f"{count} classes at q = {q}, but smaller alphabets lift to {found(q)}: the workload does more than "
                f"compare {values} values; use its own formula, or count the alphabet that you need"
            )
    if min(found.coefficients) < 0:
        raise UsageError(
            f"coefficients {found.coefficients} are not class counts: the workload does more than compare values; "
            "use its own formula, or count the alphabet that you need"
        )
    return found
