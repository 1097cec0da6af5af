"""Counts how an agent used its memory in one run: retrievals, read-ahead, thrashing, write-through, continuations.

A *retrieval* is an executed READ or RECOMPUTE, or one label in an executed SEARCH.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from eirkit.lacuna.agents.protocol import Fault, read_reply
from eirkit.lacuna.agents.recognition import records_in
from eirkit.lacuna.agents.telemetry import Exchange
from eirkit.lacuna.findings.causes import Verdict
from eirkit.lacuna.models.model import Reply
from eirkit.lacuna.tasks.task import Payload
from eirkit.lacuna.tasks.workload import Graph
from eirkit.records.events import ActionTaken, Decision

PREFETCH_STEPS = 4  # within how many steps a record read ahead must be referred to
THRASH_LENGTH = 3  # non-answer actions in a row that make an episode

Continuation = Literal["recovered", "silent", "acknowledged", "stopped", "abandoned"]

_LABEL = re.compile(r"A_(\d{1,6})\b")
_MENTION = re.compile(r"\bA_?\{?0*(\d{1,6})\b")  # also A7 and A_{7}, as people write it


@dataclass(frozen=True, slots=True)
class Behavior:
    """Counts over the actions of one run; the properties are rates, None if the denominator is 0."""

    retrievals: int
    just_in_time: int  # retrievals of a reference of the current step
    redundant: int  # retrievals of an id already retrieved during the same step
    read_ahead: int  # retrievals of anything but a current reference
    prefetched: int  # of those: the id is referred to by one of the next 4 steps
    regret: int  # retrieved ahead, evicted before the step that then needed it
    thrash_episodes: int  # (a) runs of 3 or more actions without an accepted answer; NEXT counts, as in the limit
    thrash_cycles: int  # (b) retrieved, evicted and retrieved again without an answer in between, on one id
    written: int  # correct answers stored by WRITE or NOTE before the next step was revealed
    correct: int

    @property
    def just_in_time_rate(self) -> float | None:
        return _rate(self.just_in_time, self.retrievals)

    @property
    def redundant_rate(self) -> float | None:
        return _rate(self.redundant, self.retrievals)

    @property
    def write_through_rate(self) -> float | None:
        return _rate(self.written, self.correct)


def measure_behavior(
    graph: Graph, actions: Sequence[ActionTaken], decisions: Iterable[Decision], verdicts: Iterable[Verdict] = ()
) -> Behavior:
    """Return the behavior of one run from its actions and the correctness of its answers."""
    actions = [action for action in actions if action.outcome != "late"]
    submitted = {decision.t: decision.values for decision in decisions if decision.values is not None}
    retrieved = [(action.t, r) for action in actions for r in retrievals_of(action)]
    current = [(t, r) for t, r in retrieved if t and r in graph[t - 1]]
    ahead = [(t, r) for t, r in retrieved if not (t and r in graph[t - 1])]
    correct = {verdict.t for verdict in verdicts if verdict.correct}
    return Behavior(
        retrievals=len(retrieved),
        just_in_time=len(current),
        redundant=sum(count - 1 for count in Counter(retrieved).values()),
        read_ahead=len(ahead),
        prefetched=sum(any(r in refs for refs in graph[t : t + PREFETCH_STEPS]) for t, r in ahead),
        regret=_regret(graph, actions),
        thrash_episodes=_episodes(actions),
        thrash_cycles=_cycles(actions),
        written=len(correct & _written(actions, submitted)),
        correct=len(correct),
    )


def retrievals_of(action: ActionTaken) -> tuple[int, ...]:
    """Return the ids that an action retrieved."""
    if action.outcome != "done":
        return ()
    word, _, rest = action.action.partition(" ")
    if word in ("READ", "RECOMPUTE"):
        return (int(rest),)
    return tuple(int(label) for label in _LABEL.findall(rest)) if word == "SEARCH" else ()


def _is_answer(action: ActionTaken) -> bool:
    return action.outcome == "done" and action.action.startswith("ANSWER ")


def _regret(graph: Graph, actions: Sequence[ActionTaken]) -> int:
    """Count records that were read ahead and evicted before the first step that needed them.

    A reference of the current step does not count, because what is fetched stays visible until the step ends.
    """
    held: dict[int, bool] = {}  # read ahead and not needed yet → has been evicted since
    regretted = step = 0
    for action in actions:
        if action.t != step:
            step = action.t
            needed = [r for r in graph[action.t - 1] if r in held]
            regretted += sum(held.pop(r) for r in needed)
        for r in retrievals_of(action):
            if not (action.t and r in graph[action.t - 1]):
                held[r] = False
        if action.evicted is not None and action.evicted in held:
            held[action.evicted] = True
    return regretted


def _episodes(actions: Sequence[ActionTaken]) -> int:
    """Count the maximal runs of at least 3 actions between accepted answers, the run after the last one included."""
    lengths = [0]
    for action in actions:
        if _is_answer(action):
            lengths.append(0)
        else:
            lengths[-1] += 1
    return sum(length >= THRASH_LENGTH for length in lengths)


def _cycles(actions: Sequence[ActionTaken]) -> int:
    """Count returns of an id that was retrieved and evicted since the last accepted answer."""
    held: dict[int, bool] = {}  # retrieved since the last answer → has been evicted since
    cycles = 0
    for action in actions:
        if _is_answer(action):
            held.clear()
        for r in retrievals_of(action):
            cycles += held.get(r, False)
            held[r] = False
        if action.evicted is not None and action.evicted in held:
            held[action.evicted] = True
    return cycles


def _written(actions: Sequence[ActionTaken], submitted: Mapping[int, Payload]) -> set[int]:
    """Return the steps whose answer was written to memory after it was given and before the next step."""
    answered, written = 0, set()
    for action in actions:
        word, _, rest = action.action.partition(" ")
        if _is_answer(action):
            answered = action.t
        elif action.outcome == "done" and action.t == answered:
            kept = {int(rest)} if word == "WRITE" else records_in(rest, submitted) if word == "NOTE" else set()
            written |= {answered} & kept
    return written


def continuations(
    decisions: Iterable[Decision], exchanges: Iterable[Exchange], actions: Iterable[ActionTaken] = ()
) -> dict[int, Continuation]:
    """Return how the agent continued at each step with a missing input.

    *recovered*: everything missing was fetched. *stopped*: a recovery was started but did not fetch everything.
    *acknowledged*: no recovery, and a reply names a missing label outside its commands. *silent*: an answer without any
    of these. *abandoned*: no recovery, no acknowledgement and no answer.
    """
    missed = {decision.t: decision for decision in decisions if decision.missing}
    said: dict[int, set[int]] = {t: set() for t in missed}
    for exchange in exchanges:
        if exchange.t in said:
            said[exchange.t] |= mentioned(exchange.reply.text)
    tried = {action.t for action in actions if action.action.split()[0] in ("READ", "RECOMPUTE", "SEARCH")}
    return {t: _continuation(decision, said[t], t in tried) for t, decision in missed.items()}


def mentioned(text: str) -> set[int]:
    """Return the labels that a reply names outside its commands."""
    if not _MENTION.search(text):
        return set()
    prose = [line for line in text.split("\n") if not _is_command(line)]
    return {int(label) for line in prose for label in _MENTION.findall(line)}


def _is_command(line: str) -> bool:
    first = read_reply(Reply(line))[0]
    return not (isinstance(first, Fault) and not first.word)


def _continuation(decision: Decision, said: set[int], tried: bool) -> Continuation:
    missing = set(decision.missing)
    if decision.fetched or decision.restored:
        if missing <= {*decision.fetched, *(r for r, _ in decision.restored)}:
            return "recovered"
        tried = tried or not missing.isdisjoint(decision.fetched)
    if tried:
        return "stopped"
    if missing & said:
        return "acknowledged"
    return "silent" if decision.submitted is not None else "abandoned"


@dataclass(frozen=True, slots=True)
class Valley:
    """The lowest points of accuracy as a function of capacity."""

    depth: float  # the lowest accuracy − the no-recovery floor's at the same h; negative: the memory reduced accuracy
    h: int  # where that is
    dip: float  # the lowest accuracy − the worse of both neighboring capacities'; negative: a true valley; 0 if none
    dip_h: int | None


def valley(accuracy: Mapping[int, float], floor: Mapping[int, float]) -> Valley:
    """Return the valley of an accuracy curve over capacities against the no-recovery floor at the same capacities."""
    shared = [h for h in accuracy if h in floor]
    h = min(shared, key=lambda size: (accuracy[size] - floor[size], size))
    ordered = sorted(accuracy)
    dips = [
        (accuracy[here] - min(accuracy[below], accuracy[above]), here)
        for below, here, above in zip(ordered, ordered[1:], ordered[2:], strict=False)
    ]
    dip, dip_h = min(dips, default=(0.0, None))
    return Valley(accuracy[h] - floor[h], h, min(dip, 0.0), dip_h if dip < 0 else None)


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None
