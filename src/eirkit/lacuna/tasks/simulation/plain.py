"""Simulates one task under one policy and capacity: which references miss at each step.

This is the readable reference for the batch simulator. It does not look at answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from eirkit.lacuna.tasks.generation import needs_of, prepare
from eirkit.lacuna.tasks.policy import Outlook, Policy, Retention, Structure, find_policy
from eirkit.lacuna.tasks.task import TaskInstance, TaskSpec
from eirkit.lacuna.tasks.workload import Graph

Recovery = Literal["off", "direct"]  # direct: every missing record is fetched and competes for a slot again


@dataclass(frozen=True, slots=True)
class Outcome:
    """The misses of one simulated task. A miss is a reference that is not held at the decision, before any recovery."""

    references: Graph  # what each step needs
    missing: Graph  # those that were not held

    @property
    def consuming_steps(self) -> int:
        """Steps with references."""
        return sum(1 for refs in self.references if refs)

    @property
    def missed_steps(self) -> int:
        """Steps with at least one missing reference."""
        return sum(1 for refs in self.missing if refs)

    @property
    def needed_references(self) -> int:
        return sum(len(refs) for refs in self.references)

    @property
    def missed_references(self) -> int:
        return sum(len(refs) for refs in self.missing)

    @property
    def miss_rate(self) -> float:
        """Missed steps over consuming steps; 0 where no step consumes anything."""
        return self.missed_steps / max(1, self.consuming_steps)

    @property
    def hit_rate(self) -> float:
        """Held references over needed references; 1 where none is needed."""
        return 1 - self.missed_references / max(1, self.needed_references)

    @property
    def first_miss(self) -> int | None:
        """The first step with a missing reference."""
        return next((step for step, refs in enumerate(self.missing, 1) if refs), None)


def simulate(task: TaskInstance, policy: str, h: int, *, recovery: Recovery = "off") -> Outcome:
    """Return the misses of a task under a registered policy with h records."""
    outlook = outlook_of(task)
    return replay(outlook, find_policy(policy).for_task(outlook), h, recovery=recovery)


def replay(outlook: Outlook, policy: Policy, h: int, *, recovery: Recovery = "off") -> Outcome:
    """Return the misses of a stream of references under a policy object.

    Inside a step: the references are consumed, those held are touched, with direct recovery those missing compete for a
    slot in ascending order, and the new record comes last.
    """
    retention = Retention(policy, h)
    missing = []
    for step, references in enumerate(outlook.future, 1):
        absent = retention.missing(references)
        missing.append(absent)
        retention.touch(references)
        if recovery == "direct":
            for record in absent:
                retention.admit(record, step)
        if outlook.structure.takes_slot[step - 1]:
            retention.admit(step, step)
    return Outcome(outlook.future, tuple(missing))


def structure_of(spec: TaskSpec) -> Structure:
    """Return what the workload states about its steps, independent of the seed."""
    workload = prepare(spec)
    steps = range(1, spec.n + 1)
    return Structure(
        kinds=workload.kinds(spec),
        takes_slot=tuple(workload.stores(spec, t) for t in steps),
        last_use=tuple(workload.last_use(spec, t) for t in steps),
    )


def outlook_of(task: TaskInstance) -> Outlook:
    """Return what a policy for this task may be built from; it contains no answers."""
    return Outlook(structure_of(task.spec), task.spec.seed, needs_of(task))


def first_failure(pressures: Sequence[float], miss_rates: Sequence[float], threshold: float = 0.05) -> float | None:
    """Return the lowest pressure at which the miss rate exceeds the threshold; None if it never does."""
    pairs = sorted(zip(pressures, miss_rates, strict=True))
    return next((pressure for pressure, rate in pairs if rate > threshold), None)
