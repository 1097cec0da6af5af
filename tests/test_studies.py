"""The studies with agents under pressure: few seeds give the whole document, and the shapes that no seed can change."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from studies import managed_retention, pressure_grid, shapes
from studies.agent_rows import compare, trait
from studies.agent_runs import DIFFERS, NEEDS_MODEL, REPRODUCED, SPREAD, markdown, pivot, worded

SEEDS = range(3)
PAGE = Path(__file__).parents[1] / "docs" / "agents-under-pressure.md"
STUDIES = {"pressure-grid": pressure_grid, "managed-retention": managed_retention}
FIELDS = {"label", "published", "ours", "low", "high", "verdict"}


@pytest.fixture(scope="module")
def documents():
    return {name: module.study(SEEDS) for name, module in STUDIES.items()}


def ours(document, agent):
    return {row["label"]: row["ours"] for row in document["rows"] if row["our_model"] == agent}


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_one_document_of_finite_rows(documents, name):
    made = documents[name]
    assert made["id"] == name
    assert {"title", "kind", "verdict"} <= made.keys()
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    for row in made["rows"]:
        assert row.keys() >= FIELDS
        assert all(math.isfinite(row[field]) for field in ("published", "ours", "low", "high"))
        assert row["low"] <= row["ours"] <= row["high"]


@pytest.mark.parametrize("name", STUDIES)
def test_every_row_has_a_verdict_its_models_and_a_reason_where_it_differs(documents, name):
    for row in documents[name]["rows"]:
        assert row["verdict"] in (REPRODUCED, SPREAD, DIFFERS, NEEDS_MODEL)
        assert row["published_model"]
        assert row["our_model"]
        assert bool(row["reason"]) == (row["verdict"] in (DIFFERS, NEEDS_MODEL))


@pytest.mark.parametrize("name", STUDIES)
def test_every_row_is_printed_once(documents, name):
    made = documents[name]
    assert sum(made["sections"].values()) == len(made["rows"])
    printed = [cell for _, _, lines in pivot(made) for line in lines for cell in line[2:-1] if cell != "–"]
    assert len(printed) == len(made["rows"])


def test_accuracy_falls_with_what_is_retained(documents):
    found = ours(documents["pressure-grid"], "calculator")
    for family in pressure_grid.FAMILIES:
        curve = [found[f"{family}, h = {h}"] for h in pressure_grid.CAPACITIES]
        assert curve[0] == 1
        assert curve == sorted(curve, reverse=True)
        assert len(set(curve)) == len(curve)


def test_the_calculator_errs_where_a_sum_first_misses_and_never_in_arithmetic(documents):
    found = ours(documents["pressure-grid"], "calculator")
    assert found["Stepwise Sum: first miss = first error"] == 1
    assert all(entry["computation"] == 0 for entry in documents["pressure-grid"]["causes"])


def test_misses_alone_predict_store_recall_and_flatter_the_sum(documents):
    for entry in documents["pressure-grid"]["predictions"]:
        if entry["workload"] == "Stepwise Sum":
            assert entry["residual"] < 0
        elif entry["agent"] == "calculator":  # in place of a missing record it says 0, which none of these holds
            assert entry["residual"] == pytest.approx(0, abs=1e-12)  # rounding of two ways to the same mean


def test_recovery_reads_rise_with_pressure_and_the_recoverer_stays_right(documents):
    for agent in ("recoverer, LRU, READ", "recoverer, LRU, RECOMPUTE", "recoverer, window, READ"):
        found = ours(documents["managed-retention"], agent)
        reads = [found[f"m/h = {pressure}: recovery reads"] for pressure in (1, 2, 4, 8)]
        assert reads == sorted(reads)
        assert len(set(reads)) == len(reads)
        assert {found[f"m/h = {pressure}: accuracy"] for pressure in (1, 2, 4, 8)} == {1.0}


def test_restoration_closes_the_gap_of_lru_at_sufficient_capacity_and_a_sham_does_not(documents):
    found = ours(documents["managed-retention"], "calculator")
    assert found["exact window, h = 16: accuracy"] == found["LRU, h = 16 + correct restoration: accuracy"] == 1
    assert found["LRU, h = 16: accuracy"] < 1
    assert found["LRU, h = 16 + sham: accuracy"] < 1
    misses = {found[f"LRU, h = 16{arm}: steps with a miss"] for arm in managed_retention.RESTORED.values()}
    assert len(misses) == 1  # what is injected does not enter retention


def test_a_memory_chosen_by_the_agent_holds_as_much_as_text_as_in_keys(documents):
    cells = documents["managed-retention"]["cells"]
    by_name = {(entry["cell"], entry["h"]): entry["accuracy"] for entry in cells}
    for h in managed_retention.CAPACITIES:
        assert by_name["recoverer, scratch, no reads", h] == by_name["recoverer, kv, no reads", h]


@pytest.mark.parametrize("name", STUDIES)
def test_every_shape_names_its_models_and_says_why_where_it_does_not_come_out(documents, name):
    for line in documents[name]["shapes"]:
        assert any(model in line["published"] for model in ("Claude", "GPT", "four models", "not named"))
        assert line.get("ours by", "reference/").startswith("reference/")
        assert bool(line["why not"]) == (line["verdict"] != shapes.REPRODUCED)


def shape_of(documents, claim, agent):
    (line,) = (
        line
        for line in documents["managed-retention"]["shapes"]
        if claim in line["shape"] and line["ours by"] == f"reference/{agent}"
    )
    return line


def test_what_is_not_written_is_lost_in_text_and_kept_in_keys(documents):
    for p in ("0.4", "0.0"):
        line = shape_of(documents, "key–value above text", f"note-taker, p = {p}")
        assert line["verdict"] == f"{shapes.REPRODUCED} / {shapes.DIFFERS}"  # reads bring everything back
    line = shape_of(documents, "key–value above text", "note-taker, p = 1.0")
    assert line["verdict"] == f"{shapes.DIFFERS} / {shapes.REPRODUCED}"  # every note costs an action that reads need
    assert shape_of(documents, "Scratch below LRU", "note-taker, p = 0.0")["verdict"].startswith(shapes.REPRODUCED)


def test_a_memory_that_costs_more_than_it_holds_lies_below_the_floor(documents):
    assert shape_of(documents, "Scratch below the floor, most at h = 16", "note-taker, p = 1.0")["verdict"] == (
        shapes.REPRODUCED
    )
    assert "at h = 16" in shape_of(documents, "Scratch–LRU below the floor", "note-taker, p = 0.4")["no reads"]


def test_signs_orders_and_places_by_hand():
    up, down = [0.5, 0.7], [0.4, 0.3]
    assert shapes.above(up, down) == shapes.Judged("+0.250 ± 0.150", 2, 2, True)
    assert shapes.below(up, down).verdict == shapes.DIFFERS
    assert shapes.below(down, up).verdict == shapes.above(up, down).verdict == shapes.REPRODUCED
    assert shapes.above([0.9, 0.4, 0.4], [0.5, 0.5, 0.5]).verdict == shapes.UNSETTLED  # in 1 of 3, and on average
    assert shapes.ordered({"a": up, "b": down}).verdict == shapes.REPRODUCED
    assert shapes.ordered({"a": up, "b": up}).verdict == shapes.DIFFERS
    assert shapes.never_rises({"a": up, "b": up}).verdict == shapes.REPRODUCED
    floor = {4: [0.6, 0.6], 2: [0.5, 0.5]}
    assert shapes.lowest_at(4, {4: [0.4, 0.5], 2: [0.5, 0.5]}, floor) == shapes.Judged(
        "-0.150 ± 0.050 at h = 4", 2, 2, True
    )
    assert shapes.lowest_at(2, {4: [0.4, 0.5], 2: [0.5, 0.5]}, floor).verdict == shapes.DIFFERS
    assert shapes.lowest_at(4, floor, floor).verdict == shapes.DIFFERS  # nowhere below


def test_verdicts_in_words():
    models, threes = ("theirs", "ours"), [0.4, 0.6]  # mean 0.5, standard deviation 0.1
    assert worded(compare("x", 0.5, threes, models)).verdict == REPRODUCED
    assert worded(compare("x", 0.79, threes, models)).verdict == SPREAD
    assert worded(compare("x", 0.81, threes, models, "why")).verdict == DIFFERS
    assert worded(trait("x", 0.5, threes, models, "why")).verdict == NEEDS_MODEL


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_the_documentation_shows_these_figures(name):
    module = STUDIES[name]
    further = {key: title for key, title in module.FURTHER.items() if key != "cells"}
    page = PAGE.read_text("utf-8").splitlines()
    assert [line for line in markdown(module.study(), further) if line not in page] == []
