"""Wraps a memory system that calls a model: starts its endpoint and reports the usage of its model calls.

If that model fails, the run fails, even if the system swallows the error: what it stores or finds without its model is
not what is being measured.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from eirkit.agents.memory import Item, MemorySystem, MemoryUsage
from eirkit.agents.stores.endpoint import ModelEndpoint
from eirkit.errors import ModelError, StoreError

T = TypeVar("T")


class MeteredMemory(MemorySystem):
    """A memory system with its own metered endpoint; it is made once the URL is known.

    Args:
        make: takes the base URL and returns the system.
    """

    def __init__(self, endpoint: ModelEndpoint, make: Callable[[str], MemorySystem]) -> None:
        self.endpoint, self.make = endpoint, make
        self._system: MemorySystem | None = None

    @property
    def system(self) -> MemorySystem:
        if self._system is None:
            raise StoreError("the memory system is not set up; call setup first")
        return self._system

    async def setup(self) -> None:
        self._system = self.make(await self.endpoint.start())
        await self._through(self._system.setup())

    async def reset(self, scope: str) -> None:
        self.endpoint.clear()
        await self._through(self.system.reset(scope))
        self.endpoint.clear()  # calls that emptied the previous scope do not belong to this run

    async def write(self, item: Item) -> None:
        await self._through(self.system.write(item))

    async def flush(self) -> None:
        await self._through(self.system.flush())

    async def search(self, query: str, limit: int) -> Sequence[str]:
        return await self._through(self.system.search(query, limit))

    async def read(self, label: str) -> str | None:
        return await self._through(self.system.read(label))

    async def forget(self, label: str) -> None:
        await self._through(self.system.forget(label))

    async def usage(self) -> MemoryUsage:
        meter = self.endpoint.meter
        held: MemoryUsage | None = await self._through(self.system.usage())
        return replace(
            held or MemoryUsage(),
            model_calls=meter.calls,
            input_tokens=meter.input_tokens,
            output_tokens=meter.output_tokens,
            cost_usd=meter.cost_usd,
        )

    async def teardown(self) -> None:
        system, self._system = self._system, None
        try:
            if system is not None:
                await system.teardown()
        finally:
            await self.endpoint.stop()

    async def _through(self, work: Awaitable[T]) -> T:
        """Return the result of a call; a failure of the model behind the endpoint is raised instead of it."""
        try:
            done = await work
        except Exception as error:
            self._raise_failure(error)
            raise
        self._raise_failure(None)
        return done

    def _raise_failure(self, consequence: Exception | None) -> None:
        failure, self.endpoint.failure = self.endpoint.failure, None
        if isinstance(failure, ModelError):
            words = f"the model that the memory system asks: {failure}"
            raise ModelError(words, failure.kind, failure.retry_after_seconds) from failure
        if failure is not None:
            raise failure from consequence
