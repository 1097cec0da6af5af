"""One run whose agent comes by itself: cancelled callers, departures, the folder that it leaves."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eirkit.errors import UsageError
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import Reply, Request, ToolCall
from eirkit.lacuna.runs.attempt import Failure
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.view import Visible, publish
from eirkit.records.database import SweepDatabase
from eirkit_bridges.episode import (
    LEFT_TEXT,
    UNKNOWN_USAGE,
    as_reply,
    explain,
    score_of,
    tool_listings,
    translate_refusals,
)
from eirkit_bridges.external_runs import (
    ClientSessions,
    open_external_runs,
    plan_external_runs,
    refuse_controlled,
    resume_external_runs,
)
from tests.bridges.driving import SEED, stored_runs, suite_of, telemetry
from tests.lacuna.running import eirkit

NEXT = Reply("", (ToolCall("next", {}),), UNKNOWN_USAGE)


def test_whoever_is_cancelled_while_waiting_loses_nothing(tmp_path):
    async def act() -> list[str]:
        with open_external_runs(suite_of(), tmp_path / "out") as visits:
            episode = visits.begin()
            for _ in range(10):
                call = asyncio.create_task(episode.act(NEXT))
                await asyncio.sleep(0)
                call.cancel()
                await asyncio.wait({call})
            seen = await episode.look()
            assert seen is not None
            await episode.leave()
            return seen.messages[-1].content.splitlines()

    lines = asyncio.run(act())
    actions = [event for event in telemetry(tmp_path / "out") if event.get("type") == "action"]
    taken = int(next(line for line in lines if line.startswith("LEFT")).split()[1].partition("=")[2])
    assert len(actions) == 200 - taken + 1  # every action that was taken in is there, and the departure
    assert [action["number"] for action in actions] == list(range(1, len(actions) + 1))


def test_callers_at_once_are_served_one_after_the_other(tmp_path):
    async def act() -> None:
        with open_external_runs(suite_of(), tmp_path / "out") as visits:
            episode = visits.begin()
            await asyncio.gather(*(episode.act(NEXT) for _ in range(10)))
            await episode.leave()

    asyncio.run(act())
    records = telemetry(tmp_path / "out")
    assert [r["t"] for r in records if r.get("type") == "decision"] == list(range(1, 11))


def test_a_silent_departure_is_scored_and_marked(tmp_path):
    async def act() -> None:
        with open_external_runs(suite_of(), tmp_path / "out") as visits:
            episode = visits.begin()
            await episode.act(NEXT)
            await episode.leave()
            assert await episode.act(NEXT) is None  # nothing happens after the end

    asyncio.run(act())
    (run,) = stored_runs(tmp_path / "out")
    assert (run.ending, run.score.answered, run.score.steps) == ("done", 0, 10)
    assert [e["reply"] for e in telemetry(tmp_path / "out") if e.get("type") == "exchange"] == ["", LEFT_TEXT]


def test_a_run_that_the_operator_breaks_off_is_no_score_and_is_tried_again(tmp_path):
    async def act() -> None:
        with open_external_runs(suite_of(), tmp_path / "out") as visits:
            await visits.begin().act(NEXT)
            await visits.stop("stopped; resume")

    async def again() -> None:
        with resume_external_runs(tmp_path / "out") as visits:
            await visits.begin().leave()
            with pytest.raises(UsageError, match="no task is left on this server"):
                visits.begin()

    asyncio.run(act())
    assert stored_runs(tmp_path / "out") == []
    with SweepDatabase(tmp_path / "out") as database:
        (failure,) = database.failures()
    assert (failure.kind, failure.message) == ("dropped", "stopped; resume")
    asyncio.run(again())
    assert len(stored_runs(tmp_path / "out")) == 1


def test_the_folder_is_that_of_any_sweep(tmp_path, capsys):
    async def act() -> None:
        with open_external_runs(suite_of(), tmp_path / "out") as visits:
            await visits.begin().leave()

    asyncio.run(act())
    assert eirkit("lacuna", "run", "--resume", str(tmp_path / "out"), "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["model"], row["scored"], row["attempted"], row["accuracy"]) == ("agent/visitor", 1, 1, 0)
    with pytest.raises(UsageError, match="is not empty"), open_external_runs(suite_of(), tmp_path / "out"):
        pass


def test_an_agent_cannot_be_asked_to_come(tmp_path, capsys):
    options = ("--workload", "store-recall", "--n", "4", "--model", "agent/someone", "--seeds", "0", "--no-control")
    assert eirkit("lacuna", "run", *options, "--out", str(tmp_path / "out"), "--json") == 1
    (failure,) = json.loads(capsys.readouterr().out)["failures"]
    assert "is an external agent and cannot be called; continue with eirkit mcp serve --resume" in failure["message"]


def test_a_score_so_far_keeps_nothing(tmp_path):
    async def act() -> None:
        with open_external_runs(suite_of(), tmp_path / "out") as visits:
            outcome = await score_of(visits.stage, visits.task(SEED), [NEXT, NEXT])
            assert not isinstance(outcome, Failure)
            assert (outcome.record.score.correct, outcome.record.ending) == (0, "done")

    asyncio.run(act())
    assert stored_runs(tmp_path / "out") == []


def test_a_visit_is_one_cell_and_managed():
    with pytest.raises(UsageError, match="2 combinations of values"):
        refuse_controlled(plan_external_runs({"workload": "store-recall", "h": [2, 4]}))
    with pytest.raises(UsageError, match="eirkit export harbor --condition controlled"):
        refuse_controlled(plan_external_runs({"workload": "store-recall", "condition": "controlled"}))
    for asked in ("words", ["store-recall", "words"]):
        with pytest.raises(UsageError, match="words is a workload of conversations"):
            plan_external_runs({"workload": asked})


def test_tools_say_what_a_task_does_not_allow():
    few = {offer.name: offer.description for offer in tool_listings(("NEXT", "ANSWER", "DONE"))}
    assert list(few) == ["next_step", "submit_answer", "read_result", "recompute", "note", "finish"]
    assert [name for name, text in few.items() if "Not available" in text] == ["read_result", "recompute"]
    assert "search finds text" in tool_listings(("SEARCH",))[4].description
    assert "next_step" in explain("RULES")


nested = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=25, deadline=None)
@given(
    tool=st.sampled_from(["next_step", "submit_answer", "read_result", "recompute", "note", "finish", "x", ""]),
    arguments=st.dictionaries(st.sampled_from(["t", "values", "text", "action", "?"]), nested, max_size=4),
)
def test_no_call_of_a_tool_raises(tool, arguments, tmp_path_factory):
    async def act() -> None:
        with open_external_runs(suite_of(condition="scratch"), tmp_path_factory.mktemp("visit") / "out") as visits:
            episode = visits.begin()
            request = await episode.act(NEXT)
            assert request is not None
            reply = as_reply(tool, arguments, request)
            assert reply is not None
            await episode.act(reply)
            await episode.leave()

    asyncio.run(act())


def test_a_summary_comes_before_anything_else():
    spec = TaskSpec("store-recall", n=10, m=4)
    task = publish(generate(spec), prepare(spec))
    visible = Visible(task, None, answered=False, records=(), summary_characters=128)
    request = Request((Message("user", "STEP none\nSUMMARY at most 128 characters\nNow."),), visible=visible)
    assert as_reply("next_step", {}, request) is None
    assert as_reply("note", {"action": "summary", "text": ["no text"]}, request) is None
    reply = as_reply("note", {"action": "summary", "text": "A_1 = 1"}, request)
    assert reply is not None
    assert reply.text == "A_1 = 1"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("no step has been revealed; write NEXT", "no step has been revealed; call next_step"),
        ("there are no more steps; write DONE", "there are no more steps; call finish"),
        (
            "write ANSWER t v with numbers, such as ANSWER 7 0042",
            "call submit_answer with numbers, such as t 7 and values [42]",
        ),
        ("write READ t", "call read_result with t"),
        ("write WRITE t", "call note (write) with t"),
        ("READ is not available here", "read_result is not available here"),
        ("memory is full with 4 records; DROP one first", "memory is full with 4 records; drop one first with note"),
        ("NOTE needs some text", "note (add) needs some text"),
        ("no reads are left", "no reads are left"),
    ],
)
def test_refusals_name_tools_and_nothing_else_is_touched(said, told):
    shown = f"NOTES\n1. write NEXT\nSTEP 3 of 8\nRESULT refused: {said}\nRESULT the answer of READ"
    assert translate_refusals(shown) == shown.replace(f"refused: {said}", f"refused: {told}")


def test_a_refusal_of_a_session_comes_in_the_names_of_tools(tmp_path):
    async def act() -> list[str]:
        with open_external_runs(suite_of(), tmp_path / "out") as visits:
            sessions = ClientSessions(visits.begin)
            calls = [("submit_answer", {"t": 1, "values": [1]}), ("next_step", {}), ("submit_answer", {"t": "one"})]
            shown = [await sessions.call("client", tool, arguments) for tool, arguments in calls]
            await sessions.leave_all()
            return shown

    early, _, malformed = asyncio.run(act())
    assert "RESULT refused: no step has been revealed; call next_step" in early
    assert "RESULT refused: call submit_answer with numbers" in malformed
