"""The memory family: external systems that store what an agent writes and give back what it searches for.

Adapters see text and labels that were revealed; prompts, parsing and scoring are out of their reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from eirkit.registry import Registry


@dataclass(frozen=True, slots=True)
class MemoryCall:
    """What a session asks of the external memory."""

    verb: Literal["write", "search"]
    text: str  # the record to write, or the query


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """What the memory returned: nothing for a write, passages for a search, best first."""

    passages: tuple[str, ...] = ()


class MemorySystem(Protocol):
    """One external memory. `reset` starts an empty scope that no other run can see."""

    async def reset(self, scope: str) -> None: ...

    async def write(self, text: str) -> None: ...

    async def flush(self) -> None:
        """Return once everything written can be found."""
        ...

    async def search(self, query: str, limit: int) -> Sequence[str]: ...

    async def close(self) -> None: ...


memories: Registry[type[MemorySystem]] = Registry("memory", group="eirkit.memories", package="eirkit.lacuna.memories")
