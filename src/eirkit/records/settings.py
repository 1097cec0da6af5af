"""What a run was made of: its task, its model, what of earlier results was at hand, and an intervention.

A cell is one combination of these; its runs differ in their seed. Everything that can change a run is in `Setting`, and
the id of a cell is a hash of it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

CONTROLLED, EXTERNAL = "controlled", "external"
WHOLE, TRUNCATED = "whole", "truncated"  # a conversation, or as much of its end as its budget has room for, is shown
SHOWN_ITSELF = (WHOLE, TRUNCATED)  # the conversation in place of a memory, compared with memories
NATIVE, STRICT = "native", "strict"
UNLIMITED = "unlimited"
DOCUMENTED = "documented"  # the budget that each memory has by its documentation
ACTION_LIMIT = 200  # actions of a run in which the agent manages its memory; NEXT counts
UNBOUNDED = ("paging", "compaction", "scratch", "scratch-lru")  # accesses without a limit on the number of records

SCHEMA, TOOLS, TEXT, COMPLETION = "schema", "tools", "text", "completion"
# How a model answers: a JSON object under a schema, a tool call, a line of text, or the rest of a line.
PROTOCOLS = (SCHEMA, TOOLS, TEXT, COMPLETION)

DIALS = ("overwrites", "deletes", "expiry", "users", "rereads")  # of tasks whose records change
Arm = Literal["control", "oracle", "sham", "stale"]
Truth = Literal["true", "submitted"]  # what the oracle restores


class Task(Struct, frozen=True, tag="numbers", tag_field="family", omit_defaults=True):
    """The parameters of a task of numbers, without its seed; `TaskSpec` explains each."""

    workload: str
    n: int
    m: int
    lookback: int
    fan_in: int
    slots: int
    digits: int
    k: int
    queries: str
    warm_up: int
    overwrites: int = 25
    deletes: int = 10
    expiry: int = 40
    users: int = 2
    rereads: int = 2

    @property
    def length(self) -> int:
        """Its steps."""
        return self.n

    @property
    def label(self) -> str:
        """A short name."""
        return f"{self.workload}-n{self.n}-m{self.m}-fan{self.fan_in}"

    def is_scored(self, t: int) -> bool:
        return t > self.warm_up


class ConversationTask(Struct, frozen=True, tag="conversation", tag_field="family"):
    """The parameters of conversations, without their seed; `ConversationSpec` explains each."""

    workload: str
    preset: str
    questions: int

    @property
    def length(self) -> int:
        """The most questions that one has."""
        return self.questions

    @property
    def label(self) -> str:
        """A short name."""
        return f"{self.workload}-{self.preset}"

    def is_scored(self, t: int) -> bool:
        return True


AnyTask = Task | ConversationTask


class TaskColumns(Struct, frozen=True):
    """The parameters of a task of either family as columns of a table; None where its family has none."""

    workload: str
    preset: str = ""
    questions: int | None = None
    n: int | None = None
    m: int | None = None
    lookback: int | None = None
    fan_in: int | None = None
    slots: int | None = None
    digits: int | None = None
    k: int | None = None
    queries: str | None = None
    warm_up: int | None = None
    overwrites: int | None = None
    deletes: int | None = None
    expiry: int | None = None
    users: int | None = None
    rereads: int | None = None

    @classmethod
    def of(cls, task: AnyTask) -> TaskColumns:
        return cls(**asdict(task))


class ModelSettings(Struct, frozen=True, omit_defaults=True):
    """The options of a model that can change a reply; `ModelOptions` explains each."""

    base_url: str | None
    temperature: float | None
    max_tokens: int
    seed: int
    extra: dict[str, Any]  # what the provider understands
    dialect: str | None = None
    protocol: str | None = TEXT  # of several models: None if they differ in it
    reask: bool = True


class Access(Struct, frozen=True):
    """How an agent accesses its earlier results; None for reads or recomputations means no limit."""

    condition: str = CONTROLLED
    policy: str | None = "window"  # which records stay visible under Controlled Retention
    memory: str | None = None  # the external system
    memory_settings: dict[str, Any] = {}  # its settings
    panel: str = NATIVE  # strict: nothing stays in context, and the external system is limited to h records
    h: int | None = 16  # records that are kept; None in conversations, which have none
    reads: int | None = 0  # B_oracle
    recomputations: int | None = 0  # B
    actions: int = ACTION_LIMIT
    context_tokens: int | None = None  # the limit of the compaction condition
    summary_prompt: str | None = None  # prompt of the compaction condition; None for the default
    budget: str = DOCUMENTED  # of what a memory puts into a prompt: documented, k=10 or tokens=2000

    @property
    def capacity(self) -> int:
        """Records that are kept; 0 where there are none to keep."""
        return self.h or 0

    @property
    def is_controlled(self) -> bool:
        return self.condition == CONTROLLED

    @property
    def capacity_panel(self) -> str:
        """`strict` if it is limited to h records in total, else `native`, which is not comparable."""
        if self.memory is not None:
            return self.panel
        return NATIVE if self.condition in UNBOUNDED else STRICT


class RescueArm(Struct, frozen=True, tag="rescue", tag_field="kind"):
    """One arm of a rescue: nothing, the missing result, or a sham of equal length at every step that misses one."""

    arm: Arm
    truth: Truth = "true"
    only_lacking: bool = False  # only what the memory did not return in the control arm's run of the same seed


class RecoveryProbe(Struct, frozen=True, tag="probe", tag_field="kind"):
    """Instead of the task, rebuild the first result that is lost at or after a step."""

    from_step: int = 1


class CalculatorAid(Struct, frozen=True, tag="calculator", tag_field="kind"):
    """The agent may name visible operands, and the harness applies the rule to them."""


Intervention = RescueArm | RecoveryProbe | CalculatorAid


class Repeat(Struct, frozen=True):
    """Which repeat of the same tasks a cell is, and of which cell."""

    number: int
    of: str


class Setting(Struct, frozen=True, omit_defaults=True):
    """Everything that can change a run, but its seed."""

    task: AnyTask
    model: str
    settings: ModelSettings
    access: Access
    intervention: Intervention | None = None
    repeat: Repeat | None = None

    def id(self) -> str:
        """Return the id of the cell: twelve hexadecimal digits of a hash over the setting."""
        plain = msgspec.to_builtins(self)
        if self.access.budget == DOCUMENTED:  # so that kept records from before there were budgets are still found
            del plain["access"]["budget"]
        return sha256(msgspec.json.encode(plain, order="sorted")).hexdigest()[:12]


def pressure_of(task: AnyTask, access: Access) -> float | None:
    """Return m/h; None for conversations, which have neither."""
    return task.m / access.h if isinstance(task, Task) and access.h else None


def control_key(setting: Setting) -> str:
    """Return the key of a cell's capability control: everything but window, lookback, seed and access."""
    task = replace(setting.task, m=0, lookback=0) if isinstance(setting.task, Task) else setting.task
    return sha256(msgspec.json.encode((task, setting.model, setting.settings), order="sorted")).hexdigest()[:12]


def intervention_kind(intervention: Intervention | None) -> str | None:
    """Return `rescue`, `probe` or `calculator`; None without an intervention."""
    return None if intervention is None else str(intervention.__struct_config__.tag)


# Stands for the setting of a record whose setting is stored apart, once for all runs of its cell.
ELSEWHERE = Setting(Task("", 0, 0, 0, 0, 0, 0, 0, "", 0), "", ModelSettings(None, None, 0, 0, {}), Access())
