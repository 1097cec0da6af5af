"""Who sits at which episode: a client and a call of a tool come in, the text that the client is shown goes out.

Every text is what the session shows, its refusals in the names of tools, or one of a few fixed sentences; nothing else
about a task can get out here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from eirkit.bridges.episode import Episode
from eirkit.bridges.tools import as_reply, explain, in_tools
from eirkit.lacuna.model import Request

OVER = "The task is over. Nothing can be done any more."
SUMMARY_FIRST = "First call note with the action summary and a text; nothing else is done until then."


@dataclass(slots=True)
class _Sitting:
    """One client at its episode."""

    episode: Episode
    last: float  # seconds: when it was last heard of
    greeted: bool = False
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Desk:
    """Gives every client an episode of its own when it first acts.

    Args:
        begin: returns an episode; UsageError where there is none left.
    """

    def __init__(self, begin: Callable[[], Episode], clock: Callable[[], float] = perf_counter) -> None:
        self.begin, self.clock = begin, clock
        self._sittings: dict[str, _Sitting] = {}

    async def call(self, client: str, tool: str, arguments: Mapping[str, Any]) -> str:
        """Carry out one call and return what the client may see."""
        sitting = self._sittings.get(client)
        if sitting is None:
            sitting = self._sittings[client] = _Sitting(self.begin(), self.clock())
        sitting.last = self.clock()
        async with sitting.turn:
            request = await sitting.episode.look()
            shown = OVER if request is None else await self._take(sitting.episode, tool, arguments, request)
            if request is None or sitting.greeted:
                return shown
            sitting.greeted = True
            return f"{explain(request.messages[0].content)}\n\n{shown}"

    async def _take(self, episode: Episode, tool: str, arguments: Mapping[str, Any], request: Request) -> str:
        reply = as_reply(tool, arguments, request)
        if reply is None:
            return f"{in_tools(shown_in(request))}\n{SUMMARY_FIRST}"
        after = await episode.act(reply)
        return OVER if after is None else in_tools(shown_in(after))

    async def leave(self, client: str) -> None:
        """Take a client for gone; its run ends as if it had stopped there."""
        sitting = self._sittings.pop(client, None)
        if sitting is not None:
            await sitting.episode.leave()

    async def leave_all(self) -> None:
        for client in list(self._sittings):
            await self.leave(client)

    async def leave_idle(self, seconds: float) -> None:
        """Take for gone whoever has not been heard of for so long."""
        now = self.clock()
        for client, sitting in list(self._sittings.items()):
            if now - sitting.last >= seconds:
                await self.leave(client)


def shown_in(request: Request) -> str:
    """Return the state in a request, without the rules."""
    return "\n".join(message.content for message in request.messages if message.role != "system")
