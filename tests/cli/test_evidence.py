"""Rescue, probe and capability on the runner: estimate, cap, cache, engine, and folders that are resumed and shown."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from eirkit.cli import run as run_command_line
from eirkit.records.database import SweepDatabase
from eirkit.records.money import journal_of
from eirkit.records.settings import intervention_kind
from eirkit.report.viewer.logs import LogFolders
from eirkit.report.viewer.routes import Viewer
from tests import runs
from tests.lacuna.servers import ModelServer, answers_as

SMALL = ("--n", "12", "--seeds", "0:2")
COMMANDS = {
    "rescue": ("--workload", "store-recall", "--m", "8", "--h", "2", *SMALL),
    "probe": ("--workload", "stepwise-sum", "--m", "4", "--h", "2", "--fan-in", "2", "--n", "16", "--seeds", "0:12"),
    "capability": ("--workload", "store-recall", "--windows", "4", "--threshold", "0.5", *SMALL),
}
KINDS = {"rescue": {"rescue"}, "probe": {"probe"}, "capability": {None, "calculator"}}  # what is done to runs
REPLY_USD = 0.11  # at the price below and the server's 110 tokens


@pytest.fixture
def call(capfd, tmp_path, monkeypatch):
    """Run the command line in this process, in an empty folder; returns the exit code, stdout and stderr."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("prices.toml").write_text('[prices]\n"openai/any" = { input = 1000, output = 1000, as_of = 2026-01-01 }\n')

    def run(command: str, *arguments: object) -> tuple[int, str, str]:
        return alone("lacuna", command, *COMMANDS[command], *arguments)

    def alone(*words: object) -> tuple[int, str, str]:
        capfd.readouterr()
        return run_command_line([str(word) for word in words]), *capfd.readouterr()

    run.alone = alone
    return run


def document(outcome: tuple[int, str, str]) -> dict[str, Any]:
    assert outcome[0] == 0, outcome
    return json.loads(outcome[1])


@pytest.fixture
def served():
    with ModelServer(answers_as("recoverer")) as server:
        yield server


def by_server(server: ModelServer) -> tuple[object, ...]:
    return ("--model", "openai/any", "--base-url", server.url, "--prices", "prices.toml", "--set", "max_tokens=20")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_dry_run_counts_what_would_be_asked_and_asks_nobody(call, served, command):
    found = document(call(command, *by_server(served), "--dry-run", "--json"))
    assert served.received == []
    assert [path.name for path in Path().iterdir()] == ["prices.toml"]
    document(call(command, *by_server(served), "--json"))
    assert found["calls"] == len(served.received), "the stand-in asks as often as the model that answers as it does"
    assert 0 < found["cost_usd"] < found["most_usd"]
    (row,) = found["rows"]
    assert (row["model"], row["calls"]) == ("openai/any", found["calls"])
    assert f"{found['runs']} runs, {found['calls']} calls" in call(command, *by_server(served), "--dry-run")[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_keeps_everything_and_the_command_given_again_asks_nothing(call, served, command):
    first = document(call(command, *by_server(served), "--out", "out", "--json"))
    asked = len(served.received)
    again = document(call(command, *by_server(served), "--out", "out", "--json"))
    assert len(served.received) == asked
    assert again == first
    assert first == document(call(command, *by_server(served), "--json")), "a folder changes no figure"
    manifest = json.loads(Path("out/manifest.json").read_text())
    assert (manifest["schema"], manifest["command"]) == ("runs/1", command)
    assert manifest["settings"]["models"] == ["openai/any"]
    assert {"eirkit", "python", "dependencies", "prices_sha256"} <= manifest.keys()
    assert summary() == {"schema": f"{command}/1", **first}
    records = runs.records("out")
    assert sum(record.usage.calls for record in records) == asked
    with SweepDatabase(Path("out")) as database:
        assert journal_of(database).spending.total_usd == asked * Decimal(str(REPLY_USD))
    assert {record.rules_sha256 for record in records} <= manifest["rules"].keys()
    assert (manifest["runs"], manifest["cells"]) == (len(records), len({record.cell for record in records}))
    assert {intervention_kind(record.setting.intervention) for record in records} == KINDS[command]


def summary() -> dict[str, Any]:
    """Return the summary in the folder, without its checksum."""
    found = json.loads(Path("out/summary.json").read_text())
    found.pop("crc32", None)
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_a_cap_stops_the_command_and_a_higher_one_goes_on(call, served, command):
    whole = document(call(command, *by_server(served), "--json"))
    all_calls = len(served.received)
    cap = 0.6 * all_calls * REPLY_USD
    code, output, complaint = call(
        command, *by_server(served), "--set", "connections=1", "--cap-usd", cap, "--out", "out"
    )
    assert (code, output) == (1, "")
    assert complaint.rstrip().endswith("raise the cap and resume")
    kept = sum(record.usage.calls for record in runs.records("out"))
    before = len(served.received)
    found = document(resume(call, command, "--prices", "prices.toml", "--cap-usd", 1000))
    assert {**found, "spending": None} == {**whole, "spending": None}
    assert found["spending"]["cap_usd"] == 1000
    assert kept > 0
    assert len(served.received) - before == all_calls - kept


@pytest.mark.parametrize("command", COMMANDS)
def test_a_killed_command_goes_on_where_it_was(call, command):
    reference = ("--model", "reference/recoverer", "--out", "out", "--json")
    whole = document(call(command, *reference))
    digest = runs.digest("out")
    runs.cut("out", len(runs.records("out")) - 2)
    assert document(call(command, *reference)) == whole
    assert runs.digest("out") == digest


def resume(call, command: str, *more: object, folder: str = "out") -> tuple[int, str, str]:
    """Finish a folder; nothing of what it was begun with is given again."""
    return call.alone("lacuna", command, "--resume", folder, *more, "--json")


REFERENCE = ("--model", "reference/recoverer", "--out", "out", "--json")
MEMORY = ("--memory", "broken-drops", "--n", 24, "--h", 3)


@pytest.mark.parametrize(("command", "more"), [*((name, ()) for name in COMMANDS), ("rescue", MEMORY)])
def test_a_folder_is_enough_to_finish_what_was_begun(call, command, more):
    whole = document(call(command, *REFERENCE, *more))
    runs.cut("out")
    assert document(resume(call, command)) == whole
    assert summary() == {"schema": f"{command}/1", **whole}


def test_what_is_given_with_resume_must_be_what_was_given_then(call):
    call("rescue", *REFERENCE)
    code, _, complaint = resume(call, "rescue", "--h", 3)
    assert (code, complaint) == (
        2,
        "eirkit: out was started with other settings; repeat that command or choose another --out\n",
    )
    assert "continue with `eirkit lacuna rescue --resume out`" in resume(call, "probe")[2]
    assert "nothing was recorded there; start anew with --out nowhere" in resume(call, "probe", folder="nowhere")[2]
    assert "leave out --out" in resume(call, "rescue", "--out", "other")[2]


@pytest.mark.parametrize(("command", "more"), [*((name, ()) for name in COMMANDS), ("rescue", MEMORY)])
def test_workers_find_what_one_process_finds(call, command, more):
    alone = document(call(command, *REFERENCE, *more))
    spread = ("--model", "reference/recoverer", "--out", "spread", "--json", "--engine", "local", "--workers", 2)
    assert document(call(command, *spread, *more)) == alone
    names = [{record.run for record in runs.records(folder)} for folder in ("out", "spread")]
    assert names[0] == names[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_is_looked_at_while_it_is_unfinished(call, command):
    call(command, *REFERENCE)
    whole = json.loads(call.alone("watch", "out", "--once", "--json")[1])
    assert (whole["kind"], whole["state"], whole["runs"]) == (command, "complete", whole["planned_runs"])
    assert bool(whole["cells"]) == (command != "probe"), "a probe answers no step"
    runs.cut("out")
    now = json.loads(call.alone("watch", "out", "--once", "--json")[1])
    assert (now["runs"], now["planned_runs"]) == (2, whole["planned_runs"])
    assert now["state"] in ("running", "waiting")
    viewer = Viewer(Path("out").resolve(), LogFolders(), time.time)
    assert viewer.overview({"at": ["."]}).progress.runs == 2
    (run, _) = viewer.runs({"at": ["."]}).rows
    assert viewer.run({"at": ["."], "run": [run["run"]]}).unknown == ""
    assert call.alone("report", "out", "--out", "page.html")[0] == 0
    left = whole["planned_runs"] - 2
    said = f"Not finished: {left} runs still to come; continue with <code>eirkit lacuna {command} --resume out</code>"
    assert said in Path("page.html").read_text()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_cache_spares_the_second_command(call, served, command):
    first = document(call(command, *by_server(served), "--cache", "replies.db", "--json"))
    asked = len(served.received)
    second = document(call(command, *by_server(served), "--cache", "replies.db", "--json"))
    assert {**second, "spending": None} == {**first, "spending": None}
    assert first["spending"]["spent_usd"] > 0
    assert second["spending"] is None
    assert len(served.received) == asked


def test_another_command_in_the_same_folder_is_refused_in_one_line(call):
    reference = ("--model", "reference/recoverer", "--out", "out")
    assert call("rescue", *reference)[0] == 0
    for other in (("probe", *reference), ("rescue", *reference, "--h", 3), ("rescue", *reference, "--seeds", "0:4")):
        code, output, complaint = call(*other)
        assert (code, output) == (2, "")
        assert complaint.startswith("eirkit: out was started with other ")
        assert complaint.endswith("; repeat that command or choose another --out\n")
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("mine")
    code, _, complaint = call("rescue", "--model", "reference/recoverer", "--out", "mine")
    assert (code, complaint) == (2, "eirkit: mine contains other files; choose a new or empty --out\n")


def test_without_a_price_no_cap_can_hold(call, served):
    code, _, complaint = call("rescue", "--model", "openai/other", "--base-url", served.url, "--cap-usd", 1)
    assert (code, served.received) == (2, [])
    assert "the price of openai/other is unknown" in complaint


def test_a_key_in_a_setting_is_refused_before_it_is_written(call, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "sk-canary-0815-do-not-write-me-down")
    given = ("--model", "reference/quitter", "--set", "p=sk-canary-0815-do-not-write-me-down", "--out", "out")
    code, _, complaint = call("rescue", *given)
    assert code == 2
    assert "sk-canary" not in complaint
    assert not Path("out").exists()


# --- claims -----------------------------------------------------------------------------------------------------------


def test_a_rescue_of_a_model_that_fails_the_control_claims_nothing(call):
    both = ("--model", "reference/calculator,reference/sloppy", "--set", "p=0.5")
    found = document(call("rescue", *both, "--json"))
    assert {(row["model"], row["claims"]) for row in found["rows"]} == {
        ("reference/calculator", True),
        ("reference/sloppy", False),
    }
    (excluded,) = found["excluded"]
    assert excluded[:2] == ["reference/sloppy", "store-recall"]
    effects = [c["difference"]["estimate"] for c in found["contrasts"] if c["arms"] == ["oracle", "sham"]]
    assert len(effects) == 2, "scripts still find the raw differences"
    assert found["repair_effect"] == effects[0], "the claim is over those who may make it"
    _, shown, _ = call("rescue", *both)
    paired = shown[shown.index("Paired by seed") :]
    assert "reference/calculator" in paired
    assert "reference/sloppy" not in paired.partition("excluded: ")[0]
    assert "excluded: reference/sloppy, store-recall: " in paired


def test_a_rescue_without_a_control_says_that_it_only_describes(call, served):
    found = document(call("rescue", *by_server(served), "--json"))
    assert {(row["control"], row["claims"]) for row in found["rows"]} == {(None, False)}
    assert "no capability control was run of openai/any: differences are descriptive; add --control" in call(
        "rescue", *by_server(served)
    )[1].replace("\n", " ")
    controlled = document(call("rescue", *by_server(served), "--control", "--json"))
    assert {row["claims"] for row in controlled["rows"]} == {True}
    assert controlled["repair_effect"] == found["repair_effect"]


def test_a_rescue_says_where_its_records_are_or_how_to_keep_them(call):
    model = ("--model", "reference/recoverer")
    _, shown, _ = call("rescue", *model, "--out", "out")
    assert "records in out" in shown.splitlines()
    assert shown.splitlines()[-1] == "next: eirkit report out"
    assert [call.alone(word, "out")[0] for word in ("report", "show")] == [0, 0]
    _, shown, _ = call("rescue", *model)
    assert "records in" not in shown
    assert "no records were kept; repeat it with --out out/rescue to look at its runs" in " ".join(shown.split())
    proposed = "eirkit lacuna run store-recall --model reference/recoverer --dry-run"
    assert shown.splitlines()[-1] == f"next: {proposed}", "the same command again is no next step"
    assert call.alone(*proposed.split()[1:])[0] == 0
