"""Ceilings of whole workloads against all encoders of every step of small tasks, made by the workloads themselves."""

from __future__ import annotations

import math
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from examples.alternating_sum import AlternatingSum

from eirkit.eir.lossy import EQUAL, Frontier
from eirkit.eir.step_bounds import LocalMaximum
from eirkit.errors import SpecError, UsageError
from eirkit.lacuna.tasks.certification import SmallSpec
from eirkit.lacuna.tasks.frontier import frontier_of
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import ASKING, TaskSpec
from eirkit.lacuna.tasks.workload import Graph, Workload, as_tuples, workloads
from eirkit.lacuna.tasks.workloads import FullLookup

SEEDS = np.arange(400, dtype=np.uint64)
MOST_HISTORIES = 100


def step_contract(workload: Workload, spec: SmallSpec, graph: Graph, t: int, asked: list[tuple[int, ...]]) -> Any:
    """Return the contract of step t: histories are all inputs before it, futures what it may refer to and its input."""
    kinds, width = workload.kinds(spec), workload.width(spec)

    def inputs(step: int) -> list[Any]:
        return [None] if kinds[step] in ASKING else list(product(range(spec.q), repeat=width))

    def respond(history: tuple[Any, ...], future: Any) -> Any:
        answers: list[Any] = []
        for fresh, refs in zip(history, graph, strict=False):
            answers.append(workload.canonical(workload.operate(spec, fresh, [answers[r - 1] for r in refs])))
        refs, fresh = future
        return workload.canonical(workload.operate(spec, fresh, [answers[r - 1] for r in refs]))

    return SimpleNamespace(
        histories=list(product(*(inputs(step) for step in range(t - 1)))),
        futures=list(product(asked, inputs(t - 1))),
        respond=respond,
    )


def sizes(name: str, alphabets: tuple[int, ...]) -> list[SmallSpec]:
    found = []
    for values, n, m, fan_in in product(alphabets, (2, 3, 4, 5), (1, 2, 3), (1, 2)):
        spec = SmallSpec(name, n=n, m=m, fan_in=fan_in, values=values)
        try:
            workloads.get(name)().check(spec)
        except SpecError:
            continue
        found.append(spec)
    return found


BOUNDED = [name for name in workloads.names() if name != "record-store"]  # which states no ceiling


@pytest.mark.parametrize("alphabets", [(2,), pytest.param((2, 3), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", BOUNDED)
def test_no_encoder_of_any_step_exceeds_the_ceiling(name: str, alphabets: tuple[int, ...]) -> None:
    compared = 0
    for spec in sizes(name, alphabets):
        workload = prepare(spec)
        graphs = [as_tuples(row) for row in workload.references(spec, SEEDS)]
        bounds = workload.bounds(spec, graphs[0])
        assert len(bounds) == spec.n
        for t, bound in enumerate(bounds, 1):
            support = sorted({graph[t - 1] for graph in graphs})
            assert (bound is None) == (support == [()])
            if bound is None:
                continue
            # The ceiling of a local maximum is that of a memory that knows what is asked.
            known = isinstance(bound, LocalMaximum)
            contract = step_contract(workload, spec, graphs[0], t, [graphs[0][t - 1]] if known else support)
            if len(contract.histories) > MOST_HISTORIES:
                continue
            frontier = Frontier(contract)
            every = Frontier(step_contract(workload, spec, graphs[0], t, support)) if known else frontier
            for k in range(1, frontier.atoms + 1):
                bits = math.log2(k)
                assert bound.upper(bits) >= frontier.point(k).lower - EQUAL, (spec, t, k)
                assert bound.kept(bits) <= every.point(k).upper + EQUAL, (spec, t, k)
                assert bound.exists(bits) <= every.point(k).upper + EQUAL, (spec, t, k)
                compared += 1
    assert compared > 20


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("slots", [1, 2])
def test_points_are_ordered_and_rise_with_the_bits(name: str, slots: int) -> None:
    spec = TaskSpec(name, slots=1 if name == "stepwise-topk" else slots)
    found = frontier_of(generate(spec))
    grid = [found.point(share * found.enough_bits) for share in np.linspace(0, 1, 25)]
    for point in grid:
        assert 0 <= point.kept <= point.exists <= point.upper <= 1
    for kind in ("kept", "exists", "upper"):
        shares = [getattr(point, kind) for point in grid]
        assert shares == pytest.approx(sorted(shares), abs=EQUAL)
    assert grid[-1].kept == 1
    low, high = found.bits_for(0.05)
    assert 0 < low <= high <= found.enough_bits


def test_the_newest_twelve_of_sixteen_are_those_of_a_window() -> None:
    # 1 − C(12, 2)/C(16, 2) = 0.45 misses in a full window, fewer while it fills: 0.356 in the mean of 63 steps.
    found = frontier_of(generate(TaskSpec("stepwise-sum")))
    for h, misses in [(12, 0.356), (8, 0.643), (4, 0.863)]:
        assert 1 - found.point(h * found.record_bits).kept == pytest.approx(misses, abs=0.001)


def test_popular_records_are_kept_first() -> None:
    uniform, zipf = (frontier_of(generate(TaskSpec("full-lookup", queries=law))) for law in ("uniform", "zipf"))
    half = 8 * uniform.record_bits
    total = sum(1 / label for label in range(1, 17))
    assert zipf.point(half).kept == pytest.approx(sum(1 / label for label in range(1, 9)) / total, abs=1e-4)
    assert uniform.point(half).upper < zipf.point(half).kept <= zipf.point(half).upper
    shuffled = FullLookup().bounds(TaskSpec("full-lookup", queries="zipf-shuffled"), ())
    assert shuffled == FullLookup().bounds(TaskSpec("full-lookup"), ())


def test_a_workload_without_a_known_ceiling_says_so() -> None:
    with pytest.raises(UsageError, match="no ceiling is known"):
        AlternatingSum().bounds(TaskSpec("mine"), ())
    with pytest.raises(SpecError, match="larger --n"):
        frontier_of(generate(TaskSpec("stepwise-sum", n=8, warm_up=8)))
