"""What any memory of C bits can answer at one step of a workload: a ceiling, what is known to exist, what is built.

`luck.py` has the probabilities, docs/design/workload-ceilings.md the proofs. `tests/eir/test_step_bounds.py` compares
every bound with all encoders of small sizes and with a second derivation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from math import comb, gcd, log2

import numpy as np

from eirkit.eir.luck import Floats, Tails, pair_tails, rate_distortion, record_tails, weighted_tails
from eirkit.errors import TooLargeError

MOST_PAIRED = 24  # records whose pairs are counted by their rank; 276 pairs
MOST_WEIGHTED = 16  # records with unequal probabilities: 2^16 sets are listed
LARGEST_ALPHABET = 1_000_000  # values of a maximum that are summed over one by one
ROUNDING = 1e-9  # in bits; a memory of log2(q) bits holds one of q values, however the logarithm was rounded


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
