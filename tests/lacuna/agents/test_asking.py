"""Asking again, servers that refuse a form, and which protocol is in force."""

from __future__ import annotations

import asyncio
import json

import pytest

from eirkit.cli import run as run_command_line
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.session import ControlledSession
from eirkit.lacuna.models.factory import protocol_of
from eirkit.lacuna.models.metered import make_metered
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.view import publish
from eirkit.records.database import SweepDatabase
from tests.lacuna.running import retention
from tests.lacuna.servers import ModelServer, Received, answers_as, fails, says
from tests.runs import row

TASK = generate(TaskSpec("stepwise-sum", n=12, m=4, seed=5))


def play(server: ModelServer, *, protocol: str = "text", reask: bool = False):
    async def run():
        model = make_metered("openai/any", ModelOptions(base_url=server.url, retries=0))
        session = ControlledSession(publish(TASK, prepare(TASK.spec)), retention(TASK, 4))
        session.protocol, session.reask = protocol, reask
        try:
            return await drive(session, model)
        finally:
            await model.close()

    return asyncio.run(run())


def said_by(agent: str, received: Received) -> str:
    return json.loads(answers_as(agent)(received).body)["choices"][0]["message"]["content"]


def test_one_further_request_where_there_was_no_answer():
    def script(received: Received):
        again = "No answer was found in your last reply" in received.body["messages"][-1]["content"]
        return says(said_by("calculator", received) if again or len(server.received) % 3 else "Let me see.")

    with ModelServer(script) as server:
        trace = play(server, reask=True)
    assert [decision.fault for decision in trace.decisions] == [None] * 12
    again = [action for action in trace.actions if action.action == "REASK"]
    assert {(one.outcome, one.reason, one.number) for one in again} == {("refused", "malformed", 0)}
    assert len(server.received) == len(trace.exchanges) == 12 + len(again) > 12


@pytest.mark.parametrize("protocol", ["schema", "tools", "text"])
def test_asked_once_more_and_not_twice(tmp_path, capfd, protocol):
    with ModelServer([says("Let me see.")]) as server:
        asked = (
            "--n",
            6,
            "--m",
            3,
            "--h",
            3,
            "--seeds",
            0,
            "--model",
            "openai/any",
            "--base-url",
            server.url,
            *("--protocol", protocol),
        )
        words = ("lacuna", "run", "stepwise-sum", *asked, "--no-control", "--out", tmp_path / "out")
        assert run_command_line(list(map(str, words))) == 0
    assert len(server.received) == 12
    found = row(tmp_path / "out")
    assert (found.calls, found.reasked, found.faults) == (12, 6, {"malformed": 6})
    assert run_command_line(["report", str(tmp_path / "out"), "--out", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert f"--protocol {protocol}" in page  # in the command that repeats the run
    assert "malformed" in page
    capfd.readouterr()
    with SweepDatabase(tmp_path / "out") as database:
        (run,) = [record.run for record in database.records()]
    assert run_command_line(["show", str(tmp_path / "out"), run, "1"]) == 0
    assert "Let me see." in capfd.readouterr().out


@pytest.mark.parametrize("protocol", ["schema", "tools"])
def test_a_server_that_refuses_the_form_is_told_of_the_other(tmp_path, capfd, protocol):
    with ModelServer([fails(400, "response_format is not supported")]) as server:
        words = ["lacuna", "run", "stepwise-sum", "--n", "6", "--m", "3", "--seeds", "0", "--model", "openai/any"]
        words += [
            "--base-url",
            server.url,
            "--no-control",
            "--protocol",
            protocol,
            "--out",
            str(tmp_path / "out"),
        ]
        assert run_command_line(words) == 1
    assert "--protocol text" in " ".join(capfd.readouterr().out.split())
    assert len(server.received) == 1


def test_the_protocol_is_what_the_provider_takes_and_a_part_of_the_cell(tmp_path):
    chosen = {
        "openai/any": "schema",
        "anthropic/any": "tools",  # its chat completions ignore a schema
        "google/any": "schema",
        "reference/calculator": "text",
        "bundled/lacuna-tiny": "text",
        "agent/visitor": "tools",
        "mine.py:Model": "text",
    }
    assert {name: protocol_of(name, ModelOptions()) for name in chosen} == chosen
    assert protocol_of("anthropic/any", ModelOptions(extra={"api": "messages"})) == "schema"
    assert {protocol_of(name, ModelOptions(protocol="tools")) for name in chosen} == {"tools"}
    keys = {"workload": "stepwise-sum", "model": "openai/any", "seeds": 0}
    suites = [read_suite({**keys, "model_options": {"protocol": one}}) for one in ("schema", "tools", "text", None)]
    ids = [cell.id for suite in suites for cell, _ in suite.plan()]
    assert len(set(ids)) == 3
    assert ids[3] == ids[0]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "Developer instruction is not enabled for models/gemma-3-27b-it"),
        (400, "System role not supported"),
        (500, "Conversation roles must alternate user/assistant/user/assistant/..."),
    ],
)
def test_a_server_without_a_system_role_gets_the_rules_from_the_user(status, words):
    def script(received: Received):
        first, *_ = received.body["messages"]
        if first["role"] == "system":
            return fails(status, words)
        rules, _, state = first["content"].partition("\n\n")
        received.body["messages"] = [{"role": "system", "content": rules}, {"role": "user", "content": state}]
        return says(said_by("calculator", received))

    with ModelServer(script) as server:
        trace = play(server)
    assert [decision.fault for decision in trace.decisions] == [None] * 12
    assert len(server.received) == 13  # refused once, remembered


def test_a_seed_is_sent_until_a_server_refuses_it():
    def script(received: Received):
        if "seed" in received.body:
            return fails(400, "Unrecognized request argument supplied: seed")
        return says(said_by("calculator", received))

    with ModelServer(script) as server:
        play(server)
    assert ["seed" in received.body for received in server.received] == [True, *[False] * 12]
