"""Stepwise Top-k: each answer is the k largest values of a fresh segment and the referenced answers, largest first."""

from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.eir.demand import DemandCurve
from eirkit.eir.frontier import demand_of_frontiers
from eirkit.errors import SpecError
from eirkit.tasks.task import Kind, Payload, TaskSpec
from eirkit.tasks.workload import Graph, Values, Workload, workloads


@workloads.add("stepwise-topk")
class StepwiseTopK(Workload):
    """Frontiers of k values. Warm-up steps are not scored, yet EIR treats them as required."""

    operator = "top"
    lists = True

    def check(self, spec: TaskSpec) -> None:
        if spec.slots != 1:
            raise SpecError(
                f"slots = {spec.slots} is not supported by stepwise-topk; set the size of a frontier with --k"
            )

    def width(self, spec: TaskSpec) -> int:
        return spec.k

    def alphabet(self, spec: TaskSpec) -> int:
        return comb(spec.q + spec.k - 1, spec.k)

    def rule(self, spec: TaskSpec) -> str:
        return f"The answer is the {spec.k} largest values of the input and all referenced answers, largest first."

    def canonical(self, values: Payload) -> Payload:
        return tuple(sorted(values, reverse=True))

    def operate(self, spec: TaskSpec, fresh: Payload | None, operands: Sequence[Payload]) -> Payload:
        union = [*(fresh or ()), *(value for operand in operands for value in operand)]
        return tuple(sorted(union, reverse=True)[: spec.k])

    def operate_batch(
        self, spec: TaskSpec, kind: Kind, fresh: Values, operands: Values, present: NDArray[Any]
    ) -> Values:
        # Absent operands are zeros, which a fresh segment of k values always pushes out or ties with.
        union = np.concatenate((fresh, operands.reshape(len(fresh), -1)), axis=1)
        return -np.sort(-union, axis=1)[:, : spec.k]

    def demand(self, spec: TaskSpec, graph: Graph, cuts: Sequence[int] | None = None) -> DemandCurve:
        return demand_of_frontiers(graph, spec.reach, spec.fan_in, spec.k, spec.q, cuts)
