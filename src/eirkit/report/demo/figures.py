"""The figures of `eirkit demo` as types; demo.json holds them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from eirkit.records.events import Cause
from eirkit.records.evidence import ArmRow, Contrast


class DemandRow(Struct, frozen=True):
    """What must survive each cut of a workload's default task, and how many records that would fill."""

    workload: str
    bits: tuple[float | None, ...]  # None at cuts that are not computed
    peak_bits: float
    cuts: Literal["all"] | tuple[int, ...]
    records: float | None
    method: str


class ContractContrast(Struct, frozen=True):
    """The peak if every step's sum is asked for, and if only the total is: same inputs, another contract."""

    every_step_bits: float
    final_only_bits: float


class RetentionRow(Struct, frozen=True, omit_defaults=True):
    """The share of steps with a missing input under each policy with h records."""

    workload: str
    h: int
    eir_pressure: float | None
    tasks: int
    miss_rate: dict[str, float]  # by policy
    online_miss_rate: float | None = None


class RecoveryRow(Struct, frozen=True):
    """The mean cost of rebuilding a lost result late in a task, in reads."""

    fan_in: int
    cones: int
    fetched: int
    results_kept: float
    nothing_kept: float
    depth: float


class CauseRow(Struct, frozen=True):
    """Accuracy and wrong steps by cause at one capacity."""

    h: int
    accuracy: float | None
    runs: int
    steps: int
    errors: dict[Cause, int]


class ShownRescue(Struct, frozen=True):
    """The result of the rescue."""

    rows: tuple[ArmRow, ...]
    repair_effect: float | None
    contrasts: tuple[Contrast, ...]
    failures: tuple[str, ...]


class Substitute(Struct, frozen=True, kw_only=True):
    """One lookup of a result that was not in sight."""

    prompt: str
    reply: str
    t: int
    label: str  # whose result was looked up
    written: str
    true: str
    like: tuple[str, ...]  # labels in sight whose value it is
    submitted: str
    answer: str
    sentence: str  # what happened, in words


class Substitutes(Struct, frozen=True):
    """How many lookups of missing results there were, how many copied one in sight, and the first wrong step."""

    lookups: int
    copied: int
    right: int
    example: Substitute | None


class RecordedFigures(Struct, frozen=True):
    """A recorded run and a planted corpus."""

    run_id: str
    turns: int
    peak_demand_tokens: int | None
    peak_cut: int | None
    read_tokens: int | None
    dead_read_tokens: int | None
    planted_runs: int
    failure_auc: float | None


class Demonstration(Struct, frozen=True, kw_only=True):
    """All figures of the demonstration."""

    demand: tuple[DemandRow, ...]
    contrast: ContractContrast
    retention: tuple[RetentionRow, ...]
    recovery: tuple[RecoveryRow, ...]
    agent: str
    agent_parameters: int
    causes: tuple[CauseRow, ...]
    rescue: ShownRescue
    substitutes: Substitutes
    recorded: RecordedFigures
