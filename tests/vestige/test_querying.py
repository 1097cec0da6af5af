"""SQL over tables: what it gives, and what it must not reach."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eirkit.cli import run
from eirkit.errors import InputFileError, UsageError
from eirkit.records.analysis import TABLES
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions
from eirkit.vestige.corpus.pipeline import Corpus, analyze_here
from eirkit.vestige.corpus.query import query, query_apart
from tests.processes import PATIENCE_SECONDS
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


ZONED = """SELECT timestamptz '2026-01-02 03:04:05.25+02' AS at, 1 AS n, 2 AS n, NULL::timestamptz AS never,
[timestamptz '2026-01-02 03:04:05+02'] AS several, {{'a': timestamptz '2026-01-02 03:04:05+02'}} AS named,
timestamptz 'infinity' AS last FROM runs ORDER BY run_id{}"""


@pytest.mark.parametrize("end", ["", ";", "; -- done", " -- done"])
def test_times_with_a_zone_are_read_without_further_packages(folder, end):
    answer = query(folder, ZONED.format(end), most_rows=2)
    assert answer.columns == ("at", "n", "n_3", "never", "several", "named", "last")
    at = datetime(2026, 1, 2, 1, 4, 5, 250_000, tzinfo=UTC)
    text = "2026-01-02 01:04:05+00"
    assert answer.rows == ((at, 1, 2, None, [text], {"a": text}, "infinity"),) * 2
    assert answer.cut


def test_the_command_prints_times_with_a_zone(folder, capsys):
    assert run(["vestige", "query", str(folder), "SELECT timestamptz '2026-01-02 03:04:05+02' AS at", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [{"at": "2026-01-02T01:04:05+00:00"}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT list(a) FROM range(1000000000) t(a)",
        "SELECT length(repeat('x', 4000000000))",  # in one call of a function, which DuckDB's own limit does not see
        "SELECT a, count(*) FROM range(10000000000) t(a) GROUP BY a",
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on address space")
def test_a_query_that_needs_too_much_memory_is_one_line(folder, sql, capfd):
    before = sorted(Path.cwd().iterdir())
    assert run(["vestige", "query", str(folder), sql]) == 2
    said = capfd.readouterr().err
    assert said.startswith("eirkit: the query ")
    assert "MiB of memory" in said
    assert said.endswith("; ask for less, with WHERE, GROUP BY or LIMIT\n")
    assert said.count("\n") == 1
    assert sorted(Path.cwd().iterdir()) == before, "nothing is written beside the caller"


def test_a_query_that_takes_too_long_is_ended(folder):
    started = time.monotonic()
    with pytest.raises(UsageError, match=r"the query took more than 1 s; ask for less, with WHERE, GROUP BY or LIMIT"):
        query_apart(folder, "SELECT count(*) FROM range(1000000) a, range(1000000) b, range(1000) c", most_seconds=1.0)
    assert time.monotonic() - started < PATIENCE_SECONDS


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(InputFileError, match="holds no analysis"):
        query(tmp_path, "SELECT 1")
