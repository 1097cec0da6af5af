"""Pools the scores of one cell's runs: means over seeds of per-run rates, sums of causes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from eirkit.findings.causes import CAUSES, Cause, Kind, RunScore
from eirkit.measures import Measure, MeasureGroup

RUN_MEASURES = MeasureGroup(
    "results",
    "Results",
    (
        Measure(
            "accuracy",
            "accuracy",
            "correct answers, where steps without an answer are wrong",
            "share",
            "scored steps",
            better="more",
            colour="correct",
        ),
        Measure(
            "step_accuracy",
            "step accuracy",
            "correct answers at steps that need earlier answers",
            "share",
            "scored steps with references",
            better="more",
        ),
        Measure(
            "self_consistent_accuracy",
            "self-consistent",
            "answers that equal the operator on the agent's own earlier answers, right or wrong",
            "share",
            "scored steps",
            better="more",
        ),
        Measure("final_accuracy", "final answer correct", "runs whose last answer is correct", "share", "runs", "more"),
        Measure(
            "answered_fraction", "answered", "steps with an answer, right or wrong", "share", "scored steps", "more"
        ),
        Measure(
            "miss_rate",
            "miss rate",
            "steps that need an earlier answer which is no longer in context, whether a memory returns it or not",
            "share",
            "steps with references",
        ),
        Measure("missed_steps", "steps with a miss", "steps with at least one required answer out of context"),
        Measure(
            "first_error_at_first_miss",
            "first error at first miss",
            "the first error of a run is at its first miss",
            "share",
            "runs with a miss",
        ),
        Measure(
            "no_cascade_accuracy",
            "accuracy without carry-over",
            "what the accuracy would be if exactly the steps with a miss were wrong",
            "share",
            "scored steps",
        ),
        Measure("first_miss", "first miss", "the first step with a required answer out of context", "step"),
        Measure("first_error", "first error", "the first wrong step", "step"),
        Measure("reads", "reads", "earlier answers read back with READ"),
        Measure("recomputations", "recomputations", "earlier answers computed again with RECOMPUTE"),
        Measure("max_turn", "at the action limit", "runs that ended at their limit of actions", pooled="sum"),
        Measure("scored", "runs scored", "runs that came to an end, of those attempted", pooled="sum"),
        Measure("pressure", "m/h", "the dependency window over the items kept in context", pooled="none"),
        Measure("h", "h", "items kept in context", pooled="none"),
    ),
)


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
