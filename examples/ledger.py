"""A ledger as a process: each entry is a fresh amount plus two of the last three entries, modulo 4.

Which two is not known before the entry is due. How much of the ledger must be remembered?
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

MODULUS = 4
Entries = tuple[int, ...]
Move = tuple[tuple[int, ...], int]  # places of the two entries, and the fresh amount


class ledger:  # noqa: N801 - read on the command line as examples/ledger.py:ledger
    """Any three entries may stand at the cut, and the work goes on for ever."""

    states = tuple(product(range(MODULUS), repeat=3))
    horizon: int | None = None

    def moves(self, state: Entries) -> Iterator[Move]:
        return product(combinations(range(3), 2), range(MODULUS))

    def step(self, state: Entries, move: Move) -> tuple[int, Entries]:
        (first, second), amount = move
        entry = (amount + state[first] + state[second]) % MODULUS
        return entry, (*state[1:], entry)


class last_entry(ledger):  # noqa: N801
    """The same ledger when only one entry is left to write."""

    horizon = 1
