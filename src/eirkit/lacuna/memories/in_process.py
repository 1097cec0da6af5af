"""Memory systems that run in this process and need no service: bm25, vector, key-value, text and controls.

Words are numbered when they are written, so that rebuilding the index does not number them again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from eirkit.lacuna.memories.embeddings import Vectors, find_embedding
from eirkit.lacuna.memories.memory import Item, MemorySystem, MemoryUsage, Requirements, memories

_LABEL = re.compile(r"A_0*(\d+)")
_WORD = re.compile(r"[^\W_]+(?:_[^\W_]+)*")


def find_labels(text: str) -> list[str]:
    """Return the distinct labels in a text in order, without leading zeros: A_7."""
    return list(dict.fromkeys(f"A_{number}" for number in _LABEL.findall(text)))


def mentions(texts: Sequence[str], label: str) -> str | None:
    """Return the texts that mention a label, one a line; None if there is none."""
    return "\n".join(text for text in texts if label in find_labels(text)) or None


def find_words(text: str) -> list[str]:
    """Return the words of a text in lower case, labels without leading zeros."""
    return [_LABEL.sub(r"A_\1", word).lower() for word in _WORD.findall(text)]


def usage_of_texts(texts: Collection[str]) -> MemoryUsage:
    """Return the number of texts and their bytes as the usage of a memory."""
    return MemoryUsage(len(texts), sum(len(text.encode("utf-8", "surrogatepass")) for text in texts))


def newest_first(texts: Iterable[str], limit: int) -> list[str]:
    """Return the last `limit` distinct texts, newest first."""
    return list(dict.fromkeys(reversed(list(texts))))[:limit]


NO_LABEL = (
    "it finds records by their labels alone; questions about conversations name none, so it returned nothing to them"
)


@memories.add("key-value")
class KeyValue(MemorySystem):
    """Finds the records whose labels occur in the query, in that order."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}
        self._warnings: tuple[str, ...] = ()

    async def reset(self, scope: str) -> None:
        self._kept, self._warnings = {}, ()

    async def write(self, item: Item) -> None:
        self._kept.pop(item.label, None)  # a rewritten record becomes the newest
        self._kept[item.label] = item.text

    async def search(self, query: str, limit: int) -> Sequence[str]:
        labels = find_labels(query)
        if not labels:
            self._warnings = (NO_LABEL,)
        return [self._kept[label] for label in labels if label in self._kept][:limit]

    async def read(self, label: str) -> str | None:
        return self._kept.get(label)

    async def contents(self) -> Sequence[str]:
        return list(self._kept.values())

    async def forget(self, label: str) -> None:
        self._kept.pop(label, None)

    async def usage(self) -> MemoryUsage:
        return replace(usage_of_texts(self._kept.values()), warnings=self._warnings)

    async def teardown(self) -> None:
        self._kept = {}


@memories.add("text")
class Text(MemorySystem):
    """Shows the newest lines that have a word of the query; nothing is ever replaced."""

    def __init__(self) -> None:
        self._lines: list[Item] = []

    async def reset(self, scope: str) -> None:
        self._lines = []

    async def write(self, item: Item) -> None:
        self._lines.append(item)

    async def search(self, query: str, limit: int) -> Sequence[str]:
        wanted = set(find_words(query))
        return newest_first((line.text for line in self._lines if not wanted.isdisjoint(find_words(line.text))), limit)

    async def read(self, label: str) -> str | None:
        return next((line.text for line in reversed(self._lines) if line.label == label), None)

    async def contents(self) -> Sequence[str]:
        return [line.text for line in self._lines]

    async def forget(self, label: str) -> None:
        self._lines = [line for line in self._lines if line.label != label]

    async def usage(self) -> MemoryUsage:
        return usage_of_texts([line.text for line in self._lines])

    async def teardown(self) -> None:
        self._lines = []


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


@memories.add("null")
class Null(KeyValue):
    """Accepts every write and finds nothing."""

    async def write(self, item: Item) -> None:
        pass

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return ()


@memories.add("oracle")
class Oracle(KeyValue):
    """Finds the true record of every label in the query."""

    def __init__(self, records: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.records = records or {}

    @classmethod
    def for_task(cls, records: Mapping[str, str]) -> Oracle:
        """Return the oracle of one task: its true results, by label."""
        return cls(records)

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return [self.records[label] for label in find_labels(query) if label in self.records][:limit]

    async def read(self, label: str) -> str | None:
        return self.records.get(label)


FLOOD_CHARACTERS = 4_000_000


@memories.add("broken-drops")
class Drops(KeyValue):
    """Loses every third write without an error."""

    def __init__(self) -> None:
        super().__init__()
        self._writes = 0

    async def reset(self, scope: str) -> None:
        await super().reset(scope)
        self._writes = 0

    async def write(self, item: Item) -> None:
        self._writes += 1
        if self._writes % 3:
            await super().write(item)


@memories.add("broken-labels")
class Mislabels(KeyValue):
    """Returns a record with the value of another label."""

    async def search(self, query: str, limit: int) -> Sequence[str]:
        found = await super().search(query, limit)
        others = list(self._kept.values())
        return [self._with_other_value(text, others) for text in found]

    def _with_other_value(self, text: str, others: Sequence[str]) -> str:
        label, _, value = text.partition(" = ")
        values = [other.partition(" = ")[2] for other in others]
        return f"{label} = {next((other for other in values if other != value), value)}"


@memories.add("sham")
class ShamMemory(Mislabels):
    """Returns as many records as asked for, with the content of others: what their form and length alone contribute."""

    async def search(self, query: str, limit: int) -> Sequence[str]:
        if find_labels(query):
            return await super().search(query, limit)
        wanted = set(find_words(query))
        return [text for text in self._kept.values() if wanted.isdisjoint(find_words(text))][:limit]


@memories.add("broken-late")
class Late(KeyValue):
    """Never answers a search in time."""

    def __init__(self, seconds: float = 3_600.0) -> None:
        super().__init__()
        self.seconds = seconds

    async def search(self, query: str, limit: int) -> Sequence[str]:
        await asyncio.sleep(self.seconds)
        return await super().search(query, limit)


@memories.add("broken-raises")
class Raises(KeyValue):
    """Raises an error at every search."""

    async def search(self, query: str, limit: int) -> Sequence[str]:
        raise ConnectionError("the store is gone")


@memories.add("broken-floods")
class Floods(KeyValue):
    """Buries what it finds under megabytes of text."""

    async def search(self, query: str, limit: int) -> Sequence[str]:
        found = await super().search(query, limit)
        return ["x" * FLOOD_CHARACTERS, *found]
