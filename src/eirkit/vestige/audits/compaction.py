"""Measures what each recorded compaction or clear dropped of what was needed, and the tokens of reading it again.

For every file state that was live at a break (later work used it): how much of it was still in the context, how much of
that stayed, which of the dropped lines were shown again before the file was edited, and at what cost. What stayed is
taken from the strongest evidence in the log: the next request, the messages and files that it says were kept or put
back, else the text that replaced the context. Where that is encrypted or absent, only what was read again is known to
have been dropped; the rest is unknown. So is what the scaffold may have put back unlogged: if the next request is
larger than the run's first and the summary together, the files that were touched last may be in it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain

from msgspec.structs import replace

from eirkit.records.analysis import BreakCost, BreakEvidence, DroppedState, Fate
from eirkit.vestige.demand.costs import read_tokens
from eirkit.vestige.ledger import Ledger, Line, tokens_of
from eirkit.vestige.tokens import Counter
from eirkit.vestige.trajectory import FileWrite, RecordedTurn, Trajectory, Turn
from eirkit.vestige.viewer_output import names_file


@dataclass(slots=True)
class _Lost:
    """What one break dropped of one file, while the run goes on."""

    row: DroppedState
    waiting: list[Line]  # dropped lines that nothing brought back yet
    lines: int  # how many there were; 0: the file's text is not in the log, so that it was dropped as a whole
    shown: list[Line] = field(default_factory=list)
    edited: list[Line] = field(default_factory=list)
    reread_tokens: float = 0.0
    first_turn: int | None = None
    fate: Fate = "never"

    def read(self, turn: int, lines: Sequence[Line], tokens: int, count: Counter) -> None:
        """Take a later read of some lines; none if its text is not recorded."""
        shown = set(map(id, lines))
        hit = [line for line in self.waiting if not lines or id(line) in shown]
        if not hit and self.lines:
            return
        is_all = len(hit) == len(lines) or not (lines and self.lines)
        self.reread_tokens += tokens if is_all else tokens * tokens_of(hit, count) / max(1, tokens_of(lines, count))
        self.shown += hit
        self.fate, self.first_turn = "reread", self.first_turn or turn
        self._settle(hit)

    def edit(self, write: FileWrite) -> None:
        """Take a later edit: of a file that was read again in part, the lines that it replaces were used unread."""
        if self.first_turn is None:
            self.fate = self.fate if write.kind == "delete" else "overwritten"
            return
        hit = [line for line in self.waiting if line.is_gone]
        self.edited += hit
        self._settle(hit)

    def put_back(self, ledger: Ledger) -> None:
        """Take a later break, after which lines may be in the context without having been read."""
        self._settle([line for line in self.waiting if ledger.holds(line)])

    def _settle(self, lines: Sequence[Line]) -> None:
        done = set(map(id, lines))
        self.waiting = [line for line in self.waiting if id(line) not in done] if done else self.waiting

    def is_settled(self) -> bool:
        return not self.waiting and (self.lines > 0 or self.first_turn is not None)

    def settled(self, ahead: _Ahead, count: Counter, *, is_known: bool) -> DroppedState:
        """Return the row with what became of the dropped lines."""
        dropped = self.row.dropped_tokens
        if len(self.shown) == self.lines:  # all of it, or a text that is not recorded
            again = dropped if self.first_turn is not None else 0
        else:
            again = min(dropped, tokens_of(self.shown, count))
        turns, tokens = ahead.until(self.row.cut, self.first_turn)
        return replace(
            self.row,
            dropped_tokens=dropped if is_known else again,
            unknown_tokens=0 if is_known else dropped - again,
            edited_tokens=min(tokens_of(self.edited, count), dropped - again) if is_known else 0,
            fate=self.fate,
            reread_turn=self.first_turn,
            reread_tokens=round(self.reread_tokens),
            reread_dropped_tokens=again,
            turns_until=turns,
            tokens_until=tokens,
        )


@dataclass(frozen=True, slots=True)
class _Held:
    """What is in the context of one file's present version, at one moment."""

    known: list[Line]
    held: list[Line]
    is_in_view: bool  # the log does not have its text, and a view of it is in the context

    @classmethod
    def of(cls, ledger: Ledger, path: str) -> _Held:
        known = ledger.known(path)
        return cls(known, list(filter(ledger.holds, known)), ledger.is_in_view(path))

    def tokens(self, live: int, count: Counter) -> int:
        """Return the tokens of what is known; those of the state where its text is not recorded."""
        return tokens_of(self.known, count) if self.known else live

    def share(self, lines: Sequence[Line], tokens: int, count: Counter) -> float:
        """Return the share of the file's known text that some of its lines are."""
        if not self.known:
            return float(self.is_in_view)
        return 1.0 if len(lines) == len(self.known) else tokens_of(lines, count) / max(1, tokens)


def _is_known(recorded: RecordedTurn) -> bool:
    """Return whether the log says what stayed at a break."""
    kept = recorded.kept
    if kept is None:
        return bool(recorded.carried) or recorded.broken == "clear"
    is_shown = kept.is_complete or bool(recorded.carried or kept.texts or kept.files or kept.turns)
    return is_shown and not kept.is_opaque


def _unlogged_tokens(turn: Turn, turns: Sequence[Turn], count: Counter) -> int:
    """Return how many tokens of the request after a break neither the first request of the run nor the log explains."""
    recorded, first = turn.recorded, turns[0].recorded
    says_what_stayed = recorded.kept is not None and recorded.kept.evidence != "size"
    if says_what_stayed or not recorded.carried or recorded.usage is None or first.usage is None:
        return 0
    always = first.usage.input_tokens - count(first.asked)  # instructions and tools
    return recorded.usage.input_tokens - always - count(recorded.carried) - count(recorded.asked)


def _perhaps_put_back(rows: Iterable[DroppedState], room: int, last_touched: Mapping[str, int]) -> set[str]:
    """Return the files of which an unlogged part of the context may consist: those that were touched last."""
    found: set[str] = set()
    for row in sorted(rows, key=lambda row: -last_touched.get(row.path, 0)):
        if room <= 0:
            break
        found.add(row.path)
        room -= row.dropped_tokens
    return found


class _Ahead:
    """Where each path is next read or written after a cut, and the cost of getting there."""

    def __init__(self, turns: Sequence[Turn], wanted: set[str]) -> None:
        self._places = {turn.number: place for place, turn in enumerate(turns)}
        self._clock = [0, *accumulate(turn.tokens for turn in turns)]
        self._reads: dict[str, list[int]] = {path: [] for path in wanted}
        self._writes: dict[str, list[int]] = {path: [] for path in wanted}
        for turn in turns:
            for places, touched in ((self._reads, turn.reads), (self._writes, turn.writes)):
                for path in wanted.intersection(one.path for one in touched):
                    places[path].append(turn.number)

    def fate(self, path: str, cut: int) -> tuple[Fate, int | None]:
        read, write = _next(self._reads[path], cut), _next(self._writes[path], cut)
        if read is not None and (write is None or read <= write):  # reads come before writes in a turn
            return "reread", read
        return ("never", None) if write is None else ("overwritten", None)

    def until(self, cut: int, turn: int | None) -> tuple[int | None, int | None]:
        """Return the turns and the tokens from a cut to a turn, which are included."""
        if turn is None:
            return None, None
        first, end = self._places[cut], self._places[turn] + 1
        return end - first, self._clock[end] - self._clock[first]


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
    turns, ahead = trajectory.turns, _Ahead(trajectory.turns, wanted)
    ledger = Ledger(wanted, trajectory.root)
    last_touched: dict[str, int] = {}
    rows: list[DroppedState | tuple[_Lost, bool]] = []
    open_by_path: dict[str, list[_Lost]] = {}
    for turn in turns:
        if turn.number == cuts[-1] + 1:
            ledger.wanted = set(open_by_path)  # from here on, only what was dropped can change a row
        if turn.recorded.broken is not None:
            states = live.get(turn.number, {})
            ledger.renew(turn.recorded)
            before = {path: _Held.of(ledger, path) for path in sorted(states)}
            ledger.break_off(turn.number, turn.recorded)
            for earlier in chain.from_iterable(open_by_path.values()):
                earlier.put_back(ledger)
            found = [_dropped(turn, path, states[path], held, ledger, ahead, count) for path, held in before.items()]
            doubtful = _perhaps_put_back([row for row, _ in found], _unlogged_tokens(turn, turns, count), last_touched)
            for row, lines in found:
                if not row.dropped_tokens:
                    rows.append(row)
                    continue
                lost = _Lost(row, lines, len(lines))
                open_by_path.setdefault(row.path, []).append(lost)
                rows.append((lost, _is_known(turn.recorded) and row.path not in doubtful))
        _follow(turn, ledger, open_by_path, count)
        touched = {read.path for read in turn.reads} | {write.path for write in turn.writes}
        last_touched.update(dict.fromkeys(touched & wanted, turn.number))
    return tuple(
        row if isinstance(row, DroppedState) else row[0].settled(ahead, count, is_known=row[1]) for row in rows
    )


def _follow(turn: Turn, ledger: Ledger, open_by_path: dict[str, list[_Lost]], count: Counter) -> None:
    """Take a turn, and note which dropped lines it showed again, and which files it edited before that."""
    shown = ledger.take(turn)
    if not open_by_path:
        return
    for place, read in enumerate(turn.reads):
        for lost in open_by_path.get(read.path, ()):
            if lost.first_turn is not None or not read.rewritten:  # else it was edited before it was read
                lost.read(turn.number, shown[place], read_tokens(read, count), count)
    for write in turn.writes:
        for lost in open_by_path.get(write.path, ()):
            lost.edit(write)
        if write.kind != "edit":
            open_by_path.pop(write.path, None)
    touched = {read.path for read in turn.reads} | {write.path for write in turn.writes}
    for path in touched & open_by_path.keys():
        left = [one for one in open_by_path[path] if one.fate != "overwritten" and not one.is_settled()]
        open_by_path[path] = left
        if not left:
            del open_by_path[path]


def break_costs(
    trajectory: Trajectory, dropped: Iterable[DroppedState], count: Counter, *, measured: bool = True
) -> tuple[BreakCost, ...]:
    """Return one row per break, also where nothing was live; `measured`: a file that was used shows what was needed."""
    by_cut: dict[int, list[DroppedState]] = {}
    for state in (one for one in dropped if one.held_share):
        by_cut.setdefault(state.cut, []).append(state)
    broken = [turn for turn in trajectory.turns if turn.recorded.broken is not None]
    return tuple(_cost(turn, by_cut.get(turn.number, []), count, measured=measured) for turn in broken)


def _cost(turn: Turn, states: Sequence[DroppedState], count: Counter, *, measured: bool) -> BreakCost:
    fates: tuple[Fate, ...] = ("reread", "overwritten", "never")
    reread, overwritten, never = ([state for state in states if state.fate == fate] for fate in fates)
    dropped = sum(state.dropped_tokens for state in states)
    again = sum(state.reread_dropped_tokens for state in states)
    blind = sum(state.dropped_tokens if state.fate == "overwritten" else state.edited_tokens for state in states)
    kept = turn.recorded.kept
    sizes = (None, None) if kept is None else (kept.tokens_before, kept.tokens_after)
    return BreakCost(
        cut=turn.number,
        kind=turn.recorded.broken or "compaction",
        carried_tokens=count(turn.recorded.carried),
        live_files=len(states),
        live_tokens=sum(round(state.tokens * state.held_share) for state in states),
        dropped_tokens=dropped,
        reread_files=len(reread),
        reread_tokens=sum(state.reread_tokens for state in reread),
        reread_turns=len({state.reread_turn for state in reread}),
        overwritten_files=len(overwritten),
        never_reread_files=len(never),
        never_reread_tokens=dropped - again - blind,
        reread_dropped_tokens=again,
        overwritten_tokens=blind,
        unknown_tokens=sum(state.unknown_tokens for state in states),
        evidence=break_evidence(turn),
        shrunk_tokens=None if sizes[0] is None or sizes[1] is None else max(0, sizes[0] - sizes[1]),
        measured=measured,
        compactions=turn.recorded.breaks("compaction"),
        clears=turn.recorded.breaks("clear"),
        trigger=turn.recorded.trigger,
        manual_compactions=turn.recorded.triggers.count("manual"),
        automatic_compactions=turn.recorded.triggers.count("auto"),
    )


def break_evidence(turn: Turn) -> BreakEvidence:
    """Return what shows which part of the context stayed at a break."""
    recorded = turn.recorded
    if recorded.kept is not None and recorded.kept.is_opaque:
        return "opaque"
    if recorded.kept is not None and recorded.kept.evidence != "size":
        return recorded.kept.evidence
    return "summary" if recorded.carried else "clear" if recorded.broken == "clear" else "none"


def _dropped(
    turn: Turn, path: str, live: int, before: _Held, ledger: Ledger, ahead: _Ahead, count: Counter
) -> tuple[DroppedState, list[Line]]:
    """Return the row of a file at a break, and the lines of it that the break dropped."""
    tokens = before.tokens(live, count)
    after = [line for line in before.known if ledger.holds(line)]
    lines = [line for line in before.held if not ledger.holds(line)]
    is_dropped = before.is_in_view and not before.known and not ledger.is_in_view(path)
    fate, again = ahead.fate(path, turn.number)
    turns_until, tokens_until = ahead.until(turn.number, again)
    row = DroppedState(
        cut=turn.number,
        kind=turn.recorded.broken or "compaction",
        path=path,
        tokens=tokens,
        carried_share=before.share(after, tokens, count) if before.known else float(ledger.is_in_view(path)),
        named=names_file(turn.recorded.carried, path),
        held_share=before.share(before.held, tokens, count),
        dropped_tokens=tokens if is_dropped or len(lines) == len(before.known) > 0 else tokens_of(lines, count),
        unknown_tokens=0,
        fate=fate,
        reread_turn=again,
        reread_tokens=0,  # a reread costs nothing where nothing was dropped
        reread_dropped_tokens=0,
        edited_tokens=0,
        turns_until=turns_until,
        tokens_until=tokens_until,
    )
    return row, lines


def _next(turns: list[int], cut: int) -> int | None:
    place = bisect_left(turns, cut)
    return turns[place] if place < len(turns) else None
