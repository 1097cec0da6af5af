"""Stepwise Sum: each answer is the input plus the referenced answers, modulo q, slot by slot."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from eirkit.eir.closed_forms import stepwise_sum
from eirkit.eir.demand import DemandCurve
from eirkit.tasks.task import Kind, Payload, TaskSpec
from eirkit.tasks.workload import Graph, Values, Workload, curve_of, workloads


@workloads.add("stepwise-sum")
class StepwiseSum(Workload):
    """Every step is scored and every eligible answer may be asked for again: the whole window must survive."""

    operator = "sum"
    closed_form = True

    def rule(self, spec: TaskSpec) -> str:
        return f"The answer is the input plus all referenced answers, modulo {spec.q}, value by value."

    def operate(self, spec: TaskSpec, fresh: Payload | None, operands: Sequence[Payload]) -> Payload:
        q = spec.q
        return tuple([sum(column) % q for column in zip(fresh or (), *operands, strict=True)])

    def operate_batch(
        self, spec: TaskSpec, kind: Kind, fresh: Values, operands: Values, present: NDArray[Any]
    ) -> Values:
        answers: Values = (fresh + operands.sum(axis=1)) % spec.q
        return answers

    def demand(self, spec: TaskSpec, graph: Graph, cuts: Sequence[int] | None = None) -> DemandCurve:
        return curve_of(
            spec,
            cuts,
            lambda t: stepwise_sum(spec.q, spec.n, spec.reach, spec.fan_in, t),
            "closed form: Stepwise Sum, every eligible residue must survive",
        )
