"""The models of a sweep, each made once before anything runs."""

from __future__ import annotations

from eirkit.agents.exchange import canonical
from eirkit.agents.model import Model, close_model
from eirkit.errors import PluginError
from eirkit.runs.budget import Budget
from eirkit.runs.cells import Cell
from eirkit.runs.suite import Suite


class ModelPool:
    """One model for all cells that ask it in the same way.

    Raises:
        UsageError: a model is unknown, or lacks a key, a package or a price.
    """

    def __init__(self, suite: Suite, purse: Budget) -> None:
        self.purse = purse
        self._models: dict[bytes, Model] = {}
        for cell, _ in suite.plan():
            if (key := _key(cell)) not in self._models:
                self._models[key] = purse.make(cell.model, cell.options)

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
