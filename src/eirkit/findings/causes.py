"""Assigns a cause to each wrong step and scores a run.

Causes are tested in this order: the run ended before the step → not answered; a required input was unavailable → state
supply; no answer was given → not answered; the operator on the agent's own earlier answers gives what it submitted, and
those were wrong → cascade; else → computation. Every wrong step has one cause and a more specific `kind`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from eirkit.agents.session import ActionTaken, Decision
from eirkit.facts import fact
from eirkit.tasks.task import Payload, Step, TaskInstance, read_record
from eirkit.tasks.workload import Workload

_RECOVERY = ("READ ", "RECOMPUTE ")

Cause = Literal["state_supply", "cascade", "not_answered", "computation"]
CAUSES: tuple[Cause, ...] = ("state_supply", "cascade", "not_answered", "computation")

Kind = Literal[
    "missing",
    "never_submitted",
    "propagated",
    "unanswered",
    "unreached",
    "correct_inputs",
    "on_corrupted",
    "not_fetched",
    "protocol",
]
UNANSWERED: tuple[Kind, ...] = ("unanswered", "unreached")  # the kinds of the cause `not_answered`


@fact
class Verdict:
    """The outcome of one step."""

    t: int
    scored: bool
    consumes: bool  # the step has references
    missed: bool  # a reference was not retained at the decision, before any recovery or injection
    answered: bool
    correct: bool
    self_consistent: bool  # the answer is the operator on the agent's own submitted values, missing ones included
    cause: Cause | None = None  # None where correct
    kind: Kind | None = None


@dataclass(frozen=True, slots=True)
class RunScore:
    """The score of one run. Fractions are of the scored steps: all n unless the task has a warm-up."""

    steps: int  # scored
    correct: int
    consuming: int  # scored steps with references
    consuming_correct: int
    answered: int
    self_consistent: int
    missed: int  # steps of the whole run with at least one missing reference
    consuming_all: int  # steps of the whole run with references
    missed_references: int
    final_correct: bool  # the answer of the last step: the outcome of the task
    first_miss: int | None  # over all steps, scored or not
    first_error: int | None
    errors: Mapping[Cause, int]  # wrong steps by cause; all causes
    kinds: Mapping[Kind, int] = field(default_factory=dict)
    max_turn: bool = False  # the run reached its limit of actions
    reads: int = 0
    recomputations: int = 0

    @property
    def accuracy(self) -> float:
        """Correct answers / scored steps; unanswered steps are wrong."""
        return self.correct / max(1, self.steps)

    @property
    def step_accuracy(self) -> float | None:
        """Correct answers / scored steps with references; None where there are none."""
        return self.consuming_correct / self.consuming if self.consuming else None

    @property
    def self_consistent_accuracy(self) -> float:
        """Answers that equal the operator on the agent's own earlier answers / scored steps."""
        return self.self_consistent / max(1, self.steps)

    @property
    def answered_fraction(self) -> float:
        return self.answered / max(1, self.steps)

    @property
    def miss_rate(self) -> float:
        """Steps with a missing reference / steps with references; 0 where no step has any."""
        return self.missed / max(1, self.consuming_all)

    @property
    def error_shares(self) -> dict[Cause, float]:
        """Wrong steps by cause / scored steps; with the accuracy they add up to 1."""
        return {cause: self.errors[cause] / max(1, self.steps) for cause in CAUSES}

    @property
    def aligned(self) -> bool | None:
        """First miss = first error; an error-free run with a miss is unaligned, one without a miss has no alignment."""
        return None if self.first_miss is None else self.first_miss == self.first_error


def read_score(record: Mapping[str, Any]) -> RunScore:
    """Return the score from a run's record, written by this or an earlier version."""
    return RunScore(**{**record, "errors": read_errors(record["errors"], record.get("kinds", {}))})


def read_errors(errors: Mapping[str, int], kinds: Mapping[str, int]) -> dict[Cause, int]:
    """Return wrong steps by cause; older records, without `not_answered`, counted those steps as `computation`."""
    found = {cause: errors[cause] for cause in CAUSES if cause != "not_answered" or cause in errors}
    if "not_answered" not in errors:
        open_steps = sum(kinds.get(kind, 0) for kind in UNANSWERED)
        found |= {"not_answered": open_steps, "computation": errors["computation"] - open_steps}
    return found


def read_cause(cause: str, kind: str) -> str:
    """Return the cause from a recorded verdict, written by this or an earlier version."""
    return "not_answered" if kind in UNANSWERED else cause


def judge(
    task: TaskInstance, workload: Workload, decisions: Iterable[Decision], actions: Iterable[ActionTaken] = ()
) -> tuple[Verdict, ...]:
    """Return a verdict for every step of the task, reached or not.

    Args:
        actions: of an agent-managed run; recomputed values replace the submitted ones, from which they may differ.
    """
    by_step = {decision.t: decision for decision in decisions}
    own = {t: decision.submitted for t, decision in by_step.items() if decision.submitted is not None}
    fetched = _fetched(actions)
    judging = _Judge(task, workload, own)
    replaced: dict[int, Payload] = {}  # values recomputed so far
    verdicts = []
    for step in task.steps:
        replaced.update(fetched.get(step.t, ()))
        verdicts.append(judging.verdict(step, by_step.get(step.t), replaced))
    return tuple(verdicts)


def score(verdicts: Sequence[Verdict], decisions: Sequence[Decision], *, max_turn: bool = False) -> RunScore:
    """Return the numbers of one run from its verdicts."""
    counted = [verdict for verdict in verdicts if verdict.scored]
    consuming = [verdict for verdict in counted if verdict.consumes]
    causes = Counter(verdict.cause for verdict in counted if verdict.cause is not None)
    return RunScore(
        steps=len(counted),
        correct=sum(verdict.correct for verdict in counted),
        consuming=len(consuming),
        consuming_correct=sum(verdict.correct for verdict in consuming),
        answered=sum(verdict.answered for verdict in counted),
        self_consistent=sum(verdict.self_consistent for verdict in counted),
        missed=sum(verdict.missed for verdict in verdicts),
        consuming_all=sum(verdict.consumes for verdict in verdicts),
        missed_references=sum(len(decision.missing) for decision in decisions),
        final_correct=bool(verdicts) and verdicts[-1].correct,
        first_miss=next((verdict.t for verdict in verdicts if verdict.missed), None),
        first_error=next((verdict.t for verdict in verdicts if not verdict.correct), None),
        errors={cause: causes[cause] for cause in CAUSES},
        kinds=Counter(verdict.kind for verdict in counted if verdict.kind is not None),
        max_turn=max_turn,
        reads=sum(decision.reads for decision in decisions),
        recomputations=sum(decision.recomputations for decision in decisions),
    )


class _Judge:
    """Determines the causes for one run."""

    def __init__(self, task: TaskInstance, workload: Workload, own: Mapping[int, Payload]) -> None:
        self.task, self.workload, self.own = task, workload, own
        self.true = {step.t: step.answer for step in task.steps}
        self.wrong = {t for t, answer in self.true.items() if own.get(t) != answer}

    def verdict(self, step: Step, decision: Decision | None, replaced: Mapping[int, Payload]) -> Verdict:
        submitted = self.own.get(step.t)
        correct = submitted == step.answer
        missed = decision is not None and bool(decision.missing)
        follows = submitted is not None and submitted == self._follow(step)
        cause, kind = (None, None) if correct else self._why(step, decision, replaced, follows)
        return Verdict(
            step.t, step.scored, bool(step.refs), missed, submitted is not None, correct, follows, cause, kind
        )

    def _follow(self, step: Step) -> Payload | None:
        """Return the operator on the agent's own answers."""
        return step.answer if self.wrong.isdisjoint(step.refs) else self._operate(step, self.own)

    def _operate(self, step: Step, values: Mapping[int, Payload]) -> Payload | None:
        """Return the operator on these values; None if one is missing."""
        operands = [values.get(r) for r in step.refs]
        if operands == [self.true[r] for r in step.refs]:
            return step.answer
        present = [operand for operand in operands if operand is not None]
        if len(present) < len(operands):
            return None
        return self.workload.operate(self.task.spec, step.input, present)

    def _why(
        self, step: Step, decision: Decision | None, replaced: Mapping[int, Payload], follows: bool
    ) -> tuple[Cause, Kind]:
        if decision is None:
            return "not_answered", "unreached"
        restored = {r for r, values in decision.restored if values in (self.true[r], self.own.get(r))}
        unavailable = [r for r in decision.unavailable if r not in restored]
        if unavailable:
            never = all(r not in self.own for r in unavailable)
            return "state_supply", "never_submitted" if never else "missing"
        if decision.submitted is None:
            if decision.fault == "unanswered":
                return "not_answered", "unanswered"
            return "computation", "protocol"
        given = {**replaced, **{r: values for r, values in decision.restored if r in restored}}
        seen = {**self.own, **given} if given else self.own
        inputs_correct = [seen.get(r) for r in step.refs] == [self.true[r] for r in step.refs]
        if not inputs_correct and (follows or decision.submitted == self._operate(step, seen)):
            return "cascade", "propagated"
        if not set(decision.missing) <= {*decision.fetched, *restored}:
            return "computation", "not_fetched"
        return "computation", "correct_inputs" if inputs_correct else "on_corrupted"


def _fetched(actions: Iterable[ActionTaken]) -> dict[int, list[tuple[int, Payload]]]:
    """Return the fetched values by step, in order; empty if nothing was recomputed."""
    done = [action for action in actions if action.outcome == "done" and action.action.startswith(_RECOVERY)]
    if not any(action.action.startswith("RECOMPUTE ") for action in done):
        return {}  # a read returns what was submitted
    found: dict[int, list[tuple[int, Payload]]] = {}
    for action in done:
        found.setdefault(action.t, []).append(read_record(action.detail))
    return found
