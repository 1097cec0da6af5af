"""A-MEM itself: its analysis and evolution of notes, its own embedding, its own store."""

from __future__ import annotations

from typing import Any

import pytest

from eirkit.errors import ModelError
from eirkit.lacuna.agents.reference import Reference
from eirkit.lacuna.memories.memory import Item
from eirkit.lacuna.models.model import ModelOptions, Reply, Request
from tests.memories.stories import WORKLOADS, held, needs, opened, run

pytestmark = [needs("amem"), pytest.mark.slow]


def test_it_conforms():
    assert held("amem", profile="store-only") == 18


def test_whole_tasks_are_recalled_and_each_write_but_the_first_asks_twice(tmp_path, capsys):
    rows = run(tmp_path, capsys, "amem")
    assert [(row["workload"], row["accuracy"]) for row in rows] == [(workload, 1) for workload in WORKLOADS]
    for row in rows:
        used = row["memory_system"]
        assert used["diagnosis"] == []
        assert used["records"] == used["writes"]
        assert used["model_calls"] == 2 * used["writes"] - 1  # without neighbors there is nothing to evolve


class Away(Reference):
    """A server that is down."""

    async def reply(self, request: Request) -> Reply:
        raise ModelError("nobody answers", "unreachable")


def make(name: str, options: ModelOptions) -> Reference:
    return Away(options)


def test_a_model_that_is_down_fails_the_run_although_amem_bears_it():
    async def work(memory: Any) -> None:
        await memory.write(Item("A_1", "A_1 = 0005"))

    with pytest.raises(ModelError, match="the model that the memory system asks: nobody answers"):
        opened(work, "amem", model=f"{__file__}:make/away")
