"""The runs of one cell whose agents come by themselves: a suite and a folder come in, episodes go out, one a seed.

The folder is that of any sweep; `eirkit lacuna run --resume`, reports and VESTIGE read it. Seeds are drawn at random
unless given, so that knowing eirkit is no way to know a task.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from eirkit.agents.model import Request
from eirkit.agents.serving.scrubbing import Scrubber
from eirkit.bridges.episode import Episode, Outcome, Seat, as_reply, explain, in_tools
from eirkit.errors import UsageError
from eirkit.runs.attempt import Failure
from eirkit.runs.cells import CONTROLLED, Cell
from eirkit.runs.manifest import SystemMessages, describe, read_manifest, refuse_drift
from eirkit.runs.store import RunStore, is_untouched
from eirkit.runs.suite import Suite, load_suite, read_suite
from eirkit.runs.summary import RunSummary, summarise
from eirkit.runs.sweep import recorded_suite
from eirkit.runs.workers import Share, stage_of
from eirkit.tasks.generation import generate
from eirkit.tasks.task import TaskInstance

MODEL = "agent/visitor"
CONDITION = "kv"  # a memory of h records that the agent looks after itself

Report = Callable[[Outcome], None]


def report_nothing(outcome: Outcome) -> None:
    """The listener of those who read the folder afterwards."""


def plan_visits(given: Mapping[str, Any], path: Path | None = None, seeds: Sequence[int] | None = None) -> Suite:
    """Return the suite of a suite file, of given keys, or of both, with what visitors need in place of what is missing.

    Args:
        seeds: used where neither says which.
    """
    keys = dict(given)
    if path is None and "condition" not in keys and "memory" not in keys:
        keys["condition"] = CONDITION
    if path is None and "model" not in keys:
        keys["model"] = MODEL
    if path is None and "seeds" not in keys and seeds is not None:
        keys["seeds"] = list(seeds)
    return read_suite(keys) if path is None else load_suite(path, keys)


def only_cell(suite: Suite) -> tuple[Cell, Sequence[int]]:
    """Return the one cell of a suite and its seeds."""
    planned = list(suite.plan())
    if len(planned) != 1:
        raise UsageError(f"{len(planned)} combinations of values are given; visitors take one, so give each value once")
    return planned[0]


class Visits:
    """What is left of a cell's seeds, the episodes that are under way, and the folder for what becomes of them."""

    def __init__(
        self, suite: Suite, store: RunStore, done: Sequence[str], report: Report, clock: Callable[[], float]
    ) -> None:
        self.suite, self.store, self.report, self.clock = suite, store, report, clock
        self.cell, seeds = only_cell(suite)
        self._left = iter([seed for seed in seeds if self.cell.run_id(seed) not in done])
        self._open: list[Episode] = []
        scrub = Scrubber.of_environment(os.environ)
        self.stage = stage_of(Share(self.cell, seeds, suite.texts), Seat(clock), SystemMessages(), scrub)

    def begin(self) -> Episode:
        """Return the next episode.

        Raises:
            UsageError: every task has been given out.
        """
        seed = next(self._left, None)
        if seed is None:
            raise UsageError("every task of this server has been given out; ask whoever runs it for more")
        episode = Episode(self.stage, self.task(seed), self._keep, self.clock)
        self._open.append(episode)
        return episode

    def task(self, seed: int) -> TaskInstance:
        return generate(self.cell.task.with_seed(seed))

    async def stop(self, why: str) -> None:
        """Break off what is under way; it is not scored, and tried again on resume."""
        for episode in self._open:
            if episode.outcome is None:
                await episode.stop(why)

    def _keep(self, outcome: Outcome) -> None:
        if isinstance(outcome, Failure):
            self.store.fail(outcome.record)
        else:
            self.store.commit([outcome], durable=True)
        self._open = [episode for episode in self._open if episode.outcome is None]
        self.report(outcome)


@contextmanager
def open_visits(
    suite: Suite, folder: Path, report: Report = report_nothing, clock: Callable[[], float] = perf_counter
) -> Iterator[Visits]:
    """Begin a new folder; at the end its summary is written.

    Raises:
        UsageError: the folder is in use.
    """
    if not is_untouched(folder):
        raise UsageError(f"{folder} is not empty; continue with --resume {folder} or choose another --out")
    manifest = describe(suite, None, os.environ, folder)
    with RunStore(folder) as store:
        manifest.write(folder)
        yield from _visits(suite, store, report, clock)


@contextmanager
def resume_visits(
    folder: Path, report: Report = report_nothing, clock: Callable[[], float] = perf_counter
) -> Iterator[Visits]:
    """Go on with what is left in a folder that was begun."""
    then, suite = read_manifest(folder), recorded_suite(folder)
    refuse_drift(then, describe(suite, None, os.environ), folder)
    with RunStore(folder) as store:
        yield from _visits(suite, store, report, clock)


def _visits(suite: Suite, store: RunStore, report: Report, clock: Callable[[], float]) -> Iterator[Visits]:
    done = list(store.recover())
    try:
        yield Visits(suite, store, done, report, clock)
    finally:
        summary_of(suite, store.folder).write(store.folder)


def summary_of(suite: Suite, folder: Path) -> RunSummary:
    """Return what came of the visits so far."""
    return summarise(suite, folder, ())


def refuse_controlled(suite: Suite) -> None:
    """Raise UsageError for Controlled Retention, in which whatever an agent has seen is taken away between steps."""
    if only_cell(suite)[0].access.condition == CONTROLLED:
        raise UsageError(
            "Controlled Retention takes an agent's context away at each step, which no server can do; "
            "choose a managed condition such as kv, or export it with eirkit export harbor --mode controlled"
        )


OVER = "The task is over. Nothing can be done any more."
SUMMARY_FIRST = "First call note with the action summary and a text; nothing else is done until then."


@dataclass(slots=True)
class _Sitting:
    """One client at its episode."""

    episode: Episode
    last: float  # seconds: when it was last heard of
    greeted: bool = False
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class ClientSessions:
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
