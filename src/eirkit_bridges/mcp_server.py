"""An MCP server that offers the tools of a task over stdio or HTTP, with checks of every HTTP request.

It has no resources and no prompts. The text of an unexpected error goes to the log, never to the client.

The default address is loopback. Any other needs a token, sent in the Authorization header or as the first part of the
path. Host and Origin must name this server, so that a web page cannot reach it through a browser. A body that is too
large is refused.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from eirkit import __version__
from eirkit.errors import EirkitError, MissingExtraError, UsageError
from eirkit.lacuna.agents.managed import ManagedSession
from eirkit.lacuna.models.model import Request
from eirkit_bridges.episode import explain, tool_listings
from eirkit_bridges.external_runs import ClientSessions, ExternalRuns

LARGEST_REQUEST = 256 * 1024  # bytes of one message; the longest valid one is a summary of 65,536 characters
STDIO_CLIENT = "stdio"
BROKEN = "The server cannot continue this task; tell its operator."
SESSION_HEADER = "mcp-session-id"

_log = logging.getLogger(__name__)
SHORTEST_TOKEN = 16  # characters
GRACE_SECONDS = 2  # for requests in progress at shutdown
IDLE_CHECK_SECONDS = 5.0  # between two checks for idle clients
_UNSUPPORTED_VERSION = -32022

Application = Callable[[Any, Any, Any], Awaitable[None]]
Left = Callable[[str], Awaitable[None]]


def require_mcp() -> None:
    """Raise MissingExtraError unless the MCP library is installed."""
    try:
        import mcp.server.lowlevel  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("the MCP server", "mcp") from error


def make_server(sessions: ClientSessions, rules: str, commands: tuple[str, ...]) -> Any:
    """Return the server; `mcp.server.lowlevel.Server` of the MCP library.

    Args:
        rules: sent to clients as instructions.
        commands: those that the session offers.
    """
    require_mcp()
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

    listed = [
        Tool(name=o.name, description=o.description, input_schema=dict(o.schema)) for o in tool_listings(commands)
    ]

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=listed)

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        text, failed = await _answer(sessions, _client(context), params.name, params.arguments or {})
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)

    return Server(
        "eirkit",
        version=__version__,
        instructions=explain(rules),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _answer(sessions: ClientSessions, client: str, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    try:
        return await sessions.call(client, tool, arguments), False
    except EirkitError as error:
        _log.warning("%s", error)
        return (str(error) if error.exit_code == 2 else BROKEN), True
    except Exception:  # noqa: BLE001 - the library would send the text of any error to the agent
        _log.exception("a call of %s failed", tool[:40])
        return BROKEN, True


def _client(context: Any) -> str:
    """Return the identity of a client: its HTTP session, or a constant over stdio."""
    request = context.request
    return STDIO_CLIENT if request is None else str(request.headers.get(SESSION_HEADER))


async def serve_stdio(server: Any, sessions: ClientSessions) -> None:
    """Serve the client that started this process until it disconnects or SIGTERM arrives."""
    from mcp.server.stdio import stdio_server

    serving = asyncio.current_task()
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):  # Windows, where the process just ends
        loop.add_signal_handler(signal.SIGTERM, serving.cancel if serving else lambda: None)
    try:
        lines: Any = RequestLines(0)  # typed as a file by the library, which only iterates over it
        async with stdio_server(stdin=lines) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    except (asyncio.CancelledError, BrokenPipeError):
        pass
    finally:
        await sessions.leave_all()


class RequestLines:
    """The lines of a file descriptor; one longer than a request may be is replaced by an empty line.

    The library's own reader cannot be cancelled while it waits, and accepts lines of any length.
    """

    def __init__(self, descriptor: int, largest: int = LARGEST_REQUEST) -> None:
        self.descriptor, self.largest = descriptor, largest

    async def __aiter__(self) -> AsyncIterator[str]:
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[str | None](64)
        threading.Thread(target=self._feed, args=(loop, queue), daemon=True).start()
        while (line := await queue.get()) is not None:
            yield line

    def _feed(self, loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[str | None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            for line in self._split():
                asyncio.run_coroutine_threadsafe(queue.put(line), loop).result()
            asyncio.run_coroutine_threadsafe(queue.put(None), loop).result()

    def _split(self) -> Iterator[str]:
        kept, dropping = b"", False
        while part := os.read(self.descriptor, 65_536):
            *ended, kept = (kept + part).split(b"\n")
            for line in ended:
                yield "" if dropping or len(line) > self.largest else line.decode("utf-8", "replace")
                dropping = False
            if len(kept) > self.largest:
                kept, dropping = b"", True
        if kept and not dropping:
            yield kept.decode("utf-8", "replace")


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
            raise UsageError(f"EIRKIT_MCP_TOKEN is not {SHORTEST_TOKEN} or more letters or digits; choose another")
        if self.token is None and not is_loopback(self.host):
            raise UsageError(
                f"{self.host} can be reached from other machines; set EIRKIT_MCP_TOKEN, or use --host 127.0.0.1"
            )

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
    session = runs.stage.family.session(runs.cell.access, runs.task(0), None, None)
    request = session.request()
    rules = request.messages[0].content if isinstance(request, Request) else ""
    return rules, session.commands if isinstance(session, ManagedSession) else ("ANSWER",)
