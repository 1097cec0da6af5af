"""The Agent-Managed Retention session: how each action is executed or refused, and how many a run may take.

A reply may hold several actions; they are executed in order, and each counts. A refused action gives a reason, counts
and changes nothing. Every reply costs at least one action, so the action limit ends every run.
"""

from __future__ import annotations

import dataclasses
from collections import deque

from msgspec.structs import replace

from eirkit.errors import SpecError
from eirkit.lacuna.agents.conditions import Condition, ManagedOptions, RefusedAction
from eirkit.lacuna.agents.current_step import CurrentStep, RecoveryAllowance
from eirkit.lacuna.agents.prompt import Renderer, render
from eirkit.lacuna.agents.protocol import (
    SILENCE,
    Action,
    Answer,
    Done,
    Fault,
    Next,
    Read,
    Recompute,
    Search,
    as_text,
    ask,
    printable,
    read_reply,
    silence,
)
from eirkit.lacuna.agents.recognition import recognize
from eirkit.lacuna.agents.session import Injector, TaskSession, inject_nothing
from eirkit.lacuna.memories.memory import MemoryCall, MemoryResult
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import ActionForm, Reply, Request, set_aside
from eirkit.lacuna.tasks.task import Payload, show_record
from eirkit.lacuna.tasks.view import Budgets, PublicTask, Visible
from eirkit.records.events import ActionOutcome, ActionTaken
from eirkit.records.runs import Ending


class ManagedSession(TaskSession):
    """The action loop under one memory condition."""

    def __init__(
        self,
        task: PublicTask,
        condition: Condition,
        options: ManagedOptions | None = None,
        inject: Injector = inject_nothing,
        renderer: Renderer = render,
    ) -> None:
        super().__init__(task, inject, renderer)
        self.condition, self.options = condition, options or ManagedOptions()
        if self.standing is not None:
            condition.standing = self.standing
        reads, recomputations = self.options.reads, self.options.recomputations
        if condition.pages and reads == 0:
            raise SpecError("forced paging shows only what is read; allow reads, or None for no limit")
        self._supply = RecoveryAllowance(task, reads, recomputations)
        recovery = (("READ", reads), ("RECOMPUTE", recomputations))
        offered = tuple(word for word, budget in recovery if budget != 0)
        self.commands = ("NEXT", "ANSWER", *offered, *condition.commands, "DONE")
        self._records: dict[int, Payload] = {}  # last submitted or recomputed values
        self._arrival: CurrentStep | None = None
        self._asked = False
        self._pending: deque[Action | Fault] = deque()
        self._call: MemoryCall | None = None
        self._actions = 0
        self._outcomes: list[str] = []
        self._unchecked: dict[int, None] = {}  # records that change, written since the last search

    @property
    def position(self) -> int:
        return self._arrival.step.t if self._arrival else 0

    @property
    def records(self) -> dict[int, Payload]:
        return self._records

    def request(self) -> Request | MemoryCall | None:
        if self._call is not None:
            return self._call
        if self.ending is not None:
            return None
        self._asked = True
        if self.condition.summary_due:
            return self._summary_request()
        visible = self._visible()
        form = ActionForm(self.commands, self.task.width, self.task.spec.q)
        return ask(self.renderer(visible), form, self.protocol, visible)

    def receive(self, reply: Reply) -> None:
        if self.ending is not None:
            self._ignore(read_reply(reply, self.protocol))
            return
        if not self._asked:
            raise ValueError("nothing was requested of the model; call request first")
        self._asked = False
        if self.condition.summary_due:
            self._summarize(reply)
        else:
            self._outcomes = []
            self._pending.extend(read_reply(reply, self.protocol))
        self._work()

    def receive_memory(self, result: MemoryResult) -> None:
        call, self._call = self._call, None
        if call is None:
            raise ValueError("nothing was requested of the memory; call request first")
        if call.verb == "search" and self._arrival is not None:
            passages = [printable(passage) for passage in result.passages]  # cut by the driver to the budget
            self._arrival.found = "\n".join(passages)
            self._arrival.sought |= set(call.steps)
            now = None if self.standing is None else self.position
            self._arrival.take(recognize(passages, self._records, best_first=True, now=now), self._records)
            self._outcomes[-1] = f"{len(passages)} passages found"
        self._work()

    def _work(self) -> None:
        """Execute pending actions until one needs the memory system or a summary, or the run ends."""
        while self._pending and self._call is None and self.ending is None and not self.condition.summary_due:
            self._take(self._pending.popleft())
        if self.ending is not None:
            self._ignore(self._pending)
            self._pending.clear()

    def _take(self, action: Action | Fault) -> None:
        here = self.position
        self._count()
        if isinstance(action, Fault):
            if self._arrival is not None and (action.word == "ANSWER" or action.kind in SILENCE):
                self._arrival.fault = action.kind
            self._log(here, action.kind, "fault", action.detail, reason=action.kind)
        else:
            try:
                detail, evicted = self._perform(action)
                self._log(here, as_text(action), "done", detail, evicted)
            except RefusedAction as refusal:
                self._log(here, as_text(action), "refused", str(refusal), reason=refusal.reason)
        self._stop_at_limit()

    def _count(self) -> None:
        self._actions += 1
        if self._arrival is not None:
            self._arrival.actions += 1

    def _stop_at_limit(self) -> None:
        if self._actions >= self.options.actions and self.ending is None:
            self._end("action-limit")

    def _log(
        self, t: int, action: str, outcome: ActionOutcome, detail: str, evicted: int | None = None, reason: str = ""
    ) -> None:
        self._outcomes.append(detail if outcome == "done" else f"refused: {detail}")
        self._events.append(ActionTaken(self._actions, t, action, outcome, detail, evicted, reason))

    def _perform(self, action: Action) -> tuple[str, int | None]:
        """Return the response to the agent and the evicted record."""
        word = type(action).__name__.upper()
        if word not in self.commands:
            raise RefusedAction("not-offered", f"{word} is not available here")
        match action:
            case Next():
                return self._next(), None
            case Done():
                self._end("done")
                return "the task is over", None
            case Answer():
                return self._submit(action)
            case Read(t):
                return self._read(t)
            case Recompute(t):
                return self._recompute(t)
            case _:
                return self._remember(action), None

    def _next(self) -> str:
        upcoming = self.position + 1
        if upcoming > len(self.task.steps):
            raise RefusedAction("no-more-steps", "there are no more steps; write DONE")
        self._pass_over()
        self._close_step()
        step = self.task.steps[upcoming - 1]
        gone: set[int] = set()
        if self.standing is not None:
            self._records.update(dict.fromkeys(self.standing.arrive(step.t), self.standing.nothing))
            gone = self.standing.gone
        known = self.condition.recognize(self._records)
        retained, uncertain = known.present, known.uncertain.intersection(step.refs)
        # What was never answered cannot be lost.
        missing = tuple(r for r in step.refs if r in self.submitted and r not in retained and r not in uncertain)
        beyond = self._supply.unavailable(missing, retained, self.submitted)
        unwritten = frozenset(r for r in beyond if not self.condition.obtainable(r) and r not in gone)
        restored = self.inject(step, missing, self.submitted)
        over = frozenset(gone.intersection(beyond))
        self._arrival = CurrentStep(
            step, retained, missing, beyond, unwritten, restored, over, uncertain=set(uncertain)
        )
        self.condition.consume(step.refs)
        return f"step {step.t} of {len(self.task.steps)}"

    def _submit(self, action: Answer) -> tuple[str, int | None]:
        arrival = self._current()
        step = arrival.step
        arrival.answers += 1
        if arrival.answered:
            raise RefusedAction("second-answer", f"step {step.t} already has its answer; write NEXT")
        values = self.accept(action, step.t)
        if isinstance(values, Fault):
            arrival.fault = values.kind
            raise RefusedAction(values.kind, values.detail)
        arrival.answered = True
        self.submitted[step.t] = self._records[step.label] = values
        if self.standing is not None:
            self.standing.settle(step, values)
        evicted = self.condition.submit(step.label, values, self.task.workload.stores(self.task.spec, step.t))
        return "answer recorded" + ("; write DONE" if step.t == len(self.task.steps) else ""), evicted

    def _read(self, t: int) -> tuple[str, int | None]:
        arrival = self._recovering(t)
        if t not in self.submitted:
            raise RefusedAction("never-answered", f"step {t} was never answered")
        self._supply.read()
        arrival.reads += 1
        return self._fetched(
            arrival, t, self.submitted[t] if self.standing is None else self._records.get(t, self.submitted[t])
        )

    def _recompute(self, t: int) -> tuple[str, int | None]:
        arrival = self._recovering(t)
        near = arrival.worked_out | self._near()
        done = self._supply.recompute(t, near)
        arrival.worked_out |= done.values
        arrival.recomputations += len(done.values)
        arrival.recovery_depth = max(arrival.recovery_depth, done.depth)
        if self.standing is not None and t in self._records:  # what happened to a record is computed again with it
            return self._fetched(arrival, t, self._records[t])
        return self._fetched(arrival, t, done.values[t] if t in done.values else near[t])

    def _current(self) -> CurrentStep:
        if self._arrival is None:
            raise RefusedAction("no-step", "no step has been revealed; write NEXT")
        return self._arrival

    def _recovering(self, t: int) -> CurrentStep:
        arrival = self._current()
        if not 1 <= t < arrival.step.t:
            raise RefusedAction("not-earlier", f"step {t} is not an earlier step")
        return arrival

    def _fetched(self, arrival: CurrentStep, t: int, values: Payload) -> tuple[str, int | None]:
        arrival.fetched[t] = self._records[t] = values
        evicted = self.condition.fetch(t, values, arrival.step.t)
        if evicted is not None and evicted in arrival.step.refs and evicted in arrival.retained:
            arrival.displaced[evicted] = self._records[evicted]
        return show_record(self.task.spec, t, values), evicted

    def _remember(self, action: Action) -> str:
        if isinstance(action, Search):
            self._current()  # refused before the first step, because found passages belong to a step
        spec, standing = self.task.spec, self.standing
        near = {
            t: show_record(spec, t, values) if standing is None or t not in standing.values else standing.show(t)
            for t, values in self._near().items()
        }
        response = self.condition.perform(action, near)
        if isinstance(response, MemoryCall):
            self._call = self._checked(response)
            return {"search": "searched", "forget": "forgotten"}.get(response.verb, "written")
        return response

    def _checked(self, call: MemoryCall) -> MemoryCall:
        """Return a call with the records that are to be looked up after it, where records change."""
        if self.standing is None:
            return call
        for step in call.steps:
            self._unchecked.pop(step, None)
        if call.verb == "write":
            self._unchecked.update(dict.fromkeys(call.steps))
        if call.verb != "search":
            return call
        check, self._unchecked = tuple(self._unchecked), {}
        return dataclasses.replace(call, check=check)

    def _near(self) -> dict[int, Payload]:
        """Return the records that the agent sees now, except those that an intervention injected."""
        near = {t: self._records[t] for t in self.condition.recognize(self._records).present}
        return near if self._arrival is None else near | self._in_sight(self._arrival)

    def _in_sight(self, arrival: CurrentStep) -> dict[int, Payload]:
        """Return what is shown for this step only: fetched records, records they displaced, and the answer."""
        label = arrival.step.label
        answer = {label: self._records[label]} if arrival.answered else {}
        return arrival.displaced | arrival.fetched | answer

    def _close_step(self) -> None:
        if self._arrival is not None:
            self._events.append(self._arrival.decision(self.submitted.get(self._arrival.step.t)))

    def _pass_over(self) -> None:
        """Note that the agent leaves a step open whose input no interface returned."""
        arrival = self._arrival
        if arrival is not None and not arrival.answered and arrival.fault == "unanswered" and arrival.unavailable:
            arrival.fault = "declined"

    def _end(self, how: Ending) -> None:
        self._close_step()
        complete = self.position == len(self.task.steps) and self.position in self.submitted
        self.ending = "finished" if complete and how == "done" else how

    def _visible(self) -> Visible:
        hand, arrival, supply = self.condition.in_context(), self._arrival, self._supply
        shown = Visible(
            task=self.shown_task,
            step=None,
            answered=False,
            records=tuple([(t, self._records[t]) for t in hand.records]),
            notes=hand.notes,
            room=hand.room,
            free=hand.free,
            commands=self.commands,
            budgets=Budgets(self.options.actions - self._actions, supply.reads_left, supply.recomputations_left),
            outcomes=tuple(self._outcomes),
            protocol=self.protocol,
        )
        if arrival is None:
            return shown
        notes = hand.notes if arrival.found is None else "\n".join(filter(None, (hand.notes, arrival.found)))
        fetched = tuple(sorted(item for item in self._in_sight(arrival).items() if item[0] not in hand.records))
        return replace(
            shown, step=arrival.step, answered=arrival.answered, restored=arrival.restored, fetched=fetched, notes=notes
        )

    def _summary_request(self) -> Request:
        room = self.condition.summary_characters
        visible = replace(self._visible(), summary_characters=room)
        *before, last = self.renderer(visible)
        ask = self.options.summary_prompt.replace("{characters}", str(room))
        text = f"{last.content}\nSUMMARY at most {room} characters\n{ask}"
        return Request((*before, Message("user", text)), visible=visible)

    def _summarize(self, reply: Reply) -> None:
        self._count()
        text, cut = set_aside(reply.text)[0], silence(reply)
        if cut is not None:
            text = text.rpartition(" ")[0]  # half a number would be another number
        self.condition.summarize(text)
        kept = min(len(text), self.condition.summary_characters)
        reason = "" if cut is None else cut.kind
        self._log(self.position, "SUMMARY", "done", f"{kept} of {len(text)} characters kept", reason=reason)
        self._stop_at_limit()
