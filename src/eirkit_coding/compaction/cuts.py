"""The cuts of a run at which compactors are tried: what later work needed of the context, and what each compactor kept.

A line is needed if it was seen of a file version that is live at the cut (docs/vestige-demand.md), stands in the
context and is long enough to identify its file. It counts once, however many files contain it and views showed it.

A needed line is kept if it stands in the returned messages, wherever: in the message that showed it, shortened or not,
or quoted in a summary. A line that repeats one of the context costs at least what this costs in its shortest form, so
that nothing can keep more than the best selection within the same tokens.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Literal

from eirkit.errors import UsageError
from eirkit.limits import check_time
from eirkit.vestige.audits.instructions import MOST, Instruction, instructions_in, survivals_in
from eirkit.vestige.demand.graph import Goal
from eirkit.vestige.demand.live_states import MeasuredRun, live_at
from eirkit.vestige.ledger import Ledger, Source, shown_texts
from eirkit.vestige.lines import is_distinctive
from eirkit.vestige.trajectory import Trajectory, Turn
from eirkit.vestige.viewer_output import names_file
from eirkit_coding.compaction import CompactionStatus
from eirkit_coding.compaction.context import (
    MESSAGE_TOKENS,
    ContextMessage,
    KnownLine,
    LineCounter,
    fault_of,
    key_of,
    known_lines,
    split_opening,
    texts_of,
)
from eirkit_coding.compaction.recorded import after_break, context_before
from eirkit_coding.compaction.selection import RandomKeeping, best_selection

CutRule = Literal["real", "every", "tokens"]
LineKind = Literal["read", "written"]
_PLAN = re.compile(r"(every|tokens):([1-9]\d{0,8})")
_MOST_PATHS = 200  # used after a cut that are looked for
_MOST_NAMES = 200  # learned from outputs
# What a program prints and a later command repeats: names with a mark in them, such as test_a.py::test_b or --flag_x.
_NAME = re.compile(r"[\w./:@-]{6,200}")
_MARK = re.compile(r"[\w][_./:@-][\w]|::|\d")
_READ: tuple[Source, ...] = ("shown", "echoed", "put back", "quoted")
LONGEST_TOKEN = 128  # characters of the longest token of the vocabulary, a run of spaces


@dataclass(frozen=True, slots=True)
class CutPlan:
    """Where runs are cut: at the compactions of the log, every so many turns, or every so many tokens."""

    rule: CutRule
    every: int = 0

    @classmethod
    def parse(cls, text: str) -> CutPlan:
        """Return the plan that a text names.

        Raises:
            UsageError: it names none.
        """
        if text == "real":
            return cls("real")
        found = _PLAN.fullmatch(text)
        if found is None:
            raise UsageError(f"{text!r} names no cuts; give real, every:TURNS or tokens:TOKENS")
        return cls("every" if found[1] == "every" else "tokens", int(found[2]))

    def __str__(self) -> str:
        return self.rule if self.rule == "real" else f"{self.rule}:{self.every}"

    def turns(self, turns: Sequence[Turn]) -> tuple[int, ...]:
        """Return the turns before which a run is cut."""
        if self.rule == "real":
            return tuple(turn.number for turn in turns if turn.recorded.broken == "compaction")
        if self.rule == "every":
            return tuple(range(self.every + 1, len(turns) + 1, self.every))
        found, grown = [], 0
        for turn in turns:
            if turn.recorded.broken is not None:
                grown = 0
            if grown >= self.every:
                found.append(turn.number)
                grown = 0
            grown += turn.tokens
        return tuple(found)


@dataclass(frozen=True, slots=True)
class NeededLine:
    """A line of the context that later work needed."""

    key: str
    tokens: int  # in the form with the fewest
    text: str  # in this form
    paths: tuple[str, ...]  # live files that contain it
    kind: LineKind  # shown by a read, or written by the agent itself


@dataclass(frozen=True)
class ContextCut:
    """One cut of a run, with what later work needed of its context."""

    run_id: str
    turn: int  # the cut lies just before it
    messages: tuple[ContextMessage, ...]
    lines: Mapping[str, KnownLine]  # every line of the context after its opening, by key
    needed: Mapping[str, NeededLine]
    context_tokens: int  # of the messages after the opening
    unread_files: int  # live files of which the context shows no line
    instructions: tuple[Instruction, ...]  # rules of the user that stand in the context
    paths: tuple[str, ...]  # files that later turns touch and the context names
    names: tuple[str, ...]  # learned from an output and used in a later call
    later_reads: Mapping[str, frozenset[str]]  # by path: keys of the lines that later turns show of it again
    replaced_by: tuple[ContextMessage, ...] | None = None  # at a compaction that the log can tell: what took its place

    @property
    def needed_tokens(self) -> int:
        return sum(line.tokens for line in self.needed.values())

    @cached_property
    def random_keeping(self) -> RandomKeeping:
        return RandomKeeping(
            chain.from_iterable(line.copies for line in self.lines.values()),
            ((line.tokens, self.lines[key].copies) for key, line in self.needed.items()),
        )


def cuts_of(
    trajectory: Trajectory, goal: Goal, run: MeasuredRun, plan: CutPlan, counter: LineCounter
) -> Iterator[ContextCut]:
    """Yield the cuts of a run in order.

    Args:
        run: the measured run; where the goal is only what the run edited, every later use counts as needed.
    """
    wanted = plan.turns(trajectory.turns)
    if not wanted:
        return
    slice_used = run.used if goal.source == "own-edits" else run.needed
    ledger = Ledger(root=trajectory.root)
    places = set(wanted)
    for turn in trajectory.turns:
        if turn.number in places:
            check_time()
            live = [run.graph.paths[state] for state in live_at(run.graph, slice_used, turn.number, "seen")]
            yield _cut(trajectory, turn.number, sorted(set(live)), ledger, counter)
        if turn.recorded.broken is not None:
            ledger.renew(turn.recorded)
            ledger.break_off(turn.number, turn.recorded)
        ledger.take(turn)


def _cut(
    trajectory: Trajectory,
    turn: int,
    live: Sequence[str],
    ledger: Ledger,
    counter: LineCounter,
) -> ContextCut:
    messages = context_before(trajectory, turn)
    opening, rest = split_opening(messages)
    lines = known_lines(rest, counter)
    always = set(known_lines(opening, counter))
    needed = _needed(lines, always, live, ledger)
    unread = sum(not any(path in line.paths for line in needed.values()) for path in live)
    later = trajectory.turns[turn - 1 :]
    recorded = trajectory.turns[turn - 1].recorded
    is_opaque = recorded.kept is not None and recorded.kept.is_opaque
    return ContextCut(
        run_id=trajectory.recording.run_id,
        turn=turn,
        messages=messages,
        lines=lines,
        needed=needed,
        context_tokens=sum(map(counter.message_tokens, rest)),
        unread_files=unread,
        instructions=tuple(_instructions(rest)),
        paths=_paths_named(later, rest),
        names=_names_learned(later, rest),
        later_reads=_later_reads(later, live),
        replaced_by=tuple(after_break(trajectory, turn)) if recorded.broken == "compaction" and not is_opaque else None,
    )


def _needed(
    lines: Mapping[str, KnownLine], always: set[str], live: Sequence[str], ledger: Ledger
) -> dict[str, NeededLine]:
    found: dict[str, list[str]] = {}
    read: set[str] = set()
    for path in live:
        keys = {key_of(line.text) for line in ledger.held(path)}
        read.update(key_of(line.text) for line in ledger.held(path, _READ))
        for key in keys:
            if key in lines and key not in always and is_distinctive(key):
                found.setdefault(key, []).append(path)
    ordered = sorted(found, key=lambda key: (lines[key].text, key))
    return {
        key: NeededLine(
            key, lines[key].tokens, lines[key].text, tuple(found[key]), "read" if key in read else "written"
        )
        for key in ordered
    }


def _instructions(messages: Sequence[ContextMessage]) -> Iterator[Instruction]:
    instructions: dict[str, Instruction] = {}
    for message in messages:
        if message.role == "user" and len(instructions) < MOST:
            for instruction in instructions_in(message.text, message.turn):
                instructions.setdefault(instruction.text, instruction)
    yield from list(instructions.values())[:MOST]


def _touched(turn: Turn) -> Iterator[str]:
    return chain((read.path for read in turn.reads), (write.path for write in turn.writes))


def _paths_named(later: Sequence[Turn], messages: Sequence[ContextMessage]) -> tuple[str, ...]:
    used = list(dict.fromkeys(path for turn in later for path in _touched(turn)))[:_MOST_PATHS]
    text = "\n".join(chain.from_iterable(map(texts_of, messages)))
    return tuple(path for path in used if names_file(text, path))


def _names_learned(later: Sequence[Turn], messages: Sequence[ContextMessage]) -> tuple[str, ...]:
    """Return names that only outputs told the agent before the cut and that calls after it use."""
    results = (message for message in messages if message.role == "tool")
    others = (message for message in messages if message.role != "tool")
    printed = set(chain.from_iterable(names_in(result.text) for result in results))
    printed.difference_update(*(names_in(text) for message in others for text in texts_of(message)))
    found: dict[str, None] = {}
    for turn in later:
        for call in turn.recorded.calls:
            for value in call.arguments.values():
                if isinstance(value, str) and len(found) < _MOST_NAMES:
                    found.update(dict.fromkeys(name for name in names_in(value) if name in printed))
    paths = {path.rpartition("/")[2] for turn in later for path in _touched(turn)}
    return tuple(name for name in list(found)[:_MOST_NAMES] if name.rpartition("/")[2] not in paths)


def names_in(text: str) -> Iterator[str]:
    """Yield the words of a text that name something exactly: with a digit or a mark inside."""
    for word in _NAME.findall(text):
        name = word.strip(".:-/")
        if len(name) >= 6 and _MARK.search(name):
            yield name


def _later_reads(later: Sequence[Turn], live: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return the lines that later turns show of live files before they are written as a whole."""
    found: dict[str, set[str]] = {path: set() for path in live}
    closed: set[str] = set()
    for turn in later:
        for read in turn.reads:
            if read.path in found and read.path not in closed and not read.rewritten:
                found[read.path] |= set(map(key_of, shown_texts(read)))
        closed |= {write.path for write in turn.writes if write.kind != "edit"}
    return {path: frozenset(keys) for path, keys in found.items() if keys}


@dataclass(frozen=True, slots=True)
class KeptState:
    """What some messages hold of what was needed at a cut; tokens, then numbers of things."""

    used_tokens: int
    kept_tokens: int
    read_tokens: int  # of the kept: shown by reads
    written_tokens: int  # of the kept: written by the agent
    verbatim: int  # instructions kept word for word
    substance: int  # instructions kept in other words
    paths: int  # files used later that are still named
    names: int  # names learned from outputs and used later


NOTHING_KEPT = KeptState(0, 0, 0, 0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class CompactorOutcome:
    """What one compactor made of one cut within one budget; a failed one keeps nothing."""

    status: CompactionStatus
    reason: str  # why it failed
    state: KeptState
    present: frozenset[str]  # keys of the lines of the context that were kept, needed or not
    sham_tokens: float  # what random lines of as many tokens keep on average


def best_kept(cut: ContextCut, budget: int) -> int:
    """Return the most needed tokens that any messages within a budget can hold."""
    sizes = [line.tokens for line in cut.needed.values()]
    return sum(sizes[place] for place in best_selection(sizes, budget - MESSAGE_TOKENS))


def failed(status: CompactionStatus, reason: str) -> CompactorOutcome:
    """Return the outcome of a compactor that gave no valid messages."""
    return CompactorOutcome(status, reason, NOTHING_KEPT, frozenset(), 0.0)


def judge(cut: ContextCut, budget: int, returned: Sequence[ContextMessage], counter: LineCounter) -> CompactorOutcome:
    """Return what the messages that a compactor returned are worth; the opening stays in any case and costs nothing."""
    if fault := fault_of(returned):
        return failed("invalid", fault)
    opening, _ = split_opening(cut.messages)
    rest = [message for message in returned if not (message.role == "system" and message in opening)]
    size = sum(len(text) for message in rest for text in texts_of(message))
    if size > LONGEST_TOKEN * (budget + 1):
        return failed("over budget", f"{size:,} characters are more than {budget:,} tokens; return less")
    state, present = kept_state(cut, rest, counter)
    if state.used_tokens > budget:
        reason = f"{state.used_tokens:,} tokens where {budget:,} were allowed; return less"
        return CompactorOutcome(
            "over budget", reason, replace(NOTHING_KEPT, used_tokens=state.used_tokens), frozenset(), 0.0
        )
    lines = cut.random_keeping.total
    share = min(1.0, max(0, state.used_tokens - MESSAGE_TOKENS) / lines) if lines else 0.0
    return CompactorOutcome("ok", "", state, present, cut.random_keeping.expected_share(share))


def kept_state(
    cut: ContextCut, messages: Sequence[ContextMessage], counter: LineCounter
) -> tuple[KeptState, frozenset[str]]:
    """Return what messages hold of what was needed, and the keys of the lines of the context in them."""
    used, keys = MESSAGE_TOKENS * len(messages), set[str]()
    for line in counter.message_lines(messages):
        shortest = cut.lines.get(line.key)
        used += line.tokens if shortest is None else max(line.tokens, shortest.tokens)
        keys.add(line.key)
    lines = [cut.needed[key] for key in keys & cut.needed.keys()]
    read = sum(line.tokens for line in lines if line.kind == "read")
    total = sum(line.tokens for line in lines)
    texts = list(chain.from_iterable(map(texts_of, messages)))
    text = "\n".join(texts)
    survivals = survivals_in(text, cut.instructions) if cut.instructions else []
    names: Collection[str] = set(chain.from_iterable(map(names_in, texts))) if cut.names else ()
    state = KeptState(
        used_tokens=used,
        kept_tokens=total,
        read_tokens=read,
        written_tokens=total - read,
        verbatim=survivals.count("verbatim"),
        substance=survivals.count("substance"),
        paths=sum(names_file(text, path) for path in cut.paths),
        names=sum(name in names for name in cut.names),
    )
    return state, frozenset(keys & cut.lines.keys())
