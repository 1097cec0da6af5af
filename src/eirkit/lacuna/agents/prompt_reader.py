"""Parses prompts, full and compact, for the agents that run in this process (reference agents, bundled model)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from msgspec import Struct

from eirkit.lacuna.memories.validity import split_ended
from eirkit.lacuna.models.model import Request
from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.task import Payload, TaskSpec
from eirkit.lacuna.tasks.workload import Workload

_RECORD = re.compile(r"\bA_(\d+) = (\d+(?: \d+)*)")
_STEP = re.compile(r"^STEP (\d+) \w+( answered)?$(?:\nINPUT ([\d ]+)$)?(?:\nREFS (.+)$)?", re.MULTILINE)
_EXPRESSION = re.compile(r"^A_(\d+) = [^\d\s]\S*((?: \d+)*)((?: A_\d+)*)( answered)?$", re.MULTILINE)
_LABEL = re.compile(r"A_(\d+)")
_WORKLOAD = re.compile(r"^WORKLOAD (\S+) n=(\d+) q=(\d+) width=(\d+) k=(\d+)$", re.MULTILINE)
_TARGET = re.compile(r"^TARGET A_(\d+) (unknown|=)", re.MULTILINE)
_RESIDENT = re.compile(r"^RESIDENT(.*)$", re.MULTILINE)
_READS = re.compile(r"^READS (\d+)$", re.MULTILINE)
_NODE = re.compile(r"^NODE A_(\d+) input (?:(?! refs )[\w ])++ refs (.+) (?:known|unknown)$", re.MULTILINE)
_RESULT = re.compile(r"^RESULT ([\d ]+)$", re.MULTILINE)
_COMMAND = re.compile(r"^([A-Z]+)(?: \w+)*(?::|$)", re.MULTILINE)
_LEFT = re.compile(r"^LEFT actions=\S+ reads=(\S+) recomputations=(\S+)$", re.MULTILINE)
_ROOM = re.compile(r"^MEMORY (\d+) of (\d+) ", re.MULTILINE)
_RETAINED = re.compile(r"^RETAINED \d+((?:\nA_\d+ = \d.*)*)", re.MULTILINE)
_OUTCOME = re.compile(r"^RESULT (.*)$", re.MULTILINE)
_SUMMARY = re.compile(r"^SUMMARY at most (\d+) characters$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class TaskRules:
    """The content of the system message."""

    workload: Workload
    spec: TaskSpec
    width: int
    commands: frozenset[str]


class StepPrompt(Struct, frozen=True, gc=False):
    """The content of a prompt for one step."""

    rules: TaskRules
    t: int  # 0: no step has been revealed
    answered: bool
    asks: bool  # the step has no input of its own
    input: Payload | None
    refs: tuple[int, ...]
    values: dict[int, Payload]  # records in the text: all in managed runs, else those the step refers to
    result: Payload | None = None  # result of the calculator, if any

    @property
    def missing(self) -> tuple[int, ...]:
        return tuple([r for r in self.refs if r not in self.values])

    def operate(self, values: dict[int, Payload]) -> Payload:
        """Apply the rule to the referenced values that are given, leaving out missing ones."""
        operands = [values[r] for r in self.refs if r in values]
        return self.rules.workload.operate(self.rules.spec, self.input, operands)


@dataclass(frozen=True, slots=True)
class ProbePrompt:
    """The content of the prompt of a recovery probe."""

    target: int
    done: bool  # the target is known
    resident: frozenset[int]
    reads: int  # so far, repeated ones included
    nodes: dict[int, tuple[int, ...]]  # steps read, with their references

    def needs(self, t: int) -> tuple[int, ...]:
        """Return the references of a step that are not resident; the step must have been read."""
        return tuple(r for r in self.nodes[t] if r not in self.resident)


def read_probe(request: Request) -> ProbePrompt | None:
    """Return the content of a probe's prompt; None if the prompt is not a probe's."""
    if "\nPROBE " not in request.messages[0].content:
        return None
    text = request.messages[-1].content
    target, resident, reads = _TARGET.search(text), _RESIDENT.search(text), _READS.search(text)
    if target is None or resident is None or reads is None:
        raise ValueError("the prompt of the probe is incomplete; reference agents need eirkit's own prompts")
    nodes = {int(t): tuple(map(int, _LABEL.findall(refs))) for t, refs in _NODE.findall(text)}
    in_context = frozenset(map(int, _LABEL.findall(resident.group(1))))
    return ProbePrompt(int(target.group(1)), target.group(2) == "=", in_context, int(reads.group(1)), nodes)


@dataclass(frozen=True, slots=True)
class ManagedState:
    """The budgets, memory and last outcome that the prompt of an agent-managed run shows."""

    reads: int | None  # left; None: no limit
    recomputations: int | None
    room: int  # records or characters that still fit into memory
    kept: tuple[int, ...]  # records in key–value memory, ascending
    refused: bool  # the last action was refused
    searched: bool  # the last reply contained a search


def read_managed_state(request: Request) -> ManagedState:
    """Return the state that a prompt of an agent-managed run shows."""
    text = request.messages[-1].content
    below = _below_notes(text)
    left, room, kept = _LEFT.search(text, below), _ROOM.search(text, below), _RETAINED.search(text)
    reads, recomputations = left.groups() if left else ("0", "0")
    outcomes = _OUTCOME.findall(text, below)
    return ManagedState(
        reads=None if reads == "unlimited" else int(reads),
        recomputations=None if recomputations == "unlimited" else int(recomputations),
        room=int(room.group(2)) - int(room.group(1)) if room else 0,
        kept=tuple(map(int, _LABEL.findall(kept.group(1)))) if kept else (),
        refused=bool(outcomes) and outcomes[-1].startswith("refused"),
        searched=any(outcome.endswith("passages found") for outcome in outcomes),
    )


def read_summary_limit(request: Request) -> int | None:
    """Return the character limit of a requested summary; None if no summary is requested."""
    text = request.messages[-1].content
    asked = _SUMMARY.search(text, _below_notes(text))
    return None if asked is None else int(asked.group(1))


def _below_notes(text: str) -> int:
    """Return the position after the notes, which may contain lines that look like the harness's own."""
    return max(0, text.rfind("\nEND NOTES\n"))


class Reader:
    """Parses prompts; caches the rules of the last system message, which rarely changes."""

    def __init__(self) -> None:
        self._text = ""
        self._rules: TaskRules | None = None

    def read(self, request: Request) -> StepPrompt:
        told, text = request.messages[0].content, request.messages[-1].content
        if self._rules is None or told != self._text:
            self._text, self._rules = told, _read_rules(told)
        commands = self._rules.commands
        step = _read_step(text, _below_notes(text))
        if step is None:
            return StepPrompt(self._rules, 0, False, False, None, (), read_records(text))
        t, answered, fresh, labels = step
        return StepPrompt(
            self._rules,
            t,
            answered,
            not fresh,
            tuple(map(int, fresh)) if fresh else None,
            tuple([int(label[2:]) for label in labels]),
            read_records(text, "SEARCH" in commands) if "NEXT" in commands else _referenced(text, labels),
            _read_result(text) if "CALCULATE" in commands else None,
        )


def _read_step(text: str, start: int) -> tuple[int, bool, list[str], list[str]] | None:
    """Return a step's number, whether it is answered, its input and its labels; None if there is no step."""
    at = text.find("STEP ", start)  # to begin there spares the pattern the records before it
    if at >= 0 and (found := _STEP.search(text, at)):
        t, answered, fresh, refs = found.groups()
    elif found := _EXPRESSION.search(text, start):
        t, fresh, refs, answered = found.groups()
    else:
        return None
    return int(t), answered is not None, (fresh or "").split(), (refs or "").split()


def read_records(text: str, best_first: bool = False) -> dict[int, Payload]:
    """Return every record in a text that is not marked as ended; of a label's the last, or the first if it is best."""
    found = _RECORD.findall(split_ended(text)[0])
    return {int(t): tuple(map(int, values.split())) for t, values in (reversed(found) if best_first else found)}


def _referenced(text: str, labels: list[str]) -> dict[int, Payload]:
    """Return the records with these labels, each on its own line, as under Controlled Retention."""
    found: dict[int, Payload] = {}
    for label in labels:
        before = f"\n{label} = "
        at = text.rfind(before) + 1  # where its line begins
        if at or text.startswith(before[1:]):
            start = at + len(before) - 1
            end = text.find("\n", start)
            values = text[start:] if end < 0 else text[start:end]
            found[int(label[2:])] = (int(values),) if values.isdigit() else tuple(map(int, values.split()))
    return found


def _read_result(text: str) -> Payload | None:
    found = _RESULT.search(text)
    return None if found is None else tuple(map(int, found.group(1).split()))


def is_task(request: Request) -> bool:
    """True if a prompt belongs to a task, in either format."""
    return _WORKLOAD.search(request.messages[0].content) is not None


def _read_rules(text: str) -> TaskRules:
    found = _WORKLOAD.search(text)
    if found is None:
        raise ValueError("the prompt has no WORKLOAD line; reference agents need eirkit's own prompts")
    n, q, width, k = (int(number) for number in found.groups()[1:])
    name = found.group(1)
    spec = TaskSpec(name, n=n, m=min(16, n - 1) or 1, digits=len(str(q)) - 1, k=k)
    workload = prepare(spec)
    if workload.width(spec) != width:
        spec = replace(spec, slots=width)
    return TaskRules(workload, spec, width, frozenset(_COMMAND.findall(text)))
