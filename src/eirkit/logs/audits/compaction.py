"""What a compaction or a clear took away, and what getting it back cost.

In: a trajectory, and for every break the states that were live at the cut before it, with their tokens. Out: one row
for every live state at every break: how much of it was still before the agent, how much of that the carried text
repeats, whether it was read again before the file changed, and at what cost. Live means that later work used it, so
what was never read again was used without being seen, or from what the carried text and the model kept.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal

from eirkit.logs.demand.costs import read_tokens
from eirkit.logs.tokens import Counter
from eirkit.logs.trajectory import Break, Trajectory, Turn

Fate = Literal["reread", "overwritten", "never"]

DISTINCTIVE_CHARACTERS = 8  # a shorter line, such as `else:`, says nothing about where a text came from
_LONGER_BEFORE = re.compile(r"[\w.+]|\w-")  # before a name in a text: it is the end of a longer one
_LONGER_AFTER = re.compile(r"[\w+]|[.-]\w")  # behind it: the beginning of one; a full stop ends a sentence


@dataclass(frozen=True, slots=True)
class DroppedState:
    """One live state at a break."""

    cut: int  # the break came just before this turn
    kind: Break
    path: str
    tokens: int  # of the state, as demand counts them
    carried_share: float  # of its telling lines, those that the carried text repeats word for word
    named: bool  # the carried text names the file
    held_share: float  # of these lines, those still in the context: shown since the break before, or carried over it
    dropped_tokens: int  # of what was still in the context, those that the carried text does not repeat
    fate: Fate  # overwritten: the agent edited the file, which takes what it held, without reading it again
    reread_turn: int | None
    reread_tokens: int  # that the reading of it put before the agent again; 0 where an earlier break's row has them
    turns_until: int | None  # turns from the break to that one, itself included
    tokens_until: int | None  # the run's tokens in those turns


@dataclass(frozen=True, slots=True)
class BreakCost:
    """One break, summed over the states that were live at it and of which something was still in the context."""

    cut: int
    kind: Break
    carried_tokens: int  # of the text that took the context's place
    live_files: int
    live_tokens: int  # of them, still in the context
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


@dataclass(slots=True)
class _Context:
    """What the agent saw of each file's version in force, and what of that is still before it."""

    wanted: set[str]
    seen: dict[str, set[str]] = field(default_factory=dict)
    held: dict[str, set[str]] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)  # since the last break

    def take(self, turn: Turn) -> None:
        note_lines(turn, self.wanted, self.seen)
        note_lines(turn, self.wanted, self.held)
        for read in turn.reads:
            if read.path in self.wanted and read.lines is None and read.content is None:
                self.held[read.path] = set(self.seen[read.path])  # what it showed is not recorded: take it for all
        self.touched |= {read.path for read in turn.reads} | {write.path for write in turn.writes}

    def shrink(self, kept: set[str]) -> None:
        self.held = {path: lines & kept for path, lines in self.seen.items()}
        self.touched = set()

    def held_share(self, path: str) -> float:
        seen = self.seen.get(path, set())
        if not any(map(is_distinctive, seen)):  # without lines to go by, a state is before the agent as a whole or not
            return float(path in self.touched)
        return share_kept(seen, self.held.get(path, set()))

    def carried_share(self, path: str, kept: set[str]) -> float:
        return share_kept(self.seen.get(path, set()), kept)

    def dropped_share(self, path: str, kept: set[str]) -> float:
        held = self.held.get(path, set())
        return self.held_share(path) - share_kept(self.seen.get(path, set()), held & kept)


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
    ahead, context = _Ahead(trajectory.turns, wanted, count), _Context(wanted)
    found: list[DroppedState] = []
    for turn in trajectory.turns:
        if turn.recorded.broken is not None:
            kept = {normalized_line(line) for line in turn.recorded.carried.splitlines()}
            found += _dropped(turn, live.get(turn.number, {}), context, kept, ahead)
            context.shrink(kept)
        context.take(turn)
    return _paid_once(found)


def names_file(text: str, path: str) -> bool:
    """Tell whether a text has the file's name, with nothing around it that makes it another one's."""
    name, start = path.rpartition("/")[2], -1
    while name and (start := text.find(name, start + 1)) >= 0:
        end = start + len(name)
        if not (_is_longer_before(text, start) or _LONGER_AFTER.match(text, end)):
            return True
    return False


def _is_longer_before(text: str, start: int) -> bool:
    return any(start >= n and _LONGER_BEFORE.fullmatch(text, start - n, start) for n in (1, 2))


def _paid_once(states: Sequence[DroppedState]) -> tuple[DroppedState, ...]:
    """Return the rows with each rereading paid in one: of the first break that dropped some of it, else the first."""
    payer: dict[tuple[str, int | None], DroppedState] = {}
    for state in sorted(states, key=lambda one: (not one.dropped_tokens, not one.held_share, one.cut)):
        payer.setdefault((state.path, state.reread_turn), state)
    return tuple(
        state if payer[state.path, state.reread_turn] is state else replace(state, reread_tokens=0) for state in states
    )


def break_costs(
    trajectory: Trajectory, dropped: Iterable[DroppedState], count: Counter, *, measured: bool = True
) -> tuple[BreakCost, ...]:
    """Return one row for every break, those with nothing live included.

    Args:
        measured: the run used a file from which need can be told.
    """
    by_cut: dict[int, list[DroppedState]] = {}
    for state in (one for one in dropped if one.held_share):
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
        live_tokens=sum(round(state.tokens * state.held_share) for state in states),
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


def _dropped(
    turn: Turn, live: Mapping[str, int], context: _Context, kept: set[str], ahead: _Ahead
) -> list[DroppedState]:
    found = []
    for path, tokens in sorted(live.items()):
        fate, again = ahead.fate(path, turn.number)
        found.append(
            DroppedState(
                cut=turn.number,
                kind=turn.recorded.broken or "compaction",
                path=path,
                tokens=tokens,
                carried_share=context.carried_share(path, kept),
                named=names_file(turn.recorded.carried, path),
                held_share=context.held_share(path),
                dropped_tokens=round(tokens * context.dropped_share(path, kept)),
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
            seen.setdefault(read.path, set()).update(map(normalized_line, shown))
    for write in turn.writes:
        if write.path in wanted:
            if write.kind != "edit":
                seen[write.path] = set()
            text = write.content if write.content is not None else write.added
            seen.setdefault(write.path, set()).update(map(normalized_line, (text or "").splitlines()))


def share_kept(seen: set[str], kept: set[str]) -> float:
    """Return the share of a text's telling lines that stand in another text too."""
    telling = set(filter(is_distinctive, seen))
    return len(telling & kept) / len(telling) if telling else 0.0


def is_distinctive(line: str) -> bool:
    """Tell whether a line is long enough to say where a text came from."""
    return len(line) >= DISTINCTIVE_CHARACTERS


def normalized_line(line: str) -> str:
    """Return a line with its spaces evened out, for comparing."""
    return " ".join(line.split())
