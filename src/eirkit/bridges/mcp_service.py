"""Runs the MCP server of `eirkit mcp serve`, over stdio for one client or over HTTP for many."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from eirkit.agents.managed import ManagedSession
from eirkit.agents.model import Request
from eirkit.bridges.external_runs import ClientSessions, ExternalRuns
from eirkit.bridges.http_server import AccessGuard, HttpAccess, mcp_application, repeat, serve_http
from eirkit.bridges.mcp_server import make_server, require_mcp, serve_stdio
from eirkit.runs.sessions import make_session

STOPPED = "the server was stopped before the agent had finished; continue with --resume"


async def serve_one_client(visits: ExternalRuns) -> None:
    """Serve the client that started this process over stdio; its run is scored however it ends."""
    require_mcp()
    sessions = ClientSessions(visits.begin, visits.clock)
    await serve_stdio(make_server(sessions, *introduction(visits)), sessions)


async def serve_many_clients(
    visits: ExternalRuns, door: HttpAccess, idle_seconds: float, announce: Callable[[str], None]
) -> None:
    """Serve over HTTP; clients that leave or become idle are scored, those cut off at shutdown are not.

    Args:
        announce: called with the address once the server listens.
    """
    require_mcp()
    sessions = ClientSessions(visits.begin, visits.clock)
    application = mcp_application(make_server(sessions, *introduction(visits)), (), idle_seconds)
    listening = door.bind()
    announce(address(door, listening.getsockname()[1]))
    looking = asyncio.create_task(repeat(partial(sessions.leave_idle, idle_seconds)))
    try:
        await serve_http(AccessGuard(application, door, sessions.leave), listening)
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
        await visits.stop(STOPPED)


def address(door: HttpAccess, port: int) -> str:
    """Return the URL of the server, without its token."""
    host = f"[{door.host}]" if ":" in door.host else door.host
    return f"http://{host}:{port}/mcp"


def introduction(visits: ExternalRuns) -> tuple[str, tuple[str, ...]]:
    """Return the rules and the commands of the sessions; they are the same for every seed."""
    session = make_session(visits.cell.access, visits.task(0), visits.stage.workload, visits.stage.structure)
    request = session.request()
    rules = request.messages[0].content if isinstance(request, Request) else ""
    return rules, session.commands if isinstance(session, ManagedSession) else ("ANSWER",)
