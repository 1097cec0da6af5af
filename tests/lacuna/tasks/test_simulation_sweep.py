"""Rows of a sweep: rates over seeds, the gap closed, first failures, and memory that does not grow."""

from __future__ import annotations

import statistics
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eirkit.errors import SpecError, UnknownNameError
from eirkit.lacuna.findings.statistics import deviation
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.simulation.plain import simulate
from eirkit.lacuna.tasks.simulation.table import MissTally, batches, first_failures, gap_closed, miss_rates, sweep
from eirkit.lacuna.tasks.task import TaskSpec

SUM = TaskSpec("stepwise-sum")
ROUND_OFF = 1e-12  # sums of a few dozen doubles between 0 and 1
# Four standard errors of a mean over 300 seeds, from the sd of 0.056 that the rates have.
NEAR = 4 * 0.056 / 300**0.5


def test_rows_are_means_over_seeds_of_the_plain_loop():
    seeds, h = range(6), 8
    rows = {row.policy: row for row in sweep(SUM, seeds, ["lru", "fifo"], [h])}
    outcomes = {
        name: [simulate(generate(SUM.with_seed(seed)), name, h) for seed in seeds] for name in ("lru", "fifo", "belady")
    }
    rates = {name: [outcome.miss_rate for outcome in listed] for name, listed in outcomes.items()}
    row = rows["lru"]
    assert row.miss_rate == pytest.approx(statistics.fmean(rates["lru"]), abs=ROUND_OFF)
    assert row.miss_rate_sd == pytest.approx(statistics.pstdev(rates["lru"]), abs=ROUND_OFF)
    assert row.hit_rate == pytest.approx(statistics.fmean(o.hit_rate for o in outcomes["lru"]), abs=ROUND_OFF)
    floor, ceiling = statistics.fmean(rates["fifo"]), statistics.fmean(rates["belady"])
    assert row.gap_closed == pytest.approx((floor - row.miss_rate) / (floor - ceiling), abs=ROUND_OFF)
    regret = [
        a.missed_references - b.missed_references for a, b in zip(*map(outcomes.get, ("lru", "belady")), strict=True)
    ]
    assert row.miss_regret == pytest.approx(statistics.fmean(regret), abs=ROUND_OFF)
    assert (row.workload, row.h, row.pressure, row.seeds) == ("stepwise-sum", 8, 2.0, 6)


def test_the_gap_is_measured_between_fifo_and_belady():
    rows = {row.policy: row.gap_closed for row in sweep(SUM, range(3), ["fifo", "belady"], [8])}
    assert rows == {"fifo": 0.0, "belady": 1.0}
    assert gap_closed(0.7, 0.6, 0.2) == pytest.approx(-0.25)
    assert gap_closed(0.1, 0.0, 0.0) is None


def test_rows_come_by_capacity_and_policy_each_once():
    rows = sweep(SUM, range(2), ["lru", "fifo", "lru"], [8, 4, 8])
    assert [(row.h, row.policy) for row in rows] == [(8, "lru"), (8, "fifo"), (4, "lru"), (4, "fifo")]


@pytest.mark.parametrize(
    ("workload", "h", "ratio"),
    [
        ("stepwise-sum", 8, 16 / 8),  # the whole window of sixteen residues
        ("store-recall", 4, 8 / 4),  # after a STORE: half the window
        ("full-lookup", 4, 16 / 4),
        ("running-max", 4, 1 / 4),
        ("stepwise-max", 4, None),  # depends on the graph
    ],
)
def test_information_pressure_where_a_closed_form_is_certified(workload, h, ratio):
    (row,) = sweep(TaskSpec(workload), [0], ["fifo"], [h])
    assert row.eir_pressure == (None if ratio is None else pytest.approx(ratio))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(9, 12)), min_size=1, max_size=40))
@example([(1, 10)] * 3)  # three times 1/10, over three, is another double than 1/10
def test_a_tally_has_the_mean_and_deviation_of_its_rates(pairs):
    tally = MissTally()
    for missed, possible in pairs:
        tally.add(np.array([missed]), np.array([possible]))
    rates = [missed / possible for missed, possible in pairs]
    assert tally.mean == pytest.approx(statistics.fmean(rates), abs=ROUND_OFF)
    assert tally.deviation == pytest.approx(statistics.pstdev(rates), abs=ROUND_OFF)
    if len(set(rates)) == 1:
        assert tally.deviation == deviation(rates) == 0, "not some 1e-17"
    assert (tally.total, tally.mean_missed) == (len(pairs), pytest.approx(statistics.fmean(m for m, _ in pairs)))


@pytest.mark.parametrize(
    ("policy", "rates"),
    [
        ("fifo", (0.0, 0.3553, 0.6448, 0.8643)),
        ("lru", (0.2176, 0.4165, 0.6514, 0.8639)),
        ("belady", (0, 0.0066, 0.2065, 0.6167)),
    ],
)
def test_stepwise_sum_has_its_known_miss_rates(policy, rates):
    found = [row.miss_rate for row in sweep(SUM, range(300), [policy], [16, 12, 8, 4])]
    assert found == pytest.approx(rates, abs=NEAR)


def test_fifo_has_the_rate_that_combinatorics_give():
    """Step t refers to 2 of min(t − 1, 16) steps; FIFO with h misses unless both are among the last h."""

    def missed(available: int, h: int) -> float:
        near = min(available, h)
        drawn = min(2, available)
        kept = near * (near - 1) / (available * (available - 1)) if drawn == 2 else near / available
        return 1 - kept

    expected = [statistics.fmean(missed(min(t - 1, 16), h) for t in range(2, 65)) for h in (12, 8, 4)]
    found = miss_rates(SUM, range(4000), "fifo", [12, 8, 4])
    assert found.mean(axis=0) == pytest.approx(expected, abs=4 * 0.056 / 4000**0.5)


def test_first_failures_follow_the_grid_of_capacities():
    found = first_failures(SUM, range(100), ["fifo", "lru", "belady", "unbounded"])
    assert found == {"fifo": 16 / 14, "lru": 1.0, "belady": 16 / 10, "unbounded": None}


def test_a_store_larger_than_the_task_misses_nothing():
    rows = sweep(SUM, range(3), ["fifo", "random", "lfu"], [64, 10**30])
    assert {row.miss_rate for row in rows} == {0.0}


def test_progress_is_told_in_tasks():
    told: list[int] = []
    sweep(SUM, range(5000), ["fifo"], [4], advance=told.append)
    assert sum(told) == 5000
    assert len(told) > 1


def test_long_tasks_are_drawn_in_smaller_chunks():
    sizes = [len(batch.seeds) for batch in batches(TaskSpec("stepwise-sum", n=100_000), range(30))]
    assert sum(sizes) == 30
    assert max(sizes) < 30


def test_memory_does_not_grow_with_the_number_of_seeds():
    def peak(seeds: int) -> int:
        tracemalloc.start()
        sweep(SUM, range(seeds), ["lru"], [8, 4])
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(4096)  # compiles
    a_chunk = peak(4096)
    assert peak(5 * 4096) < 1.1 * a_chunk  # the tally may meet a few more outcomes


def test_wrong_usage_is_refused():
    with pytest.raises(UnknownNameError):
        sweep(SUM, range(2), ["lucky"], [4])
    with pytest.raises(SpecError, match="h = 0"):
        sweep(SUM, range(2), ["fifo"], [0])
    with pytest.raises(SpecError, match="no seeds"):
        sweep(SUM, [], ["fifo"], [4])
    with pytest.raises(SpecError, match="seed = -1"):
        sweep(SUM, [4, -1], ["fifo"], [4])
    with pytest.raises(SpecError, match="refers"):
        sweep(TaskSpec("stepwise-sum", n=1), [0], ["fifo"], [4])
