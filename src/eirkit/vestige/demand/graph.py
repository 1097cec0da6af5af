"""The graph of actions and file states, and its slice to the goal (rules of `--demand` and `--own-edits`).

Every read is an action of its own. All writes of a turn are one action, which follows the turn's reads and depends on
everything read since the previous write action; edit-aware demand adds the versions that it edits. Both passes
are linear in the number of reads and writes. docs/vestige-demand.md gives the definitions, tests/vestige/reference.py a
second implementation.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from itertools import chain, repeat
from types import MappingProxyType
from typing import TypeAlias

from msgspec import Struct

from eirkit.records.analysis import GoalSource, OwnEdits
from eirkit.vestige.demand.gold_patches import Patch
from eirkit.vestige.trajectory import Trajectory, Turn, WriteKind

Accesses: TypeAlias = tuple[Sequence[str], Sequence[str]]  # the paths that a turn read, and those that it wrote


class ActionGraph(Struct, frozen=True, gc=False):
    """States in order of first use; turns count from 1, so index 0 of a sequence is turn 1."""

    paths: Sequence[str]  # of each state
    versions: Sequence[int]  # 0: the file as it was before the run
    made_at: Sequence[int]  # the turn that wrote it; 0 if it existed before the run
    first_seen: Sequence[int]  # the turn that first showed, read or wrote it
    reads: Sequence[Sequence[int]]  # by turn: the state that each read used
    writes: Sequence[Sequence[int]]  # by turn: the state that each write made; writes of one path share it
    edits: Sequence[Sequence[int]]  # by turn: the known states that its writes replaced, whose content they used

    @property
    def turns(self) -> int:
        return len(self.reads)


class Slice(Struct, frozen=True, gc=False):
    """The part of a graph that leads to the goal."""

    last_used: Sequence[int]  # by state: the last turn in the slice that uses it; 0 if it is not in the slice
    uses: Sequence[int]  # by state: its reads in the slice
    needed_reads: Sequence[Sequence[bool]]  # by turn, as in the graph
    needed_writes: Sequence[bool]  # by turn: whether its write action is in the slice
    carriers: Sequence[int]  # by turn: the turn of the write action that depends on its reads; 0 if none
    sinks: int  # actions that access a goal file themselves


def build(
    turns: Iterable[Accesses],
    kinds: Iterable[Sequence[WriteKind]] = (),
    shown_at: Mapping[str, int] = MappingProxyType({}),
) -> ActionGraph:
    """Return the states of a run, and which turns used and made each.

    Args:
        kinds: by turn, the kind of each write; without them no write is taken to use what it replaces.
        shown_at: the turn that first showed a path; showing makes a state seen, but does not use it.
    """
    paths: list[str] = []
    versions: list[int] = []
    made_at: list[int] = []
    first_seen: list[int] = []
    visible: dict[str, int] = {}
    reads: list[Sequence[int]] = []
    writes: list[Sequence[int]] = []
    edits: list[Sequence[int]] = []
    was_read: set[int] = set()

    def add(path: str, version: int, made: int, seen: int) -> int:
        paths.append(path)
        versions.append(version)
        made_at.append(made)
        first_seen.append(seen)
        return len(paths) - 1

    for turn, ((read, written), kind) in enumerate(zip(turns, chain(kinds, repeat(())), strict=False), 1):
        for path in read:
            if path not in visible:
                visible[path] = add(path, 0, 0, min(turn, shown_at.get(path, turn)))
        reads.append([visible[path] for path in read] if read else ())
        was_read.update(reads[-1])
        if not written:
            edits.append(())
            writes.append(())
            continue
        edits.append(_replaced(zip(written, kind, strict=False), visible, was_read) if kind else ())
        for path in dict.fromkeys(written):
            before = visible.get(path)
            visible[path] = add(path, 1 if before is None else versions[before] + 1, turn, turn)
        writes.append([visible[path] for path in written])
    return ActionGraph(paths, versions, made_at, first_seen, reads, writes, edits)


def _replaced(
    written: Iterable[tuple[str, WriteKind]], visible: Mapping[str, int], was_read: Container[int]
) -> list[int]:
    """Return the states whose content the writes of a turn used.

    An edit uses the version that it changes, which the run read or made. A file that is rewritten whole is used only if
    it was read: a program may write its output over and over.
    """
    known = ((visible.get(path), kind) for path, kind in written if kind != "delete")
    return [state for state, kind in known if state is not None and (kind == "edit" or state in was_read)]


def slice_to(
    graph: ActionGraph,
    goal: Collection[str] | None,
    segments: Sequence[Segment] = (),
    *,
    edit_aware: bool = False,
) -> Slice:
    """Return what leads to an access of a goal file; if the goal is None every action counts as one.

    One pass from the last turn to the first: a state is always used later than it is made, and every read is carried by
    at most one write action, the next.

    Args:
        segments: parts of the run with goals of their own, in order; they replace `goal`.
        edit_aware: a write uses the versions that it edits, and so what was read of them.
    """
    paths, waiting = graph.paths, list(segments)
    goals: Collection[str] = frozenset(paths) if goal is None else goal
    read_goals = goals  # of a segment: also files whose edits it threw away, since it read them to edit them
    last_used, uses = [0] * len(graph.paths), [0] * len(graph.paths)
    edited = [False] * len(graph.paths)  # by state: whether a write of the slice edits it
    needed_reads: list[Sequence[bool]] = [()] * graph.turns
    needed_writes, carriers = [False] * graph.turns, [0] * graph.turns
    carrier, carried, sinks = 0, False, 0
    for place in range(graph.turns - 1, -1, -1):
        if waiting and place < waiting[-1].last:
            goals, read_goals = waiting[-1].goal, waiting.pop().edited
        if made := graph.writes[place]:
            reached = any(paths[state] in goals for state in made)
            sinks += reached
            carrier = place + 1
            carried = needed_writes[place] = reached or any(last_used[state] for state in made)
            if carried and edit_aware:
                for state in graph.edits[place]:
                    edited[state] = True
                    last_used[state] = max(last_used[state], carrier)
        carriers[place] = carrier
        if not (consumed := graph.reads[place]):
            continue
        needed = []
        for state in consumed:
            used = carrier if carried else place + 1 if edited[state] or paths[state] in read_goals else 0
            needed.append(used > 0)
            sinks += paths[state] in goals
            uses[state] += used > 0
            if used > last_used[state]:
                last_used[state] = used
        needed_reads[place] = needed
    return Slice(last_used, uses, needed_reads, needed_writes, carriers, sinks)


class Segment(Struct, frozen=True, gc=False):
    """The part of a session that follows one prompt of the user, with the files that it changed as its goal."""

    first: int  # turns, both included
    last: int
    goal: frozenset[str]  # files that it edited and did not throw away again
    edited: frozenset[str]  # all files that it edited


class Goal(Struct, frozen=True, gc=False):
    """The goal files of one run."""

    files: tuple[str, ...]  # as named by the patch or the log
    paths: frozenset[str]  # the same files as named in the trajectory
    source: GoalSource
    patch: Patch | None = None
    segments: tuple[Segment, ...] = ()  # of a session without a goal of its own; its goals are those of its segments

    def judged(self, turns: int) -> list[bool]:
        """Return by turn whether the goal tells what a read was for; a segment that changed nothing tells nothing."""
        if not self.segments:
            return [True] * turns
        return [bool(segment.goal) for segment in self.segments for _ in range(segment.first, segment.last + 1)]


def session_goal(trajectory: Trajectory) -> Goal:
    """Return the goal of a run for which nobody named one: what each of its segments edited and kept."""
    turns = trajectory.turns
    starts = [turn.number for turn in turns if turn.number > 1 and turn.recorded.asked]
    ends = [*(start - 1 for start in starts), len(turns)]
    segments = tuple(
        Segment(first, last, *_changed(turns[first - 1 : last])) for first, last in zip([1, *starts], ends, strict=True)
    )
    kept = frozenset().union(*(segment.goal for segment in segments))
    return Goal(tuple(sorted(kept)), kept, "own-edits", segments=segments)


def _changed(turns: Sequence[Turn]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the files that turns changed and left changed, and all that they changed.

    A file is thrown away again if it was deleted or restored last, or if every edit of it was undone by its opposite.
    """
    open_edits: dict[str, list[tuple[str | None, str | None]]] = {}
    for turn in turns:
        for write in turn.writes:
            before = open_edits.setdefault(write.path, [])
            texts = write.removed, write.added
            if write.kind == "delete" or write.restored:
                before.clear()
            elif before and any(texts) and before[-1] == texts[::-1]:
                before.pop()
            else:
                before.append(texts if write.kind == "edit" else (None, None))
    edited = {write.path for turn in turns for write in turn.writes if write.kind != "delete" and not write.restored}
    return frozenset(path for path, left in open_edits.items() if left), frozenset(edited)


def goal_of(
    trajectory: Trajectory, patch: Patch | None = None, *, tests: bool = False, own_edits: OwnEdits = "last"
) -> Goal:
    """Return a run's goal by the paper's rule; test files of a reference patch count only on request."""
    if patch is not None:
        chosen = {*patch.files, *patch.test_files} if tests else set(patch.files) - set(patch.test_files)
        files = tuple(sorted(chosen))
        return Goal(files, _spelled(files, trajectory), "gold", patch)
    given = trajectory.recording.goal_files
    if given is not None:
        return Goal(given, frozenset(given), "log")
    edited = tuple(sorted(_own_edits(trajectory, own_edits)))
    return Goal(edited, frozenset(edited), "own-edits")


def _spelled(files: Iterable[str], trajectory: Trajectory) -> frozenset[str]:
    """Return the goal's paths; if the repository's folder is unknown, a log's absolute path may match one of them."""
    touched = {read.path for turn in trajectory.turns for read in turn.reads}
    touched.update(write.path for turn in trajectory.turns for write in turn.writes)
    absolute = sorted((path for path in touched if path.startswith("/")), key=lambda path: (len(path), path))
    found = set()
    for file in files:
        ending = f"/{file}"
        same = None if file in touched else next((path for path in absolute if path.endswith(ending)), None)
        found.add(same or file)
    return frozenset(found)


def _own_edits(trajectory: Trajectory, which: OwnEdits) -> set[str]:
    """Return the files of the run's last write action, or of all edits, that still exist, its repository's first."""
    removed: dict[str, bool] = {}
    written: list[list[str]] = []
    for turn in trajectory.turns:
        if turn.writes:
            written.append([write.path for write in turn.writes])
            removed.update((write.path, write.kind == "delete") for write in turn.writes)
    kept = [[path for path in paths if not removed[path]] for paths in written]
    inside = [[path for path in paths if not path.startswith(("/", "~"))] for paths in kept]
    for candidates in (inside, kept, written):
        chosen = [set(paths) for paths in candidates if paths]
        if chosen:
            return chosen[-1] if which == "last" else set().union(*chosen)
    return set()
