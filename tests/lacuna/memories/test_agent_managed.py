"""Memories that a model manages itself: a file that it edits, and texts that it saves, searches and deletes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eirkit.errors import UsageError
from eirkit.lacuna.memories.factory import check_plan
from eirkit.lacuna.memories.memory import Item, MemorySystem
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import Reply, Request, ToolCall
from eirkit.records.database import SweepDatabase
from eirkit.records.events import MemoryExchange
from tests.lacuna.running import eirkit
from tests.memories.stories import opened
from tests.runs import events, records

NAMES = ("agent-file", "agent-tools")
READER = "scripted/reader+language=english"
each = pytest.mark.parametrize("name", NAMES)


def kept(name: str, *said: tuple[str, str], question: str, **settings: Any) -> tuple[list[str], list[str]]:
    """Return what is held after some days on each of which something is said, and what is recalled for a question."""

    async def work(memory: MemorySystem) -> tuple[list[str], list[str]]:
        for at, text in said:
            await memory.observe([Message("user", text), Message("assistant", "Noted.")], at, at)
        return list(await memory.contents() or ()), list(await memory.recall(question, "2031-03-01", 5))

    return opened(work, name, **{"model": READER, **settings})


@each
def test_what_is_said_is_kept_with_its_day_and_deleted_where_it_is_to_be_forgotten(name):
    said = (
        ("2031-01-06", "Marta Silva's phone number is 0161-482913. Sign every answer with “Copper Kettle”."),
        ("2031-01-13", "Marta Silva now works at Redwood Foods. Please forget Marta Silva's phone number."),
    )
    held, found = kept(name, *said, question="Where does Marta Silva work?")
    assert sorted(held) == [
        "[2031-01-06] Sign every answer with “Copper Kettle”.",
        "[2031-01-13] Marta Silva now works at Redwood Foods.",
    ]
    assert sorted("\n".join(found).splitlines()) == sorted(held)


@each
def test_records_of_other_workloads_replace_each_other_and_can_be_removed(name):
    async def work(memory: MemorySystem) -> tuple[Any, ...]:
        for label, value in (("A_7", "0001"), ("A_8", "0002"), ("A_7", "0042")):
            await memory.write(Item(label, f"{label} = {value}"))
        found = list(await memory.search("A_7", 5)), await memory.read("A_7")
        await memory.forget("A_7")
        usage = await memory.usage()
        return *found, await memory.read("A_7"), None if usage is None else usage.records

    found, read, gone, records = opened(work, name)
    assert "A_7 = 0042" in "\n".join(found).splitlines()
    assert "0001" not in "\n".join(found)
    assert (read, gone, records) == ("A_7 = 0042", None, 1)


def test_a_file_without_room_keeps_what_holds_and_the_agent_takes_out_what_was_replaced():
    said = (
        ("2031-01-06", "Marta Silva works at Acorn Media. Sign every answer with “Copper Kettle”."),
        ("2031-01-13", "Marta Silva now works at Redwood Foods."),
    )
    held, _ = kept("agent-file", *said, question="Where does Marta Silva work?", characters=110)
    assert held == [
        "[2031-01-06] Sign every answer with “Copper Kettle”.",
        "[2031-01-13] Marta Silva now works at Redwood Foods.",
    ]


class Clumsy:
    """A model that asks for edits and deletions that cannot be made, and then for one that can."""

    CALLS = (
        ToolCall("edit_file", {"old_text": "not there", "new_text": "x"}),
        ToolCall("edit_file", {"old_text": "", "new_text": "y" * 200}),
        ToolCall("edit_file", {"old_text": "", "new_text": "kept"}),
        ToolCall("delete_memory", {"id": "9"}),
        ToolCall("save_memory", {"text": " "}),
        ToolCall("save_memory", {"text": "kept"}),
    )

    def __init__(self) -> None:
        self.results: list[str] = []

    async def reply(self, request: Request) -> Reply:
        offered = {tool.name for tool in request.tools}
        self.results = [one.content for one in request.messages if one.role == "user"][1:]
        calls = tuple(call for call in self.CALLS if call.name in offered)
        return Reply("Done.") if self.results else Reply("", calls)

    async def close(self) -> None: ...

    def settings(self) -> dict[str, Any]:
        return {}


class Wrong(Clumsy):
    """A model that calls what is not there, and with arguments that are none."""

    CALLS = (
        ToolCall("edit_file", {"old_text": "", "new_text": "kept"}),
        ToolCall("save_memory", {"text": "kept"}),
    )

    async def reply(self, request: Request) -> Reply:
        found = await super().reply(request)
        wrong = (ToolCall("format_disk", {}), ToolCall(request.tools[0].name, {"": "all of it"}))
        return replace(found, calls=(*wrong, *found.calls)) if found.calls else found


@pytest.mark.parametrize(
    ("name", "told"),
    [("agent-file", "5 of 10000"), ("agent-tools", "Saved")],
)
def test_a_call_that_is_none_is_answered_and_ends_nothing(name, told, monkeypatch):
    wrong = Wrong()
    monkeypatch.setattr("eirkit.lacuna.scripted.extractor.make_reader", lambda *given: wrong)
    held, _ = kept(name, ("2031-01-06", "Hello."), question="Where?")
    assert held == ["kept"]
    for one in ("no tool 'format_disk'; call ", "the arguments are no JSON object", told):
        assert any(one in result for result in wrong.results), (one, wrong.results)


@pytest.mark.parametrize(
    ("name", "settings", "told"),
    [
        (
            "agent-file",
            {"characters": 100},
            ["occurs 0 times", "would have 201 characters, of at most 100", "5 of 100"],
        ),
        ("agent-tools", {}, ["Saved", "nothing is saved as '9'", "there is no text"]),
    ],
)
def test_what_cannot_be_done_is_told_to_the_agent_and_ends_nothing(name, settings, told, monkeypatch):
    clumsy = Clumsy()
    monkeypatch.setattr("eirkit.lacuna.scripted.extractor.make_reader", lambda *given: clumsy)
    held, _ = kept(name, ("2031-01-06", "Hello."), question="Where?", **settings)
    assert held == ["kept"]
    assert all(any(one in result for result in clumsy.results) for one in told)


def test_settings_that_cannot_work_are_refused():
    for name, settings in (("agent-file", {"characters": 0}), ("agent-tools", {"store": "mem0"})):
        with pytest.raises(UsageError, match=r"characters is 0|store of agent-tools"):
            opened(_nothing, name, **settings)
    check_plan(MemoryPlan("agent-file", {"model": "run"}))


async def _nothing(memory: MemorySystem) -> None: ...


@pytest.mark.parametrize(
    ("settings", "causes"),
    [
        (("agent-file.model=scripted/reader+misses=1",), {"never_stored"}),
        (("agent-file.characters=300",), {"never_stored", "deleted"}),
        ((), set()),
    ],
)
def test_wrong_answers_are_traced_to_what_the_agent_wrote(settings, causes, tmp_path: Path, capsys):
    given = ["words", "--preset", "small+questions=8", "--seeds", "0:2", "--model", "scripted/reader"]
    more = [word for one in settings for word in ("--set", one)]
    out = tmp_path / "out"
    assert eirkit("lacuna", "run", *given, "--no-control", "--memory", "agent-file", *more, "--out", str(out)) == 0
    ended = records(out)
    assert {answer.cause for record in ended for answer in record.conversation.wrong} == causes
    with SweepDatabase(out) as database:
        assert b'"added"' in database.event_lines(ended[0].run)
    calls = [event for event in events(out) if isinstance(event, MemoryExchange)]
    for observed in (event for event in calls if event.verb == "observe"):  # recorded as changes, read as whole lists
        assert len("".join(f"{line}\n" for line in observed.stored).encode()) == observed.bytes + len(observed.stored)
