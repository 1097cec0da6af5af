"""The tools of a task as an MCP server, over the standard streams: a desk comes in, protocol messages go in and out.

There are no resources and no prompts, and an unforeseen error is told to the operator's log and to nobody else.
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
from eirkit.bridges.episode import explain, offers
from eirkit.bridges.external_runs import ClientSessions
from eirkit.errors import EirkitError, MissingExtraError

LARGEST_REQUEST = 256 * 1024  # bytes of one message; the longest honest one is a summary of 65,536 characters
STDIO_CLIENT = "stdio"
BROKEN = "The server cannot go on with this task; tell whoever runs it."
SESSION_HEADER = "mcp-session-id"

_log = logging.getLogger(__name__)


def require_mcp() -> None:
    """Raise MissingExtraError unless the MCP library is installed."""
    try:
        import mcp.server.lowlevel  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("the MCP server", "mcp") from error


def make_server(desk: ClientSessions, rules: str, commands: tuple[str, ...]) -> Any:
    """Return the server; `mcp.server.lowlevel.Server` of the MCP library.

    Args:
        rules: what an agent is told before anything else.
        commands: what the session offers.
    """
    require_mcp()
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

    listed = [Tool(name=o.name, description=o.description, input_schema=dict(o.schema)) for o in offers(commands)]

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=listed)

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        text, failed = await _answer(desk, _client(context), params.name, params.arguments or {})
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)

    return Server(
        "eirkit",
        version=__version__,
        instructions=explain(rules),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _answer(desk: ClientSessions, client: str, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    try:
        return await desk.call(client, tool, arguments), False
    except EirkitError as error:
        _log.warning("%s", error)
        return (str(error) if error.exit_code == 2 else BROKEN), True
    except Exception:  # noqa: BLE001 - the library would send an agent the words of any error
        _log.exception("a call of %s failed", tool[:40])
        return BROKEN, True


def _client(context: Any) -> str:
    """Return what tells one client from another: its session over HTTP, and over stdio there is only one."""
    request = context.request
    return STDIO_CLIENT if request is None else str(request.headers.get(SESSION_HEADER))


async def serve_stdio(server: Any, desk: ClientSessions) -> None:
    """Serve whoever started this process until it leaves; a signal to end counts as leaving."""
    from mcp.server.stdio import stdio_server

    serving = asyncio.current_task()
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):  # Windows: there the process just ends
        loop.add_signal_handler(signal.SIGTERM, serving.cancel if serving else lambda: None)
    try:
        lines: Any = RequestLines(0)  # the library asks for a file of its own making and uses it as an iterator
        async with stdio_server(stdin=lines) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    except (asyncio.CancelledError, BrokenPipeError):
        pass
    finally:
        await desk.leave_all()


class RequestLines:
    """The lines of a descriptor as they come, none longer than a request may be; a longer one is cut to nothing.

    The library's own reader cannot be cancelled while it waits, and takes lines of any length.
    """

    def __init__(self, descriptor: int, largest: int = LARGEST_REQUEST) -> None:
        self.descriptor, self.largest = descriptor, largest

    async def __aiter__(self) -> AsyncIterator[str]:
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[str | None](64)
        threading.Thread(target=self._feed, args=(loop, queue), daemon=True).start()
        while (line := await queue.get()) is not None:
            yield line

    def _feed(self, loop: asyncio.AbstractEventLoop, queue: asyncio.Queue[str | None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody listens any more
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
