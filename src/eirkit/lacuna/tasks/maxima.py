"""Built-in workloads that compare values (maxima and top-k): how each makes its steps, and the EIR known for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import comb, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.eir.demand import DemandCurve, StepBound, running_maximum
from eirkit.eir.frontier import demand_of_frontiers
from eirkit.eir.step_bounds import ChainedMaximum, LocalMaximum
from eirkit.errors import SpecError
from eirkit.lacuna.tasks.task import Kind, Payload, TaskSpec
from eirkit.lacuna.tasks.workload import Draw, Graph, References, Values, Workload, curve_of, workloads


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

    leaves_out_unscored = True

    def demand(self, spec: TaskSpec, graph: Graph, cuts: Sequence[int] | None = None) -> DemandCurve:
        curve = demand_of_frontiers(graph, spec.reach, spec.fan_in, 1, spec.q, cuts, copies=spec.slots)
        return curve.leave_out_unscored(spec.warm_up)

    def bounds(self, spec: TaskSpec, graph: Graph) -> Sequence[StepBound | None]:
        return _local_maxima(spec, graph, log2(self.alphabet(spec)), 1)


@workloads.add("running-max")
class RunningMaximum(Maximum):
    """A chain: only the last answer can ever matter."""

    leaves_out_unscored = True

    closed_form = True

    def references(self, spec: TaskSpec, seeds: Sequence[int] | NDArray[Any]) -> References:
        chain = np.zeros((len(seeds), spec.n, 1), dtype=np.int32)
        chain[:, :, 0] = np.arange(spec.n)
        return chain

    def last_use(self, spec: TaskSpec, t: int) -> int:
        return t + 1 if t < spec.n else 0

    def draws(self, spec: TaskSpec) -> Sequence[Draw | None]:
        return [Draw(1) if t else None for t in range(spec.n)]

    def demand(self, spec: TaskSpec, graph: Graph, cuts: Sequence[int] | None = None) -> DemandCurve:
        return curve_of(
            spec, cuts, lambda t: running_maximum(spec.q, spec.n, t), "closed form: Running Maximum, one value survives"
        )

    def bounds(self, spec: TaskSpec, graph: Graph) -> Sequence[StepBound | None]:
        if spec.slots > 1:  # a memory that keeps all slots may need more; the ceiling of one slot holds for all
            return _local_maxima(replace(spec, fan_in=1, lookback=1), graph, log2(self.alphabet(spec)), 1)
        return [ChainedMaximum(spec.q, t) if t else None for t in range(spec.n)]


@workloads.add("stepwise-topk")
class StepwiseTopK(Workload):
    """Frontiers of k values."""

    leaves_out_unscored = True

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
        curve = demand_of_frontiers(graph, spec.reach, spec.fan_in, spec.k, spec.q, cuts)
        return curve.leave_out_unscored(spec.warm_up)

    def bounds(self, spec: TaskSpec, graph: Graph) -> Sequence[StepBound | None]:
        return _local_maxima(spec, graph, log2(self.alphabet(spec)), spec.k)


def _local_maxima(spec: TaskSpec, graph: Graph, record_bits: float, width: int) -> list[StepBound | None]:
    """Return bounds for steps that compare `width` fresh values with those behind their references."""
    behind: list[set[int]] = []  # the steps whose inputs each answer depends on
    found: list[StepBound | None] = []
    for t, refs in enumerate(graph, 1):
        cone = set().union(*(behind[r - 1] for r in refs)) if refs else set[int]()
        window = min(t - 1, spec.reach)
        single = ChainedMaximum(spec.q, width * len(cone), width)
        found.append(LocalMaximum(single, window, len(refs), record_bits) if refs else None)
        behind.append({*cone, t})
    return found
