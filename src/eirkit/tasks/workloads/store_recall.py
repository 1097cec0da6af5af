"""Store–Recall: odd steps store a value, even steps ask for a recent one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.eir.closed_forms import store_recall
from eirkit.eir.demand import DemandCurve
from eirkit.seeds import below, words
from eirkit.tasks.graph import References
from eirkit.tasks.task import Kind, TaskSpec
from eirkit.tasks.workload import Graph, Lookup, curve_of, workloads


@workloads.add("store-recall")
class StoreRecall(Lookup):
    """A recall answer is never asked for again, although it takes a slot."""

    closed_form = True

    def kinds(self, spec: TaskSpec) -> tuple[Kind, ...]:
        return tuple("store" if t % 2 else "recall" for t in range(1, spec.n + 1))

    def references(self, spec: TaskSpec, seeds: Sequence[int] | NDArray[Any]) -> References:
        steps = np.arange(1, spec.n + 1)
        oldest = np.maximum(1, steps - spec.reach)
        oldest += (oldest + 1) % 2  # the first odd step in reach
        stored = np.where(steps % 2 == 0, (steps - oldest + 1) // 2, 0)
        drawn = below(words(seeds, spec.n, "recall"), stored)
        return np.where(stored > 0, oldest + 2 * drawn, 0).astype(np.int32)[:, :, None]

    def last_use(self, spec: TaskSpec, t: int) -> int:
        last = min(t + spec.reach, spec.n)
        last -= last % 2  # only even steps ask
        return last if t % 2 and last > t else 0

    def demand(self, spec: TaskSpec, graph: Graph, cuts: Sequence[int] | None = None) -> DemandCurve:
        return curve_of(
            spec,
            cuts,
            lambda t: store_recall(spec.q, spec.n, spec.reach, t),
            "closed form: Store–Recall, every value that the next recall may ask for",
        )
