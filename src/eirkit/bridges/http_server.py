"""The door of an HTTP server: who may come in, how much they may bring, and when they are taken for gone.

It listens on loopback unless told otherwise. Elsewhere a token is demanded, in the Authorization header or as the first
part of the path. Host and Origin must be names of this server, so that no web page can reach it through a browser.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from eirkit.bridges.mcp_server import LARGEST_REQUEST, SESSION_HEADER
from eirkit.errors import UsageError

SHORTEST_TOKEN = 16  # characters
GRACE_SECONDS = 2  # for requests in progress when the server is told to stop
LOOK_AROUND_SECONDS = 5.0  # how often it is looked who is gone
_UNSUPPORTED_VERSION = -32022

Application = Callable[[Any, Any, Any], Awaitable[None]]
Left = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Door:
    """Where a server listens and whom it lets in.

    Raises:
        UsageError: it would be open to strangers.
    """

    host: str = "127.0.0.1"
    port: int = 0  # 0: any that is free
    token: str | None = None
    names: tuple[str, ...] = ()  # further names by which clients may call this server

    def __post_init__(self) -> None:
        if self.token is not None and (len(self.token) < SHORTEST_TOKEN or not self.token.isalnum()):
            raise UsageError(f"the token is no word of {SHORTEST_TOKEN} or more letters and digits; choose another")
        if self.token is None and not is_loopback(self.host):
            raise UsageError(f"{self.host} can be reached from other machines; give --token, or listen on 127.0.0.1")

    @property
    def hosts(self) -> list[str]:
        own = [self.host] if not is_unspecified(self.host) else []
        names = ["127.0.0.1", "localhost", "[::1]", *(_bracketed(name) for name in (*own, *self.names))]
        return [part for name in names for part in (name, f"{name}:*")]

    @property
    def origins(self) -> list[str]:
        return [f"{scheme}://{host}" for scheme in ("http", "https") for host in self.hosts]

    def bind(self) -> socket.socket:
        """Return the socket, listening."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server((self.host, self.port), family=family, backlog=512)
        except (OSError, OverflowError) as error:
            raise UsageError(f"cannot listen on {self.host}, port {self.port} ({error}); choose others") from error


def is_loopback(host: str) -> bool:
    """True if only this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_unspecified(host: str) -> bool:
    return host in ("", "0.0.0.0", "::")


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name else name


class Guard:
    """An application behind a door: every request is looked at before anything reads it."""

    def __init__(self, inner: Application, door: Door, left: Left) -> None:
        from mcp.server.transport_security import (
            RequestBodyLimitMiddleware,
            TransportSecurityMiddleware,
            TransportSecuritySettings,
        )

        self.inner = RequestBodyLimitMiddleware(inner, LARGEST_REQUEST)
        self.door, self.left = door, left
        settings = TransportSecuritySettings(allowed_hosts=door.hosts, allowed_origins=door.origins)
        self._names = TransportSecurityMiddleware(settings)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        from starlette.requests import Request

        request = Request(scope)
        refusal = await self._names.validate_request(request) or self._refuse(scope, request.headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        if scope["method"] == "DELETE" and (client := request.headers.get(SESSION_HEADER)):
            await self.left(client)  # first: whoever has left finds its run written
        await self.inner(scope, receive, send)

    def _refuse(self, scope: Any, headers: Mapping[str, str]) -> Any:
        """Return the response to somebody without the token, or who cannot hold a conversation; None to go on."""
        from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
        from starlette.responses import Response

        if not self._is_known(scope, headers):
            return Response("a token is needed; ask whoever runs this server\n", 401)
        version = headers.get("mcp-protocol-version", HANDSHAKE_PROTOCOL_VERSIONS[-1])
        if version in HANDSHAKE_PROTOCOL_VERSIONS:
            return None
        # Later versions have no sessions, and a task is a conversation; clients fall back to the handshake.
        data = {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": version[:40]}
        error = {"code": _UNSUPPORTED_VERSION, "message": "a task needs a session; use initialize", "data": data}
        body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error})
        return Response(body, 400, media_type="application/json")

    def _is_known(self, scope: Any, headers: Mapping[str, str]) -> bool:
        """True if no token is needed or the right one is given; one in the path is taken off it."""
        if self.door.token is None:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(given.strip(), self.door.token):
            return True
        first, _, rest = scope["path"].lstrip("/").partition("/")
        if not _same(first, self.door.token):
            return False
        scope["path"] = f"/{rest}"
        scope["raw_path"] = scope["path"].encode()
        return True


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def mcp_application(server: Any, routes: Sequence[Any], idle_seconds: float) -> Application:
    """Return the MCP server at /mcp, with further routes beside it; its door checks names and sizes."""
    application: Application = server.streamable_http_app(
        json_response=True,
        max_request_body_size=LARGEST_REQUEST,
        session_idle_timeout=idle_seconds,
        custom_starlette_routes=list(routes),
        host="",  # the guard has looked at the names already
    )
    return application


async def serve_http(application: Application, listening: socket.socket) -> None:
    """Serve until a signal says stop; whoever called then goes on."""
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # its own way ends the process where a signal found it, with runs not yet written

    config = uvicorn.Config(
        application,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = Server(config)
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: there Ctrl-C interrupts as ever
            asyncio.get_running_loop().add_signal_handler(number, setattr, server, "should_exit", True)
    await server.serve(sockets=[listening])


async def look_around(look: Callable[[], Awaitable[None]], seconds: float = LOOK_AROUND_SECONDS) -> None:
    """Look every few seconds who is gone, for ever."""
    while True:
        await asyncio.sleep(seconds)
        await look()
