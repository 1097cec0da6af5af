"""A chat-completions server on loopback that logs what it was sent and what it returned."""

from __future__ import annotations

import asyncio
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

PATH = "/chat/completions"
CHARACTERS_PER_TOKEN = 4  # how this server counts; it reports what it counted
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 429: "Too Many Requests", 500: "Internal Server Error"}


@dataclass(frozen=True, slots=True)
class Said:
    """One answer of the server: a message with its finish reason, or an error status."""

    content: str | None = ""
    finish: str = "stop"
    reasoning: str = ""  # returned apart, as `reasoning_content`
    reasoning_apart: bool = False  # counted in the total of the tokens and not among those of the completion
    refusal: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()  # tools called: name and arguments
    status: int = 200
    error: str = ""  # the message of an error status
    headers: tuple[tuple[str, str], ...] = ()
    delay_seconds: float = 0.0
    drip_bytes: int = 0  # the body is written in pieces of so many bytes; 0: at once
    usage: bool = True  # whether token counts are reported

    @property
    def tokens(self) -> int:
        """Tokens of the reply as this server counts them, reasoning included."""
        called = sum(len(json.dumps(arguments)) for _, arguments in self.calls)
        return -(-(len(self.content or "") + len(self.reasoning) + called) // CHARACTERS_PER_TOKEN)

    def body(self, input_tokens: int) -> dict[str, Any]:
        """Return the document that a client receives."""
        if self.status != 200:
            return {"error": {"message": self.error, "type": "planted", "param": None, "code": None}}
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.refusal:
            message["refusal"] = self.refusal
        if self.calls:
            message["tool_calls"] = [
                {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
                for i, (name, arguments) in enumerate(self.calls)
            ]
        choice = {"index": 0, "finish_reason": self.finish, "message": message}
        document = {"id": "planted", "object": "chat.completion", "created": 1, "model": "planted", "choices": [choice]}
        if self.usage:
            reasoned = -(-len(self.reasoning) // CHARACTERS_PER_TOKEN)
            document["usage"] = {
                "prompt_tokens": input_tokens,
                "completion_tokens": self.tokens - reasoned if self.reasoning_apart else self.tokens,
                "total_tokens": input_tokens + self.tokens,
                "completion_tokens_details": {"reasoning_tokens": reasoned},
            }
        return document


@dataclass(frozen=True, slots=True)
class Served:
    """One request and the answer to it."""

    body: Mapping[str, Any]
    said: Said
    input_tokens: int


Script = Callable[[Mapping[str, Any]], Said]


@dataclass(slots=True)
class LoopbackHttp(ABC):
    """An HTTP server on loopback, in a thread of its own; use it in a with statement. Subclasses define `exchange`."""

    _thread: threading.Thread | None = field(default=None, kw_only=True)
    _stop: Callable[[], object] = field(default=lambda: None, kw_only=True)  # replaced once the server runs
    _port: int = field(default=0, kw_only=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> Self:
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(started)), daemon=True)
        self._thread.start()
        started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        if self._thread is not None:
            self._thread.join()

    async def _serve(self, started: threading.Event) -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        self._stop = lambda: loop.call_soon_threadsafe(stop.set)
        server = await asyncio.start_server(self._converse, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        started.set()
        await stop.wait()
        server.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self.exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client left, or the test is over
        finally:
            writer.transport.abort()

    @abstractmethod
    async def exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether another one may follow on this connection."""


async def read_request(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    """Return the path, the headers and the body of the next request on a connection."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return head[0].split()[1], headers, await reader.readexactly(int(headers.get("content-length", "0")))


@dataclass(slots=True)
class LoopbackServer(LoopbackHttp):
    """Answers requests by a script and keeps a log of them."""

    script: Script
    log: list[Served] = field(default_factory=list)

    async def exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        path, _, raw = await read_request(reader)
        if not path.endswith(PATH) or not raw:
            said, body, counted = Said(status=404, error=f"nothing at {path}"), {}, 0
        else:
            body = json.loads(raw)
            said = self.script(body)
            counted = -(-sum(len(str(one.get("content"))) for one in body["messages"]) // CHARACTERS_PER_TOKEN)
            self.log.append(Served(body, said, counted))
        await asyncio.sleep(said.delay_seconds)
        text = json.dumps(said.body(counted)).encode()
        given = (("Content-Type", "application/json"), ("Content-Length", str(len(text))), *said.headers)
        lines = [f"HTTP/1.1 {said.status} {_REASONS.get(said.status, 'Status')}", *(f"{n}: {v}" for n, v in given)]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        piece = said.drip_bytes or len(text)
        for start in range(0, len(text), piece):
            writer.write(text[start : start + piece])
            await writer.drain()
            if said.drip_bytes:
                await asyncio.sleep(0)
        return True
