"""Counts the classes of windows of k-value frontiers where each step refers to two of them; exactly for k = 3.

A frontier counts as full once no pair that it belongs to can be short of k values. Windows are chains of vectors that
are full in this sense, from the largest value down: first while some frontier is still empty, then while none is.
Where two vectors cannot be told apart, sequences that differ in nothing else are counted once. The theorem and its
proof are in docs/design/frontier-counting.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from eirkit.eir.counting import Levels, VectorSet, Window, binomial_coefficients, count_chains_to, valid_vectors
from eirkit.eir.demand import ClassCount
from eirkit.eir.windows import parts_with_steps
from eirkit.errors import TooLargeError

MOST_FILLED = 4_000  # vectors without an empty frontier, whose order is kept as a table
SMALLEST = 2  # entries of a vector that decide what can be seen

Type = tuple[int, ...]  # the smallest entries of a vector, ascending
Pair = tuple[int, int]
Labels = NDArray[np.int64]


def count_two_references(window: Window, k: int, reach: int, left: int, q: int, backend: str = "auto") -> ClassCount:
    """Return the classes at a cut with `left` steps to go: exact for k = 3, a narrow interval for larger k.

    Raises:
        TooLargeError: the vectors are too many to count.
    """
    if len(window) == 2 and left == 1:
        return ClassCount.exactly(comb(q + k - 1, k))  # the one answer that remains is the k largest of both
    full, exact = len(window) == reach, k <= 3
    pairs = _short_pairs(window) if exact or left == 1 else []
    confusions = [
        one for pair in pairs if (one := Confusion.of(pair, window, k, full, left, emptied=not exact)).surplus
    ]
    parts = [_Part.of(steps, part, k, confusions, backend) for steps, part in parts_with_steps(window)]
    lost = sum(_lost(parts, one, q) for one in confusions)
    emptied = _emptied_chains(parts, k, q)
    upper = emptied + _filled_chains(parts, k, q)
    # Of the vectors with an empty frontier, only the confusions above look alike.
    return ClassCount.exactly(upper - lost) if exact else ClassCount(emptied - lost, upper)


def _short_pairs(window: Window) -> list[Pair]:
    """Return the pairs of steps that can be short of values while all others are full."""
    free = [step for step, refs in enumerate(window) if not refs]
    return [(old, new) for old in free for new in range(old + 1, len(window)) if set(window[new]) <= {old}]


@dataclass(frozen=True, slots=True)
class Confusion:
    """Vectors in which only two frontiers are short of values, and which of them a future cannot tell apart.

    Levels are fresh values, as in valid vectors.
    """

    pair: Pair
    whole: bool  # True if every vector of the pair is ambiguous, so that no prefix may end at one
    surplus: tuple[tuple[Pair, tuple[int, ...]], ...]  # by levels: chains of L steps beyond the sequences of classes

    @classmethod
    def of(cls, pair: Pair, window: Window, k: int, full: bool, left: int, *, emptied: bool = False) -> Confusion:
        """Return the confusions of a pair; with `emptied`, only those of vectors in which one of both is empty."""
        builds = bool(window[pair[1]])  # the newer one refers to the older one
        oldest = full and pair[0] == 0
        entries = [(a, b) for a in range(k) for b in range(k - a) if b >= a or not builds]
        entries = [one for one in entries if 0 in one or not emptied]
        unclear = [one for one in entries if left == 1 or not _is_revealed(*one, k, oldest)]
        at = {(a, b - a if builds else b): a + b for a, b in unclear}  # the sum of both is what can be seen
        below = [(a, b) for a in range(k) for b in range(k)]
        surplus = ((low, _surplus({one: s for one, s in at.items() if _leq(low, one)})) for low in below)
        return cls(pair, left == 1, tuple((low, many) for low, many in surplus if any(many)))


def _is_revealed(a: int, b: int, k: int, oldest: bool) -> bool:
    """Return True if a new frontier with the sum of both tells them apart; the oldest has left by then."""
    return (a + a + b < k and not oldest) or a + b + b < k


def _leq(low: Pair, high: Pair) -> bool:
    return low[0] <= high[0] and low[1] <= high[1]


def _surplus(at: Mapping[Pair, int]) -> tuple[int, ...]:
    """Return for L = 0, 1, … the strict chains of L steps, less the different sequences of classes on them."""
    chains: list[tuple[Pair, ...]] = [(one,) for one in at]
    found = []
    while chains:
        found.append(len(chains) - len({tuple(at[one] for one in chain) for chain in chains}))
        chains = [(*chain, one) for chain in chains for one in at if one != chain[-1] and _leq(chain[-1], one)]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Part:
    """Strict chains in one connected part of a window, by the number of their steps."""

    degree: int  # of all polynomials
    steps: tuple[int, ...]
    types: Mapping[Type, list[int]]  # by the smallest entries of the last vector
    filled: Mapping[tuple[bool, Type], dict[Pair, int]]  # (no entry empty before, type at the end) → (α, β) → chains
    short: Mapping[Pair, Mapping[tuple[Pair, bool], list[int]]]  # pair → (its levels, all others full) → chains

    @classmethod
    def of(cls, steps: tuple[int, ...], window: Window, k: int, confusions: Iterable[Confusion], backend: str) -> _Part:
        vectors = valid_vectors(window, k)
        pairs = [one.pair for one in confusions]
        kinds, types = _types(vectors.held)
        above, filled = _filled(window, k, vectors)
        empty = (vectors.held == 0).any(axis=1)
        short = [_short(vectors, steps, pair) for pair in pairs]
        labels = [types, above * 2 + ~empty, *short]
        by_type, by_filled, *by_short = count_chains_to(vectors, labels, backend)
        return cls(
            degree=k * len(steps),
            steps=steps,
            types=dict(zip(kinds, by_type, strict=True)),
            filled=_joined(by_filled, filled),
            short={pair: _by_levels(found, k) for pair, found in zip(pairs, by_short, strict=True)},
        )


def _types(held: Levels) -> tuple[list[Type], Labels]:
    size, base = min(SMALLEST, held.shape[1]), int(held.max()) + 1
    smallest = np.sort(np.partition(held, size - 1, axis=1)[:, :size], axis=1).astype(np.int64)
    present, labels = np.unique(smallest @ base ** np.arange(size), return_inverse=True)
    return [tuple(int(code) // base**i % base for i in range(size)) for code in present], labels.reshape(-1)


def _filled(window: Window, k: int, vectors: VectorSet) -> tuple[Labels, dict[Type, list[list[int]]]]:
    """Return for each vector the least one above it without an empty frontier, and the chains from each of these.

    There, entries of k − 1 or more count as full. Chains are listed by the type of their last vector, then by start.
    """
    fresh, held = vectors.fresh.astype(np.int64), np.zeros_like(vectors.held, dtype=np.int64)
    for t, refs in enumerate(window):
        inherited = held[:, list(refs)].sum(axis=1)
        fresh[:, t] = np.where(inherited + fresh[:, t] == 0, 1, fresh[:, t])
        full = (fresh[:, t] == k) | (inherited + fresh[:, t] >= k - 1)
        fresh[:, t] = np.where(full, k, fresh[:, t])
        held[:, t] = np.where(full, k, inherited + fresh[:, t])
    codes = fresh @ (k + 1) ** np.arange(len(window), dtype=np.int64)
    _, first, above = np.unique(codes, return_index=True, return_inverse=True)
    if len(first) > MOST_FILLED:
        raise TooLargeError(f"{len(first)} vectors to compare, the limit is {MOST_FILLED}; use a smaller m or k")
    levels, entries = fresh[first], held[first].astype(np.uint8)
    order = (levels[:, None, :] <= levels[None, :, :]).all(axis=2) & ~np.eye(len(first), dtype=np.bool_)
    kinds, types = _types(entries)
    larger = [np.flatnonzero(row).tolist() for row in order]
    return above.reshape(-1), {kind: _chains_from(larger, types == number) for number, kind in enumerate(kinds)}


def _chains_from(larger: Sequence[Sequence[int]], last: NDArray[np.bool_]) -> list[list[int]]:
    """Return for each vector the strict chains of 0, 1, … steps to one of the last ones."""
    now = [int(one) for one in last]
    found = [[many] for many in now]
    while any(now):
        now = [sum(now[one] for one in above) for above in larger]
        for own, many in zip(found, now, strict=True):
            own.append(many)
    return found


def _joined(
    before: Sequence[Sequence[int]], after: Mapping[Type, Sequence[Sequence[int]]]
) -> dict[tuple[bool, Type], dict[Pair, int]]:
    """Return the chains of α steps up to some vector and of β steps from the least filled one above it."""
    found: dict[tuple[bool, Type], dict[Pair, int]] = {}
    for kind, starts in after.items():
        alike: dict[tuple[int, ...], list[int]] = {}
        for number, onward in enumerate(starts):
            alike.setdefault(tuple(onward), []).append(number)
        for never_empty in (False, True):
            sums: dict[Pair, int] = {}
            for onward, numbers in alike.items():
                rows = [before[2 * n + never_empty] for n in numbers if 2 * n + never_empty < len(before)]
                for alpha, many in enumerate(sum(column) for column in zip(*rows, strict=True)):
                    for beta, more in enumerate(onward):
                        if many and more:
                            sums[alpha, beta] = sums.get((alpha, beta), 0) + many * more
            found[never_empty, kind] = sums
    return found


def _short(vectors: VectorSet, steps: tuple[int, ...], pair: Pair) -> Labels:
    """Return a label for the levels of the pair and for whether all other frontiers are full; 0 for steps elsewhere."""
    own = [steps.index(step) if step in steps else None for step in pair]
    others = [column for column in range(len(steps)) if column not in own]
    levels = [np.int64(0) if at is None else vectors.fresh[:, at].astype(np.int64) for at in own]
    full = (vectors.fresh[:, others] == vectors.k).all(axis=1)
    labels: Labels = ((levels[0] * (vectors.k + 1) + levels[1]) * 2 + full).astype(np.int64)
    return labels


def _by_levels(found: Sequence[list[int]], k: int) -> dict[tuple[Pair, bool], list[int]]:
    return {
        ((label // 2 // (k + 1), label // 2 % (k + 1)), bool(label % 2)): chains for label, chains in enumerate(found)
    }


def _emptied_chains(parts: Sequence[_Part], k: int, q: int) -> int:
    """Return the windows whose vectors all have an empty frontier, until what is left cannot be seen."""
    degree = sum(part.degree for part in parts)
    merged: dict[Type, list[int]] = {(): [1] * (degree + 1)}
    for part in parts:
        merged = _merge(merged, {kind: _values(c, degree) for kind, c in part.types.items()})
    values = [0] * (degree + 1)
    for kind, many in merged.items():
        if kind[0] == 0 and kind[1] < k:
            values = [x + y for x, y in zip(values, many, strict=True)]
    return sum(a * comb(q, i + 1) for i, a in enumerate(binomial_coefficients(values.__getitem__, degree)))


def _filled_chains(parts: Sequence[_Part], k: int, q: int) -> int:
    """Return the windows that go on, for at least one value, after no frontier is empty."""
    degree, deep = sum(part.degree for part in parts), sum(_depth(part) for part in parts)
    size = (degree + 1) * (deep + 1)
    total = [0] * size
    for never_empty, sign in ((None, 1), (True, -1)):  # all, less those in which no frontier was empty before
        merged: dict[Type, list[int]] = {(): [1] * size}
        for part in parts:
            merged = _merge(merged, _grids(part, never_empty, degree, deep))
        for kind, many in merged.items():
            if sum(kind) < k:
                total = [x + sign * y for x, y in zip(total, many, strict=True)]
    rows = [total[start : start + deep + 1] for start in range(0, size, deep + 1)]
    rows = [binomial_coefficients(row.__getitem__, deep) for row in rows]
    found = 0
    for beta, column in enumerate(zip(*rows, strict=True)):
        for alpha, count in enumerate(binomial_coefficients(column.__getitem__, degree)):
            # Σ C(i, α) C(j, β) over i + j < q, less j = 0
            found += count * (comb(q + 1, alpha + beta + 2) - (comb(q, alpha + 1) if beta == 0 else 0))
    return found


def _depth(part: _Part) -> int:
    return max((beta for sums in part.filled.values() for _, beta in sums), default=0)


def _grids(part: _Part, never_empty: bool | None, degree: int, deep: int) -> dict[Type, list[int]]:
    """Return, by type, the windows of a part with i values before and j values after no frontier is empty."""
    grids: dict[Type, list[int]] = {}
    for (was, kind), sums in part.filled.items():
        if never_empty is None or was == never_empty:
            rows: dict[int, list[int]] = {}
            for (alpha, beta), many in sums.items():
                rows.setdefault(alpha, [0] * (deep + 1))[beta] = many
            powers = {alpha: _values(row, deep) for alpha, row in rows.items()}
            grid = [
                sum(comb(i, alpha) * row[j] for alpha, row in powers.items() if alpha <= i)
                for i in range(degree + 1)
                for j in range(deep + 1)
            ]
            known = grids.get(kind)
            grids[kind] = grid if known is None else [x + y for x, y in zip(known, grid, strict=True)]
    return grids


def _lost(parts: Sequence[_Part], confusion: Confusion, q: int) -> int:
    """Return how many windows differ only in vectors that cannot be told apart, beyond one for each class."""
    degree, found = sum(part.degree for part in parts), 0
    for low, surplus in confusion.surplus:
        values = [
            prod(factors) for factors in zip(*(_ending(part, confusion, low, degree) for part in parts), strict=True)
        ]
        if confusion.whole:
            full = (_ending(part, confusion, low, degree, full=True) for part in parts)
            values = [x - prod(factors) for x, factors in zip(values, zip(*full, strict=True), strict=True)]
        for steps, many in enumerate(binomial_coefficients(values.__getitem__, degree)):
            found += sum(many * more * comb(q, steps + length + 2) for length, more in enumerate(surplus))
    return found


def _ending(part: _Part, confusion: Confusion, low: Pair, degree: int, *, full: bool = False) -> list[int]:
    """Return the windows of a part over 0, 1, … values that end with these levels of the pair."""
    own = tuple(level if step in part.steps else 0 for step, level in zip(confusion.pair, low, strict=True))
    found = part.short[confusion.pair]
    chosen = [chains for (levels, rest), chains in found.items() if levels == own and (rest or not full)]
    return [sum(column) for column in zip(*(_values(chains, degree) for chains in chosen), strict=True)] or [0] * (
        degree + 1
    )


def _merge(left: Mapping[Type, list[int]], right: Mapping[Type, list[int]]) -> dict[Type, list[int]]:
    merged: dict[Type, list[int]] = {}
    for (a, many), (b, more) in product(left.items(), right.items()):
        kind = tuple(sorted(a + b)[:SMALLEST])
        products = [x * y for x, y in zip(many, more, strict=True)]
        known = merged.get(kind)
        merged[kind] = products if known is None else [x + y for x, y in zip(known, products, strict=True)]
    return merged


def _values(coefficients: Sequence[int], degree: int) -> list[int]:
    return [sum(a * comb(j, i) for i, a in enumerate(coefficients) if a) for j in range(degree + 1)]
