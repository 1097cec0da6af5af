"""Mem0 itself: what it stores and finds, with and without a model that says what is worth keeping."""

from __future__ import annotations

from typing import Any

import pytest

from eirkit.errors import ModelError
from eirkit.lacuna.agents.reference import Reference
from eirkit.lacuna.memories.memory import Item, MemorySystem, MemoryUsage
from eirkit.lacuna.models.model import ModelOptions, Reply, Request
from tests.memories.stories import WORKLOADS, held, needs, opened, run

pytestmark = [needs("mem0"), pytest.mark.slow]
STORE = ("--set", "mem0.profile=store-only")
PROMPT_TOKENS = 5_000  # Mem0's instructions are far longer than this; a record is four


def test_it_conforms():
    assert held("mem0", profile="store-only") == 18


def test_as_documented_old_values_stay_and_that_is_all_it_is_blamed_for():
    with pytest.raises(AssertionError) as found:
        held("mem0")
    blamed = "stale value: search('A_01') returned 'A_01 = 1007' first, after 'A_01 = 4001'"
    assert str(found.value).endswith(f"a repeated write leaves one record: {blamed}")


def test_it_conforms_over_faiss():
    assert held("mem0", store="faiss", profile="store-only") == 18


def test_whole_tasks_are_recalled_without_a_model(tmp_path, capsys):
    rows = run(tmp_path, capsys, "mem0", *STORE)
    assert [(row["workload"], row["accuracy"]) for row in rows] == [(workload, 1) for workload in WORKLOADS]
    for row in rows:
        used = row["memory_system"]
        assert (used["diagnosis"], used["model_calls"], used["records"]) == ([], 0, used["writes"])


def test_whole_tasks_are_recalled_with_a_model_and_each_write_asks_it_once(tmp_path, capsys):
    rows = run(tmp_path, capsys, "mem0")
    assert [row["accuracy"] for row in rows] == [1, 1, 1]
    for row in rows:
        used = row["memory_system"]
        assert used["model_calls"] == used["writes"] == used["records"]
        assert used["input_tokens"] > PROMPT_TOKENS * used["model_calls"]


def test_held_to_h_records_it_loses_the_oldest_and_is_not_blamed_for_a_wrong_search(tmp_path, capsys):
    rows = run(tmp_path, capsys, "mem0", *STORE, "--panel", "strict")
    for row in rows:
        outcomes = row["memory_system"]["outcomes"]
        assert row["panel"] == "strict"
        assert row["memory_system"]["records"] <= 2
        assert (outcomes["not_found"], outcomes["other_value"]) == (0, 0)
    assert sum(row["memory_system"]["outcomes"]["not_stored"] for row in rows) > 0


def test_the_same_record_twice_is_kept_once_and_another_value_replaces_it():
    async def work(memory: MemorySystem) -> tuple[MemoryUsage, str | None]:
        for text in ("A_1 = 0005", "A_1 = 0005", "A_1 = 0006"):
            await memory.write(Item("A_1", text))
        return await memory.usage(), await memory.read("A_1")

    used, kept = opened(work, "mem0", profile="store-only")
    assert (used.records, kept) == (1, "A_1 = 0006")


def test_where_it_infers_both_values_stay_and_the_newest_is_the_last():
    async def work(memory: MemorySystem) -> tuple[MemoryUsage, str | None]:
        for text in ("A_1 = 0005", "A_1 = 0006"):
            await memory.write(Item("A_1", text))
        return await memory.usage(), await memory.read("A_1")

    used, kept = opened(work, "mem0")
    assert (used.records, kept) == (2, "A_1 = 0005\nA_1 = 0006")


def test_keywords_find_what_vectors_confuse_and_the_missing_model_is_told():
    async def work(memory: MemorySystem) -> tuple[list[str], MemoryUsage]:
        for number in range(50, 70):
            await memory.write(Item(f"A_{number}", f"A_0{number} = {7 * number:04}"))
        found = list(await memory.search("A_055", 5))
        return found, await memory.usage()

    found, used = opened(work, "mem0", profile="store-only")
    assert found[0] == "A_055 = 0385"
    assert not any("BM25" in said for said in used.warnings), "keyword search is on"
    assert any("spaCy is not installed" in said for said in used.warnings)


class Silent(Reference):
    """Finds nothing worth keeping, in JSON."""

    async def reply(self, request: Request) -> Reply:
        return Reply('{"memory": []}')


class Away(Reference):
    """A server that is down."""

    async def reply(self, request: Request) -> Reply:
        raise ModelError("nobody answers", "unreachable")


def make(name: str, options: ModelOptions) -> Reference:
    return {"silent": Silent, "away": Away}[name](options)


MODEL = f"{__file__}:make"


def test_what_the_model_does_not_extract_is_not_stored(tmp_path, capsys):
    for row in run(tmp_path, capsys, "mem0", "--set", f"mem0.model={MODEL}/silent"):
        outcomes = row["memory_system"]["outcomes"]
        assert outcomes["not_stored"] == sum(outcomes.values()) > 0
        assert row["memory_system"]["diagnosis"][0].startswith("loses what is written")


def test_a_model_that_is_down_is_the_reason_that_is_given():
    async def work(memory: Any) -> None:
        await memory.write(Item("A_1", "A_1 = 0005"))

    with pytest.raises(ModelError, match="the model that the memory system asks: nobody answers") as caught:
        opened(work, "mem0", model=f"{MODEL}/away")
    assert caught.value.kind == "unreachable"
