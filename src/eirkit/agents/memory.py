"""The memory family: external systems that store what an agent writes and give back what it searches for.

Adapters see labels and text that were revealed; prompts, parsing and scoring are out of their reach. Whatever an
adapter raises is put down to the memory system; see docs/add-a-memory.md.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from eirkit.errors import InputFileError, UnknownNameError, UsageError
from eirkit.registry import Registry, load_object, located

SEARCH_LIMIT = 5  # passages a search shows
LONGEST_PASSAGE = 2_000  # characters of one passage


@dataclass(frozen=True, slots=True)
class MemoryCall:
    """What a session asks of the external memory."""

    verb: Literal["write", "search"]
    text: str  # the record to write, or the query
    steps: tuple[int, ...] = ()  # whose record is written, or sought by number


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """What the memory returned: nothing for a write, passages for a search, best first."""

    passages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One record as it is handed to a memory system."""

    label: str  # such as A_7, without zeros; a later record with the same label replaces the earlier one
    text: str  # such as A_07 = 0042, as agents write it: labels and values padded to the task's width


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """What a system holds for its scope, and what its own model calls took since `reset`; None: it cannot tell."""

    records: int | None = None
    bytes: int | None = None  # of the store: on disk, or of the texts in memory
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0


class MemorySystem(Protocol):
    """One external memory, used by one run at a time. `reset` starts an empty scope that no other run can see."""

    async def setup(self) -> None:
        """Open the store, start what must run; before anything else, once."""
        ...

    async def reset(self, scope: str) -> None: ...

    async def write(self, item: Item) -> None: ...

    async def flush(self) -> None:
        """Return once everything written can be found."""
        ...

    async def search(self, query: str, limit: int) -> Sequence[str]: ...

    async def read(self, label: str) -> str | None:
        """Return what is stored under a label, by key or by going through everything, never by similarity."""
        ...

    async def usage(self) -> MemoryUsage | None:
        """Return what is held; None where the system cannot tell."""
        ...

    async def teardown(self) -> None:
        """Close and stop everything; also after a failure, and where `setup` did not finish."""
        ...


@runtime_checkable
class Forgetting(Protocol):
    """A system that can remove a record, so that it can be held to a number of them."""

    async def forget(self, label: str) -> None: ...


@runtime_checkable
class Demanding(Protocol):
    """A system that is not usable everywhere."""

    @classmethod
    def absent(cls) -> str | None:
        """Return why it cannot run here and what to do about it; None if it can."""
        ...


memories: Registry[type[MemorySystem]] = Registry("memory", group="eirkit.memories", package="eirkit.agents.memories")


def find_memory(name: str) -> type[MemorySystem]:
    """Return the memory system with this name or at this `path/file.py:Name`.

    Raises:
        UsageError: it is no class, or a file without the name of one; the message names those that are in it.
    """
    if name.endswith(".py"):
        raise UsageError(f"memory {name!r} names a file and no class in it; write {_classes_of(name)}")
    try:
        kind = memories.get(name)
    except UnknownNameError as error:
        if ":" not in name:
            raise
        module, _, sought = name.rpartition(":")
        raise UnknownNameError(error.family, sought, (one for one in error.known if _is_system(module, one))) from None
    if not isinstance(kind, type):
        raise UsageError(f"memory {name!r} is no class; name the class of a memory system")
    return kind


def memory_aliases(name: str) -> frozenset[str]:
    """Return what else a memory system may be called: by its class, or by the names that class is registered under."""
    kind = find_memory(name)
    registered = (one for one in memories.loaded() if memories.get(one) is kind)
    return frozenset({name, kind.__name__, *registered})


def _is_system(module: str, name: str) -> bool:
    """True for a class that is meant to be a memory system; imports, functions and instances are none."""
    kind = load_object(f"{module}:{name}")
    return isinstance(kind, type) and kind is not MemorySystem and hasattr(kind, "search")


def _classes_of(name: str) -> str:
    """Return how the classes of a file are named; nothing of it is run."""
    try:
        body = ast.parse(located(name).read_bytes()).body
    except (OSError, ValueError, SyntaxError) as error:
        raise InputFileError(f"cannot read {name} ({error}); give an existing path/file.py:Name") from error
    classes = [f"{name}:{one.name}" for one in body if isinstance(one, ast.ClassDef) and one.name[0] != "_"]
    return " or ".join(classes) or f"{name}:Name, once it has a class with that name"
