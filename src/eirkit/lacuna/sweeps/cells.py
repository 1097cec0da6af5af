"""What a sweep is made of: a cell is one way of running a task, a run is a cell at one seed. Facts only."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

from eirkit.lacuna.managed import ACTION_LIMIT
from eirkit.lacuna.model import ModelOptions
from eirkit.lacuna.serving.exchange import canonical
from eirkit.lacuna.task import TaskSpec

CONTROLLED, EXTERNAL = "controlled", "external"
_OPERATIONAL = ("timeout_seconds", "retries", "connections")  # how a model is reached, not what it is asked


@dataclass(frozen=True, slots=True)
class Access:
    """How an agent gets at its earlier results; None as a budget means no limit."""

    condition: str = CONTROLLED
    policy: str | None = "window"  # which records stay visible under Controlled Retention
    memory: str | None = None  # the external system
    h: int = 16
    reads: int | None = 0  # B_oracle
    recomputations: int | None = 0  # B
    actions: int = ACTION_LIMIT
    tool_calls: bool = False
    context_tokens: int | None = None  # the limit of the compaction condition
    summary_prompt: str | None = None  # what it asks for when the context is full; its own words unless given

    @property
    def is_controlled(self) -> bool:
        return self.condition == CONTROLLED


@dataclass(frozen=True)
class Cell:
    """A task, a model and an access, without the seed."""

    task: TaskSpec  # its seed says nothing
    model: str
    access: Access
    options: ModelOptions = field(default_factory=ModelOptions)

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits that follow from everything that can change a record."""
        return sha256(canonical(self.as_json())).hexdigest()[:12]

    def run_id(self, seed: int) -> str:
        return f"{self.id}-{seed}"

    def as_json(self) -> dict[str, Any]:
        """Return the coordinates that every run record repeats."""
        task = self.task.as_json()
        del task["seed"]
        return {"task": task, "model": self.model, "settings": self.settings(), "access": asdict(self.access)}

    def settings(self) -> dict[str, Any]:
        """Return what the model was asked with, without how it was reached."""
        given = {name: getattr(self.options, name) for name in ModelOptions.__slots__ if name not in _OPERATIONAL}
        return {**given, "extra": dict(self.options.extra)}
