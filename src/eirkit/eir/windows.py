"""Counts windows of k-value frontiers over a graph: reachable ones, distinguishable ones, and small ones exactly.

Steps that share no reference inside the window are independent, so counts of connected parts multiply; each part is
counted by `counting.py`. All counts are polynomials in the size of the alphabet, kept as exact integers.

Whether two windows can be told apart is decided threshold by threshold: at a threshold only the number of values that
each frontier holds above it matters, and futures see these numbers summed and capped at k. So the vectors in
{0 … k}^W are refined once, independently of the alphabet and the graph, and a window is the sequence of classes that
its chain of vectors passes through. The argument is in docs/design/frontier-counting.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import combinations, product
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from eirkit.eir.counting import VectorSet, Window, binomial_coefficients, count_chains, valid_vectors
from eirkit.errors import TooLargeError

Smallest = tuple[int, ...]  # the g smallest numbers of held values among some frontiers, ascending


def window_at(graph: Sequence[Sequence[int]], reach: int, t: int) -> Window:
    """Return the window at the cut after step t, references inside it only; `graph` holds steps 1 … n."""
    first = max(1, t - reach + 1)
    return tuple(tuple(r - first for r in graph[step - 1] if r >= first) for step in range(first, t + 1))


def without(window: Window, dropped: Iterable[int]) -> Window:
    """Return the window without some steps, the others renumbered."""
    gone = set(dropped)
    position = {step: i for i, step in enumerate(s for s in range(len(window)) if s not in gone)}
    return tuple(tuple(position[r] for r in window[s] if r in position) for s in position)


def parts(window: Window) -> list[Window]:
    """Return the connected parts of a window, smallest first."""
    return [part for _, part in parts_with_steps(window)]


def parts_with_steps(window: Window) -> list[tuple[tuple[int, ...], Window]]:
    """Return the connected parts of a window, smallest first, each with the steps that it is made of."""
    leader = list(range(len(window)))
    for step, refs in enumerate(window):
        for r in refs:
            old, new = leader[r], leader[step]
            leader = [new if found == old else found for found in leader]
    members = [tuple(s for s in range(len(window)) if leader[s] == name) for name in sorted(set(leader))]
    made = [(steps, without(window, set(range(len(window))) - set(steps))) for steps in members]
    return sorted(made, key=lambda part: len(part[0]))


def count_reachable(window: Window, k: int, q: int, backend: str = "auto") -> int:
    """Return how many windows inputs from an alphabet of q can produce."""
    return prod(_evaluate(coefficients, q) for coefficients in _reachable(window, k, backend))


def reachable_coefficients(window: Window, k: int, backend: str = "auto") -> list[int]:
    """Return a_0, a_1, … with Σ a_K C(q, K) reachable windows for an alphabet of q."""
    factors = _reachable(window, k, backend)
    return binomial_coefficients(lambda q: prod(_evaluate(c, q) for c in factors), k * len(window))


def _reachable(window: Window, k: int, backend: str) -> list[list[int]]:
    found = []
    for part in parts(window):
        vectors = valid_vectors(part, k)
        full = np.zeros((len(vectors), 1), dtype=np.bool_)
        full[-1] = True
        found.append(count_chains(vectors, full, backend)[0])
    return found


def count_visible(window: Window, k: int, fan_in: int, q: int, backend: str = "auto") -> int:
    """Return how many windows differ after raising every value to the lowest one that a reference set can show.

    The lowest visible value is the smallest k-th largest value of min(fan_in, steps) frontiers together. A window
    counts once for the vector of values above its lowest one, which must leave some reference set short of k values.
    """
    g = min(fan_in, len(window))
    degree = k * len(window)
    *others, largest = parts(window)
    # M_τ(j): windows over j values whose g least full frontiers hold τ; parts combine by merging their τ.
    combined: dict[Smallest, list[int]] = {(): [1] * (degree + 1)}
    for part in others:
        vectors = valid_vectors(part, k)
        types = _types(vectors, g)
        chains = dict(zip(types, _chains_to(vectors, [[t] for t in types], g, backend), strict=True))
        combined = _merge(combined, {t: _values(c, degree) for t, c in chains.items()}, g)
    values = _close(largest, combined, k, g, degree, backend)
    # The lowest value can be any of q; j values remain above it.
    coefficients = binomial_coefficients(values.__getitem__, degree)
    return sum(a * comb(q, i + 1) for i, a in enumerate(coefficients))


def _close(part: Window, others: dict[Smallest, list[int]], k: int, g: int, degree: int, backend: str) -> list[int]:
    """Return, for j = 0 … degree, the windows over j values that leave a reference set short of k values.

    Types of the last and largest part that go with the same types of the others are counted together.
    """
    vectors = valid_vectors(part, k)
    together: dict[tuple[Smallest, ...], list[Smallest]] = defaultdict(list)
    for kind in _types(vectors, g):
        fitting = tuple(other for other in others if sum(sorted(kind + other)[:g]) < k)
        if fitting:
            together[fitting].append(kind)
    total = [0] * (degree + 1)
    for fitting, chains in zip(together, _chains_to(vectors, list(together.values()), g, backend), strict=True):
        values = _values(chains, degree)
        for j in range(degree + 1):
            total[j] += values[j] * sum(others[other][j] for other in fitting)
    return total


def _types(vectors: VectorSet, g: int) -> list[Smallest]:
    base, size = vectors.k + 1, min(g, vectors.held.shape[1])
    present = np.flatnonzero(np.bincount(_type_codes(vectors, g))).tolist()
    return [tuple(code // base**place % base for place in range(size)) for code in present]


def _type_codes(vectors: VectorSet, g: int) -> NDArray[np.int64]:
    """Return for each vector its g smallest numbers of held values, ascending, as digits of one small integer."""
    size = min(g, vectors.held.shape[1])
    smallest = np.sort(np.partition(vectors.held, size - 1, axis=1)[:, :size], axis=1).astype(np.int64)
    codes: NDArray[np.int64] = sum(
        (smallest[:, place] * (vectors.k + 1) ** place for place in range(size)), start=np.zeros(len(vectors), np.int64)
    )
    return codes


def _chains_to(vectors: VectorSet, groups: Sequence[Sequence[Smallest]], g: int, backend: str) -> list[list[int]]:
    """Return the chain counts to the vectors of each group of types."""
    codes = _type_codes(vectors, g)
    wanted = [[sum(a * (vectors.k + 1) ** place for place, a in enumerate(kind)) for kind in group] for group in groups]
    last = np.column_stack([np.isin(codes, group) for group in wanted])
    return count_chains(vectors, last, backend)


def _merge(left: dict[Smallest, list[int]], right: dict[Smallest, list[int]], g: int) -> dict[Smallest, list[int]]:
    merged: dict[Smallest, list[int]] = {}
    for (a, many), (b, more) in product(left.items(), right.items()):
        kind = tuple(sorted(a + b)[:g])
        products = [x * y for x, y in zip(many, more, strict=True)]
        known = merged.get(kind)
        merged[kind] = products if known is None else [x + y for x, y in zip(known, products, strict=True)]
    return merged


def _values(chains: Sequence[int], degree: int) -> list[int]:
    return [_evaluate(chains, j) for j in range(degree + 1)]


def _evaluate(coefficients: Sequence[int], q: int) -> int:
    return sum(a * comb(q, i) for i, a in enumerate(coefficients))


Labels = NDArray[np.int64]

TRANSITION_LIMIT = 20_000_000  # transitions refined in one round: seconds, and well under 1 GB
VECTOR_LIMIT = 2_000  # vectors whose order is kept as a full table


def count_classes(window: Window, k: int, fan_in: int, reach: int, left: int, q: int) -> int:
    """Return the classes at a cut with `left` steps to go.

    Raises:
        TooLargeError: the vectors are too many to refine or to compare.
    """
    largest = min(reach, len(window) + left)
    transitions = (k + 1) ** (largest + 1) * comb(largest, min(fan_in, largest))
    if transitions > TRANSITION_LIMIT:
        raise TooLargeError(
            f"{transitions} transitions to refine, the limit is {TRANSITION_LIMIT}; use a smaller m or k"
        )
    vectors = valid_vectors(window, k, VECTOR_LIMIT)
    labels = vector_labels(k, fan_in, reach, len(window), left)
    weights = (k + 1) ** np.arange(len(window) - 1, -1, -1, dtype=np.int64)
    sequences = _count_sequences(vectors, labels[vectors.held @ weights])
    # The class of "no value yet" comes first; every change happens at one of the q − 1 thresholds above the lowest.
    return sum(many * comb(q - 1, changes) for changes, many in enumerate(sequences))


def vector_labels(k: int, fan_in: int, reach: int, size: int, left: int) -> Labels:
    """Return the class of each vector of {0 … k}^size, in lexicographic order, with `left` steps to go.

    While the window fills, each further step is a window of one more; from then on the steps refine one full window,
    and once they leave the number of classes as it was they have reached a fixed point, since classes only split.
    """
    growing = min(reach - size, left)
    labels = (
        _full_labels(k, fan_in, reach, left - growing) if size + growing == reach else _one_class(k, size + growing)
    )
    for held in range(size + growing - 1, size - 1, -1):
        labels = _refine(k, held, min(fan_in, held), held + 1, labels)
    return labels


@lru_cache(maxsize=8)
def _full_labels(k: int, fan_in: int, reach: int, left: int) -> Labels:
    labels = _one_class(k, reach)
    for _ in range(left):
        refined = _refine(k, reach, min(fan_in, reach), reach, labels)
        if refined.max() == labels.max():
            break
        labels = refined
    return labels


def _one_class(k: int, size: int) -> Labels:
    return np.zeros((k + 1) ** size, dtype=np.int64)


def _refine(k: int, size: int, references: int, grown: int, future: Labels) -> Labels:
    codes = np.arange((k + 1) ** size, dtype=np.int64)
    digits = [(codes // (k + 1) ** (size - 1 - i) % (k + 1)).astype(np.uint8) for i in range(size)]
    kept = codes % (k + 1) ** (grown - 1)  # the oldest frontier leaves a full window
    labels = np.zeros_like(codes)
    for chosen in combinations(range(size), references):
        total = sum((digits[i] for i in chosen), start=np.zeros(len(codes), dtype=np.int64))
        for fresh in range(k + 1):
            made = np.minimum(total + fresh, k)
            labels = _split(labels, future[kept * (k + 1) + made])
            if fresh == 0:
                labels = _split(labels, made)
    return labels


def _split(labels: Labels, seen: Labels) -> Labels:
    return np.unique(labels * (seen.max() + 1) + seen, return_inverse=True)[1].reshape(-1)


def _count_sequences(vectors: VectorSet, labels: Labels) -> list[int]:
    """Return for K = 0, 1, … the sequences of K class changes that some chain of vectors passes through.

    Different chains may pass through the same classes, so what is followed is the set of vectors that a chain with
    the classes seen so far can be at. Classes are convex, hence never entered twice.
    """
    above = [_as_mask((row <= vectors.fresh).all(axis=1)) for row in vectors.fresh]
    classes = [_as_mask(labels == label) for label in np.unique(labels)]

    @cache
    def sequences(here: int, own: int) -> tuple[int, ...]:
        reachable = 0
        for vector in _members(here):
            reachable |= above[vector]
        found = [1]
        for number, members in enumerate(classes):
            if number != own and (there := members & reachable):
                onward = sequences(there, number)
                found.extend([0] * (len(onward) + 1 - len(found)))
                for changes, many in enumerate(onward, 1):
                    found[changes] += many
        return tuple(found)

    own = int(np.searchsorted(np.unique(labels), labels[0]))
    return list(sequences(classes[own], own))


def _as_mask(flags: NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def _members(mask: int) -> list[int]:
    return [i for i, bit in enumerate(reversed(bin(mask)[2:])) if bit == "1"]
