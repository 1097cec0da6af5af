"""Task data: parameters of both families, steps with answers, graph fingerprints, and records such as `A_07 = 0042`.

Numbers and conversations are two families of tasks. Here is all of the first (`TaskSpec`, `TaskInstance`), and what
determines a task of the second; conversations themselves are in `eirkit.lacuna.conversation`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from hashlib import sha256
from typing import Literal

from msgspec import UNSET, Struct, UnsetType, structs

from eirkit.errors import SpecError, UsageError
from eirkit.records.settings import AnyTask, ConversationTask, Task

Kind = Literal["compute", "store", "query", "recall", "overwrite", "delete"]
ASKING: frozenset[Kind] = frozenset({"query", "recall"})  # for one earlier record
CHANGING: frozenset[Kind] = frozenset({"overwrite", "delete"})  # an earlier record, which they do not need
WITHOUT_INPUT: frozenset[Kind] = ASKING | {"delete"}
Payload = tuple[int, ...]  # the values of one record: one per slot, or k of them

LARGEST_TASK = 100_000  # steps; far beyond any experiment, small enough to fit in memory
LARGEST_WIDTH = 256  # values per record
MOST_USERS = 16  # each has a memory system of its own
_ALPHABETS: tuple[int, ...] = tuple([10**digits for digits in range(10)])  # by the number of digits
_MOST_TEXTS = 1 << 12  # records of which the text is kept


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """All parameters that determine a task of numbers."""

    workload: str
    n: int = 64  # steps
    m: int = 16  # dependency window; in Full Lookup the number of stored labels
    lookback: int | None = None  # how far back a reference may reach; m unless given
    fan_in: int = 2  # references of a compute step, if that many earlier steps exist
    slots: int = 1  # values per record
    digits: int = 4  # decimal digits per value; the alphabet is 0 … 10^digits − 1
    k: int = 2  # values per frontier, in Stepwise Top-k
    seed: int = 0
    queries: str = "uniform"  # in Full Lookup: uniform, zipf, or zipf-shuffled
    warm_up: int = 0  # leading steps that are not scored
    # Of records that change, in Record Store:
    overwrites: int = 25  # of 100 steps after the first m
    deletes: int = 10  # of 100 steps after the first m
    expiry: int = 40  # steps for which a record holds; 0: for ever
    users: int = 2  # of the memory system at the same time, with the same labels
    rereads: int = 2  # queries that follow each other and are about one record

    def __post_init__(self) -> None:
        ranges = (("n", self.n, LARGEST_TASK), ("m", self.m, LARGEST_TASK), ("lookback", self.reach, LARGEST_TASK))
        small = (
            ("fan_in", self.fan_in, LARGEST_WIDTH),
            ("slots", self.slots, LARGEST_WIDTH),
            ("k", self.k, LARGEST_WIDTH),
        )
        for name, value, largest in (*ranges, *small, ("digits", self.digits, 9)):
            if not 1 <= value <= largest:
                raise SpecError(f"{name} = {value} is out of range; choose 1 … {largest}")
        for name, value, least, most in (
            ("overwrites", self.overwrites, 0, 90),
            ("deletes", self.deletes, 0, 90 - self.overwrites),
            ("expiry", self.expiry, 0, LARGEST_TASK),
            ("users", self.users, 1, MOST_USERS),
            ("rereads", self.rereads, 1, LARGEST_TASK),
        ):
            if not least <= value <= most:
                raise SpecError(f"{name} = {value} is out of range; choose {least} … {most}")
        _check_seed(self.seed)
        if not 0 <= self.warm_up <= self.n:
            raise SpecError(f"warm_up = {self.warm_up} is out of range; choose 0 … n = {self.n}")

    @property
    def reach(self) -> int:
        """The lookback that applies: `lookback`, or m if it is not set."""
        return self.m if self.lookback is None else self.lookback

    @property
    def q(self) -> int:
        """The size of the value alphabet."""
        return _ALPHABETS[self.digits]

    def with_seed(self, seed: int) -> TaskSpec:
        return replace(self, seed=seed)

    def parameters(self) -> Task:
        """Return the parameters without the seed, as they are recorded."""
        return Task(
            self.workload,
            self.n,
            self.m,
            self.reach,
            self.fan_in,
            self.slots,
            self.digits,
            self.k,
            self.queries,
            self.warm_up,
            self.overwrites,
            self.deletes,
            self.expiry,
            self.users,
            self.rereads,
        )

    @classmethod
    def of(cls, task: Task, seed: int = 0) -> TaskSpec:
        """Return the specification that recorded parameters describe."""
        return cls(**structs.asdict(task), seed=seed)

    def as_document(self) -> TaskParameters:
        """Return the parameters as documents state them, with the seed and the lookback that applies."""
        return TaskParameters(**{**asdict(self), "lookback": self.reach})


@dataclass(frozen=True, slots=True)
class ConversationSpec:
    """All parameters that determine a conversation."""

    workload: str
    preset: str  # size, dials and language of a world; of published conversations, their file
    questions: int  # that one has at most
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.questions <= LARGEST_TASK:
            raise SpecError(f"{self.questions} questions are out of range; choose 1 … {LARGEST_TASK}")
        _check_seed(self.seed)

    def with_seed(self, seed: int) -> ConversationSpec:
        return replace(self, seed=seed)

    def parameters(self) -> ConversationTask:
        """Return the parameters without the seed, as they are recorded."""
        return ConversationTask(self.workload, self.preset, self.questions)


AnySpec = TaskSpec | ConversationSpec


def _check_seed(seed: int) -> None:
    if not 0 <= seed < 1 << 64:
        raise SpecError(f"seed = {seed} is out of range; choose 0 … 2^64 − 1")


def spec_of(task: AnyTask, seed: int = 0) -> AnySpec:
    """Return the specification that recorded parameters describe."""
    if isinstance(task, Task):
        return TaskSpec.of(task, seed)
    return ConversationSpec(task.workload, task.preset, task.questions, seed)


def number_spec(spec: AnySpec, what: str) -> TaskSpec:
    """Return the specification of a task of numbers.

    Raises:
        UsageError: it is of conversations.
    """
    if isinstance(spec, TaskSpec):
        return spec
    raise UsageError(f"{what} takes no conversations such as {spec.workload}; choose another workload")


class TaskParameters(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The parameters of a task in a document; see `TaskSpec`."""

    workload: str
    n: int
    m: int
    lookback: int
    fan_in: int
    slots: int
    digits: int
    k: int
    seed: int | UnsetType = UNSET  # of a document about many seeds it is left out
    queries: str
    warm_up: int
    overwrites: int = 25  # and the next four: left out where they have their defaults
    deletes: int = 10
    expiry: int = 40
    users: int = 2
    rereads: int = 2


class Step(Struct, frozen=True, gc=False, omit_defaults=True):
    """One step with its answer. Agents never receive it, only text made from its public part."""

    t: int  # from 1
    kind: Kind
    input: Payload | None  # None for a step that only asks
    refs: tuple[int, ...]  # earlier steps, ascending
    answer: Payload
    scored: bool
    target: int = 0  # the record that it changes; 0: none


@dataclass(frozen=True, slots=True)
class GeneratedTask:
    """A generated task of either family, fixed before any agent runs."""

    spec: AnySpec
    fingerprint: str  # of numbers: of the dependency graph alone; of conversations: of all that is said and asked


@dataclass(frozen=True, slots=True)
class TaskInstance(GeneratedTask):
    """A generated task of numbers."""

    spec: TaskSpec
    steps: tuple[Step, ...]

    def step(self, t: int) -> Step:
        return self.steps[t - 1]

    def document(self, *, lists: bool) -> TaskDocument:
        """Return the document of `eirkit lacuna generate`; single values are plain integers unless `lists`."""
        steps = self.steps if lists else tuple(map(_with_single_values, self.steps))
        return TaskDocument(self.spec.as_document(), self.fingerprint, steps)


class SingleValueStep(Struct, frozen=True, gc=False, omit_defaults=True):
    """A step of a task whose records have one value each."""

    t: int
    kind: Kind
    input: int | None
    refs: tuple[int, ...]
    answer: int
    scored: bool
    target: int = 0


def _with_single_values(step: Step) -> SingleValueStep:
    value = None if step.input is None else step.input[0]
    return SingleValueStep(step.t, step.kind, value, step.refs, step.answer[0], step.scored, step.target)


class TaskDocument(Struct, frozen=True):
    """A task with its answers."""

    spec: TaskParameters
    fingerprint: str
    steps: tuple[Step, ...] | tuple[SingleValueStep, ...]


def fingerprint(spec: TaskSpec, references: tuple[tuple[int, ...], ...]) -> str:
    """Return the SHA-256 of the dependency graph: equal for every operator at equal parameters."""
    graph = {"fan_in": spec.fan_in, "lookback": spec.reach, "m": spec.m, "n": spec.n, "references": references}
    return sha256(json.dumps(graph, separators=(",", ":"), sort_keys=True).encode()).hexdigest()


def show_label(spec: TaskSpec, t: int) -> str:
    """Return the label of step t's answer, such as A_07 of 64; all labels of a task have the same width."""
    return _labels(spec.n)[t]


def show_labels(spec: TaskSpec, steps: Iterable[int]) -> list[str]:
    """Return many labels, each as `show_label` does."""
    labels = _labels(spec.n)
    return [labels[t] for t in steps]


def show_record(spec: TaskSpec, t: int, values: Payload) -> str:
    """Return a record as agents see it; all records of a task have the same length."""
    return _texts(spec.n, spec.digits)[t, values]


def show_records(spec: TaskSpec, records: Iterable[tuple[int, Payload]]) -> list[str]:
    """Return many records, each as `show_record` does."""
    texts = _texts(spec.n, spec.digits)
    return [texts[record] for record in records]


class _Labels(dict[int, str]):
    """The labels of a task's answers, made once."""

    def __init__(self, n: int) -> None:
        self.width = len(str(n))

    def __missing__(self, t: int) -> str:
        self[t] = text = "A_" + str(t).zfill(self.width)
        return text


class _RecordTexts(dict[tuple[int, Payload], str]):
    """The text of records, made once: a record is shown again at every step while it is held."""

    def __init__(self, n: int, digits: int) -> None:
        self.width, self.digits = len(str(n)), digits

    def __missing__(self, record: tuple[int, Payload]) -> str:
        if len(self) >= _MOST_TEXTS:
            self.clear()
        t, values = record
        self[record] = text = f"A_{str(t).zfill(self.width)} = {show_values(self.digits, values)}"
        return text


_texts = lru_cache(maxsize=16)(_RecordTexts)
_labels = lru_cache(maxsize=16)(_Labels)


def show_values(digits: int, values: Payload) -> str:
    """Return values with leading zeros, separated by spaces."""
    return " ".join([str(value).zfill(digits) for value in values])


def read_record(text: str) -> tuple[int, Payload]:
    """Return the step and the values of a record; the inverse of `show_record`.

    Raises:
        ValueError: the text is not `A_7 = 0042`, with or without leading zeros.
    """
    label, separator, values = text.strip().partition(" = ")
    if not separator or not label.startswith("A_"):
        raise ValueError(f"{text!r} is not a record; write it like A_7 = 0042")
    return int(label.removeprefix("A_")), tuple(int(value) for value in values.partition(" until ")[0].split())
