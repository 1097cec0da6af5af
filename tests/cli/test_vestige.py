"""`eirkit vestige` as a person or a script meets it: the run worked by hand, damaged input, and clear refusals."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from eirkit.cli.vestige.analyze import CorpusProgress, _in_vain
from eirkit.records.analysis import BreakCost
from eirkit.report.logs.break_sentences import break_line
from eirkit.vestige.audits.occupancy import read_windows
from eirkit.vestige.corpus.analysis import AnalysisOptions
from eirkit.vestige.corpus.summary import CorpusTotals
from tests import warm
from tests.processes import completed
from tests.report.folders import write_compacted, write_log

EXAMPLES = Path(__file__).parents[2] / "examples"
ACCESSES = [
    ("a.py", 100, ""), ("b.py", 50, ""), ("g.py", 200, ""), ("", 210, "g.py"),
    ("c.py", 30, ""), ("", 40, "d.py"), ("g.py", 210, ""),
]  # fmt: skip
BY_HAND = {
    "run_id": "r1",
    "task_id": "t1",
    "model": "m",
    "resolved": True,
    "goal_files": ["g.py"],
    "turns": [
        {
            "reads": [{"path": read, "tokens": tokens}] if read else [],
            "writes": [{"path": written, "tokens": tokens}] if written else [],
            "tokens": tokens + 10,
        }
        for read, tokens, written in ACCESSES
    ],
}


def call(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb"}
    return completed([warm.programs() / "eirkit", "vestige", *map(str, arguments)], env=environment)


def answer(*arguments: object) -> dict:
    done = call(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture
def log(tmp_path) -> Path:
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps(BY_HAND) + "\n")
    return path


@pytest.fixture(scope="module")
def analyzed(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("analyzed")
    (folder / "one.jsonl").write_text(json.dumps(BY_HAND) + "\n")
    answer("analyze", folder / "one.jsonl", "--out", folder / "out")
    return folder / "out"


def test_the_run_worked_by_hand(analyzed):
    run = answer("show", analyzed, "r1")
    assert {cut["cut"]: cut["demand_tokens"] for cut in run["cuts"]} == {
        1: 0, 2: 100, 3: 150, 4: 350, 5: 210, 6: 210, 7: 210,
    }  # fmt: skip
    assert (run["peak_demand_tokens"], run["peak_cut"]) == (350, 4)
    assert [state["path"] for state in run["live_at_peak"]] == ["g.py", "a.py", "b.py"]


def test_environment_visibility(log, tmp_path):
    answer("analyze", log, "--out", tmp_path / "out", "--visibility", "environment")
    run = answer("show", tmp_path / "out", "r1")
    assert (run["cuts"][0]["demand_tokens"], run["peak_cut"]) == (350, 1)
    assert len(run["live_at_peak"]) == 3


def test_the_summary_is_one_document_with_what_scripts_rely_on(log, tmp_path):
    found = answer("analyze", log, "--out", tmp_path / "out")
    assert (found["out"], found["runs"], found["skipped"]) == (str(tmp_path / "out"), 1, [])
    assert (found["goal_access"], found["mean_peak_tokens"]) == (1.0, 350.0)


def test_what_compactions_dropped_comes_first_and_leads_to_the_run_with_most_of_it(tmp_path):
    logs = [EXAMPLES / "compacted_session.jsonl", EXAMPLES / "two_runs.jsonl"]
    done = call("analyze", *logs, "--out", tmp_path / "out")
    said = " ".join(done.stdout.split())
    assert said.startswith(
        "1 compaction (1 automatic) dropped 490 tokens that may have been needed; 461 of them were read again. Runs "
        "that touched a goal file needed "
    )
    assert done.stdout.endswith(f"next: eirkit show {tmp_path / 'out'} opening-hours\n")


def test_a_run_for_reading(analyzed):
    done = call("show", analyzed, "r1")
    assert "peak demand: 350 tokens at cut 4" in done.stdout
    assert "Live at the peak" in done.stdout
    assert "█" in done.stdout


def test_without_a_run_all_are_listed_the_costliest_compaction_first(tmp_path):
    write_log(tmp_path / "logs", "short.jsonl")
    write_compacted(tmp_path / "logs", "long.jsonl")
    answer("analyze", tmp_path / "logs", "--out", tmp_path / "out")
    found = answer("show", tmp_path / "out")
    assert [(run["run"], run["compactions"]) for run in found["runs"]] == [("long", 1), ("short", 0)]
    assert found["runs"][0]["live"] == answer("show", tmp_path / "out", "long")["breaks"][0]["live_tokens"] > 0
    shown = call("show", tmp_path / "out").stdout
    assert shown.startswith("1 of 2 runs was compacted.")
    assert shown.splitlines()[-1] == f"next: eirkit show {tmp_path / 'out'} long"


def test_the_chart_of_a_run_has_both_axes(analyzed):
    lines = call("show", analyzed, "r1").stdout.splitlines()
    top, bottom = (
        next(n for n, line in enumerate(lines) if line.lstrip().startswith(edge)) for edge in ("350 │", "0 │")
    )
    assert bottom - top == 7
    assert lines[bottom + 1].strip() == "└───────"
    assert lines[bottom + 2].split() == ["1", "7", "cut"]


def test_a_break_says_what_each_number_counts():
    known = {
        "live_files": 3, "live_tokens": 4100, "dropped_tokens": 2900, "reread_files": 2, "reread_tokens": 2010,
        "overwritten_files": 0, "never_reread_files": 1, "never_reread_tokens": 950,
        "reread_dropped_tokens": 1950, "overwritten_tokens": 0, "measured": True, "unknown_tokens": 0,
    }  # fmt: skip
    cost = BreakCost(
        **known,
        cut=2,
        kind="compaction",
        carried_tokens=0,
        reread_turns=1,
        evidence="summary",
        shrunk_tokens=None,
        compactions=1,
        clears=0,
        trigger="unknown",
        manual_compactions=0,
        automatic_compactions=0,
    )
    assert break_line(cost) == (
        "3 files of 4,100 tokens may have been needed; 2,900 tokens of that dropped: "
        "1,950 read again in 2 files, which showed 2,010 tokens, 950 never read again (1 file not at all)"
    )
    in_part = replace(cost, live_files=2, never_reread_files=0)
    assert break_line(in_part).endswith(", 950 never read again")
    silent = break_line(replace(cost, never_reread_tokens=0, unknown_tokens=950))
    assert ", 1 file not read again; unknown for 950 tokens" in silent
    unknown = break_line(replace(cost, unknown_tokens=800))
    assert "; at least 2,900 tokens of that dropped: " in unknown
    assert unknown.endswith("; unknown for 800 tokens")
    assert "; an unknown part of that dropped" in break_line(replace(cost, unknown_tokens=800, dropped_tokens=0))
    assert break_line(replace(cost, live_files=0)) == "nothing that may have been needed was in the context"
    assert break_line(replace(cost, dropped_tokens=0)).endswith("may have been needed; none of that dropped")
    assert "not measured" in break_line(replace(cost, live_files=0, measured=False))


def test_a_run_is_named_by_a_beginning_that_only_it_has(tmp_path):
    runs = [{**BY_HAND, "run_id": name} for name in ("north-1", "north-12", "south")]
    (tmp_path / "three.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    answer("analyze", tmp_path / "three.jsonl", "--out", tmp_path / "out")
    assert answer("show", tmp_path / "out", "s")["run_id"] == "south"
    assert answer("show", tmp_path / "out", "north-1")["run_id"] == "north-1", "a whole name comes before a beginning"
    done = call("show", tmp_path / "out", "north")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("begin with 'north'; name one of north-1 and north-12\n")
    shortened = call("show", tmp_path / "out", "n…").stderr
    assert shortened.endswith("may be meant by 'n…'; name one of north-1 and north-12\n")
    assert call("show", tmp_path / "out", "south").stdout.splitlines()[-1].endswith("/out")


def test_without_a_terminal_a_line_says_now_and_then_how_far_it_is(tmp_path, capsys):
    logs = [tmp_path / f"{name}.jsonl" for name in "abcd"]
    for log in logs:
        log.touch()
    with CorpusProgress([tmp_path], line_seconds=0.0) as progress:
        progress("a.jsonl:1", 1, 0)
        progress("b.jsonl:1", 2, 3)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("reading: 1 run  ")
    assert "  file 1 of 4  about " in first
    assert "3 parts skipped" in second
    with CorpusProgress([tmp_path]) as progress:
        progress("a.jsonl:1", 1, 0)
    assert capsys.readouterr().err == "", "not more often than every ten seconds"


def test_one_cause_is_one_complaint(log, tmp_path):
    for number in range(101):
        (tmp_path / f"broken-{number}.jsonl").write_bytes(b"\x00" * (number + 1) + b"garbage")
    (tmp_path / "torn.jsonl").write_text('{"run_id": "torn", "turns": [{"reads"\n')
    lines = call("analyze", tmp_path, "--out", tmp_path / "out").stdout.splitlines()
    skipped = [line for line in lines if line.startswith("skipped: ")]
    assert len(skipped) == 2, skipped
    assert " and 100 more: " in skipped[0]
    assert "torn.jsonl" in skipped[1]


def test_a_torn_line_is_skipped_and_named_and_refused_by_strict(log, tmp_path):
    log.write_text(log.read_text() + '{"run_id": "torn", "turns": [{"reads"\n')
    found = answer("analyze", log, "--out", tmp_path / "out")
    assert found["runs"] == 1
    assert found["skipped"][0]["source"] == "one.jsonl:2"
    done = call("analyze", log, "--out", tmp_path / "strict", "--strict")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert not (tmp_path / "strict").exists()


SILENT = {  # a session that edits nothing, loses its context, and is lost sight of
    **{key: value for key, value in BY_HAND.items() if key != "goal_files"},
    "run_id": "a-session-whose-name-is-so-long-that-no-table-of-eighty-columns-has-room-for-it/agent-7",
    "turns": [{"reads": [], "writes": [], "tokens": 5}] * 4,
}


def test_what_no_goal_measures_is_not_shown_as_zero(tmp_path):
    (tmp_path / "one.jsonl").write_text(json.dumps(SILENT) + "\n")
    shown = call("analyze", tmp_path / "one.jsonl", "--out", tmp_path / "out").stdout
    assert "unknown: no goal was given and none of 1 run edited a file" in shown
    assert "0.0%" not in shown
    assert "largest demand" not in shown
    one = call("show", tmp_path / "out", SILENT["run_id"]).stdout
    assert "not the same as no need" in one
    assert "nothing was needed" not in one


def test_a_name_is_shortened_to_the_terminal_and_still_finds_its_run(tmp_path):
    run = {**BY_HAND, "run_id": SILENT["run_id"]}
    (tmp_path / "one.jsonl").write_text(json.dumps(run) + "\n")
    shown = call("analyze", tmp_path / "one.jsonl", "--out", tmp_path / "out").stdout
    (name,) = re.findall(r"a-ses\S*…\S*", shown)
    assert max(map(len, shown.splitlines()[:-1])) <= 80 + len(str(tmp_path))  # the last line is a command
    assert answer("show", tmp_path / "out", name)["run_id"] == SILENT["run_id"]


def test_a_wide_row_is_printed_one_column_to_a_line(analyzed):
    lines = call("query", analyzed, "SELECT * FROM runs").stdout.splitlines()
    assert lines[0] == "1 row."
    assert "row 1" in lines
    assert ["peak_demand_tokens", "350"] in [line.split() for line in lines]
    assert "row 1" not in call("query", analyzed, "SELECT run_id, turns FROM runs").stdout


def test_own_edits_are_stated_as_the_goal(tmp_path):
    session = {key: value for key, value in BY_HAND.items() if key != "goal_files"}
    (tmp_path / "one.jsonl").write_text(json.dumps(session) + "\n")
    done = call("analyze", tmp_path / "one.jsonl", "--out", tmp_path / "out")
    said = " ".join(done.stdout.split())
    assert "none given: what each part of a session edited and kept" in said
    assert "; no goal was given, so what was edited counts as the goal: read, and neither" in said
    assert answer("show", tmp_path / "out", "r1")["goal_files"] == ["d.py", "g.py"]
    done = call("analyze", tmp_path / "one.jsonl", "--demand", "paper", "--out", tmp_path / "paper")
    assert "none given: the files that the run itself edited last (1 run)" in " ".join(done.stdout.split())
    assert answer("show", tmp_path / "paper", "r1")["goal_files"] == ["d.py"]


REFUSALS = [
    (("analyze", "{log}"), "Missing option '--out'"),
    (("analyze", "{log}", "--out", "{log}"), "is a file; give a folder with --out"),
    (("analyze", "{log}", "--out", "{folder}"), "not an analysis; give a new or empty folder"),
    (("analyze", "no/such", "--out", "{log}.out"), "no/such"),
    (("analyze", "{log}", "--out", "{log}.out", "--gold", "no/such"), "no/such"),
    (("analyze", "{log}", "--out", "{log}.out", "--log-format", "plian"), "did you mean 'plain'"),
    (("analyze", "{log}", "--out", "{log}.out", "--windows", "no/such"), "no/such"),
    (("show", "no/such", "r1"), "is no folder; give one that"),
    (("show", "{analyzed}", "r11"), "no run named 'r11' in .*; did you mean r1\\?"),
    (("show", "{analyzed}", "nope"), "no run named 'nope' in .*; name one of r1$"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSALS, ids=lambda item: "")
def test_wrong_input_is_one_line(arguments, message, log, analyzed):
    done = call(*(str(part).format(log=log, folder=log.parent, analyzed=analyzed) for part in arguments))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert re.search(message, done.stderr), done.stderr
    assert sorted(path.name for path in log.parent.iterdir()) == ["one.jsonl"]


def test_formats_are_listed():
    names = [row["name"] for row in answer("formats")["formats"]]
    assert {"plain", "claude-code", "mini-swe-agent"} <= set(names)
    assert '"turns":[{"reads":[{"path","tokens"}]' in call("formats").stdout


def test_help_imports_no_readers():
    code = (
        "import sys; from eirkit.cli import run; run(['vestige', '-h']); print({'pyarrow', 'orjson'} & {*sys.modules})"
    )
    done = completed([sys.executable, "-c", code], check=True)
    assert done.stdout.endswith("set()\n")


@pytest.mark.parametrize(("judged", "said"), [(400, "10.0% (40"), (399, "10.0% of tokens read where")])
def test_a_share_in_vain_is_of_the_reads_whose_purpose_is_known(judged: int, said: str) -> None:
    """A prompt that asks a question changes nothing: what was read for it is neither needed nor in vain."""
    summary = replace(
        CorpusTotals(runs=1).summary(AnalysisOptions(read_windows())),
        dead_read_share=0.1,
        dead_read_covered_tokens=40,
        judged_read_tokens=judged,
        read_tokens=400,
        covered_runs=1,
        goal_sources={"log": 1},
    )
    assert _in_vain(summary).startswith(said)
    assert "no goal was given for 2 runs, so" in _in_vain(replace(summary, goal_sources={"log": 1, "own-edits": 2}))
