"""The same replies leave the same telemetry, whoever carries them: one test over every driver of a session.

A driver takes a suite of one run, what the agent says and a folder, and leaves the folder of a run. To add one, write
such a function and list it in `DRIVERS` with the form in which it carries actions: tool calls, or lines of text.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from eirkit.lacuna.models.model import Reply
from eirkit.lacuna.runs.suite import Suite
from eirkit_bridges.external_runs import open_external_runs
from eirkit_bridges.harbor import export_harbor
from tests import warm
from tests.bridges.driving import (
    MISUSE,
    Saying,
    as_tool,
    native,
    needs_mcp,
    options_of,
    record_script,
    serving,
    suite_of,
    telemetry,
)
from tests.bridges.harbor_local import Trial
from tests.bridges.inspect_driving import by_inspect, needs_inspect, their_warnings

Drive = Callable[[Suite, Sequence[Reply], Path], Path]  # returns where the run's folder is


@dataclass(frozen=True, slots=True)
class Driver:
    drive: Drive
    calls: bool  # as tool calls; else as lines of text


def by_the_native_loop(suite: Suite, said: Sequence[Reply], folder: Path) -> Path:
    native(suite, folder / "out", Saying(said))
    return folder / "out"


def by_episode(suite: Suite, said: Sequence[Reply], folder: Path) -> Path:
    async def act() -> None:
        with open_external_runs(suite, folder / "out") as visits:
            episode = visits.begin()
            for reply in said:
                await episode.act(reply)

    asyncio.run(act())
    return folder / "out"


def by_mcp_stdio(suite: Suite, said: Sequence[Reply], folder: Path) -> Path:
    from mcp import Client, StdioServerParameters

    arguments = ["mcp", "serve", *options_of(suite, folder / "out")]

    async def act() -> None:
        async with Client(
            StdioServerParameters(command=str(warm.programs() / "eirkit"), args=arguments, env=dict(os.environ))
        ) as client:
            for reply in said:
                assert not (await client.call_tool(*as_tool(reply))).is_error

    asyncio.run(act())
    return folder / "out"


def by_mcp_http(suite: Suite, said: Sequence[Reply], folder: Path) -> Path:
    from mcp import Client

    async def act(address: str) -> None:
        async with Client(address) as client:
            for reply in said:
                assert not (await client.call_tool(*as_tool(reply))).is_error

    with serving(options_of(suite, folder / "out"), folder / "log") as (address, _):
        asyncio.run(act(address))
    return folder / "out"


def by_harbor_sidecar(suite: Suite, said: Sequence[Reply], folder: Path) -> Path:
    (task,) = export_harbor(suite, folder / "tasks", lambda size: bytes(size))
    with Trial(task.folder, folder / "trial") as trial:
        for reply in said:
            assert trial.post("act", reply.text)[0] == 200
        trial.verify()
    return folder / "trial" / "episode" / "out"


DRIVERS = {
    "native loop": Driver(by_the_native_loop, calls=True),
    "episode": Driver(by_episode, calls=True),
    "MCP over stdio": Driver(by_mcp_stdio, calls=True),
    "MCP over HTTP": Driver(by_mcp_http, calls=True),
    "Harbor sidecar": Driver(by_harbor_sidecar, calls=False),
    "Inspect": Driver(by_inspect, calls=True),
}
NEED_MCP = {"MCP over stdio", "MCP over HTTP", "Harbor sidecar"}
NEEDS = {**{name: [needs_mcp] for name in NEED_MCP}, "Inspect": [needs_inspect, their_warnings]}

CONDITIONS = {
    "kv": {"condition": "kv", "b_oracle": 3, "b": 3},
    "scratch": {"condition": "scratch", "workload": "stepwise-sum", "b": "unlimited"},
    "compaction": {"condition": "compaction", "context_tokens": 64, "n": 48, "b_oracle": "unlimited"},
    "memory": {"condition": "external", "memory": "bm25", "workload": "full-lookup"},
}


def cases() -> list[object]:
    """Every driver under the first condition; under the others those that are quick.

    Compaction asks for something that is no action, which MCP has a tool of its own for.
    """
    quick = {
        ("compaction", "MCP over stdio"),
        *((c, d) for c in CONDITIONS for d in ("native loop", "episode", "Inspect")),
    }
    return [
        pytest.param(driver, condition, marks=NEEDS.get(driver, []), id=f"{driver}, {condition}")
        for condition in CONDITIONS
        for driver in DRIVERS
        if condition == "kv" or (condition, driver) in quick
    ]


@pytest.mark.parametrize(("name", "condition"), cases())
def test_the_same_replies_leave_the_same_telemetry(name, condition, tmp_path):
    driver = DRIVERS[name]
    asked = {"protocol": "tools"} if driver.calls else {"protocol": "text", "reask": False}  # as Harbor's agents are
    suite = suite_of(**CONDITIONS[condition], model_options=asked, actions=400)
    said = record_script(suite, tmp_path / "recorded", calls=driver.calls)
    expected = telemetry(tmp_path / "recorded")
    assert telemetry(driver.drive(suite, said, tmp_path)) == expected
    assert expected[0]["ending"] == "finished"
    assert sum(expected[0]["refusals"].values()) >= len(MISUSE) - 1  # the misuse was noticed, not filtered out


def test_lines_and_calls_leave_the_same_actions_and_decisions(tmp_path):
    kept = []
    for calls in (False, True):
        folder = tmp_path / str(calls)
        protocol = {"protocol": "tools" if calls else "text"}
        record_script(suite_of(b_oracle=3, b=3, model_options=protocol), folder, calls=calls)
        events = [event for event in telemetry(folder) if event.get("type") in ("action", "decision", "verdicts")]
        kept.append([{key: value for key, value in event.items() if key != "run"} for event in events])
    done = [[event for event in events if event.get("outcome") != "fault"] for events in kept]
    assert done[0] == done[1]
