"""Fifteen memories that break as real ones do, and what the gate says of each; few imports, so they start fast."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import Counter
from contextlib import closing
from itertools import islice

from eirkit.lacuna.memories.memory import Item


class Sound:
    """Finds records by the words of a query, newest first; replaces what is written again. Nothing is wrong with it."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def reset(self, scope: str) -> None:
        self.kept = {}

    def write(self, item: Item) -> None:
        self.kept.pop(item.label, None)
        self.kept[item.label] = item.text

    def search(self, query: str, limit: int) -> list[str]:
        words = set(query.split()) - {"="}
        found = (text for text in reversed(self.kept.values()) if words & set(text.split()))
        return list(islice(found, limit))

    def read(self, label: str) -> str | None:
        return self.kept.get(label)

    def forget(self, label: str) -> None:
        self.kept.pop(label, None)


class Cuts(Sound):
    def write(self, item: Item) -> None:
        super().write(Item(item.label, item.text[:64]))


class LastWriteInvisible(Sound):
    def search(self, query: str, limit: int) -> list[str]:
        newest = next(reversed(self.kept.values()), None)
        return [text for text in super().search(query, limit + 1) if text != newest][:limit]


class NothingAfterRestart(Sound):
    def teardown(self) -> None:
        self.kept = {}

    def reopen(self, scope: str) -> None: ...


class RacingWriters(Sound):
    """Reads the whole store, waits, and writes it back, as a file without a lock is written."""

    async def write(self, item: Item) -> None:  # type: ignore[override]
        before = dict(self.kept)
        await asyncio.sleep(0.01)
        before.pop(item.label, None)
        self.kept = {**before, item.label: item.text}


class NewestTwenty(Sound):
    def write(self, item: Item) -> None:
        super().write(item)
        self.kept = dict(islice(reversed(self.kept.items()), 20))
        self.kept = dict(reversed(self.kept.items()))


class OtherUsers(Sound):
    """One table for all users: a file where they work, so that processes share it too."""

    def ask(self, statement: str, *values: str) -> list[tuple[str, str]]:
        with closing(sqlite3.connect("everyone.db", timeout=20, isolation_level=None)) as table:
            table.execute("CREATE TABLE IF NOT EXISTS kept (label PRIMARY KEY, text)")
            return table.execute(statement, values).fetchall()

    def load(self) -> None:
        self.kept = dict(self.ask("SELECT label, text FROM kept ORDER BY rowid"))

    def reset(self, scope: str) -> None:
        pass

    def write(self, item: Item) -> None:
        self.ask("INSERT OR REPLACE INTO kept VALUES (?, ?)", item.label, item.text)

    def search(self, query: str, limit: int) -> list[str]:
        self.load()
        return super().search(query, limit)

    def read(self, label: str) -> str | None:
        self.load()
        return super().read(label)

    def forget(self, label: str) -> None:
        self.ask("DELETE FROM kept WHERE label = ?", label)


class LyingRead(Sound):
    """Drops every third write and remembers it for `read` alone."""

    def __init__(self) -> None:
        super().__init__()
        self.claimed: dict[str, str] = {}
        self.count = 0

    def reset(self, scope: str) -> None:
        super().reset(scope)
        self.claimed = {}

    def write(self, item: Item) -> None:
        self.count += 1
        self.claimed[item.label] = item.text
        if self.count % 3:
            super().write(item)

    def read(self, label: str) -> str | None:
        return self.claimed.get(label)

    def forget(self, label: str) -> None:
        super().forget(label)
        self.claimed.pop(label, None)


class NeighborsValue(Sound):
    """States a label with the value that was written before it."""

    def search(self, query: str, limit: int) -> list[str]:
        texts = list(self.kept.values())
        return [
            f"{text.split(' = ')[0]} = {texts[texts.index(text) - 1].split(' = ')[-1]}"
            for text in super().search(query, limit)
        ]


class Duplicates(Sound):
    """A retry adds a second record."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Item] = []

    def reset(self, scope: str) -> None:
        self.lines = []

    def write(self, item: Item) -> None:
        self.lines.append(item)

    def search(self, query: str, limit: int) -> list[str]:
        words = set(query.split()) - {"="}
        return [line.text for line in reversed(self.lines) if words & set(line.text.split())][:limit]

    def read(self, label: str) -> str | None:
        return next((line.text for line in reversed(self.lines) if line.label == label), None)

    def forget(self, label: str) -> None:
        self.lines = [line for line in self.lines if line.label != label]


class ForgetsDeletes(Sound):
    """What was deleted is back after the next write."""

    def __init__(self) -> None:
        super().__init__()
        self.deleted: dict[str, str] = {}

    def reset(self, scope: str) -> None:
        super().reset(scope)
        self.deleted = {}

    def forget(self, label: str) -> None:
        self.deleted[label] = self.kept.pop(label)

    def write(self, item: Item) -> None:
        self.kept.update(self.deleted)
        super().write(item)


class LateByALook(Sound):
    """Shows a record to the third search that would find it: a look is one search by text and one by label."""

    def __init__(self) -> None:
        super().__init__()
        self.sought: Counter[str] = Counter()

    def write(self, item: Item) -> None:
        super().write(item)
        self.sought[item.text] = 0

    def search(self, query: str, limit: int) -> list[str]:
        found = super().search(query, limit)
        self.sought.update(found)
        return [text for text in found if self.sought[text] > 2]


class SlowOnPurpose(Sound):
    """Says how late it is, so that it is waited for."""

    delay_seconds = 0.15

    def __init__(self) -> None:
        super().__init__()
        self.since: dict[str, float] = {}

    def write(self, item: Item) -> None:
        super().write(item)
        self.since[item.text] = time.monotonic()

    def search(self, query: str, limit: int) -> list[str]:
        now = time.monotonic()
        return [text for text in super().search(query, limit) if now - self.since.get(text, 0.0) > 0.1]


BROKEN = {
    Cuts: r"long text cut or changed: read\('A_51'\) returned",
    LastWriteInvisible: r"last write invisible: search\('A_90 = 2170'\) right after write and flush did not return it",
    NothingAfterRestart: r"lost in a restart: read\('A_1'\) returned nothing",
    RacingWriters: r"racing writers: of 16 writes at the same time \d+ are lost",
    NewestTwenty: r"lost among many: read\('A_1'\) no longer returns it after [\d,]+ writes",
    OtherUsers: r"another user's value: read\('A_1'\) returned 'A_01 = 2001'",
    LyingRead: r"read and search disagree on \d+ of \d+ records: read\(.A_\d+.\) returns it",
    NeighborsValue: r"wrong value: search\('A_01'\) returned 'A_01 = 900000001'; 'A_01 = 1013' was written",
    Duplicates: r"duplicate after a retry: search\('A_01 = 4301'\) returned it 2 times",
    ForgetsDeletes: r"delete forgotten: search\('A_01 = 1007'\) still returned it after forget and another write",
    LateByALook: r"late: search\('A_90 = 2170'\) right after write and flush returned nothing of it; it was found",
}


class Slow(Sound):
    def write(self, item: Item) -> None:
        time.sleep(0.005)
        super().write(item)


class Small(Sound):
    """Holds thirty, and says so."""

    most_records = 30

    def write(self, item: Item) -> None:
        super().write(item)
        self.kept = dict(list(self.kept.items())[-30:])
