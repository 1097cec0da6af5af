"""Memory systems in another process: the same interface, and a clear word when the process is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from eirkit.errors import PluginError, StoreError
from eirkit.lacuna.memories.child_process import ProcessMemory
from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.memories.memory import Item
from eirkit.testing import check_memory
from tests.processes import completed

PYTHON = Path(sys.executable)


def bridged(name: str = "key-value", **settings: object) -> ProcessMemory:
    return ProcessMemory(name, settings, PYTHON)


def test_a_bridged_memory_conforms():
    assert len(check_memory(bridged, seconds=60, records=64).held) == 18


def test_settings_reach_the_other_process():
    async def late() -> list[str]:
        memory = bridged("broken-late", seconds=0.01)
        await memory.setup()
        try:
            await memory.reset("x")
            await memory.write(Item("A_1", "A_1 = 5"))
            return list(await memory.search("A_1", 5))
        finally:
            await memory.teardown()

    assert asyncio.run(late()) == ["A_1 = 5"]


def test_what_the_system_raises_comes_home_with_its_words():
    async def broken() -> None:
        memory = bridged("broken-raises")
        await memory.setup()
        try:
            await memory.reset("x")
            await memory.search("A_1", 5)
        finally:
            await memory.teardown()

    with pytest.raises(PluginError, match=r"ConnectionError: the store is gone \(in search\)"):
        asyncio.run(broken())


class Slow(KeyValue):
    """Refuses one record at once, and takes a while over the others."""

    async def write(self, item: Item) -> None:
        if item.label == "A_1":
            raise ValueError("not this one")
        await asyncio.sleep(0.2)
        await super().write(item)


def test_no_writer_goes_on_after_a_write_of_several_has_failed():
    async def together() -> list[str]:
        memory = bridged(f"{__name__}:Slow")
        await memory.setup()
        try:
            await memory.reset("x")
            with pytest.raises(PluginError, match="not this one"):
                await memory.write_together([Item(f"A_{n}", f"A_{n} = 5") for n in (1, 2, 3)])
            return sorted(await memory.contents())
        finally:
            await memory.teardown()

    assert asyncio.run(together()) == ["A_2 = 5", "A_3 = 5"]


async def write_until_it_fails(memory: ProcessMemory) -> None:
    """The memory ends with the process that keeps it, a moment later."""
    for _ in range(60_000):
        await memory.write(Item("A_1", "A_1 = 5"))
        await asyncio.sleep(0.001)


def test_a_process_that_is_killed_is_reported_and_a_new_one_can_be_started():
    async def killed() -> str:
        memory = bridged()
        await memory.setup()
        await memory.reset("x")
        assert memory._process is not None
        os.kill(memory._process.pid, signal.SIGKILL)
        with pytest.raises(StoreError, match=r"(died during|is not reachable)"):
            await write_until_it_fails(memory)
        await memory.teardown()
        await memory.setup()
        try:
            await memory.reset("y")
            await memory.write(Item("A_1", "A_1 = 6"))
            return await memory.read("A_1") or ""
        finally:
            await memory.teardown()

    assert asyncio.run(killed()) == "A_1 = 6"


def test_a_process_that_cannot_start_says_why():
    with pytest.raises(StoreError, match=r"did not start \(.*no memory named 'nonsense'"):
        asyncio.run(bridged("nonsense").setup())


def test_nothing_is_left_running():
    async def opened() -> int:
        memory = bridged()
        await memory.setup()
        assert memory._process is not None
        pid = memory._process.pid
        await memory.teardown()
        return pid

    with pytest.raises(ProcessLookupError):
        os.kill(asyncio.run(opened()), 0)


class Telling(KeyValue):
    """Finds the variables of its own process."""

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return sorted(os.environ)


def variables_seen(*declared: str) -> set[str]:
    async def seen() -> set[str]:
        memory = ProcessMemory(f"{__name__}:Telling", {}, PYTHON, declared)
        await memory.setup()
        try:
            return set(await memory.search("", 5))
        finally:
            await memory.teardown()

    return asyncio.run(seen())


def test_a_stores_process_gets_no_key_and_no_proxy_unless_it_asks_for_one_by_name(monkeypatch):
    for name in ("OPENAI_API_KEY", "AWS_PROFILE", "MY_PASSWORD", "HTTPS_PROXY", "http_proxy", "LC_TIME"):
        monkeypatch.setenv(name, "C")
    seen = variables_seen("MY_PASSWORD")
    assert {"PATH", "HOME", "LC_TIME", "MY_PASSWORD", "NO_PROXY"} <= seen
    assert not seen & {"OPENAI_API_KEY", "AWS_PROFILE", "HTTPS_PROXY", "http_proxy"}
    assert "EIRKIT_BRIDGE" not in seen, "nor does it keep the token of the bridge"


def test_settings_do_not_stand_in_a_command_line_that_everybody_can_read():
    async def shown() -> str:
        memory = bridged("broken-late", seconds=0.0625)
        await memory.setup()
        try:
            assert memory._process is not None
            command = ["ps", "-ww", "-o", "args=", "-p", str(memory._process.pid)]
            return completed(command, check=True).stdout
        finally:
            await memory.teardown()

    line = asyncio.run(shown())
    assert "broken-late" in line
    assert "0.0625" not in line
