"""Pools the scores of one cell's runs: means over seeds of per-run rates, sums of causes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from eirkit.findings.causes import CAUSES, Cause, Kind, RunScore


@dataclass(frozen=True, slots=True)
class CellScore:
    """One model under one condition, pooled over its runs. ± is the population standard deviation."""

    scored: int  # runs
    accuracy: float | None  # None where no run was scored
    accuracy_sd: float | None
    step_accuracy: float | None  # over steps with references
    self_consistent_accuracy: float | None
    final_accuracy: float | None  # share of runs whose last answer is correct
    answered_fraction: float | None
    miss_rate: float | None
    missed_steps: float | None  # steps with a missing reference, per run
    first_error_at_first_miss: float | None  # over runs with a miss; error-free ones count as unaligned
    steps: int  # scored, over all runs
    errors: dict[Cause, int]  # wrong steps by cause, over all runs
    error_shares: dict[Cause, float | None]  # of scored steps; mean over runs
    kinds: dict[Kind, int]
    max_turn: int  # runs that reached their limit of actions
    reads: float | None  # per run
    recomputations: float | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def pool(scores: Sequence[RunScore]) -> CellScore:
    """Return the row of a cell from the scores of its finished runs."""
    accuracies = [run.accuracy for run in scores]
    kinds: Counter[Kind] = Counter()
    for run in scores:
        kinds.update(run.kinds)
    return CellScore(
        scored=len(scores),
        accuracy=mean(accuracies),
        accuracy_sd=deviation(accuracies),
        step_accuracy=mean(run.step_accuracy for run in scores),
        self_consistent_accuracy=mean(run.self_consistent_accuracy for run in scores),
        final_accuracy=mean(float(run.final_correct) for run in scores),
        answered_fraction=mean(run.answered_fraction for run in scores),
        miss_rate=mean(run.miss_rate for run in scores),
        missed_steps=mean(float(run.missed) for run in scores),
        first_error_at_first_miss=mean(None if run.aligned is None else float(run.aligned) for run in scores),
        steps=sum(run.steps for run in scores),
        errors={cause: sum(run.errors[cause] for run in scores) for cause in CAUSES},
        error_shares={cause: mean(run.errors[cause] / max(1, run.steps) for run in scores) for cause in CAUSES},
        kinds=dict(sorted(kinds.items())),
        max_turn=sum(run.max_turn for run in scores),
        reads=mean(float(run.reads) for run in scores),
        recomputations=mean(float(run.recomputations) for run in scores),
    )


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if there are none."""
    present = [value for value in values if value is not None]
    return math.fsum(present) / len(present) if present else None


def deviation(values: Sequence[float]) -> float | None:
    """Return the population standard deviation."""
    middle = mean(values)
    if middle is None:
        return None
    if min(values) == max(values):
        return 0.0  # a rounded mean would make the squares below nonzero
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / len(values))
