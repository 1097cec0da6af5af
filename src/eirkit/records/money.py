"""The money of a folder, exact to the cent: what was agreed, and what the paid calls came to.

A call is stored before it is made, so a kill loses no money: a call without an end was in flight, and counts with the
most that it may have cost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal

from eirkit.errors import InputFileError
from eirkit.records.database import PaidCall, SweepDatabase
from eirkit.records.sweeps import Spending

NOTHING = Decimal(0)
AGENT, MEMORY = "agent", "memory"  # who asked
CAP = "cap_usd"
RAISE = "raise the cap and resume"  # what helps where a cap was reached
_HUNDREDTH = Decimal("0.01")


def exact_usd(amount: Decimal | float | str) -> Decimal:
    """Return an amount as a decimal: of a float the shortest number that is written like it, not its binary value."""
    return amount if isinstance(amount, Decimal) else Decimal(str(amount))


def exact_sum(costs: Iterable[float | None]) -> float | None:
    """Return the sum of amounts as they are written, without errors of rounding; None if one is unknown."""
    known = list(costs)
    if not any(known) and None not in known:
        return 0.0  # as for every agent that costs nothing
    return None if None in known else float(sum((exact_usd(cost) for cost in known if cost is not None), NOTHING))


def cost_in_words(spending: Spending) -> str:
    """Return what a folder has cost: its bills, and the most that calls whose bill is unknown may have cost besides."""
    unknown = (
        (spending.in_flight_usd, "that were in flight"),
        (spending.unconfirmed_usd, "without a usable reply or count of tokens"),
    )
    more = [f"and at most ${usd:,.4f} more for calls {which}" for usd, which in unknown if usd]
    return ", ".join([f"${spending.billed_usd:,.4f}", *more])


@dataclass(slots=True)
class CallSizes:
    """How long the calls of a model were so far."""

    calls: int = 0
    output_tokens: int = 0  # in all
    tokens_per_char: float = 0.0  # of the densest prompt

    def add(self, chars: int, input_tokens: int, output_tokens: int) -> None:
        self.calls += 1
        self.output_tokens += output_tokens
        self.tokens_per_char = max(self.tokens_per_char, input_tokens / max(1, chars))


@dataclass(slots=True)
class SpendingSoFar:
    """What has been spent so far; the first three count against the cap."""

    billed_usd: Decimal = NOTHING  # for replies, as priced
    unconfirmed_usd: Decimal = NOTHING  # the most that calls without a usable reply may have cost
    in_flight_usd: Decimal = NOTHING  # the most that calls may have cost that were in flight when their run ended
    over_usd: Decimal = NOTHING  # part of billed_usd: above what was reserved for its call
    over_calls: int = 0  # after the first, as much is reserved for the model's later ones, which may stay below it
    factors: dict[str, Decimal] = field(default_factory=dict)  # by model: the largest bill, in declared maxima
    sizes: dict[str, CallSizes] = field(default_factory=dict)  # by model
    replies: int = 0
    unanswered: int = 0  # calls that may have been billed without a reply

    @property
    def calls_per_reply(self) -> Decimal:
        """How many calls that may be billed there were for each reply; 1 before the first."""
        return Decimal(self.replies + self.unanswered) / self.replies if self.replies else Decimal(1)

    @property
    def total_usd(self) -> Decimal:
        return self.billed_usd + self.unconfirmed_usd + self.in_flight_usd

    def settle(self, call: PaidCall) -> None:
        """Add a call that has ended."""
        usd, unconfirmed = call.billed_usd or NOTHING, call.unconfirmed_usd or NOTHING
        is_reply = call.input_tokens is not None
        self.replies += is_reply
        self.unanswered += bool(unconfirmed) and not is_reply
        self.billed_usd += usd
        self.unconfirmed_usd += unconfirmed
        read, written = call.input_tokens or 0, call.output_tokens or 0
        if read + written:
            self.sizes.setdefault(call.model, CallSizes()).add(call.chars, read, written)
        if call.reserved_usd and usd > call.reserved_usd:
            self.over_usd += usd - call.reserved_usd
            self.over_calls += 1
            if not call.is_rest:
                factor = (usd * call.factor / call.reserved_usd).quantize(_HUNDREDTH, ROUND_CEILING)
                self.factors[call.model] = max(self.factors.get(call.model, factor), factor)


@dataclass(slots=True)
class ModelCalls:
    """Paid calls of one model for agents."""

    calls: int = 0
    chars: int = 0  # of prompts
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def add(self, call: PaidCall) -> None:
        self.calls += 1
        self.chars += call.chars
        self.input_tokens += call.input_tokens or 0
        self.output_tokens += call.output_tokens or 0
        self.cached_tokens += call.cached_tokens or 0


@dataclass(slots=True)
class AttemptSpend:
    """The paid calls of one attempt at a run."""

    run: str
    part: str  # "control", or "" for the sweep itself
    agent: ModelCalls = field(default_factory=ModelCalls)  # with a reply
    usd: dict[str, Decimal] = field(default_factory=dict)  # billed, by who asked
    uncertain_usd: Decimal = NOTHING  # unconfirmed, or in flight at a kill

    @property
    def cell(self) -> str:
        return self.run.rpartition("-")[0]


@dataclass(slots=True)
class Journal:
    """What was agreed and spent in a folder."""

    cap_usd: Decimal | None = None
    spending: SpendingSoFar = field(default_factory=SpendingSoFar)
    attempts: dict[int, AttemptSpend] = field(default_factory=dict)
    models: dict[str, ModelCalls] = field(default_factory=dict)
    calls: int = 0  # the last number in use

    def by_cell(self) -> dict[str, dict[int, AttemptSpend]]:
        """Return the attempts of the sweep itself, by cell and number."""
        found: dict[str, dict[int, AttemptSpend]] = {}
        for number, attempt in self.attempts.items():
            if not attempt.part:
                found.setdefault(attempt.cell, {})[number] = attempt
        return found

    def by_run(self) -> dict[str, list[AttemptSpend]]:
        """Return the attempts at each run."""
        found: dict[str, list[AttemptSpend]] = {}
        for attempt in self.attempts.values():
            found.setdefault(attempt.run, []).append(attempt)
        return found

    def sums(self) -> Spending:
        """Return the sums in dollars."""
        control = (attempt for attempt in self.attempts.values() if attempt.part)
        return Spending(
            cap_usd=None if self.cap_usd is None else float(self.cap_usd),
            spent_usd=float(self.spending.total_usd),
            billed_usd=float(self.spending.billed_usd),
            unconfirmed_usd=float(self.spending.unconfirmed_usd),
            in_flight_usd=float(self.spending.in_flight_usd),
            over_usd=float(self.spending.over_usd),
            over_calls=self.spending.over_calls,
            control_usd=float(sum((sum(part.usd.values(), part.uncertain_usd) for part in control), NOTHING)),
        )

    def add(self, call: PaidCall) -> None:
        """Add a call; one without an end was in flight when its run was interrupted or killed."""
        self.calls = max(self.calls, call.id)
        attempt = None if call.attempt is None else self.attempts[call.attempt]
        if call.billed_usd is None:
            self.spending.in_flight_usd += call.reserved_usd
            if attempt is not None:
                attempt.uncertain_usd += call.reserved_usd
            return
        self.spending.settle(call)
        if attempt is None:
            return
        attempt.usd[call.payer] = attempt.usd.get(call.payer, NOTHING) + call.billed_usd
        attempt.uncertain_usd += call.unconfirmed_usd or NOTHING
        if call.payer == AGENT and call.input_tokens is not None:
            attempt.agent.add(call)
            if call.input_tokens + (call.output_tokens or 0):  # else estimates can learn nothing of it
                self.models.setdefault(call.model, ModelCalls()).add(call)


def spending_of(database: SweepDatabase) -> Spending | None:
    """Return what a folder has cost, its control and failed attempts included; None if nothing was paid for."""
    journal = journal_of(database)
    return None if journal is None else journal.sums()


def journal_of(database: SweepDatabase) -> Journal | None:
    """Return the money in a database; None if nothing was paid for or agreed."""
    found, terms = Journal(), database.terms()
    try:
        found.cap_usd = None if terms.get(CAP) is None else Decimal(str(terms[CAP]))
        calls = list(database.calls())  # before the attempts: who is writing stores each with its first call
        found.attempts = {attempt.id: AttemptSpend(attempt.run, attempt.part) for attempt in database.attempts()}
        for call in calls:
            found.add(call)
    except (KeyError, ValueError, ArithmeticError) as error:
        raise InputFileError(f"{database.path}: its money cannot be read ({error}); restore the file") from error
    return found if terms or found.calls else None
