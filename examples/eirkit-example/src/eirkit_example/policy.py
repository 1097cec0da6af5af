"""Served first: whoever was of use most often makes room."""

from __future__ import annotations

from collections.abc import Sequence

from eirkit.lacuna.tasks.policy import Policy, Record


class ServedFirst(Policy):
    """Drop the resident with the most uses, the oldest among equals; the newcomer always enters."""

    def victim(self, candidates: Sequence[Record], step: int) -> int:
        return max(candidates[:-1], key=lambda record: (record.uses, -record.inserted)).id
