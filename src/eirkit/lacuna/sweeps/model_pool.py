"""The models of a sweep, each made once before anything runs, and the money they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eirkit.lacuna.model import Model
from eirkit.lacuna.models.reference import Reference
from eirkit.lacuna.serving.exchange import canonical
from eirkit.lacuna.serving.making import make_model, preflight
from eirkit.lacuna.serving.metered import Metered
from eirkit.lacuna.serving.prices import PriceList, load_prices
from eirkit.lacuna.serving.reply_cache import ReplyCache
from eirkit.lacuna.serving.spend import Ledger
from eirkit.lacuna.sweeps.cells import Cell
from eirkit.lacuna.sweeps.suite import Suite
from eirkit.records import append_records, read_records

SPENT = "spent.jsonl"
SPENT_SCHEMA = "spent/1"


@dataclass(frozen=True, slots=True)
class Funds:
    """What a sweep may spend, and what spares it spending."""

    cap_usd: float | None = None  # in all, over every part of a sweep that is resumed
    prices: Path | None = None  # the user's price file
    cache: Path | None = None  # of replies


class Journal(Ledger):
    """A ledger that writes down every dollar at once, so that a cap holds over kills and resumes."""

    def __init__(self, cap_usd: float | None, folder: Path) -> None:
        super().__init__(cap_usd)
        self.path = folder / SPENT

    def read(self) -> None:
        """Take in what earlier parts of the sweep have spent."""
        if self.path.exists():
            self.spent_usd = sum(record["usd"] for record in read_records(self.path, SPENT_SCHEMA))

    def settle(self, held_usd: float, spent_usd: float) -> None:
        super().settle(held_usd, spent_usd)
        if spent_usd:
            append_records(self.path, SPENT_SCHEMA, [{"usd": spent_usd}], fsync=True)


class ModelPool:
    """One model for all cells that ask it in the same way.

    Raises:
        UsageError: a model is unknown, or lacks a key, a package or a price.
    """

    def __init__(self, suite: Suite, funds: Funds, folder: Path) -> None:
        self.ledger = Journal(funds.cap_usd, folder)
        self._cache = None if funds.cache is None else ReplyCache(funds.cache)
        self._models: dict[bytes, Model] = {}
        prices = load_prices(funds.prices)
        for cell, _ in suite.plan():
            if (key := _key(cell)) not in self._models:
                self._models[key] = self._make(cell, prices)

    def of(self, cell: Cell) -> Model:
        return self._models[_key(cell)]

    def all(self) -> list[Model]:
        return list(self._models.values())

    def metering(self) -> list[Mapping[str, Any]]:
        """Return how each model behind a server was limited and what it took."""
        return [{"model": m.name, **m.metering()} for m in self._models.values() if isinstance(m, Metered)]

    async def close(self) -> None:
        for model in self._models.values():
            await model.close()

    def _make(self, cell: Cell, prices: PriceList) -> Model:
        model = make_model(cell.model, cell.options)
        if not is_scripted(model):
            price = prices.find(cell.model, cell.options.base_url)
            model = Metered(model, cell.model, cell.options, price=price, ledger=self.ledger, cache=self._cache)
        preflight(model)
        return model


def is_scripted(model: Model) -> bool:
    """True for agents that answer at once and cost nothing, so that nothing is gained by asking several at a time."""
    return isinstance(model, Reference)


def _key(cell: Cell) -> bytes:
    return canonical({"model": cell.model, "settings": cell.settings()})
