"""Connects with an MCP server over stdio or HTTP, and calls its tools."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from eirkit.errors import StoreError

LEAVE_SECONDS = 5.0


class McpClient:
    """A session over stdio, or over HTTP where a URL is given."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str], url: str = "") -> None:
        self.command, self.variables, self.url = command, variables, url
        self._session: Any = None
        self._task: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()

    async def open(self) -> None:
        """Connect and initialize the session."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._leave = asyncio.Event()
        self._task = asyncio.create_task(self._live(ready))
        await asyncio.wait({ready, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            error = self._task.exception()
            raise StoreError(f"the MCP server did not start ({_innermost(error)}); check its command") from error

    async def close(self) -> None:
        """Disconnect, at the latest after a time limit."""
        task, self._task, self._session = self._task, None, None
        self._leave.set()
        if task is not None:
            await asyncio.wait({task}, timeout=LEAVE_SECONDS)
            task.cancel()
            with suppress(Exception, asyncio.CancelledError):  # the server may have died
                await task

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> list[str]:
        """Return the texts of a tool's result."""
        if self._session is None or self._task is None or self._task.done():
            raise StoreError("the MCP server is not running; restart it and resume")
        asking = asyncio.ensure_future(self._session.call_tool(tool, dict(arguments)))
        await asyncio.wait({asking, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if not asking.done():
            asking.cancel()
            raise StoreError(f"the MCP server ended during {tool}; fix it and resume")
        if (error := asking.exception()) is not None:
            raise StoreError(f"the MCP server failed at {tool} ({_innermost(error)}); fix it and resume") from error
        result = asking.result()
        texts = [str(part.text) for part in result.content if getattr(part, "type", "") == "text"]
        if result.is_error:
            raise StoreError(f"the MCP server refused {tool} ({' '.join(texts)[:300]}); check its settings")
        return texts

    async def tools(self) -> list[dict[str, Any]]:
        """Return the tools of the server as chat completions describe them."""
        listed = (await self._session.list_tools()).tools
        return [
            {
                "type": "function",
                "function": {"name": one.name, "description": one.description or "", "parameters": one.input_schema},
            }
            for one in listed
        ]

    async def _live(self, ready: asyncio.Future[None]) -> None:
        from mcp import ClientSession

        async with self._streams() as streams, ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            self._session = session
            ready.set_result(None)
            await self._leave.wait()

    def _streams(self) -> Any:
        if self.url:
            from mcp.client.streamable_http import streamable_http_client

            return streamable_http_client(self.url)
        from mcp import StdioServerParameters
        from mcp.client.stdio import stdio_client

        command, *arguments = self.command
        return stdio_client(StdioServerParameters(command=command, args=arguments, env=dict(self.variables)))


def _innermost(error: BaseException | None) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if error is not None else "no reason given"
