"""Stepwise Product: each answer is the input times the referenced answers, modulo q."""

from __future__ import annotations

import math
from collections.abc import Sequence

from eirkit.lacuna.tasks.task import Payload, TaskSpec
from eirkit.lacuna.tasks.workload import Workload


class StepwiseProduct(Workload):
    """Harder for models than a sum, and as hard to remember until a factor is zero."""

    def rule(self, spec: TaskSpec) -> str:
        return f"The answer is the input times every referenced answer, modulo {spec.q}."

    def operate(self, spec: TaskSpec, fresh: Payload | None, operands: Sequence[Payload]) -> Payload:
        return tuple(math.prod(column) % spec.q for column in zip(fresh or (), *operands, strict=True))
