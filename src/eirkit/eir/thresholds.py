"""Counts the classes of small windows of k-value frontiers exactly, for every k and fan-in.

Whether two windows can be told apart is decided threshold by threshold: at a threshold only the number of values that
each frontier holds above it matters, and futures see these numbers summed and capped at k. So the vectors in
{0 … k}^W are refined once, independently of the alphabet and the graph, and a window is the sequence of classes that
its chain of vectors passes through. The argument is in docs/design/frontier-counting.md.
"""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from eirkit.eir.counting import VectorSet, Window, valid_vectors
from eirkit.errors import TooLargeError

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
