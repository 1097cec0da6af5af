"""`vector` and `vector-minilm`: rank records by the cosine similarity of embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eirkit.agents.memories.key_value import KeyValue
from eirkit.agents.memory import Item, Requirements, memories
from eirkit.agents.stores.embeddings import Vectors, find_embedding


@memories.add("vector")
class Vector(KeyValue):
    """Ranks every record by its similarity to the query.

    Args:
        embedding: `ngrams` (bundled), `minilm`, or a function at `module:name` from texts to unit vectors.
    """

    def __init__(self, *, embedding: str = "ngrams") -> None:
        super().__init__()
        self.embedding = embedding
        self._embed = find_embedding(embedding)
        self._vectors: dict[str, Vectors] = {}

    async def reset(self, scope: str) -> None:
        await super().reset(scope)
        self._vectors = {}

    async def write(self, item: Item) -> None:
        await super().write(item)
        self._vectors.pop(item.label, None)
        self._vectors[item.label] = self._embed([item.text])[0]

    async def forget(self, label: str) -> None:
        await super().forget(label)
        self._vectors.pop(label, None)

    async def search(self, query: str, limit: int) -> Sequence[str]:
        if not self._vectors:
            return ()
        likeness = np.stack(list(self._vectors.values())) @ self._embed([query])[0]
        texts, last = list(self._kept.values()), len(self._kept) - 1
        # Ties go to the newest record; scores are rounded to six digits so that machines agree on ties.
        best = np.argsort(-np.round(likeness[::-1].astype(np.float64), 6), kind="stable")[:limit]
        return [texts[last - i] for i in best.tolist()]


@memories.add("vector-minilm")
class MiniLmVector(Vector):
    """Vector memory over all-MiniLM-L6-v2, the embedding that most memory systems are set up with."""

    requirements = Requirements(weights=("minilm",))

    def __init__(self) -> None:
        super().__init__(embedding="minilm")
