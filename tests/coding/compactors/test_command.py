"""`eirkit vestige compact` and the page of its folder, as a user calls them."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path

import pytest
from msgspec import convert

from eirkit.cli import run
from eirkit.report.document import Chart
from eirkit.report.viewer.folders import open_root
from eirkit.report.viewer.logs import LogFolders, _recording
from eirkit.report.viewer.routes import Viewer
from eirkit.vestige.tokens import exact_counter
from eirkit_coding.compactors.page import compaction_document
from eirkit_coding.compactors.records import BenchmarkResults
from tests.coding.compactors.planted_sessions import file_lines, write_sessions

WIDTH = 80


@pytest.fixture
def logs(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(tmp_path)
    return write_sessions(tmp_path / "logs", ["ada", "ben", "cleo", "dora", "emil", "fay"])


def called(capsys, *words: str) -> str:
    capsys.readouterr()
    code = run(["vestige", "compact", *words])
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out


def test_the_answer_comes_first_and_the_tables_fit(logs, capsys):
    words = ("logs", "--context-tokens", "600,1200", "--at", "every:5", "--out", "out")
    first, *lines = called(capsys, *words).splitlines()
    assert first.startswith("At 1,200 tokens ")
    assert [line for line in lines if len(line) > WIDTH] == []
    assert lines[-1] == "next: eirkit report out"
    found = json.loads(called(capsys, *words, "--json"))
    assert found["compactors"] == ["oracle", "random", "keep-last", "head-and-tail", "clear-tool-results"]
    assert {row["least_regret"] for row in found["rows"] if row["compactor"] == "oracle"} == {0.0}
    assert found["example"] is None or found["example"]["lines"]
    assert run(["report", "out"]) == 0
    page = Path("out/report.html").read_text()
    assert "Needed tokens kept, over tokens used" in page


def test_no_compactor_below_random_is_said_to_keep_most_and_every_point_is_where_its_row_is(tmp_path, capsys):
    # Of three cuts only the first is so early that the newest messages have the needed lines.
    logs = write_sessions(tmp_path / "long", ["ada", "ben", "cleo", "dora", "emil", "fay"], fillers=14)
    words = (str(logs), "--context-tokens", "1500,1900", "--at", "every:5", "--out", str(tmp_path / "out"))
    said = " ".join(called(capsys, *words).split())
    found = json.loads(called(capsys, *words, "--json"))
    rows = {(row["compactor"], row["budget"]): row for row in found["rows"]}
    kept, random = rows["keep-last", 1500]["kept_share"], rows["random", 1500]["kept_share"]
    assert 0 < kept < random < rows["head-and-tail", 1900]["kept_share"]
    below = f"random lines keep more, {random:.1%}, than every compactor tried but the oracle"
    assert rows["oracle", 1500]["kept_share"] > random
    assert f"At 1,500 tokens {below}; the best, keep-last, keeps {kept:.1%} of the needed tokens" in said
    assert "At 1,900 tokens head-and-tail keeps the most of the compactors tried" in said
    (chart,) = (
        item
        for section in compaction_document(convert(found, BenchmarkResults)).details
        for item in section.items
        if isinstance(item, Chart)
    )
    assert {series.name for series in chart.series} >= {"oracle", "random", "keep-last"}
    for series in chart.series:
        drawn = list(zip(series.x, series.y, strict=True))
        own = [rows[series.name, budget] for budget in (1500, 1900)]
        assert drawn == [(row["used_tokens"], row["kept_share"]) for row in own]


def test_no_compactor_below_random_lines_of_its_own_size_is_said_to_keep_most(logs, capsys):
    found = json.loads(called(capsys, "logs", "--context-tokens", "1200", "--at", "every:5", "--out", "out", "--json"))
    rows = [row | {"kept_share": 0.5, "gain_share": -0.02} for row in found["rows"]]
    (said,) = compaction_document(convert(found | {"rows": rows}, BenchmarkResults)).answer
    assert "−2.0 points against random lines of the same size" in said
    assert "keeps the most" not in said


def test_the_viewer_shows_a_cut_line_by_line_as_the_messages_have_it(logs, capsys):
    called(capsys, "logs", "--context-tokens", "600,1200", "--at", "every:5", "--out", "out")
    viewer = Viewer(open_root(Path("out")), LogFolders((logs,)), time.time)
    overview = viewer.overview({"at": ["."]})
    assert overview.kind == "compaction"
    assert overview.answers[0].startswith("At 1,200 tokens ")
    chosen = {"at": ["."], "f.compactor": ["keep-last"], "f.budget": ["600"]}
    assert viewer.runs(chosen).matched == 6
    grid = viewer.grid({"at": ["."]})
    assert (grid.layout.value, set(grid.over)) == ("kept_share", {"6 compactions"})
    asked = {"at": ["."], "run": ["ada"], "turn": ["6"], "budget": ["600"], "lines": ["all"]}
    cut = viewer.cut(asked)
    lines = [line for part in cut.parts for line in part.lines]
    assert {line.text for line in lines if line.needed} == set(file_lines("ada_needed", 20))
    count = exact_counter()
    for place, one in enumerate(cut.compactors):
        kept = {line.text for line in lines if line.needed and line.kept[place] == "1"}
        assert sum(count(f"{text}\n") for text in kept) == pytest.approx(one.kept_share * cut.needed_tokens)
    newest = next(place for place, one in enumerate(cut.compactors) if one.name == "keep-last")
    assert (lines[-1].kept[newest], lines[2].kept[newest]) == ("1", "0")
    lost = viewer.cut({**asked, "lines": ["lost"]})
    assert 0 < lost.matched < cut.matched
    blind = Viewer(open_root(Path("out")), LogFolders(), time.time).cut(asked)
    assert (blind.matched, blind.missing) == (
        20,
        "the logs were not given; start the viewer with --logs and what was analyzed",
    )
    log = logs / "ada.traj.json"
    log.write_text(log.read_text().replace("THOUGHT: next step.", "THOUGHT: another step.", 1))
    other = Viewer(open_root(Path("out")), LogFolders((logs.parent / "logs",)), time.time)
    _recording.cache_clear()
    assert "has changed since it was cut" in other.cut(asked).missing


def test_the_study_says_what_its_tables_have():
    """Every figure about reading again, and every share of the first table, from the files beside the script."""
    root = Path(__file__).parents[3]
    said = (root / "docs" / "findings.md").read_text()
    kept, again = (
        list(csv.DictReader((root / "studies" / f"compactors_{name}.csv").read_text().splitlines()))
        for name in ("kept", "read_again")
    )
    assert {row["least_regret"] for row in kept if row["compactor"] == "oracle"} == {"0.0"}
    assert min(float(row["least_regret"]) for row in kept) >= 0
    sham = [row for row in kept if row["compactor"] == "random"]
    assert all(float(row["beyond_random_low"]) <= 0 <= float(row["beyond_random_high"]) for row in sham)
    for row in kept:
        if row["set"] == "mini-swe-agent" and row["compactor"] in ("oracle", "random", "keep-last", "head-and-tail"):
            (line,) = [one for one in said.splitlines() if one.startswith(f"| `{row['compactor']}` | ") and "%" in one][
                :1
            ]
            assert f"{float(row['kept_share']):.0%}" in line, row
    real, bench = (next(row for row in again if row["set"] == name) for name in ("claude-code-real", "bench, all"))
    for name in ("needed_lost_again", "needed_lost_not", "needed_kept_again", "any_lost_again", "any_lost_not"):
        assert f"{int(real[name]):,}" in said, name
    for row in (real, bench):
        assert f"**Precision {float(row['precision']):.0%}" in said
        assert f"**Recall {float(row['recall']):.0%}" in said
        assert f"{float(row['sham_precision']):.0%}" in said
    found = f"{int(bench['needed_lost_again']):,} ({float(bench['precision']):.0%})"
    assert f"| all ten | {int(bench['needed_lost_again']) + int(bench['needed_lost_not']):,} | {found} |" in said
    assert int(bench["compactions"]) == 10


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--context-tokens", "many"), "--context-tokens many is no list of tokens; give for example 4000,8000"),
        (("--context-tokens", "9", "--at", "noon"), "'noon' names no cuts; give real, every:TURNS or tokens:TOKENS"),
        (("--context-tokens", "9", "--compactor", "keep-lst"), "no compactor named 'keep-lst'"),
        (("--context-tokens", "9", "--set", "null.x=1"), "names no compactor that is tried; write NAME.KEY=VALUE"),
        (("--context-tokens", "9", "--set", "random.sed=1"), "has no setting 'sed'; it has: seed"),
    ],
)
def test_a_wrong_word_is_answered_in_one_line(logs, capsys, words, said):
    assert run(["vestige", "compact", "logs", "--at", "every:5", *words, "--out", "out"]) == 2
    assert said in capsys.readouterr().err
