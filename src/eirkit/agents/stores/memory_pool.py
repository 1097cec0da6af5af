"""The open memory systems of one worker: set up on first use, discarded after a failure, torn down at the end.

A system whose run failed is not used again, because its process may be gone or its state inconsistent.
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

SETUP_SECONDS = 600.0  # the first start may load a model or create a database
TEARDOWN_SECONDS = 30.0


class MemoryPool:
    """Open memory systems; use `scope` for each run and `close` at the end.

    Args:
        make: makes the models of systems that call one.
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
                await self._leave(key)  # the failure of a model does not affect the store
            raise

    async def _set_up(self, key: str, memory: MemorySystem) -> None:
        try:
            await call_with_timeout(SETUP_SECONDS, "setup", memory.setup)
        except BaseException:
            await self._leave(key)
            raise

    async def _leave(self, key: str) -> None:
        memory = self._open.pop(key)
        with suppress(Exception):  # the original error is already being raised
            await call_with_timeout(TEARDOWN_SECONDS, "teardown", memory.teardown)

    async def close(self) -> None:
        for key in list(self._open):
            await self._leave(key)  # its runs are already stored


def _leaves_it_unsound(error: BaseException) -> bool:
    """True if a system must not be used again because it failed itself or was interrupted."""
    side = error.side if isinstance(error, PluginError) else None
    return side == "memory" or isinstance(error, StoreError) or not isinstance(error, Exception)


def _truth(task: TaskInstance) -> dict[str, str]:
    return {label_of(step.t): show_record(task.spec, step.t, step.answer) for step in task.steps}
