"""The plan protocol of the runner, and plans that list their cells.

A `Suite` is a plan too, which makes its cells lazily, because a grid may have millions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol

from eirkit.agents.exchange import canonical
from eirkit.runs.cells import Cell
from eirkit.runs.values import show_seeds

Planned = tuple[Cell, Sequence[int]]  # a cell and its seeds


class RunPlan(Protocol):
    """Cells with their seeds in execution order; iterating again gives the same cells."""

    @property
    def texts(self) -> bool:
        """Whether prompts and replies are kept beside their hashes."""
        ...

    def __len__(self) -> int:
        """The number of runs."""
        ...

    def plan(self) -> Iterator[Planned]: ...


@dataclass(frozen=True, slots=True)
class CellPlan:
    """A plan that lists its cells."""

    kind: str  # rescue, probe, capability, control, study
    cells: tuple[Planned, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)  # everything that determines the cells
    texts: bool = True

    def __len__(self) -> int:
        return sum(len(seeds) for _, seeds in self.cells)

    def plan(self) -> Iterator[Planned]:
        return iter(self.cells)


def plan_sha256(plan: RunPlan) -> str:
    """Return a hash of everything that can change a record, without names and connection limits."""
    digest = sha256(canonical({"texts": plan.texts}))
    for cell, seeds in plan.plan():
        digest.update(f"{cell.id} {show_seeds(seeds)}\n".encode())
    return digest.hexdigest()
