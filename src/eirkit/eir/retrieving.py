"""What sets of histories earn if some results may be fetched, one by one, once the question is known.

Over all sets of atoms, so for small contracts only. The place to look at next may depend on what the earlier ones
showed. `tests/eir/test_covering.py` compares with every order of retrievals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eirkit.eir.scores import Floats, ScoreTable

EQUAL = 1e-12  # differences of sums of shares that are rounding


class Retrievals:
    """The value of every set of atoms for each question, with 0, 1, … retrievals left."""

    def __init__(self, table: ScoreTable, sums: Floats, shown: Sequence[Sequence[Any]], budget: int) -> None:
        """Take the sums of gains over every set of atoms, and what each place shows after each history."""
        self.table, self.sums = table, sums
        self.places: list[dict[Any, int]] = []  # what a place shows -> the atoms after which it does
        for place in range(len(shown[0])):
            sets: dict[Any, int] = {}
            for atom, found in zip(table.atoms.tolist(), shown, strict=True):
                sets[found[place]] = sets.get(found[place], 0) | 1 << atom
            self.places.append(sets)
        every = np.arange(len(sums))
        self.levels: list[Floats] = [np.maximum.reduceat(sums, table.starts, axis=1)]
        for _ in range(min(budget, len(self.places))):  # no place shows anything new the second time
            now = self.levels[-1]
            looked: list[Floats] = [
                sum((now[every & part] for part in sets.values()), np.zeros_like(now)) for sets in self.places
            ]
            self.levels.append(np.maximum.reduce([now, *looked]))

    @property
    def value(self) -> Floats:
        """What each set of atoms earns by all questions."""
        total: Floats = self.levels[-1].sum(axis=1)
        return total

    def answer(self, atoms: int, question: int, fetch: Callable[[int], Any]) -> int:
        """Return the column of the best answer to a question, `fetch(place)` being how a result is retrieved."""
        for left in range(len(self.levels) - 1, 0, -1):
            before = self.levels[left - 1][:, question]
            if self.levels[left][atoms, question] <= before[atoms] + EQUAL:
                continue  # one retrieval less does as well
            worth = [sum(before[atoms & part] for part in sets.values()) for sets in self.places]
            place = int(np.argmax(worth))
            atoms &= self.places[place].get(fetch(place), 0)
        first = int(self.table.starts[question])
        last = int(self.table.starts[question + 1]) if question + 1 < len(self.table.starts) else self.sums.shape[1]
        return first + int(self.sums[atoms, first:last].argmax())
