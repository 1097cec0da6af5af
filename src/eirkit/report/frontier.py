"""Shows what memories of a contract or a task can reach: how often each size is right, and what an error costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from shlex import quote
from typing import Literal, Self

from msgspec import UNSET, Struct, UnsetType, structs, to_builtins

from eirkit.eir.lossy import Encoder, Frontier, FrontierPoint, StateInterval, capacities
from eirkit.lacuna.tasks.frontier import TaskFrontier, TaskPoint
from eirkit.lacuna.tasks.task import ConversationSpec, GeneratedTask, TaskSpec
from eirkit.report.document import Axis, Chart, Document, Item, Section, Series, facts
from eirkit.report.table import Cell, Column, Table, counted

EXACT = "exact: every partition of the histories into as many groups as there are states"
BOUNDED = "certified: an encoder from below; covering and rate–distortion duals over all decoders from above"


def frontier_document(contract: str, found: Frontier, error: float, capacity: float | None, groups: bool) -> Document:
    """Return the document about a contract; `groups` adds the codes of the encoder of that capacity."""
    points = [found.point(states) for states in capacities(found.atoms)]
    allowed, runs = found.states_for(error), found.states_for_run(error)
    encoder = found.encoder(_states(capacity)) if groups and capacity is not None else None
    data = ContractFrontier(
        contract=contract,
        form="process" if found.count.futures is None else "finite",
        histories=len(found.table.histories),
        questions=len(found.table.asked),
        classes=found.count.classes,
        bits=found.count.bits,
        bits_lower=math.log2(found.count.at_least),
        retrievals=found.count.retrievals,
        error=error,
        response=StateBounds.of(allowed),
        run=RunStates(**structs.asdict(StateBounds.of(runs)), states=runs.upper, bits=math.log2(runs.upper)),
        exact=all(point.exact for point in points),
        method=EXACT if found.solved else BOUNDED,
        rows=tuple(map(MemorySize.of, points)),
        capacity=UNSET
        if capacity is None
        else structs.replace(MemorySize.of(found.point(_states(capacity))), bits=capacity),
        encoder=UNSET if encoder is None else _encoder(found, encoder),
    )
    said = f"{points[0].lower:.2f} of the responses are right without memory, all with {points[-1].bits:.2f} bits."
    items = [_table(points)]
    if data.encoder is not UNSET:
        codes = sorted(data.encoder.codes, key=lambda coded: coded.code)
        rows: list[dict[str, Cell]] = [{"code": coded.code + 1, "history": coded.history} for coded in codes]
        columns = (Column("code", "code"), Column("history", "history", role="text"))
        items.append(Table("codes", "Histories by code", columns, tuple(rows)))
    items.append(facts("method", "How it was computed", _method(found, points)))
    name = quote(contract)
    then = f"eirkit eir count {name} --all" if capacity else f"eirkit eir frontier {name} --capacity 1 --all"
    title = f"How right a memory can be: {contract}"
    section = Section("", (), (*_charts(contract, "responses", said, points, _BOUNDS), *items))
    return Document("eir-frontier", title, _answer(data), data, (section,), next=then)


class MemorySize(Struct, frozen=True):
    """What memories of one size reach; see `FrontierPoint`."""

    states: int
    bits: float
    lower: float
    upper: float
    exact: bool
    run: float
    run_upper: float

    @classmethod
    def of(cls, point: FrontierPoint) -> Self:
        return cls(point.states, point.bits, point.lower, point.upper, point.exact, point.run, point.run_upper)


class StateBounds(Struct, frozen=True):
    """Bounds on the least memory with at most a given error."""

    states_lower: int
    states_upper: int
    bits_lower: float
    bits_upper: float

    @classmethod
    def of(cls, found: StateInterval) -> Self:
        return cls(found.lower, found.upper, math.log2(found.lower), math.log2(found.upper))


class RunStates(StateBounds, frozen=True):
    """The same for whole runs, with the memory that is known to be enough."""

    states: int
    bits: float


class CodedHistory(Struct, frozen=True):
    """A history and the code under which an encoder stores it."""

    code: int
    history: str


class EncoderDocument(Struct, frozen=True):
    """An encoder in words."""

    codes: list[CodedHistory]
    answers: list[dict[str, str]] | None  # by code, of each question; None: they depend on what is fetched


class ContractFrontier(Struct, frozen=True, kw_only=True):
    """What memories of a contract reach."""

    contract: str
    form: Literal["process", "finite"]
    histories: int
    questions: int
    classes: int
    bits: float
    bits_lower: float
    retrievals: int
    error: float
    response: StateBounds
    run: RunStates
    exact: bool
    method: str
    rows: tuple[MemorySize, ...]
    capacity: MemorySize | UnsetType = UNSET
    encoder: EncoderDocument | UnsetType = UNSET


def _encoder(found: Frontier, encoder: Encoder) -> EncoderDocument:
    asked, states = found.table.asked, range(encoder.states)
    return EncoderDocument(
        [CodedHistory(code, str(x)) for code, x in zip(encoder.codes, found.table.histories, strict=True)],
        [{str(u): str(encoder.decode(code, u)) for u in asked} for code in states]
        if encoder.retrievals is None
        else None,
    )


class TaskMemory(Struct, frozen=True):
    """What a memory of one size reaches in a task; see `TaskPoint`."""

    bits: float
    upper: float
    exists: float
    kept: float
    records: int | UnsetType = UNSET  # that it holds


class TaskFrontierFigures(Struct, frozen=True, kw_only=True):
    """What memories reach in a task; beside these a document has the parameters of the task."""

    fingerprint: str
    asking_steps: int  # questions of a conversation
    free_steps: int
    record_bits: float
    enough_bits: float
    error: float
    bits_lower: float
    bits_upper: float
    method: str
    rows: list[TaskMemory]
    capacity: TaskMemory | UnsetType = UNSET


@dataclass(frozen=True, slots=True)
class _Wording:
    """How a frontier is told for one family of tasks."""

    asking: str  # what is right or wrong
    reached: str  # by the best memory that can be run
    note: str
    command: str  # to go on with
    tells_enough: bool  # whether bits that are enough are known


_STEPS = _Wording(
    "steps that refer to earlier ones",
    "keeping what fits reaches",
    "Keeping them: as many whole records as fit (`--memory encoder`). Some memory: at each step by itself, one exists "
    "that is right so often. At most: no memory is right more often.",
    "eirkit eir curve",
    True,
)
_QUESTIONS = _Wording(
    "questions",
    "one that knew them beforehand reaches",
    "Keeping them: answers, by a memory that knows what will be asked. At most: no memory is right more often.",
    "eirkit lacuna run",
    False,
)


def task_frontier_document(task: GeneratedTask, found: TaskFrontier, error: float, capacity: float | None) -> Document:
    """Return the document about a generated task."""
    spec = task.spec
    told = _STEPS if isinstance(spec, TaskSpec) else _QUESTIONS
    grid = [found.point(h * found.record_bits) for h in range(found.records + 1)]
    low, high = found.bits_for(error)
    point = None if capacity is None else found.point(capacity)
    figures = TaskFrontierFigures(
        fingerprint=task.fingerprint,
        asking_steps=found.asking,
        free_steps=found.free,
        record_bits=found.record_bits,
        enough_bits=found.enough_bits,
        error=error,
        bits_lower=low,
        bits_upper=high,
        method=found.method,
        rows=[TaskMemory(**asdict(point), records=h) for h, point in enumerate(grid)],
        capacity=UNSET if point is None else TaskMemory(**asdict(point)),
    )
    answer = []
    if capacity is not None and point is not None:
        answer.append(
            f"With {_bits(capacity)} no memory is right at more than {point.upper:.3f} of the {found.asking} "
            f"{told.asking}; {told.reached} {point.kept:.3f}."
        )
    enough = f", and {high:.1f} are enough; {found.enough_bits:.1f} bits are always enough"
    answer.append(f"At most {error:g} wrong answers take at least {low:.1f} bits{enough if told.tells_enough else ''}.")
    said = f"All from {grid[-1].bits:.1f} bits on."
    free = f"; {found.free} more are right without memory" if found.free else ""
    how: dict[str, Cell] = {"ceiling": found.method, "steps": f"{found.asking} scored {told.asking}{free}"}
    columns = (
        Column("records", "records"),
        Column("bits", "bits", 1),
        Column("kept", "keeping them"),
        Column("exists", "some memory"),
        Column("upper", "at most"),
    )
    rows: list[dict[str, Cell]] = [{"records": h, **asdict(point)} for h, point in enumerate(grid)]
    table = Table("frontier-rows", f"{spec.workload}: right answers at {told.asking}", columns, tuple(rows), told.note)
    items: tuple[Item, ...] = (
        *_charts(spec.workload, "answers", said, grid, _CEILING),
        table,
        facts("method", "How it was computed", how),
    )
    parameters = (
        asdict(spec) if isinstance(spec, ConversationSpec) else {**to_builtins(spec.as_document()), "q": spec.q}
    )
    title = f"How right a memory can be: {spec.workload}"
    data = {**parameters, **to_builtins(figures)}
    then = f"{told.command} {quote(spec.workload)}"
    return Document("eir-frontier", title, tuple(answer), data, (Section("", (), items),), next=then)


# Lines of a chart, by the figure of a point that they show; bounds are dashed.
_BOUNDS = {"upper": "no memory exceeds", "lower": "an encoder reaches"}
_CEILING = {"upper": "no memory exceeds", "exists": "some memory reaches", "kept": "keeping what fits"}


def _charts(
    name: str, right: str, said: str, points: Sequence[FrontierPoint | TaskPoint], lines: Mapping[str, str]
) -> tuple[Chart, ...]:
    """Return right answers over the bits of the memory as a chart; none of two points."""
    if len(points) < 3:
        return ()
    bits = tuple(point.bits for point in points)
    series = tuple(
        Series(title, "line", bits, tuple(getattr(point, key) for point in points), dashed=key in ("upper", "exists"))
        for key, title in lines.items()
    )
    axes = Axis("bits of the memory"), Axis(f"right {right}", low=0.0, high=1.0, percent=True)
    return (Chart("frontier", f"What a memory can reach: {name}", said, *axes, series),)


def _bits(amount: float) -> str:
    return f"{amount:g} {'bit' if amount == 1 else 'bits'}"


def _states(bits: float) -> int:
    """Return the whole states that fit into some bits; rounding must not lose the last one of log2(3) bits."""
    return int(2 ** min(bits, 60.0) * (1 + 1e-12))


def _answer(data: ContractFrontier) -> tuple[str, ...]:
    sentences = []
    if at := data.capacity:
        fetching = f" and {counted(data.retrievals, 'retrieval')}" if data.retrievals else ""
        sentences.append(
            f"With {_bits(at.bits)}{fetching} the best memory is right in {_between(at.lower, at.upper)} of the "
            f"responses, and throughout in {_between(at.run, at.run_upper)} of the runs."
        )
    response, run = data.response, data.run
    sentences.append(
        f"At most {data.error:g} wrong responses take {_between(response.bits_lower, response.bits_upper)} "
        f"bits; at most {data.error:g} wrong runs take {_between(run.bits_lower, run.bits_upper)}. "
        f"No error takes {_between(data.bits_lower, data.bits)}."
    )
    return tuple(sentences)


def _between(low: float, high: float) -> str:
    first, last = f"{low:.3f}", f"{high:.3f}"
    return first if first == last else f"{first} to {last}"


def _table(points: list[FrontierPoint]) -> Table:
    exact = all(point.exact for point in points)
    shares = (
        (Column("lower", "right responses"),) if exact else (Column("lower", "at least"), Column("upper", "at most"))
    )
    runs = (
        (Column("run", "right runs"),)
        if all(point.run == point.run_upper for point in points)
        else (Column("run", "runs at least"), Column("run_upper", "at most"))
    )
    columns = (Column("bits", "bits"), Column("states", "states"), *shares, *runs)
    rows: list[dict[str, Cell]] = [structs.asdict(MemorySize.of(point)) for point in points]
    note = "" if exact else "Right responses: an encoder reaches the first number, no memory exceeds the second."
    return Table("frontier-rows", "Best memory of each size", columns, tuple(rows), note)


def _method(found: Frontier, points: list[FrontierPoint]) -> dict[str, Cell]:
    pasts = "states" if found.count.futures is None else "histories"
    return {
        pasts: f"{len(found.table.histories):,}, of which {found.atoms:,} differ in what they need",
        "questions": f"{len(found.table.asked):,}, of which {len(found.table.starts):,} divide the {pasts} differently",
        "method": EXACT if found.solved else BOUNDED,
        "largest gap": f"{max(point.upper - point.lower for point in points):.3f}",
    }
