"""`oracle`: returns the true results, whatever was written; the upper bound of comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eirkit.agents.memories.key_value import KeyValue
from eirkit.agents.memories.text_matching import find_labels
from eirkit.agents.memory import memories


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
