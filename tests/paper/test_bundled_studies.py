"""The studies behind the pages of bundled/lacuna-tiny: small cases by hand, and pages that say what the figures say."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from studies.bundled_figures import CellAccuracies
from studies.bundled_tables import CSV, FULL, capability, compared
from studies.inside_figures import draw_attention, draw_substitution
from studies.inside_lacuna_tiny import Lookup, account, collect, grid, lookup_heads, rules

from eirkit.lacuna.agents.bundled import WEIGHTS
from eirkit.lacuna.models.network.layout import load_weights
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit_paper.study import StudyRow

ROOT = Path(__file__).parents[2]
FINDINGS = (ROOT / "docs" / "findings.md").read_text("utf-8")


@pytest.fixture(scope="module")
def seen() -> list[Lookup]:
    """Return the lookups of one short stretch of work."""
    return collect(load_weights(WEIGHTS), "store-recall", range(3))


def lookup(label: int, written: int) -> Lookup:
    """Return a lookup among A_11 = 1111, A_22 = 2222 and A_13 = 1333, with most attention on the second."""
    shares = np.zeros((4, 2, 2, 3))
    shares[:, 0, 1] = (0.2, 0.5, 0.2)
    return Lookup(0, label, (11, 22, 13), (1111, 2222, 1333), written, shares, np.zeros((2, 2, 4)))


def test_rules_on_a_case_by_hand():
    found = {name: rule(lookup(12, 0)) for name, rule in rules([(0, 1), (1, 0)]).items()}
    assert list(found.values()) == [1333, 1111, 1111, 2222, 2222, 2222]
    # A_32 shares its units digit with A_22 and its tens digit with nobody.
    assert rules([(0, 1), (1, 0)])["same tens digit, else same units digit"](lookup(32, 0)) == 2222


def test_the_heads_that_find_a_record_are_those_of_the_page(seen):
    there = [one for one in seen if one.is_there]
    assert lookup_heads(there) == [(1, 1), (2, 2)]
    assert "head 2 of layer 2 gives" in FINDINGS
    assert all(one.written == one.values[one.place] for one in there)


def test_attention_is_shared_out_among_records_and_the_rest(seen):
    rounding = 1e-6  # of float32, in which shares are divided
    for one in seen:
        everything = one.shares[0].sum(-1) + one.elsewhere.sum(-1)
        assert np.abs(everything - 1).max() < rounding


def test_an_account_counts_what_there_is(seen, tmp_path):
    found = account(seen)
    assert found["there"] + found["absent"] == sum(one.is_there or len(one.labels) == 8 for one in seen)
    assert found["figures"]["written right, record there"]["estimate"] == 1.0
    draw_attention(grid(seen), tmp_path / "a.svg")
    draw_substitution(found, tmp_path / "b.svg")
    draw_attention(grid(seen), tmp_path / "c.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "c.svg").read_bytes()
    assert (tmp_path / "b.svg").stat().st_size > 0


def test_wrong_steps_are_counted_from_accuracies():
    (line,) = capability([CellAccuracies(TaskSpec("w", m=4, n=64).parameters(), [1.0, 1 - 3 / 64])])
    assert line[:3] == ("w", "4", "0.9766")
    assert line[4] == "3 of 128"


def test_rows_that_differ_in_nothing_shown_are_one():
    row = StudyRow("x", 0.5, 0.5, None, None, "", spread=0.01)
    assert list(compared([row, row])) == [("x", "0.500", "0.500 ± 0.003", "0.470 … 0.530")]


def test_the_model_can_do_every_task_with_everything_in_view():
    with CSV.open(encoding="utf-8") as stream:
        found = list(csv.DictReader(stream))
    cells = [row for row in found if row["study"] == FULL]
    assert len(cells) == 18
    least = {"stepwise-topk": 0.95}  # what may carry claims here; all others 0.99
    assert all(float(row["ours"]) >= least.get(row["figure"].partition(",")[0], 0.99) for row in cells)
