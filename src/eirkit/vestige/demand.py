"""What a run's later, goal-connected work needed at each cut: live sets, demand, and its peak.

In: a graph, a slice of it, and what each state costs. Out: tokens and live states for each cut; cut t lies just before
turn t. docs/vestige-demand.md gives the definitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from eirkit.vestige.graph import ActionGraph, Slice

Visibility = Literal["seen", "environment"]
VISIBILITIES: tuple[Visibility, ...] = ("seen", "environment")


@dataclass(frozen=True, slots=True)
class Demand:
    """Demand and number of live states by cut; place 0 is the cut before turn 1."""

    costs: Sequence[int]
    live: Sequence[int]
    peak: int
    peak_cut: int | None  # the first with the peak; None where nothing is ever live


def demand(graph: ActionGraph, needed: Slice, costs: Sequence[int], visibility: Visibility) -> Demand:
    """Return the summed cost of live states at every cut.

    A state is live from the turn after it was first seen, or made, to the last turn in the slice that consumes it: a
    version is never consumed after the next one was made, so no cut counts two versions of a file.
    """
    starts = graph.first_seen if visibility == "seen" else graph.made_at
    changes, counts = [0] * (graph.turns + 1), [0] * (graph.turns + 1)
    for state, last in enumerate(needed.last_used):
        if last > starts[state]:
            changes[starts[state]] += costs[state]
            changes[last] -= costs[state]
            counts[starts[state]] += 1
            counts[last] -= 1
    by_cut, live = list(accumulate(changes))[:-1], list(accumulate(counts))[:-1]
    peak = max(by_cut, default=0)
    return Demand(by_cut, live, peak, by_cut.index(peak) + 1 if any(live) else None)


def live_at(graph: ActionGraph, needed: Slice, cut: int, visibility: Visibility) -> list[int]:
    """Return the states that are live at a cut."""
    starts = graph.first_seen if visibility == "seen" else graph.made_at
    return [state for state, last in enumerate(needed.last_used) if starts[state] < cut <= last]
