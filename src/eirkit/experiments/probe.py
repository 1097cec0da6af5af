"""Recovery probes: a model reads its way down to what it needs to rebuild one lost answer; the harness computes.

A task and a moment at which an answer is missing come in; how many reads it took, against the fewest possible, goes
out. The fewest is the recovery cone cut at the resident records: the target counts, residents do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from eirkit.agents.managed import ACTION_LIMIT
from eirkit.agents.model import Message, ModelOptions, Reply, Request
from eirkit.agents.protocol import Action, Done, Fault, Read, as_text, read_reply
from eirkit.agents.session import ActionTaken, Session
from eirkit.agents.telemetry import Trace
from eirkit.errors import SpecError
from eirkit.findings.pooling import mean
from eirkit.runs.trial import Bench, Result, Trial, Workbench, losses
from eirkit.tasks.cones import cone_of
from eirkit.tasks.generation import generate_many, graph_of, prepare
from eirkit.tasks.policy import find_policy
from eirkit.tasks.retention import Retention
from eirkit.tasks.simulation.plain import outlook_of
from eirkit.tasks.task import Payload, TaskInstance, TaskSpec, show_label, show_record
from eirkit.tasks.view import PublicTask, publish

FAN_INS = (2, 4)  # a chain, fan-in 1, has no shared ancestor that could be read twice


@dataclass(frozen=True, slots=True)
class Moment:
    """A lost answer, and what is still at hand when it is asked for."""

    at: int  # the step that refers to it
    target: int
    resident: tuple[int, ...]


def find_moment(task: TaskInstance, policy: str, h: int, from_step: int = 1) -> Moment | None:
    """Return the first miss at or after a step under a policy with h records; the oldest one if several are missing."""
    outlook = outlook_of(task)
    retention = Retention(find_policy(policy).for_task(outlook), h)
    for step, references in enumerate(outlook.future, 1):
        missing = retention.missing(references)
        if missing and step >= from_step:
            return Moment(step, missing[0], tuple(sorted(record.id for record in retention.records)))
        retention.touch(references)
        if outlook.structure.takes_slot[step - 1]:
            retention.admit(step, step)
    return None


class ProbeSession(Session):
    """READ t gives a step's input and references; what can be computed is computed at once; DONE ends."""

    def __init__(
        self, task: PublicTask, target: int, resident: Mapping[int, Payload], limit: int = ACTION_LIMIT
    ) -> None:
        super().__init__(task)
        self.target, self.resident, self.limit = target, resident, limit
        self.known: dict[int, Payload] = dict(resident)
        self._read: dict[int, None] = {}  # in order
        self._reads = self._actions = 0
        self._outcome = ""

    @property
    def position(self) -> int:
        return self.target

    def request(self) -> Request | None:
        if self.ending is not None:
            return None
        return Request((Message("system", self._rules()), Message("user", self._state())))

    def receive(self, reply: Reply) -> None:
        for action in read_reply(reply):
            if self.ending is None:
                self._take(action)

    def _take(self, action: Action | Fault) -> None:
        self._actions += 1
        match action:
            case Read(t) if 1 <= t <= len(self.task.steps):
                self._outcome = self._look_at(t)
                self._log(as_text(action), "done")
            case Done():
                self._outcome, self.ending = "the probe is over", "done"
                self._log(as_text(action), "done")
            case Fault(kind, detail):
                self._outcome = f"refused: {detail}"
                self._log(kind, "fault")
            case _:
                self._outcome = "refused: only READ t with an existing step, and DONE"
                self._log(as_text(action), "refused")
        if self._actions >= self.limit and self.ending is None:
            self.ending = "action-limit"

    def _log(self, action: str, outcome: str) -> None:
        taken = ActionTaken(self._actions, self.target, action, outcome, self._outcome)  # type: ignore[arg-type]
        self._events.append(taken)

    def _look_at(self, t: int) -> str:
        self._reads += 1
        self._read[t] = None
        # One pass is enough: references are earlier than the step, and we go upwards.
        for node in sorted(self._read):
            step = self.task.steps[node - 1]
            if node not in self.known and all(r in self.known for r in step.refs):
                operands = [self.known[r] for r in step.refs]
                self.known[node] = self.task.workload.operate(self.task.spec, step.input, operands)
        status = "resident; it was known already" if t in self.resident else "read"
        return f"{show_label(self.task.spec, t)} is {status}"

    def _rules(self) -> str:
        spec = self.task.spec
        return "\n".join(
            (
                f"You find the way back to one lost answer of a task of {spec.n} steps.",
                f"WORKLOAD {spec.workload} n={spec.n} q={spec.q} width={self.task.width} k={spec.k}",
                f"RULE {self.task.workload.rule(spec)}",
                "PROBE Computing is done for you: an answer becomes known once its step has been read and all answers "
                "that the step refers to are known. Resident answers are known from the start.",
                "Make the target known with as few reads as you can. Reply with commands, each on a line of its own:",
                "READ t: get the input and the references of step t",
                "DONE: end, once the target is known",
            )
        )

    def _state(self) -> str:
        spec = self.task.spec
        target = show_label(spec, self.target)
        known = self.known.get(self.target)
        lines = [
            f"TARGET {target} unknown" if known is None else f"TARGET {show_record(spec, self.target, known)}",
            " ".join(["RESIDENT", *(show_label(spec, r) for r in sorted(self.resident))]),
            f"READS {self._reads}",
            *(self._node(t) for t in self._read),
        ]
        return "\n".join([*lines, *([f"RESULT {self._outcome}"] if self._outcome else [])])

    def _node(self, t: int) -> str:
        spec, step = self.task.spec, self.task.steps[t - 1]
        fresh = "none" if step.input is None else " ".join(f"{value:0{spec.digits}d}" for value in step.input)
        refs = " ".join(show_label(spec, r) for r in step.refs) or "none"
        return f"NODE {show_label(spec, t)} input {fresh} refs {refs} {'known' if t in self.known else 'unknown'}"


@dataclass(frozen=True, slots=True)
class ProbeScore:
    """One probe."""

    seed: int
    fan_in: int
    target: int
    resident: tuple[int, ...]
    minimum: int  # reads that the cone takes
    order: tuple[int, ...]  # what was read, in order
    redundant: int  # reads of a step that had been read
    off_cone: int  # first reads of steps that the target does not need, residents included
    success: bool  # the target became known
    early_stop: bool  # DONE came before

    @property
    def overhead(self) -> float:
        """Reads / minimum; 1 is optimal."""
        return len(self.order) / self.minimum


def score_probe(task: TaskInstance, moment: Moment, trace: Trace) -> ProbeScore:
    """Return what a finished probe amounts to, from its actions and the graph alone."""
    order = tuple(int(a.action.removeprefix("READ ")) for a in trace.actions if _is_read(a))
    graph, read, resident = graph_of(task), set(order), set(moment.resident)
    cone = set(cone_of(graph, moment.target, resident).nodes)
    success = cone <= read
    return ProbeScore(
        seed=task.spec.seed,
        fan_in=task.spec.fan_in,
        target=moment.target,
        resident=moment.resident,
        minimum=len(cone),
        order=order,
        redundant=len(order) - len(read),
        off_cone=len(read - cone),
        success=success,
        early_stop=not success and trace.ending == "done",
    )


def _is_read(action: ActionTaken) -> bool:
    return action.outcome == "done" and action.action.startswith("READ ")


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """All probes of one model on one workload, fan-ins pooled."""

    workload: str
    model: str
    probes: int  # scored
    attempted: int
    successful: int
    early_stops: int
    at_limit: int  # ended by the limit of actions, the target unknown
    read_overhead: float | None  # mean over successes of reads / minimum
    redundant: int
    off_cone: int
    minimum: float | None  # mean
    failures: dict[str, int]  # why probes were lost, and how many

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ProbePlan:
    """Which losses are probed."""

    policy: str = "lru"  # under fifo residents are newer than what is lost, and never cut its cone
    h: int = 8
    fan_ins: tuple[int, ...] = FAN_INS
    from_step: int | None = None  # half of the task unless given

    def moments(self, spec: TaskSpec, seeds: Sequence[int]) -> list[tuple[TaskInstance, Moment]]:
        """Return a lost answer for every fan-in and seed that has one."""
        tasks = (task for fan_in in self.fan_ins for task in generate_many(replace(spec, fan_in=fan_in), seeds))
        first = spec.n // 2 if self.from_step is None else self.from_step
        found = ((task, find_moment(task, self.policy, self.h, first)) for task in tasks)
        return [(task, moment) for task, moment in found if moment is not None]


def probe_session(task: TaskInstance, moment: Moment) -> ProbeSession:
    """Return the probe of a moment; residents hold their true values."""
    resident = {r: task.step(r).answer for r in moment.resident}
    return ProbeSession(publish(task, prepare(task.spec)), moment.target, resident)


def probe_trial(task: TaskInstance, moment: Moment) -> Trial:
    """Return the probe of a moment with what tells it from all others."""
    return Trial({"evidence": "probe", **asdict(moment), "task": task.spec.as_json()}, probe_session(task, moment))


def run_probes(
    specs: Iterable[TaskSpec],
    seeds: Sequence[int],
    plan: ProbePlan,
    models: Iterable[str],
    options: ModelOptions,
    bench: Bench | None = None,
) -> tuple[tuple[ProbeRow, ...], tuple[tuple[str, str, ProbeScore], ...]]:
    """Return a row for each workload and model, and every probe with its workload and model."""
    workloads = [(spec.workload, plan.moments(spec, seeds)) for spec in specs]
    if empty := [name for name, moments in workloads if not moments]:
        raise SpecError(
            f"{empty[0]} loses nothing so late under {plan.policy} with h = {plan.h}; lower --h or --from-step"
        )
    bench, rows, probes = bench or Workbench(), [], []
    for model in models:
        trials = [probe_trial(*item) for _, moments in workloads for item in moments]
        results = iter(bench.run(model, options, trials))
        for name, moments in workloads:
            own = [next(results) for _ in moments]
            scores = _scored(moments, own)
            rows.append(_row(name, model, scores, losses(own)))
            probes += [(name, model, score) for score in scores]
    return tuple(rows), tuple(probes)


def _scored(moments: Sequence[tuple[TaskInstance, Moment]], results: Sequence[Result]) -> list[ProbeScore]:
    both = zip(moments, results, strict=True)
    return [score_probe(*moment, result) for moment, result in both if isinstance(result, Trace)]


def _row(workload: str, model: str, scores: Sequence[ProbeScore], lost: dict[str, int]) -> ProbeRow:
    stops = sum(score.early_stop for score in scores)
    successes = sum(score.success for score in scores)
    return ProbeRow(
        workload=workload,
        model=model,
        probes=len(scores),
        attempted=len(scores) + sum(lost.values()),
        successful=successes,
        early_stops=stops,
        at_limit=len(scores) - successes - stops,
        read_overhead=mean(score.overhead for score in scores if score.success),
        redundant=sum(score.redundant for score in scores),
        off_cone=sum(score.off_cone for score in scores),
        minimum=mean(float(score.minimum) for score in scores),
        failures=lost,
    )
