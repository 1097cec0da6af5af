"""A ledger that is kept in the database of a folder: every paid call before it is made and after it has ended."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from itertools import count
from pathlib import Path

import msgspec

from eirkit.errors import InfrastructureError
from eirkit.lacuna.models.ledger import Hold, Ledger, reserved_call
from eirkit.lacuna.models.prices import Price
from eirkit.records.database import DATABASE, PaidAttempt, PaidCall, SweepDatabase, SweepWriter
from eirkit.records.documents import MANIFEST
from eirkit.records.money import CAP, Journal, journal_of

PriceKey = tuple[str, str | None]  # model and base URL


def read_journal(folder: Path) -> Journal | None:
    """Return the money of a folder; None if nothing was paid for there."""
    if not (folder / DATABASE).exists():
        return None
    with SweepDatabase(folder) as database:
        return journal_of(database)


class SpendJournal(Ledger):
    """A ledger that is kept in a folder.

    Args:
        cap_usd: the cap that the user gives now; None to keep the folder's, infinity to lift it.
        is_new: the folder is to be begun anew, whatever a sweep left there that was killed before it began.
    """

    def __init__(self, folder: Path, cap_usd: Decimal | float | None = None, *, is_new: bool = False) -> None:
        super().__init__(cap_usd)
        self.folder, self.part = folder, ""
        self.prices: dict[PriceKey, Price] = {}
        self._database: SweepWriter | None = None
        self._unwritten: list[tuple[PaidCall, PaidAttempt | None, bool]] = []  # ends that the disk did not take
        self._new_prices: dict[PriceKey, Price] = {}
        then = Journal()
        if not is_new and (folder / MANIFEST).exists():  # before it is written, nothing is agreed
            with SweepDatabase(folder) as database:
                then = journal_of(database) or then
                for model, base_url, price in database.prices():
                    self.prices[model, base_url or None] = msgspec.json.decode(price, type=Price)
        self._take(then)
        self._recorded_cap = then.cap_usd
        if cap_usd is None:
            self.cap_usd = then.cap_usd
        elif self.cap_usd is not None and self.cap_usd.is_infinite():
            self.cap_usd = None

    def _take(self, then: Journal) -> None:
        self.spending = then.spending
        self._calls, self._attempts = count(then.calls + 1), count(max(then.attempts, default=0) + 1)

    def note_price(self, model: str, base_url: str | None, price: Price) -> None:
        """Record the price of a model, if it is not the one in the folder."""
        if not price.is_free() and self.prices.get((model, base_url)) != price:
            self.prices[model, base_url] = self._new_prices[model, base_url] = price

    def open(self, database: SweepWriter) -> None:
        """Read what was spent until now, and write the cap and the prices, if they are new."""
        if self._database is None:
            self._database = database
            self._take(journal_of(database) or Journal())
        terms = {} if self.cap_usd == self._recorded_cap else {CAP: None if self.cap_usd is None else str(self.cap_usd)}
        if terms or self._new_prices:
            prices = [
                (model, base_url or "", msgspec.json.encode(price))
                for (model, base_url), price in self._new_prices.items()
            ]
            database.agree(terms, prices)
            self._new_prices, self._recorded_cap = {}, self.cap_usd

    def close(self) -> None:
        """Let go of the database."""
        self._database = None

    @property
    def _opened(self) -> SweepWriter:
        if self._database is None:
            raise ValueError("the journal is not open; open the runner of its folder first")
        return self._database

    def _begin(self, hold: Hold) -> Hold:
        if not hold.usd:
            return hold  # the price is nothing or unknown, and the bill will tell
        self._write_ends()  # those that could not be written before
        self._opened.reserve(reserved_call(hold), self._first(hold))
        if hold.payer is not None:
            hold.payer.account.is_written = True
        return replace(hold, is_written=True)

    def _end(self, hold: Hold, call: PaidCall) -> None:
        if not hold.is_written and not call.billed_usd:
            return
        self._unwritten.append((call, None if hold.is_written else self._first(hold), hold.is_written))
        if hold.payer is not None:
            hold.payer.account.is_written = True
        with suppress(InfrastructureError):  # keep the paid reply; the next call raises the error
            self._write_ends()

    def _first(self, hold: Hold) -> PaidAttempt | None:
        """Return the attempt of a call, if this is the first one that it pays for."""
        if hold.payer is None or hold.payer.account.is_written:
            return None
        account = hold.payer.account
        return PaidAttempt(account.attempt, account.run, self.part)

    def _write_ends(self) -> None:
        if self._unwritten:
            self._opened.settle(self._unwritten)
            self._unwritten = []
