"""Builds the graph of actions and versioned file states of a run, and the slice of it that leads to the goal files.

Every read is an action of its own. All writes of a turn are one action, which follows the turn's reads and depends on
everything read since the previous write action. Both passes are linear in the number of reads and writes.
docs/vestige-demand.md gives the definitions, tests/vestige/reference.py a second implementation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from eirkit.logs.demand.gold_patches import Patch
from eirkit.logs.trajectory import Trajectory

Accesses: TypeAlias = tuple[Sequence[str], Sequence[str]]  # the paths that a turn read, and those that it wrote


@dataclass(frozen=True, slots=True)
class ActionGraph:
    """States in order of first appearance; turns count from 1, so index 0 of a sequence is turn 1."""

    paths: Sequence[str]  # of each state
    versions: Sequence[int]  # 0: the file as it was before the run
    made_at: Sequence[int]  # the turn that wrote it; 0 if it existed before the run
    first_seen: Sequence[int]  # the turn that first read or wrote it
    reads: Sequence[Sequence[int]]  # by turn: the state that each read used
    writes: Sequence[Sequence[int]]  # by turn: the state that each write made; writes of one path share it

    @property
    def turns(self) -> int:
        return len(self.reads)


@dataclass(frozen=True, slots=True)
class Slice:
    """The part of a graph that leads to the goal."""

    last_used: Sequence[int]  # by state: the last turn in the slice that uses it; 0 if it is not in the slice
    uses: Sequence[int]  # by state: its reads in the slice
    needed_reads: Sequence[Sequence[bool]]  # by turn, as in the graph
    needed_writes: Sequence[bool]  # by turn: whether its write action is in the slice
    carriers: Sequence[int]  # by turn: the turn of the write action that depends on its reads; 0 if none
    sinks: int  # actions that access a goal file themselves


def build(turns: Iterable[Accesses]) -> ActionGraph:
    """Return the states of a run, and which turns used and made each."""
    paths: list[str] = []
    versions: list[int] = []
    made_at: list[int] = []
    first_seen: list[int] = []
    visible: dict[str, int] = {}
    reads: list[Sequence[int]] = []
    writes: list[Sequence[int]] = []

    def add(path: str, version: int, made: int, seen: int) -> int:
        paths.append(path)
        versions.append(version)
        made_at.append(made)
        first_seen.append(seen)
        return len(paths) - 1

    for turn, (read, written) in enumerate(turns, 1):
        for path in read:
            if path not in visible:
                visible[path] = add(path, 0, 0, turn)
        reads.append([visible[path] for path in read])
        for path in dict.fromkeys(written) if written else ():
            before = visible.get(path)
            visible[path] = add(path, 1 if before is None else versions[before] + 1, turn, turn)
        writes.append([visible[path] for path in written])
    return ActionGraph(paths, versions, made_at, first_seen, reads, writes)


def slice_to(graph: ActionGraph, goal: Collection[str] | None) -> Slice:
    """Return what leads to an access of a goal file; if the goal is None every action counts as one.

    One pass from the last turn to the first: a state is always used later than it is made, and every read is carried by
    at most one write action, the next.
    """
    is_goal = [True] * len(graph.paths) if goal is None else [path in goal for path in graph.paths]
    last_used, uses = [0] * len(graph.paths), [0] * len(graph.paths)
    needed_reads: list[Sequence[bool]] = [()] * graph.turns
    needed_writes, carriers = [False] * graph.turns, [0] * graph.turns
    carrier, carried, sinks = 0, False, 0
    for place in range(graph.turns - 1, -1, -1):
        if made := graph.writes[place]:
            reached = any(is_goal[state] for state in made)
            sinks += reached
            carrier = place + 1
            carried = needed_writes[place] = reached or any(last_used[state] for state in made)
        carriers[place] = carrier
        if not (consumed := graph.reads[place]):
            continue
        needed = []
        for state in consumed:
            used = carrier if carried else place + 1 if is_goal[state] else 0
            needed.append(used > 0)
            sinks += is_goal[state]
            uses[state] += used > 0
            if used > last_used[state]:
                last_used[state] = used
        needed_reads[place] = needed
    return Slice(last_used, uses, needed_reads, needed_writes, carriers, sinks)


GoalSource = Literal["gold", "log", "own-edits"]
OwnEdits = Literal["last", "all"]
OWN_EDITS: tuple[OwnEdits, ...] = ("last", "all")


@dataclass(frozen=True, slots=True)
class Goal:
    """The goal files of one run."""

    files: tuple[str, ...]  # as named by the patch or the log
    paths: frozenset[str]  # the same files as named in the trajectory
    source: GoalSource
    patch: Patch | None = None


def goal_of(
    trajectory: Trajectory, patch: Patch | None = None, *, tests: bool = False, own_edits: OwnEdits = "last"
) -> Goal:
    """Return a run's goal; test files of a reference patch count only on request."""
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
