"""LangMem itself: its tools over LangGraph's store, with embeddings from the endpoint."""

from __future__ import annotations

import pytest

from eirkit.lacuna.memories.memory import Item, MemorySystem, MemoryUsage
from tests.memories.stories import WORKLOADS, held, needs, opened, run

pytestmark = [needs("langmem"), pytest.mark.slow]


def test_it_conforms():
    assert held("langmem", profile="store-only") == 18


def test_whole_tasks_are_recalled(tmp_path, capsys):
    rows = run(tmp_path, capsys, "langmem", "--set", "langmem.profile=store-only")
    assert [(row["workload"], row["accuracy"]) for row in rows] == [(workload, 1) for workload in WORKLOADS]
    for row in rows:
        used = row["memory_system"]
        assert (used["diagnosis"], used["model_calls"], used["records"]) == ([], 0, used["writes"])


def test_another_value_replaces_a_record_and_a_deleted_one_is_gone():
    async def work(memory: MemorySystem) -> tuple[MemoryUsage, list[str | None]]:
        for label, text in (("A_1", "A_1 = 0005"), ("A_2", "A_2 = 0007"), ("A_1", "A_1 = 0006")):
            await memory.write(Item(label, text))
        await memory.forget("A_2")  # type: ignore[attr-defined]
        return await memory.usage(), [await memory.read("A_1"), await memory.read("A_2")]

    used, kept = opened(work, "langmem", profile="store-only")
    assert (used.records, kept) == (1, ["A_1 = 0006", None])


def test_an_embedding_of_another_size_can_be_used():
    async def work(memory: MemorySystem) -> list[str]:
        await memory.write(Item("A_1", "A_1 = 0005"))
        return list(await memory.search("A_1", 5))

    assert opened(work, "langmem", embedding="ngrams", dimensions=1024, profile="store-only") == ["A_1 = 0005"]


def test_its_store_manager_updates_what_the_model_says_and_keeps_one_document():
    async def work(memory: MemorySystem) -> tuple[MemoryUsage, list[str], str | None]:
        for text in ("A_1 = 0005", "A_2 = 0007", "A_1 = 0006"):
            await memory.write(Item(text[:3], text))
        return await memory.usage(), list(await memory.search("A_1", 1)), await memory.read("A_1")

    used, found, kept = opened(work, "langmem")
    assert (used.records, found, kept) == (2, ["A_1 = 0006"], "A_1 = 0006")
    assert used.model_calls == 3
