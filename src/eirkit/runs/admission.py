"""Decides when runs may start under a cap: when those before them keep enough to finish.

What a run may need is bounded by simulating it with a reference agent: every byte a token, every reply as long as
allowed. Once runs of the same model have finished, four times the dearest of them is enough. If a memory system has a
model of its own, its calls cannot be foreseen, so the first such run has the rest of the cap to itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal

from eirkit.agents.serving.ledger import NOTHING, RunAccount, exact_usd
from eirkit.runs.attempt import CellContext
from eirkit.runs.budget import Budget, asks_paid_model
from eirkit.runs.cells import Cell
from eirkit.runs.estimate import estimate_run

TIMES = 4  # so many times the dearest run before it


@dataclass(frozen=True, slots=True)
class _Bound:
    """What a run may need."""

    run_usd: Decimal = NOTHING
    call_usd: Decimal = NOTHING
    is_known: bool = False


@dataclass(frozen=True, slots=True)
class _Range:
    """The cheapest and the dearest finished run, as shares of their bounds; in dollars where there is no bound."""

    least: Decimal
    most: Decimal


class Admission:
    """Admits the runs of a plan to the ledger of its budget."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._bounds: dict[str, _Bound] = {}  # by cell
        self._seen: dict[tuple[str, str | None], _Range] = {}  # by model and memory system

    @asynccontextmanager
    async def admit(self, context: CellContext, seed: int) -> AsyncIterator[RunAccount]:
        """Wait until a run may start, and keep its account while it runs.

        Raises:
            SpendCapReached: even the cheapest run so far could not be paid for.
        """
        cell, ledger = context.cell, self.budget.ledger
        reserve = None if ledger.cap_usd is None else lambda: self._reserve_usd(context, seed)
        async with ledger.admit(cell.run_id(seed), reserve) as account:
            least = NOTHING if reserve is None else self._least_usd(context, seed)
            if least and ledger.left_usd() < least:
                raise ledger.reached("run costs at least about", least)
            yield account

    def learn(self, cell: Cell, account: RunAccount) -> None:
        """Take note of what a finished run has cost."""
        bound = self._bounds.get(cell.id)
        if bound is None:
            return
        cost = account.spent_usd / bound.run_usd if bound.is_known else account.spent_usd
        seen = self._seen.get(_kind(cell), _Range(cost, cost))
        self._seen[_kind(cell)] = _Range(min(seen.least, cost), max(seen.most, cost))

    def _reserve_usd(self, context: CellContext, seed: int) -> Decimal:
        bound, seen = self._bound(context, seed), self._seen.get(_kind(context.cell))
        if not bound.is_known:
            return NOTHING if seen is None else TIMES * seen.most
        if seen is None:
            return bound.run_usd
        return min(bound.run_usd, TIMES * seen.most * bound.run_usd + 2 * bound.call_usd)

    def _least_usd(self, context: CellContext, seed: int) -> Decimal:
        bound, seen = self._bound(context, seed), self._seen.get(_kind(context.cell))
        if seen is None:
            return NOTHING
        return seen.least * bound.run_usd if bound.is_known else seen.least

    def _bound(self, context: CellContext, seed: int) -> _Bound:
        cell = context.cell
        if (known := self._bounds.get(cell.id)) is not None:
            return known
        price = self.budget.price_of(cell.model, cell.options)
        expected = estimate_run(cell, seed, context.unrecovered.get(seed), price)
        bound = _Bound()
        if expected.most_usd and not asks_paid_model(cell):
            most = exact_usd(expected.most_usd)
            bound = _Bound(most, most / max(1, expected.calls), is_known=True)
        self._bounds[cell.id] = bound
        return bound


def _kind(cell: Cell) -> tuple[str, str | None]:
    return cell.model, cell.access.memory
