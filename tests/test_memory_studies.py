"""The programs about memory systems: few seeds give whole tables, and the contrasts that no seed can change."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from studies import (
    label_pieces,
    memory_contrasts,
    memory_systems,
    system_profiles,
    system_results,
)
from studies.shares import exact_share

from eirkit.lacuna.memories import embeddings as minilm
from eirkit.records.database import SweepDatabase
from eirkit.report.document import plain_data
from eirkit_paper.studies.architectures import TITLES

QUICK = ("key-value", "bm25", "vector", "broken-labels")


@pytest.fixture(scope="module")
def systems():
    return {table.id: table for table in memory_systems.study(QUICK, range(1))}


@pytest.fixture(scope="module")
def media():
    return {(row["who writes"], row["medium"]): row for row in memory_contrasts.medium(range(6))}


def test_the_tables_are_documents(systems):
    for table in systems.values():
        document = plain_data(table)
        assert json.loads(json.dumps(document, allow_nan=False)) == json.loads(json.dumps(document))
    assert not systems["external"].rows, "no published system was run"


def test_a_system_that_did_not_run_has_words_in_place_of_a_figure(systems):
    absent = systems["absent"].rows
    assert len(absent) == 24, "four systems on six workloads"
    for line in absent:
        assert line["ours"].startswith("not run: ") or "not installed" in line["ours"]
    never_scored = [line for line in absent if line["published"] is None]
    assert [(line["system"], line["scored"]) for line in never_scored] == [("Mem0", "0/24")]


def test_memories_that_find_by_word_or_key_are_exact_and_a_broken_one_is_not(systems):
    table = {row["memory"]: row for row in systems["systems"].rows}
    for memory in ("key-value", "bm25"):
        assert {table[memory][workload] for workload in TITLES.values()} == {1}
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
@pytest.mark.skipif(minilm.reason_without_minilm() is not None, reason=str(minilm.reason_without_minilm()))
def test_an_embedding_confuses_labels_once_there_are_many():
    runs = memory_contrasts.find(range(2), (16, 200), ("key-value", "vector-minilm"))
    few, many = memory_contrasts.retrieval(runs, ("vector-minilm",))
    assert few["query accuracy"] > many["query accuracy"]
    assert few["searches confused"] < many["searches confused"]
    apart = list(memory_contrasts.by_likeness(runs))
    assert [row["records"] for row in apart] == [16, 200]
    assert apart[1]["query accuracy"] == pytest.approx(1 - many["query accuracy"])  # a key finds everything


def test_a_label_in_pieces_is_told_from_one_token_and_found_as_the_memory_finds():
    # Three records in a plane: the second query lies nearer to the first and the third record, but five come back.
    records = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    queries = np.array([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
    assert label_pieces.find_each(records, queries).tolist() == [True, True, True]
    many = np.vstack([records, np.tile([0.8, 0.6], (5, 1))])
    assert label_pieces.find_each(many, queries).tolist() == [True, False, True]
    rows = list(label_pieces.rows_of(2, np.array([1.0, 0.5]), np.array([False, True])))
    assert {row["kind"]: (row["labels"], row["found"]) for row in rows} == {
        "all": (2, 0.75),
        "the first 200": (2, 0.75),
        "one token": (1, 1.0),
        "in pieces": (1, 0.5),
    }


@pytest.mark.skipif(minilm.reason_without_minilm() is not None, reason="MiniLM is not installed here")
def test_numbers_with_a_leading_zero_are_cut():
    assert label_pieces.are_cut(["A_055", "A_117", "A_250", "A_399"]).tolist() == [True, False, False, True]


def test_systems_are_run_continued_and_shown(tmp_path):
    for _ in range(2):
        system_profiles.main([str(tmp_path), "bm25", "--kinds", "words", "--seeds", "0:1", "--json"])
    (folder,) = system_profiles.folders_in(tmp_path, "words")
    with SweepDatabase(folder) as database:
        assert database.count() == 1, "the second call found it finished"
    (line,) = system_profiles.word_lines({folder.name: system_profiles.rows_of(folder)})
    assert (line["memory"], line["worlds"], line["right"].endswith("of 24")) == ("bm25-plain", 1, True)


def test_tables_say_with_how_many_passages_and_by_whom_they_were_made():
    rows = [row for system in system_results.read_results().records.values() for row in system.rows]
    how = system_results.conditions(rows)
    assert how.startswith("**Made with 5 passages a search")
    assert "not a language model" in how
    again = [
        replace(row, memory_system=replace(row.memory_system, passages=number))
        for row, number in zip([row for row in rows if row.memory_system], (20, None, 10), strict=False)
    ]
    assert "asked for" in system_results.conditions(again)
    assert "5 passages" not in system_results.conditions(again)
