"""Alternating Sum: the input minus the oldest referenced answer, plus the next, minus the next …, modulo q.

eirkit lacuna generate examples/alternating_sum.py:AlternatingSum --fan-in 3
"""

from collections.abc import Sequence

import numpy as np

from eirkit.lacuna.tasks.task import Kind, Payload, TaskSpec
from eirkit.lacuna.tasks.workload import Values, Workload


class AlternatingSum(Workload):
    """Unlike a sum it depends on the order of the references, so an agent that mixes up two records is caught."""

    def rule(self, spec: TaskSpec) -> str:
        return f"The answer is the input − the first referenced answer + the second − the third …, modulo {spec.q}."

    def operate(self, spec: TaskSpec, fresh: Payload | None, operands: Sequence[Payload]) -> Payload:
        signed = [[value if place % 2 else -value for value in operand] for place, operand in enumerate(operands)]
        return tuple(sum(column) % spec.q for column in zip(fresh or (), *signed, strict=True))

    def operate_batch(self, spec: TaskSpec, kind: Kind, fresh: Values, operands: Values, present: np.ndarray) -> Values:
        """Many tasks at once; without this method `operate` is called for each, a little slower."""
        signs = np.where(np.arange(operands.shape[1]) % 2, 1, -1)
        return (fresh + (operands * signs[:, None]).sum(axis=1)) % spec.q
