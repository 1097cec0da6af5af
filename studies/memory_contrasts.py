"""RQ3 and RQ4, two contrasts with intervals: key–value against text, and finding by key against finding by likeness.

python -m studies.memory_contrasts [--json | --markdown]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eirkit.lacuna.evidence.statistics import Interval, bootstrap, bootstrap_mean
from eirkit.lacuna.sweeps.cells import Access
from eirkit.lacuna.task import TaskSpec
from studies.agent_runs import Run, run_cell, show
from studies.memory_runs import MANY_ACTIONS, MemoryRun, external, how_to_get, run_memories
from studies.retention_cells import CAPACITIES, STORAGE

SEEDS = 36
RETRIEVAL_SEEDS = 20
REAL_SEEDS = 5  # of a system that takes a tenth of a second a call
RECORDS = (16, 64, 200, 400)
QUERIES = 32  # a run
MEMORIES = ("key-value", "bm25", "vector", "vector-minilm")
REAL = ("mem0",)
NAMES = {
    "key-value": "key–value",
    "bm25": "BM25",
    "vector": "vectors, trigrams",
    "vector-minilm": "vectors, MiniLM",
    "mem0": "Mem0 over MiniLM",
}
AGENTS: dict[str, tuple[str, float | None]] = {
    "recoverer: notes every STORE and no copy": ("recoverer", None),
    "note-taker, p = 1.0: notes every answer": ("note-taker", 1.0),
    "note-taker, p = 0.4: notes four answers of ten": ("note-taker", 0.4),
    "note-taker, p = 0.0: notes nothing": ("note-taker", 0.0),
}


def difference(first: Sequence[Run], second: Sequence[Run], seeds: Sequence[int]) -> Interval:
    """Return first − second in accuracy, paired by seed, with an interval over trajectories."""
    apart = [a.score.accuracy - b.score.accuracy for a, b in zip(first, second, strict=True)]
    whose = [seeds[number % len(seeds)] for number in range(len(apart))]
    return bootstrap_mean(apart, whose)


def medium(seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield what key–value is better by than text, both under LRU, on Store–Recall without recovery, m = 16."""
    spec = TaskSpec("store-recall")
    for name, (agent, p) in AGENTS.items():
        sides = {
            condition: [
                run
                for h in CAPACITIES
                for run in run_cell(spec, Access(condition, None, h=h, actions=MANY_ACTIONS), agent, seeds, p=p)
            ]
            for condition in ("lru", "scratch-lru")
        }
        found = difference(sides["lru"], sides["scratch-lru"], seeds)
        yield {"who writes": name, "medium": "LRU records − LRU text", **_interval("difference", found)}
    cells = [(spec, external(memory, 4)) for memory in ("key-value", "text")]
    keyed, text = run_memories(cells, seeds)
    found = difference(keyed, text, seeds)  # type: ignore[arg-type]  # both kinds of run have a score
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


def retrieval(
    seeds: Sequence[int], records: Sequence[int] = RECORDS, memories: Sequence[str] = MEMORIES
) -> Iterator[dict[str, Any]]:
    """Yield how well each memory finds one of many records by its label: Full Lookup, m STOREs and 32 queries."""
    for memory in memories:
        if (why := how_to_get(memory)) is not None:
            yield {"memory": NAMES[memory], "records": why, **dict.fromkeys(FIGURES)}
            continue
        cells = [(TaskSpec("full-lookup", n=m + QUERIES, m=m), external(memory, 1)) for m in records]
        for m, runs in zip(records, run_memories(cells, seeds), strict=True):
            yield {"memory": NAMES[memory], "records": m, **_found(runs)}


def by_likeness(seeds: Sequence[int], records: Sequence[int] = RECORDS) -> Iterator[dict[str, Any]]:
    """Yield what finding by key is better by than finding by meaning, on the same tasks, paired by seed."""
    if how_to_get("vector-minilm") is not None:
        return
    for m in records:
        spec = TaskSpec("full-lookup", n=m + QUERIES, m=m)
        keyed, alike = run_memories([(spec, external(name, 1)) for name in ("key-value", "vector-minilm")], seeds)
        apart = [_query_accuracy(a) - _query_accuracy(b) for a, b in zip(keyed, alike, strict=True)]
        found = bootstrap_mean(apart, list(seeds))
        yield {"contrast": "key–value − vectors, MiniLM", "records": m, **_interval("query accuracy", found)}


def _query_accuracy(run: MemoryRun) -> float:
    return run.score.consuming_correct / run.score.consuming


FIGURES = ("query accuracy", "95% interval", "searches confused", "its 95% interval", "trajectories")


def _found(runs: Sequence[MemoryRun]) -> Mapping[str, Any]:
    right = _ratio(runs, lambda run: run.score.consuming_correct, lambda run: run.score.consuming)
    confused = _ratio(runs, lambda run: run.memory["confused"], lambda run: run.memory["searches"])
    bounds = [f"{one.low:.3f} … {one.high:.3f}" for one in (right, confused)]
    figures = (right.estimate, bounds[0], confused.estimate, bounds[1], len(runs))
    return dict(zip(FIGURES, figures, strict=True))


def _ratio(runs: Sequence[MemoryRun], part: Any, whole: Any) -> Interval:
    """Return a pooled share with an interval over trajectories."""

    def pooled(rows: Sequence[int]) -> float:
        chosen = [runs[row] for row in rows]
        return sum(map(part, chosen)) / max(1, sum(map(whole, chosen)))

    return bootstrap(pooled, len(runs))


FURTHER = {
    "medium": "Storage medium: Store–Recall, m = 16, pooled over h = 16, 8, 4, 2, no recovery; accuracy",
    "retrieval": "Retrieval: Full Lookup, m records and 32 queries by label, h = 1",
    "by_likeness": "Retrieval, the difference on the same tasks",
}


def study(
    seeds: Sequence[int] = range(SEEDS),
    retrieval_seeds: Sequence[int] = range(RETRIEVAL_SEEDS),
    records: Sequence[int] = RECORDS,
) -> dict[str, Any]:
    """Return both contrasts as one document."""
    return {
        "id": "memory-contrasts",
        "title": "Storage medium and retrieval, with reference agents",
        "kind": "reference agents",
        "verdict": "no published partner",
        "rows": [],
        "sections": {},
        "medium": list(medium(seeds)),
        "retrieval": [
            *retrieval(retrieval_seeds, records),
            *retrieval(retrieval_seeds[:REAL_SEEDS], records, REAL),
        ],
        "by_likeness": list(by_likeness(retrieval_seeds, records)),
    }


if __name__ == "__main__":
    made = study()
    show(made, {name: title for name, title in FURTHER.items() if made[name]}, sys.argv[1:])
