"""Exact key–value memory: a record is found by its label, and by nothing else."""

from __future__ import annotations

from eirkit.agents.memories.by_label import Kept
from eirkit.agents.memory import memories


@memories.add("key-value")
class KeyValue(Kept):
    """Finds the records whose labels stand in the query, in its order."""
