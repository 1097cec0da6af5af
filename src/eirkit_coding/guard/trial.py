"""The plan of a trial of the guard: arms, seed, and which arm each compaction is given (restore, sham, nothing).

The first compactions of a project's sessions are drawn in blocks of three, one permutation of all arms each; so are the
second ones, and so on. So every block has one compaction of each of three sessions, and what was drawn earlier in a
session says nothing about what is drawn later: an earlier arm may have any lasting effect. A draw is a hash of a logged
seed.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import permutations
from pathlib import Path
from typing import IO, Literal

from msgspec import Struct, ValidationError, convert, field, structs, to_builtins

from eirkit.folders import files_for_owner_only

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; two draws at once may share a place there
    fcntl = None  # type: ignore[assignment]

Arm = Literal["restore", "sham", "nothing"]
ARMS: tuple[Arm, ...] = ("restore", "sham", "nothing")
PLAN, DRAWS = "trial.json", "draws.jsonl"
PLANNED = 120  # compactions after which there is an answer: forty of each arm
_ORDERS = tuple(permutations(ARMS))


class TrialPlan(Struct, frozen=True):
    """A trial that is under way."""

    seed: int
    compactions: int  # after which there is an answer


class Compaction(Struct, frozen=True, kw_only=True):
    """A compaction after which something may be restored."""

    at: float
    agent: str
    session: str
    transcript: str
    number: int = field(default=0, name="compaction")  # in its session, from 1
    bytes: int = 0  # of the text that restores
    files: tuple[str, ...] = ()  # that the text names


class DrawnCompaction(Compaction, frozen=True, kw_only=True):
    """One compaction of a trial."""

    seed: int
    planned: int
    project: str
    ordinal: int  # of the compaction in its session, from 0
    place: int  # among the compactions of the same ordinal in the project, from 0
    arm: Arm

    @property
    def block(self) -> tuple[str, int, int]:
        """What names the permutation that gave the arm."""
        return self.project, self.ordinal, self.place // len(ARMS)


def begin_trial(folder: Path, seed: int | None = None, compactions: int = PLANNED) -> TrialPlan:
    """Begin a trial, unless one is under way, and return it."""
    known = trial_plan(folder)
    if known is not None:
        return known
    chosen = TrialPlan(secrets.randbits(64) if seed is None else seed, compactions)
    with files_for_owner_only():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / PLAN).write_bytes(json_line(chosen))
    return chosen


def end_trial(folder: Path) -> None:
    """End the trial; what was drawn stays."""
    (folder / PLAN).unlink(missing_ok=True)


def trial_plan(folder: Path) -> TrialPlan | None:
    """Return the trial that is under way; None without one."""
    try:
        return convert(json.loads((folder / PLAN).read_bytes()), TrialPlan)
    except (OSError, ValueError, ValidationError):
        return None


def arm_at(seed: int, project: str, ordinal: int, place: int) -> Arm:
    """Return the arm of a compaction: by how many its session and its project had before, both counted from 0."""
    block, position = divmod(place, len(ARMS))
    named = f"eirkit/guard/2\x1f{seed}\x1f{project}\x1f{ordinal}\x1f{block}"
    digest = sha256(named.encode("utf-8", "replace")).digest()
    # 2^64 is no multiple of six, by which an order's probability differs from one sixth by less than 1 in 10^18.
    return _ORDERS[int.from_bytes(digest[:8], "big") % len(_ORDERS)][position]


def draw_arm(folder: Path, project: str, compaction: Compaction) -> Arm:
    """Draw the arm of a compaction and log it; without a trial, what is needed is restored.

    A compaction whose arm cannot be logged is no part of the trial.
    """
    plan = trial_plan(folder)
    if plan is None:
        return "restore"
    try:
        with files_for_owner_only(), (folder / DRAWS).open("a+b") as stream:
            if fcntl is not None:
                fcntl.flock(stream, fcntl.LOCK_EX)
            stream.seek(0)
            before = [draw for draw in _drawn(stream) if draw.seed == plan.seed]
            session = compaction.agent, compaction.session
            ordinal = sum((draw.agent, draw.session) == session for draw in before)
            place = sum((draw.project, draw.ordinal) == (project, ordinal) for draw in before)
            drawn = DrawnCompaction(
                seed=plan.seed,
                planned=plan.compactions,
                project=project,
                ordinal=ordinal,
                place=place,
                arm=arm_at(plan.seed, project, ordinal, place),
                **structs.asdict(compaction),
            )
            stream.write(json_line(drawn))
            stream.flush()
            os.fsync(stream.fileno())
        return drawn.arm
    except OSError:
        return "restore"


def json_line(stored: object) -> bytes:
    """Return what is stored as one line of JSON; it is escaped, since names of files may contain what is no Unicode."""
    return json.dumps(to_builtins(stored)).encode() + b"\n"


def read_draws(folder: Path) -> list[DrawnCompaction]:
    """Return all compactions that were drawn, in their order."""
    try:
        with (folder / DRAWS).open("rb") as stream:
            return list(_drawn(stream))
    except OSError:
        return []


def _drawn(stream: IO[bytes]) -> Iterator[DrawnCompaction]:
    for line in stream:
        with suppress(ValueError, ValidationError):  # a torn line
            yield convert(json.loads(line), DrawnCompaction)
