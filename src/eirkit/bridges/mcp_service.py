"""Serves the visits of one cell over MCP, on the standard streams or over HTTP, until the last client or the operator
leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from eirkit.agents.managed import ManagedSession
from eirkit.agents.model import Request
from eirkit.bridges.external_runs import ClientSessions, Visits
from eirkit.bridges.http_server import Door, Guard, look_around, mcp_application, serve_http
from eirkit.bridges.mcp_server import make_server, require_mcp, serve_stdio
from eirkit.runs.sessions import make_session

STOPPED = "the server was stopped before the agent had finished; go on with --resume"


async def receive_here(visits: Visits) -> None:
    """Serve whoever started this process; its run is scored however it leaves."""
    require_mcp()
    desk = ClientSessions(visits.begin, visits.clock)
    await serve_stdio(make_server(desk, *introduction(visits)), desk)


async def receive_at(visits: Visits, door: Door, idle_seconds: float, announce: Callable[[str], None]) -> None:
    """Serve over HTTP; a client that leaves or falls silent is scored, one that the operator cuts off is not.

    Args:
        announce: is told the address once somebody can come.
    """
    require_mcp()
    desk = ClientSessions(visits.begin, visits.clock)
    application = mcp_application(make_server(desk, *introduction(visits)), (), idle_seconds)
    listening = door.bind()
    announce(address(door, listening.getsockname()[1]))
    looking = asyncio.create_task(look_around(partial(desk.leave_idle, idle_seconds)))
    try:
        await serve_http(Guard(application, door, desk.leave), listening)
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
        await visits.stop(STOPPED)


def address(door: Door, port: int) -> str:
    """Return where clients find the server, without its token."""
    host = f"[{door.host}]" if ":" in door.host else door.host
    return f"http://{host}:{port}/mcp"


def introduction(visits: Visits) -> tuple[str, tuple[str, ...]]:
    """Return the rules and the commands of the sessions to come; they are the same for every seed."""
    session = make_session(visits.cell.access, visits.task(0), visits.stage.workload, visits.stage.structure)
    request = session.request()
    rules = request.messages[0].content if isinstance(request, Request) else ""
    return rules, session.commands if isinstance(session, ManagedSession) else ("ANSWER",)
