"""The journal of a folder's money, ledger.jsonl: cap, prices, and every call before it is made and after it has ended.

A record is on disk before its call is sent, so a kill loses no money: a call without an end was in flight, and counts
with the most that it may have cost. Only one process writes; every line has a checksum.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

from eirkit.errors import InfrastructureError, InputFileError
from eirkit.lacuna.models.ledger import AGENT, NOTHING, CallSizes, Hold, Ledger, Spending
from eirkit.lacuna.models.model import Usage
from eirkit.lacuna.models.prices import Price
from eirkit.records.lines import RecordWriter, read_records

LEDGER, LEDGER_SCHEMA = "ledger.jsonl", "ledger/1"
_COUNTS = ("input_tokens", "output_tokens", "cached_tokens")

PriceKey = tuple[str, str | None]  # model and base URL


@dataclass(slots=True)
class AttemptSpend:
    """The paid calls of one attempt at a run."""

    run: str
    part: str  # "control", or "" for the sweep itself
    usage: dict[str, int] = field(default_factory=lambda: {"calls": 0, **dict.fromkeys(_COUNTS, 0)})  # of the agent
    usd: dict[str, Decimal] = field(default_factory=dict)  # billed, by who asked
    uncertain_usd: Decimal = NOTHING  # unconfirmed, or in flight at a kill

    @property
    def cell(self) -> str:
        return self.run.rpartition("-")[0]


@dataclass(slots=True)
class ModelCalls:
    """The paid calls of one model for agents."""

    calls: int = 0
    chars: int = 0  # of prompts
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


@dataclass(slots=True)
class Journal:
    """What a journal says."""

    cap_usd: Decimal | None = None
    prices: dict[PriceKey, Price | None] = field(default_factory=dict)
    spending: Spending = field(default_factory=Spending)
    attempts: dict[int, AttemptSpend] = field(default_factory=dict)
    models: dict[str, ModelCalls] = field(default_factory=dict)
    calls: int = 0  # the last number in use
    holds: dict[int, tuple[Hold, int | None, str]] = field(default_factory=dict)  # not ended: attempt and who asked
    _runs: dict[str, list[AttemptSpend]] = field(default_factory=dict)

    def settled(self) -> Journal:
        """Count the calls that have not ended as in flight at a kill, and return the journal."""
        for hold, attempt, _ in self.holds.values():
            self.spending.in_flight_usd += hold.usd
            if attempt is not None:
                self.attempts[attempt].uncertain_usd += hold.usd
        self.holds = {}
        return self

    def by_cell(self) -> dict[str, dict[int, AttemptSpend]]:
        """Return the attempts of the sweep itself, by cell and number."""
        found: dict[str, dict[int, AttemptSpend]] = {}
        for number, one in self.attempts.items():
            if not one.part:
                found.setdefault(one.cell, {})[number] = one
        return found

    def of_run(self, run: str) -> list[AttemptSpend]:
        """Return the attempts at a run."""
        if not self._runs:
            for one in self.attempts.values():
                self._runs.setdefault(one.run, []).append(one)
        return self._runs.get(run, [])

    def as_json(self) -> dict[str, Any]:
        """Return the sums in dollars; `spent_usd` counts against the cap."""
        now = self.spending
        parts = [one for one in self.attempts.values() if one.part]
        control = sum((sum(one.usd.values(), one.uncertain_usd) for one in parts), NOTHING)
        return {
            "cap_usd": None if self.cap_usd is None else float(self.cap_usd),
            "spent_usd": float(now.total_usd),
            "billed_usd": float(now.billed_usd),
            "unconfirmed_usd": float(now.unconfirmed_usd),
            "in_flight_usd": float(now.in_flight_usd),
            "over_usd": float(now.over_usd),
            "over_calls": now.over_calls,
            "control_usd": float(control),
        }


def read_journal(folder: Path) -> Journal | None:
    """Return the journal of a folder; None if nothing was paid for there.

    Raises:
        InputFileError: a line was changed.
    """
    found, path = Journal(), folder / LEDGER
    if not path.exists():
        return None
    for number, record in enumerate(read_records(path, LEDGER_SCHEMA, sealed=True), 1):
        try:
            _READERS[record["type"]](found, record)
        except (KeyError, ValueError, TypeError, ArithmeticError) as error:
            raise InputFileError(f"{path}:{number}: not an entry of a ledger; restore the file") from error
    return found.settled()


def is_without_calls(path: Path) -> bool:
    """True for the journal of a sweep that was killed before its manifest was written: it has terms only."""
    return b'"type":"hold"' not in path.read_bytes()


def _read_cap(found: Journal, record: Mapping[str, Any]) -> None:
    found.cap_usd = None if record["usd"] is None else Decimal(record["usd"])


def _read_price(found: Journal, record: Mapping[str, Any]) -> None:
    rates = {name: Decimal(record[name]) for name in ("input", "output", "cached")}
    price = Price(**rates, as_of=date.fromisoformat(record["as_of"]), up_to_tokens=record["up_to_tokens"])
    found.prices[record["model"], record["base_url"]] = price


def _read_attempt(found: Journal, record: Mapping[str, Any]) -> None:
    found.attempts[record["attempt"]] = AttemptSpend(record["run"], record["part"])


def _read_hold(found: Journal, record: Mapping[str, Any]) -> None:
    factor = Decimal(record.get("factor", 1))
    hold = Hold(record["call"], record["model"], Decimal(record["usd"]), record.get("chars", 0), factor)
    hold = replace(hold, is_rest=bool(record.get("rest")))
    found.holds[hold.number] = (hold, record.get("attempt"), record.get("by", AGENT))
    found.calls = max(found.calls, hold.number)


def _read_end(found: Journal, record: Mapping[str, Any]) -> None:
    hold, attempt, by = found.holds.pop(record["call"])
    usd, unconfirmed = Decimal(record["usd"]), Decimal(record.get("unconfirmed_usd", 0))
    found.spending.settle(hold, usd, unconfirmed, "input_tokens" in record)
    is_reported = bool(record.get("input_tokens", 0) + record.get("output_tokens", 0))
    if is_reported:
        sizes = found.spending.sizes.setdefault(hold.model, CallSizes())
        sizes.add(hold.chars, record["input_tokens"], record["output_tokens"])
    if attempt is None:
        return
    own = found.attempts[attempt]
    own.usd[by] = own.usd.get(by, NOTHING) + usd
    own.uncertain_usd += unconfirmed
    if by == AGENT and "input_tokens" in record:
        own.usage["calls"] += 1
        for name in _COUNTS:
            own.usage[name] += record[name]
        if not is_reported:
            return  # of which estimates can learn nothing
        model = found.models.setdefault(hold.model, ModelCalls())
        model.calls, model.chars = model.calls + 1, model.chars + hold.chars
        for name in _COUNTS:
            setattr(model, name, getattr(model, name) + record[name])


_READERS = {"cap": _read_cap, "price": _read_price, "attempt": _read_attempt, "hold": _read_hold, "end": _read_end}


class SpendJournal(Ledger):
    """A ledger that is kept in a folder.

    Args:
        cap_usd: the cap that the user gives now; None to keep the folder's, infinity to lift it.
        is_new: the folder is to be begun anew, whatever a sweep left there that was killed before it began.
    """

    def __init__(self, folder: Path, cap_usd: Decimal | float | None = None, *, is_new: bool = False) -> None:
        super().__init__(cap_usd)
        self.path, self.part = folder / LEDGER, ""
        self._is_new, self._recorded_cap = is_new, None
        self._writer: RecordWriter | None = None
        self._unwritten: list[Mapping[str, Any]] = []  # not open yet, or the disk failed
        then = self._read()
        self.prices, self._recorded_cap = then.prices, then.cap_usd
        if cap_usd is None:
            self.cap_usd = then.cap_usd
        elif self.cap_usd is not None and self.cap_usd.is_infinite():
            self.cap_usd = None

    def _read(self) -> Journal:
        then = (None if self._is_new else read_journal(self.path.parent)) or Journal()
        self.spending = then.spending
        self._calls, self._attempts = count(then.calls + 1), count(max(then.attempts, default=0) + 1)
        return then

    def note_price(self, model: str, base_url: str | None, price: Price) -> None:
        """Record the price of a model, if it is not the one in the folder."""
        if price.is_free() or self.prices.get((model, base_url)) == price:
            return
        self.prices[model, base_url] = price
        rates = {name: str(getattr(price, name)) for name in ("input", "output", "cached")}
        more = {"up_to_tokens": price.up_to_tokens, "as_of": price.as_of.isoformat()}
        self._unwritten.append({"type": "price", "model": model, "base_url": base_url, **rates, **more})

    def open(self) -> None:
        """Keep other writers away, read what was spent, and write the cap and the prices, if anything costs money."""
        if self._writer is not None:
            return
        if self.cap_usd != self._recorded_cap:
            usd = None if self.cap_usd is None else str(self.cap_usd)
            self._unwritten.insert(0, {"type": "cap", "usd": usd})
            self._recorded_cap = self.cap_usd
        if self._unwritten or self.path.exists():
            self._write(is_durable=True)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._writer is not None:
            self._writer.__exit__(None, None, None)
            self._writer = None

    def _begin(self, hold: Hold) -> Hold:
        if not hold.usd:
            return hold  # the price is nothing or unknown, and the bill will tell
        self.open()
        self._write()  # what could not be written before
        entries = _entries(hold, self.part)
        try:
            self._write(*entries, is_durable=True)
        except InfrastructureError:
            self._unwritten = self._unwritten[: -len(entries)]  # the call is not made
            raise
        if hold.payer is not None:
            hold.payer.account.is_written = True
        return replace(hold, is_written=True)

    def _end(self, hold: Hold, usd: Decimal, unconfirmed_usd: Decimal, usage: Usage | None) -> None:
        if not hold.is_written and not usd:
            return
        entry: dict[str, Any] = {"type": "end", "call": hold.number, "usd": str(usd)}
        if unconfirmed_usd:
            entry["unconfirmed_usd"] = str(unconfirmed_usd)
        if usage is not None:
            entry |= {name: getattr(usage, name) for name in _COUNTS}
        before = [] if hold.is_written else _entries(hold, self.part)
        if hold.payer is not None:
            hold.payer.account.is_written = True
        with suppress(InfrastructureError):  # keep the paid reply; the next call raises the error
            self._write(*before, entry, is_durable=bool(before))

    def _write(self, *entries: Mapping[str, Any], is_durable: bool = False) -> None:
        """Write entries after those that could not be written; the end of a call need not be durable.

        Without it, the call counts with the most that it may have cost.
        """
        self._unwritten += entries
        try:
            if self._writer is None:
                if self._is_new:
                    self.path.unlink(missing_ok=True)
                    self._is_new = False
                had_entries = self.path.exists()
                self._writer = RecordWriter(self.path, LEDGER_SCHEMA, sealed=True).__enter__()
                if had_entries:  # another process may have written until now
                    self._read()
            if self._unwritten:
                self._writer.append(*self._unwritten, fsync=is_durable)
        except OSError as error:
            raise InfrastructureError(
                f"{self.path}: {error.strerror}, so spending cannot be recorded; free disk space and resume"
            ) from error
        self._unwritten = []


def _entries(hold: Hold, part: str) -> list[dict[str, Any]]:
    """Return the entries of a call before it is made; the first of an attempt names its run."""
    entry: dict[str, Any] = {"type": "hold", "call": hold.number, "usd": str(hold.usd), "model": hold.model}
    if hold.chars:
        entry["chars"] = hold.chars
    if hold.factor != 1:
        entry["factor"] = str(hold.factor)
    if hold.is_rest:
        entry["rest"] = True
    if hold.payer is None:
        return [entry]
    account, by = hold.payer.account, hold.payer.by
    entry |= {"attempt": account.attempt} | ({"by": by} if by != AGENT else {})
    first = {"type": "attempt", "attempt": account.attempt, "run": account.run, "part": part}
    return [entry] if account.is_written else [first, entry]
