"""Score tables for policies that evict the record with the lowest score.

A score is a sum of three table entries, all integers, so that it is the same on every machine and a kernel can look it
up. `studies/learned_policy` trains the tables.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray

from eirkit.errors import SpecError
from eirkit.tasks.policy import Outlook, Policy, Record
from eirkit.tasks.task import Kind

KINDS: tuple[Kind, ...] = get_args(Kind)
EXACT = 16  # shorter distances have one bucket each
PER_OCTAVE = 4
BUCKETS = EXACT + 4 * PER_OCTAVE  # longer distances share the last bucket
MOST_USES = 16
LARGEST_SCORE = 1 << 30
LARGEST_FILE_BYTES = 1 << 20

Scores = NDArray[np.int64]


def bucket(distance: int) -> int:
    """Return the bucket of a distance: exact below EXACT, four per octave above."""
    if distance < EXACT:
        return distance
    octave = distance.bit_length() - EXACT.bit_length()
    within = (distance >> (octave + EXACT.bit_length() - 3)) - PER_OCTAVE
    return min(BUCKETS - 1, EXACT + PER_OCTAVE * octave + within)


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """What a record is worth at a step of some kind: by its own kind and the steps in which it may still be asked for,
    by its uses and idle ticks, and by its kind and uses.

    Rows of kinds are kind · 4 + the kind of the step; rows of uses are the kind of the step · 16 + uses − 1.
    """

    left: Scores  # (kinds · kinds, buckets); in steps
    idle: Scores  # (kinds · uses, buckets); in ticks of the store's clock
    uses: Scores  # (kinds · kinds, uses)

    def score(self, kind: int, present: int, left: int, idle: int, uses: int) -> int:
        """Return what one record is worth."""
        pair, seen = kind * len(KINDS) + present, min(uses, MOST_USES) - 1
        resting = self.idle[present * MOST_USES + seen, bucket(idle)]
        return int(self.left[pair, bucket(max(0, left))] + resting + self.uses[pair, seen])

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name).tolist() for name in SHAPES}

    @classmethod
    def read(cls, path: Path | Traversable) -> Self:
        """Read the tables from a JSON file; raise SpecError if it holds anything else."""
        refusal = f"{path.name} does not hold score tables; give a file written by `python -m studies.learned_policy`"
        try:
            with path.open("rb") as file:
                text = file.read(LARGEST_FILE_BYTES + 1)
            found: Any = json.loads(text) if len(text) <= LARGEST_FILE_BYTES else None
            made = {name: np.array(found[name]) for name in SHAPES}
        except (ValueError, TypeError, KeyError, RecursionError):
            raise SpecError(refusal) from None
        for name, shape in SHAPES.items():
            table = made[name]
            if table.shape != shape or table.dtype.kind != "i" or np.abs(table).max() > LARGEST_SCORE:
                raise SpecError(f"{refusal} (`{name}` must be {shape[0]} × {shape[1]} integers)")
        return cls(**{name: table.astype(np.int64) for name, table in made.items()})


PAIRS = len(KINDS) ** 2
SHAPES = {"left": (PAIRS, BUCKETS), "idle": (len(KINDS) * MOST_USES, BUCKETS), "uses": (PAIRS, MOST_USES)}


class Scored(Policy):
    """Evicts the candidate with the lowest score, and among equals the one that entered first.

    A subclass sets `tables`. Kinds and last possible uses come from the structure, which is known before any seed.
    """

    tables: Tables

    def __init__(self, kinds: Sequence[int], last_use: Sequence[int]) -> None:
        self.kinds, self.last_use = kinds, last_use  # of step t at t − 1

    @classmethod
    def for_task(cls, outlook: Outlook) -> Self:
        return cls(kind_numbers(outlook.structure.kinds), outlook.structure.last_use)

    def victim(self, candidates: Sequence[Record], step: int) -> int:
        now = candidates[-1].inserted
        return min(candidates, key=lambda record: (self.score(record, step, now), record.inserted)).id

    def score(self, record: Record, step: int, now: int) -> int:
        """Return what a record is worth at a step and a tick of the store's clock."""
        kind, present = self.kinds[record.id - 1], self.kinds[step - 1]
        left = self.last_use[record.id - 1] - step
        return self.tables.score(kind, present, left, now - record.touched, record.uses)


def kind_numbers(kinds: Sequence[Kind]) -> tuple[int, ...]:
    """Return the row of each kind in the tables."""
    return tuple(KINDS.index(kind) for kind in kinds)
