"""Cells (task, model, condition, intervention), the coordinates that name them, and the injections of a rescue.

A `Suite` is a plan too, which makes its cells lazily, because a grid may have millions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol

from msgspec import structs

from eirkit.lacuna import MODEL, RUN_MODEL
from eirkit.lacuna.agents.session import Injector, inject_nothing
from eirkit.lacuna.memories.plan import MemoryPlan, memory_factory
from eirkit.lacuna.models.factory import protocol_of, split_model
from eirkit.lacuna.models.model import ModelOptions, canonical
from eirkit.lacuna.runs.family import Unrecovered, family_of
from eirkit.lacuna.tasks.task import AnySpec, Payload, TaskInstance, spec_of
from eirkit.lacuna.tasks.view import PublicStep, Record
from eirkit.records.events import Decision
from eirkit.records.settings import STRICT, Access, Arm, Intervention, Repeat, RescueArm, Setting, Truth
from eirkit.seeds import below, show_seeds, words

ARMS: tuple[Arm, ...] = ("control", "oracle", "sham")
CONVERSATION_ARMS: tuple[Arm, ...] = (*ARMS, "stale")  # of conversations, in which facts change


def plan_of(access: Access) -> MemoryPlan | None:
    """Return the memory that an access names, with its settings and its limit; None if it names none."""
    if access.memory is None:
        return None
    return MemoryPlan(access.memory, access.memory_settings, access.capacity if access.panel == STRICT else None)


@dataclass(frozen=True)
class Cell:
    """A task, a model, an access and an intervention, without the seed."""

    task: AnySpec  # its seed is ignored
    model: str
    access: Access
    options: ModelOptions = field(default_factory=ModelOptions)
    intervention: Intervention | None = None
    repeat: int = 0  # of the same tasks; its options have the model's seed raised by as much

    def repeated(self, number: int) -> Cell:
        """Return a repeat of this cell, in which the model samples with another seed."""
        return replace(self, repeat=number, options=replace(self.options, seed=self.options.seed + number))

    @cached_property
    def first(self) -> Cell:
        """The cell that this one repeats; itself if it is no repeat."""
        options = replace(self.options, seed=self.options.seed - self.repeat)
        return replace(self, repeat=0, options=options) if self.repeat else self

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits of a hash over everything that can change a record."""
        return self.setting.id()

    @cached_property
    def protocol(self) -> str:
        """How the model answers."""
        return protocol_of(self.model, self.options)

    @cached_property
    def setting(self) -> Setting:
        """The setting that is recorded with every run."""
        repeat = Repeat(self.repeat, self.first.id) if self.repeat else None
        asked = self.options.asked(self.protocol)
        return Setting(self.task.parameters(), self.model, asked, self.access, self.intervention, repeat)

    @cached_property
    def memory_plan(self) -> MemoryPlan | None:
        """The memory plan of the access, with the options of the run and, if the memory system uses it, its model.

        The options hold for every model of a run, so that no call goes to another server than the one that was given.
        Settings of one provider's models mean nothing to those of another.
        """
        plan = plan_of(self.access)
        if plan is None:
            return None
        named = plan.settings.get(MODEL) or self._scripted(plan)
        settings = plan.settings if named is None else {**plan.settings, MODEL: named}
        if named == RUN_MODEL:
            settings = {**settings, MODEL: self.model}
        alike = named == RUN_MODEL or split_model(str(named))[0] == split_model(self.model)[0]
        shared = {name: value for name, value in self.options.extra.items() if alike and name != "batch"}
        return replace(plan, settings=settings, options=replace(self.options, extra=shared))

    def _scripted(self, plan: MemoryPlan) -> str | None:
        """Return the script that reads conversations, for a system that asks a model what to keep of them."""
        is_asking = memory_factory().model_of(plan.name, plan.settings) is not None
        return family_of(self.task).memory_model() if is_asking else None

    @property
    def follows(self) -> Cell | None:
        """The cell whose run of the same seed must finish first; None if there is none."""
        arm = self.intervention
        if not isinstance(arm, RescueArm) or not arm.only_lacking or arm.arm == "control":
            return None
        return replace(self, intervention=structs.replace(arm, arm="control"))

    def run_id(self, seed: int) -> str:
        return f"{self.id}-{seed}"


class Restoration:
    """Restores missing results, all or only the unrecovered ones, with true or submitted values."""

    def __init__(self, task: TaskInstance, truth: Truth = "true", unrecovered: Unrecovered | None = None) -> None:
        self.task, self.truth, self.unrecovered = task, truth, unrecovered

    def __call__(
        self, step: PublicStep, missing: tuple[int, ...], submitted: Mapping[int, Payload]
    ) -> tuple[Record, ...]:
        wanted = missing if self.unrecovered is None else [r for r in missing if r in self.unrecovered.get(step.t, ())]
        if step.kind == "query" and self.truth == "true":  # its answer is what its record says now
            return tuple((r, self.task.step(step.t).answer) for r in wanted)
        return tuple((r, value) for r in wanted if (value := self.operand(r, submitted)) is not None)

    def operand(self, r: int, submitted: Mapping[int, Payload]) -> Payload | None:
        """Return the value that the oracle restores; None if nothing was submitted."""
        return self.task.step(r).answer if self.truth == "true" else submitted.get(r)


class Sham(Restoration):
    """Injects another earlier answer under the required label: the length of the oracle's record, not its content."""

    def __call__(
        self, step: PublicStep, missing: tuple[int, ...], submitted: Mapping[int, Payload]
    ) -> tuple[Record, ...]:
        restored = super().__call__(step, missing, submitted)
        return tuple((r, self._other(step.t, r, operand, submitted)) for r, operand in restored)

    def _other(self, t: int, r: int, operand: Payload, submitted: Mapping[int, Payload]) -> Payload:
        """Return an earlier answer, drawn by the task's seed, that is neither the operand nor its submitted value."""
        earlier = (self.operand(s, submitted) for s in range(1, t))
        others = [value for value in earlier if value is not None and value not in (operand, submitted.get(r))]
        if not others:
            # All earlier answers are equal; the next value is also wrong and has the same length.
            return tuple((value + 1) % self.task.spec.q for value in operand)
        return others[int(below(words([self.task.spec.seed], 1, "sham", t, r)[0, 0], len(others)))]


def injector(arm: RescueArm, task: TaskInstance, unrecovered: Unrecovered | None = None) -> Injector:
    """Return what an arm injects into a run of a task.

    Args:
        unrecovered: what is restored; by default everything that is missing.
    """
    if arm.arm == "control":
        return inject_nothing
    return (Restoration if arm.arm == "oracle" else Sham)(task, arm.truth, unrecovered)


def unrecovered_in(decisions: list[Decision]) -> Unrecovered:
    """Return the missing inputs of each step that neither a recovery nor a memory system returned."""
    left = {one.t: frozenset(one.missing) - frozenset(one.fetched) for one in decisions}
    return {t: refs for t, refs in left.items() if refs}


Planned = tuple[Cell, Sequence[int]]  # a cell and its seeds


class RunPlan(Protocol):
    """Cells with their seeds in execution order; iterating again gives the same cells."""

    @property
    def kind(self) -> str:
        """The command: run, rescue, probe, capability, study, …"""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """Everything that determines the cells, as the manifest records it."""
        ...

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


def recorded_cell(setting: Setting) -> Cell:
    """Return the cell of a run record."""
    options = ModelOptions.of(setting.settings)
    repeat = 0 if setting.repeat is None else setting.repeat.number
    return Cell(spec_of(setting.task), setting.model, setting.access, options, setting.intervention, repeat)
