"""Lets a model keep and consult a memory through tools, as users of such a memory do.

What is kept is decided by the model that calls the tools, which is asked through the endpoint.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any
from urllib.request import Request, urlopen

from eirkit.errors import StoreError
from eirkit.lacuna.models.message import Message

ROUNDS = 12  # of calls, after which a model that does not end is stopped
KEEP = "Keep what the user says in this conversation in your memory, by its tools."
CONSULT = "Look up in your memory, by its tools, what helps to answer this question. Do not answer it."
_SYSTEM = "You have a memory, which you use by tools."

Caller = Callable[[str, dict[str, Any]], Awaitable[list[str]]]


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
