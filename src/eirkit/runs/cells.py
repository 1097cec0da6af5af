"""What a plan is made of: a cell is one way of running a task, a run is a cell at one seed. Facts only."""

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
    """How an agent gets at its earlier results; None as a budget means no limit."""

    condition: str = CONTROLLED
    policy: str | None = "window"  # which records stay visible under Controlled Retention
    memory: str | None = None  # the external system
    memory_settings: Mapping[str, Any] = field(default_factory=dict)  # what it is made with
    panel: str = NATIVE  # strict: nothing is visible beside the external system, which holds h records at most
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
    only_lacking: bool = False  # leave out what the memory system brought in the control arm's run of the same seed


@dataclass(frozen=True, slots=True)
class RecoveryProbe:
    """In place of the task: read the way back to the first result that the access has lost from a step on."""

    kind: ClassVar[str] = "probe"
    from_step: int = 1


@dataclass(frozen=True, slots=True)
class CalculatorAid:
    """The agent may name operands that it sees and have the rule applied to them."""

    kind: ClassVar[str] = "calculator"


Intervention = RescueArm | RecoveryProbe | CalculatorAid
_INTERVENTIONS: dict[str, type[Intervention]] = {one.kind: one for one in (RescueArm, RecoveryProbe, CalculatorAid)}


def read_intervention(document: Mapping[str, Any] | None) -> Intervention | None:
    """Return the intervention of a run record; None where it has none."""
    if document is None:
        return None
    given = dict(document)
    return _INTERVENTIONS[given.pop("kind")](**given)


@dataclass(frozen=True)
class Cell:
    """A task, a model, an access and what is done to the run, without the seed."""

    task: TaskSpec  # its seed says nothing
    model: str
    access: Access
    options: ModelOptions = field(default_factory=ModelOptions)
    intervention: Intervention | None = None

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits that follow from everything that can change a record."""
        return sha256(canonical(self.as_json())).hexdigest()[:12]

    @property
    def memory_plan(self) -> MemoryPlan | None:
        """The plan of the access, with the run's own model where the memory system is to ask that one."""
        plan = self.access.memory_plan
        if plan is None or plan.settings.get(MODEL) != RUN_MODEL:
            return plan
        return replace(plan, settings={**plan.settings, MODEL: self.model})

    @property
    def follows(self) -> Cell | None:
        """The cell whose run of the same seed must have ended before; None where a run needs no other."""
        arm = self.intervention
        if not isinstance(arm, RescueArm) or not arm.only_lacking or arm.arm == "control":
            return None
        return replace(self, intervention=replace(arm, arm="control"))

    def run_id(self, seed: int) -> str:
        return f"{self.id}-{seed}"

    def as_json(self) -> dict[str, Any]:
        """Return the coordinates that every run record repeats; an intervention only where there is one."""
        done = self.intervention
        return {
            "task": without_seed(self.task),
            "model": self.model,
            "settings": self.settings(),
            "access": asdict(self.access),
            **({} if done is None else {"intervention": {"kind": done.kind, **asdict(done)}}),
        }

    def settings(self) -> dict[str, Any]:
        """Return what the model was asked with, without how it was reached."""
        return self.options.asked()
