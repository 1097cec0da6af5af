"""How errors spread from step to step.

An error with the cause "cascade" follows from wrong answers among its references; any other cause is an origin. So an
error is traced back through cascades to its origins, and forward through the cascades that refer to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eirkit.findings.causes import Cause, Verdict
from eirkit.tasks.workload import Graph

CASCADE: Cause = "cascade"


@dataclass(frozen=True, slots=True)
class Spread:
    """The origins and consequences of one wrong step; empty for a correct step."""

    origins: tuple[int, ...]  # wrong steps at which it began
    path: tuple[tuple[int, int], ...]  # edges from an earlier wrong step to the one that used it
    spoilt: tuple[int, ...]  # later steps that are wrong because of it


def spread_of(graph: Graph, verdicts: Mapping[int, Verdict], t: int) -> Spread:
    """Return the origins of a step's error, the path from them, and the later errors that it caused."""
    if not _is_wrong(verdicts, t):
        return Spread((), (), ())
    origins, edges, waiting, seen = set(), set(), [t], {t}
    while waiting:
        at = waiting.pop()
        before = _wrong_sources(graph, verdicts, at)
        if not before:
            origins.add(at)
        edges |= {(source, at) for source in before}
        waiting += [source for source in before if source not in seen]
        seen |= set(before)
    return Spread(tuple(sorted(origins)), tuple(sorted(edges)), _spoilt(graph, verdicts, t))


def _spoilt(graph: Graph, verdicts: Mapping[int, Verdict], t: int) -> tuple[int, ...]:
    found = {t}
    for later in range(t + 1, len(graph) + 1):
        if not found.isdisjoint(_wrong_sources(graph, verdicts, later)):
            found.add(later)
    return tuple(sorted(found - {t}))


def _wrong_sources(graph: Graph, verdicts: Mapping[int, Verdict], t: int) -> list[int]:
    """Return the wrong answers that caused a cascade error; empty for any other cause."""
    verdict = verdicts.get(t)
    if verdict is None or verdict.cause != CASCADE:
        return []
    return [source for source in graph[t - 1] if _is_wrong(verdicts, source)]


def _is_wrong(verdicts: Mapping[int, Verdict], t: int) -> bool:
    return t in verdicts and not verdicts[t].correct
