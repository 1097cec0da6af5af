"""The public part of a task, without answers, and everything a model is shown for one decision (`Visible`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from msgspec import Struct

from eirkit.lacuna.tasks.task import Kind, Payload, TaskInstance, TaskSpec
from eirkit.lacuna.tasks.workload import Graph, Workload
from eirkit.records.settings import TEXT

Record = tuple[int, Payload]  # a step and the values submitted for it


class PublicStep(Struct, frozen=True, gc=False):
    """A step without its answer."""

    t: int
    kind: Kind
    input: Payload | None
    refs: tuple[int, ...]
    target: int = 0  # the record that it changes; 0: none

    @property
    def label(self) -> int:
        """The record that its answer is the value of."""
        return self.target or self.t


@dataclass(frozen=True, slots=True)
class PublicTask:
    """A task without its answers."""

    spec: TaskSpec
    workload: Workload = field(compare=False)  # which the specification names
    steps: tuple[PublicStep, ...]
    width: int  # values a record

    def graph(self) -> Graph:
        return tuple(step.refs for step in self.steps)

    def without_steps(self) -> PublicTask:
        """Return what an agent may know from the start: no seed, and no step that was not revealed."""
        return replace(self, spec=replace(self.spec, seed=0), steps=())


@dataclass(frozen=True, slots=True)
class Budgets:
    """What an agent may still spend; None means no limit."""

    actions: int | None
    reads: int | None  # B_oracle
    recomputations: int | None  # B


class Visible(Struct, frozen=True, gc=False):
    """Everything that a model is shown for one decision, before it is turned into text."""

    task: PublicTask  # without steps
    step: PublicStep | None  # None before the first and between steps
    answered: bool  # the current step has its answer
    records: tuple[Record, ...]  # retained, ascending
    restored: tuple[Record, ...] = ()  # injected by an intervention
    fetched: tuple[Record, ...] = ()  # read, recomputed or found during this step
    notes: str | None = None  # scratch text, a summary, or search results; None if the condition has none
    room: str = ""  # how full a memory is that the agent manages itself
    free: int = 0  # records or characters that still fit into it
    commands: tuple[str, ...] = ("ANSWER",)
    budgets: Budgets | None = None  # in managed mode
    outcomes: tuple[str, ...] = ()  # what each action of the last reply led to
    protocol: str = TEXT  # how the model answers
    result: Payload | None = None  # of the calculator, for this step
    summary_characters: int | None = None  # room of the summary that is asked for; None: no summary is


class ProbeView(Struct, frozen=True, gc=False):
    """Everything that a model is shown in a recovery probe."""

    task: PublicTask  # without steps
    target: int
    resident: tuple[int, ...]  # ascending
    reads: int  # so far, repeated ones included
    nodes: dict[int, tuple[int, ...]]  # steps read, in order, with their references
    known: frozenset[int]  # steps whose answer is known

    def needs(self, t: int) -> tuple[int, ...]:
        """Return the references of a step that are not resident; the step must have been read."""
        return tuple(r for r in self.nodes[t] if r not in self.resident)


def publish(task: TaskInstance, workload: Workload) -> PublicTask:
    """Return the public part of a task."""
    steps = tuple(PublicStep(s.t, s.kind, s.input, s.refs, s.target) for s in task.steps)
    return PublicTask(task.spec, workload, steps, workload.width(task.spec))
