"""Running Maximum: each answer is the larger of the input and the previous answer; a one-value control."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.eir.closed_forms import running_maximum
from eirkit.eir.demand import DemandCurve
from eirkit.tasks.graph import References
from eirkit.tasks.task import TaskSpec
from eirkit.tasks.workload import Graph, curve_of, workloads
from eirkit.tasks.workloads.stepwise_max import Maximum


@workloads.add("running-max")
class RunningMaximum(Maximum):
    """A chain: only the last answer can ever matter."""

    closed_form = True

    def references(self, spec: TaskSpec, seeds: Sequence[int] | NDArray[Any]) -> References:
        chain = np.zeros((len(seeds), spec.n, 1), dtype=np.int32)
        chain[:, :, 0] = np.arange(spec.n)
        return chain

    def last_use(self, spec: TaskSpec, t: int) -> int:
        return t + 1 if t < spec.n else 0

    def demand(self, spec: TaskSpec, graph: Graph, cuts: Sequence[int] | None = None) -> DemandCurve:
        return curve_of(
            spec, cuts, lambda t: running_maximum(spec.q, spec.n, t), "closed form: Running Maximum, one value survives"
        )
