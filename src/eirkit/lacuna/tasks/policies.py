"""The built-in retention policies, and the score tables of the learned one.

A score is a sum of three table entries, all integers, so that it is the same on every machine and a kernel can look it
up. `studies/learned_policy` trains the tables.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from eirkit.errors import SpecError
from eirkit.lacuna.tasks.policy import NEVER, Drawn, Hindsight, Outlook, Policy, Ranked, Record, Structure, policies
from eirkit.lacuna.tasks.task import CHANGING, Kind
from eirkit.seeds import Words, words

KINDS: tuple[Kind, ...] = ("compute", "store", "query", "recall")  # that the tables know
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
    """Return the row of each kind in the tables; a step that changes a record has no record of its own, as a query."""
    return tuple(KINDS.index("query" if kind in CHANGING else kind) for kind in kinds)


@policies.add("unbounded")
class Unbounded(Ranked):
    """Keep every record, whatever h is."""

    def capacity(self, h: int) -> int:
        return NEVER


@policies.add("window")
class Window(Ranked):
    """Keep the h newest records by step, whatever is fetched: the sufficient store of a windowed task at h = m."""

    lowest = "id"


@policies.add("fifo")
class Fifo(Ranked):
    """Drop the record that entered first; a record that is fetched again enters anew."""

    lowest = "inserted"


@policies.add("lru")
class Lru(Ranked):
    """Drop the record that was asked for longest ago; entering counts as being asked for."""

    lowest = "touched"


@policies.add("lfu")
class Lfu(Ranked):
    """Drop the record with the fewest uses since it entered (entering is one), the least recently used among equals."""

    lowest = "uses"
    ties = "touched"


@policies.add("fixed")
class Fixed(Ranked):
    """Keep the last h STOREs: answers to questions and fetched records are refused.

    Where a workload has no STORE, every record is one, and the policy is the exact window.
    """

    lowest = "worth"
    ties = "id"

    @classmethod
    def worths(cls, structure: Structure) -> Sequence[int]:
        return tuple(int(kind == "store") for kind in structure.kinds)


@policies.add("random")
class Random(Drawn):
    """Drop a candidate, the newcomer included, with equal probability; depends on the seed and the store's clock."""

    @classmethod
    def draw(cls, seeds: Sequence[int] | NDArray[Any], ticks: int) -> Words:
        return words(seeds, ticks, "policy", "random")


@policies.add("theory")
class TheoryInformed(Ranked):
    """Drop the record whose last possible use comes first, the oldest among equals.

    The workload states the last possible use before any reference is drawn: a RECALL answer can never be used, and an
    answer outside the window can no longer be used.
    """

    lowest = "worth"

    @classmethod
    def worths(cls, structure: Structure) -> Sequence[int]:
        return structure.last_use


@policies.add("learned")
class Learned(Scored):
    """Drop the record with the lowest learned score, from its kind, last possible use, uses and idle time.

    docs/policies.md describes the training data and the limits of the policy.
    """

    tables = Tables.read(files(__package__) / "learned.json")


@policies.add("belady")
class Belady(Hindsight):
    """Drop the record that is needed last, or never again; the oldest among those never needed.

    It misses the fewest references if missed records are fetched again: a policy that keeps another record instead
    can swap it for this one at the next miss. With recovery off, or per step, another choice can do better. Checked
    against all choices in `tests/lacuna/tasks/test_policies_optimality.py`.
    """
