"""Names in records that stand for code: names come in, those that would be loaded from a file or module go out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_RESOLVED = ("workload", "policy", "memory", "condition")  # axes of a suite that are looked up when it is read


def foreign(names: Iterable[object]) -> list[str]:
    """Return the names of the form `file.py:Name` or `module:Name`: looking one up runs its code."""
    return [name for name in names if isinstance(name, str) and ":" in name]


def foreign_in(suite: Mapping[str, Any]) -> list[str]:
    """Return the same of a suite as a manifest holds it; models are not looked up by reading one."""
    return foreign(name for grid in suite.get("grid", ()) for axis in _RESOLVED for name in _listed(grid.get(axis)))


def _listed(value: object) -> Iterator[object]:
    yield from value if isinstance(value, (list, tuple)) else (value,)
