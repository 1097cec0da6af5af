"""The seam between runs and the families of tasks: what runs do differently for numbers and for conversations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from eirkit import extensions
from eirkit.lacuna.agents.session import Session
from eirkit.lacuna.agents.telemetry import Trace
from eirkit.lacuna.findings.causes import Verdict
from eirkit.lacuna.findings.fates import FateCounts
from eirkit.lacuna.models.model import Model
from eirkit.lacuna.tasks.task import AnySpec, GeneratedTask, TaskSpec
from eirkit.records.runs import ConversationRun, RunFloor, RunRecord
from eirkit.records.settings import Access, Arm, Intervention

# Imported when a run of the family needs them.
NUMBERS = "eirkit.lacuna.runs.numbers:NumberTasks"
CONVERSATIONS = "eirkit.lacuna.runs.conversations:ConversationTasks"

Unrecovered = Mapping[int, frozenset[int]]  # by step: missing inputs that were not recovered
Spec = TypeVar("Spec", bound=AnySpec)
Task = TypeVar("Task", bound=GeneratedTask)


@dataclass(frozen=True, slots=True)
class Judgment:
    """What the truth says about a run."""

    verdicts: tuple[Verdict, ...]
    behavior: Mapping[str, int] = field(default_factory=dict)
    lookups: FateCounts = field(default_factory=lambda: FateCounts({}, 0, 0))  # needed records, in a memory system
    conversation: ConversationRun | None = None


@dataclass(frozen=True, slots=True)
class RescuedRun:
    """What a rescue compares of one run."""

    verdicts: tuple[Verdict, ...]
    unrecovered: Unrecovered = field(default_factory=dict)
    old: frozenset[int] = frozenset()  # questions that were answered with an old value
    outdated: frozenset[int] = frozenset()  # questions about something that was said differently before


class TaskFamily(ABC, Generic[Spec, Task]):
    """What runs do for tasks of one family that differ in their seeds alone."""

    arms: ClassVar[tuple[Arm, ...]]  # of a rescue
    only_lacking: ClassVar[bool]  # whether a rescue beside a memory restores only what the memory did not return
    calculates: ClassVar[bool]  # whether a calculator can help

    def __init__(self, spec: Spec) -> None:
        self.spec = spec  # its seed is ignored

    @abstractmethod
    def access(self, values: Mapping[str, Any], memory_settings: Mapping[str, Any]) -> Access:
        """Return the access that the keys of a grid describe, with defaults for the others."""

    @abstractmethod
    def check_access(self, access: Access) -> None:
        """Raise UsageError if the parts of an access contradict each other or name something unknown."""

    @abstractmethod
    def full_access(self) -> Access:
        """Return the access under which nothing is missing."""

    @abstractmethod
    def rescue_access(self, access: Access) -> Access:
        """Return the access of a rescue that was asked for with the options of tasks of numbers."""

    @abstractmethod
    def control_specs(self, windows: Sequence[int]) -> Sequence[AnySpec]:
        """Return the tasks of a capability control."""

    @abstractmethod
    def memory_model(self) -> str | None:
        """Return the model that reads for a memory system if none is named; None: it has none."""

    @abstractmethod
    def session(
        self, access: Access, task: Task, intervention: Intervention | None, unrecovered: Unrecovered | None
    ) -> Session:
        """Return the session of one run."""

    @abstractmethod
    def judge(self, access: Access, task: Task, trace: Trace) -> Judgment:
        """Return what the truth says about a run."""

    @abstractmethod
    def rejudge(self, task: Task, trace: Trace) -> tuple[Verdict, ...] | None:
        """Return the verdicts that follow from the answers of a run alone; None if they need more."""

    @abstractmethod
    def rescued(self, task: Task, record: RunRecord, trace: Trace) -> RescuedRun:
        """Return what a rescue compares of one run."""

    @property
    @abstractmethod
    def weighs_holdings(self) -> bool:
        """True if what must be held follows from the parameters, so that the holdings of a memory are weighed."""

    @abstractmethod
    def ingests_first(self, task: Task) -> bool:
        """True if a memory is given everything before it is asked for anything."""

    @abstractmethod
    def floor(self, task: Task, trace: Trace, limit: int | None) -> RunFloor | None:
        """Return what was needed and held at each cut, if that is known."""

    @abstractmethod
    def stand_in(self, task: Task) -> Model:
        """Return the free model that takes the place of a paid one in an estimate."""


def family_of(spec: AnySpec) -> TaskFamily[Any, Any]:
    """Return what runs do for tasks of a specification."""
    family: type[TaskFamily[Any, Any]] = extensions.load(NUMBERS if isinstance(spec, TaskSpec) else CONVERSATIONS)
    return family(spec)
