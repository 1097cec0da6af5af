"""The programs about memory systems: few seeds give whole tables, and the contrasts that no seed can change."""

from __future__ import annotations

import math
from pathlib import Path

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


def test_the_page_on_which_memory_has_the_figures_of_the_study():
    """Its tables, the figures of its first points, and after how many questions a memory has paid for itself."""
    rows = memory_ranking.read_rows()
    page = (Path(__file__).parents[1] / "docs" / "which-memory.md").read_text("utf-8")
    for size in memory_ranking.SIZES:
        assert "\n".join(memory_ranking.overview(rows, size)) in page
    found = {(row.system, row.size, row.budget or "documented"): row for row in rows}
    whole, mem0 = found["whole", "standard", "documented"], found["mem0", "standard", "documented"]
    taken_in = mem0.model_tokens / mem0.worlds
    questions = math.ceil(taken_in / (whole.prompt_tokens - mem0.prompt_tokens))
    words = " ".join(page.split())
    assert f"({whole.prompt_tokens:,.0f} tokens a question)" in words
    assert f"puts {mem0.prompt_tokens:,.0f} tokens into a prompt" in words
    assert f"reads and writes {taken_in:,.0f} to take in one conversation" in words
    assert f"paid back after {questions} questions" in words
    short = {name: found[name, "standard", "tokens=500"].accuracy for name in ("mem0", "langmem", "bm25")}
    assert "Mem0 {mem0:.1%}, LangMem {langmem:.1%}, BM25 {bm25:.1%}".format(**short) in words
    for name, label in (("bm25", "BM25 answers"), ("qdrant", "Qdrant")):
        more, usual = found[name, "standard", "tokens=2000"], found[name, "standard", "documented"]
        assert f"{label} {more.accuracy:.1%} ({usual.accuracy:.1%} with " in words
    erred = [row for row in rows if row.budget == "documented" and row.system != "truncated" and row.cause]
    assert {row.cause.rpartition(" ")[0] for row in erred} == {"stored, not retrieved"}
    long = found["mem0", "large", "tokens=8000"]
    assert (long.worlds, long.questions, long.accuracy) == (1, 200, 1.0), "all 200 about one conversation"
    assert found["langmem", "standard", "tokens=2000"].cause == "stored, then deleted 100%"
