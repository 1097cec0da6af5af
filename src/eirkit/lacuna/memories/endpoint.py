"""An OpenAI-compatible server on loopback for memory systems that call a model; counts and reports their usage.

Memory systems get its URL instead of a vendor's, so that their calls, tokens and costs are known. It listens on
127.0.0.1 only, under an unguessable path.

If that model fails, the run fails, even if the system swallows the error: what it stores or finds without its model is
not what is being measured.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

from eirkit.errors import ModelError, PluginError, StoreError
from eirkit.lacuna.memories.embeddings import Embedding, Vectors
from eirkit.lacuna.memories.memory import Item, MemorySystem, MemoryUsage
from eirkit.lacuna.memories.openai_dialect import (
    RefusedRequest,
    chunks,
    completion,
    embeddings,
    model_list,
    read_request,
    read_texts,
)
from eirkit.lacuna.models.ledger import PAYER, Payer
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import Model, Reply, Request, ask_model, close_model
from eirkit.records.money import MEMORY, exact_sum
from eirkit.registry import call

LARGEST_BODY = 1 << 24  # bytes of one request
FAILED = 424  # status if the model failed; clients do not retry it, because the model was already retried
Served = Mapping[str, Any] | list[dict[str, Any]]  # a document, or those of a stream


@dataclass(slots=True)
class Meter:
    """Usage since the last reset."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    embeddings: int = 0  # texts

    def add(self, reply: Reply) -> None:
        usage = reply.usage
        self.calls += 1
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.cost_usd = exact_sum((self.cost_usd, usage.cost_usd))


class ModelEndpoint:
    """Serves chat completions from a model and embeddings from a function; `start` returns its base URL.

    Errors of the model or the embedding are kept in `failure`, because a memory system may swallow them.
    """

    def __init__(self, model: Model, embedding: Embedding) -> None:
        self.model, self.embedding = model, embedding
        self.meter = Meter()
        self.failure: Exception | None = None
        self.payer: Payer | None = None  # on whose account the model is asked
        self._lock = threading.Lock()  # embeddings and the meter are not thread-safe
        self._token = secrets.token_urlsafe(16)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: ThreadingHTTPServer | None = None

    async def start(self) -> str:
        self._loop = asyncio.get_running_loop()
        self._server = _Server(self)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_address[1]}/{self._token}/v1"

    async def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(server.shutdown)
            server.server_close()
            await close_model(self.model)

    def clear(self) -> None:
        """Reset the meter."""
        with self._lock:
            self.meter, self.failure = Meter(), None

    def answer(self, method: str, path: str, body: Mapping[str, Any]) -> Served:
        """Return the response to one request; called from other threads.

        Raises:
            RefusedRequest: the path is unknown, the body is invalid, or the model failed.
        """
        token, _, verb = path.partition("?")[0].removeprefix("/").partition("/v1/")
        if self._server is None or not secrets.compare_digest(token.encode("utf-8", "replace"), self._token.encode()):
            raise RefusedRequest(404, "unknown path")
        if (method, verb) == ("POST", "chat/completions"):
            return self._complete(body)
        if (method, verb) == ("POST", "embeddings"):
            return embeddings(body, self._embed(read_texts(body)))
        if (method, verb) == ("GET", "models"):
            return model_list()
        raise RefusedRequest(404, "unknown path; use POST chat/completions, POST embeddings or GET models")

    def _complete(self, body: Mapping[str, Any]) -> Served:
        reply = self._ask(read_request(body))
        with self._lock:
            self.meter.add(reply)
        if not body.get("stream"):
            return completion(reply)
        options = body.get("stream_options")
        return list(chunks(reply, isinstance(options, Mapping) and bool(options.get("include_usage"))))

    def _ask(self, request: Request) -> Reply:
        assert self._loop is not None
        try:
            return asyncio.run_coroutine_threadsafe(self._paid(request), self._loop).result()
        except Exception as error:
            raise self._failed(error) from error

    async def _paid(self, request: Request) -> Reply:
        PAYER.set(self.payer)  # in this task only, which belongs to no run by itself
        return await ask_model(self.model, request)

    def _embed(self, texts: list[str]) -> Vectors:
        try:
            with self._lock:
                self.meter.embeddings += len(texts)
                return call("model", self.embedding, texts)
        except Exception as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> RefusedRequest:
        self.failure = self.failure or error
        said = error.reason if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
        return RefusedRequest(FAILED, said)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, endpoint: ModelEndpoint) -> None:
        self.endpoint = endpoint
        super().__init__(("127.0.0.1", 0), _Serving)

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client disconnected; errors of the model are in `failure`


class _Serving(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # header and body are two writes, and delayed acknowledgements would slow them down

    def do_GET(self) -> None:
        self._respond("GET", {})

    def do_POST(self) -> None:
        try:
            body = self._body()
        except RefusedRequest as refused:
            self.close_connection = True  # the rest of the body must not be parsed as the next request
            self._refuse(refused)
        else:
            self._respond("POST", body)

    def _body(self) -> Mapping[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise RefusedRequest(411, "Content-Length is missing; send it")
        if len(length) > 20 or int(length) > LARGEST_BODY:
            raise RefusedRequest(413, f"the body is too large; send at most {LARGEST_BODY} bytes")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError) as error:
            raise RefusedRequest(400, "the body is not JSON; send a JSON object") from error
        if not isinstance(body, dict):
            raise RefusedRequest(400, "the body is not a JSON object; send one")
        return body

    def _respond(self, method: str, body: Mapping[str, Any]) -> None:
        try:
            served = self.server.endpoint.answer(method, self.path, body)
        except RefusedRequest as refused:
            self._refuse(refused)
            return
        if isinstance(served, list):
            self._send(200, _stream(served), "text/event-stream")
        else:
            self._send(200, json.dumps(served).encode())

    def _refuse(self, refused: RefusedRequest) -> None:
        error = {"message": str(refused), "type": "refused", "param": None, "code": None}
        self._send(refused.status, json.dumps({"error": error}).encode())

    def _send(self, status: int, payload: bytes, kind: str = "application/json") -> None:
        with suppress(ConnectionError):  # the client may have disconnected
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass  # requests are counted, not printed


def _stream(documents: Iterable[Mapping[str, Any]]) -> bytes:
    lines = [f"data: {json.dumps(document)}\n\n" for document in documents]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


T = TypeVar("T")


class MeteredMemory(MemorySystem):
    """A memory system with its own metered endpoint; it is made once the URL is known.

    Args:
        make: takes the base URL and returns the system.
    """

    def __init__(self, endpoint: ModelEndpoint, make: Callable[[str], MemorySystem]) -> None:
        self.endpoint, self.make = endpoint, make
        self._system: MemorySystem | None = None

    @property
    def system(self) -> MemorySystem:
        if self._system is None:
            raise StoreError("the memory system is not set up; call setup first")
        return self._system

    async def setup(self) -> None:
        self._system = self.make(await self.endpoint.start())
        await self._through(self._system.setup())

    async def reset(self, scope: str) -> None:
        self.endpoint.clear()
        await self._through(self.system.reset(scope))
        self.endpoint.clear()  # calls that emptied the previous scope do not belong to this run

    async def write(self, item: Item) -> None:
        await self._through(self.system.write(item))

    async def flush(self) -> None:
        await self._through(self.system.flush())

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return await self._through(self.system.search(query, limit))

    async def read(self, label: str) -> str | None:
        return await self._through(self.system.read(label))

    async def observe(self, messages: Sequence[Message], session: str, at: str) -> None:
        await self._through(self.system.observe(messages, session, at))

    async def recall(self, question: str, at: str, limit: int) -> Sequence[str]:
        return await self._through(self.system.recall(question, at, limit))

    async def contents(self) -> Sequence[str] | None:
        return await self._through(self.system.contents())

    async def forget(self, label: str) -> None:
        await self._through(self.system.forget(label))

    async def usage(self) -> MemoryUsage:
        meter = self.endpoint.meter
        held: MemoryUsage | None = await self._through(self.system.usage())
        return replace(
            held or MemoryUsage(),
            model_calls=meter.calls,
            input_tokens=meter.input_tokens,
            output_tokens=meter.output_tokens,
            cost_usd=meter.cost_usd,
        )

    async def teardown(self) -> None:
        system, self._system = self._system, None
        try:
            if system is not None:
                await system.teardown()
        finally:
            await self.endpoint.stop()

    async def _through(self, work: Awaitable[T]) -> T:
        """Return the result of a call; a failure of the model behind the endpoint is raised instead of it."""
        if (payer := PAYER.get()) is not None:
            self.endpoint.payer = replace(payer, by=MEMORY)
        try:
            done = await work
        except Exception as error:
            self._raise_failure(error)
            raise
        self._raise_failure(None)
        return done

    def _raise_failure(self, consequence: Exception | None) -> None:
        failure, self.endpoint.failure = self.endpoint.failure, None
        if isinstance(failure, ModelError):
            words = f"the model that the memory system asks: {failure}"
            raise ModelError(words, failure.kind, failure.retry_after_seconds) from failure
        if failure is not None:
            raise failure from consequence
