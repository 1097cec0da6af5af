"""The least that any online policy can miss: references are drawn after it has chosen what to hold.

Belady knows the references; nobody else does. If a step draws `drawn` of `available` records uniformly, whatever came
before, at most C(h, drawn) of the C(available, drawn) sets are among h held records. With recovery the draw is the
same, so the bound is too, and what is not held must be fetched. docs/design/online-policies.md has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb


@dataclass(frozen=True, slots=True)
class Draw:
    """What one step refers to, as it is known before it is drawn."""

    available: int
    drawn: int = 1  # distinct records, uniformly, unless there are weights
    weights: tuple[float, ...] = ()  # probabilities of the available records, of which one is drawn

    def most_held(self, h: int) -> float:
        """Return the largest probability that every reference is among h records."""
        if self.weights:
            return min(1.0, math.fsum(sorted(self.weights, reverse=True)[:h]))
        return comb(min(h, self.available), self.drawn) / comb(self.available, self.drawn)

    def fewest_missing(self, h: int) -> float:
        """Return the smallest expected number of references that are not among h records."""
        if self.weights:
            return 1 - self.most_held(h)
        return self.drawn * (1 - min(h, self.available) / self.available)


@dataclass(frozen=True, slots=True)
class OnlineBest:
    """A bound that no policy beats on average without knowing the references in advance."""

    miss_rate: float  # steps with a missing reference / steps with references
    retrievals: float  # missing references in a task; with recovery each is fetched


def best_online(draws: Sequence[Draw | None], h: int) -> OnlineBest | None:
    """Return the bound for a memory of h records; None if no step refers to anything."""
    asking = [draw for draw in draws if draw is not None]
    if not asking:
        return None
    missed = math.fsum(1 - draw.most_held(h) for draw in asking) / len(asking)
    return OnlineBest(missed, math.fsum(draw.fewest_missing(h) for draw in asking))


def hindsight(fifo: float, online: float, belady: float) -> float | None:
    """Return the share of the gap between FIFO and Belady that takes knowledge of the future; None if there is no gap.

    FIFO and Belady are simulated, the bound is an expectation; what sampling puts outside 0 … 1 is cut off.
    """
    return None if fifo <= belady else min(1.0, max(0.0, (online - belady) / (fifo - belady)))
