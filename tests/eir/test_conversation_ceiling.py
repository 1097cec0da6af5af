"""The ceiling of conversations: against every memory of small sizes, and its counts against the questions of worlds."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import pytest

from eirkit.eir.lossy import Frontier
from eirkit.eir.step_bounds import different_tails, record_tails
from eirkit.lacuna.conversation.floor import AskedValues, asked_values
from eirkit.lacuna.conversation.truth import answers
from eirkit.lacuna.conversation.world import PRESETS, generate_world


@pytest.mark.parametrize("sizes", [(2, 3), (2, 2, 2), (3, 4), (2, 5), (1, 3)])
def test_no_memory_exceeds_it_and_keeping_answers_reaches_what_it_says(sizes):
    histories = list(product(*map(range, sizes)))
    contract = SimpleNamespace(
        histories=histories, futures=range(len(sizes)), respond=lambda history, future: history[future]
    )
    frontier, bound = Frontier(contract), AskedValues(sizes, 0, 0, 2)
    for states in range(1, len(histories) + 1):
        point = frontier.point(states)
        assert point.exact
        assert bound.kept(point.bits) <= point.lower + 1e-9
        assert point.upper <= bound.upper(point.bits) + 1e-9


def test_values_of_one_size_are_records():
    assert different_tails((7,) * 5).logs.tolist() == pytest.approx(record_tails(5, 7).logs.tolist())


@pytest.mark.parametrize("preset", ["small", "standard"])
def test_every_question_is_counted_once(preset):
    for seed in range(20):
        world = generate_world(PRESETS[preset], seed)
        asked, found = list(answers(world)), asked_values(world)
        assert found.asked == len(asked)
        assert found.known <= sum(answer is None for _, answer, _ in asked)
        values = {(q.attribute, q.subject, a) for q, a, _ in asked if q.form in ("now", "before", "as_of") and a}
        assert len(found.sizes) <= len(values)
        grid = [found.upper(bits) for bits in range(0, 1000, 50)]
        assert grid == sorted(grid)
        assert grid[-1] == pytest.approx(1.0)
        assert all(found.kept(bits) <= found.upper(bits) + 1e-9 for bits in range(0, 1000, 50))
