"""Further memories that break, less plainly than the fifteen, and what the gate says of each."""

from __future__ import annotations

import asyncio
import html
import json
import unicodedata
from collections.abc import Callable
from itertools import count
from typing import ClassVar

from eirkit.lacuna.memories.memory import Item
from eirkit.lacuna.memories.validity import EndedText
from tests.testing.contracts.faulty_memories import Sound


class Temporal(Sound):
    """Keeps what was overwritten, marked as ended, and returns the oldest first. Nothing is wrong with it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, str]] = []

    def reset(self, scope: str) -> None:
        self.lines = []

    def write(self, item: Item) -> None:
        if self.read(item.label) != item.text:
            self.lines.append((item.label, item.text))

    def read(self, label: str) -> str | None:
        return next((text for name, text in reversed(self.lines) if name == label), None)

    def forget(self, label: str) -> None:
        self.lines = [line for line in self.lines if line[0] != label]

    def search(self, query: str, limit: int) -> list[str]:
        words = set(query.split()) - {"="}
        found = [(label, text) for label, text in self.lines if words & set(text.split())]
        return [self.shown(label, text, text == self.read(label)) for label, text in found][:limit]

    def shown(self, label: str, text: str, holds: bool) -> str:
        return text if holds else EndedText(text, "2031-01-13")


class MarksTheCurrentValue(Temporal):
    def shown(self, label: str, text: str, holds: bool) -> str:
        return EndedText(text) if holds and " = 400" in text else super().shown(label, text, holds)


class MarksTheWrongOne(Temporal):
    def shown(self, label: str, text: str, holds: bool) -> str:
        changed = sum(name == label for name, _ in self.lines) > 1
        return EndedText(text) if holds and changed else text


class MarksEverything(Temporal):
    def shown(self, label: str, text: str, holds: bool) -> str:
        return EndedText(text)


class ReturnsWhatEndedAlone(Temporal):
    def search(self, query: str, limit: int) -> list[str]:
        found = super().search(query, limit)
        return [text for text in found if isinstance(text, EndedText)] or found


class MarksInWordsAlone(Temporal):
    """A program cannot tell such a remark from what was written."""

    def shown(self, label: str, text: str, holds: bool) -> str:
        return str(super().shown(label, text, holds))


class EndsWithARetry(Temporal):
    """Takes a repeated write for a change and ends what it repeats, without a record that takes its place."""

    def __init__(self) -> None:
        super().__init__()
        self.ended: set[str] = set()

    def write(self, item: Item) -> None:
        self.ended |= {text for _, text in self.lines if text == item.text}
        super().write(item)

    def shown(self, label: str, text: str, holds: bool) -> str:
        return super().shown(label, text, holds and text not in self.ended)


def returning(change: Callable[[str], str]) -> type[Sound]:
    """Return a memory that changes the passages that it returns."""

    class Returning(Sound):
        def search(self, query: str, limit: int) -> list[str]:
            return [change(text) for text in super().search(query, limit)]

    return Returning


def storing(change: Callable[[str], str]) -> type[Sound]:
    """Return a memory that changes the texts that it stores."""

    class Storing(Sound):
        def write(self, item: Item) -> None:
            super().write(Item(item.label, change(item.text)))

    return Storing


def valued(change: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function that changes the value of a record of digits."""

    def changed(text: str) -> str:
        label, _, value = text.partition(" = ")
        return f"{label} = {change(value)}" if value.isdecimal() else text

    return changed


class IgnoresCase(Sound):
    def write(self, item: Item) -> None:
        super().write(Item(item.label.lower(), item.text))

    def read(self, label: str) -> str | None:
        return super().read(label.lower())

    def forget(self, label: str) -> None:
        super().forget(label.lower())


class Disk(Sound):
    """Outlives a restart. Nothing is wrong with it where all its objects are in one process."""

    files: ClassVar[dict[str, dict[str, str]]] = {}
    scope = ""

    def reset(self, scope: str) -> None:
        super().reset(scope)
        self.scope = scope
        self.save()

    def save(self) -> None:
        self.files[self.scope] = dict(self.kept)

    def write(self, item: Item) -> None:
        super().write(item)
        self.save()

    def forget(self, label: str) -> None:
        super().forget(label)
        self.save()

    def teardown(self) -> None:
        self.kept = {}

    def reopen(self, scope: str) -> None:
        self.scope, self.kept = scope, dict(self.files.get(scope, {}))


class LosesTheNewestInARestart(Disk):
    def reopen(self, scope: str) -> None:
        super().reopen(scope)
        self.kept.popitem()


class SavesNoOverwrites(Disk):
    def save(self) -> None:
        self.files[self.scope] = {**self.kept, **{k: v for k, v in self.files.get(self.scope, {}).items() if self.kept}}


class SavesNoDeletes(Disk):
    def forget(self, label: str) -> None:
        Sound.forget(self, label)


class FirstPage(Sound):
    def search(self, query: str, limit: int) -> list[str]:
        page = list(self.kept.values())[:50]
        return [text for text in super().search(query, limit) if text in page]


class OneTooMany(Sound):
    def search(self, query: str, limit: int) -> list[str]:
        return super().search(query, limit + 1)


class RevivesWhatIsWrittenAgain(Sound):
    """A label that is written after it was deleted has its old record as well."""

    def __init__(self) -> None:
        super().__init__()
        self.deleted: dict[str, str] = {}

    def forget(self, label: str) -> None:
        self.deleted[label] = self.kept.pop(label)

    def write(self, item: Item) -> None:
        if item.label in self.deleted:
            self.kept[f"{item.label} before"] = self.deleted.pop(item.label)
        super().write(item)


class ForgetsByPrefix(Sound):
    def forget(self, label: str) -> None:
        self.kept = {name: text for name, text in self.kept.items() if not name.startswith(label)}


class SearchesEverybody(Sound):
    """Reads what is its own; another user's record is found by a search alone."""

    everybody: ClassVar[list[Sound]] = []

    def __init__(self) -> None:
        super().__init__()
        self.everybody.append(self)

    def search(self, query: str, limit: int) -> list[str]:
        return [text for one in self.everybody for text in Sound.search(one, query, limit)][:limit]


class LosesTheLaterOfTwo(Sound):
    busy = False

    async def write(self, item: Item) -> None:  # type: ignore[override]
        if not self.busy:
            self.busy = True
            await asyncio.sleep(0.001)
            super().write(item)
            self.busy = False


class LateByWrites(Sound):
    """Shows a record once three more were written, however long that takes."""

    def search(self, query: str, limit: int) -> list[str]:
        newest = list(self.kept.values())[-3:]
        return [text for text in super().search(query, limit + 3) if text not in newest][:limit]


class MergesEqualValues(Sound):
    def write(self, item: Item) -> None:
        value = item.text.partition(" = ")[2]
        if not any(text.endswith(f" = {value}") for name, text in self.kept.items() if name != item.label):
            super().write(item)


SUBTLE = {
    MarksTheCurrentValue: r"current value marked as ended: search\('A_01'\) returned 'A_01 = 4001 \(no longer valid\)'",
    MarksTheWrongOne: r"stale value: search\('A_01'\) returned 'A_01 = 1007' first, after 'A_01 = 4001'",
    MarksEverything: r"current value marked as ended: search\('A_90 = 2170'\) returned 'A_90 = 2170 \(no longer",
    ReturnsWhatEndedAlone: r"stale value: search\('A_01'\) returned 'A_01 = 1007 \(until 2031-01-13\)' alone, after",
    MarksInWordsAlone: r"stale value: search\('A_01'\) returned 'A_01 = 1007 \(until 2031-01-13\)' first, after",
    EndsWithARetry: r"current value marked as ended: search\('A_01'\) returned 'A_01 = 4301 \(until 2031-01-13\)'",
    IgnoresCase: r"case ignored: read\('a_1'\) returned 'A_01 = 1013'; nothing was written under a_1",
    LosesTheNewestInARestart: r"lost in a restart: read\('A_1'\) returned nothing",
    SavesNoOverwrites: r"lost in a restart: read\('A_1'\) returned 'A_01 = 1007'",
    SavesNoDeletes: r"delete lost in a restart: read\('A_1'\) returned 'A_01 = 4001' after forget",
    FirstPage: r"not found among many: search\('A_53 = 20371'\) does not return it after 64 writes",
    OneTooMany: r"wrong limit: search\('A_01 .* A_08', 5\) returned 6",
    RevivesWhatIsWrittenAgain: r"delete forgotten: search\('A_01 = 1007'\) .* after forget and a new value",
    ForgetsByPrefix: r"deleted too much: read\('A_10'\) returned nothing after forget\('A_1'\)",
    SearchesEverybody: r"Two systems at the same time never see each other's records: A_9 is found",
    LosesTheLaterOfTwo: r"racing writers: of 16 writes at the same time \d+ are lost",
    LateByWrites: r"last 3 writes invisible: search\('A_90 = 2170'\) right after write and flush",
    MergesEqualValues: r"lost write: read\('A_43'\) returned nothing; 'A_43 = 1013' was written",
    storing(str.lower): r"A_1 is stored as 'a_01 = 1007', which does not have 'A_01 = 1007'",
    storing(lambda text: text[:1000]): r"long text cut or changed: read\('A_51'\) returned",
    returning(lambda text: text[:200]): r"long text cut or changed: search\('A_51 = w000 w001 w00'…\) returned",
    storing(str.rstrip): r"padded text cut or changed: read\('A_55'\) returned 'A_55 = two spaces at the end'",
    storing(lambda text: " ".join(text.split(" ")) if "\n" not in text else " ".join(text.split())): (
        r"multi-line text cut or changed: read\('A_52'\) returned"
    ),
    storing(lambda text: unicodedata.normalize("NFC", text)): r"Unicode text cut or changed: read\('A_53'\)",
    storing(lambda text: unicodedata.normalize("NFKC", text)): r"Unicode text cut or changed: read\('A_53'\)",
    returning(html.escape): r"quoted text cut or changed: search\(",
    returning(valued(lambda value: f"{int(value):,}")): r"search\('A_01'\) returned 'A_01 = 1,013'; 'A_01 = 1013' was",
    returning(valued(lambda value: f"{int(value)}.0")): r"search\('A_01'\) returned 'A_01 = 1013.0'; 'A_01 = 1013' was",
    storing(valued(lambda value: str(int(value)))): r"search\('A_42'\) returned 'A_42 = 42'; 'A_42 = 0042' was written",
}


class Rephrases(Sound):
    """Returns sentences of its own."""

    def search(self, query: str, limit: int) -> list[str]:
        return ["The value of {} is {}.".format(*text.split(" = ", 1)) for text in super().search(query, limit)]


class Summarizes(Sound):
    """Returns with the records a summary that has them, too."""

    def search(self, query: str, limit: int) -> list[str]:
        found = super().search(query, limit)
        return [*found[: limit - 1], f"Summary: {'; '.join(found)}"] if found else []


class ReturnsMore(Sound):
    """Fills up what it returns with whatever else it has, the oldest first."""

    def search(self, query: str, limit: int) -> list[str]:
        found = super().search(query, limit)
        return [*found, *(text for text in self.kept.values() if text not in found)][:limit]


class Numbers(Sound):
    """Returns records with an id and a score."""

    def __init__(self) -> None:
        super().__init__()
        self.ids = count(4821)

    def search(self, query: str, limit: int) -> list[str]:
        return [f"[{next(self.ids)}] {text} (score 0.93)" for text in super().search(query, limit)]


UNUSUAL = {
    "ended": Temporal,
    "disk": Disk,
    "rephrased": Rephrases,
    "summary": Summarizes,
    "more": ReturnsMore,
    "ids and scores": Numbers,
    "sentences": returning(lambda text: f"I remember that {text}."),
    "JSON": returning(lambda text: json.dumps({"text": text, "score": 0.5})),
    "tags": returning(lambda text: f"- **<note>{text}</note>**"),
}
