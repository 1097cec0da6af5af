"""Predictions by hand, and beside runs of agents for which they must hold."""

from __future__ import annotations

import pytest

from eirkit.lacuna.findings.causes import judge, score
from eirkit.lacuna.findings.prediction import (
    PressureRun,
    Recovery,
    decompose,
    equal_pressure_cells,
    no_cascade,
    pressure_correlation,
    reads_given_cone,
    residuals,
    store_recall_accuracy,
)
from eirkit.lacuna.tasks.cones import cone_of
from eirkit.lacuna.tasks.generation import graph_of, prepare
from eirkit.lacuna.tasks.simulation.plain import simulate
from tests.lacuna.running import agent, controlled, task_of


def test_the_no_cascade_prediction_by_hand():
    # The published 0.36 at h = 8 is 1 − 0.640 over the 63 steps with references.
    found = no_cascade(missed_steps=40, n=64, consuming_steps=63)
    assert (found.of_all, found.of_consuming) == (1 - 40 / 64, 1 - 40 / 63)
    assert store_recall_accuracy(0.0) == 1.0
    assert store_recall_accuracy(0.5) == 0.75


def test_residuals_by_hand():
    found = residuals([0.5, 1.0], [0.75, 0.5])
    assert (found.values, found.mean, found.mean_absolute) == ((-0.25, 0.5), 0.125, 0.375)
    assert residuals([], []).mean_absolute == 0.0


def test_store_recall_is_predicted_exactly_by_its_misses():
    observed, predicted = [], []
    for seed in range(8):
        task = task_of("store-recall", m=16, seed=seed)
        trace = controlled(task, agent("calculator"), 4)
        observed.append(score(judge(task, prepare(task.spec), trace.decisions), trace.decisions).accuracy)
        predicted.append(store_recall_accuracy(simulate(task, "fifo", 4).miss_rate))
    # The calculator answers 0 where it misses; a stored 0000 would be a lucky guess, once in 10^4 misses.
    assert residuals(observed, predicted).mean_absolute == pytest.approx(0, abs=1e-12)


def test_stepwise_sum_falls_below_its_no_cascade_prediction():
    task = task_of("stepwise-sum", m=16)
    trace = controlled(task, agent("calculator"), 12)
    found = score(judge(task, prepare(task.spec), trace.decisions), trace.decisions)
    assert found.accuracy < no_cascade(found.missed, 64, 63).of_all - 0.2


def test_the_decomposition_adds_up_and_shows_the_cascade():
    trials = []
    for seed in range(6):
        task = task_of("stepwise-sum", m=16, seed=seed)
        trials.append(judge(task, prepare(task.spec), controlled(task, agent("calculator"), 12).decisions))
    profiles = decompose(trials)
    assert [profile.t for profile in profiles] == list(range(1, 65))
    assert all(sum(profile.causes.values()) == profile.wrong for profile in profiles)
    # Under FIFO with h = 12 nothing can be lost before step 14, and later errors outgrow the misses.
    assert all(profile.wrong == 0 for profile in profiles[:13])
    assert sum(profile.excess for profile in profiles[32:]) > 0


def test_pressure_lowers_accuracy_and_the_correlation_says_so():
    trials = [PressureRun(64, 16 / h, 1 / h + 0.001 * seed) for h in (16, 12, 8, 4) for seed in range(9)]
    found = pressure_correlation([PressureRun(t.n, t.pressure, 1 - t.pressure / 10) for t in trials])
    assert found.estimate == pytest.approx(-1.0)
    assert found.p < 0.001


def test_equal_pressure_cells_are_compared_pairwise():
    same = [PressureRun(n, 2.0, value) for n in (32, 64) for value in (0.1, 0.2, 0.3)]
    different = [PressureRun(n, 4.0, 0.1 * (n == 32) + 0.01 * i) for n in (32, 64) for i in range(4)]
    found = equal_pressure_cells([*same, *different, PressureRun(64, 1.0, 1.0)])
    assert [(cell.pressure, cell.lengths) for cell in found] == [(2.0, (32, 64)), (4.0, (32, 64))]
    assert found[0].difference.p == 1.0
    # Fully separated fours: two of C(8,4) = 70 splits are as extreme.
    assert found[1].difference.p == pytest.approx(2 / 70)


def test_reads_that_equal_the_cone_do_not_depend_on_pressure():
    recoveries = []
    for seed in range(10):
        task = task_of("stepwise-sum", m=8, seed=seed)
        graph = graph_of(task)
        recoveries += [Recovery(size, p, size) for p in (1.0, 2.0, 4.0) for size in [cone_of(graph, 30).size]]
    found = reads_given_cone(recoveries)
    assert (found.estimate, found.p, found.n) == (0.0, 1.0, 30)


def test_reads_that_follow_pressure_are_noticed():
    waste = [Recovery(size, p, size + int(3 * p)) for size in (5, 9) for p in (1.0, 2.0, 4.0) for _ in range(4)]
    found = reads_given_cone(waste)
    assert found.estimate == pytest.approx(3.0)
    assert found.p < 0.001


def test_without_two_pressures_at_one_cone_there_is_nothing_to_test():
    assert reads_given_cone([Recovery(3, 1.0, 3), Recovery(4, 2.0, 9)]).n == 0
