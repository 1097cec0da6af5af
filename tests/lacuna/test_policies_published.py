"""The policy studies beside the paper: every published figure lies in the range of ours, or its cause is known."""

from __future__ import annotations

import numpy as np
import pytest

from eirkit.paper.studies import policies
from eirkit.paper.studies.comparison import compare
from eirkit.paper.study import DIFFERS, Setting

SETTING = Setting(seeds=range(600))


@pytest.fixture(scope="module")
def rows():
    return [
        row
        for study in (policies.cross_family, policies.first_failures, policies.hit_rates)
        for row in study(SETTING).rows
    ]


def test_every_published_figure_is_inside(rows):
    assert [row.label for row in rows if row.verdict == DIFFERS] == []


def test_the_studies_cover_the_whole_table_and_more(rows):
    figures = sum(len(line) for lines in policies.TABLE.values() for line in lines)
    assert figures == 60
    assert len(rows) == figures + 5 + 4 + 6  # sufficient capacity, first failures, hit rates


def test_lru_at_sufficient_capacity(rows):
    ours = {row.label: row.ours for row in rows}
    assert ours["Stepwise Sum, h = 16: exact window, steps with a missing reference"] == 0
    assert ours["Stepwise Sum, h = 16: LRU, steps with a missing reference"] > 12
    assert ours["Stepwise Sum, h = 32: LRU, steps with a missing reference"] < 0.1


def test_a_figure_is_inside_within_three_spreads_and_its_rounding():
    threes = policies.in_threes(np.array([0.0, 0.0, 0.3, 0.1, 0.2, 0.3, 9.0]))  # what is left over is dropped
    assert threes.tolist() == pytest.approx([0.1, 0.2])  # mean 0.15, standard deviation 0.05
    outside = [compare("x", figure, threes).verdict == DIFFERS for figure in (0.0, -0.0004, -0.001, 0.3, 0.31)]
    assert outside == [False, False, True, False, True]
