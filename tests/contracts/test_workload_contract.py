"""What every workload owes its users, checked for all of the registry and for a user's own file."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.tasks.generation import generate, generate_batch, graph_of, prepare
from eirkit.tasks.task import ASKING, Kind, TaskSpec
from eirkit.tasks.workload import Workload, workloads
from tests.lacuna.strategies import specs

USERS_OWN = f"{Path(__file__).parents[2] / 'examples' / 'alternating_sum.py'}:AlternatingSum"

every_workload = pytest.mark.parametrize("name", [*workloads.names(), pytest.param(USERS_OWN, id="user's own")])


def small(name: str, n: int = 10) -> TaskSpec:
    return TaskSpec(name, n=n, m=4, fan_in=2)


@every_workload
@given(data=st.data())
def test_operate_and_operate_batch_agree(name: str, data: st.DataObject) -> None:
    spec = data.draw(specs(name))
    workload = prepare(spec)
    kind = data.draw(st.sampled_from(sorted(set(workload.kinds(spec)))))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows, width = 4, workload.width(spec)
    fresh = rng.integers(0, spec.q, (rows, width))
    # References come first and padding last, as in every reference array.
    present = np.arange(spec.fan_in)[None, :] < rng.integers(0, spec.fan_in + 1, (rows, 1))
    operands = rng.integers(0, spec.q, (rows, spec.fan_in, width)) * present[:, :, None]
    together = workload.operate_batch(spec, kind, fresh, operands, present)
    one_by_one = Workload.operate_batch(workload, spec, kind, fresh, operands, present)
    assert np.array_equal(together, one_by_one)


@every_workload
@given(data=st.data())
def test_answers_follow_from_inputs_and_references(name: str, data: st.DataObject) -> None:
    task = generate(data.draw(specs(name)))
    workload = prepare(task.spec)
    for step in task.steps:
        assert step.answer == workload.operate(task.spec, step.input, [task.step(r).answer for r in step.refs])


@every_workload
@given(data=st.data())
def test_steps_are_well_formed(name: str, data: st.DataObject) -> None:
    task = generate(data.draw(specs(name)))
    spec, workload = task.spec, prepare(task.spec)
    kinds, width = workload.kinds(spec), workload.width(spec)
    assert len(task.steps) == len(kinds) == spec.n
    assert set(kinds) <= set(get_args(Kind))
    for t, (step, kind) in enumerate(zip(task.steps, kinds, strict=True), 1):
        assert (step.t, step.kind, step.scored) == (t, kind, t > spec.warm_up)
        assert (step.input is None) == (kind in ASKING)
        assert kind not in ASKING or len(step.refs) == 1
        assert len(step.answer) == width
        assert step.input is None or len(step.input) == width
        assert all(0 <= value < spec.q for value in (*step.answer, *(step.input or ())))


@every_workload
@given(data=st.data())
def test_references_are_distinct_ascending_in_reach_and_to_kept_records(name: str, data: st.DataObject) -> None:
    task = generate(data.draw(specs(name)))
    spec, workload = task.spec, prepare(task.spec)
    for step in task.steps:
        assert list(step.refs) == sorted(set(step.refs))
        for r in step.refs:
            assert 1 <= r < step.t <= workload.last_use(spec, r)
            assert workload.stores(spec, r)
            assert name == "full-lookup" or step.t - r <= spec.reach


@every_workload
@pytest.mark.parametrize(("n", "m"), [(10, 4), (11, 5), (9, 1), (7, 6)])
def test_last_use_is_the_last_step_that_can_ask(name: str, n: int, m: int) -> None:
    """Enough seeds show every reference that can happen: the rarest has probability above 1/100."""
    spec = TaskSpec(name, n=n, m=m)
    references = generate_batch(spec, range(3000)).references
    workload = prepare(spec)
    for t in range(1, n + 1):
        asking_steps = np.flatnonzero((references == t).any(axis=(0, 2))) + 1
        assert workload.last_use(spec, t) == (asking_steps[-1] if len(asking_steps) else 0)


@every_workload
@given(data=st.data())
def test_a_row_of_a_batch_is_the_task_of_its_seed(name: str, data: st.DataObject) -> None:
    spec = data.draw(specs(name))
    seeds = data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4))
    batch = generate_batch(spec, seeds)
    assert [batch.task(row) for row in range(len(batch))] == [generate(spec.with_seed(seed)) for seed in seeds]


@every_workload
def test_an_answer_depends_on_its_own_seed_alone(name: str) -> None:
    wide = generate_batch(small(name), range(50))
    assert wide.task(17) == generate(small(name).with_seed(17))
    assert len({tuple(step.answer for step in wide.task(row).steps) for row in range(50)}) == 50


@pytest.mark.parametrize("name", workloads.names())
def test_demand_has_a_value_for_every_cut_and_none_at_the_ends(name: str) -> None:
    task = generate(small(name))
    curve = prepare(task.spec).demand(task.spec, graph_of(task))
    assert len(curve.counts) == task.spec.n + 1
    assert curve.lower_bits[0] == curve.upper_bits[0] == curve.lower_bits[-1] == curve.upper_bits[-1] == 0
    assert curve.peak.lower > 1


@pytest.mark.parametrize("name", workloads.names())
def test_demand_at_chosen_cuts_is_the_whole_curve_there(name: str) -> None:
    task = generate(small(name))
    workload = prepare(task.spec)
    whole = workload.demand(task.spec, graph_of(task)).counts
    chosen = workload.demand(task.spec, graph_of(task), cuts=[3, 7]).counts
    assert chosen == tuple(count if t in (3, 7) else None for t, count in enumerate(whole))
