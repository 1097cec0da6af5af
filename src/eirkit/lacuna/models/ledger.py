"""Enforces the spending cap: money in exact decimals, reserved before each call and settled after it.

Every call first holds the most that it may cost. The sum of what is spent and held never exceeds the cap, except by
what a provider bills above the declared maximum of a call, which is counted apart and raises later holds of that model.

Near the cap, where that maximum no longer fits, calls are made one at a time, and each may have all that is left: its
limit on tokens is lowered to what that buys, so that little of a cap stays unspent.

Under a cap, runs that have begun come before others: a run starts only if the runs before it keep enough to finish, and
only the oldest run may use what is set aside for others. So one run at most is cut short when the cap is reached,
unless several at once cost more than was set aside for them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from decimal import Decimal
from hashlib import sha256
from itertools import count

from msgspec import structs

from eirkit.errors import SpendCapReached
from eirkit.lacuna.models.model import Usage
from eirkit.records.database import PaidCall
from eirkit.records.money import AGENT, NOTHING, RAISE, SpendingSoFar, exact_usd


@dataclass(frozen=True, slots=True)
class ModelSpend:
    """Calls, tokens and cost of one model so far."""

    calls: int = 0  # replies that the model gave
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  # part of input_tokens that the provider billed as cached
    cost_usd: Decimal = NOTHING  # of the calls with a known price
    unpriced_calls: int = 0  # replies whose cost is unknown; not in cost_usd
    unconfirmed_usd: Decimal = NOTHING  # most that calls without a usable reply may have cost; not in cost_usd
    retries: int = 0
    failures: int = 0  # requests given up
    cache_hits: int = 0  # replies from our own cache; none of the figures above counts them
    cache_input_tokens: int = 0  # what the hits would have sent and received
    cache_output_tokens: int = 0
    unsaved: int = 0  # replies that could not be written to the cache

    def __add__(self, other: ModelSpend) -> ModelSpend:
        return ModelSpend(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(slots=True)
class RunAccount:
    """The money of one attempt at a run while it lasts."""

    attempt: int  # unique within a folder
    run: str
    reserve_usd: Decimal = NOTHING  # set aside so that it can finish; 0 if nothing is known about its cost
    spent_usd: Decimal = NOTHING
    held_usd: Decimal = NOTHING
    is_written: bool = False  # whether any of its calls is in the journal
    asked: Counter[str] = field(default_factory=Counter)  # how often each request was made, by its key

    def own_key(self, key: str) -> str:
        """Return the key of a request within this run; of two equal requests each has its own."""
        self.asked[key] += 1
        return sha256(f"{self.run} {self.asked[key]} {key}".encode()).hexdigest()

    @property
    def unspent_usd(self) -> Decimal:
        return max(NOTHING, self.reserve_usd - self.spent_usd - self.held_usd)


@dataclass(frozen=True, slots=True)
class Payer:
    """On whose account the calls of the current task are made."""

    account: RunAccount
    by: str = AGENT


PAYER: ContextVar[Payer | None] = ContextVar("payer", default=None)


@dataclass(frozen=True, slots=True)
class Hold:
    """What is reserved for one call."""

    number: int
    model: str
    usd: Decimal
    chars: int = 0  # of the prompt
    factor: Decimal = Decimal(1)  # by which it exceeds the declared maximum, because the provider did
    payer: Payer | None = None
    is_written: bool = False
    is_rest: bool = False  # all that the cap leaves, which is less than the declared maximum


class Ledger:
    """The spending of one sweep, shared by all its models.

    Args:
        cap_usd: what may be spent in all; None for no limit.
    """

    def __init__(self, cap_usd: Decimal | float | None = None) -> None:
        self.cap_usd = None if cap_usd is None else exact_usd(cap_usd)
        self.spending = SpendingSoFar()
        self.held_usd = NOTHING
        self._in_flight = 0  # calls
        self._running: dict[int, RunAccount] = {}  # by attempt, oldest first
        self._calls, self._attempts = count(1), count(1)
        self._changed = asyncio.Event()  # replaced each time it is set
        self._exhausted: SpendCapReached | None = None  # set once a run was cut short; no other is begun then

    @property
    def spent_usd(self) -> Decimal:
        return self.spending.total_usd

    @asynccontextmanager
    async def admit(self, run: str, reserve: Callable[[], Decimal] | None = None) -> AsyncIterator[RunAccount]:
        """Wait until a run may start, and keep its account while it runs.

        Args:
            reserve: returns what it is likely to cost at most; 0 if that is unknown, and then it runs alone under a
                cap. None to start at once.

        Raises:
            SpendCapReached: another run has used up the cap.
        """
        wanted = NOTHING if reserve is None else reserve()
        while self.cap_usd is not None and reserve is not None and not self._has_room(wanted):
            await self._changed.wait()
            wanted = reserve()
        if self._exhausted is not None:
            raise SpendCapReached(str(self._exhausted))
        account = RunAccount(next(self._attempts), run, wanted)
        self._running[account.attempt] = account
        token = PAYER.set(Payer(account))
        try:
            yield account
        finally:
            PAYER.reset(token)
            del self._running[account.attempt]
            self._wake()

    def _has_room(self, reserve_usd: Decimal) -> bool:
        """True if a further run can be paid for without what the running ones may still need."""
        running = self._running.values()
        if not running or self._exhausted is not None:
            return True
        if not reserve_usd or any(not account.reserve_usd for account in running):
            return False
        kept = sum((account.unspent_usd for account in running), NOTHING)
        return self.left_usd() >= kept + reserve_usd

    def left_usd(self) -> Decimal:
        """Return what a cap leaves beside what is spent and held."""
        assert self.cap_usd is not None
        return self.cap_usd - self.spent_usd - self.held_usd

    async def hold(
        self, most_usd: Decimal, model: str = "", chars: int = 0, least: Callable[[], Decimal] | None = None
    ) -> Hold:
        """Reserve the maximum cost of a call; wait if calls in flight or older runs may leave enough.

        Args:
            least: returns what the call needs at least; then it gets the rest of the cap if that is no less, unless
                its provider has billed above a declared maximum before.

        Raises:
            SpendCapReached: the call could exceed the cap; nothing is reserved.
        """
        payer = PAYER.get()
        factor = self.spending.factors.get(model, Decimal(1))
        account = payer.account if payer is not None and payer.account.attempt in self._running else None
        while self.cap_usd is not None and not self._fits(most_usd * factor, account):
            if not self._in_flight and (account is None or self._is_oldest(account)):
                if least is not None and factor == 1 and least() <= (rest := self.left_usd()):
                    return self._reserve(Hold(next(self._calls), model, rest, chars, payer=payer, is_rest=True))
                self._exhausted = self.reached("call may cost", most_usd * factor)
                raise self._exhausted
            await self._changed.wait()
            factor = self.spending.factors.get(model, Decimal(1))
        return self._reserve(Hold(next(self._calls), model, most_usd * factor, chars, factor, payer))

    def _reserve(self, hold: Hold) -> Hold:
        hold = self._begin(hold)
        self._in_flight += 1
        self.held_usd += hold.usd
        if hold.payer is not None:
            hold.payer.account.held_usd += hold.usd
        return hold

    def exhaust(self, error: SpendCapReached) -> SpendCapReached:
        """Begin no further run, and return the error."""
        self._exhausted = error
        return error

    def _fits(self, most_usd: Decimal, account: RunAccount | None) -> bool:
        left = self.left_usd() - most_usd
        if left < 0 or account is None or self._is_oldest(account):
            return left >= 0
        if account.spent_usd + account.held_usd + most_usd <= account.reserve_usd:
            return True
        others = (one for one in self._running.values() if one is not account)
        return left >= sum((one.unspent_usd for one in others), NOTHING)

    def _is_oldest(self, account: RunAccount) -> bool:
        return next(iter(self._running.values()), account) is account

    def reached(self, next_one: str, usd: Decimal) -> SpendCapReached:
        """Return the error that says why nothing more can be paid for."""
        lost, unknown = self.spending.in_flight_usd, self.spending.unconfirmed_usd
        parts = [f"at most ${lost:.4f} of it for calls that were in flight"] if lost else []
        parts += (
            [f"at most ${unknown:.4f} of it for calls without a usable reply or count of tokens"] if unknown else []
        )
        said = f" ({', '.join(parts)})" if parts else ""
        return SpendCapReached(
            f"${self.spent_usd:.4f} of ${self.cap_usd:.4f} is spent{said} and the next {next_one} ${usd:.4f}; {RAISE}"
        )

    def settle(self, hold: Hold, usd: Decimal, unconfirmed_usd: Decimal = NOTHING, usage: Usage | None = None) -> None:
        """Release a reservation and record what was spent.

        Args:
            unconfirmed_usd: the most that a call without a usable reply may have cost.
            usage: of the reply, if there was one.
        """
        call = ended_call(hold, usd, unconfirmed_usd, usage)
        self.spending.settle(call)
        self._release(hold, usd + unconfirmed_usd)
        self._end(hold, call)
        self._wake()

    def abandon(self, hold: Hold) -> None:
        """Release the reservation of a call that is given up in flight: all of it may be billed, and nobody tells."""
        self.spending.in_flight_usd += hold.usd
        self._release(hold, hold.usd)
        self._wake()

    def _release(self, hold: Hold, spent_usd: Decimal) -> None:
        self._in_flight -= 1
        self.held_usd -= hold.usd
        if hold.payer is not None:
            hold.payer.account.held_usd -= hold.usd
            hold.payer.account.spent_usd += spent_usd

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _begin(self, hold: Hold) -> Hold:
        """Record a call that is about to be made; nothing for a ledger in memory."""
        return hold

    def _end(self, hold: Hold, call: PaidCall) -> None:
        """Record a call that has ended; nothing for a ledger in memory."""


def reserved_call(hold: Hold) -> PaidCall:
    """Return a call as it is stored before it is made."""
    return PaidCall(
        id=hold.number,
        attempt=None if hold.payer is None else hold.payer.account.attempt,
        payer=AGENT if hold.payer is None else hold.payer.by,
        model=hold.model,
        reserved_usd=hold.usd,
        chars=hold.chars,
        factor=hold.factor,
        is_rest=hold.is_rest,
    )


def ended_call(hold: Hold, usd: Decimal, unconfirmed_usd: Decimal, usage: Usage | None) -> PaidCall:
    """Return a call with what it came to."""
    return structs.replace(
        reserved_call(hold),
        billed_usd=usd,
        unconfirmed_usd=unconfirmed_usd,
        input_tokens=None if usage is None else usage.input_tokens,
        output_tokens=None if usage is None else usage.output_tokens,
        cached_tokens=None if usage is None else usage.cached_tokens,
    )
