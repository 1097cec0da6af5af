"""SQL over tables: what it gives, and what it must not reach."""

from __future__ import annotations

import pytest

from eirkit.errors import InputFileError, UsageError
from eirkit.logs.audits.occupancy import read_windows
from eirkit.logs.corpus.analysis import TABLES, AnalysisOptions
from eirkit.logs.corpus.pipeline import Corpus, analyze_here
from eirkit.logs.corpus.query import query
from tests.vestige.test_parts import silent, write_corpus

pytest.importorskip("duckdb", reason="queries need DuckDB; pip install 'eirkit[query]'")


@pytest.fixture
def folder(tmp_path):
    corpus = Corpus((write_corpus(tmp_path / "logs", runs=30),))
    analyze_here(corpus, tmp_path / "out", AnalysisOptions(read_windows(None)), progress=silent)
    (tmp_path / "secret.csv").write_text("a\n1\n")
    return tmp_path / "out"


def test_every_table_can_be_asked(folder):
    assert query(folder, "SELECT count(*) AS n FROM runs").rows == ((30,),)
    for name in TABLES:
        assert "run_id" in query(folder, f"SELECT * FROM {name} LIMIT 1").columns


def test_rows_are_bounded_and_said_to_be(folder):
    answer = query(folder, "SELECT run_id FROM runs ORDER BY run_id", most_rows=7)
    assert (len(answer.rows), answer.cut) == (7, True)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{}')",
        "SELECT * FROM '{}'",
        "COPY runs TO '{}.stolen'",
        "ATTACH '{}.db' AS other",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SELEC nonsense",
        "",
        "SELECT 1; SELECT 2",
        "COPY (SELECT 1 AS run_id) TO '{0}/../out/runs.parquet' (FORMAT parquet, USE_TMP_FILE false)",
    ],
)
def test_nothing_else_is_reached(folder, sql):
    secret = folder.parent / "secret.csv"
    before = sorted(path.name for path in folder.parent.iterdir())
    with pytest.raises(UsageError, match="tables: runs"):
        query(folder, sql.format(secret))
    assert sorted(path.name for path in folder.parent.iterdir()) == before


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="holds no analysis"):
        query(tmp_path, "SELECT 1")
