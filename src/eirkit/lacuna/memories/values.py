"""Checks the types of what the methods of a memory system return, here and in its own process."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TypeVar

from eirkit.errors import StoreError
from eirkit.lacuna.memories.memory import MemoryUsage, signature_of

T = TypeVar("T")


def start_call(verb: str, method: Callable[..., T], arguments: tuple[object, ...]) -> T:
    """Call a method of a memory system.

    Raises:
        StoreError: it has another signature than the protocol.
    """
    try:
        return method(*arguments)
    except TypeError as error:
        if _takes(method, arguments):
            raise  # raised inside the method, not by the call
        raise StoreError(
            f"the memory system's {verb} cannot be called ({error}); write it as `{signature_of(verb)}`"
        ) from error


def _takes(method: Callable[..., object], arguments: tuple[object, ...]) -> bool:
    try:
        inspect.signature(method).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # a compiled function without a signature
        return True
    return True


def check_passages(found: object) -> list[str]:
    """Return the passages of a search; raise StoreError if they are not a sequence of strings."""
    if isinstance(found, str) or not isinstance(found, Sequence):
        kind = "None" if found is None else f"a {type(found).__name__}"
        raise StoreError(
            f"the memory system's search returned {kind}; return a list of strings, [] if nothing is found"
        )
    for text in found:
        if not isinstance(text, str):
            kind = type(text).__name__
            raise StoreError(
                f"the memory system's search returned a list that contains a {kind}; return a list of strings"
            )
    return list(found)


def check_contents(held: object) -> list[str] | None:
    """Return the texts that a system holds; raise StoreError if they are neither None nor a sequence of strings."""
    return None if held is None else check_passages(held)


def check_read(text: object) -> str | None:
    """Return what is stored under a label; raise StoreError if it is neither a string nor None."""
    if text is None or isinstance(text, str):
        return text
    raise StoreError(
        f"the memory system's read returned a {type(text).__name__}; return the text under the label, or None"
    )


def check_usage(used: object) -> MemoryUsage:
    """Return the usage that a system reports; all fields are unknown if it returned None."""
    if used is None:
        return MemoryUsage()
    if not isinstance(used, MemoryUsage):
        kind = type(used).__name__
        raise StoreError(f"the memory system's usage returned a {kind}; return a MemoryUsage, or None if unknown")
    return used
