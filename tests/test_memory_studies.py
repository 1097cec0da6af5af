"""The programs about memory systems: few seeds give whole tables, and the contrasts that no seed can change."""

from __future__ import annotations

import numpy as np
import pytest
from studies import label_pieces, memory_contrasts, memory_ranking

from eirkit.lacuna.memories import embeddings as minilm
from eirkit.lacuna.memories.memory import SEARCH_LIMIT
from eirkit.records.database import SweepDatabase


@pytest.fixture(scope="module")
def media():
    return {(row["who writes"], row["medium"]): row for row in memory_contrasts.medium(range(6))}


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


def test_the_ranking_is_run_continued_kept_and_shown(tmp_path):
    kept = tmp_path / "kept.csv"
    run = ["run", str(tmp_path), "whole", "bm25=2", "--sizes", "standard", "--budgets", "documented,k=10"]
    for _ in range(2):
        memory_ranking.main([*run, "--worlds", "1"])
    with SweepDatabase(tmp_path / "standard" / "bm25") as database:
        assert database.count() == 4, "two worlds in two budgets; the second call found them finished"
    memory_ranking.write_rows(list(memory_ranking.rows_in(tmp_path)), kept)
    rows = memory_ranking.read_rows(kept)
    assert [(row.system, row.budget, row.worlds, row.k) for row in rows] == [
        ("whole", "", 1, None),
        ("bm25", "documented", 2, SEARCH_LIMIT),
        ("bm25", "k=10", 2, 10),
    ]
    assert rows[2].prompt_tokens > rows[1].prompt_tokens > 0
    assert rows[2].recall > rows[1].recall > 0
    first, second = memory_ranking.tables(rows)
    assert [line["memory"] for line in first.rows] == ["whole", "bm25"], "the most accurate first"
    assert {line["memory"] for line in second.rows} == {"whole", "bm25"}, "whole is the same under every budget"


def test_the_package_of_a_system_is_read_from_its_environment():
    assert memory_ranking.version_of("bm25") == memory_ranking.version_of("whole") == ""
    assert memory_ranking.version_of("mcp").startswith("@modelcontextprotocol/server-memory@")
