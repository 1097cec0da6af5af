"""`openai/…` and its kin against a real server on loopback: what they send, what they make of what comes back."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
from contextlib import asynccontextmanager

import pytest

pytest.importorskip("openai", reason="the extra `openai` is not installed")

from eirkit.errors import ModelError, UnknownNameError, UsageError
from eirkit.lacuna.models.chat_completion import causes
from eirkit.lacuna.models.factory import make_model, preflight
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.metered import Metered
from eirkit.lacuna.models.model import ModelOptions, Request, Tool, ToolCall
from eirkit.lacuna.models.reply_cache import ReplyCache
from tests.lacuna.models.test_metered import Stopwatch
from tests.lacuna.servers import BROKEN, GOOD, HOSTILE_TEXT, Answer, ModelServer, as_json, calls, document, fails, says

CANARY = "sk-canary-5f2e8b7c9d1a4e6f"
REQUEST = Request((Message("system", "rules"), Message("user", "A_3 = 0042")), max_tokens=77)
TOOL = Tool("answer", "submit", {"type": "object", "properties": {"t": {"type": "integer"}}})
AGES_SECONDS = 3_600.0  # a test that waited for such an answer would never end


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_ORG_ID", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)


@asynccontextmanager
async def opened(server, name="openai/m", **options):
    model = make_model(name, ModelOptions(**{"base_url": server.url, "timeout_seconds": 10, **options}))
    try:
        yield model
    finally:
        await model.close()


def ask(script, request=REQUEST, **options):
    """Return the reply of a model behind a scripted server, and the server."""

    async def run(server):
        async with opened(server, **options) as model:
            return await model.reply(request)

    with ModelServer(script) as server:
        return asyncio.run(run(server)), server


def failure_of(script, **options):
    with pytest.raises(ModelError) as caught:
        ask(script, **options)
    return caught.value


def test_a_reply_and_what_was_sent_for_it():
    reply, server = ask([GOOD], Request(REQUEST.messages, (TOOL,), 77))
    assert (reply.text, reply.calls, reply.finish) == ("ANSWER 3 0042", (), "stop")
    usage = reply.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cost_usd) == (100, 10, 40, None)
    (received,) = server.received
    assert received.path == "/v1/chat/completions"
    assert received.headers["authorization"] == f"Bearer {CANARY}"
    assert received.headers["accept-encoding"] == "identity"
    assert received.body == {
        "model": "m",
        "messages": [{"role": "system", "content": "rules"}, {"role": "user", "content": "A_3 = 0042"}],
        "max_tokens": 77,
        "temperature": 0.0,
        "seed": 0,
        "tools": [
            {
                "type": "function",
                "function": {"name": "answer", "description": "submit", "parameters": dict(TOOL.parameters)},
            }
        ],
    }


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", ""),
        (None, ""),
        ([{"type": "text", "text": "AN"}, {"type": "text", "text": "SWER"}, {"type": "image"}, 3], "ANSWER"),
        (HOSTILE_TEXT, HOSTILE_TEXT),
        ("\ud800 half", "? half"),
        (42, ""),
    ],
)
def test_whatever_the_model_says_is_text(content, text):
    assert ask([says(content)])[0].text == text


def test_a_refusal_is_what_the_model_said():
    answer = as_json(document({"content": None, "refusal": "I cannot."}))
    assert ask([answer])[0].text == "I cannot."


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ('{"t": 3, "values": [42]}', {"t": 3, "values": [42]}),
        ({"t": 3}, {"t": 3}),
        ("", {}),
        (None, {}),
        ("{t: 3", {"": "{t: 3"}),
        ("[1]", {"": "[1]"}),
        ('{"t": NaN}', {"": '{"t": NaN}'}),
        ('{"t": 1e999}', {"": '{"t": 1e999}'}),
        ('{"t": "\\ud800"}', {"t": "?"}),
        ('{"t": ' * 40 + "1" + "}" * 40, {"": '{"t": ' * 40 + "1" + "}" * 40}),
    ],
)
def test_tool_calls_keep_what_the_model_wrote(arguments, read):
    reply, _ = ask([calls(("answer", arguments), ("done", "{}"))])
    assert reply.calls == (ToolCall("answer", read), ToolCall("done", {}))
    json.dumps(reply.calls[0].arguments, allow_nan=False).encode()


@pytest.mark.parametrize(
    "stated", [None, {}, 7, {"prompt_tokens": -1}, {"prompt_tokens": 1e9}, {"prompt_tokens": 10**30}]
)
def test_counts_that_are_none_do_not_count(stated):
    usage = ask([as_json(document({"content": "x"}, usage=stated))])[0].usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (0, 0, None)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_server_is_a_typed_failure(name):
    answer, kind = BROKEN[name]
    failure = failure_of([answer])
    assert failure.kind == kind
    assert len(str(failure)) < 600
    assert str(failure).isprintable()
    assert str(failure).startswith("openai/m at http://127.0.0.1:")
    assert ";" in str(failure)  # behind it stands what to do


@pytest.mark.parametrize(
    "slow", [says("late", delay_seconds=AGES_SECONDS), says("drip", drip_seconds=0.1)], ids=["silent", "drip by drip"]
)
def test_a_slow_server_costs_no_more_than_the_timeout(slow):
    assert failure_of([slow], timeout_seconds=0.4).kind == "timeout"


def test_nobody_listening_is_told_at_once():
    async def run():
        model = make_model("openai/gpt-test", ModelOptions(base_url="http://127.0.0.1:9/v1"))
        metered = Metered(model, "openai/gpt-test", model.options, clock=clock)
        try:
            await metered.reply(REQUEST)
        finally:
            await metered.close()

    clock = Stopwatch()
    with pytest.raises(
        ModelError, match=r"after 5 attempts.*check the base URL and that the server is running"
    ) as caught:
        asyncio.run(run())
    assert caught.value.kind == "unreachable"
    assert clock.slept == [0.1, 0.2, 0.4, 0.8]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ([], None),
        ([("Retry-After", "7")], 7.0),
        ([("retry-after-ms", "250")], 0.25),
        ([("Date", "Sun, 15 Nov 2026 08:00:00 GMT"), ("Retry-After", "Sun, 15 Nov 2026 08:00:09 GMT")], 9.0),
        ([("Retry-After", "Sun, 15 Nov 2026 08:00:09 GMT")], None),
        ([("Retry-After", "soon")], None),
        ([("Retry-After", "-5")], None),
        ([("Retry-After", "1e999")], None),
        ([("retry-after-ms", "nan")], None),
    ],
)
def test_how_long_a_server_asks_to_wait(headers, seconds):
    assert failure_of([fails(429, headers=headers)]).retry_after_seconds == seconds


def picky(*disliked):
    """Return a script that turns parameters down as OpenAI does."""

    def script(received):
        for parameter, hint in disliked:
            if parameter in received.body:
                return fails(400, f"Unsupported parameter: '{parameter}'. {hint}", param=parameter)
        return GOOD

    return script


def test_a_refused_temperature_is_left_out_from_then_on():
    async def run(server):
        async with opened(server) as model:
            before = dict(model.settings())
            for _ in range(3):
                await model.reply(REQUEST)
            return before, dict(model.settings())

    with ModelServer(picky(("temperature", "Only the default is supported."))) as server:
        before, after = asyncio.run(run(server))
    assert ["temperature" in r.body for r in server.received] == [True, False, False, False]
    assert (before["refused"], after["refused"]) == ([], ["temperature"])
    assert {**before, "refused": 0} == {**after, "refused": 0}


def test_a_refused_name_of_the_limit_is_changed_once():
    reply, server = ask(picky(("max_tokens", "Use 'max_completion_tokens' instead."), ("temperature", "")))
    assert reply.text == "ANSWER 3 0042"
    assert server.received[-1].body["max_completion_tokens"] == 77
    assert len(server.received) == 3
    both = picky(("max_tokens", "Use 'max_completion_tokens'."), ("max_completion_tokens", "Use 'max_tokens'."))
    assert failure_of(both).kind == "rejected"


def test_many_at_once_may_all_be_refused():
    async def run(server):
        async with opened(server) as model:
            return await asyncio.gather(*(model.reply(REQUEST) for _ in range(20)))

    with ModelServer(picky(("temperature", ""), ("max_tokens", "Use 'max_completion_tokens'."))) as server:
        replies = asyncio.run(run(server))
    assert {reply.text for reply in replies} == {"ANSWER 3 0042"}


def test_no_temperature_means_the_providers_own():
    assert "temperature" not in ask([GOOD], temperature=None)[1].received[0].body


@pytest.mark.parametrize("body", [{"reasoning_effort": "low"}, '{"reasoning_effort": "low"}'])
def test_further_fields_of_the_body(body):
    _, server = ask([GOOD], extra={"body": body})
    assert server.received[0].body["reasoning_effort"] == "low"


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"bodi": {}}, "did you mean 'body'"),
        ({"body": {"stream": True}}, "leave out"),
        ({"body": {"temperature": 1}}, "leave out"),
        ({"body": 3}, "must be a table"),
        ({"body": "{"}, "must be a table"),
        ({"body": {"x": object()}}, "must be a table"),
    ],
)
def test_options_that_cannot_be(extra, message):
    with pytest.raises(UsageError, match=message):
        make_model("openai/m", ModelOptions(extra=extra))


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8000",
        "ftp://a/v1",
        "http://",
        "http://user:secret@a/v1",
        "http://a/v1?key=secret",
        "http://a:x/",
        "http://[",
    ],
)
def test_a_base_url_that_cannot_be(url):
    with pytest.raises(UsageError) as caught:
        make_model("openai/m", ModelOptions(base_url=url))
    assert "secret" not in str(caught.value)


def test_keys_come_from_the_environment(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    assert ask([GOOD])[1].received[0].headers["authorization"] == "Bearer none"
    monkeypatch.setenv("MY_SERVER", " another-key-0123\n")
    _, server = ask([GOOD], extra={"key_variable": "MY_SERVER"})
    assert server.received[0].headers["authorization"] == "Bearer another-key-0123"


@pytest.mark.parametrize(
    ("name", "variable"),
    [("openai/m", "OPENAI_API_KEY"), ("anthropic/m", "ANTHROPIC_API_KEY"), ("google/m", "GEMINI_API_KEY")],
)
def test_a_missing_key_is_said_before_anything_is_sent(name, variable, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    model = make_model(name, ModelOptions())
    with pytest.raises(UsageError, match=variable):
        preflight(model)
    with pytest.raises(UsageError, match=variable):
        asyncio.run(model.reply(REQUEST))
    monkeypatch.setenv(variable, "kéy-with-an-accent")
    with pytest.raises(UsageError, match="copy it again") as caught:
        asyncio.run(model.reply(REQUEST))
    assert "accent" not in str(caught.value)


@pytest.mark.parametrize(
    ("provider", "variable", "base_url", "limit"),
    [
        ("openai", "OPENAI_API_KEY", "https://api.openai.com/v1", "max_completion_tokens"),
        ("anthropic", "ANTHROPIC_API_KEY", "https://api.anthropic.com/v1", "max_tokens"),
        ("google", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai", "max_tokens"),
    ],
)
def test_the_other_providers_differ_in_address_and_key_alone(provider, variable, base_url, limit, monkeypatch):
    monkeypatch.setenv(variable, f"{provider}-key-0123")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-somebody")
    direct = make_model(f"{provider}/m", ModelOptions())
    assert (direct.settings()["base_url"], direct._limit_name) == (base_url, limit)
    _, server = ask([GOOD], name=f"{provider}/m")
    (received,) = server.received
    assert received.headers["authorization"] == f"Bearer {provider}-key-0123"
    assert "openai-organization" not in received.headers


def test_a_name_without_a_model_and_a_provider_without_a_name():
    for string in ("openai", "openai/"):
        with pytest.raises(UsageError, match="write openai/NAME"):
            make_model(string, ModelOptions())
    with pytest.raises(UnknownNameError, match="did you mean 'openai'"):
        make_model("opnai/m", ModelOptions())


def test_a_closed_model_opens_again_in_another_loop():
    async def once(model):
        try:
            return (await model.reply(REQUEST)).text
        finally:
            await model.close()

    with ModelServer([GOOD]) as server:
        model = make_model("openai/m", ModelOptions(base_url=server.url))
        assert [asyncio.run(once(model)) for _ in range(2)] == ["ANSWER 3 0042"] * 2


def test_a_cancelled_call_leaves_nothing_behind():
    async def run(server):
        async with opened(server) as model:
            task = asyncio.create_task(model.reply(REQUEST))
            while not server.received:  # on its way, and not yet answered
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await model.reply(REQUEST)

    with ModelServer([says("late", delay_seconds=AGES_SECONDS), GOOD]) as server:
        assert asyncio.run(run(server)).text == "ANSWER 3 0042"


# --- Keys stay where they are -------------------------------------------------------------------------------------


def echoing(answer):
    """Return a script that says what `answer` says, with the caller's key wherever a text can stand."""

    def script(received):
        key = received.headers["authorization"].removeprefix("Bearer ")
        escaped = "".join(f"\\u{ord(c):04x}" for c in key)
        error = f'{{"error": {{"message": "you sent {key} or {escaped}", "param": "{key}", "code": "{key}"}}}}'.encode()
        body = error if answer.status != 200 or not answer.body else answer.body.replace(b"<html>", key.encode())
        length = None if answer.declared_length is None else max(answer.declared_length, len(body) + 1)
        return Answer(
            body, answer.status, answer.headers, repeat=answer.repeat, declared_length=length, drop=answer.drop
        )

    return script


def everything_about(error):
    parts = [str(error), repr(error), repr(error.args), repr(vars(error)), repr(pickle.loads(pickle.dumps(error)))]
    return "".join([*parts, *(f"{cause!r}{vars(cause)}" for cause in causes(error))])


@pytest.mark.parametrize("name", BROKEN)
def test_no_failure_shows_the_key(name, caplog):
    caplog.set_level(logging.DEBUG)

    async def run(server):
        async with opened(server) as model:
            with pytest.raises(ModelError) as caught:
                await model.reply(REQUEST)
            return everything_about(caught.value) + repr(model.settings())

    with ModelServer(echoing(BROKEN[name][0])) as server:
        written = asyncio.run(run(server))
    assert CANARY in server.received[0].headers["authorization"]  # or the test proves nothing
    assert CANARY not in written + caplog.text
    assert CANARY[3:] not in written + caplog.text


def test_no_timeout_and_no_refused_connection_shows_the_key(caplog):
    caplog.set_level(logging.DEBUG)

    async def run(url):
        model = make_model("openai/m", ModelOptions(base_url=url, timeout_seconds=0.3))
        with pytest.raises(ModelError) as caught:
            await model.reply(REQUEST)
        await model.close()
        return everything_about(caught.value)

    with ModelServer([says("late", delay_seconds=AGES_SECONDS)]) as server:
        written = asyncio.run(run(server.url)) + asyncio.run(run("http://127.0.0.1:9/v1"))
    assert CANARY not in written + caplog.text


def test_no_reply_shows_the_key_not_even_from_the_cache(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    escaped = "".join(f"\\u{ord(c):04x}" for c in CANARY)
    body = (
        f'{{"choices": [{{"finish_reason": "{CANARY}", "message": {{"content": "key {CANARY} {escaped}", "tool_calls": '
        f'[{{"function": {{"name": "{CANARY}", "arguments": "{{\\"{CANARY}\\": [\\"{CANARY}\\"]}}"}}}}, '
        f'{{"function": {{"name": "x", "arguments": "broken {CANARY}"}}}}]}}}}]}}'
    ).encode()

    async def run(server, cache):
        async with opened(server) as model:
            metered = Metered(model, "openai/m", model.options, cache=cache)
            replies = [await metered.reply(REQUEST) for _ in range(2)]
            await metered.close()
            return repr(replies) + repr(metered.settings()) + repr(metered.tally)

    cache = ReplyCache(tmp_path / "replies.sqlite")
    with ModelServer([Answer(body)]) as server:
        written = asyncio.run(run(server, cache))
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert "key [key] [key]" in written
    assert CANARY not in written + caplog.text
    assert CANARY.encode() not in files


def test_a_placeholder_key_does_not_eat_answers(monkeypatch):
    for placeholder in ("none", "0042", "1", "12345678"):
        monkeypatch.setenv("OPENAI_API_KEY", placeholder)
        text = f"none ANSWER 3 {placeholder}"
        assert ask([says(text)])[0].text == text
