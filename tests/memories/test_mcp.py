"""Any MCP memory server: the reference one where it is installed, and one of our own over stdio and HTTP, for real."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from eirkit.cli.doctor import list_availability
from eirkit.errors import StoreError, UnknownNameError, UsageError
from eirkit.lacuna.memories.factory import check_plan, make_memory
from eirkit.lacuna.memories.memory import Item
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.testing import check_memory
from eirkit_memories.mcp import Mcp, McpClient, describe
from tests.lacuna.running import eirkit
from tests.memories.stories import needs
from tests.processes import PATIENCE_SECONDS, running, wait_until

SHELF = str(Path(__file__).with_name("mcp_shelf.py"))
TOOLS: dict[str, Any] = {
    "write": ["put", {"name": "{label}", "content": "{text}"}],
    "search": ["look", {"words": "{query}", "most": "{limit}"}],
    "read": ["take", {"name": "{label}"}],
    "forget": ["remove", {"name": "{label}"}],
}
STDIO = {"command": [sys.executable, SHELF, "{store}"], **TOOLS}
VERB_SECONDS = PATIENCE_SECONDS  # a call that takes longer hangs

needs_mcp = pytest.mark.skipif(find_spec("mcp") is None, reason="mcp is not installed; pip install 'mcp>=2.3,<3'")
needs_reference = needs("mcp")


def shared(url: str) -> dict[str, Any]:
    """Describe the server over HTTP: every call names the shelf of its run."""
    tools = {name: [tool, {**template, "shelf": "{scope}"}] for name, (tool, template) in TOOLS.items()}
    return {"url": url, **tools, "clear": ["sweep", {"shelf": "{scope}"}]}


@pytest.fixture
def serving() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with running([sys.executable, SHELF, "--http"], **streams) as process:
        port = int(process.stdout.readline())

        def listens() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        wait_until(listens, "the server listens", process)
        yield f"http://127.0.0.1:{port}/mcp", process


@needs_reference
@pytest.mark.slow
def test_the_reference_server_conforms():
    assert (
        len(
            check_memory(
                lambda: make_memory(MemoryPlan("mcp", {"profile": "store-only"})), seconds=VERB_SECONDS, records=64
            ).held
        )
        == 18
    )


def run(tmp_path: Path, *more: str) -> int:
    tasks = ("--workload", "store-recall,full-lookup,stepwise-sum", "--n", "16", "--m", "8", "--h", "2", "--seeds", "0")
    model = ("--model", "reference/recoverer", "--no-control", "--memory", "mcp")
    return eirkit("lacuna", "run", *tasks, *model, *more, "--out", str(tmp_path / "out"), "--json")


@needs_reference
@pytest.mark.slow
def test_the_reference_server_recalls_whole_tasks(tmp_path, capsys):
    assert run(tmp_path) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["accuracy"] for row in rows] == [1, 1, 1]
    for row in rows:
        assert row["memory_system"]["diagnosis"] == []
        assert row["memory_system"]["bytes"] > 0


@needs_mcp
@pytest.mark.slow
def test_a_server_of_ones_own_over_stdio_conforms():
    assert len(check_memory(lambda: Mcp(preset="", server=STDIO), seconds=VERB_SECONDS, records=64).held) == 18


@needs_mcp
def test_a_server_of_ones_own_over_http_conforms_and_is_left_clean(serving):
    url, _ = serving
    assert len(check_memory(lambda: Mcp(preset="", server=shared(url)), seconds=VERB_SECONDS, records=64).held) == 18
    assert asyncio.run(ask(url, "count")) == ["0"]


async def ask(url: str, tool: str) -> list[str]:
    client = McpClient((), {}, url)
    await client.open()
    try:
        return await client.call(tool, {})
    finally:
        await client.close()


@needs_mcp
@pytest.mark.slow
def test_settings_describe_a_server_on_the_command_line(tmp_path, capsys):
    settings = ("--set", "mcp.preset=", "--set", f"mcp.server={json.dumps(STDIO)}")
    assert run(tmp_path, *settings) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["accuracy"] for row in rows] == [1, 1, 1]


async def opened(server: dict[str, Any]) -> Mcp:
    memory = Mcp(preset="", server=server)
    await memory.setup()
    try:
        await memory.reset("x")
    except StoreError:
        await memory.teardown()
        raise
    return memory


@needs_mcp
def test_what_the_server_refuses_is_told_in_its_words():
    async def refused() -> None:
        memory = await opened(STDIO)
        try:
            await memory.search("boom", 5)
        finally:
            await memory.teardown()

    with pytest.raises(StoreError, match=r"the MCP server refused look \(Error executing tool look"):
        asyncio.run(refused())


@needs_mcp
def test_an_http_server_that_is_killed_is_a_failure_of_the_store(serving):
    url, process = serving

    async def killed() -> None:
        memory = await opened(shared(url))
        try:
            await memory.write(Item("A_1", "A_1 = 5"))
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await memory.write(Item("A_2", "A_2 = 6"))
        finally:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await memory.teardown()

    with pytest.raises(StoreError, match="the MCP server"):
        asyncio.run(killed())


@needs_mcp
def test_a_stdio_server_that_ends_is_a_failure_of_the_store():
    async def ended() -> None:
        memory = await opened(STDIO | {"search": ["end", {}]})
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await memory.search("A_1", 5)
        finally:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await memory.teardown()

    with pytest.raises(StoreError, match="the MCP server"):
        asyncio.run(ended())


@needs_mcp
@pytest.mark.parametrize("command", [["no-such-program-anywhere"], [sys.executable, "-c", "raise SystemExit(3)"]])
def test_a_server_that_cannot_start_says_so(command):
    with pytest.raises(StoreError, match=r"the MCP server did not start \(.*\); check its command"):
        asyncio.run(opened(STDIO | {"command": command}))


def test_what_cannot_be_a_server_is_refused_before_anything_starts():
    with pytest.raises(UnknownNameError, match="no MCP preset named 'nonsense'"):
        Mcp(preset="nonsense")
    with pytest.raises(UnknownNameError, match="field of an MCP server named 'comand'"):
        Mcp(server={"comand": ["x"]})
    with pytest.raises(UsageError, match="needs a command or a url"):
        Mcp(preset="")
    with pytest.raises(UsageError, match=r"put \{scope\} into its templates, or start it by command"):
        Mcp(preset="", server={"url": "http://127.0.0.1:1/mcp", **TOOLS})


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("preset=foo", "no MCP preset named 'foo'; known: server-memory"),
        ("server=http://127.0.0.1:1/mcp", "server is 'http://127.0.0.1:1/mcp', not a table; give one such as"),
        ('server={"command": "serve"}', "command is not a list of strings; give one such as"),
        ('server={"write": "put"}', "write is not a tool with arguments; give a pair such as"),
        ('server={"by_label": "yes"}', "by_label is 'yes'; give true or false"),
    ],
)
def test_wrong_settings_are_wrong_usage_and_no_failure_of_the_server(tmp_path, capsys, setting, said):
    tasks = ("--workload", "store-recall", "--h", "2", "--model", "reference/recoverer", "--memory", "mcp")
    assert eirkit("lacuna", "run", *tasks, "--set", f"mcp.{setting}", "--out", str(tmp_path / "out")) == 2
    error = capsys.readouterr().err
    assert f"eirkit: memory 'mcp': {said}" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_without_the_package_of_npm_the_preset_cannot_run_and_another_server_can(tmp_path, monkeypatch):
    """An environment that has the client and no Node.js package is as if it had been made where there is no npm."""
    monkeypatch.setenv("EIRKIT_HOME", str(tmp_path))
    environment = tmp_path / "environments" / "mcp"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(sys.executable)
    (environment / "complete").touch()
    lacking = "@modelcontextprotocol/server-memory is not installed; "
    with pytest.raises(UsageError, match=f"memory 'mcp' cannot run here: {lacking}"):
        check_plan(MemoryPlan("mcp", {}))
    check_plan(MemoryPlan("mcp", {"preset": "", "server": STDIO}))
    check_plan(MemoryPlan("mcp", {"server": shared("http://127.0.0.1:1/mcp")}))
    found = next(memory for memory in list_availability().memories if memory.name == "mcp")
    assert found.usable
    assert found.reason.startswith("A memory server that speaks MCP; with default settings it needs an npm package: ")
    assert lacking in found.reason
    (environment / "node_modules" / "@modelcontextprotocol" / "server-memory").mkdir(parents=True)
    check_plan(MemoryPlan("mcp", {}))


@needs_mcp
def test_a_server_is_counted_by_its_own_word_or_not_at_all():
    async def records(server: dict[str, Any]) -> int | None:
        memory = await opened(server)
        try:
            for label in ("A_1", "A_2", "A_1"):
                await memory.write(Item(label, f"{label} = 5"))
            return (await memory.usage()).records
        finally:
            await memory.teardown()

    assert asyncio.run(records(STDIO)) is None
    assert asyncio.run(records(STDIO | {"everything": ["list_all", {}]})) == 2


def test_fields_are_laid_over_those_of_the_preset():
    described = describe("server-memory", {"command": ["mine"], "by_label": False})
    assert (described.command, described.by_label, described.passages) == (("mine",), False, "observations")


@needs_mcp
def test_a_label_is_not_crowded_out_by_the_look_alikes_of_another():
    async def found() -> list[str]:
        memory = await opened(STDIO | {"by_label": True, "search": ["look", {"words": "{query}", "most": 50}]})
        try:
            for t in range(1, 20):
                await memory.write(Item(f"A_{t}", f"A_1 A_{t} = {t}"))
            return list(await memory.search("A_1 A_2", 5))
        finally:
            await memory.teardown()

    assert "A_1 A_2 = 2" in asyncio.run(found())
