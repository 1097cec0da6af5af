"""Explains why MiniLM finds more records among 400 than among 200: by how its tokenizer splits the labels.

Every label of a Full Lookup task is searched among the first 200 and among all 400 records, as the vector memory does;
shares of labels found are printed separately for labels of one token and labels that are split.
`python -m studies.label_pieces` prints them; a text takes some 35 ms, so that four seeds take about a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.lacuna.memories import embeddings as minilm
from eirkit.lacuna.memories.embeddings import find_embedding
from eirkit.lacuna.memories.memory import SEARCH_LIMIT
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.task import TaskSpec, show_record
from eirkit.report.table import Column, Table
from studies.printing import show

RECORDS = (200, 400)
QUERIES = 32  # as in the study of retrieval, so that labels are as wide
SEEDS = range(4)

Found = NDArray[np.bool_]


def labels_of(texts: Sequence[str]) -> list[str]:
    """Return the labels of records, as agents ask for them."""
    return [text.partition(" = ")[0] for text in texts]


def find_each(records: NDArray[Any], queries: NDArray[Any]) -> Found:
    """Return for each query whether the record of the same position is among the nearest."""
    # The newest of equals first and to six digits, as in the memory.
    likeness = np.round((queries @ records[::-1].T).astype(np.float64), 6)
    best = len(records) - 1 - np.argsort(-likeness, axis=1, kind="stable")[:, :SEARCH_LIMIT]
    found: Found = (best == np.arange(len(queries))[:, None]).any(axis=1)
    return found


def are_cut(labels: Sequence[str]) -> Found:
    """Return for each label whether MiniLM's tokenizer cuts its number in pieces, which it marks by ##."""
    from tokenizers import Tokenizer

    cutter: Any = Tokenizer.from_file(str(minilm.weights_folder() / "tokenizer.json"))
    return np.array([any(token.startswith("##") for token in cutter.encode(label).tokens) for label in labels])


def rows_of(held: int, found: NDArray[Any], cut: Found) -> Iterator[dict[str, Any]]:
    """Yield how many of the labels of some kind there are, and the share of them that is found."""
    kinds = {
        "all": np.full(held, True),
        f"the first {RECORDS[0]}": np.arange(held) < RECORDS[0],
        "one token": ~cut[:held],
        "in pieces": cut[:held],
    }
    for name, chosen in kinds.items():
        yield {"records": held, "kind": name, "labels": int(chosen.sum()), "found": float(found[chosen].mean())}


def measure(seeds: Sequence[int]) -> Table:
    """Return the share of labels found among so many records, by kind of label."""
    embed, most = find_embedding("minilm"), max(RECORDS)
    tasks = [generate(TaskSpec("full-lookup", n=most + QUERIES, m=most, seed=seed)) for seed in seeds]
    texts = [[show_record(task.spec, t, task.step(t).answer) for t in range(1, most + 1)] for task in tasks]
    labels = labels_of(texts[0])
    queries, records = embed(labels), [embed(some) for some in texts]
    cut, rows = are_cut(labels), list[dict[str, Any]]()
    for held in RECORDS:
        found = np.mean([find_each(some[:held], queries[:held]) for some in records], axis=0)
        rows += rows_of(held, found, cut)
    columns = (
        Column("records", "records"),
        Column("kind", "labels"),
        Column("labels", "number"),
        Column("found", "found"),
    )
    return Table("label-pieces", f"MiniLM: labels found among {SEARCH_LIMIT}, {len(tasks)} seeds", columns, tuple(rows))


if __name__ == "__main__":
    show([measure(SEEDS)], sys.argv[1:])
