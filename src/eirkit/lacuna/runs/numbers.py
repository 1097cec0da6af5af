"""Runs on tasks of numbers, for what conversations do in another way."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

from eirkit import extensions
from eirkit.errors import UsageError
from eirkit.lacuna.agents.session import Session
from eirkit.lacuna.agents.telemetry import Trace
from eirkit.lacuna.findings.behavior import measure_behavior
from eirkit.lacuna.findings.causes import Verdict, judge
from eirkit.lacuna.findings.fates import count_fates
from eirkit.lacuna.findings.floor import floor_record, holdings
from eirkit.lacuna.memories.plan import memory_factory
from eirkit.lacuna.models.model import Model, ModelOptions
from eirkit.lacuna.runs.cells import ARMS, unrecovered_in
from eirkit.lacuna.runs.family import Judgment, RescuedRun, TaskFamily, Unrecovered
from eirkit.lacuna.runs.sessions import check_access, default_reads, make_session
from eirkit.lacuna.tasks.generation import graph_of, needs_of, prepare
from eirkit.lacuna.tasks.policy import Structure
from eirkit.lacuna.tasks.simulation.plain import structure_of
from eirkit.lacuna.tasks.task import TaskInstance, TaskSpec
from eirkit.lacuna.tasks.workload import Workload
from eirkit.records.budgets import condition_budget
from eirkit.records.runs import RunFloor, RunRecord
from eirkit.records.settings import CONTROLLED, DOCUMENTED, EXTERNAL, SHOWN_ITSELF, Access, Intervention

REFERENCE = "eirkit.lacuna.agents.reference:make_reference"  # needed by estimates alone
LOOKUP_WINDOWS = (16,)  # of a control; with fewer stored labels the task would be a different one
_SHARED = ("panel", "actions", "context_tokens", "summary_prompt")  # same name in a suite and in Access


class NumberTasks(TaskFamily[TaskSpec, TaskInstance]):
    """Steps of numbers that refer to earlier ones."""

    arms = ARMS
    only_lacking = True
    calculates = True

    @cached_property
    def workload(self) -> Workload:
        return prepare(self.spec)

    @cached_property
    def structure(self) -> Structure:
        return structure_of(self.spec)

    def access(self, values: Mapping[str, Any], memory_settings: Mapping[str, Any]) -> Access:
        memory = values.get("memory")
        if memory in SHOWN_ITSELF:
            raise UsageError(
                f"{memory} shows a conversation, and {self.spec.workload} has none; leave it out of memory"
            )
        condition = values.get("condition", CONTROLLED if memory is None else EXTERNAL)
        return Access(
            condition=condition,
            policy=values.get("policy", "window" if condition == CONTROLLED else None),
            memory=memory,
            memory_settings=dict(memory_settings),
            h=values.get("h", self.spec.m),
            reads=_budget(values["b_oracle"]) if "b_oracle" in values else default_reads(condition),
            recomputations=_budget(values.get("b", 0)),
            budget=condition_budget(condition, values.get("budget", DOCUMENTED)),
            **{name: values[name] for name in _SHARED if name in values},
        )

    def check_access(self, access: Access) -> None:
        if access.memory is not None and self.workload.changes and memory_factory().sees_truth(access.memory):
            raise UsageError(
                f"memory {access.memory!r} knows one value of each record, and those of {self.spec.workload} change; "
                "choose another memory"
            )
        check_access(access)

    def full_access(self) -> Access:
        return Access(policy="fifo", h=self.spec.m)

    def rescue_access(self, access: Access) -> Access:
        return access

    def control_specs(self, windows: Sequence[int]) -> list[TaskSpec]:
        """Return h = m = lookback for each window."""
        is_lookup = "query" in self.workload.kinds(self.spec)
        sizes = LOOKUP_WINDOWS if is_lookup else dict.fromkeys(windows)
        return [replace(self.spec, m=m, lookback=None) for m in sizes]

    def memory_model(self) -> None:
        return None

    def session(
        self, access: Access, task: TaskInstance, intervention: Intervention | None, unrecovered: Unrecovered | None
    ) -> Session:
        return make_session(access, task, self.workload, self.structure, intervention, unrecovered)

    def judge(self, access: Access, task: TaskInstance, trace: Trace) -> Judgment:
        decisions, actions = trace.decisions, trace.actions
        verdicts = judge(task, self.workload, decisions, actions)
        behavior: dict[str, int] = {}
        if not access.is_controlled:
            behavior = asdict(measure_behavior(needs_of(task), actions, decisions, verdicts))
        return Judgment(
            verdicts,
            behavior,
            count_fates(decisions, verdicts, trace.consultations, task if self.workload.changes else None),
        )

    def rejudge(self, task: TaskInstance, trace: Trace) -> tuple[Verdict, ...]:
        return judge(task, self.workload, trace.decisions, trace.actions)

    def rescued(self, task: TaskInstance, record: RunRecord, trace: Trace) -> RescuedRun:
        return RescuedRun(self.rejudge(task, trace), unrecovered_in(trace.decisions))

    @property
    def weighs_holdings(self) -> bool:
        return self.workload.closed_form

    def ingests_first(self, task: TaskInstance) -> bool:
        return False

    def floor(self, task: TaskInstance, trace: Trace, limit: int | None) -> RunFloor | None:
        if not self.workload.closed_form:
            return None
        held = holdings(task.spec.n, trace.decisions, trace.consultations, limit)
        curve = self.workload.demand(task.spec, graph_of(task))
        return floor_record(curve, held, math.log2(self.workload.alphabet(task.spec)))

    def stand_in(self, task: TaskInstance) -> Model:
        make: Callable[[str, ModelOptions], Model] = extensions.load(REFERENCE)
        return make("recoverer", ModelOptions())


def _budget(value: int | str) -> int | None:
    return value if isinstance(value, int) else None
