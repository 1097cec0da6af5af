"""Tables on disk: types from the row's fields, equal bytes for equal rows, no trace of what was not finished."""

import re
from pathlib import Path
from typing import Literal

import pytest
from msgspec import Struct
from tools import reference

from eirkit.errors import InputFileError, UsageError
from eirkit.records.analysis import TABLES, AnalysisClaim, RunRow
from eirkit.vestige import tables
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions
from eirkit.vestige.corpus.summary import CorpusTotals
from eirkit.vestige.tables import (
    TableWriter,
    columns_of,
    read_analysis,
    read_rows,
    read_table,
    rows_of,
    run_ids,
)


class Row(Struct, frozen=True):
    run_id: str
    path: str
    kind: Literal["a", "b"] | None
    tokens: int | None
    share: float
    kept: bool
    files: tuple[str, ...] = ()


def row(path: str, **more: object) -> Row:
    return Row(**{"run_id": "", "path": path, "kind": "a", "tokens": 1, "share": 0.5, "kept": True, **more})


def write(folder, runs, document=None):
    with TableWriter(folder, {"runs": Row, "empty": Row}) as writer:
        for run_id, rows in runs.items():
            writer.add(run_id, {"runs": columns_of(Row, rows)})
        writer.finish(document or AnalysisClaim(complete=True))
    return folder


def rows_in(folder, name="runs"):
    return rows_of(read_table(folder, name), Row, folder)


def test_rows_come_back_with_their_run(tmp_path):
    folder = write(
        tmp_path / "a", {"r1": [row("x", kind=None, tokens=None), row("y", files=("p", "q"))], "r2": [row("z")]}
    )
    assert [one.path for one in rows_in(folder)] == ["x", "y", "z"]
    assert rows_in(folder)[1] == row("y", run_id="r1", files=("p", "q"))
    assert run_ids(folder) == ["r1", "r1", "r2"]
    assert rows_in(folder, "empty") == []


def test_equal_rows_give_equal_bytes_whatever_the_groups(tmp_path):
    runs = {f"r{i}": [row(f"p{i}")] for i in range(50)}
    first, second = write(tmp_path / "a", runs), write(tmp_path / "b", runs)
    names = sorted(path.name for path in first.iterdir())
    assert names == ["analysis.json", "empty.parquet", "runs.parquet"]
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in names)


def test_rows_leave_in_groups(tmp_path):
    import pyarrow.parquet

    folder = write(tmp_path / "a", {f"r{i}": [row("x")] * (tables.GROUP_ROWS // 2 + 1) for i in range(4)})
    found = pyarrow.parquet.ParquetFile(folder / "runs.parquet")
    sizes = [found.metadata.row_group(place).num_rows for place in range(found.num_row_groups)]
    assert sizes == [tables.GROUP_ROWS, tables.GROUP_ROWS, 4], "of one size, whatever runs the rows came in"


def test_a_claim_that_was_killed_does_not_stand_in_the_way(tmp_path):
    (tmp_path / ".analysis.json.99999999.unfinished").write_text("{")
    assert tables.claim(tmp_path)
    (tmp_path / "analysis.json").unlink()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="not an analysis"):
        tables.claim(tmp_path)


def test_half_a_surrogate_pair_does_not_stop_a_table(tmp_path):
    folder = write(tmp_path / "a", {"r\ud800": [row("x\udfff", files=("\ud801",))]})
    assert rows_in(folder)[0].path == "x?"


def test_what_is_not_finished_leaves_nothing(tmp_path):
    with pytest.raises(KeyError), TableWriter(tmp_path / "new" / "deep", {"runs": Row}) as writer:
        writer.add("r", {"runs": columns_of(Row, [row("x")]), "unheard of": {}})
    assert not (tmp_path / "new" / "deep").exists()


def test_what_is_not_finished_leaves_an_earlier_analysis_alone(tmp_path):
    folder = write(tmp_path / "a", {"r1": [row("x")]}, CorpusTotals(runs=1).summary(AnalysisOptions(read_windows())))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(KeyError), TableWriter(folder, {"runs": Row}) as writer:
        writer.add("r2", {"runs": columns_of(Row, [row("y")]), "unheard of": {}})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert read_analysis(folder).runs == 1


def test_an_analysis_replaces_an_earlier_one(tmp_path):
    write(tmp_path / "a", {"r1": [row("x")]})
    assert run_ids(write(tmp_path / "a", {"r2": [row("x")]})) == ["r2"]


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with (
        pytest.raises(UsageError, match="not an analysis; give a new or empty folder"),
        TableWriter(tmp_path, {"runs": Row}),
    ):
        pass
    with pytest.raises(UsageError, match="is a file"), TableWriter(tmp_path / "thesis.txt", {"runs": Row}):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_foreign_analysis_json_is_not_ours(tmp_path):
    (tmp_path / "analysis.json").write_text('{"mine": true}')
    with pytest.raises(InputFileError, match="schema None"), TableWriter(tmp_path, {"runs": Row}):
        pass
    assert (tmp_path / "analysis.json").read_text() == '{"mine": true}'


def test_reading_what_is_absent_unfinished_or_torn_is_one_line(tmp_path):
    with pytest.raises(InputFileError, match="holds no analysis; create one with"):
        read_analysis(tmp_path)
    folder = write(tmp_path / "a", {"r1": [row("x")]})
    content = (folder / "runs.parquet").read_bytes()
    (folder / "runs.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputFileError, match="run `eirkit vestige analyze` again"):
        read_rows(folder, RunRow)
    tables.write_struct(folder / "analysis.json", tables.SCHEMA, AnalysisClaim())
    with pytest.raises(InputFileError, match="was not finished"):
        read_analysis(folder)


def test_the_page_names_every_table():
    page = (Path(__file__).parents[2] / "docs" / "logs.md").read_text("utf-8")
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ", page.partition("## Tables and queries")[2], re.MULTILINE)
    assert [name for row in rows for name in re.findall(r"\w+", row)] == [*TABLES]


@pytest.mark.parametrize("kind", TABLES.values(), ids=TABLES)
def test_the_reference_lists_every_column(kind):
    assert [name for name, _, _ in reference.fields(kind)] == list(kind.__struct_fields__)
