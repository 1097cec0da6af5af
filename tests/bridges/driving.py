"""Agents for bridges: scripts of single actions, the native loop that they are held to, and servers to meet them in."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eirkit.lacuna.agents.protocol import Fault, as_call, as_text, read_reply
from eirkit.lacuna.agents.reference import make_reference
from eirkit.lacuna.memories.plan import MemoryPool
from eirkit.lacuna.models.model import Model, ModelOptions, Reply, Request, ToolCall
from eirkit.lacuna.runs.attempt import attempt
from eirkit.lacuna.runs.suite import Suite, read_suite
from eirkit.records.database import DATABASE, FinishedRun, SweepDatabase
from eirkit.records.events import Event
from eirkit.records.runs import RunRecord
from eirkit_bridges.episode import UNKNOWN_USAGE
from eirkit_bridges.external_runs import open_external_runs
from tests import warm
from tests.processes import PATIENCE_SECONDS, running

SEED = 1_234_567_890_123
needs_mcp = pytest.mark.skipif(find_spec("mcp") is None, reason="mcp is not installed; pip install 'eirkit[mcp]'")

# Misuse that every bridge must hand on as it is: the session has a response to each.
MISUSE = [
    ToolCall("read", {"t": 99}),
    ToolCall("answer", {"t": "many", "values": ["x"]}),
    ToolCall("answer", {"t": 1, "values": [10**30]}),
    ToolCall("dance", {"wildly": [[1], None]}),
    ToolCall("recompute", {}),
]


def suite_of(**keys: Any) -> Suite:
    """Return the suite of one managed run."""
    small = {"workload": "store-recall", "n": 10, "m": 4, "h": 2, "seeds": [SEED], "model": "agent/visitor"}
    return read_suite({**small, "condition": "kv", **keys})


class OneByOne:
    """A reference agent whose replies are one action each, with some misuse among them; remembers what it said."""

    def __init__(self, misuse: Sequence[ToolCall], *, calls: bool) -> None:
        self.agent = make_reference("recoverer", ModelOptions())
        self.misuse, self.calls = list(misuse), calls
        self.said: list[Reply] = []
        self._meant: list[ToolCall] = []

    async def reply(self, request: Request) -> Reply:
        self.said.append(await self._next(request))
        return self.said[-1]

    async def _next(self, request: Request) -> Reply:
        if request.visible.summary_characters is not None:
            return msgspec.structs.replace(await self.agent.reply(request), usage=UNKNOWN_USAGE)
        if self.misuse and len(self.said) % 3 == 2:
            return said_as(self.misuse.pop(0), calls=self.calls)
        if not self._meant:
            actions = read_reply(await self.agent.reply(msgspec.structs.replace(request, tools=())))
            self._meant = [as_call(action) for action in actions if not isinstance(action, Fault)]
        return said_as(self._meant.pop(0), calls=self.calls)

    async def close(self) -> None:
        pass

    def settings(self) -> dict[str, Any]:
        return {}


class Saying:
    """A model that says what it was given, in order."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self.replies = list(replies)

    async def reply(self, request: Request) -> Reply:
        return self.replies.pop(0)

    async def close(self) -> None:
        pass

    def settings(self) -> dict[str, Any]:
        return {}


def said_as(call: ToolCall, *, calls: bool) -> Reply:
    """Return one action as a tool call or as its line of text."""
    if calls:
        return Reply("", (call,), UNKNOWN_USAGE)
    action = read_reply(Reply("", (call,)))[0]
    misused = f"{call.name.upper()} {' '.join(map(str, call.arguments.values()))}"
    return Reply(misused if isinstance(action, Fault) else as_text(action), (), UNKNOWN_USAGE)


def native(suite: Suite, folder: Path, model: Model) -> None:
    """Run a suite of one run with the loop that `eirkit lacuna run` uses."""

    async def run() -> None:
        with open_external_runs(suite, folder) as visits:
            stage = replace(visits.stage, model=model)
            memories = MemoryPool()
            try:
                outcome = await attempt(stage, visits.task(SEED), memories)
            finally:
                await memories.close()
            assert isinstance(outcome, FinishedRun)
            visits.store.commit([outcome], durable=False)

    asyncio.run(run())


def record_script(suite: Suite, folder: Path, *, calls: bool) -> list[Reply]:
    """Run the misusing recoverer natively and return what it said."""
    agent = OneByOne(MISUSE, calls=calls)
    native(suite, folder, agent)
    return agent.said


def stored_runs(folder: Path) -> list[RunRecord]:
    """Return the finished runs of a folder; none before its database is written."""
    if not (folder / DATABASE).exists():
        return []
    with SweepDatabase(folder) as database:
        return list(database.records())


def stored_events(folder: Path, run: RunRecord) -> list[Event]:
    with SweepDatabase(folder) as database:
        return database.events(run.run)


def telemetry(folder: Path) -> list[dict[str, Any]]:
    """Return everything that runs left, in order, as JSON without how long anything took."""
    found: list[object] = []
    for run in stored_runs(folder):
        found += [run, *stored_events(folder, run)]
    return [timeless(msgspec.to_builtins(record)) for record in found]


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if not key.endswith("_seconds")}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def as_tool(reply: Reply) -> tuple[str, dict[str, Any]]:
    """Return the MCP tool that stands for a reply of one action."""
    if not reply.calls:
        return "note", {"action": "summary", "text": reply.text}
    (call,) = reply.calls
    given = dict(call.arguments)
    names = {"next": "next_step", "answer": "submit_answer", "read": "read_result", "done": "finish"}
    notes = {"write": "write", "drop": "drop", "note": "add", "search": "search"}
    if call.name in notes:
        return "note", {"action": notes[call.name], **given}
    return names.get(call.name, call.name), given


@contextmanager
def serving(arguments: Sequence[str], log: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start `eirkit mcp serve --host` on a free port and yield its address; it is told to stop at the end."""
    command = [warm.programs() / "eirkit", "mcp", "serve", "--host", "127.0.0.1", "--port", "0", *arguments]
    with log.open("wb") as stream, running(command, stdout=subprocess.DEVNULL, stderr=stream) as process:
        try:
            yield address_in(log, process), process
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)


def address_in(log: Path, process: subprocess.Popen[bytes]) -> str:
    """Return the address once the server has said it."""

    async def wait() -> str:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while process.poll() is None:
                if found := re.search(r"serving at (\S+)\n", log.read_text("utf-8")):
                    return found[1]
                await asyncio.sleep(0.02)
        raise AssertionError(f"the server ended: {log.read_text('utf-8')}")

    return asyncio.run(wait())


def options_of(suite: Suite, folder: Path) -> list[str]:
    """Return the options of `eirkit mcp serve` for a suite of one cell."""
    (grid,) = suite.grids
    given: list[str] = []
    for name, values in grid.axes.items():
        given += [f"--{name.replace('_', '-')}", str(values[0])]
    return [*given, "--seeds", ",".join(map(str, grid.seeds)), "--out", str(folder)]
