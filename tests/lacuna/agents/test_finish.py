"""Why replies end, what models think aloud, and what is lost at the limit on tokens: all of it through real servers."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eirkit.cli import run as run_command_line
from eirkit.lacuna.agents.conditions import Cache
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.managed import ManagedSession
from eirkit.lacuna.agents.protocol import Answer, Done, Fault, read_answer, read_reply
from eirkit.lacuna.agents.session import ControlledSession
from eirkit.lacuna.agents.telemetry import events_of
from eirkit.lacuna.models.metered import make_metered
from eirkit.lacuna.models.model import (
    RAISED_TOKENS,
    USUAL_TOKENS,
    ModelOptions,
    NumberForm,
    Reply,
    read_finish,
    set_aside,
)
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.view import publish
from eirkit.records.events import ModelExchange
from tests.lacuna.running import retention
from tests.lacuna.servers import Answer as Sent
from tests.lacuna.servers import ModelServer, Received, answers_as, as_json, document, fails
from tests.runs import events, row

SMALL = ("stepwise-sum", "--n", 8, "--m", 4, "--h", 4)
TASK = generate(TaskSpec("stepwise-sum", n=8, m=4, seed=3))


def ends(finish: str, reasoning_tokens: int = 0, **message: object) -> Sent:
    """Return a reply with this finish reason."""
    made = document({"role": "assistant", **message})
    made["choices"][0]["finish_reason"] = finish
    made["usage"]["completion_tokens_details"] = {"reasoning_tokens": reasoning_tokens}
    return as_json(made)


def well(received: Received) -> str:
    """Return what the calculator answers."""
    return json.loads(answers_as("calculator")(received).body)["choices"][0]["message"]["content"]


def play(server: ModelServer, *, managed: bool = False, **options: object):
    """Run the task against a server; return its trace."""

    async def run():
        model = make_metered("openai/any", ModelOptions(base_url=server.url, retries=0, **options))
        public, kept = publish(TASK, prepare(TASK.spec)), retention(TASK, 4)
        session = ManagedSession(public, Cache(kept)) if managed else ControlledSession(public, kept)
        try:
            return await drive(session, model)
        finally:
            await model.close()

    return asyncio.run(run())


SILENT = {
    "truncated": ends("length", content="The sum of the first and the second is ANSW"),
    "filtered": ends("content_filter", content=""),
    "refused": ends("stop", content=None, refusal="I cannot help with numbers."),
    "empty": ends("stop", content=" \n"),
    "malformed": ends("stop", content="Let me think about it."),
}


@pytest.mark.parametrize("kind", SILENT)
def test_why_a_step_has_no_answer(kind):
    def script(received: Received) -> Sent:
        return SILENT[kind] if len(server.received) % 4 == 0 else ends("stop", content=well(received))

    with ModelServer(script) as server:
        trace = play(server)
    assert [decision.fault for decision in trace.decisions] == [None, None, None, kind] * 2
    stated = [event.finish for event in events_of(trace) if isinstance(event, ModelExchange)]
    assert stated[3] == {"truncated": "length", "filtered": "content-filter", "refused": "refusal"}.get(kind, "stop")


def test_an_answer_that_may_be_cut_is_not_an_answer():
    """The server cuts `ANSWER 7 1234` after 12; what ends with a line break was complete."""
    form = NumberForm(7, 1, 10_000)
    assert read_answer(Reply("ANSWER 7 12", finish="length"), form) == Fault("truncated", SILENCE_WORDS)
    assert read_answer(Reply("ANSWER 7 12\nso that", finish="length"), form) == Answer(7, (12,))
    assert read_answer(Reply("ANSWER 7 12", finish="stop"), form) == Answer(7, (12,))
    kinds = [one.kind for one in read_reply(Reply("NEXT\nNOTE A_7 = 12", finish="length")) if isinstance(one, Fault)]
    assert kinds == ["truncated"]


SILENCE_WORDS = "the reply was cut at the limit on tokens; its last line was not read"


@pytest.mark.parametrize(
    "template", ["<think>{}</think>\n{}", "{}</think>{}", "[THINK]{}[/THINK]{}", "<thinking>{}</thinking>{}"]
)
def test_commands_that_are_only_thought_are_not_executed(template):
    """A model that considers DONE in its thoughts ended every managed run."""
    agent = answers_as("recoverer")

    def script(received: Received) -> Sent:
        said = json.loads(agent(received).body)["choices"][0]["message"]["content"]
        return ends("stop", content=template.format("Should I stop?\nDONE\nANSWER 1 9999\n", said))

    with ModelServer(script) as server:
        trace = play(server, managed=True)
    assert trace.ending == "finished"
    assert [decision.t for decision in trace.decisions] == list(range(1, 9))
    assert not [action for action in trace.actions if action.outcome != "done"]
    assert all("DONE" in exchange.reply.reasoning for exchange in trace.exchanges)
    assert not any("9999" in exchange.reply.text for exchange in trace.exchanges)


def test_a_thought_without_an_end_hides_everything_after_it():
    assert set_aside("NEXT\n<think>DONE") == ("NEXT\n", "DONE")
    assert read_reply(Reply("<think>I say\nDONE\nANSWER 1 2"))[0].kind == "empty"
    assert read_reply(Reply("a <think> b </think>DONE\nno </think>\nANSWER 1 2")) == [Answer(1, (2,))]
    assert (
        read_reply(Reply("<|channel|>analysis<|message|>DONE<|end|><|channel|>final<|message|>NEXT\nDONE"))[1] == Done()
    )


@given(st.lists(st.sampled_from(["<think>", "</think>", "DONE\n", "x", "<", "[THINK]"])).map("".join))
def test_nothing_is_lost_by_setting_thoughts_aside(text):
    spoken, thought = set_aside(text)
    plain = text.replace("<think>", "").replace("</think>", "").replace("[THINK]", "")
    assert sorted(spoken + thought) == sorted(plain)
    assert "<think>" in text or "</think>" in text or "[THINK]" in text or spoken == text


def test_a_model_that_reasons_gets_a_larger_limit_and_nothing_is_lost():
    """With 1,024 tokens for reasoning and answer together, 14 % of the answers were lost without a word."""

    def script(received: Received) -> Sent:
        if received.body["max_tokens"] < 2000:
            return ends("length", USUAL_TOKENS, content="", reasoning_content="first I add the")
        return ends("stop", 3000, content=well(received), reasoning_content="first I add, then I am done")

    with ModelServer(script) as server:
        trace = play(server, connections=1)
    assert [decision.fault for decision in trace.decisions] == [None] * 8
    assert [received.body["max_tokens"] for received in server.received] == [USUAL_TOKENS, *[RAISED_TOKENS] * 8]
    first, *others = trace.exchanges
    # Both calls of the first reply are accounted for: the server reports 100 and 10 tokens for each.
    assert (first.reply.usage.input_tokens, others[0].reply.usage.input_tokens) == (200, 100)
    assert {one.reply.max_tokens for one in trace.exchanges} == {RAISED_TOKENS}
    exchanges = [event for event in events_of(trace) if isinstance(event, ModelExchange)]
    assert all(event.reasoning.startswith("first I add, then") for event in exchanges)
    assert all(event.reasoning_tokens == 10 for event in exchanges[1:])  # never more than the tokens written


def test_a_limit_that_was_given_is_sent_and_kept():
    with ModelServer([ends("length", 50, content="", reasoning_content="hm")]) as server:
        trace = play(server, max_tokens=50)
    assert {received.body["max_tokens"] for received in server.received} == {50}
    assert {decision.fault for decision in trace.decisions} == {"truncated"}


def test_a_server_that_allows_no_larger_limit():
    def script(received: Received) -> Sent:
        if received.body["max_tokens"] > 2000:
            return fails(400, "max_tokens is too large: 16384; this model supports at most 2000 completion tokens")
        return ends("length", 9, content="")

    with ModelServer(script) as server:
        trace = play(server, connections=1)
    assert {decision.fault for decision in trace.decisions} == {"truncated"}
    assert sum(received.body["max_tokens"] == RAISED_TOKENS for received in server.received) == 1


@pytest.fixture
def call(capfd, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def run(*arguments: object) -> str:
        capfd.readouterr()
        code = run_command_line(list(map(str, arguments)))
        shown = capfd.readouterr()
        assert code == 0, shown.err
        return shown.out

    return run


def test_the_command_says_what_was_cut_and_what_was_silent(tmp_path, call):
    def script(received: Received) -> Sent:
        number = len(server.received)
        if number % 8 == 0:
            return ends("length", 0, content="I write a long introduction and then")
        return SILENT["filtered"] if number % 8 == 1 else ends("stop", content=well(received))

    with ModelServer(script) as server:
        out, asked = tmp_path / "out", ("--base-url", server.url, "--set", "connections=1", "--no-control")
        said = call("lacuna", "run", *SMALL, "--seeds", "0:2", "--model", "openai/any", *asked, "--out", out)
    assert "2 of 16 replies were cut at 1,024 tokens; raise --set max_tokens=N" in " ".join(said.split())
    assert "cut before a complete answer (2), withheld by a content filter (2), of 16" in " ".join(said.split())
    assert (row(out).truncated_replies, row(out).faults) == (2, {"filtered": 2, "truncated": 2})
    # The events, read on their own, agree with the row.
    finishes = [event.finish for event in events(out) if isinstance(event, ModelExchange)]
    assert (finishes.count("length"), finishes.count("content-filter")) == (2, 2)
    call("report", out, "--out", tmp_path / "page.html")
    assert "were cut at 1,024 tokens" in (tmp_path / "page.html").read_text()


def test_a_recorded_run_is_replayed_with_its_finish_reasons(tmp_path, call):
    with ModelServer([SILENT["truncated"]]) as server:
        asked = ("lacuna", "run", *SMALL, "--seeds", 0, "--no-control")
        call(*asked, "--model", "openai/any", "--base-url", server.url, "--out", tmp_path / "live")
    call(*asked, "--model", f"replay/{tmp_path / 'live'}", "--out", tmp_path / "again")
    assert row(tmp_path / "live").faults == row(tmp_path / "again").faults == {"truncated": 8}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("MAX_TOKENS", "length"),
        ("end_turn", "stop"),
        ("tool_use", "tool-calls"),
        ("SAFETY", "content-filter"),
        ("refusal", "refusal"),
        ("pause_turn", "pause_turn"),
    ],
)
def test_finish_reasons_of_several_providers(theirs, ours):
    assert read_finish(theirs) == ours == read_finish(ours)
