"""Specifications, records and the name of a graph."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.errors import SpecError
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.task import TaskSpec, fingerprint, read_record, show_record
from eirkit.lacuna.tasks.workload import workloads
from tests.lacuna.strategies import specs

SHARING_THE_BASE_GRAPH = ("stepwise-sum", "stepwise-max", "stepwise-topk")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n", 0),
        ("n", 100_001),
        ("m", 0),
        ("lookback", -1),
        ("lookback", 0),
        ("fan_in", 0),
        ("fan_in", 257),
        ("slots", 0),
        ("digits", 0),
        ("digits", 10),
        ("k", 0),
        ("seed", -1),
        ("seed", 2**64),
        ("warm_up", -1),
        ("warm_up", 65),
    ],
)
def test_an_impossible_parameter_is_refused_with_the_possible_ones(parameter: str, value: int) -> None:
    with pytest.raises(SpecError, match=rf"{parameter} = -?{abs(value)} is out of range; choose"):
        TaskSpec("stepwise-sum", **{parameter: value})


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("m", [4, 8, 16])
@pytest.mark.parametrize("digits", [1, 2, 3, 4])
def test_the_graph_is_the_operators_no_business(seed: int, m: int, digits: int) -> None:
    tasks = [generate(TaskSpec(name, m=m, digits=digits, seed=seed)) for name in SHARING_THE_BASE_GRAPH]
    assert len({task.fingerprint for task in tasks}) == 1
    assert len({tuple(step.refs for step in task.steps) for task in tasks}) == 1


def test_the_fingerprint_tells_graphs_apart() -> None:
    base = TaskSpec("stepwise-sum")
    others = (TaskSpec("stepwise-sum", **{name: 5}) for name in ("n", "m", "lookback", "fan_in", "seed"))
    prints = [generate(spec).fingerprint for spec in (base, *others)]
    assert len(set(prints)) == len(prints)


def test_the_fingerprint_is_sha256_of_the_canonical_graph() -> None:
    text = '{"fan_in":2,"lookback":4,"m":4,"n":3,"references":[[],[1],[1,2]]}'
    spec = TaskSpec("stepwise-sum", n=3, m=4)
    assert fingerprint(spec, ((), (1,), (1, 2))) == sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("name", workloads.names())
@given(data=st.data())
def test_all_records_of_a_task_have_one_length_and_can_be_read_back(name: str, data: st.DataObject) -> None:
    task = generate(data.draw(specs(name)))
    records = [show_record(task.spec, step.t, step.answer) for step in task.steps]
    assert len({len(record) for record in records}) == 1
    assert [read_record(record) for record in records] == [(step.t, step.answer) for step in task.steps]


def test_records_of_one_specification_have_one_length_whatever_the_seed() -> None:
    lengths = {
        len(show_record(spec, step.t, step.answer))
        for spec in (TaskSpec("stepwise-sum", n=100, digits=2, slots=3, seed=seed) for seed in range(20))
        for step in generate(spec).steps
    }
    assert lengths == {len("A_007 = 04 55 10")}


@pytest.mark.parametrize("text", ["", "A_7", "A_7: 0042", "B_7 = 0042", "A_ = 1", "A_7 = x"])
def test_what_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a record|invalid literal"):
        read_record(text)


def test_leading_zeros_are_optional_when_reading() -> None:
    assert read_record("A_7 = 42") == read_record(" A_07 = 0042 ") == (7, (42,))
