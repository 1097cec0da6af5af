"""Full Lookup: m labelled values are stored first, then arbitrary labels are queried, uniformly or by popularity."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.eir.closed_forms import full_lookup
from eirkit.eir.demand import DemandCurve
from eirkit.errors import SpecError, UnknownNameError
from eirkit.seeds import below, words
from eirkit.tasks.graph import References
from eirkit.tasks.task import Kind, TaskSpec
from eirkit.tasks.workload import Graph, Lookup, curve_of, workloads

DISTRIBUTIONS = ("uniform", "zipf", "zipf-shuffled")


@workloads.add("full-lookup")
class FullLookup(Lookup):
    """Every label stays eligible to the end, and only stored records take a slot."""

    closed_form = True

    def check(self, spec: TaskSpec) -> None:
        if spec.queries not in DISTRIBUTIONS:
            raise UnknownNameError("query distribution", spec.queries, DISTRIBUTIONS)
        if spec.n <= spec.m:
            raise SpecError(f"n = {spec.n} leaves no query after m = {spec.m} stores; use --n above --m")

    def kinds(self, spec: TaskSpec) -> tuple[Kind, ...]:
        store: Kind = "store"
        query: Kind = "query"
        return (store,) * spec.m + (query,) * (spec.n - spec.m)

    def references(self, spec: TaskSpec, seeds: Sequence[int] | NDArray[Any]) -> References:
        drawn = words(seeds, spec.n, "query")
        if spec.queries == "uniform":
            labels = below(drawn, spec.m) + 1
        else:
            labels = np.searchsorted(_zipf_steps(spec.m), drawn, side="right") + 1
        if spec.queries == "zipf-shuffled":
            order = np.argsort(words(seeds, spec.m, "popularity"), axis=1, kind="stable") + 1
            labels = np.take_along_axis(order, labels - 1, axis=1)
        labels[:, : spec.m] = 0
        return labels.astype(np.int32)[:, :, None]

    def stores(self, spec: TaskSpec, t: int) -> bool:
        return t <= spec.m

    def last_use(self, spec: TaskSpec, t: int) -> int:
        return spec.n if t <= spec.m else 0

    def demand(self, spec: TaskSpec, graph: Graph, cuts: Sequence[int] | None = None) -> DemandCurve:
        return curve_of(
            spec,
            cuts,
            lambda t: full_lookup(spec.q, spec.n, spec.m, t),
            "closed form: Full Lookup, every stored label while a query remains",
        )


@lru_cache(maxsize=16)
def _zipf_steps(m: int) -> NDArray[np.uint64]:
    """Return where the cumulative Zipf law (exponent 1, label 1 the most popular) cuts the 64-bit words.

    Integers only, so that no platform's rounding can move a query; the weights are exact to 2^-128.
    """
    cumulative = list(accumulate((1 << 128) // label for label in range(1, m + 1)))
    steps = np.array([(below_it << 64) // cumulative[-1] for below_it in cumulative[:-1]], dtype=np.uint64)
    steps.flags.writeable = False  # the cache hands the same array to everyone
    return steps
