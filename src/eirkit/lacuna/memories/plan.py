"""Memory systems as they are planned: name, settings and limit; and the pool that keeps those that a worker has open.

A system whose run failed is not used again, because its process may be gone or its state inconsistent.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any, Protocol

from eirkit.errors import PluginError, StoreError
from eirkit.lacuna.memories import FACTORY
from eirkit.lacuna.memories.calls import call_with_timeout
from eirkit.lacuna.memories.memory import MemorySystem, label_of
from eirkit.lacuna.memories.times import CALL_SECONDS, SETUP_SECONDS, TEARDOWN_SECONDS
from eirkit.lacuna.models.factory import make_model
from eirkit.lacuna.models.model import Model, ModelOptions
from eirkit.lacuna.tasks.task import GeneratedTask, TaskInstance, show_record
from eirkit.records.runs import MemoryProfile

ModelMaker = Callable[[str, ModelOptions], Model]
CROWD = "eirkit.lacuna.memories.crowd"
TIMEOUT = "timeout_seconds"  # a setting of eirkit, not of the system


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """A memory system, its settings, and the number of records it is limited to (None: no limit)."""

    name: str
    settings: Mapping[str, Any]
    limit: int | None = None
    options: ModelOptions = field(default_factory=ModelOptions)  # of the model that the system calls, if it calls one

    @property
    def seconds(self) -> float:
        return float(self.settings.get(TIMEOUT, CALL_SECONDS))


class MemoryFactory(Protocol):
    """What runs with a memory system need beside other runs: functions of `eirkit.lacuna.memories.factory`."""

    def check_plan(self, plan: MemoryPlan) -> None: ...

    def make_memory(
        self, plan: MemoryPlan, truth: Mapping[str, str] | None = None, make: ModelMaker = make_model
    ) -> MemorySystem: ...

    def model_of(self, name: str, settings: Mapping[str, Any]) -> str | None: ...

    def profile_record(self, plan: MemoryPlan | None) -> MemoryProfile | None: ...

    def passages_asked(self, plan: MemoryPlan) -> int | None: ...

    def recall_writes(self, plan: MemoryPlan) -> bool: ...

    def sees_truth(self, name: str) -> bool: ...

    def forgets(self, plan: MemoryPlan) -> bool: ...


def memory_factory() -> MemoryFactory:
    """Return what makes memory systems; it is imported with the first of them."""
    found: Any = import_module(FACTORY)
    return found  # type: ignore[no-any-return]


class MemoryPool:
    """The memory system that is open; use `scope` for each run and `close` at the end.

    Runs come cell by cell, so a system is closed when a run asks for another one.

    Args:
        make: makes the models of systems that call one.
    """

    def __init__(self, make: ModelMaker = make_model) -> None:
        self.make = make
        self._open: dict[str, MemorySystem] = {}
        self._runs: dict[str, str] = {}  # for which the scope of each was begun

    def holds(self, plan: MemoryPlan, run: str) -> bool:
        """True if the scope that was begun for a run is open."""
        return self._runs.get(_key(plan)) == run

    @asynccontextmanager
    async def scope(
        self, plan: MemoryPlan, run: str, task: GeneratedTask, *, goes_on: bool = False
    ) -> AsyncIterator[MemorySystem]:
        """Yield a system with an empty scope for one run.

        Args:
            goes_on: with the scope as another run has left it, which must be open.
        """
        users = [_key(plan)]
        users += [f"{users[0]} {user}" for user in range(2, _users(task) + 1)]
        factory = memory_factory()
        if users[0] not in self._open or factory.sees_truth(plan.name):  # made for each task if it may see its answers
            await self.close()
        try:
            for user, key in enumerate(users, 1):
                if key not in self._open:
                    self._open[key] = factory.make_memory(plan, _truth(task), self.make)
                    await self._set_up(key, self._open[key])
                if not goes_on:
                    self._runs.pop(key, None)
                    scope = run if user == 1 else f"{run}-user-{user}"
                    await call_with_timeout(plan.seconds, "reset", self._open[key].reset, scope)
                    self._runs[key] = run
            memory, *others = (self._open[key] for key in users)
            if others:
                crowd = import_module(CROWD).CrowdedMemory
                memory = crowd(memory, others, str(task.spec.seed), deletes=factory.forgets(plan))
            yield memory
        except BaseException as error:
            if _leaves_it_unsound(error):  # the failure of a model does not affect the store
                for key in users:
                    await self._leave(key)
            raise

    async def _set_up(self, key: str, memory: MemorySystem) -> None:
        try:
            await call_with_timeout(SETUP_SECONDS, "setup", memory.setup)
        except BaseException:
            await self._leave(key)
            raise

    async def _leave(self, key: str) -> None:
        memory = self._open.pop(key, None)
        self._runs.pop(key, None)
        if memory is None:
            return
        with suppress(Exception):  # the original error is already being raised
            await call_with_timeout(TEARDOWN_SECONDS, "teardown", memory.teardown)

    async def close(self, *, keep_processes: bool = False) -> None:
        """Close what is open.

        Args:
            keep_processes: leave a system in a process of its own open, which the next event loop can go on using.
        """
        for key, memory in list(self._open.items()):
            if not (keep_processes and getattr(memory, "survives_loops", False)):
                await self._leave(key)  # its runs are already stored


def _key(plan: MemoryPlan) -> str:
    return json.dumps([plan.name, dict(plan.settings), plan.limit, asdict(plan.options)], sort_keys=True)


def _leaves_it_unsound(error: BaseException) -> bool:
    """True if a system must not be used again because it failed itself or was interrupted."""
    side = error.side if isinstance(error, PluginError) else None
    return side == "memory" or isinstance(error, StoreError) or not isinstance(error, Exception)


def _users(task: GeneratedTask) -> int:
    """Return how many users of the system work at the same time."""
    return task.spec.users if isinstance(task, TaskInstance) and any(step.target for step in task.steps) else 1


def _truth(task: GeneratedTask) -> dict[str, str]:
    """Return the right records of a task of numbers by label; a conversation has none."""
    if not isinstance(task, TaskInstance):
        return {}
    return {label_of(step.t): show_record(task.spec, step.t, step.answer) for step in task.steps}
