"""Recorded runs in the viewer: its rows are the tables', its words are the log's, and nothing else is opened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from eirkit.cli import run
from eirkit.errors import InputFileError
from eirkit.records.analysis import TABLES, CutRow, RunRow
from eirkit.report.viewer import routes
from eirkit.report.viewer.excerpts import LONGEST, Excerpt, more_of, shorten
from eirkit.report.viewer.logs import LINE_CHARACTERS, Argument, LogFolders, LoggedCall, lines_around, place_of
from eirkit.report.viewer.routes import Viewer
from eirkit.report.viewer.server import encode
from eirkit.report.viewer.vestige_run import AnalysisTables
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.tables import read_rows, run_ids
from eirkit.vestige.trajectory import Recording
from tests.report.folders import HOSTILE, make_aimless, make_analysis, make_plain, write_compacted, write_log

pytest.importorskip("pyarrow")
NOW = 1_000_000_000.0
BIG = 10_000_000  # characters of one observation


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vestige")
    write_log(folder / "logs", "hostile.jsonl")
    write_log(folder / "logs", "big.jsonl", "0123456789" * (BIG // 10))
    make_plain(folder / "plain")
    make_analysis(folder / "sessions", folder / "logs")
    make_analysis(folder / "cohort", folder / "plain")
    return folder


def viewer(root: Path, *logs: str) -> Viewer:
    return Viewer(root, LogFolders(tuple(root / name for name in logs)), lambda: NOW)


def ask(viewer: Viewer, path: str, **given: object):
    """Return what the page gets."""
    return json.loads(encode(viewer.answer(path, {name: [str(value)] for name, value in given.items()})))


@pytest.mark.parametrize("name", ["sessions", "cohort"])
def test_a_run_has_the_rows_of_every_table(root, name):
    tables = AnalysisTables(root / name)
    for run_id in run_ids(root / name):
        assert tables.run(run_id) == read_rows(root / name, RunRow, run_id)[0]
        for row in TABLES.values():
            assert tables.rows(row, run_id) == tuple(read_rows(root / name, row, run_id))


def test_rows_are_found_across_row_groups_and_for_runs_that_have_none(tmp_path):
    import pyarrow
    from pyarrow import parquet

    names = [f"r{number}" for number in range(20)]
    parquet.write_table(pyarrow.table({"run_id": names}), tmp_path / "runs.parquet")
    rows = [
        (name, place) for number, name in enumerate(names) for place in range(number % 4 * 3)
    ]  # every fourth has none
    others = {name: [0] * len(rows) for name in CutRow.__struct_fields__}
    table = pyarrow.table({**others, "run_id": [name for name, _ in rows], "cut": [place for _, place in rows]})
    parquet.write_table(table, tmp_path / "cuts.parquet", row_group_size=4)
    tables = AnalysisTables(tmp_path)
    for number, name in enumerate(names):
        assert [row.cut for row in tables.rows(CutRow, name)] == list(range(number % 4 * 3))
    shuffled = table.take(list(reversed(range(table.num_rows))))
    parquet.write_table(shuffled, tmp_path / "cuts.parquet", row_group_size=4)
    for number, name in enumerate(names):
        assert sorted(row.cut for row in tables.rows(CutRow, name)) == list(range(number % 4 * 3))


def test_turns_add_up_to_the_run(root):
    for run_id in run_ids(root / "cohort"):
        document = ask(viewer(root), "/api/run", at="cohort", run=run_id)
        row = document["run"]
        assert len(document["turns"]) == row["turns"] == len(document["cuts"])
        assert sum(turn["reads"] for turn in document["turns"]) == row["reads"]
        assert sum(turn["dead"] for turn in document["turns"]) == row["dead_reads"]
        assert max(cut["demand_tokens"] for cut in document["cuts"]) == row["peak_demand_tokens"]


def test_a_run_begins_with_what_a_compaction_dropped(tmp_path):
    session = Path(__file__).parents[2] / "examples" / "compacted_session.jsonl"
    assert run(["vestige", "analyze", str(session), "--out", str(tmp_path / "session")]) == 0
    dropped, broken, peak = ask(viewer(tmp_path), "/api/run", at="session", run="opening-hours")["answer"]
    assert dropped.startswith("The compaction before turn 10: 5 files of 490 tokens may have been needed; 490 tokens")
    assert broken.endswith("was not in the context from turn 10 on, and was broken in turn 14.")
    assert peak == "Most was needed before turn 9: 490 tokens of files."


@pytest.fixture(scope="module")
def aimless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an analysis of a session that edits nothing and is cleared, beside one that does reach a goal."""
    folder = tmp_path_factory.mktemp("aimless")
    make_aimless(folder / "logs")
    write_compacted(folder / "logs")
    make_analysis(folder / "sessions", folder / "logs")
    return folder


def test_what_no_goal_measures_is_not_shown_as_zero(aimless):
    rows = {row["run_id"]: row for row in ask(viewer(aimless), "/api/runs", at="sessions")["rows"]}
    assert rows["aimless"]["peak_demand_tokens"] is None
    assert rows["aimless"]["dead_read_tokens"] is None
    assert rows["long"]["peak_demand_tokens"] == AnalysisTables(aimless / "sessions").run("long").peak_demand_tokens
    assert rows["long"]["peak_demand_tokens"] > 0


def test_a_break_that_nothing_measures_says_so(aimless):
    document = ask(viewer(aimless), "/api/run", at="sessions", run="aimless")
    (row,) = document["breaks"]
    assert not row["measured"]
    (event,) = [event for turn in document["turns"] for event in turn["events"] if event.startswith(row["kind"])]
    assert event == f"{row['kind']}: what may have been needed is not measured: no file was used"


def test_the_parts_of_what_a_break_did_not_carry_add_up(aimless):
    (row,) = ask(viewer(aimless), "/api/run", at="sessions", run="long")["breaks"]
    summed = ask(viewer(aimless), "/api/overview", at="sessions")["summary"]["breaks"]
    parts = ("reread_dropped_tokens", "overwritten_tokens", "never_reread_tokens")
    assert row["dropped_tokens"] == sum(row[name] for name in parts) > 0
    # The other session's break is not measured, so the whole analysis has this one's figures.
    assert {name: summed[name] for name in ("dropped_tokens", *parts)} == {
        name: row[name] for name in ("dropped_tokens", *parts)
    }
    assert summed["unmeasured"] == 1


def test_the_words_of_a_turn_are_the_log_s(root):
    (recording,) = [run for run in read_corpus([root / "logs" / "hostile.jsonl"]) if isinstance(run, Recording)]
    shown = viewer(root, "logs")
    row = ask(shown, "/api/runs", at="sessions", q="hostile")["rows"] or ask(shown, "/api/runs", at="sessions")["rows"]
    run_id = next(
        r["run_id"] for r in row if AnalysisTables(root / "sessions").run(r["run_id"]).source.endswith("hostile.jsonl")
    )
    for number, said in enumerate(recording.turns, 1):
        turn = ask(shown, "/api/turn", at="sessions", run=run_id, turn=number)
        assert [call["output"] for call in turn["calls"]] == [call.output for call in said.calls]
        assert turn["text"] == said.text
    assert HOSTILE in [call.output for turn in recording.turns for call in turn.calls]


def test_the_raw_line_is_the_turn_s(root):
    shown = viewer(root, "logs")
    run_id = next(r.run_id for r in read_rows(root / "sessions", RunRow) if r.source.endswith("hostile.jsonl"))
    lines = (root / "logs" / "hostile.jsonl").read_text("utf-8").splitlines()
    places = [ask(shown, "/api/source", at="sessions", run=run_id, turn=turn)["line"] for turn in (1, 2, 3, 4)]
    assert places == sorted(places)
    for turn, clue in ((1, "src/a.py"), (2, "notes.txt"), (3, "src/a.py"), (4, "old_string")):
        found = ask(shown, "/api/source", at="sessions", run=run_id, turn=turn)
        here = next(line for line in found["lines"] if line["here"])
        assert here["text"] == lines[here["number"] - 1]
        assert clue in here["text"]


def test_one_line_of_many_runs_is_read_alone(root):
    run = "run-017"
    turn = ask(viewer(root, "plain"), "/api/turn", at="cohort", run=run, turn=1)
    assert turn["source"].endswith(":18")
    source = ask(viewer(root, "plain"), "/api/source", at="cohort", run=run, turn=1)
    assert json.loads(source["lines"][0]["text"])["run_id"] == run


def test_ten_megabytes_arrive_in_pieces(root):
    shown = viewer(root, "logs")
    run_id = next(r.run_id for r in read_rows(root / "sessions", RunRow) if r.source.endswith("big.jsonl"))
    turn = ask(shown, "/api/turn", at="sessions", run=run_id, turn=2)
    (call,) = turn["calls"]
    assert call["output"]["length"] == BIG
    assert len(call["output"]["text"]) == LONGEST
    more = ask(shown, "/api/text", at="sessions", run=run_id, turn=2, part=call["output"]["part"], offset=LONGEST)
    assert more == {
        "text": ("0123456789" * LONGEST)[:LONGEST],
        "offset": LONGEST,
        "next": 2 * LONGEST,
        "length": BIG,
    }
    source = ask(shown, "/api/source", at="sessions", run=run_id, turn=3)
    assert all(len(line["text"]) <= LINE_CHARACTERS for line in source["lines"])


def test_logs_are_read_only_below_what_was_named(root, tmp_path):
    run_id = read_rows(root / "sessions", RunRow)[0].run_id
    with pytest.raises(InputFileError, match="start the viewer with --logs"):
        ask(viewer(root), "/api/turn", at="sessions", run=run_id, turn=1)
    with pytest.raises(InputFileError, match="not below what --logs names"):
        ask(viewer(root, "plain"), "/api/turn", at="sessions", run=run_id, turn=1)
    (tmp_path / "secret.json").write_text("{}")
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "out.json").symlink_to(tmp_path / "secret.json")
    for source in ("logs/../secret.json", "logs/out.json", "secret.json", "/etc/passwd", "logs//etc/passwd", "logs"):
        with pytest.raises(InputFileError, match="not below"):
            LogFolders((logs,)).find(source)


@given(st.text("ab\n", max_size=60), st.data())
def test_lines_around_a_place_are_the_text_s_own(text, data):
    offset = data.draw(st.integers(0, len(text)))
    before, after = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    found = to_builtins(lines_around(text, offset, "", before, after))
    whole = text.split("\n")
    for line in found["lines"]:
        assert line["text"] == whole[line["number"] - 1]
    numbers = [line["number"] for line in found["lines"]]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    (here,) = [line["number"] for line in found["lines"] if line["here"]]
    assert here == found["line"] == text[:offset].count("\n") + 1
    assert numbers[0] == max(1, here - before)


def call(*values: str) -> LoggedCall:
    return LoggedCall(
        "t", tuple(Argument(str(place), value) for place, value in enumerate(values)), "", None, None, False
    )


@given(st.lists(st.text(max_size=5), max_size=3))
def test_what_is_short_stays_as_it_is(values):
    assert shorten(call(*values)) == call(*values)


def test_a_long_text_is_had_piece_by_piece():
    whole = "".join(chr(0x4E00 + place % 997) for place in range(2 * LONGEST + 7))
    document = call("short", whole)
    cut = shorten(document).arguments[1].value
    assert isinstance(cut, Excerpt)
    found = cut.text
    while len(found) < cut.length:
        found += more_of(document, cut.part, len(found)).text
    assert found == whole
    for part in ("arguments/9/value", "arguments/0/c", "arguments/x", "arguments/0", "b", "", "__class__/__name__"):
        with pytest.raises(InputFileError, match="no text at"):
            more_of(document, part, 0)


def test_a_turn_without_words_of_its_own_has_no_place():
    assert place_of("nothing here", (), 1) is None


def test_a_log_that_takes_long_costs_its_own_page_alone(root, tmp_path, monkeypatch):
    """No turn of it is found in its text, so that each is searched for in all of it."""
    logs = tmp_path / "logs"
    logs.mkdir()
    turns = [{"role": "assistant", "content": f"words of turn {number}"} for number in range(4000)]
    escaped = json.dumps({"run_id": "slow", "messages": [{"role": "user", "content": "Begin."}, *turns]})
    escaped = escaped.replace("words of", "".join(f"\\u{ord(one):04x}" for one in "words of"))
    (logs / "slow.jsonl").write_text(escaped.replace(" ", " " * 40) + "\n")
    write_log(logs, "other.jsonl")
    make_analysis(tmp_path / "analysis", logs)
    shown = viewer(tmp_path, "logs")
    quick, slow = sorted(run_ids(tmp_path / "analysis"), key=lambda name: "slow" in name)
    monkeypatch.setattr(routes, "PAGE_SECONDS", 0.02)
    with pytest.raises(InputFileError, match=r"this log takes more than 0.02 s of processor time; leave it out"):
        ask(shown, "/api/source", at="analysis", run=slow, turn=4000)
    monkeypatch.undo()
    assert ask(shown, "/api/source", at="analysis", run=quick, turn=1)["lines"]
