"""The channel audit: checks that prompts do not leak information through seven side channels.

Every check reads the rendered request, never the objects it was made from. Payload width is checked for each displayed
value slot, message length for each decision at saturation, and the other five channels for each decision.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import msgspec
from msgspec import Struct

from eirkit.errors import SpecError
from eirkit.lacuna.agents.session import ControlledSession, Session
from eirkit.lacuna.memories.memory import MemoryCall
from eirkit.lacuna.models.model import Reply, Request, canonical
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.policies import Fifo
from eirkit.lacuna.tasks.policy import Retention
from eirkit.lacuna.tasks.task import Payload, TaskSpec
from eirkit.lacuna.tasks.view import PublicTask, publish
from eirkit.seeds import below, words

CHANNELS = (
    "payload-width",
    "identifiers",
    "occupancy",
    "ordering",
    "serialization",
    "message-length",
    "reset-isolation",
)
WORKLOADS = ("stepwise-sum", "store-recall", "stepwise-max", "full-lookup", "stepwise-topk", "running-max")
EXAMPLES = 3  # findings quoted per channel

Interface = Callable[[PublicTask, int], Session]  # a fresh session of a task with h records
Answers = Mapping[int, Payload]  # what the scripted agent submits at each step
Digests = list[list[str]]  # of all requests, instance by instance

_RECORD = re.compile(r"^A_(\d+) = (.*)$")
_LABEL = re.compile(r"A_(\d+)")


def shipped_interface(task: PublicTask, h: int) -> Session:
    """Return a session of Controlled Retention over the last h records, as experiments use it."""
    return ControlledSession(task, Retention(Fifo(), h))


@dataclass(frozen=True, slots=True)
class Instance:
    """One task and the memory under which it is audited."""

    spec: TaskSpec
    h: int


def instances(count: int) -> list[Instance]:
    """Return short tasks that cycle through combinations of workload, length, capacity and slots."""
    if count < 1:
        raise SpecError(f"{count} instances are too few; use --instances 1 or more")
    drawn = below(words(range(count), 2, "audit"), 9)
    made = []
    for i in range(count):
        workload, h = WORKLOADS[i % len(WORKLOADS)], 4 - i % 4
        slots = 1 if workload == "stepwise-topk" else 1 + i // 4 % 3
        spec = TaskSpec(workload, n=15 + int(drawn[i, 0]), m=4 + int(drawn[i, 1]) % 5, slots=slots, k=1 + i % 3, seed=i)
        made.append(Instance(spec, h))
    return made


@dataclass(frozen=True, slots=True)
class Shown:
    """The retained records as read from the text of a request."""

    announced: int | None  # number of records that the request states
    records: tuple[tuple[int, tuple[str, ...]], ...]  # label and the slots' texts, in the order of display
    labels: frozenset[int]  # every label in any message except in the references of the step


def read_shown(request: Request) -> Shown:
    """Parse the state message; never fails, whatever the message contains."""
    lines = request.messages[-1].content.split("\n")
    announced = re.match(r"RETAINED (\d+)\b", lines[0])
    found = [match for line in lines if (match := _RECORD.match(line))]
    everywhere = [line for message in request.messages for line in message.content.split("\n")]
    labels = {int(label) for line in everywhere if not line.startswith("REFS ") for label in _LABEL.findall(line)}
    records = tuple((int(match.group(1)), tuple(match.group(2).split(" "))) for match in found)
    return Shown(None if announced is None else int(announced.group(1)), records, frozenset(labels))


class ChannelRow(Struct, frozen=True):
    """The checks and findings of one channel, with the first examples."""

    channel: str
    checks: int
    findings: int
    examples: tuple[str, ...]


class Audit(Struct, frozen=True):
    """The result of an audit."""

    rows: tuple[ChannelRow, ...]
    instances: int
    decisions: int
    saturated: int  # decisions with h records shown
    value_slots: int  # displayed, over all decisions
    checks: int
    findings: int
    plant: str | None = None  # the channel through which the audited interface leaks on purpose


class _Tally:
    """Counts checks and findings by channel."""

    def __init__(self) -> None:
        self.checks = dict.fromkeys(CHANNELS, 0)
        self.findings = dict.fromkeys(CHANNELS, 0)
        self.examples: dict[str, list[str]] = {channel: [] for channel in CHANNELS}

    def check(self, channel: str, holds: bool, where: str) -> None:
        self.checks[channel] += 1
        if not holds:
            self.findings[channel] += 1
            if len(self.examples[channel]) < EXAMPLES:
                self.examples[channel].append(where)

    def rows(self) -> tuple[ChannelRow, ...]:
        return tuple(ChannelRow(c, self.checks[c], self.findings[c], tuple(self.examples[c])) for c in CHANNELS)


def run_audit(
    listed: Sequence[Instance], rendered_elsewhere: Digests, interface: Interface = shipped_interface
) -> Audit:
    """Audit an interface over many instances.

    Args:
        rendered_elsewhere: `digests` from another process with another hash seed.
    """
    tally = _Tally()
    decisions = saturated = value_slots = 0
    for instance, elsewhere in zip(listed, rendered_elsewhere, strict=True):
        for decision in _decisions(instance, interface):
            decisions += 1
            saturated += len(decision.expected) == instance.h
            value_slots += sum(len(slots) for _, slots in decision.shown[0].records)
            _check(tally, instance, decision, elsewhere[decision.t - 1])
    rows = tally.rows()
    checks, findings = sum(row.checks for row in rows), sum(row.findings for row in rows)
    return Audit(rows, len(listed), decisions, saturated, value_slots, checks, findings)


@dataclass(frozen=True, slots=True)
class _Decision:
    """One request and the same request under other histories."""

    t: int
    expected: tuple[int, ...]  # the ids that must be shown: the last h that take a slot
    width: int
    requests: tuple[Request, ...]  # the first as it is, the others with other submitted values and inputs
    again: Request  # from the first session, asked twice
    other_past: Request  # other values and other words, except for the records still retained
    shown: tuple[Shown, ...]  # of `requests`


def _decisions(instance: Instance, interface: Interface) -> Iterator[_Decision]:
    public, q = publish(generate(instance.spec), prepare(instance.spec)), instance.spec.q
    histories = [_drawn(public, "first"), _drawn(public, "second"), _constant(public, 0), _constant(public, q - 1)]
    tasks = (public, public, _with_inputs(public, 0), _with_inputs(public, q - 1))
    sessions = [interface(same, instance.h) for same in tasks]
    stored: list[int] = []
    for step in public.steps:
        requests = tuple(_ask(session) for session in sessions)
        kept = tuple(stored[-instance.h :])
        mixed = {t: histories[0][t] if t in kept else other for t, other in histories[1].items()}
        past = _replay(interface, public, instance.h, step.t, mixed)
        shown = tuple(read_shown(request) for request in requests)
        yield _Decision(step.t, kept, public.width, requests, _ask(sessions[0]), past, shown)
        for session, answers in zip(sessions, histories, strict=True):
            session.receive(_reply(step.t, answers, ""))
        if public.workload.stores(public.spec, step.t):
            stored.append(step.t)


def _drawn(public: PublicTask, name: str) -> dict[int, Payload]:
    """Return what a scripted agent submits: drawn values, never the true answers."""
    spec, width = public.spec, public.width
    values = below(words([spec.seed], spec.n * width, "audit", name), spec.q).reshape(-1, width).tolist()
    return {t: public.workload.canonical(tuple(row)) for t, row in enumerate(values, 1)}


def _constant(public: PublicTask, value: int) -> dict[int, Payload]:
    return {step.t: (value,) * public.width for step in public.steps}


def _with_inputs(public: PublicTask, value: int) -> PublicTask:
    """Return the task with one value in place of all its inputs."""
    same = (value,) * public.width
    return replace(public, steps=tuple(msgspec.structs.replace(s, input=s.input and same) for s in public.steps))


def _replay(interface: Interface, public: PublicTask, h: int, t: int, answers: Answers) -> Request:
    """Return the request of step t after another history that used other words."""
    session = interface(public, h)
    for step in range(1, t):
        _ask(session)
        session.receive(_reply(step, answers, f"Step {step} of another history.\n"))
    return _ask(session)


def _ask(session: Session) -> Request:
    request = session.request()
    if request is None or isinstance(request, MemoryCall):
        raise SpecError("the interface under audit ended early or asked for a memory; audit Controlled Retention")
    return request


def _reply(t: int, answers: Answers, words_before: str) -> Reply:
    return Reply(f"{words_before}ANSWER {t} {' '.join(map(str, answers[t]))}")


def _check(tally: _Tally, instance: Instance, decision: _Decision, elsewhere: str) -> None:
    """Check one decision in all seven channels."""
    where = f"{instance.spec.workload}, seed {instance.spec.seed}, h = {instance.h}, step {decision.t}"
    first, expected = decision.shown[0], decision.expected
    for place, (label, slots) in enumerate(first.records):
        for position, slot in enumerate(slots):
            fits = all(_fits(shown, place, position, decision.width, instance.spec.digits) for shown in decision.shown)
            tally.check("payload-width", fits, f"{where}: A_{label} shows {slot!r}, or as wide as its value")
    exact = all(shown.labels == set(expected) == {label for label, _ in shown.records} for shown in decision.shown)
    tally.check("identifiers", exact, f"{where}: labels {sorted(first.labels)}, retained {list(expected)}")
    counts = {count for shown in decision.shown for count in (len(shown.records), shown.announced)}
    tally.check("occupancy", counts == {len(expected)}, f"{where}: {counts} records, {len(expected)} retained")
    orders = [[label for label, _ in shown.records] for shown in decision.shown]
    tally.check("ordering", all(ids == sorted(set(ids)) for ids in orders), f"{where}: {orders[0]}")
    request = decision.requests[0]
    stable = serialize(request) == serialize(decision.again) and digest(request) == elsewhere
    tally.check("serialization", stable, f"{where}: other bytes when rendered again")
    if len(expected) == instance.h:
        lengths = {sum(len(message.content) for message in other.messages) for other in decision.requests}
        tally.check("message-length", len(lengths) == 1, f"{where}: {sorted(lengths)} characters, by value")
    isolated = serialize(request) == serialize(decision.other_past)
    tally.check("reset-isolation", isolated, f"{where}: depends on what is no longer retained")


def _fits(shown: Shown, place: int, position: int, width: int, digits: int) -> bool:
    """True if a displayed value slot is as wide as every other, and the record as long."""
    if place >= len(shown.records) or len(shown.records[place][1]) != width:
        return False
    slot = shown.records[place][1][position]
    return len(slot) == digits and slot.isascii() and slot.isdigit()


def serialize(request: Request) -> bytes:
    """Return a request as bytes."""
    return canonical(request)


def digest(request: Request) -> str:
    return sha256(serialize(request)).hexdigest()


def digests(listed: Sequence[Instance], interface: Interface = shipped_interface) -> Digests:
    """Return the digests of all requests of the first history, instance by instance."""
    found = []
    for instance in listed:
        public = publish(generate(instance.spec), prepare(instance.spec))
        session, answers = interface(public, instance.h), _drawn(public, "first")
        row = []
        for t in range(1, instance.spec.n + 1):
            row.append(digest(_ask(session)))
            session.receive(_reply(t, answers, ""))
        found.append(row)
    return found
