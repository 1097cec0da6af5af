"""Assigns a cause to each wrong step, scores a run, and follows how errors spread from step to step.

Causes are tested in this order: no answer → not answered, malformed or truncated, unless the agent declined because an
input was lost; an input was lost, or returned wrong and used → state supply; an input was never answered, or the
operator on its own earlier, wrong answers gives what it submitted → cascade; it is not known whether an input was
at hand → undetermined; else → computation. Every wrong step has one cause and a more specific `kind`. Any cause but
`cascade` is an origin, so an error is traced back through cascades to its origins, and forward through the cascades
that refer to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from msgspec import Struct

from eirkit.lacuna.tasks.standing import standing_at
from eirkit.lacuna.tasks.task import Payload, Step, TaskInstance, read_record
from eirkit.lacuna.tasks.workload import Graph, Workload
from eirkit.records.events import ActionTaken, Cause, Decision, Kind
from eirkit.records.runs import CAUSES, RunScore

_RECOVERY = ("READ ", "RECOMPUTE ")

# Faults of an answer that is not there; an answer with any other fault is there and cannot be read.
_SILENT = ("unanswered", "declined", "empty", "refused", "filtered")
_NONE: frozenset[int] = frozenset()
CASCADE: Cause = "cascade"


class Verdict(Struct, frozen=True, gc=False):
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
    informed: bool = False  # the step has references, and all of them were at hand and right
    unsure: bool = False  # it is not known whether a reference was in context
    blind: bool = False  # answered although an input was lost
    unexplained: bool = False  # blind and correct, and what was visible does not give the answer


def judge(
    task: TaskInstance, workload: Workload, decisions: Iterable[Decision], actions: Iterable[ActionTaken] = ()
) -> tuple[Verdict, ...]:
    """Return a verdict for every step of the task, reached or not.

    Args:
        actions: of an agent-managed run; recomputed values replace the submitted ones, from which they may differ.
    """
    by_step = {decision.t: decision for decision in decisions}
    own = {t: decision.values for t, decision in by_step.items() if decision.values is not None}
    fetched = _fetched(actions)
    judging = _Judge(task, workload, own)
    replaced: dict[int, Payload] = {}  # values recomputed so far
    verdicts = []
    if workload.changes:
        truth = {step.t: step.answer for step in task.steps}
        for step, true_now, own_now in zip(task.steps, standing_at(task, truth), standing_at(task, own), strict=True):
            judging.true, judging.own = true_now.values, own_now.values
            judging.wrong = {r for r in step.refs if true_now.values[r] != own_now.values.get(r)}
            verdicts.append(judging.verdict(step, by_step.get(step.t), replaced))
        return tuple(verdicts)
    for step in task.steps:
        replaced.update(fetched.get(step.t, ()))
        verdicts.append(judging.verdict(step, by_step.get(step.t), replaced))
    return tuple(verdicts)


def score(verdicts: Sequence[Verdict], decisions: Sequence[Decision], *, max_turn: bool = False) -> RunScore:
    """Return the numbers of one run from its verdicts."""
    counted = [verdict for verdict in verdicts if verdict.scored]
    consuming = [verdict for verdict in counted if verdict.consumes]
    informed = [verdict for verdict in counted if verdict.informed]
    wrong = [verdict for verdict in counted if verdict.cause is not None]
    causes = Counter([verdict.cause for verdict in wrong])
    return RunScore(
        steps=len(counted),
        correct=sum([verdict.correct for verdict in counted]),
        consuming=len(consuming),
        consuming_correct=sum([verdict.correct for verdict in consuming]),
        answered=sum([verdict.answered for verdict in counted]),
        self_consistent=sum([verdict.self_consistent for verdict in counted]),
        missed=sum([verdict.missed for verdict in verdicts]),
        consuming_all=sum([verdict.consumes for verdict in verdicts]),
        missed_references=sum([len(decision.missing) for decision in decisions if decision.missing]),
        final_correct=bool(verdicts) and verdicts[-1].correct,
        first_miss=next((verdict.t for verdict in verdicts if verdict.missed), None),
        first_error=next((verdict.t for verdict in verdicts if not verdict.correct), None),
        errors={cause: causes[cause] for cause in CAUSES},
        kinds=dict(sorted(Counter([verdict.kind for verdict in wrong if verdict.kind is not None]).items())),
        max_turn=max_turn,
        reads=sum([decision.reads for decision in decisions]),
        recomputations=sum([decision.recomputations for decision in decisions]),
        informed=len(informed),
        informed_correct=sum([verdict.correct for verdict in informed]),
        unsure=sum([verdict.unsure for verdict in verdicts]),
        blind=sum([verdict.blind for verdict in counted]),
        unexplained=sum([verdict.unexplained for verdict in counted]),
    )


class _Judge:
    """Determines the causes for one run."""

    def __init__(self, task: TaskInstance, workload: Workload, own: Mapping[int, Payload]) -> None:
        self.task, self.workload = task, workload
        self.submitted = self.own = own
        self.true: Mapping[int, Payload] = {step.t: step.answer for step in task.steps}
        self.wrong = {t for t, answer in self.true.items() if own.get(t) != answer}

    def verdict(self, step: Step, decision: Decision | None, replaced: Mapping[int, Payload]) -> Verdict:
        submitted = self.submitted.get(step.t)
        correct = submitted == step.answer
        sound = self.wrong.isdisjoint(step.refs)  # what it refers to is right
        own = step.answer if sound else self._operate(step, self.own)  # the operator on the agent's own answers
        follows = submitted is not None and submitted == own
        if decision is None:
            return Verdict(
                step.t, step.scored, bool(step.refs), False, False, False, False, "not_answered", "unreached"
            )
        consumes = bool(step.refs)
        known = not (decision.missing or decision.uncertain)
        informed = consumes and sound and (known or self._is_at_hand(decision, replaced))
        if correct and known:  # most steps of most runs
            return Verdict(step.t, step.scored, consumes, False, True, True, follows, None, None, informed)
        cause, kind = (None, None) if correct else self._why(step, decision, replaced, follows)
        answered, missed = submitted is not None, bool(decision.missing)
        unsure = bool(decision.uncertain) and not missed
        blind = answered and bool(decision.unavailable) and bool(self._lost(decision))
        unexplained = blind and correct and not self._explains(step, decision)
        return Verdict(
            step.t,
            step.scored,
            consumes,
            missed,
            answered,
            correct,
            follows,
            cause,
            kind,
            informed=informed,
            unsure=unsure,
            blind=blind,
            unexplained=unexplained,
        )

    def _lost(self, decision: Decision) -> Sequence[int]:
        """Return the inputs that were unavailable and not restored."""
        if not decision.restored:
            return decision.unavailable
        restored = self._restored(decision)
        return [r for r in decision.unavailable if r not in restored]

    def _is_at_hand(self, decision: Decision, replaced: Mapping[int, Payload]) -> bool:
        """True if everything that was not in context was fetched, found or restored, and recomputed rightly."""
        if decision.uncertain or not {*decision.missing} <= {*decision.fetched, *self._restored(decision)}:
            return False
        return all(replaced.get(r, self.true[r]) == self.true[r] for r in decision.missing)

    def _restored(self, decision: Decision) -> Set[int]:
        if not decision.restored:
            return _NONE
        return {r for r, values in decision.restored if values in (self.true[r], self.own.get(r))}

    def _explains(self, step: Step, decision: Decision) -> bool:
        """True if the operator gives the answer without the lost inputs, or with what was stated or seen for them."""
        lost = set(self._lost(decision))
        visible = {r: self.own[r] for r in (*decision.retained, *decision.fetched) if r in self.own}
        visible |= {r: values for r, values in decision.restored if r not in lost}
        stated = {**visible, **dict(decision.stated)}  # two wrong values of a memory can have the right sum
        if all(r in stated for r in step.refs) and self._operate(step, stated) == step.answer:
            return True
        given = [visible[r] for r in step.refs if r in visible and r not in lost]
        gone = len(step.refs) - len(given)
        stand_ins = [
            (),
            *([value] * gone for value in dict.fromkeys(visible.values())),
            *([v] * gone for _, v in decision.restored),
        ]
        return any(
            self.workload.operate(self.task.spec, step.input, [*given, *one]) == step.answer for one in stand_ins
        )

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
        self, step: Step, decision: Decision, replaced: Mapping[int, Payload], follows: bool
    ) -> tuple[Cause, Kind]:
        lost = self._lost(decision)
        if decision.submitted is None:
            return _silent(decision.fault, lost)
        if lost:
            return "state_supply", "missing"
        restored = self._restored(decision)
        given = {**replaced, **{r: values for r, values in decision.restored if r in restored}}
        seen = {**self.own, **given} if given else self.own
        stated = {r: values for r, values in decision.stated if r not in restored}
        if stated and decision.submitted == self._operate(step, {**seen, **stated}):
            return "state_supply", "misinformed"
        if any(r not in seen for r in step.refs):
            return "cascade", "never_submitted"
        inputs_correct = [seen.get(r) for r in step.refs] == [self.true[r] for r in step.refs]
        if not inputs_correct and (follows or decision.submitted == self._operate(step, seen)):
            return "cascade", "propagated"
        if not restored >= set(decision.uncertain):
            return "undetermined", "uncertain"
        if not set(decision.missing) <= {*decision.fetched, *restored}:
            return "computation", "not_fetched"
        return "computation", "correct_inputs" if inputs_correct else "on_corrupted"


def _silent(fault: str | None, lost: Sequence[int]) -> tuple[Cause, Kind]:
    """Return why a step has no answer that could be read."""
    if fault == "truncated":
        return "truncated", "truncated_reply"
    if fault == "declined" and lost:
        return "state_supply", "declined"
    return ("not_answered", "unanswered") if fault in _SILENT else ("malformed", "protocol")


def _fetched(actions: Iterable[ActionTaken]) -> dict[int, list[tuple[int, Payload]]]:
    """Return the fetched values by step, in order; empty if nothing was recomputed."""
    done = [action for action in actions if action.outcome == "done" and action.action.startswith(_RECOVERY)]
    if not any(action.action.startswith("RECOMPUTE ") for action in done):
        return {}  # a read returns what was submitted
    found: dict[int, list[tuple[int, Payload]]] = {}
    for action in done:
        found.setdefault(action.t, []).append(read_record(action.detail))
    return found


@dataclass(frozen=True, slots=True)
class Spread:
    """The origins and consequences of one wrong step; empty for a correct step."""

    origins: tuple[int, ...]  # wrong steps at which it began
    path: tuple[tuple[int, int], ...]  # edges from an earlier wrong step to the one that used it
    spoilt: tuple[int, ...]  # later steps that are wrong because of it
    besides: tuple[int, ...] = ()  # later steps that use it and are wrong, but do not follow from it


def spread_of(graph: Graph, verdicts: Mapping[int, Verdict], t: int) -> Spread:
    """Return the origins of a step's error, the path from them, and the later errors that it caused."""
    if not _is_wrong(verdicts, t):
        return Spread((), (), ())
    origins, edges, waiting, seen = set(), set(), [t], {t}
    while waiting:
        at = waiting.pop()
        before = _wrong_sources(graph, verdicts, at)
        if not before:
            origins.add(at)
        edges |= {(source, at) for source in before}
        waiting += [source for source in before if source not in seen]
        seen |= set(before)
    spoilt = _spoilt(graph, verdicts, t)
    users = (later for later in range(t + 1, len(graph) + 1) if t in graph[later - 1])
    besides = tuple(later for later in users if later not in spoilt and _is_wrong(verdicts, later))
    return Spread(tuple(sorted(origins)), tuple(sorted(edges)), spoilt, besides)


def _spoilt(graph: Graph, verdicts: Mapping[int, Verdict], t: int) -> tuple[int, ...]:
    found = {t}
    for later in range(t + 1, len(graph) + 1):
        if not found.isdisjoint(_wrong_sources(graph, verdicts, later)):
            found.add(later)
    return tuple(sorted(found - {t}))


def _wrong_sources(graph: Graph, verdicts: Mapping[int, Verdict], t: int) -> list[int]:
    """Return the wrong answers that caused a cascade error; empty for any other cause."""
    verdict = verdicts.get(t)
    if verdict is None or verdict.cause != CASCADE:
        return []
    return [source for source in graph[t - 1] if _is_wrong(verdicts, source)]


def _is_wrong(verdicts: Mapping[int, Verdict], t: int) -> bool:
    return t in verdicts and not verdicts[t].correct
