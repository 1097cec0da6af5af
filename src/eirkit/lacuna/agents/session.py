"""The session protocol without I/O, and Controlled Retention: one step at a time, asking again, the calculator.

A driver alternates `request` and `receive` until `request` returns None, and collects events with `drain`. Sessions
hold the public task only; interventions are passed to the constructor. See docs/session.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from eirkit.lacuna.agents.prompt import Renderer, render
from eirkit.lacuna.agents.protocol import (
    ASKED_AGAIN,
    USAGE,
    Action,
    Answer,
    Calculate,
    Fault,
    as_text,
    ask,
    ask_again,
    read_answer,
    read_reply,
    spoken_part,
)
from eirkit.lacuna.memories.memory import MemoryCall, MemoryResult
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ActionForm, NumberForm, Reply, Request
from eirkit.lacuna.tasks.policy import Retention
from eirkit.lacuna.tasks.standing import StandingValues
from eirkit.lacuna.tasks.task import Payload, show_labels, show_values
from eirkit.lacuna.tasks.view import PublicStep, PublicTask, Record, Visible
from eirkit.records.events import ActionTaken, Decision
from eirkit.records.runs import Ending
from eirkit.records.settings import TEXT

Injector = Callable[[PublicStep, tuple[int, ...], Mapping[int, Payload]], tuple[Record, ...]]
Event = Decision | ActionTaken


def inject_nothing(step: PublicStep, missing: tuple[int, ...], submitted: Mapping[int, Payload]) -> tuple[Record, ...]:
    """Inject no records, as in the control arm of a rescue."""
    return ()


class Session(ABC):
    """Base of all sessions: how prompts are rendered, submitted numbers, and the events since the last `drain`."""

    def __init__(self, renderer: Renderer = render) -> None:
        self.renderer = renderer
        self.protocol = TEXT  # how the model answers
        self.reask = False  # ask once more where a reply has no usable answer
        self._asked_again = False
        self.submitted: dict[int, Payload] = {}
        self.ending: Ending | None = None
        self._events: list[Event] = []

    @property
    def fixed_rules(self) -> str:
        """The system message, where it is the same for every task and renderer."""
        return ""

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

    def _asks_again(self, fault: Fault) -> bool:
        """Ask once more, and log it, if a reply does not have the asked form."""
        self._asked_again = self.reask and not self._asked_again and fault.kind in ASKED_AGAIN
        if self._asked_again:
            self._events.append(ActionTaken(0, self.position, "REASK", "refused", fault.detail, reason=fault.kind))
        return self._asked_again


class TaskSession(Session):
    """Base of all sessions on a task of numbers."""

    def __init__(self, task: PublicTask, inject: Injector = inject_nothing, renderer: Renderer = render) -> None:
        super().__init__(renderer)
        self.task, self.inject = task, inject
        self.shown_task = task.without_steps()
        self.standing = StandingValues(task.spec, task.width) if task.workload.changes else None

    def _ignore(self, late: Iterable[Action | Fault]) -> None:
        """Log actions after the end of the run; they change nothing and do not count."""
        for action in late:
            text = action.kind if isinstance(action, Fault) else as_text(action)
            self._events.append(ActionTaken(0, self.position, text, "late", "the task is over", reason="late"))

    def accept(self, answer: Answer, t: int) -> Payload | Fault:
        """Return the answer's values if they can be recorded for step t."""
        task, values = self.task, answer.values
        if answer.t != t:
            return Fault("wrong-id", f"this is step {t}, not step {answer.t}")
        if len(values) != task.width:
            return Fault("wrong-width", f"an answer has {task.width} values, not {len(values)}")
        if max(values) >= task.spec.q:
            return Fault("out-of-range", f"values go from 0 to {task.spec.q - 1}")
        return task.workload.canonical(values)


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

    @property
    def position(self) -> int:
        return self._t

    def request(self) -> Request | None:
        if self.ending is not None:
            return None
        if self._visible is None:
            self._visible = self._look()
        form, protocol = self._form(), self.protocol
        request = ask(self.renderer(self._visible), form, protocol, self._visible)
        return ask_again(request, form, protocol) if self._asked_again else request

    def _form(self) -> NumberForm:
        return NumberForm(self._t, self.task.width, self.task.spec.q)

    def receive(self, reply: Reply) -> None:
        visible = self._visible
        if visible is None or visible.step is None:
            self._refuse(reply)
            return
        step = visible.step
        given = self._read_answer(reply)
        answer = self.accept(given, step.t) if isinstance(given, Answer) else given
        if isinstance(given, Fault) and given.kind == "malformed" and self._names_missing(reply):
            answer = Fault("declined", "no answer, and the reply names a record that is missing")
        if isinstance(answer, Fault) and self._asks_again(answer):
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
                answers=int(values is not None),
            )
        )
        self._settle(step, values)

    def _refuse(self, reply: Reply) -> None:
        if self.ending is None:
            raise ValueError("nothing was requested; call request first")
        self._ignore(read_reply(reply, self.protocol))

    def _read_answer(self, reply: Reply) -> Answer | Fault:
        return read_answer(reply, self._form(), self.protocol)

    def _names_missing(self, reply: Reply) -> bool:
        """True if a reply names a record that is missing, as A_07 or A_7."""
        words = {word.strip(".,;:!?()[]*`\"'") for word in spoken_part(reply).split()} if self._missing else set()
        return not words.isdisjoint([*show_labels(self.task.spec, self._missing), *(f"A_{t}" for t in self._missing)])

    def _look(self) -> Visible:
        step = self.task.steps[self._t - 1]
        submitted = self.submitted
        if self.standing is not None:
            for label in self.standing.arrive(step.t):
                self._records[label] = label, self.standing.nothing
        missing = self.retention.missing(step.refs)
        # What was never answered cannot be lost.
        self._missing = tuple([r for r in missing if r in submitted]) if missing else missing
        restored = self.inject(step, self._missing, submitted)
        self._held = tuple(self.retention.held())
        return Visible(
            self.shown_task,
            step,
            False,
            tuple(map(self._records.__getitem__, self._held)),
            restored,
            protocol=self.protocol,
        )

    def _settle(self, step: PublicStep, values: Payload | None) -> None:
        self.retention.touch(step.refs)
        if self.standing is not None:
            self.standing.settle(step, values)
        if values is not None:
            self.submitted[step.t] = values
            self._records[step.label] = step.label, values
            if self.task.workload.stores(self.task.spec, step.t):
                self.retention.admit(step.t, step.t)
        self._visible = None
        if step.t < len(self.task.steps):
            self._t += 1
        else:
            self.ending = "finished"


CALCULATOR = ("ANSWER", "CALCULATE")
MOST_CALCULATIONS = 4  # per step; after that the reply is final


class CalculatorSession(ControlledSession):
    """Controlled Retention in which the model names visible operands and the harness applies the rule."""

    def __init__(self, task: PublicTask, retention: Retention) -> None:
        super().__init__(task, retention)
        self._results: list[Payload | str] = []  # of the current step; a text says why there is none

    def request(self) -> Request | None:
        if super().request() is None or self._visible is None:
            return None
        last = self._results[-1] if self._results else None
        text = last if isinstance(last, str) else show_values(self.task.spec.digits, last or ())
        visible = replace(self._visible, result=None if isinstance(last, str) else last)
        if self.protocol != TEXT:
            visible = replace(visible, commands=CALCULATOR)
        system, state = self.renderer(visible)
        if self.protocol == TEXT:
            system = Message("system", f"{system.content}\n{USAGE['CALCULATE']}")
        if last is not None:
            state = Message("user", f"{state.content}\nRESULT {text}")
        form = ActionForm(CALCULATOR, self.task.width, self.task.spec.q)
        request = ask((system, state), form, self.protocol, replace(visible, commands=CALCULATOR))
        expected = self._form() if self.protocol == TEXT else form
        return ask_again(request, expected, self.protocol) if self._asked_again else request

    def _read_answer(self, reply: Reply) -> Answer | Fault:
        *_, last = read_reply(reply, self.protocol)
        return last if isinstance(last, Answer | Fault) else Fault("malformed", "the reply ends without an answer")

    def receive(self, reply: Reply) -> None:
        *_, last = read_reply(reply, self.protocol)
        if isinstance(last, Calculate) and len(self._results) < MOST_CALCULATIONS:
            self._results.append(self._calculate(last.steps))
            return
        self._results = []
        super().receive(reply)

    def _calculate(self, steps: tuple[int, ...]) -> Payload | str:
        if self._visible is None or self._visible.step is None:
            raise ValueError("nothing was requested; call request first")
        values = dict(self._visible.records)
        if unseen := [t for t in steps if t not in values]:
            return f"refused: the answer of step {unseen[0]} is not shown"
        operands = [values[t] for t in dict.fromkeys(steps)]
        return self.task.workload.operate(self.task.spec, self._visible.step.input, operands)
