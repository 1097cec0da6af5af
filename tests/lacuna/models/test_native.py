"""The Responses, Messages and Gemini APIs, spoken by loopback servers to the providers' SDKs; `session native`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import pytest

from eirkit.errors import MissingExtraError, ModelError, UnknownNameError
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.session import ControlledSession
from eirkit.lacuna.models.factory import make_model
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.metered import make_metered
from eirkit.lacuna.models.model import ModelOptions, Reply, Request, Tool
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.view import publish
from tests.lacuna.running import retention
from tests.lacuna.servers import BROKEN, ModelServer, Received, answers_as, as_json, fails

KEY, OTHER = "sk-canary-0123456789abcdef", "sk-other-fedcba9876543210"
TOOL = Tool("answer", "submit", {"type": "object", "properties": {"t": {"type": "integer"}}})
ASKED = Request((Message("system", "rules"), Message("user", "A_3 = 0042")), (TOOL,), 77)


@dataclass(frozen=True)
class Dialect:
    """How an API is spoken: what a reply with these parts looks like, and what a request holds."""

    model: str
    api: str
    module: str
    path: str
    reply: Callable[..., dict[str, Any]]
    system: Callable[[Any], str]
    limit: Callable[[Any], int]


def response(text: str = "", thought: str = "", finish: str = "stop", call: Any = None) -> dict[str, Any]:
    output: list[Any] = [{"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": thought}]}]
    kind = {"type": "refusal", "refusal": text} if finish == "refusal" else {"type": "output_text", "text": text}
    output.append({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [kind]})
    if call is not None:
        output.append({"type": "function_call", "name": call[0], "arguments": json.dumps(call[1]), "call_id": "c"})
    reasons = {"length": "max_output_tokens", "content-filter": "content_filter"}
    usage = {"input_tokens": 100, "output_tokens": 30, "total_tokens": 130}
    usage |= {"input_tokens_details": {"cached_tokens": 40}, "output_tokens_details": {"reasoning_tokens": 20}}
    return {
        "id": "x",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "incomplete" if finish in reasons else "completed",
        "incomplete_details": {"reason": reasons[finish]} if finish in reasons else None,
        "output": output,
        "usage": usage,
    }


def message(text: str = "", thought: str = "", finish: str = "stop", call: Any = None) -> dict[str, Any]:
    reasons = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal", "tool-calls": "tool_use"}
    content: list[Any] = [{"type": "thinking", "thinking": thought, "signature": "s"}, {"type": "text", "text": text}]
    if call is not None:
        content.append({"type": "tool_use", "id": "c", "name": call[0], "input": call[1]})
    usage = {"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 30}
    usage["output_tokens_details"] = {"thinking_tokens": 20}
    head = {"id": "x", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    return {**head, "content": content, "stop_reason": reasons[finish], "usage": usage}


def candidate(text: str = "", thought: str = "", finish: str = "stop", call: Any = None) -> dict[str, Any]:
    reasons = {"stop": "STOP", "length": "MAX_TOKENS", "content-filter": "SAFETY", "tool-calls": "STOP"}
    parts: list[Any] = [{"text": thought, "thought": True}, {"text": text}]
    if call is not None:
        parts.append({"functionCall": {"name": call[0], "args": call[1]}})
    usage = {"promptTokenCount": 100, "cachedContentTokenCount": 40, "candidatesTokenCount": 10}
    usage |= {"thoughtsTokenCount": 20, "totalTokenCount": 130}
    found = {"content": {"role": "model", "parts": parts}, "finishReason": reasons[finish], "index": 0}
    return {"candidates": [found], "usageMetadata": usage, "modelVersion": "m"}


DIALECTS = {
    "responses": Dialect(
        "openai/m",
        "responses",
        "openai",
        "/v1/responses",
        response,
        lambda body: body["instructions"],
        lambda body: body["max_output_tokens"],
    ),
    "messages": Dialect(
        "anthropic/m",
        "messages",
        "anthropic",
        "/v1/messages",
        message,
        lambda body: body["system"],
        lambda body: body["max_tokens"],
    ),
    "gemini": Dialect(
        "google/m",
        "gemini",
        "google.genai",
        "/v1/models/m:generateContent",
        candidate,
        lambda body: body["systemInstruction"]["parts"][0]["text"],
        lambda body: body["generationConfig"]["maxOutputTokens"],
    ),
}


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.fixture(params=DIALECTS)
def dialect(request, monkeypatch) -> Dialect:
    found = DIALECTS[request.param]
    if not is_installed(found.module):
        pytest.skip(f"{found.module} is not installed; `make session NAME=native` brings it")
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(variable, KEY)
    for variable in ("ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY", "OPENAI_ORG_ID"):
        monkeypatch.setenv(variable, OTHER)  # what the SDKs would find by themselves
    return found


def options_of(dialect: Dialect, server: ModelServer, **more: Any) -> ModelOptions:
    base = server.url if dialect.api == "responses" else server.url.removesuffix("/v1")
    extra = {"api": dialect.api, **more.pop("extra", {})}
    return ModelOptions(base_url=base, retries=0, extra=extra, **more)


def ask(dialect: Dialect, script: Any, request: Request = ASKED, **more: Any) -> tuple[Reply, ModelServer]:
    async def run(server: ModelServer) -> Reply:
        model = make_metered(dialect.model, options_of(dialect, server, **more))
        try:
            return await model.reply(request)
        finally:
            await model.close()

    with ModelServer(script) as server:
        return asyncio.run(run(server)), server


def test_what_is_sent_and_what_is_read(dialect):
    sent = as_json(dialect.reply("ANSWER 3 0042", "I look at A_3."))
    reply, server = ask(dialect, [sent])
    assert (reply.text, reply.reasoning, reply.finish, reply.calls) == ("ANSWER 3 0042", "I look at A_3.", "stop", ())
    usage = reply.usage
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens)
    assert counts == (100, 30, 40, 20)
    (received,) = server.received
    assert received.path.partition("?")[0].replace("/v1beta/", "/v1/") == dialect.path
    assert KEY in " ".join(received.headers.values())  # in which header depends on the version of the SDK
    assert OTHER not in " ".join(received.headers.values())
    assert (dialect.system(received.body), dialect.limit(received.body)) == ("rules", 77)
    text = json.dumps(received.body)
    assert "A_3 = 0042" in text
    assert '"answer"' in text


FINISHES = {
    "responses": ("stop", "length", "content-filter", "refusal"),
    "messages": ("stop", "length", "refusal"),
    "gemini": ("stop", "length", "content-filter"),
}


def test_finish_reasons(dialect):
    for finish in FINISHES[dialect.api]:
        reply, _ = ask(dialect, [as_json(dialect.reply("No.", finish=finish))])
        assert (reply.text, reply.finish) == ("No.", finish)


def test_parallel_tool_calls(dialect):
    made = dialect.reply(call=("answer", {"t": 3}), finish="stop" if dialect.api == "responses" else "tool-calls")
    where = made.get("output") or made.get("content") or made["candidates"][0]["content"]["parts"]
    where.append(json.loads(json.dumps(where[-1]).replace("3", "4")))
    reply, _ = ask(dialect, [as_json(made)])
    assert [(call.name, dict(call.arguments)) for call in reply.calls] == [("answer", {"t": 3}), ("answer", {"t": 4})]
    assert reply.finish == "tool-calls"


def test_a_whole_run_scores_as_through_chat_completions(dialect):
    task = generate(TaskSpec("stepwise-sum", n=8, m=4, seed=1))

    def script(received: Received) -> Any:
        body = received.body
        turns = body.get("input") or body.get("messages") or body["contents"]
        state = turns[0].get("content") or turns[0]["parts"][0]["text"]
        messages = [{"role": "system", "content": dialect.system(body)}, {"role": "user", "content": state}]
        said = answers_as("calculator")(Received("", {}, {"messages": messages}))
        return as_json(dialect.reply(json.loads(said.body)["choices"][0]["message"]["content"], "hm"))

    async def run(server: ModelServer) -> Any:
        model = make_metered(dialect.model, options_of(dialect, server))
        try:
            return await drive(ControlledSession(publish(task, prepare(task.spec)), retention(task, 4)), model)
        finally:
            await model.close()

    with ModelServer(script) as server:
        trace = asyncio.run(run(server))
    assert [one.submitted for one in trace.decisions] == [step.answer for step in task.steps]


def test_a_parameter_that_is_refused_is_left_out(dialect):
    def script(received: Received) -> Any:
        if "temperature" in json.dumps(received.body):
            return fails(400, "`temperature` is not supported with this model", type="invalid_request_error")
        return as_json(dialect.reply("ANSWER 3 0042"))

    reply, server = ask(dialect, script)
    assert (reply.text, len(server.received)) == ("ANSWER 3 0042", 2)


@pytest.mark.parametrize("name", [name for name in BROKEN if "tool call" not in name])
def test_a_broken_server_is_a_failure_of_its_kind(dialect, name):
    answer, kind = BROKEN[name]
    if dialect.api == "gemini" and kind == "malformed" and answer.headers[0][0] != "Content-Encoding":
        kind = "any"  # the SDK reads the body itself, and says less about what is wrong with it
    if dialect.api != "responses" and name == "exhausted account":
        kind = "rate-limit"  # the code is OpenAI's
    with pytest.raises(ModelError) as caught:
        ask(dialect, [answer])
    assert kind in (caught.value.kind, "any")
    assert KEY not in str(caught.value)


def test_a_blocked_prompt_is_a_filtered_reply(monkeypatch):
    if not is_installed("google.genai"):
        pytest.skip("google.genai is not installed; `make session NAME=native` brings it")
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}}
    reply, _ = ask(DIALECTS["gemini"], [as_json(blocked)])
    assert (reply.text, reply.finish, reply.usage.input_tokens) == ("", "content-filter", 9)


def test_further_fields_and_settings(dialect):
    field = {"thinkingConfig": {"thinkingBudget": 9}} if dialect.api == "gemini" else {"budget": 9}
    body = {"generationConfig": field} if dialect.api == "gemini" else field
    _, server = ask(dialect, [as_json(dialect.reply("NEXT"))], extra={"body": body})
    assert "9" in json.dumps(server.received[0].body)
    with ModelServer([]) as server:
        assert make_model(dialect.model, options_of(dialect, server)).settings()["api"] == dialect.api


def test_an_unknown_api_and_a_missing_package():
    with pytest.raises(UnknownNameError, match="chat"):
        make_model("openai/m", ModelOptions(extra={"api": "telepathy"}))
    if not is_installed("anthropic"):
        with pytest.raises(MissingExtraError, match="anthropic"):
            make_model("anthropic/m", ModelOptions(extra={"api": "messages"}))
