"""Runs of reference agents for tests: one line from a specification to a trace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from eirkit.cli import main
from eirkit.lacuna.agents.conditions import Cache, Condition, ManagedOptions
from eirkit.lacuna.agents.driver import drive
from eirkit.lacuna.agents.managed import ManagedSession
from eirkit.lacuna.agents.prompt import renderer_of
from eirkit.lacuna.agents.reference import make_reference
from eirkit.lacuna.agents.session import ControlledSession, Injector, Session, inject_nothing
from eirkit.lacuna.agents.telemetry import Trace
from eirkit.lacuna.models.factory import make_model
from eirkit.lacuna.models.model import Model, ModelOptions, Reply, Request
from eirkit.lacuna.runs.sessions import make_session
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.policy import Retention, find_policy
from eirkit.lacuna.tasks.simulation.plain import outlook_of
from eirkit.lacuna.tasks.task import TaskInstance, TaskSpec
from eirkit.lacuna.tasks.view import publish
from eirkit.records.settings import Access


class Scripted:
    """A model that says what it was given, line by line, and nothing more."""

    def __init__(self, replies: list[str]) -> None:
        self.replies = list(replies)

    async def reply(self, request: Request) -> Reply:
        return Reply(self.replies.pop(0) if self.replies else "")

    async def close(self) -> None:
        pass

    def settings(self) -> dict[str, Any]:
        return {}


def agent(name: str, **extra: Any) -> Model:
    return make_reference(name, ModelOptions(extra=extra))


def retention(task: TaskInstance, h: int, policy: str = "fifo") -> Retention:
    return Retention(find_policy(policy).for_task(outlook_of(task)), h)


def controlled(task: TaskInstance, model: Model, h: int, inject: Injector = inject_nothing) -> Trace:
    """Run a task under Controlled Retention over the last h records."""
    session = ControlledSession(publish(task, prepare(task.spec)), retention(task, h), inject)
    return asyncio.run(drive(session, model))


def managed(
    task: TaskInstance,
    model: Model,
    h: int,
    options: ManagedOptions | None = None,
    policy: str = "lru",
    condition: Condition | None = None,
) -> Trace:
    """Run a task in the action loop, with a key–value cache unless another condition is given."""
    kept = condition or Cache(retention(task, h, policy))
    return asyncio.run(drive(ManagedSession(publish(task, prepare(task.spec)), kept, options), model))


def drive_all(name: str, options: ModelOptions, sessions: Sequence[Session]) -> list[Trace]:
    """Drive sessions side by side with one model, written for in its own dialect."""

    async def run() -> list[Trace]:
        model = make_model(name, options)
        for session in sessions:
            session.renderer = renderer_of(name, options)
        try:
            return await asyncio.gather(*(drive(session, model) for session in sessions))
        finally:
            await model.close()

    return asyncio.run(run())


def full_information(task: TaskInstance) -> Session:
    """Return a session in which every eligible answer is shown: h = m."""
    return make_session(Access(policy="fifo", h=task.spec.m), task, prepare(task.spec))


def eirkit(*arguments: str) -> int:
    """Run the command line in this process and return its exit code."""
    with pytest.raises(SystemExit) as leaving:
        main(list(arguments))
    return int(leaving.value.code or 0)


def task_of(workload: str, **fields: Any) -> TaskInstance:
    return generate(TaskSpec(workload, **fields))
