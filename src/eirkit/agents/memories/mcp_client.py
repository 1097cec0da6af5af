"""Connects with an MCP server, and lets a model keep and consult a memory through its tools, as users of it do.

The server is a set of tools; what is kept is decided by the model that calls them, which is asked through the endpoint.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.request import Request, urlopen

from eirkit.agents.model import Message
from eirkit.errors import StoreError

LEAVE_SECONDS = 5.0
ROUNDS = 12  # of calls, after which a model that does not end is stopped
KEEP = "Keep what the user says in this conversation in your memory, by its tools."
CONSULT = "Look up in your memory, by its tools, what helps to answer this question. Do not answer it."
_SYSTEM = "You have a memory, which you use by tools."

Caller = Callable[[str, dict[str, Any]], Awaitable[list[str]]]


class McpClient:
    """A session over stdio, or over HTTP where a URL is given."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str], url: str = "") -> None:
        self.command, self.variables, self.url = command, variables, url
        self._session: Any = None
        self._task: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()

    async def open(self) -> None:
        """Connect and initialise the session."""
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


class ToolAgent:
    """A model with the tools of a server.

    Args:
        endpoint: base URL of the OpenAI-compatible server that answers.
        tools: as the API describes them.
        call: calls a tool and returns the texts of its result.
    """

    def __init__(self, endpoint: str, tools: Sequence[dict[str, Any]], call: Caller) -> None:
        self.endpoint, self.tools, self.call = endpoint, tools, call

    async def keep(self, messages: Sequence[Message], at: str) -> None:
        """Let the model store what it finds worth keeping."""
        said = "\n".join(f"{one.role}: {one.content}" for one in messages)
        await self.work(f"{KEEP}\n\n{said}", at)

    async def consult(self, question: str, at: str) -> list[str]:
        """Return what the model read in the memory to answer a question, each text once."""
        read = await self.work(f"{CONSULT}\n\nQuestion: {question}", at)
        return list(dict.fromkeys(text for one in read for text in nodes_of(one)))

    async def work(self, task: str, at: str) -> list[str]:
        """Return the results of the calls that the model makes for a task.

        Raises:
            StoreError: it does not end.
        """
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": f"{_SYSTEM} Today is {at}." if at else _SYSTEM},
            {"role": "user", "content": task},
        ]
        found: list[str] = []
        for _ in range(ROUNDS):
            said = await asyncio.to_thread(self._ask, messages)
            calls = said.get("tool_calls") or []
            if not calls:
                return found
            messages.append(said)
            for one in calls:
                result = "\n".join(await self._result(one["function"]))
                found.append(result)
                messages.append({"role": "tool", "tool_call_id": one["id"], "content": result})
        raise StoreError(
            f"the model called tools {ROUNDS} times in a row without an end; give the memory another model"
        )

    async def _result(self, function: dict[str, Any]) -> list[str]:
        try:
            known = [tool["function"]["name"] for tool in self.tools]
            if function["name"] not in known:
                raise StoreError(f"there is no tool {function['name']!r}; call {' or '.join(known)}")
            arguments = json.loads(function["arguments"] or "{}")
            if not isinstance(arguments, dict) or "" in arguments:  # how `ToolCall` keeps what is no object
                raise StoreError("the arguments are no JSON object; give one, such as {}")
            return await self.call(function["name"], arguments)
        except (StoreError, ValueError, RecursionError) as error:  # a wrong call is the model's to correct
            return [f"error: {error}"]

    def _ask(self, messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
        body = json.dumps({"model": "eirkit", "messages": messages, "tools": list(self.tools)}).encode()
        asked = Request(f"{self.endpoint}/chat/completions", body, {"Content-Type": "application/json"})
        with urlopen(asked) as answer:  # the endpoint is ours, on loopback
            said: dict[str, Any] = json.load(answer)["choices"][0]["message"]
        return said


def nodes_of(result: str) -> Iterator[str]:
    """Yield the nodes of a graph as texts, one line for each observation; any other result as it is."""
    try:
        found = json.loads(result)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("entities"), list):
        yield result
        return
    for one in found["entities"]:
        yield "\n".join([f"{one['name']} ({one['entityType']}):", *map(str, one["observations"])])
