"""What the records of a task say at each step, where steps change them: overwritten, deleted, or past their time.

A record that was deleted or whose time is over has the value 0, as every answer about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Protocol

from eirkit.lacuna.tasks.task import Kind, Payload, TaskInstance, TaskSpec, show_record

UNTIL = " until step "  # before the last step at which a record holds


class _Changing(Protocol):
    @property
    def t(self) -> int: ...
    @property
    def kind(self) -> Kind: ...
    @property
    def target(self) -> int: ...


class StandingValues:
    """The values that records have now, by label: the step at which each was stored first."""

    def __init__(self, spec: TaskSpec, width: int) -> None:
        self.spec, self.nothing = spec, (0,) * width
        self.values: dict[int, Payload] = {}
        self.deleted: set[int] = set()
        self.expired: set[int] = set()
        self.ends: dict[int, int] = {}  # the last step at which a record holds
        self.now = 0

    def arrive(self, t: int) -> tuple[int, ...]:
        """Go to step t; return the records whose time is over."""
        self.now = t
        over = tuple([label for label, end in self.ends.items() if end < t])
        for label in over:
            del self.ends[label]
            self.values[label] = self.nothing
            self.expired.add(label)
        return over

    def settle(self, step: _Changing, values: Payload | None) -> None:
        """Take the answer of a step; without one nothing changes."""
        label = step.target or step.t
        if values is None or step.kind == "query":
            return
        self.values[label] = values
        self.expired.discard(label)
        self.deleted.discard(label)
        self.ends.pop(label, None)
        if step.kind == "delete":
            self.deleted.add(label)
        elif self.spec.expiry:
            self.ends[label] = step.t + self.spec.expiry

    @property
    def gone(self) -> set[int]:
        """The records that count as gone."""
        return self.deleted | self.expired

    def show(self, label: int) -> str:
        """Return a record as it is written to a memory: with the last step at which it holds."""
        text = show_record(self.spec, label, self.values[label])
        return f"{text}{UNTIL}{self.ends[label]}" if label in self.ends else text


def standing_at(task: TaskInstance, submitted: Mapping[int, Payload]) -> Iterator[StandingValues]:
    """Yield, for each step as it arrives, what the records say by the answers that were submitted.

    It is one object that goes on; use it before the next step.
    """
    standing = StandingValues(task.spec, len(task.steps[0].answer))
    for step in task.steps:
        standing.arrive(step.t)
        yield standing
        standing.settle(step, submitted.get(step.t))


def neighbor_text(scope: str, user: int, text: str) -> str:
    """Return what another user of a system writes when this one writes a record: other digits under the same label."""
    label, separator, rest = text.partition(" = ")
    value = rest.split(UNTIL)[0]
    other = int.from_bytes(sha256(f"{scope}\x1f{user}\x1f{text}".encode()).digest()[:8], "big")
    digits = "".join([c if c == " " else str((other // 10**i + int(c) + 1) % 10) for i, c in enumerate(value)])
    digits = digits if digits != value else "".join([c if c == " " else str((int(c) + 1) % 10) for c in value])
    return f"{label}{separator}{digits}{rest[len(value) :]}"
