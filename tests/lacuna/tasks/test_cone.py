"""Cones: worked by hand, the fast way against the readable one and both against counting paths, and the command."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.cli import run
from eirkit.errors import SpecError, TooLargeError
from eirkit.lacuna.tasks.cones import ancestors, cone_of, measure_cones
from eirkit.lacuna.tasks.workload import Graph, References, as_tuples, draw_references
from tests.lacuna.strategies import graphs

ROUNDING = 1e-12  # relative; the same sums in another order
DIAMOND: Graph = ((), (1,), (1,), (2, 3), (4,))  # 1 ← 2, 3 ← 4 ← 5


def as_array(graph: Graph) -> References:
    references = np.zeros((1, len(graph), 4), dtype=np.int32)
    for t, refs in enumerate(graph):
        references[0, t, : len(refs)] = refs
    return references


def paths_from(graph: Graph, target: int) -> list[tuple[int, ...]]:
    """Every downward path that starts at the target, listed: a definition that shares nothing with the code."""
    return [(target,), *((target, *path) for r in graph[target - 1] for path in paths_from(graph, r))]


def test_a_diamond_by_hand() -> None:
    """Step 4 needs 1, 2, 3, 4. Without keeping results step 1 is evaluated for 2 and for 3: five evaluations."""
    cone = cone_of(DIAMOND, 4)
    assert (cone.nodes, cone.size, cone.depth, cone.naive) == ((1, 2, 3, 4), 4, 3, 5)
    assert (cone_of(DIAMOND, 5).depth, cone_of(DIAMOND, 5).naive) == (4, 6)


def test_resident_records_cut_the_cone_and_are_not_part_of_it() -> None:
    """With 2 at hand, 4 still needs 3 and, through it, 1."""
    cone = cone_of(DIAMOND, 4, resident=(2,))
    assert (cone.nodes, cone.depth, cone.naive) == ((1, 3, 4), 3, 3)
    assert cone_of(DIAMOND, 4, resident=(2, 3)).nodes == (4,)
    assert cone_of(DIAMOND, 4, resident=(4,)).size == 0
    assert ancestors(DIAMOND, (2, 5), resident=(4,)) == (1, 2, 5)


@given(graphs(largest=11))
def test_both_ways_agree_with_the_list_of_paths(graph: Graph) -> None:
    fast = measure_cones(as_array(graph))
    for t in range(1, len(graph) + 1):
        paths = paths_from(graph, t)
        expected = (len({path[-1] for path in paths}), max(map(len, paths)), len(paths))
        cone = cone_of(graph, t)
        assert (cone.size, cone.depth, cone.naive) == expected
        assert (fast.size[0, t - 1], fast.depth[0, t - 1], fast.naive[0, t - 1]) == expected


@given(graphs(largest=11), st.data())
def test_a_cut_cone_is_the_cone_of_the_graph_without_the_residents(graph: Graph, data: st.DataObject) -> None:
    n = len(graph)
    resident = data.draw(st.sets(st.integers(1, n)))
    target = data.draw(st.integers(1, n))
    without = tuple(tuple(r for r in refs if r not in resident) for refs in graph)
    assert target in resident or cone_of(graph, target, resident) == cone_of(without, target)


@pytest.mark.parametrize(("n", "reach", "fan_in"), [(63, 8, 2), (64, 8, 4), (65, 8, 2), (130, 16, 4), (200, 5, 1)])
def test_many_graphs_at_once_agree_with_one_node_at_a_time(n: int, reach: int, fan_in: int) -> None:
    references = draw_references(range(4), n, reach, fan_in)
    fast = measure_cones(references)
    for row, drawn in enumerate(references):
        cones = [cone_of(as_tuples(drawn), t) for t in range(1, n + 1)]
        assert fast.size[row].tolist() == [cone.size for cone in cones]
        assert fast.depth[row].tolist() == [cone.depth for cone in cones]
        assert fast.naive[row].tolist() == [cone.naive for cone in cones]


def test_naive_costs_are_exact_beyond_any_machine_word() -> None:
    """If every step refers to all earlier ones, its naive cost is 1 + 1 + 2 + 4 + … = 2^(t−1)."""
    n = 150
    graph = tuple(tuple(range(1, t)) for t in range(1, n + 1))
    references = np.zeros((1, n, n), dtype=np.int32)
    for t, refs in enumerate(graph):
        references[0, t, : len(refs)] = refs
    assert cone_of(graph, n).naive == 2 ** (n - 1)
    assert measure_cones(references).naive[0].tolist() == [2**t for t in range(n)]


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(90, 120))
def test_naive_costs_cross_the_word_boundary_exactly(seed: int, n: int) -> None:
    drawn = draw_references([seed], n, 8, 7)
    graph = as_tuples(drawn[0])

    @cache
    def naive(t: int) -> int:
        return 1 + sum(naive(r) for r in graph[t - 1])

    assert measure_cones(drawn).naive[0].tolist() == [naive(t) for t in range(1, n + 1)]
    assert naive(n) > 2**64


def test_no_graphs_have_no_cones() -> None:
    assert measure_cones(np.zeros((0, 5, 2), dtype=np.int32)).size.shape == (0, 5)


def test_a_step_outside_the_graph_is_refused() -> None:
    with pytest.raises(SpecError, match="step 6 is outside 1 … 5; choose a step of the graph"):
        cone_of(DIAMOND, 6)


def test_too_many_steps_are_refused() -> None:
    with pytest.raises(TooLargeError, match="the limit is 4096; use a smaller --n"):
        measure_cones(np.zeros((1, 5000, 1), dtype=np.int32))


def test_the_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lacuna", "cones", "--seeds", "0:6", "--all", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(row["fan_in"], row["cones"], row["atomic"]) for row in document["rows"]] == [
        (f, 198, 1) for f in (1, 2, 4)
    ]
    for row in document["rows"]:
        cones = measure_cones(draw_references(range(6), 64, 8, row["fan_in"]))
        assert row["memoized"] == pytest.approx(cones.size[:, 31:].mean(), rel=ROUNDING)
        assert row["depth"] == pytest.approx(cones.depth[:, 31:].mean(), rel=ROUNDING)
        assert row["naive"] == pytest.approx(cones.naive[:, 31:].mean(), rel=ROUNDING)
        assert row["speedup"] == pytest.approx(row["naive"] / row["memoized"], rel=ROUNDING)
    assert len(document["growth"]) == 3 * 64
    assert {pair["matched"] for pair in document["pairs"]} == {"size", "depth"}
    assert run(["lacuna", "cones", "--seeds", "0:6", "--all"]) == 0
    assert "Equal size, different depth" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ("--n", "5000"),
        ("--n", "0"),
        ("--from-step", "65"),
        ("--from-step", "0"),
        ("--fan-in", "two"),
        ("--seeds", "3:3"),
    ],
)
def test_an_impossible_request_gets_one_line_and_exit_code_2(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lacuna", "cones", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_naive_means_beyond_any_float_are_still_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "lacuna",
        "cones",
        "--fan-in",
        "64",
        "--m",
        "64",
        "--n",
        "1100",
        "--from-step",
        "1100",
        "--seeds",
        "0:6",
    ]
    assert run([*arguments, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["rows"][0]
    assert isinstance(row["naive"], int)
    assert row["naive"] > 10**308
    assert run(arguments) == 0
    assert "e+3" in capsys.readouterr().out
