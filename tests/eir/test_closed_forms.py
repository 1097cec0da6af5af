"""Every closed form against an enumeration of inputs and a refinement of the process, as integers.

Three ways: Algorithm 1 over every prefix of moves and every continuation; refinement with dictionaries; refinement by
the package. The first two share no code with it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import pytest

from eirkit.eir.bisimulation import count_process, refine, tabulate
from eirkit.eir.contract import count_signatures
from eirkit.eir.demand import (
    ClassCount,
    final_sum,
    full_lookup,
    recallable,
    running_maximum,
    stepwise_sum,
    store_recall,
)
from eirkit.lacuna.tasks.generation import generate, graph_of, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import workloads
from tests.eir.processes import (
    FullLookup,
    Model,
    OnlineWindow,
    RunningMax,
    Slots,
    StoreRecall,
    SumWindow,
    count_classes,
    played,
)

ALPHABETS = (2, 3, 4)
WINDOWS = (0, 1, 2, 3, 4)
LARGEST_HERE = 64  # histories of one window; larger ones are left to `make session NAME=slow`
PREFIXES_TIMES_FUTURES = 100_000  # what one Algorithm 1 case may cost; larger ones are left to refinement


def prefix_cases(q: int, m: int) -> list[tuple[str, Model, int, int]]:
    """Return (family, model, cut, steps) with the cut after m steps and up to three steps left."""
    reaches = range(1, m + 1) if m else (1,)
    cases: list[tuple[str, Model, int, int]] = []
    for left in (0, 1, 2, 3):
        cases.append(("running-max", RunningMax(q), m, m + left))
        cases += [("full-lookup", FullLookup(q, m), m, m + left)] if m else []
        cases += [("store-recall", StoreRecall(q, reach), m, m + left) for reach in reaches]
        cases += [("sum", SumWindow(q, reach, f), m, m + left) for reach in reaches for f in (1, 2, 3)]
    return cases


def formula(model: Model, t: int, n: int) -> int:
    if isinstance(model, RunningMax):
        return running_maximum(model.q, n, t)
    if isinstance(model, FullLookup):
        return full_lookup(model.q, n, model.m, t)
    if isinstance(model, StoreRecall):
        return store_recall(model.q, n, model.reach, t)
    assert isinstance(model, OnlineWindow)
    return stepwise_sum(len(model.operator.inputs), n, model.reach, model.fan_in, t)


@pytest.mark.parametrize(
    ("m", "q"),
    [
        pytest.param(m, q, marks=[pytest.mark.slow] if q**m > LARGEST_HERE else [])
        for m, q in product(WINDOWS, ALPHABETS)
    ],
)
def test_every_prefix_of_inputs_by_algorithm_one(q: int, m: int) -> None:
    compared = set()
    for family, model, t, n in prefix_cases(q, m):
        contract = played(model, t, n)
        if len(contract.histories) * len(contract.futures) <= PREFIXES_TIMES_FUTURES:
            assert count_signatures(contract) == formula(model, t, n), (family, model, t, n)
            compared.add(family)
    assert compared == {"running-max", "store-recall", "sum", *(["full-lookup"] if m else [])}


@pytest.mark.parametrize("q", ALPHABETS)
def test_running_maximum_at_every_cut(q: int) -> None:
    for n in range(7):
        for t in range(n + 1):
            process = RunningMax(q).after(t, n)
            assert count_classes(process) == count_process(process).classes == running_maximum(q, n, t)


@pytest.mark.parametrize("q", ALPHABETS)
@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_full_lookup_while_storing_while_querying_and_without_queries(q: int, m: int) -> None:
    for n in range(m + 4):
        for t in range(n + 1):
            process = FullLookup(q, m).after(t, n)
            expected = full_lookup(q, n, m, t)
            assert count_process(process).classes == expected, (n, t)
            if q**m < 100:
                assert count_classes(process) == expected, (n, t)


@pytest.mark.parametrize("q", ALPHABETS)
@pytest.mark.parametrize("reach", [1, 2, 3, 4, 5])
def test_store_recall_while_filling_inside_and_at_the_end(q: int, reach: int) -> None:
    for n in range(9):
        for t in range(n + 1):
            process = StoreRecall(q, reach).after(t, n)
            assert count_classes(process) == store_recall(q, n, reach, t), (n, t)
            assert count_process(process).classes == store_recall(q, n, reach, t), (n, t)


@pytest.mark.parametrize("reach", range(1, 9))
def test_recallable_steps_are_those_of_the_definition(reach: int) -> None:
    for n, t in product(range(20), range(20)):
        first_even = next(step for step in range(t + 1, t + 3) if step % 2 == 0)
        expected = [s for s in range(1, t + 1) if s % 2 and max(1, first_even - reach) <= s] if first_even <= n else []
        assert list(recallable(n, reach, t)) == expected


@pytest.mark.parametrize("q", [2, 3])
@pytest.mark.parametrize("fan_in", [1, 2, 3, 4])
@pytest.mark.parametrize("reach", [1, 2, 3, 4])
def test_stepwise_sum_by_dictionaries(q: int, reach: int, fan_in: int) -> None:
    for n in range(8):
        for t in range(n + 1):
            process = SumWindow(q, reach, fan_in).after(t, n)
            assert count_classes(process) == stepwise_sum(q, n, reach, fan_in, t), (n, t)


@pytest.mark.parametrize(
    ("q", "reach"),
    [
        *product((2, 3, 4), (1, 2, 3, 4)),
        *product((6,), (1, 2, 3)),
        *((2, 5), (2, 6), (12, 2)),
        *(pytest.param(q, reach, marks=pytest.mark.slow) for q, reach in ((3, 5), (6, 4))),
    ],
)
def test_stepwise_sum_at_every_cut_fan_in_and_horizon(q: int, reach: int) -> None:
    for fan_in in range(1, reach + 2):
        for t in range(reach + 2):
            process = SumWindow(q, reach, fan_in).after(t, t)
            table = tabulate(process.at(process.states, None))
            for left in range(2 * fan_in + 3):
                labels = refine(table, left)[: len(table.cut)]
                found = len(set(labels.tolist()))
                assert found == stepwise_sum(q, t + left, reach, fan_in, t), (fan_in, t, left)


@pytest.mark.parametrize("q", [2, 3, 4, 6])
def test_terminal_sum_loses_the_common_divisor_of_fan_in_and_alphabet(q: int) -> None:
    for fan_in in (1, 2, 3):
        process = SumWindow(q, 4, fan_in).after(4, 5) if q < 6 else SumWindow(q, 3, min(fan_in, 2)).after(3, 4)
        window, used = len(process.states[0]), process.fan_in
        assert len(process.states) == q**window
        assert count_process(process).classes * math.gcd(used, q) == q**window


def test_any_one_graph_reaches_every_window_of_stepwise_sum() -> None:
    graph = ((), (1,), (1, 2), (1, 3), (2, 4))
    process = SumWindow(3, 4, 2).after_graph(graph, 7)
    assert set(process.states) == set(product(range(3), repeat=4))
    assert count_classes(process) == stepwise_sum(3, 7, 4, 2, 5)


@pytest.mark.parametrize("t", range(5))
def test_slots_are_a_product(t: int) -> None:
    process = Slots(SumWindow(2, 2, 2), slots=2).after(t, 4)
    one = ClassCount.exactly(stepwise_sum(2, 4, 2, 2, t))
    assert count_classes(process) == count_process(process).classes == one.power(2).lower


@pytest.mark.parametrize("q", ALPHABETS)
def test_the_final_sum_alone_needs_one_value(q: int) -> None:
    class Offline:
        futures = tuple(product(range(q), repeat=2))

        def __init__(self, t: int) -> None:
            self.histories = tuple(product(range(q), repeat=t))

        def respond(self, history: tuple[int, ...], future: tuple[int, ...]) -> int:
            return (sum(history) + sum(future)) % q

    for t in WINDOWS:
        assert count_signatures(Offline(t)) == final_sum(q, t + 2, t)


def test_the_papers_setting() -> None:
    def bits(t: int) -> float:
        return round(math.log2(stepwise_sum(10**4, 64, 16, 2, t)), 3)

    assert [bits(t) for t in (0, 16, 62, 63, 64)] == [0, 212.603, 212.603, 211.603, 0]
    assert math.log2(final_sum(10**4, 64, 32)) == pytest.approx(13.288, abs=5e-4)  # three printed decimals
    assert store_recall(10**4, 64, 16, 33) == (10**4) ** 8
    assert store_recall(10**4, 64, 16, 34) == (10**4) ** 7


@pytest.mark.parametrize("name", workloads.names())
def test_nothing_is_required_if_nothing_is_scored(name: str) -> None:
    # Eight steps, none of them scored: the curve of Stepwise Sum once claimed 39.86 certified bits.
    spec = TaskSpec(name, n=8, m=4, warm_up=8)
    curve = prepare(spec).demand(spec, graph_of(generate(spec)))
    assert curve.certified
    assert set(curve.bits) == {0.0}


@pytest.mark.parametrize("name", workloads.names())
def test_cuts_after_the_warm_up_are_as_before(name: str) -> None:
    spec = TaskSpec(name, n=9, m=4)
    graph = graph_of(generate(spec))
    whole, late = (prepare(spec).demand(replace(spec, warm_up=w), graph) for w in (0, 5))
    assert late.counts[5:] == whole.counts[5:]
    for before, after in zip(whole.counts[:5], late.counts[:5], strict=True):
        assert before is not None
        assert after is not None
        assert after.lower <= after.upper <= before.upper
