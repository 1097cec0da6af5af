"""The metered endpoint, asked by the real client of OpenAI and by people who mean harm."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
import openai
import pytest

from eirkit.errors import ModelError
from eirkit.lacuna.agents.reference import Reference
from eirkit.lacuna.memories.embeddings import DIMENSIONS, Vectors, embed_ngrams
from eirkit.lacuna.memories.endpoint import LARGEST_BODY, Meter, ModelEndpoint
from eirkit.lacuna.models.model import ModelOptions, Reply, Request, ToolCall, Usage
from tests.processes import PATIENCE_SECONDS

T = TypeVar("T")
HELLO: list[Any] = [{"role": "user", "content": "hello"}]
HI = Reply("hi", usage=Usage(7, 2, cost_usd=0.5))
SINGLE = 1e-6  # vectors travel as 32-bit floats


class Saying(Reference):
    """Says what it was made with, and keeps what it was asked."""

    def __init__(self, reply: Reply | Exception = HI) -> None:
        super().__init__(ModelOptions())
        self.said, self.asked = reply, list[Request]()
        self.closed = False

    async def reply(self, request: Request) -> Reply:
        self.asked.append(request)
        if isinstance(self.said, Exception):
            raise self.said
        return self.said

    async def close(self) -> None:
        self.closed = True


def broken_embedding(texts: Sequence[str]) -> Vectors:
    raise ValueError("no weights")


def serve(model: Saying, use: Callable[[str], T], embedding: Any = embed_ngrams) -> tuple[T, ModelEndpoint]:
    """Return what a user of the endpoint got, and the endpoint, which is stopped by then."""

    async def run() -> tuple[T, ModelEndpoint]:
        endpoint = ModelEndpoint(model, embedding)
        address = await endpoint.start()
        try:
            return await asyncio.to_thread(use, address), endpoint
        finally:
            await endpoint.stop()

    return asyncio.run(run())


def with_client(use: Callable[[openai.OpenAI], T]) -> Callable[[str], T]:
    def called(address: str) -> T:
        with openai.OpenAI(base_url=address, api_key="none") as client:
            return use(client)

    return called


def send(address: str, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, Any]:
    """Send one request by hand to a path below the address, or to any path that begins with a slash."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 0, timeout=PATIENCE_SECONDS)
    try:
        where = path if path.startswith("/") else f"{parts.path}/{path}"
        connection.request(method, where, body, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, json.loads(response.read() or b"null")
    finally:
        connection.close()


# What the real client gets.


def test_the_client_gets_the_models_words_and_they_are_counted():
    model = Saying()

    def ask(client: openai.OpenAI) -> list[Any]:
        return [client.chat.completions.create(model="any", messages=HELLO, max_tokens=9) for _ in range(3)]

    replies, endpoint = serve(model, with_client(ask))
    assert {one.choices[0].message.content for one in replies} == {"hi"}
    assert (replies[0].usage.prompt_tokens, replies[0].usage.total_tokens) == (7, 9)
    assert endpoint.meter == Meter(calls=3, input_tokens=21, output_tokens=6, cost_usd=1.5)
    assert [message.content for message in model.asked[0].messages] == ["hello"]
    assert model.asked[0].max_tokens == 9
    assert model.closed


def test_a_cost_that_nobody_knows_stays_unknown():
    meter = Meter()
    for cost in (0.5, None, 0.5):
        meter.add(Reply("", usage=Usage(1, 1, cost_usd=cost)))
    assert (meter.calls, meter.cost_usd) == (3, None)


def test_a_wanted_schema_comes_last_and_tools_arrive_as_they_are():
    model = Saying(Reply("", (ToolCall("keep", {"what": "A_1"}),)))
    schema = {"type": "object", "properties": {"facts": {"type": "array"}}}
    tool = {"type": "function", "function": {"name": "keep", "parameters": {"type": "object"}}}

    def ask(client: openai.OpenAI) -> Any:
        return client.chat.completions.create(
            model="any",
            messages=[{"role": "developer", "content": "be brief"}, *HELLO],
            response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
            tools=[tool],  # type: ignore[list-item]
        )

    reply, _ = serve(model, with_client(ask))
    choice = reply.choices[0]
    (call,) = choice.message.tool_calls
    assert (choice.finish_reason, call.function.name, json.loads(call.function.arguments)) == (
        "tool_calls",
        "keep",
        {"what": "A_1"},
    )
    asked = model.asked[0]
    assert [message.role for message in asked.messages] == ["system", "user", "system"]
    assert asked.messages[-1].content == f"Reply with one JSON object that fits this schema: {json.dumps(schema)}"
    assert [(one.name, one.parameters) for one in asked.tools] == [("keep", {"type": "object"})]


def test_earlier_calls_and_parts_of_a_message_are_seen():
    model = Saying()
    calls = [{"id": "1", "type": "function", "function": {"name": "keep", "arguments": "{}"}}]
    messages: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "1", "content": "kept"},
    ]
    serve(model, with_client(lambda client: client.chat.completions.create(model="any", messages=messages)))
    assert [(one.role, one.content) for one in model.asked[0].messages] == [
        ("user", "one\ntwo"),
        ("assistant", json.dumps(calls)),
        ("user", "kept"),
    ]


@pytest.mark.parametrize(("reply", "reason"), [(Reply("a", finish="length"), "length"), (Reply("a"), "stop")])
def test_why_a_reply_ended_is_passed_on(reply, reason):
    ask = with_client(lambda client: client.chat.completions.create(model="any", messages=HELLO))
    assert serve(Saying(reply), ask)[0].choices[0].finish_reason == reason


def test_whoever_wants_a_stream_gets_one_and_is_counted_as_well():
    model = Saying(Reply("a b", (ToolCall("keep", {}),), Usage(7, 2)))

    def ask(client: openai.OpenAI) -> list[Any]:
        options: Any = {"include_usage": True}
        return list(client.chat.completions.create(model="any", messages=HELLO, stream=True, stream_options=options))

    parts, endpoint = serve(model, with_client(ask))
    said = parts[0].choices[0].delta
    assert (said.content, said.tool_calls[0].index, said.tool_calls[0].function.name) == ("a b", 0, "keep")
    assert parts[-1].usage.total_tokens == 9
    assert endpoint.meter.calls == 1


def test_vectors_arrive_whole_in_either_encoding():
    texts = ["A_07 = 0042", "", "é"]

    def ask(client: openai.OpenAI) -> list[list[list[float]]]:
        usual = client.embeddings.create(model="any", input=texts)  # the client asks for base64 and unpacks it
        plain = client.embeddings.create(model="any", input=texts, encoding_format="float", dimensions=DIMENSIONS)
        return [[one.embedding for one in found.data] for found in (usual, plain)]

    found, endpoint = serve(Saying(), with_client(ask))
    for vectors in found:
        np.testing.assert_allclose(vectors, embed_ngrams(texts), atol=SINGLE)
    assert (endpoint.meter.embeddings, endpoint.meter.calls) == (6, 0)


def test_base64_is_what_the_client_asks_for_unless_told():
    body = json.dumps({"input": "A_1", "encoding_format": "base64"}).encode()
    (status, document), _ = serve(Saying(), lambda address: send(address, "POST", "embeddings", body))
    assert status == 200
    assert isinstance(document["data"][0]["embedding"], str)


def test_the_one_model_is_listed():
    assert serve(Saying(), with_client(lambda client: [one.id for one in client.models.list()]))[0] == ["eirkit"]


# What fails, and how it is known.


@pytest.mark.parametrize("error", [ModelError("busy", "rate-limit"), ValueError("odd"), ZeroDivisionError()])
def test_a_model_that_raises_is_seen_by_the_client_once_and_by_the_endpoint(error):
    model = Saying(error)

    def ask(client: openai.OpenAI) -> str:
        with pytest.raises(openai.APIStatusError) as caught:
            client.chat.completions.create(model="any", messages=HELLO)
        return f"{caught.value.status_code} {caught.value.message}"

    words, endpoint = serve(model, with_client(ask))
    assert words.startswith("424")
    assert type(error).__name__ in words
    assert len(model.asked) == 1  # the client does not try again what the model has tried already
    failure = endpoint.failure
    assert failure is error or (failure.side == "model" and failure.__cause__ is error)
    assert endpoint.meter.calls == 0
    endpoint.clear()
    assert endpoint.failure is None


def test_an_embedding_that_raises_is_seen_as_well():
    def ask(client: openai.OpenAI) -> None:
        with pytest.raises(openai.APIStatusError, match="ValueError: no weights"):
            client.embeddings.create(model="any", input="A_1")

    assert isinstance(serve(Saying(), with_client(ask), broken_embedding)[1].failure.__cause__, ValueError)


# What nobody should be able to do.


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"7",
        b"\xff\xfe",
        b"[" * 100_000,
        b"{}",
        b'{"messages": []}',
        b'{"messages": "hello"}',
        b'{"messages": [7]}',
        b'{"messages": [{"role": "user", "content": "x"}], "n": 2}',
        b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": "many"}',
        b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": -1}',
        b'{"messages": [{"role": "user", "content": "x"}], "response_format": "json"}',
        b'{"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "web_search"}]}',
        b'{"messages": [{"role": "user", "content": "x"}], "tools": {"a": 1}}',
    ],
)
def test_a_body_that_does_not_fit_is_refused_and_reaches_no_model(body):
    model = Saying()

    def ask(address: str) -> list[int]:
        return [send(address, "POST", "chat/completions", body)[0], send(address, "GET", "models")[0]]

    statuses, endpoint = serve(model, ask)
    assert statuses == [400, 200]  # and the server is well
    assert (model.asked, endpoint.failure, endpoint.meter) == ([], None, Meter())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"input": [[1, 2, 3]]}, "send text, not tokens"),
        ({"input": [1, 2]}, "send text, not tokens"),
        ({"input": []}, "neither a string nor"),
        ({}, "neither a string nor"),
        ({"input": "A_1", "dimensions": 7}, f"has {DIMENSIONS} dimensions, not 7"),
    ],
)
def test_what_cannot_be_embedded_is_refused(body, words):
    status, document = serve(Saying(), lambda at: send(at, "POST", "embeddings", json.dumps(body).encode()))[0]
    assert status == 400
    assert words in document["error"]["message"]


@pytest.mark.parametrize("length", ["", "-1", "x", "1e3", "٣"])
def test_a_body_without_a_length_is_refused(length):
    def ask(address: str) -> bytes:
        parts = urlsplit(address)
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=PATIENCE_SECONDS) as line:
            head = f"POST {parts.path}/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"
            line.sendall(head.encode())
            return line.recv(1 << 16)

    assert serve(Saying(), ask)[0].startswith(b"HTTP/1.1 411")


@pytest.mark.parametrize("length", [str(LARGEST_BODY + 1), "0" * 30 + "9" * 9, "9" * 5000])
def test_a_body_that_is_too_long_is_refused_before_it_is_read(length):
    def ask(address: str) -> tuple[int, Any]:
        return send(address, "POST", "embeddings", b"", Content_Length=length)

    status, document = serve(Saying(), ask)[0]
    assert (status, str(LARGEST_BODY) in document["error"]["message"]) == (413, True)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/chat/completions"),
        ("POST", "/chat/completions"),
        ("POST", "/guess/v1/chat/completions"),
        ("GET", "chat/completions"),
        ("GET", "/"),
        ("POST", "models"),
        ("POST", "chat/completions/"),
        ("POST", "responses"),
    ],
)
def test_every_other_address_is_nobodys(method, path):
    model = Saying()
    body = json.dumps({"messages": HELLO, "input": "A_1"}).encode()
    status, document = serve(model, lambda address: send(address, method, path, body))[0]
    assert (status, list(document), model.asked) == (404, ["error"], [])


@pytest.mark.parametrize("path", ["chat/completions", "v1/chat/completions", "/é/v1/chat/completions"])
def test_the_token_cannot_be_left_out_by_a_path_that_no_client_sends(path):
    model, body = Saying(), json.dumps({"messages": HELLO}).encode()

    def ask(address: str) -> bytes:
        parts = urlsplit(address)
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=PATIENCE_SECONDS) as line:
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            line.sendall(head.encode() + body)
            return line.recv(1 << 16)

    assert serve(model, ask)[0].startswith(b"HTTP/1.1 404")
    assert model.asked == []


def test_it_listens_on_loopback_only_and_not_after_it_is_stopped(capfd):
    def ask(address: str) -> str:
        parts = urlsplit(address)
        line = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=PATIENCE_SECONDS)
        line.close()  # and nothing is said: whoever hangs up is not worth a traceback
        return address

    address, endpoint = serve(Saying(), ask)
    parts = urlsplit(address)
    assert parts.hostname == "127.0.0.1"
    assert len(parts.path.split("/")[1]) >= 20
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", parts.port or 0), timeout=PATIENCE_SECONDS)
    asyncio.run(endpoint.stop())  # twice is no harm
    assert capfd.readouterr().err == ""


def test_many_may_ask_at_once():
    async def run() -> tuple[int, Meter]:
        endpoint = ModelEndpoint(Saying(), embed_ngrams)
        address = await endpoint.start()
        try:
            async with openai.AsyncOpenAI(base_url=address, api_key="none") as client:
                asked = [client.chat.completions.create(model="any", messages=HELLO) for _ in range(24)]
                embedded = [client.embeddings.create(model="any", input=str(i)) for i in range(24)]
                return len(await asyncio.gather(*asked, *embedded)), endpoint.meter
        finally:
            await endpoint.stop()

    answered, meter = asyncio.run(run())
    assert (answered, meter.calls, meter.input_tokens, meter.embeddings) == (48, 24, 168, 24)
