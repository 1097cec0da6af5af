"""The models of a plan, each made once before anything runs."""

from __future__ import annotations

from eirkit.agents.exchange import canonical
from eirkit.agents.model import Model, ModelOptions, close_model
from eirkit.agents.stores.memory_factory import make_memory
from eirkit.errors import PluginError
from eirkit.runs.budget import Budget
from eirkit.runs.cells import Cell
from eirkit.runs.plan import RunPlan


class ModelPool:
    """One model for all cells that ask it in the same way; memory systems are tried too, so that whatever is missing is
    known before anything runs.

    Raises:
        UsageError: a model is unknown, or lacks a key, a package or a price, or a memory system cannot be had.
    """

    def __init__(self, plan: RunPlan, budget: Budget) -> None:
        self.budget = budget
        self._models: dict[bytes, Model] = {}
        for cell, _ in plan.plan():
            if cell.memory_plan is not None:
                make_memory(cell.memory_plan, make=self.for_memory)
            if (key := _key(cell)) not in self._models:
                self._models[key] = budget.make(cell.model, cell.options)

    def for_memory(self, string: str) -> Model:
        """Make the model that a memory system asks; it is paid from the same budget."""
        return self.budget.make(string, ModelOptions())

    def of(self, cell: Cell) -> Model:
        return self._models[_key(cell)]

    def all(self) -> list[Model]:
        return list(self._models.values())

    async def close(self) -> None:
        failure: PluginError | None = None
        for model in self._models.values():
            try:
                await close_model(model)
            except PluginError as error:  # the others are closed all the same
                failure = failure or error
        if failure is not None:
            raise failure


def _key(cell: Cell) -> bytes:
    return canonical({"model": cell.model, "settings": cell.settings()})
