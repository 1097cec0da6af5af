"""The memory systems of one worker: set up when a run first needs them, left behind when they fail, torn down at last.

A system whose run failed is not used again: its process may be gone or its state half written. The next run gets a new
one.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from eirkit.agents.memory import MemorySystem
from eirkit.agents.memory_calls import call_with_timeout, label_of
from eirkit.agents.stores.memory_factory import MemoryPlan, ModelMaker, make_free_model, make_memory, sees_truth
from eirkit.errors import PluginError, StoreError
from eirkit.tasks.task import TaskInstance, show_record

SETUP_SECONDS = 600.0  # a first start may load a model or make a database
TEARDOWN_SECONDS = 30.0


class MemoryPool:
    """What is open; use `scope` for each run and `close` at the end.

    Args:
        make: makes the models of systems that ask one themselves.
    """

    def __init__(self, make: ModelMaker = make_free_model) -> None:
        self.make = make
        self._open: dict[str, MemorySystem] = {}

    @asynccontextmanager
    async def scope(self, plan: MemoryPlan, run: str, task: TaskInstance) -> AsyncIterator[MemorySystem]:
        """Yield a system with an empty scope for one run."""
        key = json.dumps([plan.name, dict(plan.settings), plan.limit], sort_keys=True)
        memory = self._open.get(key)
        if memory is None or sees_truth(plan.name):
            memory = self._open[key] = make_memory(plan, _truth(task), self.make)
            await self._set_up(key, memory)
        try:
            await call_with_timeout(plan.seconds, "reset", memory.reset, run)
            yield memory
        except BaseException as error:
            if _leaves_it_unsound(error):
                await self._leave(key)  # a model's failure leaves the store as it was
            raise

    async def _set_up(self, key: str, memory: MemorySystem) -> None:
        try:
            await call_with_timeout(SETUP_SECONDS, "setup", memory.setup)
        except BaseException:
            await self._leave(key)
            raise

    async def _leave(self, key: str) -> None:
        memory = self._open.pop(key)
        with suppress(Exception):  # what it failed with is already on its way
            await call_with_timeout(TEARDOWN_SECONDS, "teardown", memory.teardown)

    async def close(self) -> None:
        for key in list(self._open):
            await self._leave(key)  # its runs are written already


def _leaves_it_unsound(error: BaseException) -> bool:
    """True if a system must not be used again: it failed itself, or was interrupted; another's failure leaves it."""
    side = error.side if isinstance(error, PluginError) else None
    return side == "memory" or isinstance(error, StoreError) or not isinstance(error, Exception)


def _truth(task: TaskInstance) -> dict[str, str]:
    return {label_of(step.t): show_record(task.spec, step.t, step.answer) for step in task.steps}
