"""Measures what a compaction or a cleared context dropped, and what it cost to read it again.

For every file state that was live at a break (later work used it): how much of it was still in the context, how much of
that the carried-over text repeats, whether it was read again before the file changed, and at what cost. A live state
that was never read again was used without being seen, or from what the carried-over text and the model retained.
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

DISTINCTIVE_CHARACTERS = 8  # shorter lines, such as `else:`, occur in too many files to identify one
_LONGER_BEFORE = re.compile(r"[\w.+]|\w-")  # before a name in a text: it is the end of a longer name
_LONGER_AFTER = re.compile(r"[\w+]|[.-]\w")  # after it: the start of a longer name; a full stop ends a sentence


@dataclass(frozen=True, slots=True)
class DroppedState:
    """One live state at a break."""

    cut: int  # the break came just before this turn
    kind: Break
    path: str
    tokens: int  # of the state, as demand counts them
    carried_share: float  # share of its distinctive lines that the carried-over text repeats verbatim
    named: bool  # the carried-over text names the file
    held_share: float  # share of these lines still in the context: shown or carried since the last break
    dropped_tokens: int  # tokens still in the context that the carried-over text does not repeat
    fate: Fate  # overwritten: the agent edited the file, which needs its content, without rereading it
    reread_turn: int | None
    reread_tokens: int  # tokens that rereading showed again; 0 if an earlier break's row has them
    turns_until: int | None  # turns from the break to the one that reread it, inclusive
    tokens_until: int | None  # tokens of the run in these turns


@dataclass(frozen=True, slots=True)
class BreakCost:
    """One break, summed over the live states of which something was still in the context."""

    cut: int
    kind: Break
    carried_tokens: int  # of the text that replaced the context
    live_files: int
    live_tokens: int  # of these states, still in the context
    dropped_tokens: int
    reread_files: int
    reread_tokens: int
    reread_turns: int  # turns that reread at least one of them
    overwritten_files: int
    never_reread_files: int
    never_reread_tokens: int  # dropped tokens of the states never reread
    reread_dropped_tokens: int  # the same for reread states; the three fields sum to dropped_tokens
    overwritten_tokens: int  # the same for states edited without rereading
    measured: bool  # False: the run used no file that shows what it needed


@dataclass(slots=True)
class _Context:
    """What the agent saw of each file's current version, and how much of it is still in the context."""

    wanted: set[str]
    seen: dict[str, set[str]] = field(default_factory=dict)
    held: dict[str, set[str]] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)  # since the last break

    def take(self, turn: Turn) -> None:
        note_lines(turn, self.wanted, self.seen)
        note_lines(turn, self.wanted, self.held)
        for read in turn.reads:
            if read.path in self.wanted and read.lines is None and read.content is None:
                self.held[read.path] = set(self.seen[read.path])  # its text is not recorded: assume the whole file
        self.touched |= {read.path for read in turn.reads} | {write.path for write in turn.writes}

    def shrink(self, kept: set[str]) -> None:
        self.held = {path: lines & kept for path, lines in self.seen.items()}
        self.touched = set()

    def held_share(self, path: str) -> float:
        seen = self.seen.get(path, set())
        if not any(map(is_distinctive, seen)):  # no distinctive lines: all of it is in the context, or none
            return float(path in self.touched)
        return share_kept(seen, self.held.get(path, set()))

    def carried_share(self, path: str, kept: set[str]) -> float:
        return share_kept(self.seen.get(path, set()), kept)

    def dropped_share(self, path: str, kept: set[str]) -> float:
        held = self.held.get(path, set())
        return self.held_share(path) - share_kept(self.seen.get(path, set()), held & kept)


class _Ahead:
    """Where each path is next read or written after a cut, and the cost of getting there."""

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
    """Return the turns before which the log shows a compaction or a cleared context."""
    return tuple(turn.number for turn in trajectory.turns if turn.recorded.broken is not None)


def dropped_states(
    trajectory: Trajectory, live: Mapping[int, Mapping[str, int]], count: Counter
) -> tuple[DroppedState, ...]:
    """Return what was live at each break and its fate; `live` maps each break's cut to tokens by path."""
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
    """Return whether a text names the file, and not one with a longer name."""
    name, start = path.rpartition("/")[2], -1
    while name and (start := text.find(name, start + 1)) >= 0:
        end = start + len(name)
        if not (_is_longer_before(text, start) or _LONGER_AFTER.match(text, end)):
            return True
    return False


def _is_longer_before(text: str, start: int) -> bool:
    return any(start >= n and _LONGER_BEFORE.fullmatch(text, start - n, start) for n in (1, 2))


def _paid_once(states: Sequence[DroppedState]) -> tuple[DroppedState, ...]:
    """Return the rows with each reread's cost in one row: the first break that dropped the state, else the first."""
    payer: dict[tuple[str, int | None], DroppedState] = {}
    for state in sorted(states, key=lambda one: (not one.dropped_tokens, not one.held_share, one.cut)):
        payer.setdefault((state.path, state.reread_turn), state)
    return tuple(
        state if payer[state.path, state.reread_turn] is state else replace(state, reread_tokens=0) for state in states
    )


def break_costs(
    trajectory: Trajectory, dropped: Iterable[DroppedState], count: Counter, *, measured: bool = True
) -> tuple[BreakCost, ...]:
    """Return one row per break, including breaks at which nothing was live.

    Args:
        measured: the run used a file that shows what it needed.
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
    """Record what the agent saw of each path's current version; an edit keeps most of it, any other write none."""
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
    """Return the share of a text's distinctive lines that another text contains."""
    telling = set(filter(is_distinctive, seen))
    return len(telling & kept) / len(telling) if telling else 0.0


def is_distinctive(line: str) -> bool:
    """Return whether a line is long enough to identify the text that it comes from."""
    return len(line) >= DISTINCTIVE_CHARACTERS


def normalized_line(line: str) -> str:
    """Return a line with its white space normalized, for comparison."""
    return " ".join(line.split())
