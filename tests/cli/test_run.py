"""`eirkit lacuna run` as a person or a script meets it; a real process wherever signals or terminals matter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from eirkit.cli import run as run_command_line
from eirkit.cli.runner_options import SweepProgress
from eirkit.lacuna.runs.runner import Progress
from tests import runs
from tests.lacuna.servers import ModelServer, says
from tests.processes import PATIENCE_SECONDS, running, shown_in_terminal, wait_until

EIRKIT = str(Path(sys.executable).with_name("eirkit"))
SMALL = ("--workload", "stepwise-sum", "--n", "12", "--m", "4", "--model", "reference/calculator")
LONG = ("--workload", "stepwise-sum", "--h", "12,8,4", "--seeds", "0:2000", "--model", "reference/calculator")


@dataclass(frozen=True, slots=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def call(capfd, tmp_path, monkeypatch):
    """Run the command line in this process, in an empty folder and without keys."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def run(*arguments: object) -> Done:
        capfd.readouterr()
        code = run_command_line(["lacuna", "run", *map(str, arguments)])
        return Done(code, *capfd.readouterr())

    return run


@pytest.fixture
def answer(call):
    def run(*arguments: object) -> dict[str, Any]:
        done = call(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_options_make_a_sweep(tmp_path, answer):
    found = answer(*SMALL, "--h", "4,2", "--seeds", "0:5", "--out", tmp_path / "out")
    assert found["out"] == str(tmp_path / "out")
    full, half = found["rows"]
    assert (full["h"], full["accuracy"], full["seeds"], full["scored"], full["attempted"]) == (4, 1.0, 5, 5, 5)
    assert half["accuracy"] < 1
    assert half["errors"]["computation"] == 0 < half["errors"]["state_supply"]
    assert {"workload", "model", "memory", "step_accuracy", "first_error_at_first_miss", "suspect"} <= half.keys()
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"manifest.json", "sweep.db", "summary.json"} <= written


def test_a_suite_is_the_same_sweep(tmp_path, answer):
    suite = tmp_path / "pressure.toml"
    suite.write_text(
        'workload = "stepwise-sum"\nn = 12\nm = 4\nmodel = "reference/calculator"\nh = [4, 2]\nseeds = "0:5"\n'
    )
    by_file = answer(suite, "--out", tmp_path / "file")
    by_options = answer(*SMALL, "--h", "4,2", "--seeds", "0:5", "--out", tmp_path / "options")
    assert by_file["rows"] == by_options["rows"]
    changed = answer(suite, "--h", 3, "--out", tmp_path / "changed")
    assert [row["h"] for row in changed["rows"]] == [3]


def test_a_table_for_people(tmp_path, call):
    done = call(*SMALL, "--h", "4,2", "--out", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert "stepwise-sum, reference/calculator" in done.stdout.replace("\n", " ")
    assert "3/3" in done.stdout
    assert f"records in {tmp_path / 'out'}" in done.stdout.splitlines()
    assert done.stdout.splitlines()[-1] == f"next: eirkit report {tmp_path / 'out'}"


def test_memory_makes_the_run_agent_managed(tmp_path, answer):
    rows = answer(
        "--workload", "store-recall", "--m", 8, "--h", 4, "--model", "reference/recoverer",
        "--memory", "null,key-value", "--out", tmp_path / "out",
    )["rows"]  # fmt: skip
    got = {row["memory"]: row["accuracy"] for row in rows}
    assert got["key-value"] == 1.0 > got["null"]


def test_conditions_and_budgets(tmp_path, answer):
    rows = answer(
        *SMALL[:-1], "reference/recoverer", "--h", 2, "--condition", "lru,fifo", "--b-oracle", "0,unlimited",
        "--out", tmp_path / "out",
    )["rows"]  # fmt: skip
    got = {(row["condition"], row["b_oracle"]): row["accuracy"] for row in rows}
    assert got["lru", "unlimited"] == got["fifo", "unlimited"] == 1.0
    assert got["lru", 0] < 1


def test_without_out_a_fresh_folder_is_chosen_and_named(tmp_path, call):
    first = call(*SMALL, "--seeds", 0, "--json")
    second = call(*SMALL, "--seeds", 0, "--json")
    assert first.stderr == "writing to out/run-1\n"
    assert [json.loads(done.stdout)["out"] for done in (first, second)] == ["out/run-1", "out/run-2"]
    assert Path("out/run-2/summary.json").is_file()


COMPLAINTS = [
    ((), "nothing to run; give a WORKLOAD and --model, a SUITE.toml, or --resume DIR"),
    ((*SMALL, "--h", "0"), "0 is below 1"),
    ((*SMALL, "--model", "reference/oracle-of-delphi"), "no reference agent named 'oracle-of-delphi'"),
    ((*SMALL, "--model", "opnai/gpt"), "did you mean 'openai'"),
    (
        (*SMALL, "--model", "openai/gpt"),
        "set OPENAI_API_KEY, the key of openai's own server, or give --base-url of another one",
    ),
    ((*SMALL, "--policy", "lur"), "did you mean 'lru'"),
    ((*SMALL, "--b-oracle", "many"), "is not a budget; give a number or 'unlimited'"),
    ((*SMALL, "--set", "p"), "--set p has no value; write it like --set p=0.2"),
    ((*SMALL, "--set", "body={1"), "--set body={1 is no JSON object; write it like --set 'body={\"seed\": 1}'"),
    ((*SMALL, "--cap-usd", "-1"), "-1"),
    (("none.toml",), "cannot read none.toml: No such file or directory; check the path"),
    (("--resume", "nowhere"), "nowhere has no manifest.json, so nothing was recorded there"),
    (("--resume", "a", "--out", "b"), "--resume continues in its own folder; leave out --out"),
]


@pytest.mark.parametrize(("arguments", "message"), COMPLAINTS, ids=lambda item: item if isinstance(item, str) else "")
def test_wrong_usage_is_one_line_and_leaves_nothing(tmp_path, call, arguments, message):
    done = call(*arguments, *(() if "--resume" in arguments else ("--out", "out")))
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("eirkit: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert list(Path().iterdir()) == []


def test_a_folder_that_is_not_empty_is_refused_in_one_line(tmp_path, call, answer):
    answer(*SMALL, "--seeds", 0, "--out", tmp_path / "out")
    done = call(*SMALL, "--seeds", 0, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert done.stderr == (
        f"eirkit: {tmp_path / 'out'} is not empty; continue with --resume {tmp_path / 'out'} or choose another --out\n"
    )


def test_resume_alone_is_enough_and_further_seeds_are_added(tmp_path, answer):
    out = tmp_path / "out"
    whole = answer(*SMALL, "--h", "4,2", "--seeds", "0:9", "--out", out)
    digest = runs.digest(out)
    runs.cut(out, 7)
    assert answer("--resume", out) == whole
    assert runs.digest(out) == digest
    more = answer("--resume", out, "--seeds", "0:10")
    assert [row["scored"] for row in more["rows"]] == [10, 10]


def interrupted(command: list[str], out: Path) -> Done:
    """Interrupt a command once it has written records, and return how it ended."""
    log = out / "sweep.db-wal"
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: log.exists() and log.stat().st_size > 200_000, "records appear", process)
        process.send_signal(signal.SIGINT)
        output, complaint = process.communicate(timeout=PATIENCE_SECONDS)
    return Done(process.returncode, output, complaint)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_an_interrupted_rescue_says_that_its_command_goes_on(tmp_path):
    out = tmp_path / "out"
    tasks = ("--workload", "stepwise-sum", "--n", "64", "--m", "8", "--h", "4", "--seeds", "0:1000")
    command = [EIRKIT, "lacuna", "rescue", *tasks, "--model", "reference/calculator", "--out", str(out)]
    done = interrupted(command, out)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == f"eirkit: interrupted; continue with `eirkit lacuna rescue --resume {out}`\n"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_an_interrupt_keeps_what_is_done_and_says_how_to_go_on(tmp_path):
    out = tmp_path / "out"
    done = interrupted([EIRKIT, "lacuna", "run", *LONG, "--out", str(out)], out)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == f"eirkit: interrupted; continue with `eirkit lacuna run --resume {out}`\n"
    assert not (out / "sweep.db-wal").exists(), "the log is folded in"
    assert all(runs.events(out, record.run) for record in runs.records(out)[-3:]), "in-flight writes are finished"


def test_an_unreachable_model_is_a_failure_of_the_world(tmp_path, call):
    done = call(
        "--workload", "store-recall", "--n", 8, "--h", 4, "--seeds", "0:1", "--model", "openai/gpt-test",
        "--base-url", "http://127.0.0.1:9/v1", "--set", "retries=1", "--out", tmp_path / "out", "--json",
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert (found["rows"][0]["scored"], found["rows"][0]["attempted"]) == (0, 1)
    assert found["rows"][0]["failures"] == {"unreachable": 1}
    assert found["complete"] is False


def test_a_broken_adapter_is_pointed_out(tmp_path, call):
    with ModelServer([says("I am a teapot")]) as server:
        done = call(
            *SMALL[:-1], "openai/tea", "--base-url", server.url, "--h", 4, "--seeds", 0, "--out", tmp_path / "out"
        )
    assert done.returncode == 0
    told = "suspect: openai/tea, controlled, h = 4: every answer failed in the same way (malformed)"
    assert told in " ".join(done.stdout.split())


def test_a_dry_run_prints_calls_tokens_and_cost_and_runs_nothing(tmp_path, call, answer):
    arguments = (*SMALL[:-1], "openai/gpt-5-mini", "--h", "4,2", "--seeds", "0:100", "--dry-run")
    found = answer(*arguments)
    assert list(Path().iterdir()) == []
    assert found["calls"] == 2 * 100 * 12
    assert 0 < found["cost_usd"] < found["most_usd"]
    assert found["input_tokens"] > found["output_tokens"] > 0
    assert [row["calls"] for row in found["rows"]] == [1200, 1200]
    shown = call(*arguments).stdout
    assert "200 runs, 2,400 calls" in shown


def test_an_unknown_price_is_unknown_not_zero(tmp_path, call, answer):
    found = answer(*SMALL[:-1], "openai/mine", "--base-url", "http://127.0.0.1:9/v1", "--dry-run")
    assert found["cost_usd"] is None
    assert "unknown" in call(*SMALL[:-1], "openai/mine", "--base-url", "http://127.0.0.1:9/v1", "--dry-run").stdout


def test_progress_shows_in_a_terminal_only(tmp_path):
    arguments = [EIRKIT, "lacuna", "run", *SMALL, "--seeds", "0:200", "--out", str(tmp_path / "out")]
    terminal = {**os.environ, "TERM": "xterm"}
    shown = shown_in_terminal(arguments, "stderr", stdout=subprocess.DEVNULL, env=terminal)
    assert b"cells 1/1" in shown
    assert b"steps/s" in shown


def test_what_fails_the_control_is_listed_and_its_causes_are_not_shown(tmp_path, call):
    line = (*SMALL[:-1], "reference/calculator,reference/sloppy", "--set", "p=0.5", "--h", "4,2")
    done = call(*line, "--out", tmp_path / "out")
    assert done.returncode == 0, "a verdict of the control is no failure of the sweep"
    lines = [text.strip() for text in done.stdout.splitlines()]  # in which long names may be cut
    sloppy = [text for text in lines if text.startswith("refe") and "sloppy" in text]
    assert sum(text.count("withheld") for text in sloppy) == 2 * 2, "two causes at each h"
    assert "withheld" not in "".join(text for text in lines if text.startswith("refe") and "alculator" in text)
    assert "excluded: reference/sloppy, stepwise-sum: " in done.stdout
    assert "no capability control" not in done.stdout
    bare = call(*line, "--no-control", "--out", tmp_path / "bare").stdout
    assert "withheld" not in bare
    assert "no capability control was run: causes are descriptive; add --control" in bare


def test_a_dry_run_counts_the_control_where_it_would_be_run(tmp_path, answer):
    arguments = (*SMALL[:-1], "openai/gpt-5-mini", "--h", "4,2", "--seeds", "0:100", "--dry-run")
    without, controlled = answer(*arguments), answer(*arguments, "--control")
    assert (without["control"]["runs"], controlled["control"]["runs"]) == (0, 9)
    assert controlled["calls"] == without["calls"] + 9 * 12
    assert controlled["cost_usd"] == pytest.approx(without["cost_usd"] + controlled["control"]["cost_usd"])


def test_a_dry_run_says_apart_what_the_sweep_and_its_control_would_take(tmp_path, call, answer):
    arguments = (*SMALL[:-1], "openai/gpt-5-mini", "--h", "4,2", "--seeds", "0:100", "--dry-run", "--control")
    found = answer(*arguments)
    sweep, control = found["sweep"], found["control"]
    assert (sweep["runs"], sweep["calls"]) == (200, 2400)
    assert sweep["calls"] + control["calls"] == found["calls"]
    lines = call(*arguments).stdout.splitlines()
    assert lines[0].startswith(f"{200 + control['runs']} runs, {found['calls']:,} calls")
    assert any(line.startswith("the sweep, below: 200 runs, 2,400 calls") for line in lines)
    assert any(line.startswith("before it, the control with nothing missing") for line in lines)


def test_panels_are_told_apart_and_an_error_free_row_has_no_alignment(tmp_path, call):
    memory = ("--memory", "key-value", "--panel", "strict,native", "--h", "2", "--seeds", "0:2")
    small = ("lacuna", "run", "--workload", "store-recall", "--n", "16", "--m", "8", "--model", "reference/recoverer")
    shown = call(*small[2:], *memory, "--out", tmp_path / "out").stdout.splitlines()
    strict, native = (
        next(line for line in shown if line.startswith("key-value") and ("(strict)" in line) == held and "2/2" in line)
        for held in (True, False)
    )
    assert "–" in native.split()
    assert "–" not in strict.split()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("class Mine: ...\nclass _Hidden: ...", "write mine.py:Mine"),
        ("class A: ...\nclass B: ...", "write mine.py:A or mine.py:B"),
        ("x = 1", "write mine.py:Name, once it has a class with that name"),
    ],
)
def test_a_file_without_a_class_behind_it_is_told_which_there_are(tmp_path, call, text, said):
    Path("mine.py").write_text(text)
    done = call(*SMALL, "--h", "2", "--memory", "mine.py")
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_no_class_is_no_memory_system(tmp_path, call):
    Path("mine.py").write_text("def make():\n    ...")
    done = call(*SMALL, "--h", "2", "--memory", "mine.py:make")
    assert done.returncode == 2
    assert "memory 'mine.py:make' is not a class; name the class of a memory system" in done.stderr


def test_without_a_terminal_a_sweep_says_every_ten_seconds_how_far_it_is(capsys):
    now = Progress(3, 40, 1, 4, 0, 60, Decimal("0.2"))
    with SweepProgress() as progress:
        progress(now)
        assert capsys.readouterr().err == "", "a short run says nothing"
        progress.line_seconds = 0.0
        progress(now)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("running: cells 1/4  runs 3/40  ")
    assert line.endswith("steps/s  $0.20")
