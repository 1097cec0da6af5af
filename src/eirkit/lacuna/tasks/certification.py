"""Certifies the EIR that a workload states by counting the classes of small instances by brute force.

The count is independent of the formula. References that can occur are collected from many seeds; histories have the
references of one task and all inputs; futures have all references that can occur and all inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from eirkit.eir.bisimulation import count_process
from eirkit.eir.demand import ClassCount, DemandCurve, select_cuts
from eirkit.errors import SpecError, TooLargeError, UsageError
from eirkit.lacuna.tasks.generation import references_of
from eirkit.lacuna.tasks.task import CHANGING, WITHOUT_INPUT, Payload, TaskSpec
from eirkit.lacuna.tasks.workload import Graph, References, Workload, as_tuples

SEEDS = 2_000  # enough to see every reference of so small a task; the rarest has probability above 1/100
GRAPHS = 2  # tasks of each size whose references form the histories
VALUES = (2, 3)
STEPS = (2, 3, 4, 5)
WINDOWS = (1, 2, 3)
FAN_INS = (1, 2)
DIALS_TRIED: tuple[dict[str, Any], ...] = (  # of records that change
    {"overwrites": 50},
    {"deletes": 50},
    {"overwrites": 40, "deletes": 30},
    {"overwrites": 34, "expiry": 2},
    {"deletes": 34, "expiry": 3},
    {"expiry": 1},
)
MOST_REFERENCES = 100  # of one step; 2,000 seeds then miss none that is as likely as the others
MOST_STATES = 20_000  # of one cut; a few seconds

# Steps done, the values of records that can still be asked for, and the last steps at which these hold.
State = tuple[int, tuple[Payload | None, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class SmallSpec(TaskSpec):
    """A task over an alphabet of fewer values than one digit has."""

    values: int = 2

    @property
    def q(self) -> int:
        return self.values


@dataclass(frozen=True, slots=True)
class Certificate:
    """On which sizes a stated EIR was compared with a count, and where it differs."""

    sizes: tuple[SmallSpec, ...]
    cuts: int
    bounded: int  # cuts for which it states bounds instead of an exact number
    differences: tuple[str, ...]

    def __str__(self) -> str:
        if not self.sizes:
            return "no formula stated: demand() refuses every size, so there is nothing to certify"

        def spelled(name: str) -> str:
            return f"{name} = {', '.join(map(str, sorted({getattr(size, name) for size in self.sizes})))}"

        tried = "; ".join(map(spelled, ("values", "n", "m", "fan_in", "slots", "k", "warm_up")))
        bounds = f", within the stated bounds at {self.bounded} of them" if self.bounded else ""
        return f"EIR equals the count by brute force at {self.cuts} cuts of {len(self.sizes)} sizes{bounds} ({tried})"


def certify(workload: Workload) -> Certificate:
    """Compare the EIR that a workload states with a count, at every cut of all small sizes for which it states one."""
    sizes, differences, cuts, bounded = list[SmallSpec](), list[str](), 0, 0
    for spec in _sizes(workload):
        references = references_of(workload, spec, np.arange(SEEDS, dtype=np.uint64))
        graphs = _distinct(references)
        support = [sorted({graph[t] for graph in graphs}) for t in range(spec.n)]
        for graph in graphs[:GRAPHS]:
            try:
                curve = workload.demand(spec, graph)
            except UsageError:
                continue  # nothing is stated for this size
            if spec not in sizes:
                sizes.append(spec)
            for t, stated in enumerate(curve.counts):
                counted = count_process(_Cut(workload, spec, graph, support, t)).classes
                cuts += 1
                bounded += stated is not None and not stated.is_exact
                if stated is None or not stated.lower <= counted <= stated.upper:
                    differences.append(_difference(spec, t, counted, stated))
    return Certificate(tuple(sizes), cuts, bounded, tuple(differences))


def count_demand(workload: Workload, spec: TaskSpec, graph: Graph, cuts: Sequence[int] | None = None) -> DemandCurve:
    """Return EIR after each step of a small task, counted: no formula is used.

    Raises:
        TooLargeError: there are too many states or references to go through.
    """
    references = references_of(workload, spec, np.arange(SEEDS, dtype=np.uint64))
    graphs = {*_distinct(references), graph}
    support = [sorted({found[t] for found in graphs}) for t in range(spec.n)]
    if (most := max(map(len, support))) > MOST_REFERENCES:
        raise TooLargeError(f"a step has more than {most} different references; use a smaller --m, --fan-in or --n")
    wanted = set(select_cuts(spec.n, cuts))
    held = max(map(len, _Cut(workload, spec, graph, support, 0).needed))
    if workload.alphabet(spec) ** held > MOST_STATES:
        raise TooLargeError(
            f"no EIR formula is known for {spec.workload!r}, and {held} records of {workload.alphabet(spec):,} values "
            "are too many to count; use a smaller --m, --n or --digits"
        )
    counts = tuple(
        ClassCount.exactly(count_process(_Cut(workload, spec, graph, support, t)).classes) if t in wanted else None
        for t in range(spec.n + 1)
    )
    return DemandCurve(counts, f"counted: every input, and every reference that {SEEDS:,} seeds drew")


def _distinct(references: References) -> list[Graph]:
    """Return each task's references once, in the order in which they were first drawn."""
    _, first = np.unique(references.reshape(len(references), -1), axis=0, return_index=True)
    return list(dict.fromkeys(as_tuples(references[number]) for number in sorted(first)))


def _sizes(workload: Workload) -> Iterator[SmallSpec]:
    name = type(workload).__name__
    for values, n, m, fan_in in product(VALUES, STEPS, WINDOWS, FAN_INS):
        plain = SmallSpec(name, n=n, m=m, fan_in=fan_in, values=values, overwrites=0, deletes=0, expiry=0)
        wide = [replace(plain, slots=2)] if (values, n) == (2, 3) else []
        late = workload.leaves_out_unscored and values == 2
        unscored = [replace(plain, warm_up=steps) for steps in range(1, n + 1)] if late else []
        changing = [replace(plain, **dials) for dials in DIALS_TRIED] if workload.changes and fan_in == 1 else []
        for spec in (plain, *wide, *unscored, *changing):
            try:
                workload.check(spec)
            except SpecError:
                continue
            yield spec


def _difference(spec: SmallSpec, t: int, counted: int, stated: Any) -> str:
    said = "nothing" if stated is None else str(stated.lower if stated.is_exact else (stated.lower, stated.upper))
    names = ("values", "n", "m", "fan_in", "slots", "warm_up")
    size = ", ".join(f"{name} = {getattr(spec, name)}" for name in names)
    return f"after step {t} ({size}) there are {counted} classes, and demand() says {said}"


@dataclass(frozen=True)
class _Cut:
    """The process after step t of a small task."""

    workload: Workload
    spec: TaskSpec
    graph: Graph
    support: list[list[tuple[int, ...]]]  # what each step can refer to
    t: int

    @property
    def horizon(self) -> int:
        return self.spec.n - self.t

    @property
    def states(self) -> list[State]:
        """The states after every history: the task's references so far with all inputs."""
        states: set[State] = {(0, (), ())}
        for t in range(self.t):
            states = {self._advance(state, self.graph[t], fresh)[1] for state in states for fresh in self._inputs(t)}
        return sorted(states, key=repr)

    def moves(self, state: State) -> Iterator[tuple[tuple[int, ...], Payload | None]]:
        return product(self.support[state[0]], self._inputs(state[0]))

    def step(self, state: State, move: tuple[tuple[int, ...], Payload | None]) -> tuple[Payload | None, State]:
        answer, following = self._advance(state, *move)
        return answer if state[0] >= self.spec.warm_up else None, following

    def _advance(self, state: State, refs: tuple[int, ...], fresh: Payload | None) -> tuple[Payload, State]:
        t, held, ends = state
        if self.workload.changes:
            return self._change(state, refs, fresh)
        operands = [value for r in refs if (value := held[r - 1]) is not None]
        answer = self.workload.canonical(tuple(self.workload.operate(self.spec, fresh, operands)))
        needed = self.needed[t + 1]
        return answer, (t + 1, tuple(v if r in needed else None for r, v in enumerate((*held, answer), 1)), ends)

    def _change(self, state: State, refs: tuple[int, ...], fresh: Payload | None) -> tuple[Payload, State]:
        """Return what `_advance` does where steps change records, of which each holds for a time."""
        t, before, until = state
        kind, nothing = self._kinds[t], (0,) * self._width
        held = [nothing if end <= t else value for value, end in zip(before, until, strict=True)]
        ends = [self.spec.n if end <= t else end for end in until]  # what is over stays so
        operands = [] if kind in CHANGING else [value for r in refs if (value := held[r - 1]) is not None]
        answer = self.workload.canonical(tuple(self.workload.operate(self.spec, fresh, operands)))
        end = t + 1 + self.spec.expiry if self.spec.expiry and kind != "delete" else self.spec.n
        if kind in CHANGING:
            held[refs[0] - 1], ends[refs[0] - 1] = answer, end
        else:
            held, ends = [*held, answer], [*ends, end]
        needed = self.needed[t + 1]
        kept = tuple(v if r in needed else None for r, v in enumerate(held, 1))
        return answer, (t + 1, kept, tuple(ends))

    def _inputs(self, t: int) -> list[Payload | None]:
        return [None] if self._kinds[t] in WITHOUT_INPUT else list(product(range(self.spec.q), repeat=self._width))

    @cached_property
    def needed(self) -> list[frozenset[int]]:
        """The records that a step after each cut can refer to, in the past of this task or in any future."""
        asked = [{r for refs in (*self.support[t], self.graph[t]) for r in refs} for t in range(self.spec.n)]
        return [frozenset().union(*asked[t:]) if t < self.spec.n else frozenset() for t in range(self.spec.n + 1)]

    @cached_property
    def _kinds(self) -> tuple[str, ...]:
        return self.workload.kinds(self.spec)

    @cached_property
    def _width(self) -> int:
        return self.workload.width(self.spec)
