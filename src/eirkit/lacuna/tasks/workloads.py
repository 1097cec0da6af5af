"""Built-in workloads that look values up or add them: how each makes its steps, and the EIR that is known for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.eir.demand import (
    DemandCurve,
    StepBound,
    fetched_lookups,
    full_lookup,
    recallable,
    stepwise_sum,
    store_recall,
)
from eirkit.eir.step_bounds import UniformRecords, WeightedRecords
from eirkit.errors import SpecError, UnknownNameError
from eirkit.lacuna.tasks.task import Kind, Payload, TaskSpec
from eirkit.lacuna.tasks.workload import Draw, Graph, Lookup, References, Values, Workload, curve_of, workloads
from eirkit.seeds import below, words


@workloads.add("store-recall")
class StoreRecall(Lookup):
    """A recall answer is never asked for again, although it takes a slot."""

    leaves_out_unscored = True

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
            lambda t: store_recall(spec.q, spec.n, spec.reach, t, spec.warm_up),
            "closed form: Store–Recall, every value that the next scored recall may ask for"
            if spec.warm_up
            else "closed form: Store–Recall, every value that the next recall may ask for",
        )

    def demand_with_retrievals(self, spec: TaskSpec, retrievals: int, cuts: Sequence[int] | None = None) -> DemandCurve:
        def classes(t: int) -> int:
            asking = range(max(t, spec.warm_up) // 2 * 2 + 2, spec.n + 1, 2)
            return fetched_lookups(
                spec.q, len(recallable(spec.n, spec.reach, t, spec.warm_up)), len(asking), retrievals
            )

        return curve_of(spec, cuts, classes, FETCHED.format("Store–Recall, what the next recall may ask for"))

    def draws(self, spec: TaskSpec) -> Sequence[Draw | None]:
        stored = (len(recallable(spec.n, spec.reach, t - 1)) if t % 2 == 0 else 0 for t in range(1, spec.n + 1))
        return [Draw(records) if records else None for records in stored]

    def bounds(self, spec: TaskSpec, graph: Graph) -> Sequence[StepBound | None]:
        draws = self.draws(spec)
        return [UniformRecords(draw.available, 1, spec.q, spec.slots) if draw else None for draw in draws]


FETCHED = "closed form: {}, less one record for each retrieval that is left"
DISTRIBUTIONS = ("uniform", "zipf", "zipf-shuffled")


@workloads.add("full-lookup")
class FullLookup(Lookup):
    """Every label stays eligible to the end, and only stored records take a slot."""

    leaves_out_unscored = True

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

    def demand_with_retrievals(self, spec: TaskSpec, retrievals: int, cuts: Sequence[int] | None = None) -> DemandCurve:
        def classes(t: int) -> int:
            asking = spec.n - max(t, spec.m, spec.warm_up)
            return fetched_lookups(spec.q, min(t, spec.m), asking, retrievals)

        return curve_of(spec, cuts, classes, FETCHED.format("Full Lookup, every stored label"))

    def draws(self, spec: TaskSpec) -> Sequence[Draw | None]:
        # Under a shuffled popularity queries tell which records are popular, so that is taken as known.
        law = () if spec.queries == "uniform" else _zipf(spec.m)
        return [None] * spec.m + [Draw(spec.m, weights=law)] * (spec.n - spec.m)

    def bounds(self, spec: TaskSpec, graph: Graph) -> Sequence[StepBound | None]:
        # A shuffled popularity is unknown when the memory is written, so each query is uniform to it.
        step: StepBound = UniformRecords(spec.m, 1, spec.q, spec.slots)
        if spec.queries == "zipf":
            step = WeightedRecords(_zipf(spec.m), self.alphabet(spec))
        return [None] * spec.m + [step] * (spec.n - spec.m)


def _zipf(m: int) -> tuple[float, ...]:
    total = sum(1 / label for label in range(1, m + 1))
    return tuple(1 / label / total for label in range(1, m + 1))


@lru_cache(maxsize=16)
def _zipf_steps(m: int) -> NDArray[np.uint64]:
    """Return where the cumulative Zipf law (exponent 1, label 1 the most popular) cuts the 64-bit words.

    Integers only, so that no platform's rounding can move a query; the weights are exact to 2^-128.
    """
    cumulative = list(accumulate((1 << 128) // label for label in range(1, m + 1)))
    steps = np.array([(below_it << 64) // cumulative[-1] for below_it in cumulative[:-1]], dtype=np.uint64)
    steps.flags.writeable = False  # the cache hands the same array to everyone
    return steps


@workloads.add("stepwise-sum")
class StepwiseSum(Workload):
    """Every step is scored and every eligible answer may be asked for again: the whole window must survive."""

    leaves_out_unscored = True

    operator = "sum"
    closed_form = True

    def rule(self, spec: TaskSpec) -> str:
        return f"The answer is the input plus all referenced answers, modulo {spec.q}, value by value."

    def operate(self, spec: TaskSpec, fresh: Payload | None, operands: Sequence[Payload]) -> Payload:
        if fresh is not None and len(fresh) == 1:  # as in most tasks
            return ((fresh[0] + sum([value for (value,) in operands])) % spec.q,)
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
        ).leave_out_unscored(spec.warm_up)

    def bounds(self, spec: TaskSpec, graph: Graph) -> Sequence[StepBound | None]:
        draws = self.draws(spec)
        return [UniformRecords(draw.available, draw.drawn, spec.q, spec.slots) if draw else None for draw in draws]
