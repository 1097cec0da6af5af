"""What became of each file and each action of a run: how long it was live, how often it was used, what was shown twice.

In: a trajectory with its graph, slice and what it was shown. Out: columns of the tables `files` and `actions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eirkit.logs.demand.costs import Observed
from eirkit.logs.demand.graph import ActionGraph, Slice
from eirkit.logs.trajectory import Trajectory


@dataclass(slots=True)
class FileUse:
    """One file over a whole run; a row of `files`."""

    path: str
    goal: bool
    versions: int = 0  # that the run made
    reads: int = 0
    writes: int = 0
    read_tokens: int = 0
    repeat_reads: int = 0  # reads that showed something of this version again
    repeat_tokens: int = 0  # what they showed again
    needed_reads: int = 0  # those in the slice
    dead_tokens: int = 0  # shown by reads outside the slice
    peak_tokens: int = 0  # its dearest version
    live_from: int | None = None  # the first cut at which a version of it is live
    live_until: int | None = None
    live_cuts: int = 0  # cuts at which a version of it is live
    reuses: int = 0  # reads in the slice beyond the first of each version


def file_uses(
    trajectory: Trajectory, graph: ActionGraph, needed: Slice, shown: Observed, goal: frozenset[str]
) -> list[FileUse]:
    """Return a row for every file that the run touched, in the order in which it met them."""
    uses: dict[str, FileUse] = {}
    for state, path in enumerate(graph.paths):
        use = uses.get(path) or uses.setdefault(path, FileUse(path, path in goal))
        _add_state(use, graph, needed, shown.costs, state)
    columns = (trajectory.turns, shown.read_tokens, shown.repeated, needed.needed_reads)
    for turn, tokens, repeated, kept in zip(*columns, strict=True):
        for position, read in enumerate(turn.reads):
            _add_read(uses[read.path], tokens[position], repeated[position], kept[position])
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


def _add_read(use: FileUse, tokens: int, share: float, kept: bool) -> None:
    use.reads += 1
    use.read_tokens += tokens
    if share:
        use.repeat_reads += 1
        use.repeat_tokens += round(tokens * share)
    if kept:
        use.needed_reads += 1
    else:
        use.dead_tokens += tokens


def action_columns(
    graph: ActionGraph, needed: Slice, tokens: Sequence[Sequence[int]], goal: frozenset[str]
) -> Mapping[str, Sequence[object]]:
    """Return the table of actions: every read, and every file of every write action; necessary means in the slice."""
    rows: list[tuple[int, str, str, int, int | None, bool, bool, int | None]] = []
    for place in range(graph.turns):
        turn, carrier = place + 1, needed.carriers[place] or None
        for state, size, kept in zip(graph.reads[place], tokens[place], needed.needed_reads[place], strict=True):
            path = graph.paths[state]
            rows.append((turn, "read", path, graph.versions[state], size, kept, path in goal, carrier))
        for state in dict.fromkeys(graph.writes[place]):
            path, kept = graph.paths[state], needed.needed_writes[place]
            rows.append((turn, "write", path, graph.versions[state], None, kept, path in goal, None))
    names = ("turn", "kind", "path", "version", "tokens", "necessary", "sink", "carried_to")
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return dict(zip(names, columns, strict=True))
