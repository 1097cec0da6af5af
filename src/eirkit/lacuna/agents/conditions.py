"""What each memory condition keeps: cache, key–value, scratch text, paging, compaction, external memory.

A condition decides what stays in context between actions and which commands the agent has. It keeps labels, or text
that the agent wrote; the session owns the values. The paper's 2×2 is {chosen by the model, LRU} × {key–value, text}:
`KeyValueStore`, `Cache` (LRU), `Scratch`, `ScratchLru`. docs/session.md describes each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from eirkit.errors import SpecError
from eirkit.lacuna.agents.protocol import Action, Drop, Forget, Note, Search, Write, printable
from eirkit.lacuna.agents.recognition import Recognition, Values, read_text, recognize
from eirkit.lacuna.memories.memory import MemoryCall, label_of
from eirkit.lacuna.tasks.policy import Retention
from eirkit.lacuna.tasks.standing import StandingValues
from eirkit.lacuna.tasks.task import Payload, TaskSpec, show_record
from eirkit.records.settings import EXTERNAL
from eirkit.records.settings import TRUNCATED as TRUNCATED
from eirkit.records.settings import WHOLE as WHOLE

# What is in view of a conversation, where nothing is agent-managed; a server compacts by a field of the model's API.
COMPACTION, MEMORY, SERVER = "compaction", EXTERNAL, "server-compaction"
CONVERSATION_CONDITIONS = (WHOLE, TRUNCATED, COMPACTION, SERVER, MEMORY)
_NUMBER = re.compile(r"[0-9]{1,6}")

ACTION_LIMIT = 200
SUMMARY_PROMPT = (
    "Your context is full. Write a summary that lets you continue: it replaces everything above. "
    "Keep every answer you may still need as a line A_t = value. At most {characters} characters."
)


@dataclass(frozen=True, slots=True)
class ManagedOptions:
    """The limits of an agent-managed run."""

    reads: int | None = 0  # B_oracle; None: no limit
    recomputations: int | None = 0  # B
    actions: int = ACTION_LIMIT
    summary_prompt: str = SUMMARY_PROMPT  # {characters} is replaced by the limit

    def __post_init__(self) -> None:
        if self.actions < 1 or min(self.reads or 0, self.recomputations or 0) < 0:
            raise SpecError(
                "a budget is negative or no action is allowed; use budgets of 0 or more and at least 1 action"
            )


class RefusedAction(Exception):  # noqa: N818 - reads as what happened
    """An action that is not allowed now; `reason` is a stable code, the message is shown to the agent."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        super().__init__(detail)


@dataclass(frozen=True, slots=True)
class InContext:
    """What an agent sees without any further action."""

    records: tuple[int, ...] = ()  # steps whose records are shown
    notes: str | None = None
    room: str = ""  # how full a memory is that the agent manages itself
    free: int = 0  # records or characters that still fit into it


class Condition:
    """How records are kept between actions. The defaults keep nothing and allow nothing."""

    commands: tuple[str, ...] = ()  # beyond ANSWER, NEXT, READ, RECOMPUTE and DONE
    pages = False  # True: nothing is ever in context, so that an agent without reads could do nothing
    summary_due = False  # True while the text is too long and must be summarized before anything else
    summary_characters = 0  # how long a summary may be
    standing: StandingValues | None = None  # of tasks whose records change

    def in_context(self) -> InContext:
        return InContext()

    def recognize(self, records: Values) -> Recognition:
        """Return which of these records are in context."""
        return Recognition(frozenset(self.in_context().records))

    def obtainable(self, t: int) -> bool:
        """True if the condition's own commands may return a record that is not in context."""
        return False

    def consume(self, refs: tuple[int, ...]) -> None:
        """Mark these records as used: a step that refers to them was revealed."""

    def submit(self, t: int, values: Payload, takes_slot: bool) -> int | None:
        """Keep a new answer if the condition does so by itself; return the evicted record."""
        return None

    def fetch(self, t: int, values: Payload, step: int) -> int | None:
        """Keep a recovered record if the condition does so by itself; return the evicted record."""
        return None

    def perform(self, action: Action, near: Mapping[int, str]) -> str | MemoryCall:
        """Execute one of `commands`, or return the call to make to the memory system.

        Args:
            near: the records that the agent sees now, as they are shown.
        """
        raise RefusedAction("not-offered", "this command is not available here")

    def summarize(self, text: str) -> None:
        """Store the summary that was due."""
        raise ValueError("no summary is due")


class Cache(Condition):
    """Key–value records under a retention policy, kept and evicted by the harness."""

    def __init__(self, retention: Retention) -> None:
        self.retention = retention

    def in_context(self) -> InContext:
        return InContext(tuple(self.retention.held()))

    def consume(self, refs: tuple[int, ...]) -> None:
        self.retention.touch(refs)

    def submit(self, t: int, values: Payload, takes_slot: bool) -> int | None:
        return self.retention.admit(t, t) if takes_slot else None

    def fetch(self, t: int, values: Payload, step: int) -> int | None:
        return None if t in self.retention else self.retention.admit(t, step)


class ExternalOnly(Condition):
    """Nothing stays visible: every record must come from an external memory system."""

    commands: tuple[str, ...] = ("WRITE", "SEARCH")

    def __init__(self) -> None:
        self._written: set[int] = set()

    def allow_forgetting(self) -> None:
        """Offer FORGET as well."""
        self.commands = ("WRITE", "FORGET", "SEARCH")

    def obtainable(self, t: int) -> bool:
        return t in self._written

    def perform(self, action: Action, near: Mapping[int, str]) -> str | MemoryCall:
        match action:
            case Write(t):
                record = _seen(t, near)
                self._written.add(t)
                return MemoryCall("write", record, (t,))
            case Forget(t):
                if t not in self._written:
                    raise RefusedAction("not-in-memory", f"the answer of step {t} was not written")
                self._written.remove(t)
                return MemoryCall("forget", label_of(t), (t,))
            case Search(query):
                return MemoryCall("search", query, named_steps(query))
        return super().perform(action, near)


def named_steps(query: str) -> tuple[int, ...]:
    """Return the steps that a query names by their numbers, in its order."""
    return tuple(dict.fromkeys(map(int, _NUMBER.findall(query))))


class External(ExternalOnly, Cache):
    """The last h records stay visible; everything else must come from an external memory system."""

    def __init__(self, retention: Retention) -> None:
        ExternalOnly.__init__(self)
        Cache.__init__(self, retention)

    def fetch(self, t: int, values: Payload, step: int) -> int | None:
        return None  # shown for the step, not retained


class KeyValueStore(Condition):
    """At most h key–value records, chosen by the model with WRITE and DROP."""

    commands = ("WRITE", "DROP")

    def __init__(self, h: int) -> None:
        self.h = _at_least_one(h)
        self._kept: set[int] = set()

    def in_context(self) -> InContext:
        return InContext(
            tuple(sorted(self._kept)), room=f"{len(self._kept)} of {self.h} records used", free=self.h - len(self._kept)
        )

    def perform(self, action: Action, near: Mapping[int, str]) -> str | MemoryCall:
        match action:
            case Write(t):
                _seen(t, near)
                if t not in self._kept and len(self._kept) >= self.h:
                    raise RefusedAction("memory-full", f"memory is full with {self.h} records; DROP one first")
                self._kept.add(t)
                return f"step {t} is kept"
            case Drop(t):
                if t not in self._kept:
                    raise RefusedAction("not-in-memory", f"step {t} is not in memory")
                self._kept.remove(t)
                return f"step {t} is dropped"
        return super().perform(action, near)


class Scratch(Condition):
    """Text of at most h records' length, written by the model with NOTE and DROP (a line's number)."""

    commands: tuple[str, ...] = ("NOTE", "DROP")

    def __init__(self, spec: TaskSpec, width: int, h: int) -> None:
        # A line takes its characters and its line break; h records of the task fit exactly.
        self.limit = _at_least_one(h) * (len(show_record(spec, spec.n, (0,) * width)) + 1)
        self._lines: list[str] = []

    def in_context(self) -> InContext:
        numbered = "\n".join(f"{number}. {line}" for number, line in enumerate(self._lines, 1))
        used = self._used()
        return InContext(notes=numbered, room=f"{used} of {self.limit} characters used", free=self.limit - used)

    def recognize(self, records: Values) -> Recognition:
        return recognize(self._lines, records, now=None if self.standing is None else self.standing.now)

    def perform(self, action: Action, near: Mapping[int, str]) -> str | MemoryCall:
        match action:
            case Note(text):
                if len(text) >= self.limit:
                    raise RefusedAction("too-long", f"a note has at most {self.limit - 1} characters here")
                self._make_room(len(text) + 1)
                self._lines.append(text)
                return "noted"
            case Drop(number) if "DROP" in self.commands:
                if not 1 <= number <= len(self._lines):
                    raise RefusedAction("not-in-memory", f"there is no line {number}")
                del self._lines[number - 1]
                return f"line {number} is dropped"
        return super().perform(action, near)

    def _used(self) -> int:
        return sum(len(line) + 1 for line in self._lines)

    def _make_room(self, size: int) -> None:
        if self._used() + size > self.limit:
            raise RefusedAction("memory-full", f"the notes hold {self.limit} characters; DROP a line first")


class ScratchLru(Scratch):
    """Text whose least recently used line leaves by itself; a line is used when a step refers to a record in it."""

    commands: tuple[str, ...] = ("NOTE",)

    def consume(self, refs: tuple[int, ...]) -> None:
        """Move used lines to the end, in ascending order of the references, as the key–value LRU touches records."""
        for r in sorted(refs):
            used = [line for line in self._lines if r in read_text(line).statements]
            self._lines = [line for line in self._lines if line not in used] + used

    def _make_room(self, size: int) -> None:
        while self._used() + size > self.limit:
            del self._lines[0]


class Paging(Condition):
    """Forced paging: everything is stored and nothing shown; each needed record must be read, and reads are counted."""

    pages = True


class Compaction(Condition):
    """The records of the run stay visible until they are too long; then a summary by the model takes their place."""

    def __init__(self, spec: TaskSpec, limit_tokens: int) -> None:
        if limit_tokens < 64:
            raise SpecError(f"a context of {limit_tokens} tokens is too small for a summary; use 64 or more")
        self.spec = spec
        self.limit_characters = 4 * limit_tokens  # four characters a token, stated rather than measured
        # At most half the context, so that there is room to continue.
        self.summary_characters = self.limit_characters // 2
        self._lines: list[str] = []

    def in_context(self) -> InContext:
        notes = "\n".join(self._lines)
        used, limit = len(notes), self.limit_characters
        return InContext(notes=notes, room=f"{used} of {limit} characters used", free=limit - used)

    def recognize(self, records: Values) -> Recognition:
        return recognize(self._lines, records, now=None if self.standing is None else self.standing.now)

    def submit(self, t: int, values: Payload, takes_slot: bool) -> int | None:
        is_current = self.standing is not None and t in self.standing.values
        text = self.standing.show(t) if self.standing is not None and is_current else show_record(self.spec, t, values)
        self._lines.append(text)
        self.summary_due = sum(len(line) + 1 for line in self._lines) - 1 > self.limit_characters
        return None

    def fetch(self, t: int, values: Payload, step: int) -> int | None:
        return self.submit(t, values, False)

    def summarize(self, text: str) -> None:
        """Replace what was visible with a summary, cut to its limit."""
        self._lines = [*filter(None, [printable(text.strip())[: self.summary_characters]])]
        self.summary_due = False


def _seen(t: int, near: Mapping[int, str]) -> str:
    if t not in near:
        raise RefusedAction("not-at-hand", f"the answer of step {t} is not at hand; only what you see can be written")
    return near[t]


def _at_least_one(h: int) -> int:
    if h < 1:
        raise SpecError(f"h = {h} is too small to hold a record; use h >= 1")
    return h
