"""Computes demand: which file states are live at each cut, their tokens and the peak (`--visibility`).

Cut t lies just before turn t. A state is live while later work that leads to the goal still uses it;
docs/vestige-demand.md gives the definitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType

from msgspec import Struct

from eirkit.errors import InputFileError
from eirkit.records.analysis import FileUse, Visibility
from eirkit.vestige.demand.costs import ObservedCosts, observe
from eirkit.vestige.demand.graph import ActionGraph, Goal, Slice, build, slice_to
from eirkit.vestige.tables import Columns
from eirkit.vestige.tokens import Counter
from eirkit.vestige.trajectory import Trajectory


class Demand(Struct, frozen=True, gc=False):
    """Demand and number of live states by cut; index 0 is the cut before turn 1."""

    costs: Sequence[int]
    live: Sequence[int]
    peak: int
    peak_cut: int | None  # the first cut with the peak; None if nothing is ever live


def demand(graph: ActionGraph, needed: Slice, costs: Sequence[int], visibility: Visibility) -> Demand:
    """Return the summed cost of live states at every cut.

    A state is live from the turn after it was first seen or made to the last turn in the slice that uses it. A version
    is never used after the next one was made, so no cut counts two versions of a file.
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


MOST_TOKENS = 1 << 53  # a larger run is an error in its log, and its sums would not fit a table


class MeasuredRun(Struct, frozen=True, gc=False):
    """The graph of a run with its costs and demand."""

    graph: ActionGraph
    needed: Slice  # the slice that leads to the goal
    used: Slice  # the slice in which every later use counts
    shown: ObservedCosts
    seen: Demand
    environment: Demand
    later_used: Demand
    paper_peak: int  # the peak by the paper's rule, under the visibility `seen`
    files: Sequence[FileUse]
    judged: Sequence[bool]  # by turn: whether the goal tells what a read was for

    def under(self, visibility: Visibility) -> Demand:
        return self.seen if visibility == "seen" else self.environment


def measure_touches(
    trajectory: Trajectory,
    goal: Goal | None,
    count: Counter,
    paper_goal: Goal | None = None,
    shown_at: Mapping[str, int] = MappingProxyType({}),
) -> MeasuredRun:
    """Return a run's graph, its slices and its demand; without a goal every later use counts as needed.

    Args:
        paper_goal: the goal by the paper's rule, if `goal` is edit-aware; None measures by the paper's rule throughout.
        shown_at: the turn that first showed a path, where that may be before the first read.
    """
    turns, edit_aware = trajectory.turns, paper_goal is not None
    kinds = [[write.kind for write in turn.writes] if turn.writes else () for turn in turns]
    reads = [[read.path for read in turn.reads] if turn.reads else () for turn in turns]
    writes = [[write.path for write in turn.writes] if turn.writes else () for turn in turns]
    graph = build(zip(reads, writes, strict=True), kinds, shown_at)
    used = slice_to(graph, None, edit_aware=edit_aware)
    needed = used if goal is None else slice_to(graph, goal.paths, goal.segments, edit_aware=edit_aware)
    shown = observe(graph, turns, count)
    costs, judged = shown.costs, [True] * len(turns) if goal is None else goal.judged(len(turns))
    seen = demand(graph, needed, costs, "seen")
    paper = seen if paper_goal is None else demand(graph, slice_to(graph, paper_goal.paths), costs, "seen")
    if sum(costs) + sum(map(sum, shown.read_tokens)) + sum(turn.tokens for turn in turns) > MOST_TOKENS:
        raise InputFileError(f"the run has more than {MOST_TOKENS} tokens; correct the counts in its log")
    return MeasuredRun(
        graph,
        needed,
        used,
        shown,
        seen=seen,
        environment=demand(graph, needed, costs, "environment"),
        later_used=demand(graph, used, costs, "seen"),
        paper_peak=paper.peak,
        files=file_uses(trajectory, graph, needed, shown, paths_of(goal), judged),
        judged=judged,
    )


def paths_of(goal: Goal | None) -> frozenset[str]:
    return frozenset() if goal is None else goal.paths


def graph_tables(run: MeasuredRun, goal: Goal | None, visibility: Visibility) -> dict[str, Columns]:
    """Return a run's rows of the three tables that come from its graph."""
    demanded, later = run.under(visibility), run.later_used
    cuts = {
        "cut": range(1, len(demanded.costs) + 1),
        "demand_tokens": [None] * len(demanded.costs) if goal is None else demanded.costs,
        "live_files": demanded.live,
        "later_used": later.costs,
        "later_used_files": later.live,
    }
    states = {
        "path": run.graph.paths,
        "version": run.graph.versions,
        "made_at": run.graph.made_at,
        "first_seen": run.graph.first_seen,
        "last_used": [last or None for last in run.needed.last_used],
        "tokens": run.shown.costs,
        "in_slice": [last > 0 for last in run.needed.last_used],
        "later_used": [last or None for last in run.used.last_used],
    }
    return {"cuts": cuts, "states": states, "actions": action_columns(run, paths_of(goal))}


def file_uses(
    trajectory: Trajectory,
    graph: ActionGraph,
    needed: Slice,
    shown: ObservedCosts,
    goal: frozenset[str],
    judged: Sequence[bool],
) -> list[FileUse]:
    """Return a row for every file that the run touched, in order of appearance."""
    uses: dict[str, FileUse] = {}
    for state, path in enumerate(graph.paths):
        use = uses.get(path) or uses.setdefault(path, FileUse(path, path in goal))
        _add_state(use, graph, needed, shown.costs, state)
    columns = (trajectory.turns, shown.read_tokens, shown.repeated, needed.needed_reads, judged)
    for turn, tokens, repeated, kept, is_judged in zip(*columns, strict=True):
        for position, read in enumerate(turn.reads):
            use, size = uses[read.path], tokens[position]
            use.reads += 1
            use.read_tokens += size
            use.needed_reads += kept[position]
            if is_judged and not kept[position]:
                use.dead_reads += 1
                use.dead_tokens += size
            if repeated[position]:
                again = round(size * repeated[position])
                use.repeat_reads += 1
                use.repeat_tokens += again
                if again > use.most_repeated:
                    use.repeat_turn, use.most_repeated = turn.number, again
        for write in turn.writes:
            uses[write.path].writes += 1
    return list(uses.values())


def _add_state(use: FileUse, graph: ActionGraph, needed: Slice, costs: Sequence[int], state: int) -> None:
    use.versions = graph.versions[state]
    use.peak_tokens = max(use.peak_tokens, costs[state])
    use.reuses += max(0, needed.uses[state] - 1)
    first, last = graph.first_seen[state] + 1, needed.last_used[state]
    if first <= last:
        use.live_from = first if use.live_from is None else use.live_from
        use.live_until = last
        use.live_cuts += last - first + 1


def action_columns(run: MeasuredRun, goal: frozenset[str]) -> Mapping[str, Sequence[object]]:
    """Return the table of actions: every read, and every file of a write action; necessary means in the slice."""
    graph, needed, shown = run.graph, run.needed, run.shown
    rows: list[tuple[int, str, str, int, int | None, bool, bool, bool, int | None, int | None]] = []
    for place in range(graph.turns):
        turn, carrier, is_judged = place + 1, needed.carriers[place] or None, run.judged[place]
        reads = (graph.reads[place], shown.read_tokens[place], needed.needed_reads[place], shown.repeated[place])
        for state, size, kept, again in zip(*reads, strict=True):
            path, repeat = graph.paths[state], round(size * again)
            version = graph.versions[state]
            rows.append((turn, "read", path, version, size, kept, is_judged, path in goal, carrier, repeat))
        for state in dict.fromkeys(graph.writes[place]) if graph.writes[place] else ():
            path, kept = graph.paths[state], needed.needed_writes[place]
            version = graph.versions[state]
            rows.append((turn, "write", path, version, None, kept, is_judged, path in goal, None, None))
    names = ("turn", "kind", "path", "version", "tokens", "necessary", "judged", "sink", "carried_to", "repeat_tokens")
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return dict(zip(names, columns, strict=True))
