"""Graphiti for real, with its embedded graph and the scripted model: it conforms, recalls, and gives way to changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from eirkit.errors import UnknownNameError, UsageError
from eirkit.lacuna.memories.factory import check_plan
from eirkit.lacuna.memories.memory import Item, MemorySystem
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.lacuna.memories.validity import EndedText
from tests.memories.stories import held, needs, opened, run

CALLS_A_WRITE = 4  # entities, their resolution, facts, their resolution; the first in a graph has nothing to resolve


def test_a_setting_that_it_does_not_have_is_refused():
    with pytest.raises(UnknownNameError, match="min_score"):
        check_plan(MemoryPlan("graphiti", {"min_likeness": 0.1}))


@needs("graphiti")
@pytest.mark.slow
def test_it_conforms():
    assert held("graphiti", profile="store-only", min_score=0) == 18


@needs("graphiti")
@pytest.mark.slow
def test_it_recalls_whole_tasks_and_its_calls_are_counted(tmp_path, capsys):
    for row in run(tmp_path, capsys, "graphiti"):
        system = row["memory_system"]
        found = system["outcomes"]["used"]
        assert found > 0, "it found nothing that it was given"
        assert system["outcomes"]["not_stored"] == system["outcomes"]["other_value"] == 0
        assert row["accuracy"] == 1 or system["outcomes"]["not_found"] > 0
        assert 0 < system["model_calls"] <= CALLS_A_WRITE * system["records"]
        assert system["input_tokens"] > 0


@needs("graphiti")
@pytest.mark.slow
def test_a_changed_record_supersedes_the_earlier_one():
    async def change(memory: MemorySystem) -> tuple[list[str], str | None, int | None]:
        for text in ("A_01 = 1000", "A_02 = 2000", "A_01 = 1111"):
            await memory.write(Item(text[:2] + text[3], text))
        return list(await memory.search("A_01", 5)), await memory.read("A_1"), (await memory.usage()).records

    found, kept, episodes = opened(change, "graphiti", min_score=0)
    assert "A_01 = 1111" in found
    ended = [text for text in found if isinstance(text, EndedText)]
    assert ended == ["A_01 = 1000 (no longer valid)"], "it returns what has ended as well, and says so"
    assert kept == "A_01 = 1111"
    assert episodes == 3, "a temporal graph keeps what it was told before"


@needs("graphiti")
@pytest.mark.slow
def test_it_can_return_the_episodes_that_facts_came_from():
    async def say(memory: MemorySystem) -> list[str]:
        await memory.write(Item("A_1", "In the end A_01 = 1000, after some thought"))
        return list(await memory.search("A_01", 5))

    assert opened(say, "graphiti", min_score=0, returns="facts") == ["A_01 = 1000"]
    assert opened(say, "graphiti", min_score=0, returns="episodes") == ["In the end A_01 = 1000, after some thought"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"returns": "poems"}, "no way of returning named 'poems'; known: episodes, facts"),
        ({"url": "http://127.0.0.1:1"}, "use bolt://, neo4j:// or falkor://"),
        ({"url": "bolt://me:secret@127.0.0.1:1"}, "url of memory 'graphiti' contains a secret"),
        ({"url": "bolt://me@127.0.0.1:1"}, "set GRAPHITI_USER and GRAPHITI_PASSWORD instead"),
    ],
)
def test_wrong_settings_are_told_in_one_line_before_anything_starts(settings, said):
    with pytest.raises(UsageError, match=said):
        check_plan(MemoryPlan("graphiti", settings))


@needs("graphiti")
@pytest.mark.slow
def test_nothing_is_left_behind(tmp_path, monkeypatch):
    async def write(memory: MemorySystem) -> list[Path]:
        await memory.write(Item("A_1", "A_01 = 1000"))
        return list(tmp_path.iterdir())

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert opened(write, "graphiti")
    assert list(tmp_path.iterdir()) == []
