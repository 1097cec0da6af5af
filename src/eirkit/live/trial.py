"""The trial of the guard: at each compaction it restores what is needed, says as much about other files, or nothing.

Arms are drawn in blocks of three, one permutation of all arms for every three compactions of a project, by a hash of a
logged seed. So every project has nearly as many of each, and within a block every order is equally likely.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from hashlib import sha256
from itertools import permutations
from pathlib import Path
from typing import Any, Literal

from eirkit.folders import files_for_owner_only

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; two draws at once may share a place there
    fcntl = None  # type: ignore[assignment]

Arm = Literal["restore", "sham", "nothing"]
ARMS: tuple[Arm, ...] = ("restore", "sham", "nothing")
PLAN, DRAWS = "trial.json", "draws.jsonl"
_ORDERS = tuple(permutations(ARMS))


def begin_trial(folder: Path, seed: int | None = None) -> int:
    """Begin a trial, unless one is under way, and return its seed."""
    known = trial_seed(folder)
    if known is not None:
        return known
    chosen = secrets.randbits(64) if seed is None else seed
    with files_for_owner_only():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / PLAN).write_text(json.dumps({"seed": chosen}) + "\n")
    return chosen


def end_trial(folder: Path) -> None:
    """End the trial; what was drawn stays."""
    (folder / PLAN).unlink(missing_ok=True)


def trial_seed(folder: Path) -> int | None:
    """Return the seed of the trial that is under way; None without one."""
    try:
        return int(json.loads((folder / PLAN).read_text("utf-8"))["seed"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def arm_at(seed: int, project: str, place: int) -> Arm:
    """Return the arm of a project's compaction, counted from 0."""
    block, position = divmod(place, len(ARMS))
    digest = sha256(f"eirkit/guard/1\x1f{seed}\x1f{project}\x1f{block}".encode("utf-8", "replace")).digest()
    # Of 2^64 values, six times as many as needed for an equal share differ by less than one in 10^18.
    return _ORDERS[int.from_bytes(digest[:8], "big") % len(_ORDERS)][position]


def draw_arm(folder: Path, project: str, about: Mapping[str, Any]) -> Arm:
    """Draw the arm of a compaction and log it; without a trial, what is needed is restored.

    A compaction whose arm cannot be logged is no part of the trial.
    """
    seed = trial_seed(folder)
    if seed is None:
        return "restore"
    try:
        with files_for_owner_only(), (folder / DRAWS).open("a+b") as stream:
            if fcntl is not None:
                fcntl.flock(stream, fcntl.LOCK_EX)
            stream.seek(0)
            place = sum(_is_of(line, seed, project) for line in stream)
            arm = arm_at(seed, project, place)
            line = {**about, "seed": seed, "project": project, "place": place, "arm": arm}
            stream.write(json.dumps(line).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        return arm
    except OSError:
        return "restore"


def _is_of(line: bytes, seed: int, project: str) -> bool:
    try:
        drawn = json.loads(line)
        return bool(drawn["seed"] == seed and drawn["project"] == project)
    except (ValueError, KeyError, TypeError):
        return False  # a torn line
