"""The session protocol without I/O, and Controlled Retention: which answer stands, asking again, the calculator.

A driver alternates `request` and `receive` until `request` returns None, and collects events with `drain`. Sessions
hold the public task only; interventions are passed to the constructor. See docs/session.md.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping

from eirkit.lacuna.agents.answers import find_answer, is_taken_back
from eirkit.lacuna.agents.prompt import Renderer, render
from eirkit.lacuna.agents.protocol import (
    Action,
    Answer,
    Fault,
    after_answer,
    as_text,
    read_answers,
    read_reply,
    spoken_part,
)
from eirkit.lacuna.agents.recognition import labels_in
from eirkit.lacuna.memories.memory import MemoryCall, MemoryResult
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import Reply, Request
from eirkit.lacuna.tasks.policy import Retention
from eirkit.lacuna.tasks.task import Payload
from eirkit.lacuna.tasks.view import PublicStep, PublicTask, Record, Visible
from eirkit.records.events import ActionTaken, Decision
from eirkit.records.runs import Ending

Injector = Callable[[PublicStep, tuple[int, ...], Mapping[int, Payload]], tuple[Record, ...]]
Event = Decision | ActionTaken


REASK = "No answer was found in your last reply. Reply with one line: ANSWER {t} v"


def inject_nothing(step: PublicStep, missing: tuple[int, ...], submitted: Mapping[int, Payload]) -> tuple[Record, ...]:
    """Inject no records, as in the control arm of a rescue."""
    return ()


class Session(ABC):
    """Base of all sessions: how prompts are rendered, submitted numbers, and the events since the last `drain`."""

    fixed_rules = ""  # the system message, where it is the same for every task and renderer

    def __init__(self, renderer: Renderer = render) -> None:
        self.renderer = renderer
        self.submitted: dict[int, Payload] = {}
        self.ending: Ending | None = None
        self._events: list[Event] = []

    @property
    @abstractmethod
    def position(self) -> int:
        """The current step; 0 before the first."""

    @property
    def records(self) -> Mapping[int, Payload]:
        """The values that a right record of each step has now."""
        return self.submitted

    @abstractmethod
    def request(self) -> Request | MemoryCall | None:
        """Return the next request to the model or call to its memory; None when the run is over."""

    @abstractmethod
    def receive(self, reply: Reply) -> None:
        """Process the model's reply to the last request."""

    def receive_memory(self, result: MemoryResult) -> None:
        """Process what the memory system returned; only sessions with external memory call it."""
        raise ValueError("this session has no external memory")

    def drain(self) -> list[Event]:
        """Return the events since the last call."""
        events, self._events = self._events, []
        return events


class TaskSession(Session):
    """Base of all sessions on a task of numbers."""

    def __init__(self, task: PublicTask, inject: Injector = inject_nothing, renderer: Renderer = render) -> None:
        super().__init__(renderer)
        self.task, self.inject = task, inject

    def _ignore(self, late: Iterable[Action | Fault]) -> None:
        """Log actions after the end of the run; they change nothing and do not count."""
        for action in late:
            text = action.kind if isinstance(action, Fault) else as_text(action)
            self._events.append(ActionTaken(0, self.position, text, "late", "the task is over", reason="late"))

    def accept(self, answer: Answer, t: int) -> Payload | Fault:
        """Return the answer's values if they can be recorded for step t."""
        task, values = self.task, self._values(answer)
        if answer.t != t:
            return Fault("wrong-id", f"this is step {t}, not step {answer.t}")
        if len(values) != task.width:
            return Fault("wrong-width", f"an answer has {task.width} values, not {len(answer.values)}")
        if max(values) >= task.spec.q:
            return Fault("out-of-range", f"values go from 0 to {task.spec.q - 1}")
        return task.workload.canonical(values)

    def _values(self, answer: Answer) -> Payload:
        """Return the values of an answer in the reading that has the task's width, if one has."""
        return answer.values if len(answer.values) == self.task.width else answer.grouped or answer.values

    def standing(self, reply: Reply, answer: Answer, only_answers: bool = True) -> Answer | Fault:
        """Return the last answer of a reply, unless the reply goes on to call it wrong and to give another value."""
        if reply.calls or (len(reply.text) < SHORT and "\n" not in reply.text):
            return answer
        if not is_taken_back(after_answer(reply, only_answers), answer.t, self._values(answer), self.task.spec.q):
            return answer
        return Fault("malformed", "what follows takes the answer back; write one ANSWER line", "ANSWER")

    def stated(self, reply: Reply, t: int) -> Answer | None:
        """Return the answer that a reply without a usable command states for step t in other words, if there is one."""
        values = None if reply.calls else find_answer(spoken_part(reply), t, self.task.width, self.task.spec.q)
        return None if values is None else Answer(t, values)


class ControlledSession(TaskSession):
    """Controlled Retention: context is rebuilt at each step from the rules, the retained records and the step."""

    def __init__(
        self, task: PublicTask, retention: Retention, inject: Injector = inject_nothing, renderer: Renderer = render
    ) -> None:
        super().__init__(task, inject, renderer)
        self.retention = retention
        self._t = 1
        self._visible: Visible | None = None
        self._missing: tuple[int, ...] = ()  # of the current step, as first seen
        self._records: dict[int, Record] = {}  # of the submitted answers, made once
        self._held: tuple[int, ...] = ()
        self.reask = False  # ask once more where a reply has no usable answer
        self._asked_again = False

    @property
    def position(self) -> int:
        return self._t

    def request(self) -> Request | None:
        if self.ending is not None:
            return None
        if self._visible is None:
            self._visible = self._look()
        messages = self.renderer(self._visible)
        if self._asked_again:
            *before, state = messages
            messages = (*before, Message(state.role, f"{state.content}\n{REASK.format(t=self._t)}"))
        return Request(messages)

    def receive(self, reply: Reply) -> None:
        visible = self._visible
        if visible is None or visible.step is None:
            self._refuse(reply)
            return
        step = visible.step
        answers, fault = read_answers(reply)
        if not answers and (fault is None or fault.kind == "malformed") and (stated := self.stated(reply, step.t)):
            answers = [stated]
        # The last answer counts: a model may think aloud and correct itself before it stops.
        last = self.standing(reply, answers[-1]) if answers else fault or unanswered(reply, self._missing)
        answer = last if isinstance(last, Fault) else self.accept(last, step.t)
        if isinstance(answer, Fault) and self.reask and not self._asked_again:
            self._asked_again = True
            self._events.append(ActionTaken(0, step.t, "REASK", "refused", answer.detail, reason=answer.kind))
            return
        self._asked_again = False
        values = None if isinstance(answer, Fault) else answer
        self._events.append(
            Decision(
                step.t,
                step.refs,
                self._held,
                self._missing,
                self._missing,  # unavailable: Controlled Retention has no recovery
                visible.restored,
                values,
                answer.kind if isinstance(answer, Fault) else None,
                answers=len(answers),
            )
        )
        self._settle(step, values)

    def _refuse(self, reply: Reply) -> None:
        if self.ending is None:
            raise ValueError("nothing was requested; call request first")
        self._ignore(read_reply(reply))

    def _look(self) -> Visible:
        step = self.task.steps[self._t - 1]
        submitted = self.submitted
        missing = self.retention.missing(step.refs)
        # What was never answered cannot be lost.
        self._missing = tuple([r for r in missing if r in submitted]) if missing else missing
        restored = self.inject(step, self._missing, submitted)
        self._held = tuple(self.retention.held())
        return Visible(self.task, step, False, tuple(map(self._records.__getitem__, self._held)), restored)

    def _settle(self, step: PublicStep, values: Payload | None) -> None:
        self.retention.touch(step.refs)
        if values is not None:
            self.submitted[step.t] = values
            self._records[step.t] = step.t, values
            if self.task.workload.stores(self.task.spec, step.t):
                self.retention.admit(step.t, step.t)
        self._visible = None
        if step.t < len(self.task.steps):
            self._t += 1
        else:
            self.ending = "finished"


def unanswered(reply: Reply, missing: Iterable[int]) -> Fault:
    """Return the fault of a reply without an answer: declined because a record is missing, or unreadable."""
    if labels_in(spoken_part(reply)).intersection(missing):
        return Fault("declined", "no answer, and the reply names a record that is missing")
    return Fault("malformed", "no ANSWER line")


SHORT = 20  # characters of a line that has no room for more than an answer
MOST_CALCULATIONS = 4  # per step; after that the reply is final

_CALCULATE = re.compile(r"^[ \t>*`_#\-]*CALCULATE\b[ \t:]*([^\n]*)$", re.ASCII | re.IGNORECASE | re.MULTILINE)
_USAGE = "CALCULATE t t: apply the rule to this step's input and the answers of the steps named, see it, then answer"


class CalculatorSession(ControlledSession):
    """Controlled Retention in which the model names visible operands and the harness applies the rule."""

    def __init__(self, task: PublicTask, retention: Retention) -> None:
        super().__init__(task, retention)
        self._results: list[str] = []  # of the current step

    def request(self) -> Request | None:
        request = super().request()
        if request is None:
            return None
        system, state = request.messages
        shown = "".join(f"\nRESULT {result}" for result in self._results[-1:])
        return Request(
            (Message("system", f"{system.content}\n{_USAGE}"), Message("user", f"{state.content}{shown}")),
            request.tools,
            request.max_tokens,
        )

    def receive(self, reply: Reply) -> None:
        asked = _CALCULATE.findall(spoken_part(reply))
        if asked and not read_answers(reply)[0] and len(self._results) < MOST_CALCULATIONS:
            self._results.append(self._calculate(asked[-1]))
            return
        self._results = []
        super().receive(reply)

    def _calculate(self, named: str) -> str:
        if self._visible is None or self._visible.step is None:
            raise ValueError("nothing was requested; call request first")
        spec, values = self.task.spec, dict(self._visible.records)
        labels = [int(label) for label in re.findall(r"\d{1,6}", named)]
        if unseen := [label for label in labels if label not in values]:
            return f"refused: the answer of step {unseen[0]} is not shown"
        operands = [values[label] for label in dict.fromkeys(labels)]
        result = self.task.workload.operate(spec, self._visible.step.input, operands)
        return " ".join(f"{value:0{spec.digits}d}" for value in result)
