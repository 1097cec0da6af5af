"""Sessions for tests: tasks, conditions by name, and a plain loop that plays any function as an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from eirkit.lacuna.agents.conditions import (
    Cache,
    Compaction,
    Condition,
    External,
    KeyValueStore,
    ManagedOptions,
    Paging,
    Scratch,
    ScratchLru,
)
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.managed import ManagedSession
from eirkit.lacuna.agents.reference import make_reference
from eirkit.lacuna.agents.session import ControlledSession, Event, Session
from eirkit.lacuna.agents.telemetry import Trace
from eirkit.lacuna.memories.in_process import KeyValue as KeyValueMemory
from eirkit.lacuna.memories.memory import MemoryCall, MemoryResult, MemorySystem
from eirkit.lacuna.models.model import ModelOptions, Reply, Request
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.policy import Retention, find_policy
from eirkit.lacuna.tasks.simulation.plain import outlook_of
from eirkit.lacuna.tasks.task import TaskInstance, TaskSpec
from eirkit.lacuna.tasks.view import PublicTask, publish
from eirkit.records.events import ActionTaken, Decision
from eirkit.records.settings import TEXT

PLENTY = 100_000  # actions that no test here can use up
CONTEXT_TOKENS = 64

Agent = Callable[[Request], Reply]


def public(task: TaskInstance) -> PublicTask:
    return publish(task, prepare(task.spec))


def task_of(workload: str = "stepwise-sum", seed: int = 0, **options: int) -> TaskInstance:
    return generate(TaskSpec(workload, **{"n": 20, "m": 8, "seed": seed, **options}))


def retention(task: TaskInstance, policy: str, h: int) -> Retention:
    return Retention(find_policy(policy).for_task(outlook_of(task)), h)


def controlled(task: TaskInstance, h: int, policy: str = "fifo", **options: object) -> ControlledSession:
    return ControlledSession(public(task), retention(task, policy, h), **options)


def cache(policy: str) -> Callable[[TaskInstance, int], Condition]:
    return lambda task, h: Cache(retention(task, policy, h))


CONDITIONS: dict[str, Callable[[TaskInstance, int], Condition]] = {
    "fifo": cache("fifo"),
    "window": cache("window"),
    "lru": cache("lru"),
    "lfu": cache("lfu"),
    "belady": cache("belady"),
    "kv": lambda task, h: KeyValueStore(h),
    "scratch": lambda task, h: Scratch(task.spec, public(task).width, h),
    "scratch-lru": lambda task, h: ScratchLru(task.spec, public(task).width, h),
    "paging": lambda task, h: Paging(),
    "compaction": lambda task, h: Compaction(task.spec, CONTEXT_TOKENS),
    "external": lambda task, h: External(retention(task, "window", h)),
}


def managed(task: TaskInstance, condition: str, h: int = 4, protocol: str = TEXT, **options: object) -> ManagedSession:
    """Return the action loop under a condition; forced paging gets reads unless some are given."""
    if condition == "paging":
        options = {"reads": None, **options}
    session = ManagedSession(public(task), CONDITIONS[condition](task, h), ManagedOptions(**options))
    session.protocol = protocol
    return session


@dataclass
class Played:
    """What a session did with an agent."""

    requests: list[Request] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    @property
    def decisions(self) -> list[Decision]:
        return [event for event in self.events if isinstance(event, Decision)]

    @property
    def actions(self) -> list[ActionTaken]:
        return [event for event in self.events if isinstance(event, ActionTaken)]

    @property
    def prompts(self) -> list[str]:
        return [request.messages[-1].content for request in self.requests]


def play(session: Session, agent: Agent, memory: Callable[[MemoryCall], MemoryResult] | None = None) -> Played:
    """Drive a session without waiting for anything; asking twice must change nothing."""
    played = Played()
    while (request := session.request()) is not None:
        assert session.request() == request
        if isinstance(request, MemoryCall):
            session.receive_memory(MemoryResult() if memory is None else memory(request))
        else:
            played.requests.append(request)
            session.receive(agent(request))
        played.events += session.drain()
    assert session.ending is not None
    assert session.request() is None
    return played


def script(*texts: str) -> Agent:
    """Return an agent that says these texts in turn, then DONE for ever."""
    left = list(texts)
    return lambda request: Reply(left.pop(0) if left else "DONE")


def run_reference(name: str, session: Session, memory: MemorySystem | None = None, **extra: object) -> Trace:
    """Drive a session with a reference agent; an external condition gets exact key–value memory unless told."""
    if memory is None and isinstance(session, ManagedSession) and isinstance(session.condition, External):
        memory = KeyValueMemory()
    return asyncio.run(drive(session, make_reference(name, ModelOptions(extra=extra)), memory))


def accuracy(task: TaskInstance, trace: Trace) -> float:
    right = sum(decision.submitted == task.step(decision.t).answer for decision in trace.decisions)
    return right / task.spec.n
