"""Drawn graphs: right, uniform, and the same for ever. Graph files: one clear line for every fault."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.cli import run
from eirkit.errors import InputFileError
from eirkit.lacuna.tasks.generation import generate_batch
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import LARGEST_FILE_BYTES, as_tuples, draw_references, load_graph
from tests.lacuna.strategies import graphs

# A fair draw fails a check with at most this probability. Seeds are fixed, so a check either always passes or shows a
# fault; with a million draws a bias of one per cent exceeds the bound by far.
FALSE_ALARM = 1e-9


def chi_square_bound(categories: int) -> float:
    """The statistic of a fair draw exceeds this with probability FALSE_ALARM at most (Laurent and Massart 2000)."""
    freedom, x = categories - 1, -log(FALSE_ALARM)
    return freedom + 2 * sqrt(freedom * x) + 2 * x


def chi_square(counts: Mapping[Any, int], probabilities: Mapping[Any, float]) -> float:
    total = sum(counts.values())
    assert set(counts) <= set(probabilities)
    return sum((counts.get(key, 0) - total * p) ** 2 / (total * p) for key, p in probabilities.items())


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 6), st.integers(0, 2**64 - 4))
def test_references_are_as_many_as_there_can_be_distinct_ascending_and_in_reach(
    n: int, reach: int, fan_in: int, seed: int
) -> None:
    for drawn in draw_references([seed, seed + 3], n, reach, fan_in):
        for t, refs in enumerate(as_tuples(drawn), 1):
            assert len(refs) == min(fan_in, reach, t - 1)
            assert list(refs) == sorted(set(refs))
            assert all(max(1, t - reach) <= r < t for r in refs)


def test_a_longer_graph_continues_the_shorter_one() -> None:
    assert np.array_equal(draw_references([7], 64, 8, 2)[:, :20], draw_references([7], 20, 8, 2))


@pytest.mark.parametrize("fan_in", [1, 2, 4])
def test_every_set_of_references_is_equally_likely(fan_in: int) -> None:
    reach, n = 8, 64
    drawn = draw_references(range(4000), n, reach, fan_in)[:, reach:]
    offsets = (np.arange(reach + 1, n + 1)[None, :, None] - drawn).reshape(-1, fan_in)
    found, numbers = np.unique(offsets, axis=0, return_counts=True)
    counts = dict(zip(map(tuple, found.tolist()), numbers.tolist(), strict=True))
    sets = list(combinations(range(reach, 0, -1), fan_in))
    assert chi_square(counts, dict.fromkeys(sets, 1 / len(sets))) < chi_square_bound(len(sets))


def test_references_of_neighboring_steps_are_independent() -> None:
    drawn = 63 - draw_references(range(40_000), 64, 4, 1)[:, 62:, 0] + np.array([0, 1])
    pairs = list(np.ndindex(4, 4))
    counts = Counter(map(tuple, (drawn - 1).tolist()))
    assert chi_square(counts, dict.fromkeys(pairs, 1 / 16)) < chi_square_bound(16)


def test_early_steps_are_uniform_over_what_there_is() -> None:
    drawn = draw_references(range(20_000), 4, 8, 2)
    assert set(map(tuple, drawn[:, 2].tolist())) == {(1, 2)}
    counts = Counter(map(tuple, drawn[:, 3].tolist()))
    assert chi_square(counts, dict.fromkeys([(1, 2), (1, 3), (2, 3)], 1 / 3)) < chi_square_bound(3)


def queries(distribution: str, seeds: range, n: int, m: int) -> np.ndarray[Any, Any]:
    spec = TaskSpec("full-lookup", n=n, m=m, queries=distribution)
    return generate_batch(spec, seeds).references[:, m:, 0]


def zipf(m: int) -> dict[int, float]:
    total = sum(1 / label for label in range(1, m + 1))
    return {label: 1 / label / total for label in range(1, m + 1)}


def test_uniform_queries_ask_for_every_label_alike() -> None:
    counts = Counter(queries("uniform", range(2000), 64, 16).ravel().tolist())
    assert chi_square(counts, dict.fromkeys(range(1, 17), 1 / 16)) < chi_square_bound(16)


def test_zipf_queries_follow_the_law_and_label_1_leads() -> None:
    counts = Counter(queries("zipf", range(2000), 64, 16).ravel().tolist())
    assert chi_square(counts, zipf(16)) < chi_square_bound(16)


def test_shuffled_zipf_queries_follow_the_law_in_every_task_under_an_order_of_its_own() -> None:
    tasks = queries("zipf-shuffled", range(20), 5000, 4)
    orders = set()
    for asked in tasks:
        ranked = Counter(asked.tolist()).most_common()
        orders.add(tuple(label for label, _ in ranked))
        assert chi_square(dict(enumerate((count for _, count in ranked), 1)), zipf(4)) < chi_square_bound(4)
    assert len(orders) > 1


def test_over_many_tasks_shuffled_popularity_favors_no_label() -> None:
    first = queries("zipf-shuffled", range(40_000), 17, 16)[:, 0]
    assert chi_square(Counter(first.tolist()), dict.fromkeys(range(1, 17), 1 / 16)) < chi_square_bound(16)


@given(graphs(largest=12))
def test_a_written_graph_reads_back(
    tmp_path_factory: pytest.TempPathFactory, graph: tuple[tuple[int, ...], ...]
) -> None:
    path = tmp_path_factory.mktemp("graph") / "graph.json"
    path.write_text(json.dumps({"steps": [{"t": t, "refs": refs[::-1]} for t, refs in enumerate(graph, 1)][::-1]}))
    assert load_graph(path) == graph


def steps(*references: list[Any]) -> str:
    return json.dumps({"steps": [{"t": t, "refs": refs} for t, refs in enumerate(references, 1)]})


FAULTS = {
    "two-cycle": (steps([2], [1]), "closes a cycle"),
    "self-reference": (steps([], [2]), "closes a cycle"),
    "long cycle": (steps([], [4], [2], [3]), "closes a cycle"),
    "forward reference": (steps([], [3], [1]), "refers forward to step 3"),
    "duplicate step": ('{"steps": [{"t": 1, "refs": []}, {"t": 1, "refs": []}]}', "step 1 appears twice"),
    "missing node": (steps([], [1], [7]), "step 7, which does not exist"),
    "reference to zero": (steps([0]), "step 0, which does not exist"),
    "gap in the numbers": ('{"steps": [{"t": 1, "refs": []}, {"t": 3, "refs": [1]}]}', "without gaps"),
    "duplicate reference": (steps([], [1, 1]), "refers to one step twice"),
    "too many references": (steps(*([] for _ in range(300)), list(range(1, 301))), "keep at most 256"),
    "not JSON": ("steps: 1", "not JSON"),
    "nested too deep": ("[" * 100_000, "not JSON"),
    "not UTF-8": (b"\xff\xfe\xfa", "not JSON"),
    "empty file": ("", "not JSON"),
    "no steps": ("{}", "no list 'steps'"),
    "empty list": ('{"steps": []}', "no list 'steps'"),
    "a list": ("[]", "no list 'steps'"),
    "steps of another type": ('{"steps": [1]}', "entry 1 of 'steps' is not"),
    "t of another type": ('{"steps": [{"t": true, "refs": []}]}', "entry 1 of 'steps' is not"),
    "float reference": (steps([], [1.0]), "entry 2 of 'steps' is not"),
    "refs missing": ('{"steps": [{"t": 1}]}', "entry 1 of 'steps' is not"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_malformed_graph_gets_one_line_and_exit_code_2(
    fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, complaint = FAULTS[fault]
    path = tmp_path / "graph.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert run(["lacuna", "generate", "stepwise-sum", "--graph", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert complaint in err
    assert "; " in err  # what is wrong; what to do


def test_too_many_nodes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text('{"steps":[' + ",".join(f'{{"t":{t},"refs":[]}}' for t in range(1, 100_002)) + "]}")
    with pytest.raises(InputFileError, match="100001 steps, the limit is 100000; use a smaller graph"):
        load_graph(path)


def test_a_huge_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    with path.open("wb") as stream:
        stream.truncate(LARGEST_FILE_BYTES + 1)
    with pytest.raises(InputFileError, match="more than 67108864 bytes; use a smaller graph"):
        load_graph(path)


@pytest.mark.parametrize("name", ["nowhere.json", "."])
def test_what_is_no_file_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="cannot read"):
        load_graph(tmp_path / name)
