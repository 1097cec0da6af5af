"""The built-in workloads: how each one makes its steps, and the EIR that is known for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from math import comb, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.eir.demand import (
    DemandCurve,
    StepBound,
    fetched_lookups,
    full_lookup,
    recallable,
    running_maximum,
    stepwise_sum,
    store_recall,
)
from eirkit.eir.frontier import demand_of_frontiers
from eirkit.eir.step_bounds import ChainedMaximum, LocalMaximum, UniformRecords, WeightedRecords
from eirkit.errors import SpecError, UnknownNameError
from eirkit.seeds import below, words
from eirkit.tasks.task import Kind, Payload, TaskSpec
from eirkit.tasks.workload import Draw, Graph, Lookup, References, Values, Workload, curve_of, workloads


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
