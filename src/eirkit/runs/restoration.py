"""The injections of a rescue at steps with missing inputs: the missing results, or sham values of equal length."""

from __future__ import annotations

from collections.abc import Mapping

from eirkit.agents.session import Decision, Injector, inject_nothing
from eirkit.runs.cells import RescueArm, Truth
from eirkit.seeds import below, words
from eirkit.tasks.task import Payload, TaskInstance
from eirkit.tasks.view import PublicStep, Record

Unrecovered = Mapping[int, frozenset[int]]  # by step: missing inputs that were not recovered


class Restoration:
    """Restores missing results, all or only the unrecovered ones, with true or submitted values."""

    def __init__(self, task: TaskInstance, truth: Truth = "true", unrecovered: Unrecovered | None = None) -> None:
        self.task, self.truth, self.unrecovered = task, truth, unrecovered

    def __call__(
        self, step: PublicStep, missing: tuple[int, ...], submitted: Mapping[int, Payload]
    ) -> tuple[Record, ...]:
        wanted = missing if self.unrecovered is None else [r for r in missing if r in self.unrecovered.get(step.t, ())]
        return tuple((r, value) for r in wanted if (value := self.operand(r, submitted)) is not None)

    def operand(self, r: int, submitted: Mapping[int, Payload]) -> Payload | None:
        """Return the value that the oracle restores; None if nothing was submitted."""
        return self.task.step(r).answer if self.truth == "true" else submitted.get(r)


class Sham(Restoration):
    """Injects another earlier answer under the required label: the length of the oracle's record, not its content."""

    def __call__(
        self, step: PublicStep, missing: tuple[int, ...], submitted: Mapping[int, Payload]
    ) -> tuple[Record, ...]:
        restored = super().__call__(step, missing, submitted)
        return tuple((r, self._other(step.t, r, operand, submitted)) for r, operand in restored)

    def _other(self, t: int, r: int, operand: Payload, submitted: Mapping[int, Payload]) -> Payload:
        """Return an earlier answer, drawn by the task's seed, that is neither the operand nor its submitted value."""
        earlier = (self.operand(s, submitted) for s in range(1, t))
        others = [value for value in earlier if value is not None and value not in (operand, submitted.get(r))]
        if not others:
            # All earlier answers are equal; the next value is also wrong and has the same length.
            return tuple((value + 1) % self.task.spec.q for value in operand)
        return others[int(below(words([self.task.spec.seed], 1, "sham", t, r)[0, 0], len(others)))]


def injector(arm: RescueArm, task: TaskInstance, unrecovered: Unrecovered | None = None) -> Injector:
    """Return what an arm injects into a run of a task.

    Args:
        unrecovered: what is restored; by default everything that is missing.
    """
    if arm.arm == "control":
        return inject_nothing
    return (Restoration if arm.arm == "oracle" else Sham)(task, arm.truth, unrecovered)


def unrecovered_in(decisions: list[Decision]) -> Unrecovered:
    """Return the missing inputs of each step that neither a recovery nor a memory system returned."""
    left = {one.t: frozenset(one.missing) - frozenset(one.fetched) for one in decisions}
    return {t: refs for t, refs in left.items() if refs}
