"""Measures two contrasts for RQ3 and RQ4 with intervals: key–value against text, lookup by key against similarity.

python -m studies.memory_contrasts [--json | --markdown]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eirkit.lacuna.findings.statistics import Interval, bootstrap, bootstrap_mean
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.records.settings import Access
from eirkit.report.table import Table
from eirkit_paper.studies.agents import Run, StudyAgent, reference, run_cell
from eirkit_paper.studies.architectures import MANY_ACTIONS, MemoryScore, external, how_to_get, run_memories
from eirkit_paper.studies.comparison import listed
from eirkit_paper.studies.managed import CAPACITIES, STORAGE
from studies.printing import show

SEEDS = 36
RETRIEVAL_SEEDS = 12
REAL_SEEDS = 3  # of a system that takes a tenth of a second a call
RECORDS = (16, 64, 200, 400)
QUERIES = 32  # a run
MEMORIES = ("key-value", "bm25", "vector", "vector-minilm")
REAL = ("mem0",)
ALIKE = ("vector-minilm", "mem0")  # those that find by meaning
NAMES = {
    "key-value": "key–value",
    "bm25": "BM25",
    "vector": "vectors, trigrams",
    "vector-minilm": "vectors, MiniLM",
    "mem0": "Mem0 over MiniLM",
}
AGENTS: dict[str, StudyAgent] = {
    "recoverer: notes every STORE and no copy": reference("recoverer"),
    "note-taker, p = 1.0: notes every answer": reference("note-taker", 1.0),
    "note-taker, p = 0.4: notes four answers of ten": reference("note-taker", 0.4),
    "note-taker, p = 0.0: notes nothing": reference("note-taker", 0.0),
}


def difference(
    first: Sequence[Run | MemoryScore], second: Sequence[Run | MemoryScore], seeds: Sequence[int]
) -> Interval:
    """Return first − second in accuracy, paired by seed, with an interval over trajectories."""
    apart = [a.score.accuracy - b.score.accuracy for a, b in zip(first, second, strict=True)]
    whose = [seeds[number % len(seeds)] for number in range(len(apart))]
    return bootstrap_mean(apart, whose)


def medium(seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield what key–value is better by than text, both under LRU, on Store–Recall without recovery, m = 16."""
    spec = TaskSpec("store-recall")
    for name, agent in AGENTS.items():
        sides = {
            condition: [
                run
                for h in CAPACITIES
                for run in run_cell(spec, Access(condition, None, h=h, actions=MANY_ACTIONS), agent, seeds)
            ]
            for condition in ("lru", "scratch-lru")
        }
        found = difference(sides["lru"], sides["scratch-lru"], seeds)
        yield {"who writes": name, "medium": "LRU records − LRU text", **_interval("difference", found)}
    cells = [(spec, external(memory, 4)) for memory in ("key-value", "text")]
    keyed, text = run_memories(cells, seeds)
    found = difference(keyed, text, seeds)
    yield {
        "who writes": "recoverer: notes every STORE and no copy",
        "medium": "external key–value − external text, h = 4",
        **_interval("difference", found),
    }
    low, high = min(STORAGE.values()), max(STORAGE.values())
    yield {
        "who writes": "published: GPT-5.6, Claude Opus 4.6, Claude Haiku 4.5, GPT-4.1 Mini",
        "medium": "LRU records − LRU text",
        "difference": f"{low:.3f} … {high:.3f}",
        "95% interval": None,
        "trajectories": None,
    }


def _interval(name: str, found: Interval) -> dict[str, Any]:
    bounds = f"{found.low:.3f} … {found.high:.3f}"
    return {name: found.estimate, "95% interval": bounds, "trajectories": found.clusters}


Found = dict[tuple[str, int], list[MemoryScore]]  # memory and number of records → its runs, in the order of the seeds


def find(seeds: Sequence[int], records: Sequence[int], memories: Sequence[str]) -> Found:
    """Return runs in which one of m records is sought by its label, 32 times: Full Lookup, nothing else in sight."""
    found: Found = {}
    for memory in memories:
        if how_to_get(memory) is None:
            cells = [(TaskSpec("full-lookup", n=m + QUERIES, m=m), external(memory, 1)) for m in records]
            found |= {(memory, m): runs for m, runs in zip(records, run_memories(cells, seeds), strict=True)}
    return found


def retrieval(found: Found, memories: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield how well each memory finds; words in place of figures where a system is not there."""
    for memory in memories:
        if (why := how_to_get(memory)) is not None:
            yield {"memory": NAMES[memory], "records": why, **dict.fromkeys(FIGURES)}
        for (name, m), runs in found.items():
            if name == memory:
                yield {"memory": NAMES[memory], "records": m, **_found(runs)}


def by_likeness(found: Found) -> Iterator[dict[str, Any]]:
    """Yield what finding by key is better by than finding by meaning, on the same tasks, paired by seed."""
    for (memory, m), alike in found.items():
        if memory in ALIKE:
            keyed = {run.seed: run for run in found["key-value", m]}
            apart = [_query_accuracy(keyed[run.seed]) - _query_accuracy(run) for run in alike]
            told = _interval("query accuracy", bootstrap_mean(apart, [run.seed for run in alike]))
            yield {"contrast": f"key–value − {NAMES[memory]}", "records": m, **told}


def _query_accuracy(run: MemoryScore) -> float:
    return run.score.consuming_correct / run.score.consuming


FIGURES = ("query accuracy", "95% interval", "searches confused", "its 95% interval", "trajectories")


def _found(runs: Sequence[MemoryScore]) -> Mapping[str, Any]:
    right = _ratio(runs, lambda run: run.score.consuming_correct, lambda run: run.score.consuming)
    confused = _ratio(runs, lambda run: run.memory.confused, lambda run: run.memory.searches)
    bounds = [f"{one.low:.3f} … {one.high:.3f}" for one in (right, confused)]
    figures = (right.estimate, bounds[0], confused.estimate, bounds[1], len(runs))
    return dict(zip(FIGURES, figures, strict=True))


def _ratio(runs: Sequence[MemoryScore], part: Any, whole: Any) -> Interval:
    """Return a pooled share with an interval over trajectories."""

    def pooled(rows: Sequence[int]) -> float:
        chosen = [runs[row] for row in rows]
        return sum(map(part, chosen)) / max(1, sum(map(whole, chosen)))

    return bootstrap(pooled, len(runs))


TITLES = {
    "medium": "Storage medium: Store–Recall, m = 16, pooled over h = 16, 8, 4, 2, no recovery; accuracy",
    "retrieval": "Retrieval: Full Lookup, m records and 32 queries by label, h = 1",
    "by-likeness": "Retrieval, the difference on the same tasks",
}


def medium_table(seeds: Sequence[int] = range(SEEDS)) -> Table:
    """Return the first contrast, which needs no system that is not shipped."""
    return listed("medium", TITLES["medium"], medium(seeds))


def study(
    seeds: Sequence[int] = range(SEEDS),
    retrieval_seeds: Sequence[int] = range(RETRIEVAL_SEEDS),
    records: Sequence[int] = RECORDS,
) -> list[Table]:
    """Return both contrasts as tables."""
    found = find(retrieval_seeds, records, MEMORIES) | find(retrieval_seeds[:REAL_SEEDS], records, REAL)
    return [
        medium_table(seeds),
        listed("retrieval", TITLES["retrieval"], retrieval(found, (*MEMORIES, *REAL))),
        listed("by-likeness", TITLES["by-likeness"], by_likeness(found)),
    ]


if __name__ == "__main__":
    show(study(), sys.argv[1:])
