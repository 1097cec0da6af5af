"""What commands say about money and what they propose next, done one after the other as a person would."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from subprocess import PIPE

import pytest
from msgspec import structs

from eirkit.cli import doctor, lacuna_run
from eirkit.cli import run as command_line
from eirkit.cli.doctor import Availability
from eirkit.lacuna.findings.intervals import FEWEST_CLUSTERS
from eirkit.lacuna.findings.summary import read_summary
from eirkit.lacuna.runs.journal import read_journal
from eirkit.report.runs.choice import choose_folders
from eirkit.report.runs.folder import read_sweep
from eirkit.report.runs.page import spending_section
from eirkit.report.runs.ranking import parts_table
from eirkit.report.viewer.logs import LogFolders
from eirkit.report.viewer.routes import Viewer
from eirkit.report.viewer.tables import SharedValue
from tests import runs
from tests.lacuna.asking import Asking, name_of
from tests.lacuna.servers import Answer, ModelServer, Received, answers_as, says
from tests.processes import PATIENCE_SECONDS, running, wait_until

SMALL = ("store-recall", "--n", "12", "--m", "4")


@pytest.fixture
def say(capsys, tmp_path, monkeypatch):
    """Run a command line in an empty folder and return what it prints, on one line."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*words: object, code: int = 0) -> str:
        capsys.readouterr()
        assert command_line([str(word) for word in words]) == code
        printed = capsys.readouterr()
        return " ".join((printed.out or printed.err).split())

    return run


@pytest.mark.parametrize("tasks", [(*SMALL, "--h", "2,4"), ("words", "--preset", "small", "--memory", "text,bm25")])
def test_replies_that_cannot_be_read_are_the_answer(tasks, say):
    with ModelServer([says("I believe that it is the seventh.")]) as server:
        how = ("--model", "openai/mine", "--base-url", server.url)
        ran = say("lacuna", "run", *tasks, "--seeds", "0:2", *how, "--out", "out")
    steps = sum(record.score.steps for record in runs.records(Path("out")))
    command = f"eirkit selftest --model openai/mine --base-url {server.url}"
    sentence = (
        f"openai/mine: 100% of {steps} replies could not be read in the form asked for, so nothing is said about "
        f"memory; run `{command}`, and use `--protocol text` if its server takes no notice of that form."
    )
    assert ran.startswith(sentence)
    assert ran.endswith(f"next: {command}")
    page = say("report", "out")
    assert page.startswith(f"100% of replies could not be read in the form asked for {sentence} page:")
    assert "lacuna rescue" not in Path("out/report.html").read_text("utf-8")
    name = runs.records(Path("out"))[0].run
    shown = say("show", "out", name, "3")
    asked = '"answer": "…"' if tasks[0] == "words" else '"values": [v]'
    assert (
        f'The form asked for {{"work": "…", {asked}}} What was replied I believe that it is the seventh. Look' in shown
    )
    assert len(json.loads(say("show", "out", name, "3", "--json"))["replies"]) == 2


@pytest.fixture
def prices(tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text('[prices]\n"openai/mine" = { input = 10, output = 10, as_of = 2026-01-01 }\n')
    return path


def test_a_dry_run_of_the_rest_has_the_rest_of_the_control(say, prices):
    with ModelServer(answers_as("calculator")) as server:
        how = ("--model", "openai/mine", "--base-url", server.url, "--prices", prices)
        tasks = ("stepwise-sum", "--n", "12", "--m", "4", "--h", "4", "--seeds", "0:2", "--control")
        whole = json.loads(say("lacuna", "run", *tasks, *how, "--dry-run", "--json"))
        assert whole["control"]["runs"] > whole["sweep"]["runs"] == 2
        say("lacuna", "run", *tasks, *how, "--cap-usd", "0.04", "--out", "out", code=1)
        paid = len(server.received)
        rest = json.loads(say("lacuna", "run", "--resume", "out", "--dry-run", "--json"))
        assert rest["calls"] == whole["calls"] - paid
        say("lacuna", "run", "--resume", "out", "--cap-usd", "none")
        assert len(server.received) - paid == rest["calls"]
        done = json.loads(say("lacuna", "run", "--resume", "out", "--dry-run", "--json"))
        assert (done["calls"], done["control"]["runs"]) == (0, 0)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_a_folder_has_one_cost_wherever_it_is_said(say, prices, tmp_path):
    """Its control, an attempt that was interrupted and the calls in flight are in it, in the same words."""
    answer = answers_as("calculator")

    def halting(received: Received) -> Answer:
        return replace(answer(received), delay_seconds=0 if len(server.received) <= 60 else PATIENCE_SECONDS)

    with ModelServer(halting) as server:
        how = ("--model", "openai/mine", "--base-url", server.url, "--prices", prices, "--set", "connections=2")
        tasks = ("stepwise-sum", "--n", "12", "--m", "4", "--h", "4", "--seeds", "0:2", "--control", "--out", "out")
        words = [sys.executable, "-m", "eirkit", "lacuna", "run", *map(str, (*tasks, *how))]
        with running(words, cwd=tmp_path, stderr=PIPE) as process:
            wait_until(lambda: len(server.received) == 62, "calls are in flight", process)
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_SECONDS) == 130
        in_flight = read_journal(Path("out")).spending.in_flight_usd
        server.script = answer
        ran = json.loads(say("lacuna", "run", "--resume", "out", "--json"))
        billed = Decimal(len(server.received) - 2) * 110 * 10 / 1_000_000
        assert ran["spending"]["unconfirmed_usd"] == 0
        cost = f"${billed:.4f}, and at most ${in_flight:.4f} more for calls that were in flight"
        assert f"spent: {cost} " in say("lacuna", "run", "--resume", "out")
        assert f"spent so far: {cost}; the estimate is of what is left" in say(
            "lacuna", "run", "--resume", "out", "--dry-run"
        )
    assert f"complete: 2 of 2 runs, {cost}" in say("watch", "out", "--once")
    control = ran["spending"]["control_usd"]
    page = spending_section(read_sweep(Path("out"))).words[0]
    assert page.startswith(f"Of the folder: {cost}. The table has 24 calls of the sweep itself, without the full-")
    assert page.endswith(f"control (at most ${control:.4f}).")
    overview = Viewer(Path("out"), LogFolders(), lambda: 4e9).overview({"at": ["."]})
    assert overview.progress.spent_usd == float(billed)
    assert SharedValue("cost", cost) in overview.alike


TWENTY = """
from eirkit.lacuna.memories.in_process import Bm25
from eirkit.lacuna.memories.memory import Profile

class Twenty(Bm25):
    profiles = {"as-documented": Profile("everything", "", passages=20, passages_from="its own default")}
"""


def test_who_is_asked_for_more_passages_and_who_asked_a_script_is_said(say):
    Path("mine.py").write_text(TWENTY)
    how = ("--preset", "small", "--model", "scripted/reader", "--seeds", "0:6", "--no-control")
    say("lacuna", "run", "words", "--memory", "text,bm25,mine.py:Twenty", *how, "--out", "out")
    ranked = say("choose", "out")
    sentence = "A search asks for 20 passages of mine.py:Twenty and 5 passages of bm25 and text: the number may have"
    assert sentence in ranked
    assert json.loads(say("choose", "out", "--json"))["passages"] == {"text": "5", "bm25": "5", "mine.py:Twenty": "20"}
    assert "passages" in ranked.partition("Ranking by accuracy")[2].partition("text")[0]
    assert "A search asks for" in say("report", "out")
    # A script that plays the model of a memory decides its result in conversations as well.
    summary = read_summary(Path("out"))
    asking = [
        structs.replace(row, memory=name_of(Asking), memory_system=structs.replace(row.memory_system, model_calls=3))
        for row in summary.rows[:1]
    ]
    said = list(lacuna_run._remarks(structs.replace(summary, rows=(*asking, *summary.rows[1:]))))
    assert f"scripted/reader answered what {name_of(Asking)} asked of a model: a script, not a model" in " ".join(said)


def test_a_paid_hint_keeps_prices_and_cap_and_an_unknown_cost_names_its_model(say, prices):
    with ModelServer(answers_as("sloppy", p=0.5)) as server:
        how = ("--model", "openai/mine", "--base-url", server.url)
        tasks = (*SMALL, "--h", "2,4", "--seeds", "0:2")
        say("lacuna", "run", *tasks, *how, "--prices", prices, "--cap-usd", "5", "--out", "out")
        asked = len(server.received)
        page = say("report", "out")
        rescue = re.search(r"`eirkit (lacuna rescue [^`]*)`", page)[1]
        assert f"--prices {prices} --cap-usd 5 --out out/rescue" in rescue
        estimate = say(*shlex.split(rescue), "--dry-run")
        assert re.match(r"\d+ runs, [\d,]+ calls, [\d,]+ tokens, \$[\d.]+, at most \$", estimate)
        again = next(line for line in Path("out/report.html").read_text("utf-8").splitlines() if "out-again" in line)
        assert "--cap-usd" not in again
        assert f"--prices {prices}" in again
        unknown = say("lacuna", "run", *tasks, *how, "--dry-run")
        assert "tokens; cost unknown: no price for openai/mine; give --prices FILE" in unknown
        assert len(server.received) == asked


def test_who_was_never_right_is_not_among_the_best(say):
    how = ("--preset", "small", "--model", "scripted/reader", "--seeds", "0:7", "--no-control", "--out", "out")
    say("lacuna", "run", "words", "--memory", "null,text,bm25,words-add-only", *how)
    choice, _ = choose_folders([Path("out")], None, "accuracy")
    never = {
        ability: part
        for ability, part in choice.parts["ability"].items()
        if part.standings[0].value > 0
        and any(standing.value == 0 for standing in part.standings if standing.name in part.leaders)
    }
    assert any(part.tasks >= FEWEST_CLUSTERS for part in never.values()), (
        "a ranking of enough tasks, but of few questions"
    )
    lines = {line["axis"]: line for line in parts_table(choice).rows}
    for ability in never:
        assert lines[ability]["best"].endswith("; too few to rank")
        assert "0.000" not in lines[ability]["values"]


def test_a_memory_from_which_nothing_was_needed_is_not_said_to_be_right(say):
    how = ("--seeds", "0:2", "--model", "reference/recoverer", "--memory", "bm25", "--no-control")
    ran = say("lacuna", "run", *SMALL, *how, "--out", "out")
    assert ran.startswith("bm25 was not tested, since no record was needed from it; give an --h below --m.")
    proposed = doctor._tried_document(None, [Availability("bm25", True, "it stored records")]).next
    assert shlex.split(proposed)[-2:] == ["--memory", "bm25"]
    tried = json.loads(say(*shlex.split(proposed)[1:], "--out", "tried", "--json"))
    assert sum(tried["rows"][0]["memory_system"]["outcomes"].values()) > 10


@pytest.mark.parametrize("runs_paid", [0.5, 2.5])
def test_no_run_is_begun_that_the_cap_cannot_finish_and_the_printed_cap_pays_for_the_rest(
    say, prices, capsys, runs_paid
):
    with ModelServer(answers_as("calculator")) as server:
        how = ("--model", "openai/mine", "--base-url", server.url, "--prices", prices, "--set", "connections=1")
        tasks = (*SMALL, "--h", "4", "--no-control")
        say("lacuna", "run", *tasks, "--seeds", "0", *how, "--out", "one")
        calls = len(server.received)
        usd = json.loads(Path("one/summary.json").read_text("utf-8"))["spending"]["billed_usd"]
        server.received.clear()
        shown = say(
            "lacuna", "run", *tasks, "--seeds", "0:6", *how, "--cap-usd", runs_paid * usd, "--out", "out", code=1
        )
        assert len(server.received) == int(runs_paid) * calls, "what is not finished is not begun"
        assert len(runs.records(Path("out"))) == int(runs_paid)
        proposed = shlex.split(" ".join(shown.split()).partition("next: eirkit ")[2])
        assert proposed[:4] == ["lacuna", "run", "--resume", "out"]
        assert f"a cap of ${proposed[-1]} pays for the {6 - int(runs_paid)} runs left" in " ".join(shown.split())
        assert Decimal(proposed[-1]) <= 40 * Decimal(str(usd))
        assert command_line(proposed) == 0
        assert len(runs.records(Path("out"))) == 6
        assert len(server.received) == 6 * calls


def test_the_cap_that_is_proposed_is_in_proportion_and_runs_are_of_those_planned(say, prices, capsys):
    with ModelServer(answers_as("calculator")) as server:
        how = ("--model", "openai/mine", "--base-url", server.url, "--prices", prices, "--set", "connections=1")
        tasks = (*SMALL, "--h", "4,2", "--seeds", "0:3")
        whole = Decimal(110 * 10) * 12 * 6 / 1_000_000
        shown = say("lacuna", "run", *tasks, *how, "--cap-usd", "0.03", "--out", "out", code=1)
        assert "2/3" in shown
        assert "0/3" in shown
        proposed = shlex.split(shown.partition("next: eirkit ")[2])
        assert Decimal("0.03") < Decimal(proposed[-1]) <= 3 * whole
        for _ in range(4):  # each cap that is proposed pays for at least one of the four runs that are left
            if "--cap-usd" in proposed:
                before = len(runs.records(Path("out")))
                command_line(proposed)
                assert len(runs.records(Path("out"))) > before
                capsys.readouterr()
                command_line(["lacuna", "run", "--resume", "out"])
                proposed = shlex.split(" ".join(capsys.readouterr().out.split()).partition("next: eirkit ")[2])
        assert proposed[0] == "report"
