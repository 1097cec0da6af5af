"""`bm25`: ranks records by BM25 with the bm25s library; the index is rebuilt on the first search after a write.

Words are numbered when they are written, so that rebuilding the index does not number them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eirkit.agents.memories.key_value import KeyValue
from eirkit.agents.memories.text_matching import find_words
from eirkit.agents.memory import Item, memories


@memories.add("bm25")
class Bm25(KeyValue):
    """Ranks records that share a word with the query by Okapi BM25 (Lucene's form, k1 = 1.5, b = 0.75)."""

    def __init__(self) -> None:
        super().__init__()
        self._forget_all()

    async def reset(self, scope: str) -> None:
        await super().reset(scope)
        self._forget_all()

    def _forget_all(self) -> None:
        self._words: dict[str, list[int]] = {}  # word numbers of each record
        self._numbers: dict[str, int] = {}
        self._index: Any = None

    async def write(self, item: Item) -> None:
        await super().write(item)
        self._words.pop(item.label, None)  # keeps the order of the records
        self._words[item.label] = [self._numbers.setdefault(word, len(self._numbers)) for word in find_words(item.text)]
        self._index = None

    async def forget(self, label: str) -> None:
        await super().forget(label)
        self._words.pop(label, None)
        self._index = None

    async def flush(self) -> None:
        if self._index is None and any(self._words.values()):  # the library divides by the mean length
            from bm25s import BM25  # imported only if this memory is used

            self._index = BM25(backend="numpy")
            # A word that no record contains any more keeps its number and scores zero.
            self._index.index((list(self._words.values()), dict(self._numbers)), show_progress=False)

    async def search(self, query: str, limit: int) -> Sequence[str]:
        await self.flush()
        if self._index is None:
            return ()
        known = [word for word in find_words(query) if word in self._index.vocab_dict]
        scores = self._index.get_scores(known) if known else np.zeros(len(self._kept))
        texts, last = list(self._kept.values()), len(self._kept) - 1
        # Ties go to the newest record, so that runs are reproducible.
        best = [last - i for i in np.argsort(-scores[::-1], kind="stable")[:limit].tolist()]
        return [texts[i] for i in best if scores[i] > 0]
