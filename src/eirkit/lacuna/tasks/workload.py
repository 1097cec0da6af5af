"""The workload protocol, graphs from seeds or `--graph` files, and the best that online policies can reach.

References of many tasks are one array of shape (seeds, n, fan_in): ascending identifiers from 1, then zeros.

A workload subclasses `Workload` and defines `operate`; every other method has the default of an online compute task in
which each step combines its input with a few earlier answers. See docs/extend.md.
"""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from operator import index
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from eirkit.eir.demand import ClassCount, DemandCurve, StepBound, select_cuts
from eirkit.errors import ContractError, InputFileError, UsageError
from eirkit.lacuna.tasks.task import (
    LARGEST_TASK,
    LARGEST_WIDTH,
    WITHOUT_INPUT,
    AnySpec,
    ConversationSpec,
    GeneratedTask,
    Kind,
    Payload,
    TaskSpec,
)
from eirkit.registry import Registry, guard_verbs
from eirkit.seeds import below, words

References = NDArray[np.int32]

LARGEST_FILE_BYTES = 64 << 20
_EXAMPLE = "{'steps': [{'t': 1, 'refs': []}]}"
_UNUSED = np.int32(LARGEST_TASK)  # above every position in a window


def draw_references(seeds: Sequence[int] | NDArray[Any], n: int, reach: int, fan_in: int) -> References:
    """Draw the base graph: step t refers to min(fan_in, available) distinct steps of max(1, t − reach) … t − 1."""
    drawn = words(seeds, n * fan_in, "graph").reshape(-1, n, fan_in)
    steps = np.arange(1, n + 1, dtype=np.int32)
    available = np.minimum(steps - 1, reach)
    picked: list[References] = []  # ascending positions in the window; unused ones last
    for i in range(fan_in):
        position = below(drawn[:, :, i], np.maximum(available - i, 0)).astype(np.int32)
        # The draw counts only steps not picked yet: shift it past those below it, in ascending order.
        for earlier in picked:
            position += position >= earlier
        position[:, available <= i] = _UNUSED
        for place, earlier in enumerate(picked):
            picked[place], position = np.minimum(earlier, position), np.maximum(earlier, position)
        picked.append(position)
    positions = np.stack(picked, axis=2)
    return np.where(positions == _UNUSED, 0, positions + np.maximum(1, steps - reach)[:, None]).astype(np.int32)


def as_tuples(references: References) -> tuple[tuple[int, ...], ...]:
    """Return one task's references, shape (n, fan_in), as plain tuples without the padding."""
    return tuple(tuple(filter(None, row)) for row in references.tolist())


def load_graph(path: Path) -> tuple[tuple[int, ...], ...]:
    """Read `{"steps": [{"t": 1, "refs": []}, …]}`: any acyclic graph whose edges point back in time.

    Raises:
        InputFileError: the file cannot be read or is not such a graph; the message names the first fault.
    """
    document = _read_json(path)
    steps = document.get("steps") if isinstance(document, dict) else None
    if not isinstance(steps, list) or not steps:
        raise InputFileError(f"{path}: there is no list 'steps'; write {_EXAMPLE}")
    if len(steps) > LARGEST_TASK:
        raise InputFileError(f"{path}: {len(steps)} steps, the limit is {LARGEST_TASK}; use a smaller graph")
    nodes = _numbered(path, steps)
    _check_edges(path, nodes)
    return tuple(nodes[t] for t in range(1, len(nodes) + 1))


def _read_json(path: Path) -> Any:
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror}; check the path") from error
    if len(content) > LARGEST_FILE_BYTES:
        raise InputFileError(f"{path}: more than {LARGEST_FILE_BYTES} bytes; use a smaller graph")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputFileError(f"{path}: not JSON ({error}); write {_EXAMPLE}") from error


def _numbered(path: Path, steps: list[Any]) -> dict[int, tuple[int, ...]]:
    """Return each step's references, ascending, after the steps themselves have been checked one by one."""
    nodes: dict[int, tuple[int, ...]] = {}
    for position, step in enumerate(steps, 1):
        t, refs = (step.get("t"), step.get("refs")) if isinstance(step, dict) else (None, None)
        if type(t) is not int or not isinstance(refs, list) or any(type(r) is not int for r in refs):
            raise InputFileError(
                f"{path}: entry {position} of 'steps' is not {{'t': int, 'refs': [int, …]}}; correct it"
            )
        if not 1 <= t <= len(steps):
            raise InputFileError(
                f"{path}: there are {len(steps)} steps, but one has t = {t}; number them 1 … {len(steps)} without gaps"
            )
        if t in nodes:
            raise InputFileError(f"{path}: step {t} appears twice; give every step its own t")
        if len(set(refs)) != len(refs):
            raise InputFileError(f"{path}: step {t} refers to one step twice; list each needed step once")
        if len(refs) > LARGEST_WIDTH:
            raise InputFileError(f"{path}: step {t} has {len(refs)} references; keep at most {LARGEST_WIDTH}")
        nodes[t] = tuple(sorted(refs))
    return nodes


def _check_edges(path: Path, nodes: dict[int, tuple[int, ...]]) -> None:
    for t, refs in sorted(nodes.items()):
        for r in refs:
            if r not in nodes:
                raise InputFileError(f"{path}: step {t} refers to step {r}, which does not exist; add it or drop it")
            if r >= t and _reaches(nodes, r, t):
                raise InputFileError(f"{path}: step {t} refers to step {r} and closes a cycle; break the cycle")
            if r >= t:
                raise InputFileError(
                    f"{path}: step {t} refers forward to step {r}; number the steps in the order of their computation"
                )


def _reaches(nodes: dict[int, tuple[int, ...]], start: int, goal: int) -> bool:
    found, open_steps = {start}, [start]
    while open_steps and goal not in found:
        fresh = set(nodes.get(open_steps.pop(), ())) - found
        found |= fresh
        open_steps.extend(fresh)
    return goal in found


Values = NDArray[np.int64]
_UNITS = re.compile(r"\b(task|step)(s?)\b")
Graph = tuple[tuple[int, ...], ...]  # references of steps 1 … n of one task

_VERBS = (
    *("operate", "operate_batch", "rule", "canonical", "check", "width", "alphabet"),
    *("kinds", "references", "stores", "last_use", "demand", "bounds", "draws"),
)

workloads: Registry[type[Workload]] = Registry(
    "workload", group="eirkit.workloads", package="eirkit.lacuna.tasks", table="WORKLOADS"
)


conversations: Registry[type[TextWorkload]] = Registry(
    "workload", group="eirkit.conversations", package="eirkit.lacuna.tasks", table="CONVERSATIONS"
)


@dataclass(frozen=True, slots=True)
class Units:
    """What the tasks of a workload and their steps are called where results are told."""

    task: str = "task"
    step: str = "step"
    outcome: str = "step"  # what is right or wrong

    def tell(self, text: str) -> str:
        """Return a text about tasks and steps in these words."""
        text = text.replace("steps were wrong", f"{self.outcome}s were wrong")
        return _UNITS.sub(lambda found: getattr(self, found[1]) + found[2], text)


Spec = TypeVar("Spec", bound=AnySpec)


class AnyWorkload(ABC, Generic[Spec]):
    """What makes tasks of one kind, of either family. Instances are stateless."""

    units = Units()
    endless = True  # every seed is a task

    @abstractmethod
    def specify(self, values: Mapping[str, Any]) -> Spec:
        """Return the specification with these parameters and defaults for the others."""

    def check(self, spec: Spec) -> None:
        """Raise SpecError if no task with these parameters exists."""


class TextWorkload(AnyWorkload[ConversationSpec]):
    """Makes conversations, with questions about them that are answered by texts."""

    units = Units("conversation", "question", "answer")

    @abstractmethod
    def tasks(self, spec: ConversationSpec, seeds: Sequence[int]) -> Iterator[GeneratedTask]:
        """Yield the conversations of the seeds, in order."""


class Workload(AnyWorkload[TaskSpec]):
    """Makes tasks of numbers. Errors raised by a subclass are reported as PluginError."""

    operator = ""  # its name in compact prompts; by default the workload's name
    lists = False  # True if inputs and answers are lists even when they hold one value
    leaves_out_unscored = False  # True if demand() does not count what only unscored steps need
    changes = False  # True if steps change records, which then have the values of `standing.py`
    closed_form = False  # True if EIR follows from the parameters alone, whatever the graph

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        guard_verbs(cls, "workload", _VERBS)

    @abstractmethod
    def operate(self, spec: TaskSpec, fresh: Payload | None, operands: Sequence[Payload]) -> Payload:
        """Return the answer of a step from its input and the answers it refers to."""

    def operate_batch(
        self, spec: TaskSpec, kind: Kind, fresh: Values, operands: Values, present: NDArray[Any]
    ) -> Values:
        """Return the answers of one step of many tasks: `operate` on every row, unless a workload is faster.

        Args:
            fresh: shape (seeds, width).
            operands: shape (seeds, fan_in, width), zero where absent.
            present: shape (seeds, fan_in), False where there is no such reference.
        """
        asks = kind in WITHOUT_INPUT
        rows = zip(fresh.tolist(), operands.tolist(), present.tolist(), strict=True)
        answers = [
            self.operate(
                spec, None if asks else tuple(w), [tuple(v) for v, there in zip(values, flags, strict=True) if there]
            )
            for w, values, flags in rows
        ]
        try:
            found = np.array([[index(value) for value in answer] for answer in answers], dtype=np.int64)
            return found.reshape(fresh.shape)
        except (TypeError, ValueError, OverflowError):  # not sequences of integers, or of another length
            told = next((a for a in answers if not isinstance(a, tuple) or len(a) != fresh.shape[1]), answers[0])
            said = f"return a tuple of {fresh.shape[1]} integers, as width() says"
            raise ContractError(f"{spec.workload} answered {told!r:.200}; {said}") from None

    def specify(self, values: Mapping[str, Any]) -> TaskSpec:
        """Return the specification with these parameters and defaults for the others."""
        if "preset" in values:
            raise UsageError(f"{values['workload']} has no presets; leave preset out, or use the workload conversation")
        return TaskSpec(**values)

    def rule(self, spec: TaskSpec) -> str:
        """Return the operator in words, as prompts state it."""
        return (type(self).__doc__ or "").strip().partition("\n")[0]

    def canonical(self, values: Payload) -> Payload:
        """Return the one form of an answer that is compared and retained."""
        return values

    def width(self, spec: TaskSpec) -> int:
        """Values in one record."""
        return spec.slots

    def alphabet(self, spec: TaskSpec) -> int:
        """How many different values one record can hold."""
        return int(spec.q**spec.slots)

    def kinds(self, spec: TaskSpec) -> tuple[Kind, ...]:
        """What each step does."""
        compute: Kind = "compute"
        return (compute,) * spec.n

    def references(self, spec: TaskSpec, seeds: Sequence[int] | NDArray[Any]) -> References:
        """Draw what each step refers to, for many seeds at once; before any operator."""
        return draw_references(seeds, spec.n, spec.reach, spec.fan_in)

    def stores(self, spec: TaskSpec, t: int) -> bool:
        """True if the answer of step t takes a retention slot."""
        return True

    def last_use(self, spec: TaskSpec, t: int) -> int:
        """The last step that could need the answer of step t; 0 if none can."""
        return min(t + spec.reach, spec.n) if t < spec.n else 0

    def demand(self, spec: TaskSpec, graph: Graph, cuts: Sequence[int] | None = None) -> DemandCurve:
        """Return EIR after each step under this workload's contract."""
        raise UsageError(
            f"no EIR formula is known for {spec.workload!r}; count a small instance with `eirkit eir count`"
        )

    def demand_with_retrievals(self, spec: TaskSpec, retrievals: int, cuts: Sequence[int] | None = None) -> DemandCurve:
        """Return EIR after each step if, at that cut, so many stored results may still be fetched."""
        raise UsageError(
            f"no EIR with retrievals is known for {spec.workload!r}; "
            "count a small instance with `eirkit eir count FILE.py:NAME --b-oracle B`"
        )

    def draws(self, spec: TaskSpec) -> Sequence[Draw | None]:
        """Return how each step draws its references, given all that happened before; None where it draws none.

        A workload with references of its own must say so itself; until it does, no bound on policies is known for it.
        """
        if type(self).references is not Workload.references:
            raise UsageError(
                f"how {spec.workload!r} draws its references is not stated; define draws() beside references()"
            )
        windows = (min(t, spec.reach) for t in range(spec.n))
        return [Draw(window, min(spec.fan_in, window)) if window else None for window in windows]

    def bounds(self, spec: TaskSpec, graph: Graph) -> Sequence[StepBound | None]:
        """Return what memories can reach at each step under uniform inputs; None where a step needs no memory."""
        raise UsageError(
            f"no ceiling is known for {spec.workload!r}; give a small instance as a contract to `eirkit eir frontier`"
        )


class Lookup(Workload):
    """Workloads whose steps either store their input or give back one stored value."""

    operator = "copy"

    def rule(self, spec: TaskSpec) -> str:
        return "A step with an input: the answer is the input. A step without: the answer is the referenced answer."

    def operate(self, spec: TaskSpec, fresh: Payload | None, operands: Sequence[Payload]) -> Payload:
        if fresh is not None:
            return fresh
        # A lookup whose operand is missing has no value to return; zeros keep the width of a record.
        return operands[0] if operands else (0,) * self.width(spec)

    def operate_batch(
        self, spec: TaskSpec, kind: Kind, fresh: Values, operands: Values, present: NDArray[Any]
    ) -> Values:
        return fresh if kind == "store" else operands[:, 0]


def curve_of(spec: TaskSpec, cuts: Sequence[int] | None, classes: Callable[[int], int], method: str) -> DemandCurve:
    """Return the curve of a closed form; slots are independent copies that are referenced together."""
    wanted = set(select_cuts(spec.n, cuts))
    scored = spec.warm_up < spec.n  # otherwise nothing is required
    exact = (ClassCount.exactly(classes(t) if scored else 1) if t in wanted else None for t in range(spec.n + 1))
    counts = (None if count is None else count.power(spec.slots) for count in exact)
    return DemandCurve(tuple(counts), method)


@dataclass(frozen=True, slots=True)
class Draw:
    """What one step refers to, as it is known before it is drawn."""

    available: int
    drawn: int = 1  # distinct records, uniformly, unless there are weights
    weights: tuple[float, ...] = ()  # probabilities of the available records, of which one is drawn

    def most_held(self, h: int) -> float:
        """Return the largest probability that every reference is among h records."""
        if self.weights:
            return min(1.0, math.fsum(sorted(self.weights, reverse=True)[:h]))
        return comb(min(h, self.available), self.drawn) / comb(self.available, self.drawn)

    def fewest_missing(self, h: int) -> float:
        """Return the smallest expected number of references that are not among h records."""
        if self.weights:
            return 1 - self.most_held(h)
        return self.drawn * (1 - min(h, self.available) / self.available)


@dataclass(frozen=True, slots=True)
class OnlineBest:
    """A bound that no policy beats on average without knowing the references in advance, as Belady does.

    If a step draws `drawn` of `available` records uniformly, whatever came before, at most C(h, drawn) of the
    C(available, drawn) sets are among h held records. With recovery the draw is the same, so the bound is too, and
    what is not held must be fetched. docs/design/workload-ceilings.md has the proofs.
    """

    miss_rate: float  # steps with a missing reference / steps with references
    retrievals: float  # missing references in a task; with recovery each is fetched


def best_online(draws: Sequence[Draw | None], h: int) -> OnlineBest | None:
    """Return the bound for a memory of h records; None if no step refers to anything."""
    asking = [draw for draw in draws if draw is not None]
    if not asking:
        return None
    missed = math.fsum(1 - draw.most_held(h) for draw in asking) / len(asking)
    return OnlineBest(missed, math.fsum(draw.fewest_missing(h) for draw in asking))


def find_workload(name: str) -> Workload | TextWorkload:
    """Return the workload with this name or at this `module:Name`."""
    if ":" not in name and not workloads.is_at_hand(name) and name in conversations:
        return conversations.get(name)()
    kind = workloads.get(name)
    if not (isinstance(kind, type) and issubclass(kind, (Workload, TextWorkload))):
        raise UsageError(f"{name} is not a workload; subclass eirkit.lacuna.tasks.workload.Workload")
    return kind()


def units_of(names: Iterable[str]) -> Units:
    """Return what tasks and steps of some workloads are called: their own words if all have the same.

    Code beside a run is not loaded for its words.
    """
    found = {Units() if ":" in name else find_workload(name).units for name in names}
    return found.pop() if len(found) == 1 else Units()
