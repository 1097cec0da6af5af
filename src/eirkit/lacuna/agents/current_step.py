"""State of the current step of an agent-managed run, and the budgets of reads and recomputations."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from eirkit.errors import TooLargeError
from eirkit.lacuna.agents.conditions import RefusedAction
from eirkit.lacuna.agents.recognition import Recognition, Values
from eirkit.lacuna.tasks.recovery import RecoveryBudget, plan_recovery
from eirkit.lacuna.tasks.task import Payload
from eirkit.lacuna.tasks.view import PublicStep, PublicTask, Record
from eirkit.records.events import Decision


@dataclass(slots=True)
class CurrentStep:
    """The state of a step from its arrival to the decision that is recorded about it."""

    step: PublicStep
    retained: frozenset[int]  # in context when it arrived
    missing: tuple[int, ...]
    beyond: tuple[int, ...]  # missing, and not obtainable by READ or RECOMPUTE
    unwritten: frozenset[int]  # beyond, and never written to a memory system
    restored: tuple[Record, ...]
    over: frozenset[int] = frozenset()  # beyond, and deleted or past their time: that nothing comes back is right
    fetched: dict[int, Payload] = field(default_factory=dict)  # read, recomputed or found; visible until the next step
    displaced: dict[int, Payload] = field(
        default_factory=dict
    )  # references that a fetched record evicted; also visible
    worked_out: dict[int, Payload] = field(default_factory=dict)  # intermediate results of a recomputation; not shown
    uncertain: set[int] = field(default_factory=set)  # required, and perhaps in context or in a passage
    found: str | None = None  # passages of the last search
    stated: dict[int, Payload] = field(default_factory=dict)  # wrong values that searches returned for references
    sought: set[int] = field(default_factory=set)  # steps named in a query
    reads: int = 0
    recomputations: int = 0
    recovery_depth: int = 0
    actions: int = 0
    answers: int = 0  # attempts
    fault: str = "unanswered"  # why there is no answer yet
    answered: bool = False

    @property
    def unavailable(self) -> tuple[int, ...]:
        """The missing results that no interface returns: never written, or searched for by name without success.

        A query that does not name a record does not show whether the record was obtainable.
        """
        had = self.fetched.keys() | self.uncertain | self.rightly_gone
        return tuple(r for r in self.beyond if r in self.unwritten or (r in self.sought and r not in had))

    @property
    def rightly_gone(self) -> frozenset[int]:
        """The records that hold no more, were searched for, and of which nothing came back that says they do."""
        return self.over & self.sought - self.stated.keys() - self.uncertain

    def take(self, found: Recognition, records: Values) -> None:
        """Note what a search returned for the references of the step, and everything else that it returned."""
        for t in found.present:
            self.fetched[t] = records[t]
        self.uncertain |= found.uncertain & set(self.missing)
        for t, digits in found.stated.items():
            if t in self.missing and len(digits) == len(records[t]):
                self.stated.setdefault(t, tuple(map(int, digits)))

    def decision(self, submitted: Payload | None) -> Decision:
        """Return the record of the step."""
        return Decision(
            t=self.step.t,
            required=self.step.refs,
            retained=tuple(sorted(self.retained)),
            missing=self.missing,
            unavailable=self.unavailable,
            restored=self.restored,
            submitted=submitted,
            fault=self.fault if submitted is None else None,
            fetched=tuple(sorted(self.rightly_gone.union(self.fetched))),
            reads=self.reads,
            recomputations=self.recomputations,
            recovery_depth=self.recovery_depth,
            actions=self.actions,
            answers=self.answers,
            uncertain=tuple(sorted(self.uncertain - self.fetched.keys())),
            stated=tuple(sorted(item for item in self.stated.items() if item[0] not in self.fetched)),
        )


@dataclass(frozen=True, slots=True)
class Recomputed:
    """The result of one RECOMPUTE."""

    values: Mapping[int, Payload]  # every evaluated step, the requested one included
    depth: int  # length of the longest chain of evaluated steps


class RecoveryAllowance:
    """The remaining reads and recomputations of a run; None means no limit."""

    def __init__(self, task: PublicTask, reads: int | None, recomputations: int | None) -> None:
        self.task = task
        self.reads_left, self.recomputations_left = reads, recomputations
        self._graph = task.graph()

    def read(self) -> None:
        """Spend one read."""
        if self.reads_left is not None:
            if self.reads_left < 1:
                raise RefusedAction("over-budget", "no reads are left")
            self.reads_left -= 1

    def recompute(self, t: int, near: Values) -> Recomputed:
        """Evaluate a step and the steps it needs that are not in context; each costs one recomputation."""
        left = self.recomputations_left
        plan = plan_recovery(self._graph, (t,), RecoveryBudget(0, left), resident=near)
        if not plan.within_budget:
            raise RefusedAction("over-budget", f"step {t} takes {len(plan.recomputed)} recomputations, {left} are left")
        known = dict(near)
        for node in plan.recomputed:
            step = self.task.steps[node - 1]
            known[node] = self.task.workload.operate(self.task.spec, step.input, [known[r] for r in step.refs])
        if left is not None:
            self.recomputations_left = left - len(plan.recomputed)
        return Recomputed({node: known[node] for node in plan.recomputed}, plan.depth)

    def unavailable(self, missing: tuple[int, ...], near: Collection[int], submitted: Values) -> tuple[int, ...]:
        """Return the missing results that cannot be obtained, after the ones before them, within the budgets."""
        if not missing or self.recomputations_left is None:
            return ()  # unlimited recomputation can rebuild every earlier step
        if self.recomputations_left == 0:
            served = [r for r in missing if r in submitted][: self.reads_left]
            return tuple(r for r in missing if r not in served)
        had: list[int] = []
        for r in missing:
            if self._can_have((*had, r), near, submitted):
                had.append(r)
        return tuple(r for r in missing if r not in had)

    def _can_have(self, wanted: tuple[int, ...], near: Collection[int], submitted: Values) -> bool:
        budget = RecoveryBudget(self.reads_left, self.recomputations_left)
        try:
            plan = plan_recovery(self._graph, wanted, budget, resident=near, retrievable=submitted)
        except TooLargeError:
            return False  # the exact search is too large; count the result as unavailable
        return plan.within_budget
