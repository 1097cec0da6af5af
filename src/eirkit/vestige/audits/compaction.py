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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain

from msgspec.structs import replace

from eirkit.records.analysis import BreakCost, BreakEvidence, DroppedState, Fate
from eirkit.vestige.demand.costs import read_tokens
from eirkit.vestige.lines import is_distinctive
from eirkit.vestige.tokens import Counter
from eirkit.vestige.trajectory import FileRead, FileWrite, Trajectory, Turn
from eirkit.vestige.viewer_output import names_file, note_lines, share_kept, shown_lines, text_lines


@dataclass(slots=True)
class _Lost:
    """What one break dropped of one file, while the run goes on."""

    row: DroppedState
    waiting: set[str]  # distinctive dropped lines that were not shown again yet
    lines: int  # how many there were; 0: the file's text is not recorded, so that it was dropped as a whole
    shown: int = 0
    edited: int = 0
    reread_tokens: float = 0.0
    first_turn: int | None = None
    fate: Fate = "never"

    def read(self, turn: int, lines: set[str] | None, tokens: int) -> None:
        """Take a later read; lines are None if its text is not recorded."""
        telling = None if lines is None or not self.lines else set(filter(is_distinctive, lines))
        hit = self.waiting if telling is None else telling & self.waiting
        if telling is None or hit:
            self.reread_tokens += tokens if telling is None else tokens * len(hit) / len(telling)
            self.shown += len(hit) or int(not self.lines)
            self.waiting = self.waiting - hit
            self.fate, self.first_turn = "reread", self.first_turn or turn

    def edit(self, write: FileWrite) -> None:
        """Take a later edit: of a file that was read again in part, the lines that it replaces were used unread."""
        if self.first_turn is None:
            self.fate = self.fate if write.kind == "delete" else "overwritten"
            return
        hit = text_lines(write.removed or "") & self.waiting
        self.edited += len(hit)
        self.waiting = self.waiting - hit

    def is_settled(self) -> bool:
        return not self.waiting and (self.lines > 0 or self.shown > 0)

    def settled(self, ahead: _Ahead, *, is_known: bool) -> DroppedState:
        """Return the row with what became of the dropped lines."""
        share = min(1.0, self.shown / self.lines) if self.lines else float(self.shown > 0)
        again = round(self.row.dropped_tokens * share)
        edited = round(self.row.dropped_tokens * self.edited / self.lines) if self.lines else 0
        turns, tokens = ahead.until(self.row.cut, self.first_turn)
        return replace(
            self.row,
            dropped_tokens=self.row.dropped_tokens if is_known else again,
            unknown_tokens=0 if is_known else self.row.dropped_tokens - again,
            edited_tokens=min(edited, self.row.dropped_tokens - again) if is_known else 0,
            fate=self.fate,
            reread_turn=self.first_turn,
            reread_tokens=round(self.reread_tokens),
            reread_dropped_tokens=again,
            turns_until=turns,
            tokens_until=tokens,
        )


@dataclass(slots=True)
class _Context:
    """What the agent saw of each file's current version, and how much of it is still in the context."""

    wanted: set[str]
    count: Counter
    seen: dict[str, set[str]] = field(default_factory=dict)
    held: dict[str, set[str]] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)  # since the last break
    last_touched: dict[str, int] = field(default_factory=dict)
    put_back: dict[str, int] = field(
        default_factory=dict
    )  # tokens of files that the scaffold put back, as they are now

    def take(self, turn: Turn) -> None:
        for write in turn.writes:
            if write.path in self.put_back:
                change = self.count(write.added or "") - self.count(write.removed or "")
                left = self.put_back[write.path] + change if write.kind == "edit" else 0
                self.put_back[write.path] = max(0, left)
        note_lines(turn, self.wanted, self.seen, self.held, is_current=True)
        for read in turn.reads:
            if read.path in self.wanted and read.lines is None and read.content is None:
                self.held[read.path] = set(self.seen[read.path])  # its text is not recorded: assume the whole file
        now = {read.path for read in turn.reads} | {write.path for write in turn.writes}
        self.touched |= now
        self.last_touched.update(dict.fromkeys(now & self.wanted, turn.number))

    def renew(self, stayed: _Stayed) -> None:
        """Forget lines that a file has no more, as its whole text shows that the scaffold put back."""
        for file in stayed.files:
            for known in (self.seen, self.held):
                if file.path in known and not file.clipped:
                    known[file.path] = known[file.path] & stayed.own[file.path]

    def shrink(self, stayed: _Stayed) -> None:
        self.held = {path: lines & stayed.of(path) for path, lines in self.seen.items()}
        self.touched = set(stayed.paths)
        for file in stayed.files:
            if file.path in self.wanted:  # a file that the scaffold put back may show more than had been read
                shown = shown_lines(file)
                self.seen[file.path] = self.seen.get(file.path, set()) | shown
                self.held[file.path] = self.held.get(file.path, set()) | shown
                self.touched.add(file.path)
                self.put_back[file.path] = read_tokens(file, self.count)

    def held_share(self, path: str) -> float:
        return self._share(path, self.held.get(path, set()), is_whole=path in self.touched)

    def carried_share(self, path: str, stayed: _Stayed) -> float:
        return self._share(path, stayed.of(path), is_whole=path in stayed.paths)

    def dropped_share(self, path: str, stayed: _Stayed) -> float:
        kept = self._share(path, self.held.get(path, set()) & stayed.of(path), is_whole=path in stayed.paths)
        return max(0.0, self.held_share(path) - kept)

    def _share(self, path: str, lines: set[str], *, is_whole: bool) -> float:
        seen = self.seen.get(path, set())
        return share_kept(seen, lines) if any(map(is_distinctive, seen)) else float(is_whole)  # all of it, or none

    def dropped_lines(self, path: str, stayed: _Stayed) -> set[str]:
        return set(filter(is_distinctive, self.held.get(path, set()) - stayed.of(path)))


@dataclass(frozen=True, slots=True)
class _Stayed:
    """What is in the context after a break."""

    lines: set[str]  # of texts that may be of any file
    own: Mapping[str, set[str]]  # by path: those that are known to be of this file
    paths: set[str]  # files that turns which stayed read or wrote
    files: tuple[FileRead, ...]  # put back by the scaffold
    is_known: bool

    def of(self, path: str) -> set[str]:
        """Return the lines that may be of a file; a line of another file is none of them, though it may be equal."""
        own = self.own.get(path)
        return self.lines if own is None else self.lines | own


def _stayed(turn: Turn, turns: Sequence[Turn], root: str) -> _Stayed:
    recorded = turn.recorded
    kept = recorded.kept
    lines = text_lines(recorded.carried)
    if kept is None:
        return _Stayed(lines, {}, set(), (), is_known=bool(recorded.carried) or recorded.broken == "clear")
    files = tuple(replace(file, path=file.path.removeprefix(root)) for file in kept.files)
    contents = {file.content for file in files}
    lines.update(*(text_lines(text) for text in kept.texts if text not in contents))
    own: dict[str, set[str]] = {}
    for file in files:
        own.setdefault(file.path, set()).update(shown_lines(file))
    paths: set[str] = set()
    for number in kept.turns:
        if 0 < number <= len(turns):
            one = turns[number - 1]
            touched = {read.path for read in one.reads} | {write.path for write in one.writes}
            note_lines(one, touched, own)
            paths |= touched
    is_shown = kept.is_complete or bool(recorded.carried or kept.texts or kept.files or kept.turns)
    return _Stayed(lines, own, paths, files, is_known=is_shown and not kept.is_opaque)


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
    root = f"{trajectory.root.rstrip('/')}/" if trajectory.root else ""
    context = _Context(wanted, count)
    rows: list[DroppedState | tuple[_Lost, bool]] = []
    open_by_path: dict[str, list[_Lost]] = {}
    for turn in turns:
        if turn.recorded.broken is not None:
            stayed = _stayed(turn, turns, root)
            context.renew(stayed)
            for earlier in chain.from_iterable(open_by_path.values()):
                earlier.waiting -= stayed.of(earlier.row.path)  # back in the context without being read
            found = tuple(_dropped(turn, live.get(turn.number, {}), context, stayed, ahead))
            doubtful = _perhaps_put_back(found, _unlogged_tokens(turn, turns, count), context.last_touched)
            for row in found:
                if not row.dropped_tokens:
                    rows.append(row)
                    continue
                lines = context.dropped_lines(row.path, stayed)
                lost = _Lost(row, lines, len(lines))
                open_by_path.setdefault(row.path, []).append(lost)
                rows.append((lost, stayed.is_known and row.path not in doubtful))
            context.shrink(stayed)
        _follow(turn, open_by_path, count)
        context.take(turn)
    return tuple(row if isinstance(row, DroppedState) else row[0].settled(ahead, is_known=row[1]) for row in rows)


def _follow(turn: Turn, open_by_path: dict[str, list[_Lost]], count: Counter) -> None:
    """Note which dropped lines a turn showed again, and which files it edited before that."""
    if not open_by_path:
        return
    for read in turn.reads:
        for lost in open_by_path.get(read.path, ()):
            if lost.first_turn is not None or not read.rewritten:  # else it was edited before it was read
                is_recorded = read.lines is not None or read.content is not None
                lost.read(turn.number, shown_lines(read) if is_recorded else None, read_tokens(read, count))
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
    turn: Turn, live: Mapping[str, int], context: _Context, stayed: _Stayed, ahead: _Ahead
) -> Iterator[DroppedState]:
    for path, shown in sorted(live.items()):
        tokens = max(shown, context.put_back.get(path, 0))
        fate, again = ahead.fate(path, turn.number)
        turns_until, tokens_until = ahead.until(turn.number, again)
        yield DroppedState(
            cut=turn.number,
            kind=turn.recorded.broken or "compaction",
            path=path,
            tokens=tokens,
            carried_share=context.carried_share(path, stayed),
            named=names_file(turn.recorded.carried, path),
            held_share=context.held_share(path),
            dropped_tokens=round(tokens * context.dropped_share(path, stayed)),
            unknown_tokens=0,
            fate=fate,
            reread_turn=again,
            reread_tokens=0,  # a reread costs nothing where nothing was dropped
            reread_dropped_tokens=0,
            edited_tokens=0,
            turns_until=turns_until,
            tokens_until=tokens_until,
        )


def _next(turns: list[int], cut: int) -> int | None:
    place = bisect_left(turns, cut)
    return turns[place] if place < len(turns) else None
