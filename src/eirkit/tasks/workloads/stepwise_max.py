"""Stepwise Maximum: each answer is the largest of the input and the referenced answers, slot by slot."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.eir.demand import DemandCurve
from eirkit.eir.frontier import demand_of_frontiers
from eirkit.tasks.task import Kind, Payload, TaskSpec
from eirkit.tasks.workload import Graph, Values, Workload, workloads


class Maximum(Workload):
    """The operator that both maximum workloads share."""

    operator = "max"

    def rule(self, spec: TaskSpec) -> str:
        return "The answer is the largest of the input and all referenced answers, value by value."

    def operate(self, spec: TaskSpec, fresh: Payload | None, operands: Sequence[Payload]) -> Payload:
        return tuple(max(column) for column in zip(fresh or (), *operands, strict=True))

    def operate_batch(
        self, spec: TaskSpec, kind: Kind, fresh: Values, operands: Values, present: NDArray[Any]
    ) -> Values:
        # Absent operands are 0, which is never larger than a value.
        answers: Values = np.maximum(fresh, operands.max(axis=1))
        return answers


@workloads.add("stepwise-max")
class StepwiseMaximum(Maximum):
    """Local maxima that later steps may compare again: what must survive depends on the graph."""

    def demand(self, spec: TaskSpec, graph: Graph, cuts: Sequence[int] | None = None) -> DemandCurve:
        return demand_of_frontiers(graph, spec.reach, spec.fan_in, 1, spec.q, cuts, copies=spec.slots)
