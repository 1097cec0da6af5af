"""What tests of real memory systems share: whether one is installed, the suite, and whole tasks from the command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from eirkit.lacuna.memories.factory import make_memory, reason_absent
from eirkit.lacuna.memories.memory import MemorySystem
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.testing import check_memory
from tests.lacuna.running import eirkit

T = TypeVar("T")
VERB_SECONDS = 180.0  # importing a vendor's packages takes half a minute where others work as well
WORKLOADS = ("store-recall", "full-lookup", "stepwise-sum")


def needs(name: str) -> pytest.MarkDecorator:
    """Skip with the reason where a system is neither importable nor in an environment of its own."""
    why = reason_absent(name, {})
    return pytest.mark.skipif(why is not None, reason=f"{name}: {why}")


def held(name: str, **settings: Any) -> int:
    """Return how many of the eighteen requirements a system meets; AssertionError names the others."""
    return len(check_memory(lambda: make_memory(MemoryPlan(name, settings)), seconds=VERB_SECONDS, records=64).held)


def run(folder: Path, capsys: pytest.CaptureFixture[str], name: str, *more: str) -> list[dict[str, Any]]:
    """Return the rows of small tasks that a reference agent did with a memory system."""
    tasks = ("--workload", ",".join(WORKLOADS), "--n", "12", "--m", "6", "--h", "2", "--seeds", "0")
    model = ("--model", "reference/recoverer", "--no-control", "--memory", name)
    assert eirkit("lacuna", "run", *tasks, *model, *more, "--out", str(folder / "out"), "--json") == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["rows"]
    return rows


def opened(work: Callable[[MemorySystem], Awaitable[T]], name: str, **settings: Any) -> T:
    """Return what some work with a new system returns; the system has an empty scope and is closed afterwards."""

    async def use() -> T:
        memory = make_memory(MemoryPlan(name, settings))
        await memory.setup()
        try:
            await memory.reset("story")
            return await work(memory)
        finally:
            await memory.teardown()

    return asyncio.run(use())
