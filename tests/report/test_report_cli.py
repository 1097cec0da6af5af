"""`eirkit report` and `eirkit compare` as a person or a script meets them."""

import json

import pytest

from eirkit.cli import run
from eirkit.records.documents import MANIFEST, RUNS_SCHEMA
from eirkit.report import folders
from eirkit.report.comparison import comparers
from eirkit.report.folders import pages
from eirkit.vestige import tables
from eirkit_coding import compaction
from eirkit_paper.runner import SCHEMA as STUDY
from tests import runs
from tests.report.folders import make_rescue, make_sweep
from tests.report.reading_pages import faults

WIDTH = 80  # columns, where no terminal says how many it has


def call(capsys, *words: object) -> tuple[int, str, str]:
    capsys.readouterr()  # what making the folder said
    code = run([str(word) for word in words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_folder_is_known_by_its_own_files():
    assert folders.MARKS == {
        MANIFEST: {RUNS_SCHEMA: "lacuna-run"},
        tables.FILE: {tables.SCHEMA: "vestige-analysis"},
        compaction.MANIFEST: {compaction.MANIFEST_SCHEMA: "compaction-benchmark"},
    }
    assert folders.STUDIES == STUDY
    kinds = {kind for marks in folders.MARKS.values() for kind in marks.values()}
    assert {*kinds, "lacuna-evidence", "reproduction"} <= set(pages.names())
    assert set(comparers.names()) <= kinds


def test_a_report_ends_with_its_path(capsys, chain, tmp_path):
    out = tmp_path / "new" / "page.html"
    code, shown, _ = call(capsys, "report", chain.folder, "--out", out)
    assert code == 0
    assert f"page: {out}" in shown.splitlines()
    assert shown.splitlines()[-1] == f"next: eirkit view {chain.folder}"
    assert faults(out.read_text("utf-8")) == []
    assert "of the steps that need an earlier answer lacked it in context" in " ".join(shown.split())
    assert list(out.parent.iterdir()) == [out]


def test_the_answers_as_a_document(capsys, chain, tmp_path):
    code, shown, _ = call(capsys, "report", chain.folder, "--out", tmp_path / "p.html", "--json")
    document = json.loads(shown)
    assert code == 0
    assert document["kind"] == "lacuna-run"
    assert document["answers"]["repair"]["oracle"] == 1
    assert document["headline"]["number"].endswith("%")
    assert {section["id"] for section in document["sections"]} >= {"accuracy-by-setting", "how-to-make-this-again"}


def test_the_page_lies_in_the_folder_unless_told(capsys, tmp_path):
    folder = make_rescue(tmp_path / "rescue")
    code, shown, _ = call(capsys, "report", folder)
    assert (code, (folder / "report.html").is_file()) == (0, True)
    assert "are right once it is restored (sham" in shown
    assert "No full-information control was run, so this describes" in shown


def test_figures_and_tables_lie_beside_the_page(capsys, chain, tmp_path):
    code, shown, _ = call(
        capsys, "report", chain.folder, "--out", tmp_path / "p.html", "--figures", "svg", "--tables", "latex", "--json"
    )
    files = [path.name for path in (tmp_path / "p-files").iterdir()]
    assert code == 0
    assert {"accuracy-cells.svg", "rescue.svg", "accuracy-by-cell.tex"} <= set(files)
    assert len(json.loads(shown)["files"]) == 1 + len(files)


def test_evidence_from_elsewhere_joins_a_sweep(capsys, tmp_path):
    sweep, rescue = make_sweep(tmp_path / "sweep"), make_rescue(tmp_path / "rescue")
    _, alone, _ = call(capsys, "report", sweep, "--json")
    _, joined, _ = call(capsys, "report", sweep, rescue, "--json")
    assert json.loads(alone)["answers"]["repair"] is None
    assert json.loads(joined)["answers"]["repair"]["steps"] > 0
    assert "measured on stepwise-sum" in json.loads(joined)["headline"]["sentences"][0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path / "missing", "is no folder"),
        (lambda path: path, "holds no records"),
    ],
)
def test_what_holds_no_records_is_refused_in_one_line(capsys, tmp_path, make, message):
    code, shown, complaint = call(capsys, "report", make(tmp_path))
    assert (code, shown, complaint.count("\n")) == (2, "", 1)
    assert message in complaint


def test_with_belongs_to_sweeps(capsys, planted, tmp_path):
    code, _, complaint = call(capsys, "report", planted, tmp_path)
    assert (code, complaint.count("\n")) == (2, 1)
    assert "leave the others out" in complaint


def test_an_unfinished_sweep_says_so(capsys, tmp_path):
    folder = make_sweep(tmp_path / "sweep")
    runs.cut(folder, 5)
    code, shown, _ = call(capsys, "report", folder, "--json")
    document = json.loads(shown)
    assert code == 0
    assert "19 of 24 runs are not scored" in document["sections"][0]["words"][0]


def test_a_comparison_in_the_terminal_as_json_and_as_a_page(capsys, tmp_path):
    a, b = make_sweep(tmp_path / "a"), make_sweep(tmp_path / "b", "--policy", "lru")
    code, shown, _ = call(capsys, "compare", a, b, "--out", tmp_path / "c.html", "--tables", "markdown")
    assert code == 0
    assert "accuracy, by cell" in shown
    assert shown.splitlines()[0].startswith("controlled lru ")
    assert "in accuracy" in shown
    assert max(len(line) for line in shown.splitlines() if str(tmp_path) not in line) <= WIDTH
    assert faults((tmp_path / "c.html").read_text("utf-8")) == []
    assert (tmp_path / "c-files" / "results.md").is_file()
    code, shown, _ = call(capsys, "compare", a, b, "--json")
    document = json.loads(shown)
    assert (code, document["kind"], document["out"]) == (0, "lacuna-run", None)
    assert document["overall"][0]["measure"] == "accuracy"
    assert document["verdict"].startswith("controlled lru ")


def test_exports_of_a_comparison_need_a_page(capsys, chain):
    code, _, complaint = call(capsys, "compare", chain.folder, chain.folder, "--figures", "svg")
    assert (code, complaint.count("\n")) == (2, 1)
