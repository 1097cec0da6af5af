"""The public part of a task, without answers, and everything a model is shown for one decision (`Visible`)."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from eirkit.lacuna.tasks.task import Kind, Payload, TaskInstance, TaskSpec
from eirkit.lacuna.tasks.workload import Graph, Workload

Record = tuple[int, Payload]  # a step and the values submitted for it


class PublicStep(Struct, frozen=True, gc=False):
    """A step without its answer."""

    t: int
    kind: Kind
    input: Payload | None
    refs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PublicTask:
    """A task without its answers."""

    spec: TaskSpec
    workload: Workload
    steps: tuple[PublicStep, ...]
    width: int  # values a record

    def graph(self) -> Graph:
        return tuple(step.refs for step in self.steps)


@dataclass(frozen=True, slots=True)
class Budgets:
    """What an agent may still spend; None means no limit."""

    actions: int | None
    reads: int | None  # B_oracle
    recomputations: int | None  # B


class Visible(Struct, frozen=True, gc=False):
    """Everything that a model is shown for one decision, before it is turned into text."""

    task: PublicTask
    step: PublicStep | None  # None before the first and between steps
    answered: bool  # the current step has its answer
    records: tuple[Record, ...]  # retained, ascending
    restored: tuple[Record, ...] = ()  # injected by an intervention
    fetched: tuple[Record, ...] = ()  # read, recomputed or found during this step
    notes: str | None = None  # scratch text, a summary, or search results; None if the condition has none
    room: str = ""  # how full a memory is that the agent manages itself
    commands: tuple[str, ...] = ("ANSWER",)
    budgets: Budgets | None = None  # in managed mode
    outcomes: tuple[str, ...] = ()  # what each action of the last reply led to


def publish(task: TaskInstance, workload: Workload) -> PublicTask:
    """Return the public part of a task."""
    steps = tuple(PublicStep(s.t, s.kind, s.input, s.refs) for s in task.steps)
    return PublicTask(task.spec, workload, steps, workload.width(task.spec))
