"""What a runner carries out: cells with their seeds, the kind of experiment they belong to, and what produced them.

A `Suite` is a plan too; it makes its cells one by one, since a grid may have millions.
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
    """Cells in the order in which they are run; iterating again gives the same."""

    @property
    def texts(self) -> bool:
        """Whether prompts and replies are kept beside their hashes."""
        ...

    def __len__(self) -> int:
        """How many runs it has."""
        ...

    def plan(self) -> Iterator[Planned]: ...


@dataclass(frozen=True, slots=True)
class CellPlan:
    """A plan that lists its cells."""

    kind: str  # rescue, probe, capability, control, study
    cells: tuple[Planned, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)  # everything that decides which cells there are
    texts: bool = True

    def __len__(self) -> int:
        return sum(len(seeds) for _, seeds in self.cells)

    def plan(self) -> Iterator[Planned]:
        return iter(self.cells)


def plan_sha256(plan: RunPlan) -> str:
    """Return a hash of all that can change a record: defaults included, names and connection limits not."""
    digest = sha256(canonical({"texts": plan.texts}))
    for cell, seeds in plan.plan():
        digest.update(f"{cell.id} {show_seeds(seeds)}\n".encode())
    return digest.hexdigest()
