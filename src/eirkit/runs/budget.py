"""What asking models may cost: a cap, a price file and a reply cache come in, models that pay from one purse go out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from eirkit.agents.model import Model, ModelOptions
from eirkit.agents.models.reference import Reference
from eirkit.agents.serving.metered import Metered
from eirkit.agents.serving.model_factory import make_model, preflight
from eirkit.agents.serving.prices import load_prices
from eirkit.agents.serving.reply_cache import ReplyCache
from eirkit.agents.serving.spend import Ledger
from eirkit.errors import InfrastructureError
from eirkit.records import append_records, read_records

SPENT = "spent.jsonl"
SPENT_SCHEMA = "spent/1"


@dataclass(frozen=True, slots=True)
class SpendingLimits:
    """What may be spent, and what spares spending."""

    cap_usd: float | None = None  # in all, over every part of a sweep that is resumed
    prices: Path | None = None  # the user's price file
    cache: Path | None = None  # of replies


class SpendJournal(Ledger):
    """A ledger that writes down every dollar at once, so that a cap holds over kills and resumes."""

    def __init__(self, cap_usd: float | None, folder: Path) -> None:
        super().__init__(cap_usd)
        self.path = folder / SPENT
        self._unwritten: list[float] = []  # spent, but the disk would not take it

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
            with suppress(
                InfrastructureError
            ):  # a paid reply is not thrown away with the disk; the next call is not made
                self._write()

    def _write(self) -> None:
        try:
            append_records(self.path, SPENT_SCHEMA, [{"usd": usd} for usd in self._unwritten], fsync=True)
        except OSError as error:
            raise InfrastructureError(
                f"{self.path}: {error.strerror}, so what is spent cannot be written down; make room and go on"
            ) from error
        self._unwritten = []


class Budget:
    """Funds in use: every model that it makes is metered and pays from the same ledger.

    Args:
        folder: where spending is written down; None to keep it in memory.
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
    """True for agents that answer at once and cost nothing, so that nothing is gained by asking several at a time."""
    return isinstance(model, Reference)
