"""Further memories that break, less plainly than the fifteen, and what the gate says of each."""

from __future__ import annotations

from eirkit.agents.memory import Item
from eirkit.validity import EndedText
from tests.contracts.faulty_memories import Sound


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


SUBTLE = {
    MarksTheCurrentValue: r"current value marked as ended: search\('A_01'\) returned 'A_01 = 4001 \(no longer valid\)'",
    MarksTheWrongOne: r"stale value: search\('A_01'\) returned 'A_01 = 1007' first, after 'A_01 = 4001'",
    MarksEverything: r"current value marked as ended: search\('A_90 = 2170'\) returned 'A_90 = 2170 \(no longer",
    ReturnsWhatEndedAlone: r"stale value: search\('A_01'\) returned 'A_01 = 1007 \(until 2031-01-13\)' alone, after",
    MarksInWordsAlone: r"stale value: search\('A_01'\) returned 'A_01 = 1007 \(until 2031-01-13\)' first, after",
    EndsWithARetry: r"current value marked as ended: search\('A_01'\) returned 'A_01 = 4001 \(until 2031-01-13\)'",
}
