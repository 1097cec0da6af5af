"""Exact key–value memory: a record is found by its label, and by nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from eirkit.lacuna.memories.kept import Kept
from eirkit.lacuna.memories.texts import labels
from eirkit.lacuna.memory import memories


@memories.add("key-value")
class KeyValue(Kept):
    """Finds the records whose labels stand in the query, in its order."""

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return [self._kept[label] for label in labels(query) if label in self._kept][:limit]
