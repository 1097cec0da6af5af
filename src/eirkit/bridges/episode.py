"""One run whose agent comes by itself: replies come in one at a time, what is visible next goes out.

The run is a run like any other: the same session, loop, scoring and records. Only the model is a seat that waits for
what somebody says from outside, so no bridge can show or record anything else than `eirkit lacuna run` does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

from eirkit.errors import InfrastructureError, ModelError
from eirkit.lacuna.model import Reply, Request, ToolCall, Usage
from eirkit.lacuna.stores.pool import Memories
from eirkit.lacuna.sweeps.attempt import Failure, Stage, attempt
from eirkit.lacuna.sweeps.run_store import FinishedRun
from eirkit.lacuna.task import TaskInstance

UNKNOWN = Usage(cost_usd=None)  # what an agent from outside spends is its own affair
LEFT = "(the agent left)"  # the text of the reply that stands for an agent's silent departure

Outcome = FinishedRun | Failure
Keep = Callable[[Outcome], None]


def leave(*, acts: bool) -> Reply:
    """Return what is put down for an agent that went away: DONE where it acts, silence where it only answers."""
    return Reply(LEFT, (ToolCall("done", {}),) if acts else (), UNKNOWN)


class Seat:
    """A model whose replies are handed in from outside."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.clock = clock
        self.request: Request | None = None  # what it was asked and has not answered yet
        self._asked = asyncio.Event()
        self._said: asyncio.Queue[Reply | ModelError] = asyncio.Queue()
        self._since = 0.0

    async def reply(self, request: Request) -> Reply:
        self.request, self._since = request, self.clock()
        self._asked.set()
        said = await self._said.get()
        if isinstance(said, ModelError):
            raise said
        return said

    def say(self, reply: Reply) -> None:
        """Hand in the reply to the current request; the time since it was asked is the reply's latency."""
        self.request = None
        self._asked.clear()
        self._said.put_nowait(replace(reply, latency_seconds=self.clock() - self._since))

    def give_up(self, error: ModelError) -> None:
        """Break the run off: the world failed, not the agent."""
        self._said.put_nowait(error)

    async def asked(self) -> None:
        """Return once there is something to reply to, or the run is over."""
        await self._asked.wait()

    def rise(self) -> None:
        """Let go whoever waits: nothing more will be asked."""
        self.request = None
        self._asked.set()

    async def close(self) -> None:
        pass

    def settings(self) -> Mapping[str, Any]:
        return {}


class Episode:
    """A run in progress. Whoever is cancelled while waiting loses nothing: the next caller finds the run as it is.

    Args:
        stage: the cell and what its runs share; its model is replaced by a seat.
        keep: is told the outcome once, before anybody learns that the run is over.
    """

    def __init__(self, stage: Stage, task: TaskInstance, keep: Keep, clock: Callable[[], float] = perf_counter) -> None:
        self.seat = Seat(clock)
        self.stage, self.task, self.keep = replace(stage, model=self.seat), task, keep
        self.outcome: Outcome | None = None
        self.replies: list[Reply] = []  # in order
        self._turn = asyncio.Lock()
        self._run: asyncio.Task[None] | None = None

    async def look(self) -> Request | None:
        """Return what the agent may see now; None once the run is over."""
        self._begin()
        await self.seat.asked()
        if self._run is not None and self._run.done() and self._run.exception() is not None:
            raise InfrastructureError("the run could not be kept; see the server's messages") from self._run.exception()
        return self.seat.request

    async def act(self, reply: Reply) -> Request | None:
        """Take in one reply and return what the agent may see next; after the end nothing is taken in."""
        async with self._turn:
            if await self.look() is None:
                return None
            self.replies.append(reply)
            self.seat.say(reply)
            return await self.look()

    async def leave(self) -> None:
        """End the run as its agent would have by stopping here; what was not answered is wrong."""
        acts = not self.stage.cell.access.is_controlled
        while await self.act(leave(acts=acts)) is not None:
            pass

    async def stop(self, why: str) -> None:
        """End the run as a failure of the world: it is not scored, and tried again on resume."""
        if await self.look() is not None:
            self.seat.give_up(ModelError(why, "dropped"))
        if self._run is not None:
            await asyncio.wait({self._run})

    def _begin(self) -> None:
        if self._run is None:
            self._run = asyncio.create_task(self._live())

    async def _live(self) -> None:
        memories = Memories()
        try:
            outcome = await attempt(self.stage, self.task, memories)
            self.keep(outcome)
            self.outcome = outcome
        finally:
            self.seat.rise()
            await memories.close()


async def score_of(stage: Stage, task: TaskInstance, replies: list[Reply]) -> Outcome:
    """Return what a run comes to whose agent says this and then leaves; nothing is kept."""
    kept: list[Outcome] = []
    episode = Episode(stage, task, kept.append)
    for reply in replies:
        await episode.act(reply)
    await episode.leave()
    return kept[0]
