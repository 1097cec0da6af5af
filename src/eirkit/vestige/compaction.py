"""What a compaction or a clear took away, and what getting it back cost.

In: a trajectory, and for every break the states that were live at the cut before it, with their tokens. Out: one row
for every live state at every break: how much of it the carried text repeats, whether it was read again before the file
changed, and at what cost. Live means that later work used it, so what was never read again was used without being
seen, or from what the carried text and the model kept.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from eirkit.vestige.costs import read_tokens
from eirkit.vestige.tokens import Counter
from eirkit.vestige.trajectory import Break, Trajectory, Turn

Fate = Literal["reread", "overwritten", "never"]

TELLING_CHARACTERS = 8  # a shorter line, such as `else:`, says nothing about where a text came from
_NAME = re.compile(r"[\w.+-]+")


@dataclass(frozen=True, slots=True)
class DroppedState:
    """One live state at a break."""

    cut: int  # the break came just before this turn
    kind: Break
    path: str
    tokens: int  # of the state, as demand counts them
    carried_share: float  # of its telling lines, those that the carried text repeats word for word
    named: bool  # the carried text names the file
    dropped_tokens: int  # tokens × (1 − carried_share), rounded
    fate: Fate  # overwritten: the agent edited the file, which takes what it held, without reading it again
    reread_turn: int | None
    reread_tokens: int  # that the reading of it put before the agent again, in that turn
    turns_until: int | None  # turns from the break to that one, itself included
    tokens_until: int | None  # the run's tokens in those turns


@dataclass(frozen=True, slots=True)
class BreakCost:
    """One break, summed over the states that were live at it."""

    cut: int
    kind: Break
    carried_tokens: int  # of the text that took the context's place
    live_files: int
    live_tokens: int
    dropped_tokens: int
    reread_files: int
    reread_tokens: int
    reread_turns: int  # turns that read again at least one of them
    overwritten_files: int
    never_reread_files: int
    never_reread_tokens: int  # what of them was dropped
    reread_dropped_tokens: int  # the same of those read again; with the next and the former it is dropped_tokens
    overwritten_tokens: int  # the same of those that were changed without reading them again
    measured: bool  # False: the run used no file from which need could be told


class _Ahead:
    """Where each path is next read or written after a cut, and what coming to it costs."""

    def __init__(self, turns: Sequence[Turn], wanted: set[str], count: Counter) -> None:
        self._count = count
        self._turns = {turn.number: turn for turn in turns}
        self._places = {turn.number: place for place, turn in enumerate(turns)}
        self._clock = [0, *accumulate(turn.tokens for turn in turns)]
        self._reads: dict[str, list[int]] = {path: [] for path in wanted}
        self._writes: dict[str, list[int]] = {path: [] for path in wanted}
        for turn in turns:
            for read in turn.reads:
                if read.path in wanted:
                    self._reads[read.path].append(turn.number)
            for write in turn.writes:
                if write.path in wanted:
                    self._writes[write.path].append(turn.number)

    def fate(self, path: str, cut: int) -> tuple[Fate, int | None]:
        read, write = _next(self._reads[path], cut), _next(self._writes[path], cut)
        if read is not None and (write is None or read <= write):  # reads come before writes in a turn
            return "reread", read
        return ("never", None) if write is None else ("overwritten", None)

    def turns_until(self, cut: int, turn: int) -> int:
        return self._places[turn] - self._places[cut] + 1

    def tokens_until(self, cut: int, turn: int) -> int:
        return self._clock[self._places[turn] + 1] - self._clock[self._places[cut]]

    def tokens_of(self, path: str, turn: int) -> int:
        return sum(read_tokens(read, self._count) for read in self._turns[turn].reads if read.path == path)


def break_cuts(trajectory: Trajectory) -> tuple[int, ...]:
    """Return the turns before which the log shows a compaction or a clear."""
    return tuple(turn.number for turn in trajectory.turns if turn.recorded.broken is not None)


def dropped_states(
    trajectory: Trajectory, live: Mapping[int, Mapping[str, int]], count: Counter
) -> tuple[DroppedState, ...]:
    """Return what was live at each break and what became of it; `live` gives tokens by path for each break's cut."""
    cuts = break_cuts(trajectory)
    wanted = {path for cut in cuts for path in live.get(cut, {})}
    if not wanted:
        return ()
    ahead = _Ahead(trajectory.turns, wanted, count)
    seen: dict[str, set[str]] = {}
    found: list[DroppedState] = []
    for turn in trajectory.turns:
        if turn.recorded.broken is not None:
            found += _dropped(turn, live.get(turn.number, {}), seen, ahead)
        note_lines(turn, wanted, seen)
    return tuple(found)


def break_costs(
    trajectory: Trajectory, dropped: Iterable[DroppedState], count: Counter, *, measured: bool = True
) -> tuple[BreakCost, ...]:
    """Return one row for every break, those with nothing live included.

    Args:
        measured: the run used a file from which need can be told.
    """
    by_cut: dict[int, list[DroppedState]] = {}
    for state in dropped:
        by_cut.setdefault(state.cut, []).append(state)
    broken = [turn for turn in trajectory.turns if turn.recorded.broken is not None]
    return tuple(_cost(turn, by_cut.get(turn.number, []), count, measured=measured) for turn in broken)


def _cost(turn: Turn, states: Sequence[DroppedState], count: Counter, *, measured: bool) -> BreakCost:
    fates: tuple[Fate, ...] = ("reread", "overwritten", "never")
    reread, overwritten, never = ([state for state in states if state.fate == fate] for fate in fates)
    return BreakCost(
        cut=turn.number,
        kind=turn.recorded.broken or "compaction",
        carried_tokens=count(turn.recorded.carried),
        live_files=len(states),
        live_tokens=sum(state.tokens for state in states),
        dropped_tokens=_dropped_tokens(states),
        reread_files=len(reread),
        reread_tokens=sum(state.reread_tokens for state in reread),
        reread_turns=len({state.reread_turn for state in reread}),
        overwritten_files=len(overwritten),
        never_reread_files=len(never),
        never_reread_tokens=_dropped_tokens(never),
        reread_dropped_tokens=_dropped_tokens(reread),
        overwritten_tokens=_dropped_tokens(overwritten),
        measured=measured,
    )


def _dropped_tokens(states: Iterable[DroppedState]) -> int:
    return sum(state.dropped_tokens for state in states)


def _dropped(turn: Turn, live: Mapping[str, int], seen: Mapping[str, set[str]], ahead: _Ahead) -> list[DroppedState]:
    carried = turn.recorded.carried
    kept = {squeezed(line) for line in carried.splitlines()} if live else set()
    words = set(_NAME.findall(carried)) if live else set()
    found = []
    for path, tokens in sorted(live.items()):
        fate, again = ahead.fate(path, turn.number)
        share = share_kept(seen.get(path, set()), kept)
        found.append(
            DroppedState(
                cut=turn.number,
                kind=turn.recorded.broken or "compaction",
                path=path,
                tokens=tokens,
                carried_share=share,
                named=path.rpartition("/")[2] in words,
                dropped_tokens=round(tokens * (1 - share)),
                fate=fate,
                reread_turn=again,
                reread_tokens=0 if again is None else ahead.tokens_of(path, again),
                turns_until=None if again is None else ahead.turns_until(turn.number, again),
                tokens_until=None if again is None else ahead.tokens_until(turn.number, again),
            )
        )
    return found


def _next(turns: list[int], cut: int) -> int | None:
    place = bisect_left(turns, cut)
    return turns[place] if place < len(turns) else None


def note_lines(turn: Turn, wanted: Container[str], seen: dict[str, set[str]]) -> None:
    """Add to what the agent saw of each path's version in force; an edit leaves most of a text, no other write does."""
    for read in turn.reads:
        if read.path in wanted:
            shown = read.lines.values() if read.lines is not None else (read.content or "").splitlines()
            seen.setdefault(read.path, set()).update(map(squeezed, shown))
    for write in turn.writes:
        if write.path in wanted:
            if write.kind != "edit":
                seen[write.path] = set()
            text = write.content if write.content is not None else write.added
            seen.setdefault(write.path, set()).update(map(squeezed, (text or "").splitlines()))


def share_kept(seen: set[str], kept: set[str]) -> float:
    """Return the share of a text's telling lines that stand in another text too."""
    telling = {line for line in seen if len(line) >= TELLING_CHARACTERS}
    return len(telling & kept) / len(telling) if telling else 0.0


def squeezed(line: str) -> str:
    """Return a line with its spaces evened out, for comparing."""
    return " ".join(line.split())
