"""Checks the graph on 36 synthetic runs with known dependencies, each with a distractor that it must not keep.

Three shapes by four lengths by three places of the distractor, 36 cases. A shape of length n has n source files and one
goal file; a source is read in one turn and what depends on it is written in the next.

    chain    source i is read and source i + 1 is made from it; the last makes the goal
    gather   source i is read and the goal is edited, n times
    relay    source i is read and note i is made from it; at the end all notes are read and the goal is written

The distractor is read and a scratch file is made from it that nothing reads again: before everything, after half of the
write actions, or after everything. It always stands between two write actions, because whatever is read before a write
counts as carried into it: that is the definition, not an error that a case could show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise, product

from eirkit.vestige.demand.costs import observe
from eirkit.vestige.demand.graph import build, slice_to
from eirkit.vestige.demand.live_states import demand
from eirkit.vestige.trajectory import FileRead, FileWrite, RecordedTurn, Turn

SHAPES = ("chain", "gather", "relay")
LENGTHS = (2, 3, 5, 8)
PLACES = ("before", "between", "after")
GOAL, DISTRACTOR, SCRATCH = "goal.py", "distractor.py", "scratch.txt"
DISTRACTOR_TOKENS = 100_000  # larger than all others together: if it were live at any cut, the peak would show it


@dataclass(frozen=True, slots=True)
class KnownCase:
    """A run and the truth about it."""

    shape: str
    length: int
    place: str
    turns: tuple[Turn, ...]
    required: frozenset[str]  # files of which some version must be in the slice
    peak_tokens: int


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """The result of the graph for a case."""

    case: KnownCase
    missing: frozenset[str]  # required, and not in the slice
    surplus: frozenset[str]  # in the slice, and not required
    peak_tokens: int

    @property
    def holds(self) -> bool:
        return not self.missing and not self.surplus and self.peak_tokens == self.case.peak_tokens


def known_cases() -> Iterator[KnownCase]:
    """Yield the 36 cases."""
    for shape, length, place in product(SHAPES, LENGTHS, PLACES):
        steps, required, peak = _STEPS[shape](length)
        at = {"before": 0, "between": len(steps) // 2, "after": len(steps)}[place]
        noise = ({DISTRACTOR: DISTRACTOR_TOKENS}, {SCRATCH: 1})
        yield KnownCase(shape, length, place, _turns([*steps[:at], noise, *steps[at:]]), required, peak)


def validate(case: KnownCase) -> CaseVerdict:
    """Return the verdict of graph and demand on a case."""
    graph = build(([read.path for read in turn.reads], [write.path for write in turn.writes]) for turn in case.turns)
    reached = slice_to(graph, {GOAL})
    kept = frozenset(path for path, last in zip(graph.paths, reached.last_used, strict=True) if last)
    costs = observe(graph, case.turns, len).costs
    peak = demand(graph, reached, costs, "seen").peak
    return CaseVerdict(case, case.required - kept, kept - case.required, peak)


_Steps = list[tuple[dict[str, int], dict[str, int]]]  # tokens of files read, then of files written from them


def _sources(length: int) -> dict[str, int]:
    return {f"source_{i}.py": 10 * i for i in range(1, length + 1)}


def _chain(length: int) -> tuple[_Steps, frozenset[str], int]:
    sources = _sources(length)
    files = [*sources.items(), (GOAL, 1)]
    steps: _Steps = [({a: tokens}, {b: made}) for (a, tokens), (b, made) in pairwise(files)]
    return steps, frozenset(sources), max(sources.values())  # one is live at a time


def _gather(length: int) -> tuple[_Steps, frozenset[str], int]:
    sources = _sources(length)
    return [({path: tokens}, {GOAL: 1}) for path, tokens in sources.items()], frozenset(sources), max(sources.values())


def _relay(length: int) -> tuple[_Steps, frozenset[str], int]:
    sources = _sources(length)
    notes = {f"note_{i}.md": 7 for i in range(1, length + 1)}
    steps: _Steps = [({a: x}, {b: y}) for (a, x), (b, y) in zip(sources.items(), notes.items(), strict=True)]
    held = [0, *accumulate(notes.values())]  # notes wait for the end while the next source is read
    peak = max(held[-1], *(waiting + tokens for waiting, tokens in zip(held, sources.values(), strict=False)))
    return [*steps, (notes, {GOAL: 1})], frozenset(sources) | frozenset(notes), peak


_STEPS = {"chain": _chain, "gather": _gather, "relay": _relay}


def _turns(steps: _Steps) -> tuple[Turn, ...]:
    made: list[Turn] = []
    for reads, writes in steps:
        shown = tuple(FileRead(path, tokens=tokens) for path, tokens in reads.items())
        made.append(Turn(len(made) + 1, shown, (), sum(reads.values()), RecordedTurn()))
        written = tuple(FileWrite(path, tokens=tokens) for path, tokens in writes.items())
        made.append(Turn(len(made) + 1, (), written, sum(writes.values()), RecordedTurn()))
    return tuple(made)
