"""The session of a recovery probe: a model reads the steps needed to rebuild one lost answer."""

from __future__ import annotations

from collections.abc import Mapping

from eirkit.lacuna.agents.protocol import Action, Done, Fault, Read, as_text, ask, read_reply
from eirkit.lacuna.agents.session import TaskSession
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ActionForm, Reply, Request
from eirkit.lacuna.tasks.generation import prepare
from eirkit.lacuna.tasks.policy import Retention, find_policy
from eirkit.lacuna.tasks.simulation.plain import outlook_of
from eirkit.lacuna.tasks.task import Payload, TaskInstance, show_label, show_record
from eirkit.lacuna.tasks.view import ProbeView, PublicTask, publish
from eirkit.records.events import ActionTaken
from eirkit.records.runs import LostAnswer
from eirkit.records.settings import ACTION_LIMIT, SCHEMA, TEXT, TOOLS

_HOW = {
    TEXT: "Reply with commands, each on a line of its own:",
    TOOLS: "Reply by calling tools:",
    SCHEMA: 'Reply with a JSON object: {"work": "…", "actions": […]}. The actions are:',
}


def find_lost_answer(task: TaskInstance, policy: str, h: int, from_step: int = 1) -> LostAnswer | None:
    """Return the first miss at or after a step under a policy with h records; the oldest one if several are missing."""
    outlook = outlook_of(task)
    retention = Retention(find_policy(policy).for_task(outlook), h)
    for step, references in enumerate(outlook.future, 1):
        missing = retention.missing(references)
        if missing and step >= from_step:
            return LostAnswer(step, missing[0], tuple(sorted(record.id for record in retention.records)))
        retention.touch(references)
        if outlook.structure.takes_slot[step - 1]:
            retention.admit(step, step)
    return None


class ProbeSession(TaskSession):
    """READ t shows a step's input and references; the harness computes what it can; DONE ends the probe."""

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
        visible = ProbeView(
            self.shown_task,
            self.target,
            tuple(sorted(self.resident)),
            self._reads,
            {t: self.task.steps[t - 1].refs for t in self._read},
            frozenset(self.known),
        )
        form = ActionForm(("READ", "DONE"), self.task.width, self.task.spec.q)
        messages = (Message("system", self._rules()), Message("user", self._state()))
        return ask(messages, form, self.protocol, visible)

    def receive(self, reply: Reply) -> None:
        for action in read_reply(reply, self.protocol):
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
        # One pass suffices: references are earlier than the step, and steps are visited in ascending order.
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
                f"Make the target known with as few reads as you can. {_HOW[self.protocol]}",
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


def probe_session(task: TaskInstance, lost: LostAnswer) -> ProbeSession:
    """Return the probe for a lost answer; residents hold their true values."""
    resident = {r: task.step(r).answer for r in lost.resident}
    return ProbeSession(publish(task, prepare(task.spec)), lost.target, resident)
