"""Results of the experiments beside a sweep: rescue, capability control and recovery probes, as folders keep them."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from eirkit.records.events import Cause
from eirkit.records.runs import Outcome
from eirkit.records.settings import ACTION_LIMIT, DOCUMENTED, AnyTask, Arm, ModelSettings, Task, Truth
from eirkit.records.sweeps import Excluded, Gate, GateVerdict, Spending, Standing, Validity, is_excluded

Compared = Literal["accuracy", "misled"]  # right answers, or answers with an outdated value


Seeds = str | list[int]  # `0:3`, or the seeds themselves


class RescueSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What determines the runs of a rescue, as its manifest has it."""

    task: AnyTask
    h: int | None  # None in conversations
    policy: str
    truth: Truth
    managed: bool
    seeds: Seeds
    models: tuple[str, ...]
    options: ModelSettings
    control: bool | None = None
    memory: str | None = None
    memory_settings: dict[str, Any] = {}
    panel: str | None = None
    actions: int = ACTION_LIMIT
    budget: str = DOCUMENTED


class CapabilitySettings(Struct, frozen=True, kw_only=True):
    """What determines the runs of a capability control."""

    tasks: tuple[AnyTask, ...]
    windows: tuple[int, ...]
    threshold: float
    calculator: bool
    seeds: Seeds
    models: tuple[str, ...]
    options: ModelSettings


class ProbeSetup(Struct, frozen=True):
    """Which lost answers are probed."""

    policy: str = "lru"  # not fifo, whose residents are newer than lost answers and never cut their cones
    h: int = 8
    fan_ins: tuple[int, ...] = (2, 4)  # a chain (fan-in 1) has no shared ancestors that could be read twice
    from_step: int | None = None  # None: half of the task


class ProbeSettings(Struct, frozen=True, kw_only=True):
    """What determines the runs of recovery probes."""

    tasks: tuple[Task, ...]
    plan: ProbeSetup
    seeds: Seeds
    models: tuple[str, ...]
    options: ModelSettings


class Interval(Struct, frozen=True):
    """An estimate with an interval over trajectories."""

    estimate: float
    low: float
    high: float
    level: float
    clusters: int  # trajectories


class ArmRow(Struct, frozen=True, kw_only=True):
    """One arm of a rescue with one model."""

    model: str
    arm: Arm
    steps: int  # scored steps with a missing input that, with a memory, the control arm's memory did not return
    accuracy: float | None  # at those steps, pooled over trajectories; None if nothing was missing
    scored: int  # trajectories
    attempted: int
    trajectory_accuracy: float | None  # over all steps, mean over trajectories
    trajectory_accuracy_sd: float | None
    self_consistent_accuracy: float | None
    missed_steps: float | None  # per trajectory: with an input out of context, whether a memory returned it or not
    memory: str | None = None
    outcomes: dict[Outcome, int] | None = None  # of the missing results; only with a memory
    misled: float | None = None  # of those steps, answers with an outdated value; only of conversations
    control: Standing | None = None  # None if the control was not run
    claims: bool = False

    @property
    def is_withheld(self) -> bool:
        """Whether nothing is said about it, because its model fails the control."""
        return is_excluded(self.control)


class Contrast(Struct, frozen=True, kw_only=True):
    """One arm against another at the steps that both missed, paired by seed and step."""

    model: str
    arms: tuple[Arm, Arm]
    pairs: int
    trajectories: int
    difference: Interval  # of accuracies at missed steps, first − second; exact over steps and t over trajectories
    mcnemar_p: float
    permutation_p: float  # sign flips of each trajectory's difference
    of: Compared = "accuracy"
    control: Standing | None = None
    claims: bool = False


class Estimate(Struct, frozen=True):
    """A difference with its 95% interval."""

    estimate: float
    low: float
    high: float


class RepairEffect(Struct, frozen=True, kw_only=True):
    """What restoring results did with one model."""

    model: str
    effect: float  # accuracy at missed steps, oracle − sham
    low: float
    high: float
    over_control: Estimate | None  # the same, oracle − nothing
    repairs: bool  # both show a repair
    pairs: int


class RescueResult(Struct, frozen=True, kw_only=True):
    """The arms of all models under one condition."""

    rows: tuple[ArmRow, ...]
    repair_effect: float | None  # of the only model that supports claims; None for several, never a mean
    contrasts: tuple[Contrast, ...]
    failures: tuple[str, ...]  # trajectories lost to infrastructure, and why
    validity: dict[str, Validity]  # of the arm without an injection, by model
    systems: tuple[str, ...]  # in which profile the memory was used, and what its code warned of
    repair_effects: tuple[RepairEffect, ...]
    workload: str
    m: int | None  # None and below: conversations have none
    h: int | None
    policy: str
    truth: Truth
    managed: bool
    memory: str | None
    panel: str | None
    seeds: int
    threshold: float  # of the control
    excluded: tuple[Excluded, ...]
    undecided: tuple[Excluded, ...] = ()
    spending: Spending | None = None

    @property
    def where(self) -> str:
        """The workload, with the window and the capacity of tasks of numbers."""
        return self.workload if self.m is None else f"{self.workload}, m = {self.m}, h = {self.h}"


class CapabilityCell(Struct, frozen=True, kw_only=True):
    """One model on one workload at full information, recovery off."""

    model: str
    workload: str
    accuracy: float | None  # mean over windows and seeds; None where no run was scored
    accuracy_sd: float | None
    by_window: dict[int, float | None]
    scored: int  # runs
    attempted: int
    steps: int
    errors: dict[Cause, int]
    calculator_accuracy: float | None  # with a calculator; None if not run
    gates: tuple[Gate, Gate]  # on accuracy given right inputs, which decides; the paper's, on accuracy end to end
    verdict: GateVerdict
    passes: bool
    reason: str  # why the cell does or does not support claims about lost information
    failures: dict[str, int]  # reasons of failed runs, with and without the calculator, and their numbers

    def standing(self) -> Standing:
        """Return the verdict as it appears in the results of other commands."""
        return Standing(**{name: getattr(self, name) for name in Standing.__struct_fields__})


class Passing(Struct, frozen=True, array_like=True):
    """A model that passed the control of a workload."""

    model: str
    workload: str


class CapabilityResult(Struct, frozen=True, kw_only=True):
    """The capability controls of some models on some workloads."""

    rows: tuple[CapabilityCell, ...]
    threshold: float
    eligible: tuple[Passing, ...]
    excluded: tuple[Excluded, ...]
    undecided: tuple[Excluded, ...] = ()
    spending: Spending | None = None


class ProbeRow(Struct, frozen=True, kw_only=True):
    """All probes of one model on one workload, fan-ins pooled."""

    workload: str
    model: str
    probes: int  # scored
    attempted: int
    successful: int
    early_stops: int
    at_limit: int  # ended by the limit of actions, the target unknown
    read_overhead: float | None  # mean over successes of reads / minimum
    redundant: int
    off_cone: int
    minimum: float | None  # mean
    failures: dict[str, int]  # reasons of failed probes and their numbers


class ProbeScore(Struct, frozen=True, kw_only=True):
    """One probe: what was read to rebuild a lost answer, beside the minimum."""

    seed: int
    fan_in: int
    target: int
    resident: tuple[int, ...]
    minimum: int  # reads that the cone requires
    order: tuple[int, ...]  # what was read, in order
    redundant: int  # repeated reads of a step
    off_cone: int  # first reads of steps that the target does not need, residents included
    success: bool  # the target became known
    early_stop: bool  # DONE came before the target was known

    @property
    def overhead(self) -> float:
        """Reads / minimum; 1 is optimal."""
        return len(self.order) / self.minimum


class Probe(ProbeScore, frozen=True, kw_only=True):
    """One probe of a model."""

    workload: str
    model: str
    reads: int


class ProbeResult(Struct, frozen=True, kw_only=True):
    """Recovery probes of some models on some workloads."""

    rows: tuple[ProbeRow, ...]
    plan: ProbeSetup
    probes: tuple[Probe, ...]
    spending: Spending | None = None


EvidenceResult = RescueResult | CapabilityResult | ProbeResult
EvidenceSettings = RescueSettings | CapabilitySettings | ProbeSettings
RESULTS: dict[str, type[EvidenceResult]] = {
    "rescue": RescueResult,
    "capability": CapabilityResult,
    "probe": ProbeResult,
}  # by command
SETTINGS: dict[str, type[EvidenceSettings]] = {
    "rescue": RescueSettings,
    "capability": CapabilitySettings,
    "probe": ProbeSettings,
}
