"""What commands say about money and what they propose next, done one after the other as a person would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eirkit.cli import run as command_line
from tests import runs
from tests.lacuna.servers import ModelServer, answers_as, says

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
        return " ".join((printed.err if code else printed.out).split())

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
