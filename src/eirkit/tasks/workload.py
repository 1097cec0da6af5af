"""The workload protocol: how inputs, references and answers of a task are made, and what later steps can need.

A workload subclasses `Workload` and defines `operate`; every other method has the default of an online compute task in
which each step combines its input with a few earlier answers. See docs/add-a-workload.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.boundary import guard_verbs
from eirkit.eir.demand import ClassCount, DemandCurve, select_cuts
from eirkit.errors import ContractError, UsageError
from eirkit.registry import Registry
from eirkit.tasks.graph import References, draw_references
from eirkit.tasks.task import ASKING, Kind, Payload, TaskSpec

Values = NDArray[np.int64]
Graph = tuple[tuple[int, ...], ...]  # references of steps 1 … n of one task

_VERBS = (
    *("operate", "operate_batch", "rule", "canonical", "check", "width", "alphabet"),
    *("kinds", "references", "stores", "last_use", "demand"),
)

workloads: Registry[type[Workload]] = Registry("workload", group="eirkit.workloads", package="eirkit.tasks.workloads")


class Workload(ABC):
    """Makes tasks of one kind. Instances are stateless. Errors raised by a subclass are reported as PluginError."""

    operator = ""  # its name in compact prompts; by default the workload's name
    lists = False  # True if inputs and answers are lists even when they hold one value
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
        asks = kind in ASKING
        rows = zip(fresh.tolist(), operands.tolist(), present.tolist(), strict=True)
        answers = [
            self.operate(
                spec, None if asks else tuple(w), [tuple(v) for v, there in zip(values, flags, strict=True) if there]
            )
            for w, values, flags in rows
        ]
        if wrong := [answer for answer in answers if len(answer) != fresh.shape[1]]:
            raise ContractError(f"{spec.workload} answered {wrong[0]}; return {fresh.shape[1]} values, as width() says")
        return np.array(answers, dtype=np.int64).reshape(fresh.shape)

    def rule(self, spec: TaskSpec) -> str:
        """Return the operator in words, as prompts state it."""
        return (type(self).__doc__ or "").strip().partition("\n")[0]

    def canonical(self, values: Payload) -> Payload:
        """Return the one form of an answer that is compared and retained."""
        return values

    def check(self, spec: TaskSpec) -> None:  # noqa: B027 - most workloads take every parameter
        """Raise SpecError if no task with these parameters exists."""

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
    counts = (ClassCount.exactly(classes(t)).power(spec.slots) if t in wanted else None for t in range(spec.n + 1))
    return DemandCurve(tuple(counts), method)
