"""One task under one policy: what counts as a miss, and the rates that follow."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import SpecError, UnknownNameError
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.simulation.plain import Outcome, first_failure, outlook_of, simulate, structure_of
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import workloads
from tests.lacuna.strategies import specs


def test_steps_and_references_are_counted_apart():
    outcome = Outcome(references=((), (1,), (1, 2), (1, 3)), missing=((), (), (1, 2), (3,)))
    assert (outcome.consuming_steps, outcome.missed_steps) == (3, 2)
    assert (outcome.needed_references, outcome.missed_references) == (5, 3)
    assert outcome.miss_rate == pytest.approx(2 / 3)
    assert outcome.hit_rate == pytest.approx(2 / 5)
    assert outcome.first_miss == 3


def test_a_task_that_needs_nothing_misses_nothing():
    outcome = simulate(generate(TaskSpec("stepwise-sum", n=1)), "fifo", 1)
    assert (outcome.miss_rate, outcome.hit_rate, outcome.first_miss) == (0, 1, None)


def test_consuming_steps_of_the_paper():
    assert simulate(generate(TaskSpec("stepwise-sum")), "fifo", 8).consuming_steps == 63
    assert simulate(generate(TaskSpec("store-recall")), "fifo", 8).consuming_steps == 32
    assert simulate(generate(TaskSpec("full-lookup")), "fifo", 8).consuming_steps == 48


def test_what_takes_a_slot():
    def slots(workload: str) -> int:
        return sum(structure_of(TaskSpec(workload)).takes_slot)

    assert (slots("stepwise-sum"), slots("store-recall"), slots("full-lookup")) == (64, 64, 16)


def test_fifo_misses_exactly_the_references_further_back_than_h():
    task = generate(TaskSpec("stepwise-sum", seed=5))
    for h in (1, 7, 16):
        missing = simulate(task, "fifo", h).missing
        assert missing == tuple(tuple(r for r in step.refs if step.t - r > h) for step in task.steps)


def test_the_exact_window_suffices_at_h_equal_m_and_lru_does_not():
    tasks = [generate(TaskSpec("stepwise-sum", seed=seed)) for seed in range(20)]
    assert all(simulate(task, "window", 16).missed_steps == 0 for task in tasks)
    assert all(simulate(task, "lru", 16).missed_steps > 0 for task in tasks)


@given(data=st.data(), name=st.sampled_from(workloads.names()))
def test_misses_are_references_and_none_is_missed_with_room_for_all(data, name):
    task = generate(data.draw(specs(name)))
    policy = data.draw(st.sampled_from(["fifo", "lru", "lfu", "belady", "theory", "random", "fixed"]))
    outcome = simulate(
        task, policy, data.draw(st.integers(1, 6)), recovery=data.draw(st.sampled_from(["off", "direct"]))
    )
    assert outcome.references == outlook_of(task).future
    assert all(set(lost) <= set(refs) for lost, refs in zip(outcome.missing, outcome.references, strict=True))
    assert simulate(task, policy, task.spec.n).missed_references == 0


@given(data=st.data())
def test_what_is_lost_stays_lost_with_recovery_off(data):
    task = generate(data.draw(specs("stepwise-sum")))
    outcome = simulate(task, data.draw(st.sampled_from(["lru", "lfu", "random"])), data.draw(st.integers(1, 4)))
    lost: set[int] = set()
    for refs, missing in zip(outcome.references, outcome.missing, strict=True):
        assert lost & set(refs) <= set(missing)
        lost |= set(missing)


def test_the_first_failure_is_the_lowest_pressure_above_the_threshold():
    pressures = [float(Fraction(16, h)) for h in (16, 8, 4, 2)]
    assert first_failure(pressures, [0.0, 0.05, 0.06, 0.9]) == 4.0
    assert first_failure(pressures[::-1], [0.9, 0.06, 0.05, 0.0]) == 4.0
    assert first_failure(pressures, [0.0] * 4) is None
    assert first_failure(pressures, [0.0, 0.05, 0.06, 0.9], threshold=0.01) == 2.0


def test_wrong_usage_is_refused():
    task = generate(TaskSpec("stepwise-sum", n=4))
    with pytest.raises(SpecError, match="h = 0"):
        simulate(task, "fifo", 0)
    with pytest.raises(UnknownNameError):
        simulate(task, "lucky", 4)
