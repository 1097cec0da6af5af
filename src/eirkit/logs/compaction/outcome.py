"""Measures what a compactor returned at a cut: tokens used, and which needed lines, rules, paths and names it kept.

A needed line is kept if it stands in the returned messages, wherever: in the message that showed it, shortened or not,
or quoted in a summary. A line that repeats one of the context costs at least what this costs in its shortest form, so
that nothing can keep more than the best selection within the same tokens.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from eirkit.logs.audits.instructions import survivals_in
from eirkit.logs.audits.lines import names_file
from eirkit.logs.compaction.context import ContextMessage, fault_of, split_opening, texts_of
from eirkit.logs.compaction.cuts import ContextCut, names_in
from eirkit.logs.compaction.selection import best_selection
from eirkit.logs.compaction.sized_lines import MESSAGE_TOKENS, LineCounter

CompactionStatus = Literal["ok", "over budget", "invalid", "raised", "too late", "not asked"]
LONGEST_TOKEN = 128  # characters of the longest token of the vocabulary, a run of spaces


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
    names: int  # names learnt from outputs and used later


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
    rest = [one for one in returned if not (one.role == "system" and one in opening)]
    size = sum(len(text) for one in rest for text in texts_of(one))
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
    return KeptState(used, total, read, total - read, *_told(cut, messages)), frozenset(keys & cut.lines.keys())


def _told(cut: ContextCut, messages: Sequence[ContextMessage]) -> tuple[int, int, int, int]:
    """Return how many instructions, in which form, and how many paths and names the messages still tell."""
    texts = list(chain.from_iterable(map(texts_of, messages)))
    text = "\n".join(texts)
    survivals = survivals_in(text, cut.instructions) if cut.instructions else []
    names: Collection[str] = set(chain.from_iterable(map(names_in, texts))) if cut.names else ()
    return (
        survivals.count("verbatim"),
        survivals.count("substance"),
        sum(names_file(text, path) for path in cut.paths),
        sum(name in names for name in cut.names),
    )
