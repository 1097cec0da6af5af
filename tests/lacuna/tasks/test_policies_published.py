"""The policy studies beside the paper: together they agree, and no more figures differ than chance has it."""

from __future__ import annotations

import numpy as np
import pytest

from eirkit_paper.studies import policies
from eirkit_paper.studies.comparison import compare
from eirkit_paper.study import REPRODUCED, Setting, overall
from eirkit_paper.verdicts import DIFFERS

SETTING = Setting(seeds=range(600))


@pytest.fixture(scope="module")
def rows():
    return [
        row
        for study in (policies.cross_family, policies.first_failures, policies.hit_rates)
        for row in study(SETTING).rows
    ]


def test_no_more_figures_differ_than_chance_has_it(rows):
    """Of 75 figures about 4 differ by chance; 9 or more have a chance of 2% if they are independent."""
    assert overall(rows) == REPRODUCED
    assert sum(row.verdict == DIFFERS for row in rows) < 9


def test_the_studies_cover_the_whole_table_and_more(rows):
    figures = sum(len(line) for lines in policies.TABLE.values() for line in lines)
    assert figures == 60
    assert len(rows) == figures + 5 + 4 + 6  # sufficient capacity, first failures, hit rates


def test_lru_at_sufficient_capacity(rows):
    ours = {row.label: row.ours for row in rows}
    assert ours["Stepwise Sum, h = 16: exact window, steps with a missing reference"] == 0
    assert ours["Stepwise Sum, h = 16: LRU, steps with a missing reference"] > 12
    assert ours["Stepwise Sum, h = 32: LRU, steps with a missing reference"] < 0.1


def test_a_figure_agrees_within_its_rounding_and_what_is_left_over_is_dropped():
    threes = policies.in_threes(np.array([0.0, 0.0, 0.3, 0.1, 0.2, 0.3, 9.0]))
    assert threes.tolist() == pytest.approx([0.1, 0.2])
    # t with one degree of freedom: 12.706 · 0.0707 · √1.5 = 1.1003
    outside = [compare("x", figure, threes).verdict == DIFFERS for figure in (0.15, 1.25, 1.2506, 1.252)]
    assert outside == [False, False, False, True]
