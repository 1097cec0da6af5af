"""How often any memory of some bits can answer the questions about a world.

The ceiling is that of a memory which knows beforehand what will be asked, and all that was said but for the values.
Values that are said of different subjects are then independent and uniform, and the versions of one fact are
different, so that a guess at the i-th of them that is asked for is right with probability 1 / (values − i + 1) at
most. Answers made of several facts, sets, amounts and dates, and answers that were asked for before, count as known.
The rest is the lemma on luck; docs/design/workload-ceilings.md has the proof.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from eirkit.eir.luck import Tails, different_tails
from eirkit.tasks.words.truth import Key, answers
from eirkit.tasks.words.world import ATTRIBUTES, DAYS, MOST_BOXES, Answer, World

_DIRECT = ("now", "before", "as_of")  # forms of questions that ask for one value of one fact
_VALUES = ("value", "rule", "name")  # forms of facts whose values are drawn uniformly


@dataclass(frozen=True, slots=True)
class AskedValues:
    """The questions of a world: how many values each answer can have, as a memory that knows the questions sees it."""

    sizes: tuple[int, ...]  # of answers that are independent values
    known: int  # answers that nobody needs a memory for: the fact was never said, or was withdrawn
    others: int  # answers that count as known from above, and as values of `largest` from below
    largest: int

    @property
    def how(self) -> str:
        return (
            "no better than the luckiest one in 2^C blind guesses, for a memory that knows what will be asked; "
            f"{self.others} of {self.asked} answers, which depend on several facts, count as known"
        )

    @property
    def asked(self) -> int:
        return len(self.sizes) + self.known + self.others

    def upper(self, bits: float) -> float:
        drawn = self._tails.upper(bits) * len(self.sizes) if self.sizes else 0.0
        return min(1.0, (self.known + self.others + drawn) / self.asked)

    def exists(self, bits: float) -> float:
        return self.kept(bits)

    def kept(self, bits: float) -> float:
        """Keep as many answers as fit, those with the fewest values first."""
        room, right = bits + 1e-9, self.known
        for size in sorted((*self.sizes, *(self.largest,) * self.others)):
            room -= math.log2(size)
            if room < 0:
                break
            right += 1
        return right / self.asked

    @property
    def _tails(self) -> Tails:
        return different_tails(self.sizes)


def asked_values(world: World) -> AskedValues:
    """Return what the questions of a world ask for."""
    dials = world.dials
    names = {"seat": dials.places, "team": dials.teams, "lead": dials.people}
    sizes, known, others = list[int](), 0, 0
    seen: set[tuple[Key, Answer]] = set()
    before: Counter[Key] = Counter()
    for question, answer, _ in answers(world):
        key = question.attribute, question.subject
        form = ATTRIBUTES[question.attribute]
        if question.form not in _DIRECT or form not in _VALUES or (key, answer) in seen:
            others += 1
        elif answer is None:
            known += 1
        else:
            seen.add((key, answer))
            sizes.append(max(1, names.get(question.attribute, dials.values) - before[key]))
            before[key] += 1
    largest = max(dials.values, 2 * MOST_BOXES, 2 * DAYS, 2**dials.candidates)
    return AskedValues(tuple(sorted(sizes)), known, others, largest)
