"""Metered recovery in an agent-managed run: what READ and RECOMPUTE may still bring, and what they bring.

Recomputation works on inputs, which are public, and on records that the agent has in sight; no true answer enters.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from eirkit.errors import TooLargeError
from eirkit.lacuna.condition import Refused, Values
from eirkit.lacuna.recovery import RecoveryBudget, plan_recovery
from eirkit.lacuna.task import Payload
from eirkit.lacuna.view import PublicTask


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What one RECOMPUTE evaluated."""

    values: Mapping[int, Payload]  # every step that was evaluated, the wanted one included
    depth: int  # of them on the longest chain


class Supply:
    """The two budgets of a run. A limit of None is no limit."""

    def __init__(self, task: PublicTask, reads: int | None, recomputations: int | None) -> None:
        self.task = task
        self.reads_left, self.recomputations_left = reads, recomputations
        self._graph = task.graph()

    def read(self) -> None:
        """Spend one read."""
        if self.reads_left is not None:
            if self.reads_left < 1:
                raise Refused("over-budget", "no reads are left")
            self.reads_left -= 1

    def recompute(self, t: int, near: Values) -> Recomputed:
        """Evaluate a step that is not near, and whatever it needs and is not near either; each costs one."""
        left = self.recomputations_left
        plan = plan_recovery(self._graph, (t,), RecoveryBudget(0, left), resident=near)
        if not plan.within_budget:
            raise Refused("over-budget", f"step {t} takes {len(plan.recomputed)} recomputations, {left} are left")
        known = dict(near)
        for node in plan.recomputed:
            step = self.task.steps[node - 1]
            known[node] = self.task.workload.operate(self.task.spec, step.input, [known[r] for r in step.refs])
        if left is not None:
            self.recomputations_left = left - len(plan.recomputed)
        return Recomputed({node: known[node] for node in plan.recomputed}, plan.depth)

    def unavailable(self, missing: tuple[int, ...], near: Collection[int], submitted: Values) -> tuple[int, ...]:
        """Return those of the missing results that cannot be had beside the ones before them, within what is left."""
        if not missing or self.recomputations_left is None:
            return ()  # every earlier step can be evaluated again
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
            return False  # no plan was found, and a run does not stop for the proof
        return plan.within_budget
