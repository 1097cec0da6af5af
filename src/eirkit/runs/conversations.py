"""Conversations on the runner: which accesses they have, their sessions, and the records of finished runs."""

from __future__ import annotations

from typing import Any

from eirkit.agents.conversing import (
    CHARACTERS_PER_TOKEN,
    MEMORY,
    TRUNCATED,
    WHOLE,
    ConversationSession,
    PublicTalk,
    transcript,
)
from eirkit.agents.stores.memory_factory import check_plan, sees_truth
from eirkit.agents.telemetry import Trace
from eirkit.errors import UnknownNameError, UsageError
from eirkit.findings.causes import Verdict
from eirkit.findings.conversations import judge_conversation, word_record
from eirkit.runs.cells import NATIVE, Access, Arm, Intervention, RescueArm
from eirkit.tasks.conversations import ToldWorld, canonical_answer
from eirkit.tasks.view import publish
from eirkit.tasks.words.reading import Heard, needed_statements, plain_sentence, show_turn
from eirkit.tasks.workload import Workload

CONDITIONS = (WHOLE, TRUNCATED, MEMORY)
CONTEXT_TOKENS = 512  # default of the truncated context


def told_access(given: dict[str, Any]) -> Access:
    """Return an access with these values; a memory system means that everything must come from it.

    Raises:
        UsageError: it has a part that conversations do not have.
    """
    known = ("condition", "memory", "memory_settings", "context_tokens", "h")
    if foreign := [name for name, value in given.items() if name not in known and value]:
        raise UsageError(f"conversations have no {foreign[0]}; leave it out")
    condition = given.pop("condition", None) or (WHOLE if given.get("memory") is None else MEMORY)
    return Access(condition=condition, policy=None, **given)


def check_told_access(access: Access) -> None:
    """Raise UsageError if the parts of an access contradict each other or name something unknown."""
    if access.condition not in CONDITIONS:
        raise UnknownNameError("condition of conversations", access.condition, CONDITIONS)
    if (access.memory is None) == (access.condition == MEMORY):
        raise UsageError(
            f"condition {MEMORY!r} needs a memory system, and no other condition takes one; use a second [[grid]]"
        )
    if access.panel != NATIVE or access.policy is not None or access.tool_calls:
        raise UsageError("conversations have no panels, policies and tool calls; leave them out")
    if access.context_tokens is not None and access.condition != TRUNCATED:
        raise UsageError(f"context_tokens apply to the condition {TRUNCATED!r} only; leave them out")
    if (plan := access.memory_plan) is not None:
        check_plan(plan)
        if sees_truth(plan.name):
            raise UsageError(f"memory {plan.name!r} is made from labelled records; choose another for conversations")


def told_session(
    access: Access, task: ToldWorld, workload: Workload, intervention: Intervention | None = None
) -> ConversationSession:
    """Return the session of one run."""

    def canonical(t: int, text: str) -> str:
        return canonical_answer(task.language, task.asked[t - 1].question, text)

    texts = tuple(one.text for one in task.asked)
    talk = PublicTalk(publish(task, workload), task.sessions, task.today, texts, canonical)
    session = ConversationSession(talk, access.condition, characters_of(access))
    if isinstance(intervention, RescueArm) and intervention.arm != "control":
        session.add = WordInjection(task, intervention.arm)
    return session


class WordInjection:
    """What an arm of a rescue shows with a question: the sentences it needs, as long ones about others, or old ones."""

    def __init__(self, task: ToldWorld, arm: Arm) -> None:
        self.task, self.arm = task, arm

    def __call__(self, t: int) -> str | None:
        needed = needed_statements(self.task.asked[t - 1].question, self.task.said, self.task.truth)
        if self.arm == "oracle":
            chosen: list[Heard | None] = list(needed)
        elif self.arm == "sham":
            chosen = [self._other(one) for one in needed]
        else:
            chosen = [one for one in map(self._older, needed) if one not in needed]
        return "\n".join(self._text(one) for one in chosen if one is not None) or None

    def _text(self, one: Heard) -> str:
        return show_turn(one.day, "user", plain_sentence(self.task.language, one.statement))

    def _other(self, needed: Heard) -> Heard | None:
        """Return the statement about another whose sentence is nearest in length; of several, the first."""
        length = len(self._text(needed))
        others = [one for one in self.task.said if one.statement.subject not in ("", needed.statement.subject)]
        alike = [one for one in others if one.statement.value != needed.statement.value]
        return min(alike, key=lambda one: abs(len(self._text(one)) - length), default=None)

    def _older(self, needed: Heard) -> Heard | None:
        """Return the last statement about the same fact before the needed one; None if there is none."""
        key = needed.statement.attribute, needed.statement.subject
        before = self.task.said[: self.task.said.index(needed)]
        about = [one for one in before if (one.statement.attribute, one.statement.subject) == key]
        return about[-1] if about else None


def characters_of(access: Access) -> int:
    """Return how many characters of the conversation a truncated context shows."""
    return CHARACTERS_PER_TOKEN * (access.context_tokens or CONTEXT_TOKENS)


def shown_part(access: Access, task: ToldWorld) -> str:
    """Return what a condition without a memory system shows of a conversation."""
    said = transcript(task.sessions)
    return said[-characters_of(access) :] if access.condition == TRUNCATED else said


def judge_told(access: Access, task: ToldWorld, trace: Trace) -> tuple[tuple[Verdict, ...], dict[str, Any]]:
    """Return the verdicts on the answers of a run, and what its record says about them in words."""
    found = judge_conversation(task, trace, access.condition, [shown_part(access, task)])
    return tuple(one.verdict() for one in found), word_record(task, trace, found)
