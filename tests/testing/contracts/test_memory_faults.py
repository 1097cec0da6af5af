"""Memories that break as real ones do are named by the conformance suite, each with the call that shows it."""

from __future__ import annotations

import asyncio
import math
import re
import signal
import time
from collections.abc import Callable
from types import ModuleType

import pytest

from eirkit.errors import UsageError
from eirkit.lacuna.memories.calls import wait_for
from eirkit.lacuna.memories.factory import make_memory
from eirkit.lacuna.memories.memory import Item, MemorySystem, memories
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.testing import check_memory
from eirkit.testing.conformance import try_all
from eirkit.testing.memory_faults import Fault, _concurrent, _found, _many, _overwrites, _users, restarts
from eirkit.testing.opened_memory import Factory, ReusedMemory, SuiteLimits
from tests.testing.contracts import faulty_memories, subtle_memories
from tests.testing.contracts.faulty_memories import (
    BROKEN,
    NothingAfterRestart,
    RacingWriters,
    Slow,
    SlowOnPurpose,
    Small,
    Sound,
)
from tests.testing.contracts.subtle_memories import SUBTLE, UNUSUAL, Disk, Temporal


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_memory_is_named_by_its_fault(kind, reuse, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("eirkit.testing.memory_faults.GRACE_SECONDS", 0.5)  # some are never found
    with pytest.raises(AssertionError, match=BROKEN[kind]):
        check_memory(kind, seconds=20, records=64, reuse=reuse)


@pytest.mark.parametrize(("kind", "said"), SUBTLE.items(), ids=lambda one: getattr(one, "__name__", one))
def test_a_memory_that_breaks_less_plainly_is_named_by_its_fault(kind, said, monkeypatch):
    monkeypatch.setattr("eirkit.testing.memory_faults.GRACE_SECONDS", 0.1)
    with pytest.raises(AssertionError, match=said):
        check_memory(kind, seconds=20, records=64)


@pytest.mark.parametrize("kind", UNUSUAL.values(), ids=UNUSUAL)
def test_a_memory_with_unusual_ways_raises_no_alarm(kind):
    assert len(check_memory(kind, seconds=20, records=64).held) == 18


def test_a_memory_that_stays_open_is_opened_four_times_at_most_and_closed_each_time():
    """Once for most requirements, once more where two are used at a time, and once each to close and to restart."""
    opened = []

    class Counted(Sound):
        def setup(self) -> None:
            opened.append(self)

        def teardown(self) -> None:
            if self in opened:
                opened.remove(self)
                closed.append(self)

    closed: list[Sound] = []
    assert len(check_memory(Counted, seconds=20, records=64, reuse=True).held) == 18
    assert (opened, len(closed)) == ([], 4)


@pytest.mark.parametrize("kind", [Sound, SlowOnPurpose])
def test_a_sound_memory_holds_everything(kind):
    found = check_memory(kind, seconds=20, records=64)
    assert len(found.held) == 18
    assert any("a restart was not tested" in note for note in found.notes)
    assert "many records: 64 written, 24 sought, 0 not found" in found.notes


def test_an_interrupt_ends_the_suite_where_systems_are_reused():
    tried = []

    class Interrupted(Sound):
        async def search(self, query: str, limit: int) -> list[str]:  # type: ignore[override]
            tried.append(query)
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(60)
            return []

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a script started the tests with &
    try:
        with pytest.raises(KeyboardInterrupt):
            check_memory(Interrupted, seconds=20, records=64, reuse=True)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(tried) == 1


def test_what_is_not_begun_in_time_is_named_and_not_said_to_hold():
    found = check_memory(Sound, records=64, limit=1e-9)
    assert len(found.held) <= 1  # none, unless the clock does not tell so short a time
    note = found.notes[-1]
    assert f"{18 - len(found.held)} requirements were not tested, as 1e-09 s were over: " in note


@pytest.mark.parametrize("limit", [0, -1, math.nan])
def test_a_limit_in_which_nothing_can_be_tested_is_refused(limit):
    with pytest.raises(UsageError, match=rf"limit is {limit:g} s"):
        check_memory(Sound, records=64, limit=limit)


def test_one_requirement_that_is_left_is_told_in_the_singular():
    def slow(subject: None) -> None:
        """First."""
        time.sleep(0.02)

    def left(subject: None) -> None:
        """Second."""

    assert try_all(None, [slow, left], 0.01).notes == ("1 requirement was not tested, as 0.01 s were over: Second",)


def test_what_was_tested_is_told_of_a_memory_that_fails_too():
    def noted(subject: None) -> str:
        """First."""
        return "many records: 64 written"

    def fails(subject: None) -> None:
        """Second."""
        raise AssertionError("lost")

    with pytest.raises(AssertionError, match=r"^Second: lost") as failure:
        try_all(None, [noted, fails])
    assert failure.value.__notes__ == ["many records: 64 written"]


@pytest.mark.parametrize("name", ["key-value", "bm25", "vector"])
def test_a_cheap_store_is_tried_with_ten_thousand_records_and_raises_no_alarm(name):
    found = check_memory(memories.get(name), seconds=60)
    assert len(found.held) == 18
    assert "many records: 10,000 written, 24 sought, 0 not found" in found.notes


@pytest.mark.parametrize("name", ["agent-file", "agent-tools"])
def test_a_memory_that_an_agent_manages_conforms(name):
    plan = MemoryPlan(name, {})
    found = check_memory(lambda: make_memory(plan), seconds=60, records=64)
    assert len(found.held) == 18
    assert "many records: 64 written, 24 sought, 0 not found" in found.notes


def tried(requirement: Fault, kind: Factory, records: int = 64) -> str | None:
    return wait_for(requirement(kind, SuiteLimits(60, records)))


def test_fewer_records_than_asked_for_are_explained(monkeypatch):
    monkeypatch.setattr("eirkit.testing.memory_faults.WRITING_SECONDS", 0.1)
    said = tried(_many, Slow, 10_000)
    assert re.match(r"many records: \d+ written of 10,000 in \d+\.\d s, \d+\.\d ms a write, 24 sought", said or "")
    said = tried(_many, Small, 10_000)
    assert said == "many records: 30 written of 10,000, because it declares to hold no more, 24 sought, 0 not found"
    with pytest.raises(UsageError, match="records is 0; give 1 or more"):
        check_memory(Sound, records=0)


def dropping(is_dropped: Callable[[int], bool]) -> type[Sound]:
    """Return a memory that never keeps some writes, counted from 1, whoever writes beside them."""

    class Dropping(Sound):
        writes = 0

        async def write(self, item: Item) -> None:  # type: ignore[override]
            self.writes += 1
            if not is_dropped(self.writes):
                super().write(item)

    return Dropping


class FindsTheFirstTen(Sound):
    """Keeps everything; a search looks at the first page alone."""

    def search(self, query: str, limit: int) -> list[str]:
        first = list(self.kept.values())[:10]
        return [text for text in super().search(query, 1000) if text in first][:limit]


class IndexesInARace(Sound):
    """Keeps everything; the index that a search looks at is written back without a lock."""

    def __init__(self) -> None:
        super().__init__()
        self.index: tuple[str, ...] = ()

    async def write(self, item: Item) -> None:  # type: ignore[override]
        super().write(item)
        before = self.index
        await asyncio.sleep(0.001)
        self.index = (*before, item.text)

    def search(self, query: str, limit: int) -> list[str]:
        return [text for text in super().search(query, 1000) if text in self.index][:limit]


class HoldsTen(Sound):
    def write(self, item: Item) -> None:
        super().write(item)
        self.kept = dict(list(self.kept.items())[-10:])


class DeclaresTen(HoldsTen):
    most_records = 10


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            dropping(lambda write: write % 2 == 0),
            "lost write: of 64 writes one after the other 32, such as A_22, and of 16 writes at the same time 8",
        ),
        (
            dropping(lambda write: write % 40 == 16),
            "lost write: of \\d+ writes one after the other \\d+, such as A_36, and",
        ),
        (
            dropping(lambda write: write % 64 == 5),
            "lost write: of \\d+ writes one after the other \\d+, such as A_25, and",
        ),
        (dropping(lambda write: write == 1), "lost write: of 64 writes one after the other 1, such as A_21, and of 16"),
        (
            HoldsTen,
            "lost write: of 64 writes one after the other 24, such as A_21, and of 16 writes at the same time 6",
        ),
        (FindsTheFirstTen, r"not found by search: of 16 writes at the same time 6, one after the other 24; search\("),
        (IndexesInARace, r"not found by search: of 16 writes at the same time 15, one after the other none; search\("),
        (
            RacingWriters,
            "racing writers: of 16 writes at the same time 15 are lost; .*; one after the other all 64 are kept",
        ),
    ],
)
def test_writers_race_only_where_the_same_writes_in_turn_are_kept(kind, said):
    with pytest.raises(AssertionError, match=f"^{said}"):
        tried(_concurrent, kind)


def test_a_memory_that_loses_writes_is_not_said_to_let_others_delete():
    with pytest.raises(AssertionError, match=r"^lost write: read\('A_2'\) returned nothing"):
        tried(_users, dropping(lambda write: write % 2 == 0))


@pytest.mark.parametrize("kind", [Sound, SlowOnPurpose, DeclaresTen])
def test_writers_that_do_not_race_are_not_said_to(kind):
    assert tried(_concurrent, kind) is None


def test_a_system_in_a_process_of_its_own_is_restarted_and_waited_for():
    def own(kind: type, module: ModuleType = faulty_memories) -> Factory:
        return lambda: make_memory(MemoryPlan(f"{module.__file__}:{kind.__name__}", {}))

    with pytest.raises(AssertionError, match=r"lost in a restart: read\('A_1'\) returned nothing"):
        tried(restarts, own(NothingAfterRestart))
    with pytest.raises(AssertionError, match=r"lost in a restart: read\('A_1'\) returned nothing"):
        tried(restarts, own(Disk, subtle_memories))  # what a process remembers is gone with it
    with pytest.raises(AssertionError, match=r"racing writers: of 16 writes at the same time 15 are lost"):
        tried(_concurrent, own(RacingWriters))
    assert tried(_found, own(SlowOnPurpose)) is None
    assert tried(_overwrites, own(Temporal, subtle_memories)) == "overwrites: 36 tried, 4 of each of 9 records"
    assert "declares to hold no more" in (tried(_many, own(Small)) or "")


def test_a_system_that_fails_to_start_is_closed_when_systems_are_reused():
    closed = []

    class Broken(MemorySystem):
        async def setup(self):
            raise RuntimeError("no room")

        async def teardown(self):
            closed.append(self)

        async def reset(self, scope): ...

        async def write(self, item): ...

        async def search(self, query, limit):
            return []

        async def read(self, label):
            return None

    with pytest.raises(RuntimeError, match="no room"):
        asyncio.run(ReusedMemory([], Broken).setup())
    assert len(closed) == 1
