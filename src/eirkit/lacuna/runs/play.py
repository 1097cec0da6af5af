"""`eirkit.play`: gives a task to an agent of one's own, a function from prompts to replies, and scores what it did."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eirkit.errors import UsageError
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.recognition import records_in
from eirkit.lacuna.agents.session import ControlledSession
from eirkit.lacuna.agents.telemetry import Trace
from eirkit.lacuna.findings.causes import Verdict, judge, score
from eirkit.lacuna.memories.calls import wait_for
from eirkit.lacuna.models.model import Reply, Request
from eirkit.lacuna.tasks.generation import needs_of, prepare
from eirkit.lacuna.tasks.policy import Outlook, Retention, find_policy
from eirkit.lacuna.tasks.simulation.plain import structure_of
from eirkit.lacuna.tasks.task import TaskInstance
from eirkit.lacuna.tasks.view import publish
from eirkit.records.runs import RunScore

Agent = Callable[[str], str | Awaitable[str]]
Held = Callable[[], str]


@dataclass(frozen=True, slots=True)
class Played:
    """One task as an agent played it: its score, a verdict for every step, and everything that was said."""

    score: RunScore
    verdicts: tuple[Verdict, ...]
    trace: Trace

    @property
    def accuracy(self) -> float:
        """Correct answers / scored steps."""
        return self.score.accuracy

    @property
    def causes(self) -> dict[str, int]:
        """Wrong steps by cause; causes that no step has are left out."""
        return {cause: count for cause, count in self.score.errors.items() if count}


def play(task: TaskInstance, agent: Agent, *, h: int, held: Held | None = None, policy: str = "window") -> Played:
    """Give a task to an agent, step by step, and return what it made of it.

    Args:
        agent: takes the prompt of a step and returns the reply; may be async.
        h: how many of its earlier answers each prompt shows.
        held: returns what the agent's own memory holds, as text. It is asked before each reply; what it
            names was not lost, whatever the prompt shows. Without it, the agent is taken to see prompts alone.
        policy: which answers the prompts show.

    Raises:
        PluginError: the agent raised, or returned something other than text.
    """
    if h < 1:
        raise UsageError(f"h = {h} shows no record; use h >= 1")
    workload = prepare(task.spec)
    outlook = Outlook(structure_of(task.spec), task.spec.seed, needs_of(task))
    session = _PlayedSession(publish(task, workload), Retention(find_policy(policy).for_task(outlook), h), held=held)
    trace = wait_for(drive(session, _OwnAgent(agent)))
    verdicts = judge(task, workload, trace.decisions)
    return Played(score(verdicts, trace.decisions), verdicts, trace)


class _PlayedSession(ControlledSession):
    """Controlled Retention of an agent that may hold earlier answers in a memory of its own."""

    def __init__(self, *arguments: Any, held: Held | None = None) -> None:
        super().__init__(*arguments)
        self.held = held

    def request(self) -> Request | None:
        fresh = self._visible is None
        request = super().request()
        if fresh and request is not None and self.held is not None:
            found = records_in(_text(self.held()), self.submitted)
            self._missing = tuple(r for r in self._missing if r not in found)
        return request


class _OwnAgent:
    """An agent's function as a model."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    async def reply(self, request: Request) -> Reply:
        said = self.agent("\n\n".join(message.content for message in request.messages))
        return Reply(_text(await said if inspect.isawaitable(said) else said))

    async def close(self) -> None:
        pass

    def settings(self) -> Mapping[str, Any]:
        return {}


def _text(said: object) -> str:
    if not isinstance(said, str):
        raise UsageError(f"the agent returned a {type(said).__name__}; return text")
    return said
