"""A run over files against its graph: live demand by cut, states, files and actions.

In: a trajectory and its goal. Out: the measured graph, and from it columns of `cuts`, `states`, `files` and `actions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eirkit.errors import InputFileError
from eirkit.vestige.costs import Observed, observe
from eirkit.vestige.demand import Demand, Visibility, demand
from eirkit.vestige.goal import Goal
from eirkit.vestige.graph import ActionGraph, Slice, build, slice_to
from eirkit.vestige.reuse import FileUse, action_columns, file_uses
from eirkit.vestige.tables import Columns, columns_of
from eirkit.vestige.tokens import Counter
from eirkit.vestige.trajectory import Trajectory

MOST_TOKENS = 1 << 53  # a run of more is no run, and its sums would not fit a table


@dataclass(frozen=True, slots=True)
class Measured:
    """The graph of a run with what it cost."""

    graph: ActionGraph
    needed: Slice  # what leads to the goal
    used: Slice  # what any later action used
    shown: Observed
    seen: Demand
    environment: Demand
    later_used: Demand
    files: Sequence[FileUse]

    def under(self, visibility: Visibility) -> Demand:
        return self.seen if visibility == "seen" else self.environment


def measure_touches(trajectory: Trajectory, goal: Goal | None, count: Counter) -> Measured:
    """Return a run's graph, its slices and its demand; without a goal every later use is a need."""
    turns = trajectory.turns
    graph = build(([read.path for read in turn.reads], [write.path for write in turn.writes]) for turn in turns)
    used = slice_to(graph, None)
    needed = used if goal is None else slice_to(graph, goal.paths)
    shown = observe(graph, turns, count)
    costs = shown.costs
    if sum(costs) + sum(map(sum, shown.read_tokens)) + sum(turn.tokens for turn in turns) > MOST_TOKENS:
        raise InputFileError(f"the run has more than {MOST_TOKENS} tokens; correct the counts in its log")
    return Measured(
        graph,
        needed,
        used,
        shown,
        seen=demand(graph, needed, costs, "seen"),
        environment=demand(graph, needed, costs, "environment"),
        later_used=demand(graph, used, costs, "seen"),
        files=file_uses(trajectory, graph, needed, shown, paths_of(goal)),
    )


def paths_of(goal: Goal | None) -> frozenset[str]:
    return frozenset() if goal is None else goal.paths


def graph_tables(run: Measured, goal: Goal | None, visibility: Visibility) -> dict[str, Columns]:
    """Return a run's rows of the four tables that its graph fills."""
    return {
        "cuts": cut_columns(run.under(visibility), run.later_used, in_tokens=goal is not None),
        "states": state_columns(run),
        "files": columns_of(FileUse, run.files),
        "actions": action_columns(run.graph, run.needed, run.shown.read_tokens, paths_of(goal)),
    }


def cut_columns(shown: Demand, later_used: Demand, *, in_tokens: bool) -> Columns:
    """Return the rows of `cuts`."""
    return {
        "cut": range(1, len(shown.costs) + 1),
        "demand_tokens": shown.costs if in_tokens else [None] * len(shown.costs),
        "live_files": shown.live,
        "later_used": later_used.costs,
        "later_used_files": later_used.live,
    }


def state_columns(run: Measured) -> Columns:
    """Return the rows of `states`."""
    return {
        "path": run.graph.paths,
        "version": run.graph.versions,
        "made_at": run.graph.made_at,
        "first_seen": run.graph.first_seen,
        "last_used": [last or None for last in run.needed.last_used],
        "tokens": run.shown.costs,
        "in_slice": [last > 0 for last in run.needed.last_used],
        "later_used": [last or None for last in run.used.last_used],
    }
