"""What a page shows of a run, for each family of tasks: tasks of numbers, and conversations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from eirkit import extensions
from eirkit.lacuna.agents.conditions import COMPACTION, MEMORY
from eirkit.lacuna.conversation.causes import Seen
from eirkit.lacuna.conversation.outcomes import recorded_verdicts
from eirkit.lacuna.conversation.why import conversation_card
from eirkit.lacuna.conversation.workload import Conversation, WorldConversation
from eirkit.lacuna.findings.causes import Verdict, judge
from eirkit.lacuna.findings.fates import recorded_consultations
from eirkit.lacuna.findings.why import StepExplainer, WhyCard
from eirkit.lacuna.tasks.generation import needs_of, prepare
from eirkit.lacuna.tasks.task import GeneratedTask, TaskInstance
from eirkit.lacuna.tasks.workload import Graph
from eirkit.records.events import ActionTaken, Decision, Event, ModelExchange
from eirkit.records.runs import RunRecord
from eirkit.records.settings import STRICT, Access
from eirkit.report.viewer.conversation import question_document
from eirkit.report.viewer.documents import Question, Step

# What says how much of a conversation was shown knows how agents are run; it is imported when a page asks for it.
SHOWN_PART = "eirkit.lacuna.runs.conversations:shown_part"

Task = TypeVar("Task", bound=GeneratedTask)


@dataclass(frozen=True)
class TaskView(ABC, Generic[Task]):
    """A run on a task that was generated again."""

    task: Task
    record: RunRecord
    events: Sequence[Event]

    @cached_property
    def decisions(self) -> dict[int, Decision]:
        return {event.t: event for event in self.events if isinstance(event, Decision)}

    @property
    @abstractmethod
    def graph(self) -> Graph:
        """The references of every step."""

    @cached_property
    def verdicts(self) -> dict[int, Verdict]:
        """The verdict on every step; none for a probe, which submits nothing."""
        return {verdict.t: verdict for verdict in self._verdicts()} if self.decisions else {}

    @abstractmethod
    def _verdicts(self) -> Iterable[Verdict]: ...

    @abstractmethod
    def card(self, t: int) -> WhyCard | None:
        """Return why a step is wrong; None if nobody knows."""

    @abstractmethod
    def step(self, t: int) -> Step:
        """Return what the task says about a step."""

    def question(self, t: int) -> Question | None:
        """Return a question with the conversation until then; None for another task."""
        return None

    def ability(self, t: int) -> str | None:
        """Return what a question about a conversation tests."""
        return None


class NumberView(TaskView[TaskInstance]):
    """A run on a task of numbers."""

    @property
    def graph(self) -> Graph:
        return needs_of(self.task)

    @cached_property
    def actions(self) -> list[ActionTaken]:
        return [event for event in self.events if isinstance(event, ActionTaken)]

    def _verdicts(self) -> Iterable[Verdict]:
        return judge(self.task, prepare(self.task.spec), self.decisions.values(), self.actions)

    def card(self, t: int) -> WhyCard:
        return self._explainer.card(t)

    @cached_property
    def _explainer(self) -> StepExplainer:
        decisions, access = list(self.decisions.values()), self.record.setting.access
        limit = access.h if access.panel == STRICT else None
        calls = recorded_consultations(self.events, decisions, self.task)
        return StepExplainer(self.task, decisions, self.verdicts, self.actions, calls, access.memory, limit)

    def step(self, t: int) -> Step:
        step = self.task.step(t)
        return Step(t=t, refs=step.refs, kind=step.kind, input=step.input, answer=step.answer, scored=step.scored)


class ConversationView(TaskView[Conversation]):
    """A run on questions about a conversation."""

    @property
    def graph(self) -> Graph:
        return ((),) * len(self.task.questions)

    def _verdicts(self) -> Iterable[Verdict]:
        answers = self.record.conversation
        return () if answers is None else recorded_verdicts(self.task, answers)

    def card(self, t: int) -> WhyCard | None:
        if not isinstance(self.task, WorldConversation):
            return None
        task, access, answers = self.task, self.record.setting.access, self.record.conversation
        calls = recorded_consultations(self.events, ())
        shown = _shown_part(access, task, t, self._prompts)
        seen = None if shown is None else Seen((shown,), (), False, access.condition == COMPACTION)
        if access.condition == MEMORY:
            stored = tuple(call.stored for call in calls or () if call.call.verb == "observe")
            recalled = next((call for call in calls or () if call.call.verb == "recall" and call.t == t), None)
            after = task.questions[t - 1].after
            if calls is not None:
                seen = Seen((), stored[:after], True)
            if recalled is not None:
                seen = Seen(
                    recalled.passages,
                    stored[:after],
                    True,
                    unshown=recalled.unshown,
                    unshown_ranks=recalled.unshown_ranks,
                    asked=recalled.asked,
                )
        wrong = {answer.t: answer for answer in (() if answers is None else answers.wrong)}
        return conversation_card(task, t, self.verdicts[t], self._submitted(t), wrong.get(t), seen)

    def step(self, t: int) -> Step:
        return Step(t=t, refs=(), kind="query", input=None, answer=self.task.answers[t - 1], scored=True)

    def question(self, t: int) -> Question | None:
        if not isinstance(self.task, WorldConversation):
            return None
        shown = _shown_part(self.record.setting.access, self.task, t, self._prompts)
        return question_document(self.task, self.record, self.events, t, self._submitted(t), shown)

    def ability(self, t: int) -> str:
        return self.task.questions[t - 1].ability

    def _submitted(self, t: int) -> str | None:
        return None if t not in self.decisions else self.decisions[t].text

    @property
    def _prompts(self) -> dict[int, str]:
        """What the model was sent for each question, where the texts of the run were kept."""
        asked = (event for event in self.events if isinstance(event, ModelExchange) and event.t)
        return {event.t: event.prompt for event in asked if event.prompt is not None}


def view_of(task: GeneratedTask, record: RunRecord, events: Sequence[Event]) -> NumberView | ConversationView:
    """Return the view of a run on a task of either family."""
    if isinstance(task, TaskInstance):
        return NumberView(task, record, events)
    if isinstance(task, Conversation):
        return ConversationView(task, record, events)
    raise TypeError(f"{type(task).__name__} is of no family of tasks")


def _shown_part(access: Access, task: WorldConversation, t: int, prompts: dict[int, str]) -> str | None:
    """Return what of a conversation was shown without a memory; None if that is not known."""
    shown_part: Callable[[Access, WorldConversation, int, dict[int, str]], str | None] = extensions.load(SHOWN_PART)
    return shown_part(access, task, t, prompts)
