"""Gives tasks to external agents, one per client, and stores their runs in the folder of an ordinary sweep.

`eirkit lacuna run --resume`, reports and VESTIGE read that folder. Seeds are drawn at random unless given, so that an
agent that can read eirkit cannot generate its own task.
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

from eirkit.errors import UsageError
from eirkit.folders import close_to_others, files_for_owner_only
from eirkit.lacuna.findings.summary import summarize, write_summary
from eirkit.lacuna.models.model import Request
from eirkit.lacuna.models.scrubber import Scrubber
from eirkit.lacuna.runs.cells import Cell
from eirkit.lacuna.runs.manifest import SystemMessages, describe, read_manifest, refuse_drift, write_manifest
from eirkit.lacuna.runs.store import RunStore, is_unused_folder
from eirkit.lacuna.runs.suite import Suite, load_suite, read_suite
from eirkit.lacuna.runs.sweep import recorded_suite
from eirkit.lacuna.runs.workers import CellBatch, cell_context_of
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.task import TaskInstance, number_spec
from eirkit.lacuna.tasks.workload import conversations
from eirkit.records.database import SweepWriter
from eirkit.records.runs import Failure
from eirkit.records.settings import CONTROLLED
from eirkit_bridges.episode import Episode, ExternalModel, Outcome, as_reply, explain, translate_refusals

MODEL = "agent/visitor"
CONDITION = "kv"  # the agent manages a memory of h records itself

Report = Callable[[Outcome], None]


def report_nothing(outcome: Outcome) -> None:
    """Ignore the outcome: the caller reads the folder afterwards."""


def plan_external_runs(given: Mapping[str, Any], path: Path | None = None, seeds: Sequence[int] | None = None) -> Suite:
    """Return the suite of a file, of given keys, or of both, with defaults for external agents.

    Args:
        seeds: used if neither the file nor the keys give seeds.
    """
    keys = dict(given)
    named = keys.get("workload", ())
    if told := [one for one in ([named] if isinstance(named, str) else named) if one in conversations]:
        raise UsageError(
            f"{told[0]} is a workload of conversations, which external agents cannot be given; try another"
        )
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
        raise UsageError(
            f"{len(planned)} combinations of values are given, but external agents run one; "
            "give a single value for each option"
        )
    return planned[0]


class ExternalRuns:
    """The remaining seeds of a cell, the episodes in progress, and the store for finished runs."""

    def __init__(self, suite: Suite, store: RunStore, report: Report, clock: Callable[[], float]) -> None:
        self.suite, self.store, self.report, self.clock = suite, store, report, clock
        self.cell, seeds = only_cell(suite)
        done = store.finished().get(self.cell.id, set())
        self._left = iter([seed for seed in seeds if seed not in done])
        self._open: list[Episode] = []
        scrub = Scrubber.of_environment(os.environ)
        self.stage = cell_context_of(
            CellBatch(self.cell, seeds, suite.texts), ExternalModel(clock), SystemMessages(), scrub
        )

    def begin(self) -> Episode:
        """Return the next episode.

        Raises:
            UsageError: no task is left.
        """
        seed = next(self._left, None)
        if seed is None:
            raise UsageError("no task is left on this server; ask its operator to start it with more --instances")
        episode = Episode(self.stage, self.task(seed), self._keep, self.clock)
        self._open.append(episode)
        return episode

    def task(self, seed: int) -> TaskInstance:
        return generate(number_spec(self.cell.task, "the server").with_seed(seed))

    async def stop(self, why: str) -> None:
        """Abort the episodes in progress; they are not scored, and are run again on resume."""
        for episode in self._open:
            if episode.outcome is None:
                await episode.stop(why)

    def _keep(self, outcome: Outcome) -> None:
        if isinstance(outcome, Failure):
            self.store.fail(outcome)
        else:
            self.store.commit([outcome], durable=True)
        self._open = [episode for episode in self._open if episode.outcome is None]
        self.report(outcome)


@contextmanager
def open_external_runs(
    suite: Suite, folder: Path, report: Report = report_nothing, clock: Callable[[], float] = perf_counter
) -> Iterator[ExternalRuns]:
    """Start a new folder and write its summary at the end.

    Raises:
        UsageError: the folder is in use.
    """
    if not is_unused_folder(folder):
        raise UsageError(f"{folder} is not empty; continue with --resume {folder} or choose another --out")
    manifest = describe(suite, None, os.environ, folder)
    with files_for_owner_only(), SweepWriter(folder, is_new=True) as database:
        close_to_others(folder)
        database.plan((cell.setting, len(seeds)) for cell, seeds in suite.plan())
        write_manifest(manifest, folder)
        yield from _external_runs(suite, database, report, clock)


@contextmanager
def resume_external_runs(
    folder: Path, report: Report = report_nothing, clock: Callable[[], float] = perf_counter
) -> Iterator[ExternalRuns]:
    """Continue with the remaining seeds of a folder."""
    then, suite = read_manifest(folder), recorded_suite(folder)
    refuse_drift(then, describe(suite, None, os.environ), folder)
    with files_for_owner_only(), SweepWriter(folder) as database:
        close_to_others(folder)
        yield from _external_runs(suite, database, report, clock)


def _external_runs(
    suite: Suite, database: SweepWriter, report: Report, clock: Callable[[], float]
) -> Iterator[ExternalRuns]:
    try:
        yield ExternalRuns(suite, RunStore(database), report, clock)
    finally:
        write_summary(summarize(database), database.folder)


def refuse_controlled(suite: Suite) -> None:
    """Raise UsageError for Controlled Retention, which clears the agent's context between steps."""
    if only_cell(suite)[0].access.condition == CONTROLLED:
        raise UsageError(
            "Controlled Retention clears the agent's context at each step, which a server cannot do; "
            "choose a managed condition such as kv, or export it with eirkit export harbor --condition controlled"
        )


OVER = "The task is over. Further calls have no effect."
SUMMARY_FIRST = "Call note with the action summary and a text first; every other call is ignored until then."


@dataclass(slots=True)
class _ClientSession:
    """One client and its episode."""

    episode: Episode
    last: float  # seconds on the clock: its latest call
    introduced: bool = False
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class ClientSessions:
    """Assigns each client an episode on its first call.

    Args:
        begin: returns an episode; raises UsageError if none is left.
    """

    def __init__(self, begin: Callable[[], Episode], clock: Callable[[], float] = perf_counter) -> None:
        self.begin, self.clock = begin, clock
        self._by_client: dict[str, _ClientSession] = {}

    async def call(self, client: str, tool: str, arguments: Mapping[str, Any]) -> str:
        """Carry out one tool call and return the text of its result."""
        session = self._by_client.get(client)
        if session is None:
            session = self._by_client[client] = _ClientSession(self.begin(), self.clock())
        session.last = self.clock()
        async with session.turn:
            request = await session.episode.look()
            shown = OVER if request is None else await self._take(session.episode, tool, arguments, request)
            if request is None or session.introduced:
                return shown
            session.introduced = True
            return f"{explain(request.messages[0].content)}\n\n{shown}"

    async def _take(self, episode: Episode, tool: str, arguments: Mapping[str, Any], request: Request) -> str:
        reply = as_reply(tool, arguments, request)
        if reply is None:
            return f"{translate_refusals(shown_in(request))}\n{SUMMARY_FIRST}"
        after = await episode.act(reply)
        return OVER if after is None else translate_refusals(shown_in(after))

    async def leave(self, client: str) -> None:
        """End the run of a client that disconnected, as if it had stopped there."""
        session = self._by_client.pop(client, None)
        if session is not None:
            await session.episode.leave()

    async def leave_all(self) -> None:
        for client in list(self._by_client):
            await self.leave(client)

    async def leave_idle(self, seconds: float) -> None:
        """End the runs of clients that have made no call for so many seconds."""
        now = self.clock()
        for client, session in list(self._by_client.items()):
            if now - session.last >= seconds:
                await self.leave(client)


def shown_in(request: Request) -> str:
    """Return the state in a request, without the rules."""
    return "\n".join(message.content for message in request.messages if message.role != "system")
