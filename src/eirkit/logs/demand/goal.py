"""Determines the goal files of a run: from the reference patch, else the log itself, else the run's own last edits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from eirkit.logs.demand.gold_patches import Patch
from eirkit.logs.trajectory import Trajectory

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
