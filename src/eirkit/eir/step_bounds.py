"""What any memory of C bits can answer at one step of a workload: a ceiling, what is known to exist, what is built.

A memory of K states is no better than the luckiest one in K of blind guesses. If a fixed list of guesses has a share of
at least v of its answers right with probability P(v), the best of K lists has an expected share of at most
∫ min(1, K · P(v)) dv. The tails P(v) are kept as logarithms, since K and 1/P exceed every float. The proofs are in
docs/design/workload-ceilings.md; `tests/eir/test_step_bounds.py` compares every bound with all encoders of small sizes
and with a second derivation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb, gcd, log2

import numpy as np
from numpy.typing import NDArray

from eirkit.errors import TooLargeError

Floats = NDArray[np.float64]

MOST_RECORDS = 1024  # a tail has this many terms of as many digits
SLACK = 1e-12  # added to ceilings, above the rounding of logarithms and sums
MOST_PAIRED = 24  # records whose pairs are counted by their rank; 276 pairs
MOST_WEIGHTED = 16  # records with unequal probabilities: 2^16 sets are listed
LARGEST_ALPHABET = 1_000_000  # values of a maximum that are summed over one by one
ROUNDING = 1e-9  # in bits; a memory of log2(q) bits holds one of q values, however the logarithm was rounded


@dataclass(frozen=True, slots=True, eq=False)
class Tails:
    """Heights v of scores in descending order of luck, with log2 P(score ≥ v)."""

    rises: Floats  # v minus the next lower height
    logs: Floats

    def upper(self, bits: float) -> float:
        return min(1.0, float(self.rises @ np.exp2(np.minimum(0.0, bits + self.logs))) + SLACK)

    def drawn(self, bits: float) -> float:
        """Return what 2^bits guesses drawn at random reach on average, so that some list of guesses reaches it.

        Each misses with probability 1 − P, and (1 − P)^K ≤ exp(−K · P).
        """
        expected = np.exp2(np.minimum(64.0, bits + self.logs))
        return float(self.rises @ -np.expm1(-expected)) - SLACK


@lru_cache(maxsize=4096)
def record_tails(records: int, alphabet: int) -> Tails:
    """Return how many of some independent uniform records a blind guess has right."""
    if records > MOST_RECORDS:
        raise TooLargeError(f"{records:,} records, the limit is {MOST_RECORDS:,}; use a smaller m or lookback")
    every = math.log2(alphabet) * records
    total, logs = 0, []
    for right in range(records, 0, -1):
        total += comb(records, right) * (alphabet - 1) ** (records - right)
        logs.append(min(0.0, math.log2(total) - every))
    return Tails(np.full(records, 1 / records), np.array(logs))


@lru_cache(maxsize=256)
def different_tails(sizes: tuple[int, ...]) -> Tails:
    """Return how many of some independent uniform values, of as many kinds as `sizes` says, a blind guess has right."""
    ways = [1]  # lists of values with 0, 1, … right ones
    for size in sizes:
        wrong, right = [many * (size - 1) for many in ways], ways
        ways = [a + b for a, b in zip([*wrong, 0], [0, *right], strict=True)]
    every, total, logs = math.fsum(map(math.log2, sizes)), 0, []
    for many in reversed(ways[1:]):
        total += many
        logs.append(min(0.0, math.log2(total) - every) if total else -math.inf)
    return Tails(np.full(len(sizes), 1 / len(sizes)), np.array(logs))


@lru_cache(maxsize=64)
def weighted_tails(law: tuple[float, ...], alphabet: int) -> Tails:
    """Return the same for records that are asked for with unequal probabilities, over all sets of right guesses."""
    shares, counts = np.zeros(1), np.zeros(1, dtype=np.int64)
    for weight in law:
        shares, counts = np.concatenate((shares, shares + weight)), np.concatenate((counts, counts + 1))
    chance, miss = math.log2(alphabet), math.log2(alphabet - 1) - math.log2(alphabet) if alphabet > 1 else -np.inf
    logs = -counts * chance + (len(law) - counts) * miss if alphabet > 1 else np.where(counts == len(law), 0.0, -np.inf)
    order = np.argsort(-shares, kind="stable")
    heights = shares[order]
    rises = heights - np.append(heights[1:], 0.0)
    return Tails(rises, np.minimum(0.0, np.logaddexp2.accumulate(logs[order])))


def rate_distortion(law: Sequence[float], alphabet: int, bits: float) -> float:
    """Return the bound by rate–distortion theory: the least over s of (ln K + Σ ln(1 + (e^{s·w} − 1) / q)) / s.

    Weaker than the tails of the same records, and as good in the limit of many; convex in 1/s, so a search finds it.
    """
    weights = np.array(law)

    def bound(log_s: float) -> float:
        s = math.exp(log_s)
        exponents = s * weights
        large = exponents > 30  # there the logarithm of the sum is exact, and e^x would overflow later
        small = np.log1p(np.expm1(np.minimum(exponents, 30.0)) / alphabet)
        miss = math.log1p(-1 / alphabet) if alphabet > 1 else -np.inf
        terms = np.where(large, np.logaddexp(exponents - math.log(alphabet), miss), small)
        return (bits * math.log(2) + float(terms.sum())) / s

    low, high = -12.0, 20.0
    ratio = (math.sqrt(5) - 1) / 2
    while high - low > 1e-9:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if bound(left) <= bound(right) else (left, high)
    return min(1.0, bound((low + high) / 2) + SLACK)


def _graphs(most: int) -> tuple[list[list[int]], list[list[int]]]:
    """Return for v = 0 … most the connected graphs on v labeled vertices, and the bipartite ones, by their edges."""
    connected, bipartite = [[0]], [[0]]
    colored: list[list[int]] = [[1]]  # graphs with a proper coloring in two colors, chosen with it
    joined: list[list[int]] = [[0]]  # connected ones among them
    for v in range(1, most + 1):
        every = [comb(comb(v, 2), e) for e in range(comb(v, 2) + 1)]
        apart = [[comb(comb(v - u, 2), e) for e in range(comb(v - u, 2) + 1)] for u in range(v + 1)]
        connected.append(_less_joined(every, connected, apart, v))
        shades = [0] * (v * v // 4 + 1)
        for red in range(v + 1):
            for e in range(red * (v - red) + 1):
                shades[e] += comb(v, red) * comb(red * (v - red), e)
        colored.append(shades)
        joined.append(_less_joined(shades, joined, [colored[v - u] for u in range(v + 1)], v))
        bipartite.append([count // 2 for count in joined[v]])
    return connected, bipartite


def _less_joined(every: list[int], smaller: list[list[int]], apart: list[list[int]], v: int) -> list[int]:
    """Return the connected ones of all graphs: without those in which vertex 1 lies in a part of u < v vertices."""
    left = list(every)
    for u in range(1, v):
        for e, product in enumerate(_times(smaller[u], apart[u])):
            if product:
                left[e] -= comb(v - 1, u - 1) * product
    return left


def _times(a: Sequence[int], b: Sequence[int]) -> list[int]:
    product = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        if x:
            for j, y in enumerate(b):
                product[i + j] += x * y
    return product


@lru_cache(maxsize=256)
def pair_tails(records: int, alphabet: int, halves: int) -> Tails:
    """Return bounds on how many sums of two records, of all pairs, a fixed list of guesses can have right.

    A set of pairs is a graph; a connected part of v records is right with probability at most q^-(v − 1) if it is
    bipartite and `halves` · q^-v if not, `halves` being the solutions of 2x = c. The expected number of right sets of s
    pairs bounds the probability of e right pairs by E / C(e, s), for every s.
    """
    connected, bipartite = _graphs(records)
    parts: list[list[int]] = [[1]]  # times alphabet^records
    for v in range(1, records + 1):
        total = [0] * (comb(v, 2) + 1)
        for u in range(1, v + 1):
            size = max(len(connected[u]), len(bipartite[u]))
            weights = [
                halves * (_at(connected[u], e) - _at(bipartite[u], e)) + alphabet * _at(bipartite[u], e)
                for e in range(size)
            ]
            for e, product in enumerate(_times(weights, parts[v - u])):
                if product:
                    total[e] += comb(v - 1, u - 1) * product
        parts.append(total)
    pairs = comb(records, 2)
    every = math.log2(alphabet) * records
    moments = [math.log2(count) - every for count in parts[records]]  # of sets of s pairs
    logs = [min(0.0, min(moments[s] - math.log2(comb(e, s)) for s in range(1, e + 1))) for e in range(pairs, 0, -1)]
    return Tails(np.full(pairs, 1 / pairs), np.array(logs))


def _at(counts: Sequence[int], e: int) -> int:
    return counts[e] if e < len(counts) else 0


@dataclass(frozen=True, slots=True)
class UniformRecords:
    """The sum of `fan_in` of `window` independent uniform records, drawn uniformly; with one reference, the record."""

    window: int
    fan_in: int  # at most the window
    q: int
    slots: int = 1

    @property
    def alphabet(self) -> int:
        return int(self.q**self.slots)

    @property
    def how(self) -> str:
        guessed = "records" if self.fan_in == 1 else "sums"
        return f"no better than the luckiest one in 2^C blind guesses of independent {guessed}"

    @property
    def independent(self) -> int:
        """How many sums of `fan_in` records can be independent and uniform."""
        if self.window == self.fan_in:
            return 1
        return self.window if gcd(self.fan_in, self.q) == 1 else self.window - 1

    def upper(self, bits: float) -> float:
        return min(tails.upper(bits) for tails in self._tails())

    def exists(self, bits: float) -> float:
        if self.window == self.fan_in:  # the one sum that can be asked for is kept in place of the records
            return _values(bits, self.alphabet) / self.alphabet
        drawn = self.fan_in == 1  # every list of guesses is then a list of records
        return max(self.kept(bits), record_tails(self.independent, self.alphabet).drawn(bits) if drawn else 0.0)

    def kept(self, bits: float) -> float:
        """Keep the newest records whole, as many as fit, and with the rest of the states some values of one more.

        The memory `encoder` does so at every step of a run.
        """
        whole, states = divide_bits(bits, self.alphabet, self.window)
        pairs, f = comb(self.window, self.fan_in), self.fan_in
        held, nearly = comb(whole, f), comb(whole, f - 1) if whole < self.window else 0
        return min(1.0, (held + nearly * states / self.alphabet + (pairs - held - nearly) / self.alphabet) / pairs)

    def _tails(self) -> list[Tails]:
        found = [record_tails(self.independent, self.alphabet)]
        if self.fan_in == 2 and 2 < self.window <= MOST_PAIRED:
            found.append(pair_tails(self.window, self.alphabet, gcd(2, self.q) ** self.slots))
        return found


@dataclass(frozen=True, slots=True)
class WeightedRecords:
    """One of several independent uniform records, asked for with known and unequal probabilities."""

    law: tuple[float, ...]  # sums to 1
    alphabet: int

    @property
    def how(self) -> str:
        if len(self.law) <= MOST_WEIGHTED:
            return "no better than the luckiest one in 2^C blind guesses of independent records"
        return "rate–distortion function of independent records"

    def upper(self, bits: float) -> float:
        if len(self.law) <= MOST_WEIGHTED:
            return weighted_tails(self.law, self.alphabet).upper(bits)
        return rate_distortion(self.law, self.alphabet, bits)

    def exists(self, bits: float) -> float:
        drawn = weighted_tails(self.law, self.alphabet).drawn(bits) if len(self.law) <= MOST_WEIGHTED else 0.0
        return max(self.kept(bits), drawn)

    def kept(self, bits: float) -> float:
        """Keep the likeliest records."""
        whole, states = divide_bits(bits, self.alphabet, len(self.law))
        if whole == len(self.law):
            return 1.0
        likely = sorted(self.law, reverse=True)
        shares = [*([1.0] * whole), states / self.alphabet, *([1 / self.alphabet] * len(likely))]
        return min(1.0, math.fsum(w * s for w, s in zip(likely, shares, strict=False)))


@dataclass(frozen=True, slots=True)
class ChainedMaximum:
    """The maximum of `inputs` uniform values of the past and `fresh` given ones: exact, if nothing else is asked."""

    q: int
    inputs: int
    fresh: int = 1

    @property
    def how(self) -> str:
        return "exact: the largest values are kept apart from all others"

    def upper(self, bits: float) -> float:
        """Return what is reached by keeping the K − 1 largest values apart from all others; nothing does better."""
        if bits >= log2(self.q) - ROUNDING:
            return 1.0
        k = _states(bits)
        below, given = _powers(self.q, self.inputs), _powers(self.q, self.fresh)
        chance = np.diff(given, prepend=0.0)
        low = self.q - k  # inputs up to here share a code
        best = np.maximum(below[:low], below[low] - (below[low - 1] if low else 0.0))
        known = 1 - below[low]
        return min(1.0, float(chance[low:].sum() + chance[:low] @ (known + best)))

    def exists(self, bits: float) -> float:
        return self.upper(bits)

    def kept(self, bits: float) -> float:
        return self.upper(bits)


@dataclass(frozen=True, slots=True)
class LocalMaximum:
    """The maximum, or largest values, of `fan_in` of `window` earlier answers.

    The ceiling is that of a memory which knows what will be asked, so it is 1 from log2(q) bits on; none below 1 is
    known there, because earlier answers share their largest values.
    """

    single: ChainedMaximum  # the largest value of the references of this step
    window: int
    fan_in: int
    record_bits: float

    @property
    def how(self) -> str:
        known = f"no ceiling below 1 is known from {log2(self.single.q):.1f} bits on"
        return f"a memory that knows what is asked next; {known}"

    def upper(self, bits: float) -> float:
        return self.single.upper(bits)

    def exists(self, bits: float) -> float:
        return self.kept(bits)

    def kept(self, bits: float) -> float:
        """Keep the newest records whole, as many as fit; a step that needs another one counts as wrong."""
        whole = min(self.window, int(bits / self.record_bits + ROUNDING))
        return comb(whole, self.fan_in) / comb(self.window, self.fan_in)


def _states(bits: float) -> int:
    return int(2**bits * (1 + ROUNDING))


def _values(bits: float, alphabet: int) -> int:
    """Return how many values of one record can be told apart."""
    return alphabet if bits >= log2(alphabet) - ROUNDING else _states(bits)


def divide_bits(bits: float, alphabet: int, most: int) -> tuple[int, int]:
    """Return how many of `most` records fit whole, and how many values of one more can be told apart."""
    record = log2(alphabet)
    whole = min(most, int(bits / record + ROUNDING)) if record else most
    return whole, _values(max(0.0, bits - whole * record), alphabet)


@lru_cache(maxsize=512)
def _powers(q: int, inputs: int) -> Floats:
    """Return P(maximum of `inputs` uniform values ≤ v) for v = 0 … q − 1."""
    if q > LARGEST_ALPHABET:
        raise TooLargeError(f"{q:,} values, the limit is {LARGEST_ALPHABET:,} for a maximum; use fewer --digits")
    powers: Floats = (np.arange(1, q + 1) / q) ** inputs
    powers.flags.writeable = False  # the cache hands the same array to everyone
    return powers
