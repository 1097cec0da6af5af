"""Memory systems that raise in each of the ways in which plug-ins do; few imports, so their processes start fast."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence

from eirkit.errors import InfrastructureError
from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.memories.memory import Item


class Panic(BaseException):
    """What a Rust extension raises when it panics: no Exception."""


def go_wrong(how: str) -> None:
    """Raise in one of the ways in which plug-ins do."""
    if how == "plain":
        raise ZeroDivisionError("by nothing")
    if how == "library":
        json.loads("{", object_hook=dict)
    if how == "chained":
        try:
            raise OSError("the disk is gone")
        except OSError as error:
            raise LookupError("no record") from error
    if how == "exits":
        sys.exit(3)
    if how == "cancels":
        raise asyncio.CancelledError("had enough")
    if how == "interrupts":
        raise KeyboardInterrupt("pretended")
    if how == "panics":
        raise Panic("index out of bounds")
    if how == "infrastructure":
        raise InfrastructureError("the server is on fire; put it out")


class BadMemory(KeyValue):
    """Breaks at every search."""

    def __init__(self, *, how: str) -> None:
        super().__init__()
        self.how = how

    async def search(self, query: str, limit: int) -> Sequence[str]:
        go_wrong(self.how)
        return await super().search(query, limit)


class LateBadMemory(BadMemory):
    """Breaks after having waited."""

    async def search(self, query: str, limit: int) -> Sequence[str]:
        await asyncio.sleep(0)
        return await super().search(query, limit)


class BlockingBadMemory:
    """Breaks in a plain function."""

    def __init__(self, *, how: str) -> None:
        self.how = how

    def reset(self, scope: str) -> None:
        pass

    def write(self, item: Item) -> None:
        go_wrong(self.how)

    def search(self, query: str, limit: int) -> list[str]:
        return []

    def read(self, label: str) -> None:
        return None
