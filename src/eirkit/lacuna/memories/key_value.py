"""Exact key–value memory: a record is found by its label, and by nothing else."""

import re
from collections.abc import Sequence

from eirkit.lacuna.memory import memories

_LABEL = re.compile(r"A_0*(\d+)")


@memories.add("key-value")
class KeyValue:
    """Keeps the last text written under each label."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    async def reset(self, scope: str) -> None:
        self._kept = {}

    async def write(self, text: str) -> None:
        for label in _LABEL.findall(text):
            self._kept[label] = text

    async def flush(self) -> None:
        pass

    async def search(self, query: str, limit: int) -> Sequence[str]:
        found = (self._kept[label] for label in _LABEL.findall(query) if label in self._kept)
        return list(dict.fromkeys(found))[:limit]

    async def close(self) -> None:
        pass
