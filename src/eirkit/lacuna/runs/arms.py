"""The condition that the arms of a rescue share, and the cells in which they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eirkit.errors import SpecError
from eirkit.lacuna.agents.conditions import ACTION_LIMIT
from eirkit.lacuna.memories.factory import check_plan
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.cells import (
    ARMS,
    EXTERNAL,
    NATIVE,
    STRICT,
    TOLD_ARMS,
    Access,
    Arm,
    Cell,
    Planned,
    RescueArm,
    Truth,
)
from eirkit.lacuna.tasks.policy import find_policy
from eirkit.lacuna.tasks.task import TaskSpec, without_seed
from eirkit.lacuna.tasks.workload import Telling, find_workload


@dataclass(frozen=True, slots=True)
class RescueSetup:
    """The condition that all arms share."""

    spec: TaskSpec
    h: int
    policy: str = "fifo"
    truth: Truth = "true"
    managed: bool = False  # the action loop in place of Controlled Retention; recovery is off in both
    memory: MemoryPlan | None = None  # for the action loop; then the last h records stay in context, or none if strict
    actions: int = ACTION_LIMIT  # of a run in the action loop

    def cells(self, models: Iterable[str], options: ModelOptions, seeds: Sequence[int]) -> Iterator[Planned]:
        """Yield every arm of every model.

        Raises:
            SpecError: there are no seeds.
        """
        if not seeds:
            raise SpecError("no seeds are given; give at least one")
        for model in models:
            yield from ((self.cell(arm, model, options), seeds) for arm in self.arms)

    @property
    def told(self) -> bool:
        """True if the tasks are conversations, in which a sentence is shown with every question."""
        return isinstance(find_workload(self.spec.workload), Telling)

    @property
    def arms(self) -> tuple[Arm, ...]:
        return TOLD_ARMS if self.told else ARMS

    def cell(self, arm: Arm, model: str, options: ModelOptions) -> Cell:
        done = RescueArm(arm, self.truth, only_lacking=self.memory is not None and not self.told)
        return Cell(self.spec.with_seed(0), model, self.access, options, done)

    @property
    def access(self) -> Access:
        """How agents access their earlier results, in all arms."""
        if self.told and self.memory is None:
            return Access("truncated", None, h=self.h)
        if self.memory is not None:
            memory, panel = self.memory, self.panel or NATIVE
            return Access(EXTERNAL, None, memory.name, memory.settings, panel, h=self.h, actions=self.actions)
        if self.managed:
            return Access(self.policy, None, h=self.h, actions=self.actions)
        return Access(policy=self.policy, h=self.h)

    @property
    def panel(self) -> str | None:
        """`strict` if the memory is limited to h records and nothing stays in context; None without a memory."""
        return None if self.memory is None else NATIVE if self.memory.limit is None else STRICT

    def check(self) -> None:
        """Raise UsageError if the policy or the memory system is unknown or cannot be used as requested."""
        find_policy(self.policy)
        if self.memory is not None:
            check_plan(self.memory)

    def as_json(self) -> dict[str, Any]:
        """Return the condition without a task's seed; a memory and its limit of actions only where there is one."""
        how: dict[str, Any] = {name: getattr(self, name) for name in ("h", "policy", "truth", "managed")}
        if self.memory is not None:
            settings = dict(self.memory.settings)
            how |= {"memory": self.memory.name, "memory_settings": settings, "panel": self.panel}
        return {"task": without_seed(self.spec), **how, **self._limit()}

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> RescueSetup:
        """Return the condition that `as_json` wrote."""
        how = {name: settings[name] for name in ("h", "policy", "truth", "managed")}
        memory = None
        if settings.get("memory") is not None:
            limit = settings["h"] if settings["panel"] == STRICT else None
            memory = MemoryPlan(settings["memory"], settings["memory_settings"], limit)
        actions = settings.get("actions", ACTION_LIMIT)
        return cls(TaskSpec(**settings["task"]), **how, memory=memory, actions=actions)

    def _limit(self) -> dict[str, int]:
        return {} if self.actions == ACTION_LIMIT else {"actions": self.actions}
