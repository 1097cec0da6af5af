"""An agent with planted traits behind the loopback server, and the truth about every step that it saw.

It reads prompts and computes answers by itself, for stepwise sums: the truth comes from what the server was sent, and
from nothing that eirkit concluded. Traits decide what it gets wrong and how it words its replies.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Literal

from eirkit.testing.selftest.server import Said

# What is true about a wrong step: an input was not shown; it follows from wrong answers that were shown; the agent
# slipped; it said nothing; its reply cannot be read; its reply was cut; an input was never given by the agent itself.
Class = Literal["lost", "carried", "own", "silent", "garbled", "cut", "after"]
Form = Literal["plain", "silent", "garbled", "cut"]
# What became of a record that was needed from a memory.
Lookup = Literal[
    "used",
    "not_used",  # though every input was shown
    "returned",  # used or not
    "other_value",
    "swapped_value",  # with the value of another label
    "cut_value",  # with the beginning of its value
    "stale_value",  # with a value that the agent had given before
    "not_found",
    "not_stored",
    "not_sought",
    "unwritten",
]

_HEAD = re.compile(r"^STEP (\d+) \w+( answered)?$", re.MULTILINE)
_INPUT = re.compile(r"^INPUT (\d+)$", re.MULTILINE)
_REFS = re.compile(r"^REFS (.+)$", re.MULTILINE)
_RULES = re.compile(r"WORKLOAD stepwise-sum n=(\d+) q=(\d+)")
_VALUE = re.compile(r"A_0*(\d+)\b[^\d\n]{1,40}?(\d{1,3}(?: \d{3})+|\d[\d,]*)(?!\d)")
_BESIDE = re.compile(r"A_0*(\d+) (?:changed from \d+ to|\(importance \d\):) (\d+)")  # another number comes first
_ENCODED = re.compile(r"QV8[A-Za-z0-9+/]{5,}={0,2}")  # how `A_` begins in base64
_REVERSED = re.compile(r"(\d+) (?:is|was) the answer of A_0*(\d+)\b")
_RESTORED = re.compile(r"^RESTORED\n(?:A_.*\n)*", re.MULTILINE)
_LIMIT = re.compile(r"At most (\d+) characters")


@dataclass(frozen=True, slots=True)
class PlantedTurn:
    """One request as the server reads it."""

    n: int
    q: int
    t: int  # 0 before the first step
    answered: bool
    input: int
    refs: tuple[int, ...]
    shown: Mapping[int, int]  # what the prompt says an earlier answer was; the first of several
    retained: Mapping[int, int]  # the same, without what an intervention restored
    commands: frozenset[str]  # that the rules explain
    summary: int | None  # characters of the summary that is asked for
    tools: bool
    text: str  # what was shown, without the rules
    ask: int = 0  # how often this step was asked before
    run: int = 0  # how many runs were there before

    @property
    def missing(self) -> tuple[int, ...]:
        return tuple(r for r in self.refs if r not in self.shown)

    def chance(self, purpose: str) -> float:
        """Return a number in [0, 1) that depends on run, step and purpose alone."""
        digest = sha256(f"{purpose} {self.run} {self.t} {self.ask}".encode()).digest()
        return int.from_bytes(digest[:6], "big") / (1 << 48)


def read_turn(body: Mapping[str, Any]) -> PlantedTurn | None:
    """Return what a request shows; None if it is not about a task."""
    texts = [str(one.get("content")) for one in body["messages"] if one.get("role") != "assistant"]
    rules = _RULES.search("\n".join(texts))
    if rules is None:
        return None
    text = "\n".join(texts)
    state = text[text.rfind("RETAINED ") :] if "RETAINED " in text else text
    head, given, refs = _HEAD.search(state), _INPUT.search(state), _REFS.search(state)
    before = state[: head.start()] if head else state
    limit = _LIMIT.search(state)
    return PlantedTurn(
        n=int(rules[1]),
        q=int(rules[2]),
        t=int(head[1]) if head else 0,
        answered=bool(head and head[2]),
        input=int(given[1]) if given else 0,
        refs=tuple(int(one) for one in re.findall(r"A_0*(\d+)", refs[1])) if refs else (),
        shown=read_values(before),
        retained=read_values(_RESTORED.sub("", before)),
        commands=frozenset(word.upper() for word in re.findall(r"^([A-Z]+|[a-z]+(?=\())\b[^\n]*:", text, re.MULTILINE)),
        summary=int(limit[1]) if limit else None,
        tools=bool(body.get("tools")),
        text=state,
    )


def read_values(text: str) -> dict[int, int]:
    """Return the values that a text gives for labels, in any wording of the self-test; the first of several counts."""
    found: dict[int, int] = {}
    text = _ENCODED.sub(lambda coded: b64decode(coded[0]).decode(), text)
    for label, value in _BESIDE.findall(text):
        found.setdefault(int(label), int(value))
    for value, label in _REVERSED.findall(text):
        found.setdefault(int(label), int(value))
    for label, value in _VALUE.findall(text):
        found.setdefault(int(label), int(re.sub("[, ]", "", value)))
    return found


@dataclass(slots=True)
class StepTruth:
    """What the server knows about one step."""

    turn: PlantedTurn  # at the last answer
    at_first: Mapping[int, int]  # what was retained when the step arrived
    intended: int
    slipped: bool
    form: Form


@dataclass(slots=True)
class PlantedRun:
    """One run as the server saw it."""

    n: int
    q: int
    true: dict[int, int] = field(default_factory=dict)
    refs: dict[int, tuple[int, ...]] = field(default_factory=dict)
    inputs: dict[int, int] = field(default_factory=dict)
    given: dict[int, int] = field(default_factory=dict)  # answers that reached the reader
    steps: dict[int, StepTruth] = field(default_factory=dict)
    prompts: list[str] = field(default_factory=list)
    searched: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)

    def is_right(self, t: int) -> bool:
        return t in self.given and self.given[t] == self.true.get(t)

    def is_missed(self, t: int) -> bool:
        """True if a reference that the agent had answered was not retained, with that answer, when the step arrived."""
        step = self.steps.get(t)
        return step is not None and any(r in self.given and not self._retained(step, r) for r in self.refs[t])

    def _retained(self, step: StepTruth, r: int) -> bool:
        return step.at_first.get(r) == self.given[r]

    def lookups(self, stored: Mapping[str, str]) -> list[frozenset[Lookup]]:
        """Return everything that is true about what became of each reference that was needed from a memory.

        Args:
            stored: what the memory holds, by label.
        """
        answered = [(t, r) for t in self.steps for r in self.refs[t] if r in self.given]
        return [self._lookup(t, r, stored) for t, r in answered if not self._retained(self.steps[t], r)]

    def _lookup(self, t: int, r: int, stored: Mapping[str, str]) -> frozenset[Lookup]:
        step = self.steps[t]
        shown = step.turn.shown.get(r)
        if r not in self.written:
            return frozenset({"unwritten"})
        if t not in self.searched:
            return frozenset({"not_sought"})
        if shown is None:
            held = read_values(stored.get(f"A_{r}", "")).get(r) == self.given[r]
            return frozenset({"not_found"} if held else {"not_stored"})
        if shown == self.given[r]:
            used = step.form == "plain" and step.intended == self._sum(step.turn)
            whole = step.form == "plain" and all(other in step.turn.shown for other in self.refs[t])
            return frozenset({"returned", "used"} if used else {"returned", "not_used"} if whole else {"returned"})
        padded = f"{self.given[r]:0{len(str(self.q - 1))}d}"
        found: set[Lookup] = {"other_value"}
        if any(value == shown for label, value in self.given.items() if label != r):
            found.add("swapped_value")
        if shown in [int(padded[:end]) for end in range(1, len(padded))]:
            found.add("cut_value")
        return frozenset(found)

    def classes(self, t: int) -> frozenset[Class]:
        """Return every true explanation of a wrong step."""
        step = self.steps.get(t)
        if step is None:
            return frozenset({"silent"})
        shown, found = step.turn.shown, set[Class]()
        absent = [r for r in self.refs[t] if r not in shown]
        if any(r in self.given for r in absent) or any(
            r in shown and shown[r] != self.given.get(r) for r in self.refs[t]
        ):
            found.add("lost")  # it was not shown, or with another value than the agent had given
        if any(r in self.written for r in absent) and t not in self.searched:
            found.add("own")  # it was within reach, and the agent did not fetch it
        if any(r not in self.given for r in absent):
            found.add("after")
        if step.form != "plain":
            return frozenset({*found, step.form})
        wrong = [r for r in self.refs[t] if r in shown and shown[r] != self.true[r]]
        if wrong and not absent and step.intended == self._sum(step.turn):
            found.add("carried")
        if step.slipped or not found:
            found.add("own")
        return frozenset(found)

    def _sum(self, turn: PlantedTurn) -> int:
        return (turn.input + sum(turn.shown.get(r, 0) for r in turn.refs)) % self.q


@dataclass(frozen=True, slots=True)
class Traits:
    """What an agent gets wrong, and how it words what it says."""

    slip: float = 0.0  # share of answers that are off by one
    cheat: bool = False  # it remembers every answer, whatever it is shown
    guess: bool = False  # a random value in place of a missing one; else it is left out
    note: Callable[[str, str], str] = lambda label, value: f"{label} = {value}"  # how it writes a record down
    draw: int = 0  # another sequence of chances
    searches: bool = True
    writes: bool = True
    speak: Callable[[PlantedTurn, list[str]], tuple[Said, Form]] = lambda turn, lines: (Said("\n".join(lines)), "plain")
    serve: Callable[[int, Mapping[str, Any]], Said | None] = lambda number, body: None  # before anything is read
    memory_model: str = ""  # what it says when it is asked something that is no task


class PlantedAgent:
    """Replies to requests as its traits say, and keeps the truth about them."""

    def __init__(self, traits: Traits) -> None:
        self.traits = traits
        self.runs: list[PlantedRun] = []
        self.requests = 0  # also those that were not answered
        self.other = 0  # requests that were no task

    def __call__(self, body: Mapping[str, Any]) -> Said:
        self.requests += 1
        if (refused := self.traits.serve(self.requests, body)) is not None:
            return refused
        turn = read_turn(body)
        if turn is None:
            self.other += 1
            return Said(self.traits.memory_model)
        run = self._run(turn)
        run.prompts.append("\n".join(str(one["content"]) for one in body["messages"] if one["role"] != "system"))
        asked = sum(turn.text == text for text in run.prompts)
        turn = replace(turn, run=len(self.runs) + 1000 * self.traits.draw, ask=asked)
        return self._act(run, turn)

    def _run(self, turn: PlantedTurn) -> PlantedRun:
        """Return the run that a turn belongs to: runs come one after the other, and each begins at its first step."""
        last = self.runs[-1] if self.runs else None
        if last is None or self._begins(turn, last):
            last = PlantedRun(turn.n, turn.q)
            self.runs.append(last)
        if turn.t and turn.t not in last.true:
            last.refs[turn.t], last.inputs[turn.t] = turn.refs, turn.input
            last.true[turn.t] = (turn.input + sum(last.true.get(r, 0) for r in turn.refs)) % turn.q
        return last

    def _begins(self, turn: PlantedTurn, last: PlantedRun) -> bool:
        if "NEXT" in turn.commands:
            return turn.t == 0 and "RESULT" not in turn.text  # nothing was done yet
        return turn.t == 1 and (max(last.refs) > 1 or last.inputs[1] != turn.input)

    def _act(self, run: PlantedRun, turn: PlantedTurn) -> Said:
        managed = "NEXT" in turn.commands
        if turn.summary is not None:
            return Said(self._summary(turn))
        if managed and turn.t == 0:
            return self._command(turn, ["NEXT"])
        if managed and turn.answered:
            return self._command(turn, ["DONE"] if turn.t == turn.n else [*self._keep(run, turn), "NEXT"])
        if turn.t not in run.steps:
            run.steps[turn.t] = StepTruth(turn, turn.retained, 0, False, "silent")
        if turn.missing and "SEARCH" in turn.commands and self.traits.searches and turn.t not in run.searched:
            run.searched.add(turn.t)
            return self._command(turn, [f"SEARCH {' '.join(f'A_{r:02d}' for r in turn.missing)}"])
        return self._answer(run, turn)

    def _answer(self, run: PlantedRun, turn: PlantedTurn) -> Said:
        known = {**run.given, **turn.shown} if self.traits.cheat else turn.shown
        guess = {r: int(turn.chance(f"guess {r}") * turn.q) for r in turn.refs} if self.traits.guess else {}
        value = (turn.input + sum(known.get(r, guess.get(r, 0)) for r in turn.refs)) % turn.q
        slipped = turn.chance("slip") < self.traits.slip
        value = (value + slipped) % turn.q
        said, form = self.traits.speak(turn, [f"ANSWER {turn.t} {value:0{len(str(turn.q - 1))}d}"])
        first = run.steps[turn.t].at_first
        run.steps[turn.t] = StepTruth(turn, first, value, slipped, form)
        if form == "plain":
            run.given.setdefault(turn.t, value)
        run.written |= {int(t) for t in re.findall(r"^WRITE (\d+)$", said.content or "", re.MULTILINE)}
        return said

    def _keep(self, run: PlantedRun, turn: PlantedTurn) -> list[str]:
        """Return the commands that keep the answer just given, where the condition has any."""
        if not self.traits.writes or turn.t not in run.given:
            return []
        width = len(str(turn.q - 1))
        if "SEARCH" in turn.commands:
            run.written.add(turn.t)
            return [f"WRITE {turn.t}"]
        if "NOTE" in turn.commands:
            return [f"NOTE {self.traits.note(f'A_{turn.t}', f'{run.given[turn.t]:0{width}d}')}"]
        return []

    def _summary(self, turn: PlantedTurn) -> str:
        """Return the newest records that fit, in the agent's own words."""
        kept: list[str] = []
        for label in sorted(turn.shown, reverse=True):
            line = self.traits.note(f"A_{label}", f"{turn.shown[label]:0{len(str(turn.q - 1))}d}")
            if len("\n".join([*kept, line])) <= (turn.summary or 0):
                kept.append(line)
        return "\n".join(reversed(kept))

    def _command(self, turn: PlantedTurn, lines: list[str]) -> Said:
        return self.traits.speak(turn, lines)[0]
