"""An MCP server that offers the tools of a task, and its transport over stdio.

It has no resources and no prompts. The text of an unexpected error goes to the log, never to the client.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

from eirkit import __version__
from eirkit.bridges.episode import explain, tool_listings
from eirkit.bridges.external_runs import ClientSessions
from eirkit.errors import EirkitError, MissingExtraError

LARGEST_REQUEST = 256 * 1024  # bytes of one message; the longest valid one is a summary of 65,536 characters
STDIO_CLIENT = "stdio"
BROKEN = "The server cannot continue this task; tell its operator."
SESSION_HEADER = "mcp-session-id"

_log = logging.getLogger(__name__)


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
