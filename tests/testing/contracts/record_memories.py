"""Memories for calibration: each broken one logs what it really did to a record, and the sound ones have odd manners.

Few imports, so that their processes start fast. The log is a file in the folder in which they work.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

from eirkit.lacuna.memories.memory import Item
from eirkit.lacuna.memories.validity import EndedText
from tests.testing.contracts.faulty_memories import Sound

LOG = Path("what-they-did.log")


def log(memory: object, what: str, label: str) -> None:
    """Note what a memory has done; the name of the class comes first."""
    with LOG.open("a") as file:
        file.write(f"{type(memory).__name__}\t{what}\t{label}\n")


class DropsEachThirdWrite(Sound):
    writes = 0

    def write(self, item: Item) -> None:
        self.writes += 1
        if self.writes % 3:
            super().write(item)
        else:
            log(self, "overwrite lost" if item.label in self.kept else "write lost", item.label)


class DropsEachSeventhOverwrite(Sound):
    overwrites = 0

    def write(self, item: Item) -> None:
        self.overwrites += item.label in self.kept
        if item.label in self.kept and self.overwrites % 7 == 0:
            log(self, "overwrite lost", item.label)
        else:
            super().write(item)


class KeepsTheFirstValue(Sound):
    def write(self, item: Item) -> None:
        if item.label in self.kept:
            log(self, "overwrite lost", item.label)
        else:
            super().write(item)


class SearchesOldValues(Sound):
    """Reads what is new and searches what is old."""

    def __init__(self) -> None:
        super().__init__()
        self.first: dict[str, str] = {}

    def reset(self, scope: str) -> None:
        super().reset(scope)
        self.first = {}

    def write(self, item: Item) -> None:
        super().write(item)
        self.first.setdefault(item.label, item.text)

    def forget(self, label: str) -> None:
        super().forget(label)
        self.first.pop(label, None)

    def search(self, query: str, limit: int) -> list[str]:
        old = {self.kept[label]: self.first[label] for label in self.kept}
        found = super().search(query, limit)
        for text in found:
            if old[text] != text:
                log(self, "stale", text)
        return [old[text] for text in found]


class KeepsAnswers(Sound):
    """Returns to a query what it returned to it before."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[str, list[str]] = {}

    def reset(self, scope: str) -> None:
        super().reset(scope)
        self.answers = {}

    def search(self, query: str, limit: int) -> list[str]:
        now = super().search(query, 100)
        given = self.answers.setdefault(query, now) or now
        if given != now:
            log(self, "stale" if now else "deleted", query)
        return given[:limit]


class IgnoresDeletes(Sound):
    def forget(self, label: str) -> None:
        log(self, "deleted", label)


class RevivesDeletes(Sound):
    """What was deleted is back after the next write."""

    def __init__(self) -> None:
        super().__init__()
        self.deleted: dict[str, str] = {}

    def reset(self, scope: str) -> None:
        super().reset(scope)
        self.deleted = {}

    def forget(self, label: str) -> None:
        if label in self.kept:
            self.deleted[label] = self.kept.pop(label)

    def write(self, item: Item) -> None:
        for label in self.deleted:
            log(self, "deleted", label)
        self.kept.update(self.deleted)
        super().write(item)


class LosesTheEnd(Sound):
    """Returns records without the last step at which they hold."""

    def search(self, query: str, limit: int) -> list[str]:
        found = super().search(query, limit)
        for text in found:
            if " until " in text:
                log(self, "expired", text)
        return [text.partition(" until ")[0] for text in found]


class LosesAllInARestart(Sound):
    def teardown(self) -> None:
        log(self, "restart", "")
        self.kept = {}

    def reopen(self, scope: str) -> None: ...


class Shared(Sound):
    """One file for all users, so that processes share it too, with the scope in front of each label."""

    file = "shared.db"
    scope = ""

    def ask(self, statement: str, *values: str) -> list[tuple[str, str]]:
        with closing(sqlite3.connect(self.file, timeout=20, isolation_level=None)) as table:
            table.execute("CREATE TABLE IF NOT EXISTS kept (label PRIMARY KEY, text)")
            return table.execute(statement, values).fetchall()

    def name(self, label: str) -> str:
        return f"{self.scope} {label}"

    def reset(self, scope: str) -> None:
        self.scope = scope
        self.ask("DELETE FROM kept WHERE label LIKE ?", f"{scope} %")

    def load(self) -> None:
        rows = self.ask("SELECT label, text FROM kept WHERE label LIKE ? ORDER BY rowid", self.name("%"))
        self.kept = {label.rpartition(" ")[2]: text for label, text in rows}

    def write(self, item: Item) -> None:
        self.ask("INSERT OR REPLACE INTO kept VALUES (?, ?)", self.name(item.label), item.text)

    def search(self, query: str, limit: int) -> list[str]:
        self.load()
        return super().search(query, limit)

    def read(self, label: str) -> str | None:
        self.load()
        return super().read(label)

    def forget(self, label: str) -> None:
        self.ask("DELETE FROM kept WHERE label = ?", self.name(label))


class MixesUsers(Shared):
    """Leaves the scope out of the key."""

    file = "mixed.db"

    def reset(self, scope: str) -> None:
        super().reset("")

    def write(self, item: Item) -> None:
        old = self.ask("SELECT label, text FROM kept WHERE label = ?", self.name(item.label))
        if old and old[0][1] != item.text:
            log(self, "foreign", item.label)
        super().write(item)

    def forget(self, label: str) -> None:
        log(self, "write lost", label)
        super().forget(label)


class DeletesForEverybody(Shared):
    file = "deleting.db"

    def forget(self, label: str) -> None:
        if len(self.ask("SELECT label, text FROM kept WHERE label LIKE ?", f"% {label}")) > 1:
            log(self, "write lost", label)
        self.ask("DELETE FROM kept WHERE label LIKE ?", f"% {label}")


class RacingWriters(Sound):
    """Reads the file of all users, waits, and writes it back, as a file without a lock is written."""

    scope = ""

    def load(self) -> dict[str, dict[str, str]]:
        try:
            found: dict[str, dict[str, str]] = json.loads(Path("racing.json").read_text())
        except (OSError, ValueError):
            return {}
        return found

    def save(self, everyone: dict[str, dict[str, str]]) -> None:
        place = Path(f"racing-{random.random()}.json")
        place.write_text(json.dumps(everyone))
        place.rename("racing.json")

    def reset(self, scope: str) -> None:
        self.scope = scope
        self.save({**self.load(), scope: {}})

    async def write(self, item: Item) -> None:  # type: ignore[override]
        before = self.load()
        await asyncio.sleep(0.01)
        now = self.load()
        if now != before:
            log(self, "write lost", item.label)
        own = before.get(self.scope, {})
        own.pop(item.label, None)
        self.save({**before, self.scope: {**own, item.label: item.text}})

    def search(self, query: str, limit: int) -> list[str]:
        self.kept = self.load().get(self.scope, {})
        return super().search(query, limit)

    def read(self, label: str) -> str | None:
        return self.load().get(self.scope, {}).get(label)

    def forget(self, label: str) -> None:
        before = self.load()
        before.get(self.scope, {}).pop(label, None)
        self.save(before)


class SwapsValues(Sound):
    """States a label with the value that was written before it."""

    def search(self, query: str, limit: int) -> list[str]:
        texts = list(self.kept.values())
        found = super().search(query, limit)
        for text in found:
            log(self, "swapped", text)
        return [f"{t.split(' = ')[0]} = {texts[texts.index(t) - 1].split(' = ')[-1]}" for t in found]


class ChangesADigit(Sound):
    def search(self, query: str, limit: int) -> list[str]:
        def change(found: re.Match[str]) -> str:
            log(self, "other", found[0])
            return f"{found[1]}{(int(found[2]) + 1) % 10}"

        return [re.sub(r"( = \d*)(\d)", change, text, count=1) for text in super().search(query, limit)]


class CutsAt120(Sound):
    def write(self, item: Item) -> None:
        if len(item.text) > 120:
            log(self, "cut", item.label)
        super().write(Item(item.label, item.text[:120]))


class Contradicts(Sound):
    """Returns every record with its value and, after it, with another one."""

    def search(self, query: str, limit: int) -> list[str]:
        found = []
        for text in super().search(query, limit):
            log(self, "contradiction", text)
            other = re.sub(r" = (\d)", lambda digit: f" = {(int(digit[1]) + 5) % 10}", text)
            found += [text, other]
        return found[:limit]


class IndexesLate(Sound):
    """Shows a record once three more were written, however long that takes."""

    def search(self, query: str, limit: int) -> list[str]:
        newest = list(self.kept.values())[-3:]
        found = super().search(query, limit + 3)
        for text in found:
            if text in newest:
                log(self, "not found", text)
        return [text for text in found if text not in newest][:limit]


class HoldsTwelve(Sound):
    def write(self, item: Item) -> None:
        super().write(item)
        while len(self.kept) > 12:
            oldest = next(iter(self.kept))
            log(self, "write lost", oldest)
            del self.kept[oldest]


class ForgetsWhatItReturned(Sound):
    """A search takes out what it finds."""

    def search(self, query: str, limit: int) -> list[str]:
        found = super().search(query, limit)
        for label in [label for label, text in self.kept.items() if text in found]:
            log(self, "write lost", label)
            del self.kept[label]
        return found


class MatchesPrefixes(Sound):
    """Takes A_1 for the beginning of A_10, and returns the newest of those."""

    def find(self, label: str) -> str | None:
        return next((text for name, text in reversed(self.kept.items()) if name.startswith(label)), None)

    def search(self, query: str, limit: int) -> list[str]:
        labels = [f"A_{int(number)}" for number in re.findall(r"A_(\d+)", query)]
        for label in labels:
            if self.find(label) != self.kept.get(label):
                log(self, "not found", label)
        return [text for label in labels if (text := self.find(label)) is not None][:limit]

    def read(self, label: str) -> str | None:
        return self.find(label)


class OneTooFew(Sound):
    def search(self, query: str, limit: int) -> list[str]:
        log(self, "limit", query)
        return super().search(query, limit - 1)


LOST, KEPT_OLD = "loses what is written", "keeps an outdated value: what is written again is lost"
LOST_LATER, STALE = "loses what it had stored", "returns an outdated value, though it holds the new one"
# What `eirkit lacuna run` may say of each thing that is done to a record.
SAID = {
    "write lost": {LOST, LOST_LATER, KEPT_OLD},
    "overwrite lost": {KEPT_OLD},
    "stale": {STALE},
    "deleted": {"returns what was deleted"},
    "expired": {"returns what has expired as if it held"},
    "foreign": {"returns another user's value"},
    "swapped": {"returns another label's value"},
    "other": {"returns a wrong value"},
    "cut": {"returns a cut value"},
    "contradiction": {"contradicts itself: returns a wrong value beside the right one"},
    "not found": {"does not find what it holds"},
    "restart": set(),  # no run restarts its memory
    "limit": set(),  # a query names one record, which a limit that is off by one does not touch
}
# What the gate says of each.
BROKEN: dict[type[Sound], str] = {
    DropsEachThirdWrite: "lost write: of 64 writes one after the other 21",
    DropsEachSeventhOverwrite: r"overwrites lost: 5 of 36; read\(",
    KeepsTheFirstValue: r"overwrite ignored: read\('A_1'\) returned 'A_01 = 1007' after 'A_01 = 4001'",
    SearchesOldValues: r"stale value: search\('A_01'\) returned 'A_01 = 1007' first, after 'A_01 = 4001'",
    KeepsAnswers: r"stale value: search\('A_01'\) returned 'A_01 = 1007' first, after 'A_01 = 4001'",
    IgnoresDeletes: "delete forgotten",
    RevivesDeletes: "delete forgotten",
    LosesTheEnd: r"end of validity lost: search\('A_21'\) returned 'A_21 = 4021'",
    LosesAllInARestart: "lost in a restart",
    MixesUsers: "another user's value",
    DeletesForEverybody: r"another user's delete: read\('A_1'\) returned nothing after another's forget and reset",
    RacingWriters: "racing writers: of 16 writes at the same time",
    SwapsValues: "wrong value",
    ChangesADigit: r"wrong value: search\('A_01'\) returned 'A_01 = 101\d'; 'A_01 = 1013' was written",
    CutsAt120: "long text cut or changed",
    Contradicts: "contradiction: search",
    IndexesLate: "last 3 writes invisible",
    HoldsTwelve: "lost write: of 64 writes one after the other 16",
    ForgetsWhatItReturned: r"lost by a search: read\('A_1'\)",
    MatchesPrefixes: r"prefix match: read\('A_1'\) returned 'A_101 = 2313'; 'A_01 = 1013' was written",
    OneTooFew: r"wrong limit: search\('A_01 .* A_08', 1\) returned nothing",
}


class Slow(Sound):
    def search(self, query: str, limit: int) -> list[str]:
        time.sleep(0.05)
        return super().search(query, limit)


class Duplicating(Sound):
    """Returns what it finds twice."""

    def search(self, query: str, limit: int) -> list[str]:
        return [text for text in super().search(query, limit) for _ in range(2)][:limit]


class InJson(Sound):
    def search(self, query: str, limit: int) -> list[str]:
        return [json.dumps({"id": 17, "memory": text, "score": 0.87}) for text in super().search(query, limit)]


class BestLast(Sound):
    def search(self, query: str, limit: int) -> list[str]:
        return super().search(query, limit)[::-1]


class Summarizing(Sound):
    """Says `A_07 is 0042`."""

    def search(self, query: str, limit: int) -> list[str]:
        return [text.replace(" = ", " is ", 1) for text in super().search(query, limit)]


class InSentences(Sound):
    def search(self, query: str, limit: int) -> list[str]:
        return [
            f"I was told that the value of {text.replace(' = ', ' is ', 1)}." for text in super().search(query, limit)
        ]


class LowerCase(Sound):
    """Returns records of digits in lower case."""

    def search(self, query: str, limit: int) -> list[str]:
        found = super().search(query, limit)
        return [text.lower() if re.fullmatch(r"A_\d+ = [\d ]+( until step \d+)?", text) else text for text in found]


class OldestFirst(Sound):
    def search(self, query: str, limit: int) -> list[str]:
        return super().search(query, 1000)[::-1][:limit]


class FillsUp(Sound):
    """Returns whatever else it has after what it found, up to what was asked for."""

    def search(self, query: str, limit: int) -> list[str]:
        found = super().search(query, limit)
        return [*found, *(text for text in self.kept.values() if text not in found)][:limit]


class Joins(Sound):
    """Returns everything that it finds as one passage."""

    def search(self, query: str, limit: int) -> list[str]:
        found = super().search(query, limit)
        return ["\n".join(found)] if found else []


class JoinsInALine(Sound):
    def search(self, query: str, limit: int) -> list[str]:
        found = super().search(query, limit)
        if any("\n" in text for text in found):
            return found
        return ["; ".join(found)] if found else []


class OnThreads(Sound):
    """Works on another thread for every call, behind a lock."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    async def write(self, item: Item) -> None:  # type: ignore[override]
        await asyncio.to_thread(self.locked, item)

    def locked(self, item: Item) -> None:
        with self.lock:
            time.sleep(0.001)
            super().write(item)


class Reorders(Sound):
    """Ends concurrent writes in another order than they began; each is kept when it ends."""

    async def write(self, item: Item) -> None:  # type: ignore[override]
        await asyncio.sleep(random.random() / 200)
        super().write(item)


class OneAtATime(Sound):
    """Takes one call at a time, and is slow with each."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = asyncio.Lock()

    async def write(self, item: Item) -> None:  # type: ignore[override]
        async with self.lock:
            await asyncio.sleep(0.001)
            super().write(item)


class InSqlite(Shared):
    file = "sound.db"


class AfterFlush(Sound):
    """Searches what was there at the last flush."""

    def __init__(self) -> None:
        super().__init__()
        self.index: dict[str, str] = {}

    def reset(self, scope: str) -> None:
        super().reset(scope)
        self.index = {}

    def flush(self) -> None:
        self.index = dict(self.kept)

    def forget(self, label: str) -> None:
        super().forget(label)
        self.index.pop(label, None)

    def search(self, query: str, limit: int) -> list[str]:
        now, self.kept = self.kept, self.index
        try:
            return super().search(query, limit)
        finally:
            self.kept = now


class Eventual(AfterFlush):
    """Is consistent a tenth of a second after a flush began, and says so."""

    delay_seconds = 0.1

    def __init__(self) -> None:
        super().__init__()
        self.at = 0.0
        self.next: dict[str, str] = {}

    def reset(self, scope: str) -> None:
        super().reset(scope)
        self.next = {}

    def forget(self, label: str) -> None:
        super().forget(label)
        self.next.pop(label, None)

    def flush(self) -> None:
        self.next, self.at = dict(self.kept), time.monotonic() + 0.08

    def search(self, query: str, limit: int) -> list[str]:
        if time.monotonic() >= self.at:
            self.index = self.next
        return super().search(query, limit)


class WaitsInFlush(AfterFlush):
    async def flush(self) -> None:  # type: ignore[override]
        await asyncio.sleep(0.02)
        super().flush()


class Numbered(Sound):
    """Returns ranks, ids and scores with its records."""

    def search(self, query: str, limit: int) -> list[str]:
        return [
            f"{rank}. [{4820 + rank}] {text} (score 0.93)" for rank, text in enumerate(super().search(query, limit), 1)
        ]


class Marked(Sound):
    def search(self, query: str, limit: int) -> list[str]:
        return [f"- **{text}**" for text in super().search(query, limit)]


class Remembers(Sound):
    """Keeps what was overwritten, marked as ended, behind what holds."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[str, list[str]] = {}

    def reset(self, scope: str) -> None:
        super().reset(scope)
        self.before = {}

    def write(self, item: Item) -> None:
        if item.label in self.kept and self.kept[item.label] != item.text:
            self.before.setdefault(item.label, []).append(self.kept[item.label])
        super().write(item)

    def forget(self, label: str) -> None:
        super().forget(label)
        self.before.pop(label, None)

    def search(self, query: str, limit: int) -> list[str]:
        found = super().search(query, limit)
        labels = [label for label, text in self.kept.items() if text in found]
        return [*found, *(EndedText(text) for label in labels for text in self.before.get(label, ()))][:limit]


class CannotForget:
    """Four verbs, no deletes."""

    def __init__(self) -> None:
        self.sound = Sound()
        self.reset, self.read, self.write = self.sound.reset, self.sound.read, self.sound.write

    def reset(self, scope: str) -> None: ...

    def write(self, item: Item) -> None: ...

    def read(self, label: str) -> str | None: ...

    def search(self, query: str, limit: int) -> list[str]:
        return self.sound.search(query, limit)


SOUND = (
    *(Sound, Slow, Duplicating, InJson, BestLast, Summarizing, InSentences, LowerCase, OldestFirst, FillsUp, Joins),
    *(JoinsInALine, OnThreads, Reorders, OneAtATime, InSqlite, AfterFlush, Eventual, WaitsInFlush, Numbered, Marked),
    *(Remembers, CannotForget),
)
