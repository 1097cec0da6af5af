"""Turns `--cap-usd`, `--prices` and `--cache` into the ledger, prices and cache of a plan, and pools its models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import msgspec

from eirkit.errors import PluginError
from eirkit.lacuna import EXTRACTOR, MODEL
from eirkit.lacuna.agents.reference import Reference
from eirkit.lacuna.memories.plan import memory_factory
from eirkit.lacuna.models.factory import make_model, preflight, split_model
from eirkit.lacuna.models.ledger import Ledger
from eirkit.lacuna.models.metered import Metered
from eirkit.lacuna.models.model import Model, ModelOptions, close_model
from eirkit.lacuna.models.prices import Price, PriceList, load_prices
from eirkit.lacuna.models.reply_cache import ReplyCache
from eirkit.lacuna.runs.cells import Cell, RunPlan
from eirkit.lacuna.runs.journal import SpendJournal
from eirkit.records.database import SweepWriter


@dataclass(frozen=True, slots=True)
class SpendingLimits:
    """The spending cap, the price file and the reply cache of a plan; what is not given is kept from before."""

    cap_usd: Decimal | float | None = None  # in total, over all parts of a resumed sweep; infinity lifts it
    prices: Path | None = None  # the user's price file
    cache: Path | None = None  # of replies


class Budget:
    """Makes models that are metered and share one ledger.

    Args:
        folder: where spending is recorded; None to keep it in memory. Its cap and prices apply unless others are given.
        is_new: the folder is to be begun anew.
        unfinished: a file for the replies of runs that have not ended, so that a run that is cut short continues with
            its next call; None to begin such a run again.
    """

    def __init__(
        self,
        funds: SpendingLimits | None = None,
        folder: Path | None = None,
        *,
        is_new: bool = False,
        unfinished: Path | None = None,
    ) -> None:
        self.funds, self.folder = funds or SpendingLimits(), folder
        cap = self.funds.cap_usd
        self.journal = None if folder is None else SpendJournal(folder, cap, is_new=is_new)
        self.ledger = self.journal or Ledger(cap)
        self._cache = None if self.funds.cache is None else ReplyCache(self.funds.cache)
        self._unfinished = None if unfinished is None else ReplyCache(unfinished)
        self._prices = load_prices(self.funds.prices)

    @property
    def keeps_replies(self) -> bool:
        """Whether a run that was cut short goes on with the replies that it had."""
        return self._unfinished is not None or self._cache is not None

    def make(self, string: str, options: ModelOptions) -> Model:
        """Return the model that a string names.

        Raises:
            UsageError: it is unknown, or lacks a key, a package or a price.
        """
        model = make_model(string, options)
        if not is_scripted(model):
            price = self.price_of(string, options)
            model = Metered(
                model,
                string,
                options,
                price=price,
                ledger=self.ledger,
                cache=self._cache,
                unfinished=self._unfinished,
            )
        preflight(model)
        return model

    def price_of(self, string: str, options: ModelOptions) -> Price | None:
        """Return the price of a model: that of the given file, else the folder's, else the built-in one."""
        base_url = options.base_url
        kept = {} if self.journal is None else self.journal.prices
        given = PriceList({}, self._prices.own).find(string, base_url)
        price = given or kept.get((string, base_url)) or self._prices.find(string, base_url)
        if price is not None and self.journal is not None:
            self.journal.note_price(string, base_url, price)
        return price.batched() if price is not None and options.batched else price

    def open(self, database: SweepWriter) -> None:
        """Record the terms and read what was spent, before the first call."""
        if self.journal is not None:
            self.journal.open(database)

    def close(self) -> None:
        if self.journal is not None:
            self.journal.close()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Attribute what is spent inside to a part of the sweep, such as its control."""
        if self.journal is None:
            yield
            return
        self.journal.part = name
        try:
            yield
        finally:
            self.journal.part = ""


def is_scripted(model: Model) -> bool:
    """True for reference agents, which answer immediately and for free, so that concurrency gains nothing."""
    return isinstance(model, Reference)


FREE = ("reference", "scripted", "local", "bundled")  # providers whose models cost nothing


def asks_paid_model(cell: Cell) -> bool:
    """True if the memory system of a cell asks a model that may cost money."""
    plan = cell.memory_plan
    return plan is not None and split_model(str(plan.settings.get(MODEL, EXTRACTOR)))[0] not in FREE


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
                memory_factory().make_memory(cell.memory_plan, make=budget.make)
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
    return msgspec.json.encode((cell.model, cell.options.asked(cell.protocol)), order="sorted")
