"""The condition that the arms of a rescue share, and the cells in which they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eirkit.errors import SpecError
from eirkit.lacuna.memories.factory import check_plan
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.cells import Cell, Planned
from eirkit.lacuna.runs.family import TaskFamily, family_of
from eirkit.lacuna.tasks.policy import find_policy
from eirkit.lacuna.tasks.task import AnySpec, spec_of
from eirkit.records.evidence import RescueSettings
from eirkit.records.settings import ACTION_LIMIT, EXTERNAL, NATIVE, STRICT, Access, Arm, RescueArm, Truth


@dataclass(frozen=True, slots=True)
class RescueSetup:
    """The condition that all arms share."""

    spec: AnySpec
    h: int | None  # None in conversations
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
    def family(self) -> TaskFamily[Any, Any]:
        return family_of(self.spec)

    @property
    def arms(self) -> tuple[Arm, ...]:
        return self.family.arms

    @property
    def only_lacking(self) -> bool:
        """True if only what the memory did not return is restored, and counts."""
        return self.memory is not None and self.family.only_lacking

    def cell(self, arm: Arm, model: str, options: ModelOptions) -> Cell:
        done = RescueArm(arm, self.truth, only_lacking=self.only_lacking)
        return Cell(self.spec.with_seed(0), model, self.access, options, done)

    @property
    def access(self) -> Access:
        """How agents access their earlier results, in all arms."""
        return self.family.rescue_access(self._asked)

    @property
    def _asked(self) -> Access:
        if self.memory is not None:
            memory, panel = self.memory, self.panel or NATIVE
            return Access(EXTERNAL, None, memory.name, dict(memory.settings), panel, h=self.h, actions=self.actions)
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

    @classmethod
    def of(cls, settings: RescueSettings) -> RescueSetup:
        """Return the condition that the settings of a plan describe."""
        memory = None
        if settings.memory is not None:
            limit = settings.h if settings.panel == STRICT else None
            memory = MemoryPlan(settings.memory, settings.memory_settings, limit)
        return cls(
            spec_of(settings.task),
            settings.h,
            settings.policy,
            settings.truth,
            settings.managed,
            memory,
            settings.actions,
        )
