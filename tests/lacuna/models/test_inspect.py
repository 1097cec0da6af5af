"""`inspect/…` against a real server on loopback. Skipped where Inspect is not installed; `session inspect`."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec

import pytest

from eirkit.errors import MissingExtraError, ModelError, UsageError
from eirkit.lacuna.models.factory import make_model, preflight
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.metered import Metered
from eirkit.lacuna.models.model import ModelOptions, Request, Tool, ToolCall
from tests.lacuna.servers import BROKEN, GOOD, HOSTILE_TEXT, Answer, ModelServer, calls, fails, says

HAS_INSPECT = find_spec("inspect_ai") is not None
installed = pytest.mark.skipif(
    not HAS_INSPECT, reason="Inspect is not installed; `make session NAME=inspect` brings it"
)
# Inspect's own code and that of its dependencies warns about things that are not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

CANARY = "sk-canary-5f2e8b7c9d1a4e6f"
NAME = "inspect/openai-api/loopback/m"
REQUEST = Request((Message("system", "rules"), Message("user", "A_3 = 0042")), max_tokens=77)
TOOL = Tool("answer", "submit", {"type": "object", "properties": {"t": {"type": "integer"}}, "required": ["t"]})


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("LOOPBACK_API_KEY", CANARY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def ask(script, request=REQUEST, **options):
    async def run(server):
        model = make_model(NAME, ModelOptions(base_url=server.url, timeout_seconds=20, **options))
        try:
            return await model.reply(request), model.settings()
        finally:
            await model.close()

    with ModelServer(script) as server:
        return *asyncio.run(run(server)), server


@installed
def test_a_reply_and_what_was_sent_for_it():
    reply, settings, server = ask([GOOD], Request(REQUEST.messages, (TOOL,), 77))
    assert (reply.text, reply.finish) == ("ANSWER 3 0042", "stop")
    usage = reply.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cost_usd) == (100, 10, 40, None)
    (received,) = server.received
    assert received.headers["authorization"] == f"Bearer {CANARY}"
    assert [m["role"] for m in received.body["messages"]] == ["system", "user"]
    assert (received.body["temperature"], received.body["max_tokens"]) == (0.0, 77)
    assert received.body["tools"][0]["function"]["name"] == "answer"
    assert CANARY not in repr(settings)


@installed
def test_hostile_text_and_tool_calls():
    assert ask([says(f"{HOSTILE_TEXT} {CANARY}")])[0].text.endswith("${HOME} [key]")
    reply, *_ = ask([calls(("answer", '{"t": 3}'), ("answer", "{t: 3"))], Request(REQUEST.messages, (TOOL,)))
    assert reply.calls[0] == ToolCall("answer", {"t": 3})
    assert set(reply.calls[1].arguments) == {""}


@installed
def test_a_refused_temperature_is_left_out():
    def script(received):
        return fails(400, "'temperature' is not supported") if "temperature" in received.body else GOOD

    reply, settings, server = ask(script)
    assert reply.text == "ANSWER 3 0042"
    assert settings["refused"] == ["temperature"]
    assert len(server.received) == 2


@installed
@pytest.mark.parametrize("name", ["rate limit", "server error", "unauthorised", "dropped at once", "not JSON"])
def test_failures_are_typed_and_show_no_key(name):
    answer, kind = BROKEN[name]
    with pytest.raises(ModelError) as caught:
        ask([answer])
    # What Inspect makes of a body that is no completion is its own affair; it must be a failure all the same.
    assert caught.value.kind == kind or name == "not JSON"
    assert CANARY not in repr(caught.value) + repr(caught.value.__context__) + repr(caught.value.__cause__)


@installed
@pytest.mark.parametrize("name", ["rate limit", "server error", "dropped at once", "redirect"])
def test_our_retries_are_the_only_ones(name):
    async def run(server):
        model = make_model(NAME, ModelOptions(base_url=server.url, retries=0))
        metered = Metered(model, NAME, model.options)
        with pytest.raises(ModelError):
            await metered.reply(REQUEST)
        await metered.close()

    with ModelServer([BROKEN[name][0]]) as server:
        asyncio.run(run(server))
    assert len(server.received) == 1


@installed
@pytest.mark.parametrize("status", [302, 307, 308])
def test_a_redirect_is_not_followed(status):
    """The server may bill each of them, and only the last one would be counted."""
    again = Answer(status=status, headers=(("Location", "/v1/chat/completions"),))
    with pytest.raises(ModelError) as caught:
        ask([again, GOOD])
    assert caught.value.may_be_billed


@installed
def test_what_inspect_cannot_open(monkeypatch):
    with pytest.raises(UsageError, match="cannot be opened"):
        preflight(make_model("inspect/nobody/m", ModelOptions()))
    monkeypatch.delenv("LOOPBACK_API_KEY")
    with pytest.raises(UsageError, match="LOOPBACK_API_KEY"):
        preflight(make_model(NAME, ModelOptions(base_url="http://127.0.0.1:9/v1")))
    with pytest.raises(UsageError, match="inspect/PROVIDER/NAME"):
        make_model("inspect/m", ModelOptions())


@pytest.mark.skipif(HAS_INSPECT, reason="the extra is installed here")
def test_without_the_extra_it_says_what_to_install():
    with pytest.raises(MissingExtraError, match=r"pip install .*\[inspect\]"):
        make_model("inspect/openai/m", ModelOptions())
