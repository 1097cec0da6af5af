"""Every workload of the registry, and users' own files, conform to `check_workload`; what is wrong is found out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from eirkit.eir.demand import DemandCurve
from eirkit.errors import SpecError, UsageError
from eirkit.lacuna.tasks.maxima import RunningMaximum
from eirkit.lacuna.tasks.task import Kind, Payload, TaskSpec
from eirkit.lacuna.tasks.workload import Graph, Workload, curve_of, workloads
from eirkit.lacuna.tasks.workloads import StepwiseSum
from eirkit.testing import check_workload

EXAMPLES = Path(__file__).parents[3] / "examples"
USERS_OWN = [
    f"{EXAMPLES / 'alternating_sum.py'}:AlternatingSum",
    f"{EXAMPLES / 'eirkit-example' / 'src' / 'eirkit_example' / 'workload.py'}:StepwiseProduct",
]


@pytest.mark.parametrize("name", workloads.names())
def test_a_workload_conforms_and_its_formula_is_certified(name):
    result = check_workload(name)
    assert len(result.held) == 10
    (certified,) = [note for note in result.notes if "EIR" in note]
    assert certified.startswith("EIR equals the count by brute force at ")
    assert "values = 2, 3; n = 2, 3, 4, 5; m = 1, 2, 3; fan_in = 1, 2" in certified, "the sizes are named"


@pytest.mark.parametrize("name", USERS_OWN, ids=["alternating-sum", "stepwise-product"])
def test_a_workload_without_a_formula_says_so(name):
    result = check_workload(name)
    assert len(result.held) == 10
    assert any(note.startswith("no formula stated") for note in result.notes)


class WrongDemand(StepwiseSum):
    """States a window that is one record too small."""

    def demand(self, spec: TaskSpec, graph: Graph, cuts: Sequence[int] | None = None) -> DemandCurve:
        return curve_of(spec, cuts, lambda t: spec.q ** min(t, spec.reach - 1) if t < spec.n else 1, "a guess")


class Forgetful(StepwiseSum):
    """Its two operators differ."""

    def operate_batch(self, spec, kind: Kind, fresh, operands, present):
        return fresh


class Moody(StepwiseSum):
    """Draws other references whenever it is asked."""

    calls = 0

    def references(self, spec, seeds):
        Moody.calls += 1
        return super().references(spec, np.asarray(seeds) + np.uint64(Moody.calls % 2))


class Expiring(StepwiseSum):
    """Says that answers are asked for once only."""

    def last_use(self, spec: TaskSpec, t: int) -> int:
        return t + 1 if t < spec.n else 0


class Unbounded(StepwiseSum):
    """Answers outside the alphabet."""

    def operate(self, spec: TaskSpec, fresh: Payload | None, operands: Sequence[Payload]) -> Payload:
        return tuple(sum(column) for column in zip(fresh or (), *operands, strict=True))

    operate_batch = Workload.operate_batch


class ByValue(RunningMaximum):
    """Chooses its graph by the size of its values."""

    def references(self, spec, seeds):
        chain = super().references(spec, seeds)
        return chain if spec.digits < 5 else chain * 0


class Broken(StepwiseSum):
    """Breaks."""

    def rule(self, spec: TaskSpec) -> str:
        raise ZeroDivisionError("no words")


class Picky(StepwiseSum):
    """Takes nothing."""

    def check(self, spec: TaskSpec) -> None:
        raise SpecError("not this one; try another")


@pytest.mark.parametrize(
    ("kind", "requirement", "reason"),
    [
        (WrongDemand, "The EIR that it states is the one that counting", r"after step 1 \(values = 2, n = 2, m = 1"),
        (Forgetful, "operate_batch gives what operate gives", "they differ at"),
        (Moody, "", "Moody gives different references for the same seed"),
        (Expiring, "no later than last_use says", "whose last_use"),
        (Unbounded, "", "answered outside 0"),
        (ByValue, "does not depend on the values", "its references depend on the values"),
        (Broken, "It says in words", r"ZeroDivisionError: no words \(raised by rule\)"),
    ],
)
def test_what_is_wrong_is_named(kind, requirement, reason):
    with pytest.raises(AssertionError, match=reason) as caught:
        check_workload(kind)
    assert requirement in str(caught.value)


def test_what_is_no_workload_is_told_in_one_line():
    with pytest.raises(UsageError, match="subclass eirkit"):
        check_workload(dict)
    with pytest.raises(UsageError, match="Picky accepts 0 of"):
        check_workload(Picky)
