"""The studies of memory systems: few seeds give the whole document, and the contrasts that no seed can change."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from studies import memory_contrasts, memory_systems
from studies.agent_runs import DIFFERS, NEEDS_MODEL, REPRODUCED, SPREAD, markdown
from studies.memory_runs import exact_share

from eirkit.lacuna.stores import minilm

PAGE = Path(__file__).parents[1] / "docs" / "memories-under-test.md"
QUICK = ("key-value", "bm25", "vector", "broken-labels")


@pytest.fixture(scope="module")
def systems():
    return memory_systems.study(range(3), range(1), QUICK)


@pytest.fixture(scope="module")
def media():
    return {(row["who writes"], row["medium"]): row for row in memory_contrasts.medium(range(6))}


def test_the_architecture_study_is_one_document_of_finite_rows(systems):
    assert systems["id"] == "memory-systems"
    assert json.loads(json.dumps(systems, allow_nan=False)) == systems
    for row in systems["rows"]:
        assert all(math.isfinite(row[field]) for field in ("published", "ours", "low", "high"))
        assert row["verdict"] in (REPRODUCED, SPREAD, DIFFERS, NEEDS_MODEL)
        assert row["published_model"].count(",") == 3, "four models are pooled in every published figure"
        assert row["our_model"].startswith("recoverer")
        assert bool(row["reason"]) == (row["verdict"] in (DIFFERS, NEEDS_MODEL))


def test_a_system_that_did_not_run_has_words_in_place_of_a_figure(systems):
    absent = systems["absent"]
    assert len(absent) == 24, "four systems on six workloads"
    for line in absent:
        assert line["ours"].startswith(("not installed: eirkit doctor --install ", "not run: "))
    never_scored = [line for line in absent if line["published"] is None]
    assert [(line["system"], line["scored"]) for line in never_scored] == [("Mem0", "0/24")]


def test_unbounded_paging_is_perfect_and_belady_leads_the_strict_panel(systems):
    ours = {row["label"]: row["ours"] for row in systems["rows"]}
    assert ours["Forced paging (unbounded), h = 4"] == ours["Forced paging (unbounded), h = 8"] == 1
    for h in (4, 8):
        others = [ours[f"{name}, h = {h}"] for name in ("FIFO", "LRU", "LFU", "Fixed")]
        assert ours[f"Belady, h = {h}"] >= max(others)


def test_memories_that_find_by_word_or_key_are_exact_and_a_broken_one_is_not(systems):
    table = {row["memory"]: row for row in systems["systems"]}
    for memory in ("key-value", "bm25"):
        assert {table[memory][workload] for workload in memory_systems.TITLES.values()} == {1}
        assert table[memory]["scored"] == "12/12"
        assert (table[memory]["lost"], table[memory]["not found"], table[memory]["other value"]) == (0, 0, 0)
    assert table["broken-labels"]["other value"] > 0
    assert table["broken-labels"]["Store–Recall"] < 1


HALVED = 1e-9  # sixty halvings of 0 … 1, and sums of a few hundred logarithms


@pytest.mark.parametrize(("part", "whole", "low", "high"), [(1, 10, 0.002529, 0.445016), (5, 10, 0.187086, 0.812914)])
def test_bounds_of_a_share_by_the_tables(part, whole, low, high):
    assert exact_share(part, whole) == pytest.approx((low, high), abs=5e-7)  # as many digits as tables have


@given(st.integers(1, 400))
def test_where_everything_was_found_the_bound_has_a_closed_form(n):
    """All of n are found with probability p^n: the lower bound is where that is 2.5 in a hundred."""
    low, high = exact_share(n, n)
    assert low == pytest.approx(0.025 ** (1 / n), abs=HALVED)
    assert high == 1
    assert exact_share(0, n) == pytest.approx((0, 1 - low), abs=HALVED)


def test_what_is_not_written_is_lost_in_text_and_kept_in_records(media):
    """The difference grows as notes get fewer, and its interval leaves out zero."""
    name = "LRU records − LRU text"
    by_rate = [row["difference"] for (who, medium), row in media.items() if medium == name and who.startswith("note")]
    assert by_rate == sorted(by_rate)
    low, _, _ = media["note-taker, p = 0.4: notes four answers of ten", name]["95% interval"].partition(" … ")
    assert float(low) > 0


def test_the_medium_itself_costs_nothing_where_everything_is_written(media):
    row = media["recoverer: notes every STORE and no copy", "external key–value − external text, h = 4"]
    assert (row["difference"], row["95% interval"]) == (0, "0.000 … 0.000")


def test_finding_by_key_or_word_does_not_depend_on_how_many_there_are():
    names = ("key-value", "bm25")
    found = list(memory_contrasts.retrieval(memory_contrasts.find(range(2), (16, 100), names), names))
    assert [row["records"] for row in found] == [16, 100, 16, 100]
    assert all(row["query accuracy"] == 1 and row["searches confused"] == 0 for row in found)


@pytest.mark.slow
@pytest.mark.skipif(minilm.absent() is not None, reason=str(minilm.absent()))
def test_an_embedding_confuses_labels_once_there_are_many():
    runs = memory_contrasts.find(range(2), (16, 200), ("key-value", "vector-minilm"))
    few, many = memory_contrasts.retrieval(runs, ("vector-minilm",))
    assert few["query accuracy"] > many["query accuracy"]
    assert few["searches confused"] < many["searches confused"]
    apart = list(memory_contrasts.by_likeness(runs))
    assert [row["records"] for row in apart] == [16, 200]
    assert apart[1]["query accuracy"] == pytest.approx(1 - many["query accuracy"])  # a key finds everything


@pytest.mark.slow
def test_the_documentation_shows_these_figures():
    page = PAGE.read_text("utf-8").splitlines()
    made = memory_systems.study(systems=("key-value",))
    shown = markdown(made, {})
    assert [line for line in shown if line not in page] == []
    contrasts = {"medium": list(memory_contrasts.medium(range(memory_contrasts.SEEDS)))}
    made = {"rows": [], "sections": {}, **contrasts}
    shown = markdown(made, {"medium": memory_contrasts.FURTHER["medium"]})
    assert [line for line in shown if line not in page] == []
