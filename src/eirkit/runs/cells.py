"""Cells: a task, a model, its access to earlier results and an intervention; a run is a cell with a seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar, Literal

from eirkit.agents.exchange import canonical
from eirkit.agents.managed import ACTION_LIMIT
from eirkit.agents.model import ModelOptions
from eirkit.agents.stores.memory_factory import MODEL, RUN_MODEL, MemoryPlan
from eirkit.tasks.task import TaskSpec, without_seed

CONTROLLED, EXTERNAL = "controlled", "external"
NATIVE, STRICT = "native", "strict"


@dataclass(frozen=True, slots=True)
class Access:
    """How an agent accesses its earlier results; a budget of None means no limit."""

    condition: str = CONTROLLED
    policy: str | None = "window"  # which records stay visible under Controlled Retention
    memory: str | None = None  # the external system
    memory_settings: Mapping[str, Any] = field(default_factory=dict)  # its settings
    panel: str = NATIVE  # strict: nothing stays in context, and the external system is limited to h records
    h: int = 16
    reads: int | None = 0  # B_oracle
    recomputations: int | None = 0  # B
    actions: int = ACTION_LIMIT
    tool_calls: bool = False
    context_tokens: int | None = None  # the limit of the compaction condition
    summary_prompt: str | None = None  # prompt of the compaction condition; None for the default

    @property
    def is_controlled(self) -> bool:
        return self.condition == CONTROLLED

    @property
    def memory_plan(self) -> MemoryPlan | None:
        if self.memory is None:
            return None
        return MemoryPlan(self.memory, self.memory_settings, self.h if self.panel == STRICT else None)


Arm = Literal["control", "oracle", "sham"]
ARMS: tuple[Arm, ...] = ("control", "oracle", "sham")
Truth = Literal["true", "submitted"]  # what the oracle restores


@dataclass(frozen=True, slots=True)
class RescueArm:
    """One arm of a rescue: nothing, the missing result, or a sham of equal length at every step that misses one."""

    kind: ClassVar[str] = "rescue"
    arm: Arm
    truth: Truth = "true"
    only_lacking: bool = (
        False  # inject only what the memory system did not return in the control arm's run of the same seed
    )


@dataclass(frozen=True, slots=True)
class RecoveryProbe:
    """Instead of the task, rebuild the first result that is lost at or after a step."""

    kind: ClassVar[str] = "probe"
    from_step: int = 1


@dataclass(frozen=True, slots=True)
class CalculatorAid:
    """The agent may name visible operands, and the harness applies the rule to them."""

    kind: ClassVar[str] = "calculator"


Intervention = RescueArm | RecoveryProbe | CalculatorAid
_INTERVENTIONS: dict[str, type[Intervention]] = {one.kind: one for one in (RescueArm, RecoveryProbe, CalculatorAid)}


def read_intervention(document: Mapping[str, Any] | None) -> Intervention | None:
    """Return the intervention of a run record; None if it has none."""
    if document is None:
        return None
    given = dict(document)
    return _INTERVENTIONS[given.pop("kind")](**given)


@dataclass(frozen=True)
class Cell:
    """A task, a model, an access and an intervention, without the seed."""

    task: TaskSpec  # its seed is ignored
    model: str
    access: Access
    options: ModelOptions = field(default_factory=ModelOptions)
    intervention: Intervention | None = None

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits of a hash over everything that can change a record."""
        return sha256(canonical(self.as_json())).hexdigest()[:12]

    @property
    def memory_plan(self) -> MemoryPlan | None:
        """The memory plan of the access, with the run's model inserted if the memory system uses it."""
        plan = self.access.memory_plan
        if plan is None or plan.settings.get(MODEL) != RUN_MODEL:
            return plan
        return replace(plan, settings={**plan.settings, MODEL: self.model})

    @property
    def follows(self) -> Cell | None:
        """The cell whose run of the same seed must finish first; None if there is none."""
        arm = self.intervention
        if not isinstance(arm, RescueArm) or not arm.only_lacking or arm.arm == "control":
            return None
        return replace(self, intervention=replace(arm, arm="control"))

    def run_id(self, seed: int) -> str:
        return f"{self.id}-{seed}"

    def as_json(self) -> dict[str, Any]:
        """Return the coordinates that every run record contains."""
        done = self.intervention
        return {
            "task": without_seed(self.task),
            "model": self.model,
            "settings": self.settings(),
            "access": asdict(self.access),
            **({} if done is None else {"intervention": {"kind": done.kind, **asdict(done)}}),
        }

    def settings(self) -> dict[str, Any]:
        """Return the model options that can change a reply."""
        return self.options.asked()
