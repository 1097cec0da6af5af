"""Serves MCP over stdio or HTTP, with checks of token, Host, Origin and body size before every request.

The default address is loopback. Any other needs a token, sent in the Authorization header or as the first part of the
path. Host and Origin must name this server, so that a web page cannot reach it through a browser.
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
from functools import partial
from typing import Any

from eirkit.agents.managed import ManagedSession
from eirkit.agents.model import Request
from eirkit.bridges.external_runs import ClientSessions, ExternalRuns
from eirkit.bridges.mcp_server import LARGEST_REQUEST, SESSION_HEADER, make_server, require_mcp, serve_stdio
from eirkit.errors import UsageError
from eirkit.runs.sessions import make_session

SHORTEST_TOKEN = 16  # characters
GRACE_SECONDS = 2  # for requests in progress at shutdown
IDLE_CHECK_SECONDS = 5.0  # between two checks for idle clients
_UNSUPPORTED_VERSION = -32022

Application = Callable[[Any, Any, Any], Awaitable[None]]
Left = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class HttpAccess:
    """The address of a server, its token and the names it answers to.

    Raises:
        UsageError: other machines could reach it without a token.
    """

    host: str = "127.0.0.1"
    port: int = 0  # 0: any free port
    token: str | None = None
    names: tuple[str, ...] = ()  # further names by which clients may call this server

    def __post_init__(self) -> None:
        if self.token is not None and (len(self.token) < SHORTEST_TOKEN or not self.token.isalnum()):
            raise UsageError(f"token must be {SHORTEST_TOKEN} or more letters or digits; choose another --token")
        if self.token is None and not is_loopback(self.host):
            raise UsageError(f"{self.host} can be reached from other machines; give --token, or use --host 127.0.0.1")

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
            raise UsageError(
                f"cannot listen on {self.host}, port {self.port} ({error}); choose another --host or --port"
            ) from error


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address."""
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


class AccessGuard:
    """Middleware that checks every request before the application reads it."""

    def __init__(self, inner: Application, access: HttpAccess, left: Left) -> None:
        from mcp.server.transport_security import (
            RequestBodyLimitMiddleware,
            TransportSecurityMiddleware,
            TransportSecuritySettings,
        )

        self.inner = RequestBodyLimitMiddleware(inner, LARGEST_REQUEST)
        self.access, self.left = access, left
        settings = TransportSecuritySettings(allowed_hosts=access.hosts, allowed_origins=access.origins)
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
            await self.left(client)  # before the response, so that the client finds its run stored
        await self.inner(scope, receive, send)

    def _refuse(self, scope: Any, headers: Mapping[str, str]) -> Any:
        """Return the response to a request without the token or with an unsupported protocol version; else None."""
        from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
        from starlette.responses import Response

        if not self._is_known(scope, headers):
            return Response("this server requires a token; ask its operator for one\n", 401)
        version = headers.get("mcp-protocol-version", HANDSHAKE_PROTOCOL_VERSIONS[-1])
        if version in HANDSHAKE_PROTOCOL_VERSIONS:
            return None
        # Later versions have no sessions, which a task needs; clients fall back to the handshake.
        data = {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": version[:40]}
        error = {"code": _UNSUPPORTED_VERSION, "message": "a task needs a session; call initialize first", "data": data}
        body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error})
        return Response(body, 400, media_type="application/json")

    def _is_known(self, scope: Any, headers: Mapping[str, str]) -> bool:
        """Return whether no token is needed or the right one is given; a token in the path is removed from it."""
        if self.access.token is None:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(given.strip(), self.access.token):
            return True
        first, _, rest = scope["path"].lstrip("/").partition("/")
        if not _same(first, self.access.token):
            return False
        scope["path"] = f"/{rest}"
        scope["raw_path"] = scope["path"].encode()
        return True


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def mcp_application(server: Any, routes: Sequence[Any], idle_seconds: float) -> Application:
    """Return an application with the MCP server at /mcp and further routes."""
    application: Application = server.streamable_http_app(
        json_response=True,
        max_request_body_size=LARGEST_REQUEST,
        session_idle_timeout=idle_seconds,
        custom_starlette_routes=list(routes),
        host="",  # AccessGuard checks the names
    )
    return application


async def serve_http(application: Application, listening: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM, then return to the caller."""
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield  # uvicorn's handler re-raises the signal, which would end the process before runs are written

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
        with suppress(NotImplementedError):  # Windows, where Ctrl-C raises KeyboardInterrupt as usual
            asyncio.get_running_loop().add_signal_handler(number, setattr, server, "should_exit", True)
    await server.serve(sockets=[listening])


async def repeat(check: Callable[[], Awaitable[None]], seconds: float = IDLE_CHECK_SECONDS) -> None:
    """Await `check` every few seconds until cancelled."""
    while True:
        await asyncio.sleep(seconds)
        await check()


STOPPED = "the server was stopped before the agent had finished; continue with --resume"


async def serve_one_client(runs: ExternalRuns) -> None:
    """Serve the client that started this process over stdio; its run is scored however it ends."""
    require_mcp()
    sessions = ClientSessions(runs.begin, runs.clock)
    await serve_stdio(make_server(sessions, *introduction(runs)), sessions)


async def serve_many_clients(
    runs: ExternalRuns, access: HttpAccess, idle_seconds: float, announce: Callable[[str], None]
) -> None:
    """Serve over HTTP; clients that leave or become idle are scored, those cut off at shutdown are not.

    Args:
        announce: called with the address once the server listens.
    """
    require_mcp()
    sessions = ClientSessions(runs.begin, runs.clock)
    application = mcp_application(make_server(sessions, *introduction(runs)), (), idle_seconds)
    listening = access.bind()
    announce(address(access, listening.getsockname()[1]))
    looking = asyncio.create_task(repeat(partial(sessions.leave_idle, idle_seconds)))
    try:
        await serve_http(AccessGuard(application, access, sessions.leave), listening)
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
        await runs.stop(STOPPED)


def address(access: HttpAccess, port: int) -> str:
    """Return the URL of the server, without its token."""
    host = f"[{access.host}]" if ":" in access.host else access.host
    return f"http://{host}:{port}/mcp"


def introduction(runs: ExternalRuns) -> tuple[str, tuple[str, ...]]:
    """Return the rules and the commands of the sessions; they are the same for every seed."""
    session = make_session(runs.cell.access, runs.task(0), runs.stage.workload, runs.stage.structure)
    request = session.request()
    rules = request.messages[0].content if isinstance(request, Request) else ""
    return rules, session.commands if isinstance(session, ManagedSession) else ("ANSWER",)
