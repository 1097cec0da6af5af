"""Measures how many tokens a run spent before it read a file again.

An interval runs from each read of a file to its next read, its next write or the end of the run. Intervals are also
binned by distance for a Poisson regression, and the longest gaps are given under three clocks. The clock is the run's
tokens at the end of a turn; several reads of one file in a turn count once, and reads come before writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from eirkit.records.analysis import Ending, Gaps, RereadBin, RereadInterval
from eirkit.vestige.trajectory import Trajectory

BIN_TOKENS = 1_000  # the first bin is 0–1k; every further bin is as wide as all before it: 1–2k, 2–4k, 4–8k, …


def intervals(trajectory: Trajectory, needed: Collection[str]) -> tuple[RereadInterval, ...]:
    """Return the interval after every read, in the order in which they ended."""
    wanted = frozenset(needed)
    waiting: dict[str, tuple[int, int]] = {}
    found: list[RereadInterval] = []
    clock = last = 0

    def close(path: str, ending: Ending) -> None:
        start = waiting.pop(path, None)
        if start is not None:
            found.append(RereadInterval(path, path in wanted, *start, last, clock - start[1], ending))

    for turn in trajectory.turns:
        clock, last = clock + turn.tokens, turn.number
        for path in dict.fromkeys([read.path for read in turn.reads]) if turn.reads else ():
            close(path, "reread")
            waiting[path] = (turn.number, clock)
        for write in turn.writes:
            close(write.path, "overwrite")
    for path in list(waiting):
        close(path, "end")
    return tuple(found)


def bin_of(distance_tokens: int) -> int:
    """Return the bin of a distance; each contains its upper end, so that no reread falls in a bin without exposure."""
    thousands = -(-distance_tokens // BIN_TOKENS)
    return (thousands - 1).bit_length() if thousands > 1 else 0


def cells(waits: Iterable[RereadInterval]) -> tuple[RereadBin, ...]:
    """Return exposure and rereads by bin; an interval adds exposure to every bin that it crosses.

    An interval of no tokens, as in logs without token counts, adds no exposure, and its reread is not counted.
    """
    exposure: dict[tuple[bool, int], int] = {}
    rereads: dict[tuple[bool, int], int] = {}
    for wait in waits:
        if not wait.distance_tokens:
            continue
        reached = bin_of(wait.distance_tokens)
        needed, above = wait.needed, 0
        for place in range(reached):  # the bins that it crosses to their end
            up_to = BIN_TOKENS << place
            exposure[needed, place] = exposure.get((needed, place), 0) + up_to - above
            above = up_to
        exposure[needed, reached] = exposure.get((needed, reached), 0) + wait.distance_tokens - above
        if wait.ending == "reread":
            rereads[needed, reached] = rereads.get((needed, reached), 0) + 1
    return tuple(_cell(*key, exposure[key], rereads.get(key, 0)) for key in sorted(exposure))


def gaps(trajectory: Trajectory, waits: Iterable[RereadInterval]) -> tuple[Gaps, Gaps]:
    """Return the longest gaps over needed files and over the other files, which serve as a placebo."""
    clock = 0
    last_write: int | None = None
    for turn in trajectory.turns:
        clock += turn.tokens
        if turn.writes:
            last_write = clock
    by_need: tuple[list[RereadInterval], list[RereadInterval]] = ([], [])
    for wait in waits:
        by_need[wait.needed].append(wait)
    return _longest(True, by_need[True], last_write), _longest(False, by_need[False], last_write)


def _ends(place: int) -> tuple[int, int]:
    return (0, BIN_TOKENS) if place == 0 else (BIN_TOKENS << (place - 1), BIN_TOKENS << place)


def _cell(needed: bool, place: int, exposure_tokens: int, rereads: int) -> RereadBin:
    above, up_to = _ends(place)
    return RereadBin(needed, place, above, up_to, (above + up_to) // 2, exposure_tokens, rereads)


def _longest(needed: bool, waits: list[RereadInterval], last_write: int | None) -> Gaps:
    closed = [wait.distance_tokens for wait in waits if wait.ending != "end"]
    fair = []
    if last_write is not None:
        fair = [
            min(wait.distance_tokens, last_write - wait.from_tokens) for wait in waits if wait.from_tokens <= last_write
        ]
    return Gaps(
        needed,
        max((wait.distance_tokens for wait in waits), default=None),
        max(closed, default=None),
        max(fair, default=None),
    )
