"""Analyses as objects: they say what the commands print, read runs lazily, and need nothing that analyzes logs."""

from __future__ import annotations

import gc
import json
import sys
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct
from rich.console import Console

from eirkit.errors import InputFileError, UnknownNameError, UsageError
from eirkit.records.analysis import CutRow, RunRow
from eirkit.vestige.corpus.planted_corpus import PlantedCorpus, plain_lines
from eirkit.vestige.results.analysis import Analysis, Runs
from eirkit.vestige.results.analyze import analyze
from eirkit.vestige.tables import read_rows, run_ids
from tests.processes import completed

pytest.importorskip("pyarrow")
CORPUS = PlantedCorpus(60, 20)
# What a reader of results must not load: modules that read logs, interpret commands or measure runs.
ANALYZING = ("formats.", "shell", "actions", "audits", "corpus.analysis", "corpus.pipeline", "corpus.summary", "tokens")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("results") / "runs.jsonl"
    path.write_bytes(b"".join(plain_lines(CORPUS, 0)))
    return path


@pytest.fixture(scope="module")
def found(logs: Path) -> Analysis:
    return analyze(logs, out=logs.parent / "out")


def command(*words: object) -> dict[str, object]:
    done = completed([sys.executable, "-m", "eirkit", "vestige", *words, "--json"], check=True)
    return dict(json.loads(done.stdout))


def as_printed(result: Struct) -> dict[str, object]:
    return dict(json.loads(msgspec.json.encode(result)))


def test_the_summary_is_that_of_the_command(found: Analysis, logs: Path, tmp_path: Path) -> None:
    document = command("analyze", logs, "--out", tmp_path / "out")
    summary = as_printed(found.summary)
    assert {name: document[name] for name in summary if name != "advice"} == {
        name: value for name, value in summary.items() if name != "advice"
    }
    assert (document["out"], document["visibility"]) == (str(tmp_path / "out"), "seen")
    assert found.summary.runs == CORPUS.runs
    for name in run_files(found.folder):
        assert (tmp_path / "out" / name).read_bytes() == (found.folder / name).read_bytes()


def run_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix == ".parquet")


def test_runs_are_the_rows_of_the_table(found: Analysis) -> None:
    rows = read_rows(found.folder, RunRow)
    assert len(found.runs) == len(rows) == CORPUS.runs
    assert list(found.runs) == rows
    assert [found.runs[place] for place in (0, 7, -1)] == [rows[0], rows[7], rows[-1]]
    assert found.runs[50:3:-9] == rows[50:3:-9]
    with pytest.raises(IndexError, match="none numbered 60"):
        found.runs[CORPUS.runs]


def test_runs_are_found_across_row_groups(found: Analysis, tmp_path: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(found.to_arrow(), tmp_path / "runs.parquet", row_group_size=7)
    runs = Runs(tmp_path)
    assert list(runs) == [runs[place] for place in range(len(runs))] == list(found.runs)


def test_a_run_and_cohorts_are_what_the_commands_print(found: Analysis) -> None:
    name = run_ids(found.folder)[3]
    run = found.run(name)
    assert run.cuts == tuple(read_rows(found.folder, CutRow, name))
    assert command("show", found.folder, name) == as_printed(run)
    cohorts = found.cohorts(by="model", only=["demand"])
    assert command("cohort", found.folder, "--by", "model", "--only", "demand") == as_printed(cohorts)
    pooled = found.cohorts(found, only=["later"])
    assert (pooled.cohorts[0].runs, pooled.repeated_runs) == (2 * CORPUS.runs, CORPUS.runs)
    with pytest.raises(UnknownNameError, match="no run named 'planted-1-x'"):
        found.run("planted-1-x")


def test_tables_are_queried_and_exported(found: Analysis) -> None:
    pytest.importorskip("duckdb")
    assert found.query("SELECT count(*) AS n FROM runs").rows == ((CORPUS.runs,),)
    assert found.to_arrow("cuts").column_names[:2] == ["run_id", "cut"]
    with pytest.raises(UnknownNameError, match="no table named 'cutz'; did you mean 'cuts'"):
        found.to_arrow("cutz")


def test_data_frames_need_pandas_and_say_so(found: Analysis) -> None:
    if find_spec("pandas") is not None:
        assert list(found.to_pandas()["run_id"]) == run_ids(found.folder)
    script = (
        "import sys; sys.modules['pandas'] = None  # as if it were not installed\n"
        "from eirkit.vestige.results.analysis import Analysis\n"
        f"Analysis({str(found.folder)!r}).to_pandas()"
    )
    done = completed([sys.executable, "-c", script])
    assert "UsageError: data frames need pandas: pip install pandas, or use to_arrow()" in done.stderr


def test_a_temporary_analysis_lives_as_long_as_its_object(logs: Path) -> None:
    found = analyze(str(logs))
    folder = found.folder
    assert found.runs[0].run_id == run_ids(folder)[0]
    del found
    gc.collect()
    assert not folder.exists()


def test_it_shows_itself(found: Analysis) -> None:
    console = Console(file=StringIO(), width=100)
    console.print(found)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert f"│ {CORPUS.runs}" in printed
    assert "peak demand" in printed
    html = found._repr_html_()
    assert f"<tr><th>runs</th><td>{CORPUS.runs}</td></tr>" in html
    assert repr(found) == f"<Analysis of {CORPUS.runs} runs in {found.folder}>"


def test_what_is_no_analysis_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="holds no analysis; create one with"):
        Analysis(tmp_path).summary  # noqa: B018 - it is read when it is asked for
    with pytest.raises(UsageError, match="no logs were given"):
        analyze()


@pytest.mark.parametrize(
    "words",
    [
        ("eirkit.cli.show:show", "DIR", "RUN"),
        ("eirkit.cli.vestige.cohort:cohort", "DIR", "--only", "later"),
        ("eirkit.cli.report:report", "DIR", "--out", "OUT"),
    ],
)
def test_reading_results_imports_nothing_that_analyzes_logs(
    words: tuple[str, ...], found: Analysis, tmp_path: Path
) -> None:
    places = {"DIR": str(found.folder), "RUN": run_ids(found.folder)[0], "OUT": str(tmp_path / "page.html")}
    module, _, name = words[0].partition(":")
    script = (
        "import sys, importlib\n"
        f"command = getattr(importlib.import_module({module!r}), {name!r})\n"
        f"command({[places.get(word, word) for word in words[1:]]!r}, standalone_mode=False)\n"
        "print('\\n'.join(name for name in sys.modules if name.startswith('eirkit.')), file=sys.stderr)\n"
    )
    done = completed([sys.executable, "-c", script], check=True)
    loaded = [name for name in done.stderr.split() if name.startswith("eirkit.")]
    assert len(loaded) > 5
    refuse_analyzing(loaded)


def test_the_viewer_imports_nothing_that_analyzes_logs() -> None:
    script = "import sys, eirkit.cli.view; print(*sys.modules)"
    refuse_analyzing(completed([sys.executable, "-c", script], check=True).stdout.split())


def refuse_analyzing(loaded: list[str]) -> None:
    assert [name for name in loaded if name.startswith(tuple(f"eirkit.vestige.{part}" for part in ANALYZING))] == []
