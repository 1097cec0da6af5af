"""Selections of lines within a number of tokens: the best one, a random one, and what a random one keeps on average.

A needed line is worth its tokens, so the best selection is the largest sum of tokens that fits (a subset sum), which is
found exactly. A random selection takes lines in random order up to the first that does not fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from eirkit.seeds import words

_FIRST_TRIED = 64  # items among which the rest of the capacity is filled; doubled until it is full
_EXACT_LINES = 16  # up to so many lines the expectation is counted and not approximated
_NODES = 48  # of the quadrature
_TAILS = 8.0  # standard deviations beyond which a sum is certain to lie on one side


def best_selection(tokens: Sequence[int], capacity: int) -> list[int]:
    """Return the places of items whose tokens have the largest sum within a capacity; earlier ones are preferred.

    Items are taken in order while they fit. Which of the last items taken, and of those after them, fill the rest best
    is decided exactly; more items take part until the capacity is reached or all of them do, so nothing is larger.
    """
    if sum(tokens) <= capacity:
        return list(range(len(tokens)))
    if capacity <= 0:
        return [place for place, size in enumerate(tokens) if size == 0]
    taken, total = 0, 0
    while total + tokens[taken] <= capacity:
        total += tokens[taken]
        taken += 1
    tried = _FIRST_TRIED
    while True:
        first, last = max(0, taken - tried // 2), min(len(tokens), taken + tried // 2)
        fixed = list(range(first))
        room = capacity - sum(tokens[:first])
        chosen = _largest_sum(tokens[first:last], room)
        if sum(tokens[first + place] for place in chosen) == room or (first == 0 and last == len(tokens)):
            return fixed + [first + place for place in chosen]
        tried *= 2


def _largest_sum(tokens: Sequence[int], room: int) -> list[int]:
    """Return the places whose tokens have the largest sum up to `room`: bit s of a set says that the sum s is reached.

    Places are gone through from the last to the first, so that on the way back earlier ones are chosen if they can be.
    """
    mask = (1 << (room + 1)) - 1
    reached = [1]
    for size in reversed(tokens):
        before = reached[-1]
        reached.append((before | (before << size)) & mask)
    left = reached[-1].bit_length() - 1
    chosen = []
    for place, size in enumerate(tokens):
        without = reached[len(tokens) - place - 1]
        if size <= left and (without >> (left - size)) & 1:
            chosen.append(place)
            left -= size
    return chosen


def random_selection(tokens: Sequence[int], capacity: int, seed: int) -> list[int]:
    """Return the places of lines in random order up to the first that does not fit, sorted."""
    if not tokens:
        return []
    order = np.argsort(words([seed], len(tokens), "compactors", "random")[0], kind="stable")
    ends = np.cumsum(np.asarray(tokens)[order])
    return sorted(order[: int(np.searchsorted(ends, capacity, side="right"))].tolist())


Copies: TypeAlias = tuple[int, ...]  # tokens of each place where one line stands


class RandomKeeping:
    """What a random selection of lines keeps on average, for any capacity.

    Args:
        lines: the tokens of every place of every line.
        needed: of the lines that are needed, their worth and their places, which are among those of `lines`.
    """

    def __init__(self, lines: Iterable[int], needed: Iterable[tuple[int, Copies]]) -> None:
        self.lines = tuple(lines)
        self.total, self.squares = sum(self.lines), sum(size * size for size in self.lines)
        self.worth: dict[Copies, int] = {}  # tokens that lines with equal places are worth together
        for worth, copies in needed:
            places = tuple(sorted(copies))
            self.worth[places] = self.worth.get(places, 0) + worth

    def expected(self, capacity: int) -> float:
        """Return the expected worth of the needed lines in a random selection."""
        return math.fsum(worth * self.chance(copies, capacity) for copies, worth in sorted(self.worth.items()))

    def expected_share(self, share: float) -> float:
        """Return the same where each place is chosen with this probability."""
        return math.fsum(worth * (1 - (1 - share) ** len(copies)) for copies, worth in sorted(self.worth.items()))

    def chance(self, copies: Copies, capacity: int) -> float:
        """Return the probability that a line which stands at these places is in a random selection.

        Its first place in the random order decides: if that does not fit, the selection ends before it.
        """
        if len(self.lines) <= _EXACT_LINES:
            return _counted_chance(tuple(sorted(self.lines)), copies, capacity)
        return sum(self._first_fits(size, copies, capacity - size) for size in copies) / len(copies)

    def _first_fits(self, size: int, copies: Copies, room: int) -> float:
        """Return the chance that the first of its places fits, if that has this size, with sums of lines as normal.

        Give each place a uniform time: when the first copy comes at time u, every other line came with probability u.
        """
        others, squares = self.total - sum(copies), self.squares - sum(copy * copy for copy in copies)
        if room < 0 or room >= others:
            return float(room >= 0)
        middle = (room + 0.5) / others
        width = _TAILS * math.sqrt(max(1e-12, middle * (1 - middle) * squares)) / others
        low, high, several = max(0.0, middle - width), min(1.0, middle + width), len(copies)
        nodes, weights = _quadrature()
        times = low + (high - low) * nodes
        deviations = np.sqrt(np.maximum(1e-12, times * (1 - times) * squares))
        below = _normal((room + 0.5 - times * others) / deviations) * several * (1 - times) ** (several - 1)
        return float(1 - (1 - low) ** several + (high - low) * (weights @ below))


@cache
def _quadrature() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1) / 2, weights / 2


def _normal(z: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in z])


@lru_cache(maxsize=1 << 10)
def _counted_chance(lines: Copies, copies: Copies, capacity: int) -> float:
    """Return the share of orders in which the first of these places fits, by counting."""
    others = list(lines)
    for size in copies:
        others.remove(size)
    ways: list[dict[int, int]] = [{0: 1}, *({} for _ in others)]  # by number of lines before it: sums and their ways
    for taken, other in enumerate(others):
        for before in range(taken, -1, -1):
            for total, count in ways[before].items():
                ways[before + 1][total + other] = ways[before + 1].get(total + other, 0) + count
    n, several = len(lines), len(copies)
    found = 0.0
    for before, sums in enumerate(ways):
        comes = math.comb(n - before - 1, several - 1) / math.comb(n, several)
        for size in copies:
            fits = sum(count for total, count in sums.items() if total <= capacity - size)
            found += comes * fits / math.comb(n - several, before) / several
    return found
