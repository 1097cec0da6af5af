"""What the arms of a rescue inject at a step that misses something: the missing results, or others in their place."""

from __future__ import annotations

from collections.abc import Mapping

from eirkit.agents.session import Decision, Injector, inject_nothing
from eirkit.runs.cells import RescueArm, Truth
from eirkit.seeds import below, words
from eirkit.tasks.task import Payload, TaskInstance
from eirkit.tasks.view import PublicStep, Record

Unrecovered = Mapping[int, frozenset[int]]  # by step: what it missed and nothing brought


class Restoration:
    """Restores every missing result, or those of them that nothing else brings: the true one, or the one submitted."""

    def __init__(self, task: TaskInstance, truth: Truth = "true", lacking: Unrecovered | None = None) -> None:
        self.task, self.truth, self.lacking = task, truth, lacking

    def __call__(
        self, step: PublicStep, missing: tuple[int, ...], submitted: Mapping[int, Payload]
    ) -> tuple[Record, ...]:
        wanted = missing if self.lacking is None else [r for r in missing if r in self.lacking.get(step.t, ())]
        return tuple((r, value) for r in wanted if (value := self.operand(r, submitted)) is not None)

    def operand(self, r: int, submitted: Mapping[int, Payload]) -> Payload | None:
        """Return what the oracle would restore; None where nothing was ever submitted."""
        return self.task.step(r).answer if self.truth == "true" else submitted.get(r)


class Sham(Restoration):
    """Carries the required label and another earlier answer of the same task: the oracle's length, not its content."""

    def __call__(
        self, step: PublicStep, missing: tuple[int, ...], submitted: Mapping[int, Payload]
    ) -> tuple[Record, ...]:
        restored = super().__call__(step, missing, submitted)
        return tuple((r, self._other(step.t, r, operand, submitted)) for r, operand in restored)

    def _other(self, t: int, r: int, operand: Payload, submitted: Mapping[int, Payload]) -> Payload:
        """Return an earlier answer, drawn by the task's seed: neither the operand nor what was submitted for it."""
        earlier = (self.operand(s, submitted) for s in range(1, t))
        others = [value for value in earlier if value is not None and value not in (operand, submitted.get(r))]
        if not others:
            # A task whose earlier answers all coincide has nothing to offer; the next value is as wrong and as long.
            return tuple((value + 1) % self.task.spec.q for value in operand)
        return others[int(below(words([self.task.spec.seed], 1, "sham", t, r)[0, 0], len(others)))]


def injector(arm: RescueArm, task: TaskInstance, lacking: Unrecovered | None = None) -> Injector:
    """Return what an arm injects into a run of a task.

    Args:
        lacking: what alone is restored; everything that is missing unless given.
    """
    if arm.arm == "control":
        return inject_nothing
    return (Restoration if arm.arm == "oracle" else Sham)(task, arm.truth, lacking)


def unrecovered_in(decisions: list[Decision]) -> Unrecovered:
    """Return what steps missed and neither a recovery nor a memory system brought."""
    left = {one.t: frozenset(one.missing) - frozenset(one.fetched) for one in decisions}
    return {t: refs for t, refs in left.items() if refs}
