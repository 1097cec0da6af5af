"""Spending limits of a plan (cap, prices, reply cache) and the pool of its metered models."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from eirkit.agents.model import Model, ModelOptions, canonical, close_model
from eirkit.agents.models.reference import Reference
from eirkit.agents.serving.metered import Metered, ReplyCache
from eirkit.agents.serving.model_factory import make_model, preflight
from eirkit.agents.serving.prices import Ledger, load_prices
from eirkit.agents.stores.memory_factory import make_memory
from eirkit.errors import InfrastructureError, PluginError
from eirkit.records import append_records, read_records
from eirkit.runs.cells import Cell, RunPlan

SPENT = "spent.jsonl"
SPENT_SCHEMA = "spent/1"


@dataclass(frozen=True, slots=True)
class SpendingLimits:
    """The spending cap, the price file and the reply cache of a plan."""

    cap_usd: float | None = None  # in total, over all parts of a resumed sweep
    prices: Path | None = None  # the user's price file
    cache: Path | None = None  # of replies


class SpendJournal(Ledger):
    """A ledger that writes every expense to disk immediately, so that the cap holds across kills and resumes."""

    def __init__(self, cap_usd: float | None, folder: Path) -> None:
        super().__init__(cap_usd)
        self.path = folder / SPENT
        self._unwritten: list[float] = []  # spent, but not yet written because the disk failed

    def read(self) -> None:
        if self.path.exists():
            self.spent_usd = sum(record["usd"] for record in read_records(self.path, SPENT_SCHEMA))

    async def hold(self, most_usd: float) -> float:
        if self._unwritten:
            self._write()
        return await super().hold(most_usd)

    def settle(self, held_usd: float, spent_usd: float) -> None:
        super().settle(held_usd, spent_usd)
        if spent_usd:
            self._unwritten.append(spent_usd)
            with suppress(InfrastructureError):  # keep the paid reply; the next call raises the error
                self._write()

    def _write(self) -> None:
        try:
            append_records(self.path, SPENT_SCHEMA, [{"usd": usd} for usd in self._unwritten], fsync=True)
        except OSError as error:
            raise InfrastructureError(
                f"{self.path}: {error.strerror}, so spending cannot be recorded; free disk space and resume"
            ) from error
        self._unwritten = []


class Budget:
    """Makes models that are metered and share one ledger.

    Args:
        folder: where spending is recorded; None to keep it in memory.
    """

    def __init__(self, funds: SpendingLimits | None = None, folder: Path | None = None) -> None:
        self.funds = funds or SpendingLimits()
        self.ledger = Ledger(self.funds.cap_usd) if folder is None else SpendJournal(self.funds.cap_usd, folder)
        self._cache = None if self.funds.cache is None else ReplyCache(self.funds.cache)
        self._prices = load_prices(self.funds.prices)

    def make(self, string: str, options: ModelOptions) -> Model:
        """Return the model that a string names.

        Raises:
            UsageError: it is unknown, or lacks a key, a package or a price.
        """
        model = make_model(string, options)
        if not is_scripted(model):
            price = self._prices.find(string, options.base_url)
            model = Metered(model, string, options, price=price, ledger=self.ledger, cache=self._cache)
        preflight(model)
        return model


def is_scripted(model: Model) -> bool:
    """True for reference agents, which answer immediately and for free, so that concurrency gains nothing."""
    return isinstance(model, Reference)


class ModelPool:
    """The models of a plan, one for all cells with the same model and settings.

    Models and memory systems are made in the constructor, so that anything missing is reported before the first run.

    Raises:
        UsageError: a model is unknown, or lacks a key, a package or a price, or a memory system cannot run here.
    """

    def __init__(self, plan: RunPlan, budget: Budget) -> None:
        self.budget = budget
        self._models: dict[bytes, Model] = {}
        for cell, _ in plan.plan():
            if cell.memory_plan is not None:
                make_memory(cell.memory_plan, make=budget.make)
            if (key := _key(cell)) not in self._models:
                self._models[key] = budget.make(cell.model, cell.options)

    def of(self, cell: Cell) -> Model:
        return self._models[_key(cell)]

    def all(self) -> list[Model]:
        return list(self._models.values())

    async def close(self) -> None:
        failure: PluginError | None = None
        for model in self._models.values():
            try:
                await close_model(model)
            except PluginError as error:  # close the others anyway
                failure = failure or error
        if failure is not None:
            raise failure


def _key(cell: Cell) -> bytes:
    return canonical({"model": cell.model, "settings": cell.settings()})
